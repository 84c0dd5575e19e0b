"""The errors that misuse raises: what was expected, what came, what to do next."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["InputError", "MissingLibraryError", "require"]


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""


class MissingLibraryError(ImportError):
    """An optional library that is not installed; the message ends in the line that installs it."""


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra brings it.

    >>> require("json", extra="all", purpose="reading JSON").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingLibraryError(
            f"{purpose} needs {module}, which is not installed; run: pip install 'doublewell[{extra}]'"
        ) from error
