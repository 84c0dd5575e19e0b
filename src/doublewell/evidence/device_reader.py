"""The reader of one support whose sums are made on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from doublewell.dynamics import device_memory
from doublewell.evidence.device import on_device, read_centres
from doublewell.evidence.evidence import compact
from doublewell.evidence.reader import PHASE_CUT, Reader, Region, Window, even_steps
from doublewell.evidence.weights import Derivative, Support
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.record import Record

__all__ = ["DeviceReader"]

_FRAMES = 95  # most centre frames per call; with more, most of the matrix of taps along time is zero
_SHARE = 0.4  # of the device's memory that the arrays of one call may take
_HELD = 4  # arrays of all columns that are there at once: features, and after each axis


class DeviceReader(Reader):
    """Reads as many centres in a call as the device has room for."""

    step_bytes = 2**30

    def __init__(
        self, record: Record, family: LinearFamily, support: Support, derivative: Derivative, region: Region,
        precision: str,
    ) -> None:  # fmt: skip
        self.precision = precision
        super().__init__(record, family, support, derivative, region)

    def read(self, window: Window, start: int, stop: int) -> tuple[Array, int]:
        """Read all centres of the frames start..stop-1; return R and the number of rows."""
        triangle, rows = np.zeros((self.family.size + 2,) * 2), 0
        complete = self._complete(window, start, stop)
        for begin, end in even_steps(start, stop, self.frames):
            time = self._time_taps(begin, end)
            part = None if complete is None else complete[begin - start : end - start]
            for tile in self._tiles(window, begin, end):
                found, count = read_centres(
                    self._fields(window, tile), None if part is None else part[_space(tile)], time,
                    [(axis.value, axis.second) for axis in self.space], self.family.kernel_table(), PHASE_CUT,
                )  # fmt: skip
                triangle, rows = compact(np.vstack([triangle, found])), rows + count
        return triangle, rows

    def _tile_size(self) -> tuple[int, int]:
        """Return how many centre frames and rows along y a call takes: all frames first, then all rows."""
        (z0, z1), (y0, y1), (x0, x1) = self._centres()
        halves = [axis.half for axis in self.space]
        line = (z1 - z0 + 2 * halves[0]) * (x1 - x0 + 2 * halves[2])
        room = int(_SHARE * device_memory()) // (8 * (self.family.size + 3) * _HELD * line)
        deep = _FRAMES + 2 * self.time.half
        rows = max(8, room // deep - 2 * halves[1])
        return _FRAMES, min(rows, max(1, y1 - y0))

    def _tiles(self, window: Window, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """Cut the centres of some frames along y, in places of the window's fields."""
        ranges = zip(self._centres(), window.origin, strict=True)
        z, (y0, y1), x = ((low - origin, high - origin) for (low, high), origin in ranges)
        if z[0] == z[1] or x[0] == x[1]:
            return
        for y in even_steps(y0, y1, self.cells):
            yield (start - window.first, stop - window.first, *z, *y, *x)

    def _fields(self, window: Window, tile: tuple[int, ...]) -> Any:
        """Return what the centres of a tile need, on the device."""
        if self.precision not in window.copies:
            window.copies[self.precision] = on_device(window.fields, self.precision)
        _, first, *halves = self._halves()
        reach = (first, *halves[1::2])
        ends = zip(tile[::2], tile[1::2], reach, strict=True)
        return window.copies[self.precision][tuple(slice(low - half, high + half) for low, high, half in ends)]


def _space(tile: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the centres of a tile in an array [t, z, y, x] over all cells."""
    return (slice(None), *(slice(low, high) for low, high in zip(tile[2::2], tile[3::2], strict=True)))
