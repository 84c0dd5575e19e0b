"""Checks of numbers that several rooms take: each returns the checked value or says what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError

__all__ = ["check_spacing", "numbers", "positive"]


def positive(value: Any, name: str, meaning: str) -> float:
    """Return a positive finite number as a float."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {value!r}: expected {meaning}, a positive number") from None
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} is {number:g}: expected {meaning}, a positive number")
    return number


def check_spacing(dx: float | Sequence[float] | None, space: int) -> tuple[float, ...]:
    """Return the mesh spacing, one number per space axis."""
    if dx is None:
        raise InputError("the mesh spacing is missing: pass dx=, one number or one per space axis")
    spacing = np.atleast_1d(numbers(dx, "dx"))
    if spacing.ndim != 1 or spacing.size not in (1, space):
        raise InputError(f"dx has {spacing.size} entries: expected 1, or {space}, one per space axis of the field")
    return tuple(positive(h, "dx", "the mesh spacing") for h in np.broadcast_to(spacing, (space,)))


def numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Return values as an array of floats."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {values!r}: expected numbers") from None
