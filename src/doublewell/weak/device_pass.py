"""One or two supports read on a GPU; the same calls as a `Pass`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from doublewell.evidence import compact
from doublewell.hints import Array
from doublewell.jax_runtime import device_memory
from doublewell.law import Family
from doublewell.weak.gpu import Shown, on_device, read_centres
from doublewell.weak.passes import Part, Run, Span, even_steps
from doublewell.weak.weights import AxisWeights

__all__ = ["DevicePass"]

_FRAMES = 95  # most centre frames per call; with more, most of the matrix of taps along time is zero
_SHARE = 0.4  # of the device's memory that the arrays of one call may take
_HELD = 4  # arrays of all columns that are there at once: features, and after each axis
_FEWEST = 8  # rows along y per call


@dataclass(frozen=True, eq=False)
class DevicePass:
    """The supports as weights along z, y, x and ranges of centres there; a call takes what the device has room for."""

    family: Family
    space: tuple[tuple[AxisWeights, ...], ...]
    centres: tuple[tuple[Span, ...], ...]
    time_halves: tuple[Span, ...]
    precision: str

    def read(
        self, fields: Array, origin: tuple[int, ...], parts: Sequence[Part], cut: float, run: Run
    ) -> list[tuple[Array, int]]:
        """Read all centres of the parts' frames, counted in fields[t, z, y, x]; return R and the rows of each.

        Supports are read one after the other: the device has threads of its own, so those of `run` have no part.
        """
        del run
        return self.read_copy(on_device(fields, self.precision), origin, parts, cut)

    def read_copy(
        self, copy: Any, origin: tuple[int, ...], parts: Sequence[Part], cut: float
    ) -> list[tuple[Array, int]]:
        """Do the same with fields that are on the device."""
        shown = Shown(copy, self.family.kernel_table())
        return [self._read(k, shown, origin, part, cut) for k, part in enumerate(parts)]

    def _read(self, k: int, shown: Shown, origin: tuple[int, ...], part: Part, cut: float) -> tuple[Array, int]:
        triangle, rows = np.zeros((self.family.size + 2,) * 2), 0
        first, last = part.frames
        for (start, stop), box in product(even_steps(first, last, _FRAMES), self._boxes(k, origin)):
            own = slice(start - first, stop - first)
            complete = None if part.complete is None else part.complete[(own, *(slice(*side) for side in box))]
            reach = (self.time_halves[k][1], *(len(axis.second) // 2 for axis in self.space[k]))
            sides = [(low - n, high + n) for (low, high), n in zip(((start, stop), *box), reach, strict=True)]
            found, count = read_centres(
                shown, sides, complete, (part.taps[0][own], part.taps[1][own]),
                [(axis.value, axis.second) for axis in self.space[k]], cut,
            )  # fmt: skip
            triangle, rows = compact(np.vstack([triangle, found])), rows + count
        return triangle, rows

    def _boxes(self, k: int, origin: tuple[int, ...]) -> Iterator[tuple[Span, ...]]:
        """Cut the centres of a support along y, counted in the fields."""
        z, y, x = ((low - first, high - first) for (low, high), first in zip(self.centres[k], origin, strict=True))
        if z[0] < z[1] and x[0] < x[1]:
            yield from ((z, part, x) for part in even_steps(*y, self._rows(k, z[1] - z[0], x[1] - x[0])))

    def _rows(self, k: int, planes: int, cells: int) -> int:
        """Return how many rows of centres along y a call has room for."""
        halves = [axis.half for axis in self.space[k]]
        line = 8 * (self.family.size + 3) * _HELD * (planes + 2 * halves[0]) * (cells + 2 * halves[2])
        deep = _FRAMES + 2 * self.time_halves[k][1]
        return max(_FEWEST, int(_SHARE * device_memory()) // (line * deep) - 2 * halves[1])
