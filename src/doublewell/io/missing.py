"""Missing: a library that a format needs and that is not installed, with the line that cures it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from doublewell.errors import InputError

__all__ = ["library"]


def library(name: str, extra: str, purpose: str) -> Any:
    """Import a library that belongs to an extra of this package."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"{purpose} needs the library {name}, which is not installed ({error}): run "
            f"pip install 'doublewell[{extra}]'"
        ) from error
