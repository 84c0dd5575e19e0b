"""Checks of numbers that several modules take: each returns the checked value or reports what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doublewell.errors import InputError, option
from doublewell.hints import Array

_SHOWN = 60  # characters of a wrong value in a message


def positive(value: Any, name: str, meaning: str = "") -> float:
    """Return a positive finite number as a float.

    >>> positive(2, "q", "the diffusion coefficient")
    2.0
    """
    number = _float(value)
    if number is None or not (np.isfinite(number) and number > 0):
        expected = f"{meaning}, a positive number" if meaning else "a positive number"
        raise InputError(f"{name} is {shown(value, number)}: expected {expected}")
    return number


def not_negative(value: Any, name: str, meaning: str = "") -> float:
    """Return a finite number of at least zero as a float."""
    number = _float(value)
    if number is None or not (np.isfinite(number) and number >= 0):
        expected = f"{meaning}, a number of at least 0" if meaning else "a number of at least 0"
        raise InputError(f"{name} is {shown(value, number)}: expected {expected}")
    return number


def real(value: Any, name: str, meaning: str) -> float:
    """Return a finite number as a float."""
    number = _float(value)
    if number is None or not np.isfinite(number):
        raise InputError(f"{name} is {shown(value, number)}: expected {meaning}, a finite number")
    return number


def whole(value: Any, name: str, *, least: int, most: int | None = None, meaning: str = "") -> int:
    """Return an integer from `least` to `most` as an int; a boolean is not one.

    >>> whole(np.int64(3), "frames", least=2)
    3
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        size = f"an integer from {least}" + (f" to {most}" if most is not None else "")
        raise InputError(f"{name} is {shown(value)}: expected {f'{meaning}, {size}' if meaning else size}")
    return int(value)


def seed(value: Any, purpose: str) -> np.random.Generator:
    """Return the random numbers of a seed, or a Generator as it is; nothing is drawn without either."""
    if isinstance(value, np.random.Generator):
        return value
    if not is_whole(value) or value < 0:
        raise InputError(
            f"seed is {shown(value)}: expected an integer of at least 0 or a numpy Generator, to make {purpose} "
            "repeatable"
        )
    return np.random.default_rng(int(value))


def check_spacing(dx: float | Sequence[float] | None, space: int) -> tuple[float, ...]:
    """Return the mesh spacing, one number per space axis."""
    if dx is None:
        raise InputError(f"the mesh spacing is missing: pass {option('dx')}, one number or one per space axis")
    spacing = np.atleast_1d(numbers(dx, "dx"))
    if spacing.ndim != 1 or spacing.size not in (1, space):
        came = f"{spacing.size} entries" if spacing.ndim == 1 else f"shape {spacing.shape}"
        raise InputError(f"dx has {came}: expected 1, or {space}, one per space axis of the field")
    return tuple(positive(h, "dx", "the mesh spacing") for h in np.broadcast_to(spacing, (space,)))


def numbers(values: Any, name: str) -> Array:
    """Return values as an array of floats; text and complex numbers are refused, never turned into some."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cUS":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {shown(values)}: expected numbers") from None


def is_whole(value: object) -> bool:
    """Whether a value is an integer, of Python or NumPy; a boolean is not one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def shown(value: object, number: float | None = None) -> str:
    """Return a wrong value as a message shows it: in one line and not too long."""
    if number is not None:
        return f"{number:g}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _float(value: Any) -> float | None:
    """Return one real number as a float; None for text, booleans, arrays and what is beyond floats."""
    if (
        isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating)
        or getattr(value, "ndim", 0) != 0
    ):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
