"""The errors that misuse raises: what was expected, what came, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["InputError", "UnfinishedError"]


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""


class UnfinishedError(InputError):
    """Some of many inputs could not be used. ``results`` holds the others' in place, None where there is none.

    ``failures`` says for each place (counted from 0) what was wrong there.
    """

    def __init__(self, message: str, results: Sequence[Any], failures: Mapping[int, str]) -> None:
        super().__init__(message)
        self.results = list(results)
        self.failures = dict(failures)
