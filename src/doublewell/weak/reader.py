"""Reader: the weights of one support on one record, and what it reads of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from doublewell.compute import Region
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.record import Record
from doublewell.weak.complete import complete_centres
from doublewell.weak.fold import STRADDLE, Fold
from doublewell.weak.passes import ACROSS, Part, even_steps
from doublewell.weak.weights import AxisWeights, Derivative, Support, axis_weights, uneven_weights

__all__ = ["PHASE_CUT", "Reader", "Region", "Window", "in_memory"]

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
_QUEUE_BYTES = 24 * 2**20  # of rows that wait in a ring
_STORED = 4  # times less for a stored record, of which a part is held too
_SPARE = 3  # rows of taps past the last frame: the kernel smooths four frames together
_FRAMES = 12  # most centre frames per kernel call; features of the halo frames are evaluated again in the next
_FEATURE = 4  # multiply-adds that a feature costs, about
_BAND = 24  # rows of a ring beside those that the taps of a band along y reach
_CELLS = 256  # most centres along x per kernel call
_NARROW = 64  # least centres along x per kernel call, where there are that many


@dataclass(frozen=True, eq=False)
class Window:
    """The centre frames start..stop-1 and fields[t, z, y, x] of all frames they need, from frame `first` on.

    ``seen`` says which of the values were observed, None for all of them; ``origin`` is the cell that fields begin at.
    """

    start: int
    stop: int
    first: int
    fields: Array
    seen: NDArray[np.bool_] | None
    origin: tuple[int, ...]


def in_memory(record: Record) -> bool:
    """Say whether frames can be read where they lie."""
    return isinstance(record.values, np.ndarray) and record.values.dtype == np.float64


class Reader:
    """The weights of one support on one record, and the loop over tiles."""

    def __init__(
        self, record: Record, family: Family, support: Support, derivative: Derivative, region: Region
    ) -> None:
        self.family, self.support = family, support
        uniform = record.uniform
        self.times = None if uniform else record.times
        self.derivative: Derivative = derivative
        self.time = axis_weights(support.frames, record.dt if uniform else 1.0, derivative)  # or its lengths
        missing = 3 - len(record.mesh)
        self.space = [_NO_AXIS] * missing + [axis_weights(support.length / h, h, derivative) for h in record.dx]
        self.mesh = (1,) * missing + record.mesh
        self.owned = ((0, 1),) * missing + region.cells
        self.points = int(np.prod([high - low for low, high in region.cells]))
        self.frames, self.cells = self._tile_size(_QUEUE_BYTES if in_memory(record) else _QUEUE_BYTES // _STORED)

    def _tile_size(self, budget: int) -> tuple[int, int]:
        """Return how many centre frames and cells along x a kernel call takes: few where supports are wide.

        Of those whose rings fit the budget, what costs least: halos in x are smoothed along t again, halos in t are
        evaluated again. Costs are in multiply-adds of a centre.
        """
        (z0, z1), _, (x0, x1) = self.centres()
        if x0 == x1 or z0 == z1:
            return _FRAMES, _CELLS
        row = 8 * (self.family.size + 4) * min(ACROSS, z1 - z0) * (4 * self.space[1].half + _BAND)
        taps, halo, p = self.time.value.size, 2 * self.space[2].half, self.family.size
        costs = []
        for frames in range(min(4, _FRAMES), _FRAMES + 1, 4):
            cells = max(min(_CELLS, _NARROW), min(_CELLS, budget // (row * frames)))
            widest = max(stop - start for start, stop in even_steps(x0, x1, cells))
            smoothed, evaluated = (p + 2) * taps, _FEATURE * p * (frames + taps) / frames
            fits = row * frames * widest <= budget
            costs.append((not fits, (1 + halo / widest) * (smoothed + evaluated) if fits else frames, frames, cells))
        _, _, frames, cells = min(costs)
        return frames, cells

    def centres(self) -> tuple[tuple[int, int], ...]:
        """Return the range of the region's centres along each space axis, perhaps an empty one."""
        ranges = []
        for axis, cells, (low, high) in zip(self.space, self.mesh, self.owned, strict=True):
            first = max(low, axis.half)
            ranges.append((first, max(first, min(high, cells - axis.half))))
        return tuple(ranges)

    def segments(self, folds: Sequence[Fold], frames: int) -> list[tuple[str, int, int]]:
        """Return (fold, first centre frame, past the last), a partition of all centre frames."""
        half = self.time.half
        if not folds:
            return [("all", half, frames - half)]
        inside = [(fold.name, fold.start + half, fold.stop - half) for fold in folds]
        inside = sorted((item for item in inside if item[1] < item[2]), key=lambda item: item[1])
        edges = [half, *(edge for _, low, high in inside for edge in (low, high)), frames - half]
        between = [(STRADDLE, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        return inside + between

    def part(self, window: Window, start: int, stop: int) -> Part:
        """Return what is read of a window for the centre frames start..stop-1, counted from its first."""
        if start >= stop:
            return Part((0, 0), (self.time.value[None], self.time.first[None]), None)
        own = start - window.first, stop - window.first
        return Part(own, self._time_taps(start, stop), self._complete(window, start, stop))

    def _time_taps(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return the taps along time of value and derivative, one row for each of the centre frames and spare ones."""
        if self.times is None:
            rows = (stop - start + _SPARE, 1)
            return np.tile(self.time.value, rows), np.tile(self.time.first, rows)
        half = self.time.half
        windows = sliding_window_view(self.times[start - half : stop + half], 2 * half + 1)
        value, first = uneven_weights(self.support.frames, windows, self.derivative)
        return np.pad(value, ((0, _SPARE), (0, 0))), np.pad(first, ((0, _SPARE), (0, 0)))

    def _complete(self, window: Window, start: int, stop: int) -> NDArray[np.bool_] | None:
        """Return which of the centres, as [t, z, y, x] of the frames, have a complete support; None for all of them."""
        if window.seen is None:
            return None
        half, offset = self.time.half, window.first
        return complete_centres(window.seen[start - half - offset : stop + half - offset], self._halves())[half:-half]

    def _halves(self) -> tuple[int, ...]:
        taps = [self.time.value, self.time.first]
        taps += [taps for axis in self.space for taps in (axis.value, axis.second)]
        return tuple(len(weights) // 2 for weights in taps)


_NO_AXIS = AxisWeights(np.ones(1), np.zeros(1), np.zeros(1), 0)
