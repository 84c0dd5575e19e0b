"""Passes: one or two supports read together, tile by tile, so that rows and features are prepared once for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.evidence import compact
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.weak.weights import AxisWeights

__all__ = ["ACROSS", "Part", "Pass", "Run", "Span", "even_steps"]

ACROSS = 8  # centres along z per kernel call
Span = tuple[int, int]
Flags = NDArray[np.bool_]
Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # like `map`, perhaps on threads
_ALL = np.empty((0, 0, 0, 0), dtype=bool)  # leaves out no centre


class Part(NamedTuple):
    """What a support reads of a window: centre frames, one row of taps along time for each, and complete centres."""

    frames: Span
    taps: tuple[Array, Array]
    complete: Flags | None


class _Memory(NamedTuple):
    """What kernel calls of one thread work in: a ring for each support, one for none, and scratch."""

    rings: list[Any]
    nothing: Any
    scratch: Any


@dataclass(frozen=True, eq=False)
class Pass:
    """The supports of one pass, as weights along z, y, x and ranges of centres there; sizes of a kernel call.

    ``time_halves`` are the half-lengths of the value and derivative taps along time. Each thread has its own memory
    that the kernel works in. Kernel calls and the order in which their triangles are put together do not depend on the
    number of threads, so neither does the result.
    """

    family: Family
    space: tuple[tuple[AxisWeights, ...], ...]
    centres: tuple[tuple[Span, ...], ...]
    time_halves: tuple[Span, ...]
    frames: int
    cells: int
    _own: local = field(default_factory=local, init=False, repr=False)

    def read(
        self, fields: Array, origin: tuple[int, ...], parts: Sequence[Part], cut: float, run: Run
    ) -> list[tuple[Array, int]]:
        """Fold all centres of the parts' frames, counted in fields[t, z, y, x]; return R and the rows of each.

        origin is the place of the first of the fields' cells in the record; run is `map`, or that of some threads.
        """
        calls = [(step, boxes) for step in self._steps(parts) for boxes in self._boxes(origin)]
        found = list(run(lambda call: self._call(fields, parts, cut, *call), calls))
        triangles = [
            np.vstack([np.zeros((0, self.family.size + 2)), *(one[k][0] for one in found)]) for k in range(len(parts))
        ]
        return [(compact(rows), sum(one[k][1] for one in found)) for k, rows in enumerate(triangles)]

    def _call(
        self, fields: Array, parts: Sequence[Part], cut: float, step: Span, boxes: Sequence[tuple[Span, ...]]
    ) -> list[tuple[Array, int]]:
        """Read one tile of all supports."""
        from doublewell.weak.kernels import assemble

        memory = self._memory()
        pair = [self._reading(k, part, step, boxes[k], memory) for k, part in enumerate(parts)]
        nothing = pair[0]._replace(tile=(0,) * 8, ring=memory.nothing)
        rows = assemble(fields, *(*pair, nothing)[:2], *self._table, cut, memory.scratch)
        return [(reading.triangle, count) for reading, count in zip(pair, rows, strict=False)]

    def _steps(self, parts: Sequence[Part]) -> Iterator[Span]:
        """Walk through the frames of all parts."""
        spans = [part.frames for part in parts if part.frames[0] < part.frames[1]]
        if spans:
            first, last = min(low for low, _ in spans), max(high for _, high in spans)
            yield from ((t, min(t + self.frames, last)) for t in range(first, last, self.frames))

    def _boxes(self, origin: tuple[int, ...]) -> Iterator[list[tuple[Span, ...]]]:
        """Cut the centres along z and x, the same cut for all supports; y is walked whole."""
        inside = [own for own in self.centres if all(low < high for low, high in own)]
        if not inside:
            return
        whole = [(min(own[k][0] for own in inside), max(own[k][1] for own in inside)) for k in range(3)]
        for z in range(*whole[0], ACROSS):
            for x in even_steps(*whole[2], self.cells):
                cuts = ((z, z + ACROSS), whole[1], x)
                yield [tuple(_within(own[k], cuts[k], origin[k]) for k in range(3)) for own in self.centres]

    def _reading(self, k: int, part: Part, step: Span, box: tuple[Span, ...], memory: _Memory) -> Any:
        from doublewell.weak.workspace import Reading, Taps

        low, (start, stop) = part.frames[0], _within(part.frames, step, 0)
        if start >= stop or any(first >= last for first, last in box):
            start = stop = low
        whole = slice(start - low, start - low + max(1, stop - start + -(stop - start) % 4))
        taps = Taps(*(rows[whole] for rows in part.taps), *self._space_taps[k])
        tile = (start, stop, *(edge for span in box for edge in span))
        triangle = np.zeros((self.family.size + 2,) * 2)
        return Reading(tile, self._halves[k], taps, _of_tile(part, tile), memory.rings[k], triangle)

    @cached_property
    def _table(self) -> tuple[Array, Array, Array]:
        return self.family.kernel_table()

    @cached_property
    def _space_taps(self) -> list[list[Array]]:
        return [[taps for axis in axes for taps in (axis.value, axis.second)] for axes in self.space]

    @cached_property
    def _halves(self) -> list[tuple[int, ...]]:
        return [
            (*own, *(len(taps) // 2 for taps in space))
            for own, space in zip(self.time_halves, self._space_taps, strict=True)
        ]

    def _memory(self) -> _Memory:
        """Return the memory of this thread."""
        if not hasattr(self._own, "memory"):
            self._own.memory = self._new_memory()
        memory: _Memory = self._own.memory
        return memory

    def _new_memory(self) -> _Memory:
        from doublewell.weak.workspace import Ring, Scratch

        columns, (planes, cells) = self.family.size + 2, self._sizes
        rings = [Ring.of(columns, self.frames, planes, cells, halves[5]) for halves in self._halves]
        t, z, y, x = (max(halves[k] for halves in self._halves) for k in (1, 3, 5, 7))
        scratch = Scratch.of(columns, self.frames + 2 * t, planes + 2 * z, cells + 2 * x, y)
        return _Memory(rings, Ring.of(columns, 0, 0, 0, 0), scratch)

    @cached_property
    def _sizes(self) -> Span:
        """The most centres along z and x that a kernel call has."""
        widest = [max(0, *(high - low for own in self.centres for low, high in (own[k],))) for k in (0, 2)]
        return min(ACROSS, widest[0]), min(self.cells, widest[1])


def even_steps(start: int, stop: int, size: int) -> list[Span]:
    """Cut start..stop into parts of nearly equal size, none larger than `size`."""
    parts = -(-(stop - start) // size)
    edges = [start + (stop - start) * k // parts for k in range(parts + 1)] if parts else [start]
    return list(pairwise(edges))


def _within(own: Span, cut: Span, origin: int) -> Span:
    """Return the part of a range that lies in a cut, counted from an origin; perhaps empty."""
    low, high = max(own[0], cut[0]), min(own[1], cut[1])
    return low - origin, max(low, high) - origin


def _of_tile(part: Part, tile: tuple[int, ...]) -> Flags:
    """Return the complete centres of a tile as the kernel walks them, [y, t, z, x]."""
    if part.complete is None:
        return _ALL
    t0, t1, z0, z1, y0, y1, x0, x1 = tile
    first = part.frames[0]
    own = part.complete[t0 - first : t1 - first, z0:z1, y0:y1, x0:x1]
    return np.ascontiguousarray(own.transpose(2, 0, 1, 3))
