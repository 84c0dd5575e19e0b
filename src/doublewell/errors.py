"""The errors that misuse raises: what was expected, what came, what to do next."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""
