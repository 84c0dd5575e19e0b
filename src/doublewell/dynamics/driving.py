"""Driving force: a known force h(t) that acts everywhere at once, u_t = q (Laplacian u - G(u) + h(t))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError, shown
from doublewell.hints import Array

_SAMPLES = 16  # of a function in a frame interval


@dataclass(frozen=True)
class Driving:
    """A known force h in units of G, at some times; a cubic spline between them.

    ``Driving.of(function, times)`` samples a function, ``Driving.read(path)`` reads a text file with two columns.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            times, values = (np.array(part, dtype=np.float64) for part in (self.times, self.values))
        except (TypeError, ValueError):
            times = values = np.zeros(0)
        good = times.ndim == 1 and times.shape == values.shape and times.size >= 2
        if not (good and np.all(np.isfinite(values)) and np.all(np.diff(times) > 0.0)):
            raise InputError(
                f"the driving force has times {shown(self.times)} and values {shown(self.values)}: expected two or "
                "more times that increase, with a finite value each"
            )
        object.__setattr__(self, "times", tuple(times.tolist()))
        object.__setattr__(self, "values", tuple(values.tolist()))

    @classmethod
    def of(cls, function: Callable[[Any], Any], times: Any) -> Driving:
        """Return a function of the time, sampled between frames at these times."""
        frames = np.asarray(times, dtype=np.float64)
        parts = [np.linspace(a, b, _SAMPLES, endpoint=False) for a, b in pairwise(frames)]
        fine = np.concatenate([*parts, frames[-1:]])
        return cls(tuple(fine.tolist()), tuple((np.asarray(function(fine)) + 0.0 * fine).tolist()))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Driving:
        """Return the driving force of a text file: a time and a value in each line, with a comma or without.

        A first line of words is left out.
        """
        try:
            lines = Path(path).read_text(encoding="utf-8").replace(",", " ").splitlines()
            words = bool(lines) and lines[0].lstrip()[:1].isalpha()
            table = np.loadtxt(lines[int(words) :], ndmin=2, comments="#")
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: expected a text file with a time and a force in each line ({error})") from None
        if table.shape[1] != 2:
            raise InputError(f"{path} has {table.shape[1]} columns: expected two, the time and the force")
        return cls(tuple(table[:, 0].tolist()), tuple(table[:, 1].tolist()))

    def at(self, times: Any) -> Array:
        """Return h at some times, all of them between the first and the last that are known."""
        from scipy.interpolate import CubicSpline

        asked = np.asarray(times, dtype=np.float64)
        slack = 1e-9 * (self.times[-1] - self.times[0])
        if np.min(asked) < self.times[0] - slack or np.max(asked) > self.times[-1] + slack:
            raise InputError(
                f"the driving force is known from {self.times[0]:g} to {self.times[-1]:g}: expected all times of the "
                f"record, {np.min(asked):g} to {np.max(asked):g}"
            )
        return np.asarray(CubicSpline(self.times, self.values)(asked), dtype=np.float64)
