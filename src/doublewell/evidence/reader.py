"""Reader: the weights of one support on one record, and the way its centres go through the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from doublewell.evidence.complete import complete_centres
from doublewell.evidence.evidence import compact
from doublewell.evidence.fold import STRADDLE, Fold
from doublewell.evidence.uneven import uneven_weights
from doublewell.evidence.weights import AxisWeights, Derivative, Support, axis_weights
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.record import Cells, Record

__all__ = ["PHASE_CUT", "Reader", "Region", "Window", "even_steps"]

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
_QUEUE_BYTES = 6 * 2**20  # a kernel call takes fewer frames, then fewer cells, where more rows would wait than this
_FRAMES = 12  # most centre frames per kernel call; features of the halo frames are evaluated again in the next
_FEWEST = 4  # least centre frames per kernel call; fewer would evaluate the halo too often
_CELLS = 256  # most centres along x per kernel call
_NARROW = 64  # least centres along x per kernel call, where there are that many
_BATCH = 4  # rows along y taken in together
_ACROSS = 8  # centres along z per kernel call


@dataclass(frozen=True)
class Region:
    """A part of a record: frames and, along each space axis, cells, each as (first, past the last).

    Regions that are a partition of all frames and cells have all centres, each once: a centre belongs to the region
    that its own frame and cell lie in, however far its support reaches beyond.
    """

    frames: tuple[int, int]
    cells: Cells

    @classmethod
    def whole(cls, record: Record) -> Region:
        """Return the region that is all of a record."""
        return cls((0, record.frames), tuple((0, n) for n in record.mesh))


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

    @cached_property
    def copies(self) -> dict[str, Any]:
        """Copies of the fields on other devices, by precision; readers of several supports share them."""
        return {}


class Reader:
    """The weights of one support on one record, and the loop over tiles."""

    step_bytes = 8 * 2**20  # one step through a record takes centre frames of about this size

    def __init__(
        self, record: Record, family: LinearFamily, support: Support, derivative: Derivative, region: Region
    ) -> None:
        self.family, self.support = family, support
        self.times = None if record.uniform else record.times
        self.derivative: Derivative = derivative
        self.time = axis_weights(support.frames, record.dt if record.uniform else 1.0, derivative)  # or its lengths
        missing = 3 - len(record.mesh)
        self.space = [_NO_AXIS] * missing + [axis_weights(support.length / h, h, derivative) for h in record.dx]
        self.mesh = (1,) * missing + record.mesh
        self.owned = ((0, 1),) * missing + region.cells
        self.points = int(np.prod([high - low for low, high in region.cells]))
        self.frames, self.cells = self._tile_size()

    def _tile_size(self) -> tuple[int, int]:
        """Return how many centre frames and cells along x a kernel call takes: few where supports are wide."""
        (z0, z1), _, (x0, x1) = self._centres()
        if x0 == x1 or z0 == z1:
            return _FRAMES, _CELLS
        row = 8 * (self.family.size + 3) * min(_ACROSS, z1 - z0) * (4 * self.space[1].half + _BATCH)
        room = _QUEUE_BYTES // row
        cells = max(min(_CELLS, _NARROW), min(_CELLS, room // _FEWEST))
        widest = max(stop - start for start, stop in even_steps(x0, x1, cells))
        return min(_FRAMES, max(_FEWEST, room // widest)), cells

    def _centres(self) -> tuple[tuple[int, int], ...]:
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

    def read(self, window: Window, start: int, stop: int) -> tuple[Array, int]:
        """Fold all centres of the frames start..stop-1; return R and the number of rows."""
        from doublewell.evidence.kernels import assemble

        triangle = np.zeros((self.family.size + 2,) * 2)
        rows = 0
        complete = self._complete(window, start, stop)
        for begin in range(start, stop, self.frames):
            end = min(begin + self.frames, stop)
            time = self._time_taps(begin, end)
            part = None if complete is None else complete[begin - start : end - start]
            for tile in self._tiles(window, begin, end):
                rows += assemble(
                    window.fields, tile, self._halves(), *time,
                    *(taps for axis in self.space for taps in (axis.value, axis.second)),
                    *self.family.kernel_table(), PHASE_CUT, _BATCH, _of_tile(part, tile), triangle,
                )  # fmt: skip
        return compact(triangle), rows

    def _time_taps(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return the taps along time of value and derivative, one row for each of the centre frames."""
        if self.times is None:
            return np.tile(self.time.value, (stop - start, 1)), np.tile(self.time.first, (stop - start, 1))
        half = self.time.half
        windows = sliding_window_view(self.times[start - half : stop + half], 2 * half + 1)
        return uneven_weights(self.support.frames, windows, self.derivative)

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

    def _tiles(self, window: Window, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """Cut the centres of some frames into what a kernel call takes, in places of the window's fields."""
        ranges = zip(self._centres(), window.origin, strict=True)
        (z0, z1), (y0, y1), (x0, x1) = ((low - origin, high - origin) for (low, high), origin in ranges)
        if y0 == y1 or x0 == x1:
            return
        start, stop = start - window.first, stop - window.first
        for z in range(z0, z1, _ACROSS):
            for x in even_steps(x0, x1, self.cells):
                yield (start, stop, z, min(z + _ACROSS, z1), y0, y1, *x)


_NO_AXIS = AxisWeights(np.ones(1), np.zeros(1), np.zeros(1), 0)
_ALL = np.empty((0, 0, 0, 0), dtype=bool)  # leaves out no centre


def _of_tile(complete: NDArray[np.bool_] | None, tile: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the centres of a tile as the kernel walks them, [y, t, z, x]."""
    if complete is None:
        return _ALL
    _, _, z0, z1, y0, y1, x0, x1 = tile
    return np.ascontiguousarray(complete[:, z0:z1, y0:y1, x0:x1].transpose(2, 0, 1, 3))


def even_steps(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Cut start..stop into parts of nearly equal size, none larger than `size`."""
    parts = -(-(stop - start) // size)
    edges = np.linspace(start, stop, parts + 1).round().astype(int).tolist()
    return list(pairwise(edges))
