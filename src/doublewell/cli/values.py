"""Values: words of the command line that need more than one number."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from doublewell.errors import InputError

__all__ = [
    "Constraint",
    "Whole",
    "parse_degree",
    "parse_levels",
    "parse_mesh",
    "parse_numbers",
    "parse_ridge",
    "parse_seed",
    "parse_supports",
]

_MAX_DEGREE = 8
Constraint = Literal["admissible", "bernstein", "none"]  # here again: the parser would load the library for help


def _whole(_: Any, tokens: Sequence[Any]) -> int:
    """Read an integer; the parser's own reading would round 2.5."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer") from None


Whole = Annotated[int, Parameter(converter=_whole)]


def parse_mesh(text: str) -> tuple[int, ...]:
    """Read cells along each axis, such as 96x96.

    >>> parse_mesh("64x96")
    (64, 96)
    """
    try:
        mesh = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        mesh = ()
    if not 1 <= len(mesh) <= 3 or min(mesh) < 2:
        raise InputError(f"--mesh is {text!r}: expected cells along (z, y and) x, such as 256, 96x96 or 32x32x32")
    return mesh


def parse_numbers(text: str | None, option: str) -> float | tuple[float, ...] | None:
    """Read one number, or several with commas between them.

    >>> parse_numbers("0.1,0.2", "--dx")
    (0.1, 0.2)
    """
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} is {text!r}: expected a number, or one per axis such as 0.1,0.2") from None
    return numbers[0] if len(numbers) == 1 else numbers


def parse_levels(text: str | None, option: str) -> tuple[float, float] | Literal["auto"] | None:
    """Read two intensities with a comma between them, or the word auto.

    >>> parse_levels("auto", "--levels"), parse_levels("12,240", "--levels")
    ('auto', (12.0, 240.0))
    """
    if text is None or text == "auto":
        return None if text is None else "auto"
    numbers = parse_numbers(text, option)
    if not isinstance(numbers, tuple) or len(numbers) != 2:
        raise InputError(f"{option} is {text!r}: expected auto, or two numbers such as 12,240")
    return numbers[0], numbers[1]


def parse_supports(text: str | None) -> list[tuple[int, float]] | str | None:
    """Read pairs frames:length with commas between them, or the word paper.

    >>> parse_supports("5:0.06,8:0.12")
    [(5, 0.06), (8, 0.12)]
    """
    if text is None or text == "paper":
        return text
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(int(frames), float(length)) for frames, length in pairs]
    except ValueError:
        raise InputError(f"--supports is {text!r}: expected frames:length pairs, such as 5:0.06,8:0.12") from None


def parse_ridge(text: str | None) -> float | Literal["validated"] | None:
    """Read a multiple of the mean squared column norm, or the word validated.

    >>> parse_ridge("1e-3")
    0.001
    """
    if text is None or text == "validated":
        return None if text is None else "validated"
    try:
        ridge = float(text)
    except ValueError:
        ridge = -1.0
    if not (isfinite(ridge) and ridge >= 0.0):
        raise InputError(f"--ridge is {text!r}: expected a number of at least 0, or validated")
    return ridge


def parse_degree(text: str | None) -> int | Literal["auto"] | None:
    """Read a degree from 0 to 8, or the word auto.

    >>> parse_degree("3")
    3
    """
    if text is None or text == "auto":
        return None if text is None else "auto"
    if text not in {str(degree) for degree in range(_MAX_DEGREE + 1)}:
        raise InputError(f"--degree is {text!r}: expected auto, or an integer from 0 to {_MAX_DEGREE}")
    return int(text)


def parse_phases(text: str) -> tuple[float, float] | Literal["estimated"]:
    """Return the phases low,high of --phases, or that they be estimated.

    >>> parse_phases("0,1")
    (0.0, 1.0)
    """
    if text == "estimated":
        return "estimated"
    values = parse_numbers(text, "--phases")
    if not isinstance(values, tuple) or len(values) != 2:
        raise InputError(f"--phases is {text!r}: expected two phase values such as 0,1, or estimated")
    return values[0], values[1]


def parse_seed(seed: int | None) -> int | None:
    """Check a seed, where one is given."""
    if seed is not None and seed < 0:
        raise InputError(f"--seed is {seed}: expected an integer from 0")
    return seed
