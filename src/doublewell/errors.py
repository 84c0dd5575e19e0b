"""The errors that misuse raises: what was expected, what came, what to do next."""

from __future__ import annotations

__all__ = ["InputError", "MissingLibraryError"]


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""


class MissingLibraryError(ImportError):
    """An optional library that is not installed; the message ends in the line that installs it."""
