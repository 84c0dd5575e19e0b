"""Scale: what part of the uncertainty of epsilon comes from the surface tension, and what from the movie."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from doublewell.errors import InputError
from doublewell.result import Result

__all__ = ["Parts", "scale_parts"]

_LEVEL = 0.95
_DEVIATES = 3.92  # a 95 % interval in standard deviations of a normal distribution


@dataclass(frozen=True)
class Parts:
    """Standard deviations of epsilon: from the movie, and from the tension (None: it was given as exact)."""

    movie_sd: float
    tension_sd: float | None

    @property
    def share(self) -> float:
        """The tension's share of the variance."""
        total = hypot(self.movie_sd, self.tension_sd or 0.0)
        return ((self.tension_sd or 0.0) / total) ** 2 if total else 0.0


def scale_parts(result: Result) -> Parts | None:
    """Split the uncertainty of epsilon; None for a result without a scale or without intervals.

    epsilon is sigma/C_H, or the root of it, so relative errors of C_H, which the movie gives, and of sigma add in
    squares.
    """
    if result.scale is None:
        return None
    try:
        low, high = result.interval("tension_integral", level=_LEVEL)
    except InputError:  # a weak result, or data that allow laws without an interface
        return None
    power = 1.0 if result.scale.tension.normalisation == "E" else 0.5
    relative = power * (high - low) / (_DEVIATES * result.scale.tension_integral)
    return Parts(relative * result.scale.epsilon, result.scale.epsilon_sd)
