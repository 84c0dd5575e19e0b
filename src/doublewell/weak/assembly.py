"""Weak moments of a record, compacted while they are made.

    sum_j g_j column_j + (1/q) rate = target,      column = factor D^time Lap^space S[source]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S (paper, Eq. 11, after
summation by parts). The columns are those of a dynamics: for Allen-Cahn S[B_j(u)], D S[u] and Lap S[u]. Every mesh
point whose whole derivative support lies inside the record is a centre, unless its weighted temporal mean is in a pure
phase, or a mask says that a value of its support is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.compute import Region, even_steps
from doublewell.dynamics import ALLEN_CAHN, WeakForm
from doublewell.errors import InputError, whole
from doublewell.evidence import Block, Evidence, Key, compact, merge
from doublewell.hints import Array, Bools, Progress
from doublewell.law import Family
from doublewell.record import Cells, Record
from doublewell.runtime import map_threads
from doublewell.weak.form import bends, check_centred, complete_centres, starts, steps, terms, width
from doublewell.weak.frame_buffer import STRADDLE, Direct, Fold, FrameBuffer, Rolling, in_memory
from doublewell.weak.gpu import CPU, DevicePass, Processor
from doublewell.weak.weights import AxisWeights, Derivative, Support, axis_weights, check_supports, uneven_weights

if TYPE_CHECKING:
    from doublewell.weak.kernel import Program

Span = tuple[int, int]
Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # like `map`, perhaps on threads

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
ACROSS = 8  # centres along z per kernel call
_STEP_BYTES = {"cpu": 8 * 2**20, "gpu": 2**30}  # of centre frames, about, in one step through a record
_DIRECT = 4  # times as many frames in a step where nothing is copied, so that threads find enough to do
_QUEUE_BYTES = 24 * 2**20  # of rows that wait in a ring
_STORED = 4  # times less for a stored record, of which a part is held too
_SPARE = 3  # rows of taps past the last frame: the kernel smooths four frames together
_FRAMES = 12  # most centre frames per kernel call; features of the halo frames are evaluated again in the next
_FEATURE = 4  # multiply-adds that a feature costs, about
_BAND = 24  # rows of a ring beside those that the taps of a band along y reach
_CELLS = 256  # most centres along x per kernel call
_NARROW = 64  # least centres along x per kernel call, where there are that many
_NO_AXIS = AxisWeights(np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1), 0)
_ALL = np.empty((0, 0, 0, 0), dtype=bool)  # leaves out no centre
_WALK = (0, 1, 3, 2)  # the order in which the kernel smooths: t, z, x, y


def weak_evidence(
    record: Record,
    family: Family,
    supports: Sequence[Support | tuple[int, float]],
    *,
    form: WeakForm = ALLEN_CAHN.weak_form,
    derivative: Derivative = "discrete",
    folds: Sequence[Fold] = (),
    label: str = "record",
    region: Region | None = None,
    frames: FrameBuffer | None = None,
    threads: int = 1,
    processor: Processor = CPU,
    progress: Progress | None = None,
) -> Evidence:
    """Assemble the weak moments of a record for a family and a set of supports.

    Parameters
    ----------
    supports
        Pairs (frames, length): half-widths of the test function in frame intervals and in length.
    form
        The columns of the moments, `weak_form` of a dynamics.
    derivative
        "discrete" differences of the sampled weights (exact summation by parts), or "analytic" samples.
    folds
        Ranges of frames kept in blocks of their own; rows that lie in none form the block "straddle".
    label
        The name of the record in the keys of the blocks.
    region
        The part whose centres are read, all without it. Only what their supports need is read from the record.
    frames
        Where the frames come from, in place of the record: those of `window_of` the region, for many regions a buffer
        that reads ahead.
    threads
        How many cores work on it; the result is the same, to the last bit.
    processor
        What the sums are made on, and in which precision. Threads are for a CPU.
    progress
        Called with (frames done, frames) after each step through the record.
    """
    if derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {derivative!r}: expected 'discrete' or 'analytic'")
    part = Region.whole(record) if region is None else region
    readers = _readers(record, family, supports, part, form, derivative)
    names = [*(fold.name for fold in folds), STRADDLE] if folds else ["all"]
    columns, count = tuple(column.name for column in form), width(form, family.size)

    def evidence(reader: Reader, fold: str, triangle: Array, rows: int) -> Evidence:
        key = Key(label, support_key(reader.support), fold)
        return Evidence(family, (Block(key, triangle, rows),), columns=columns)

    parts = [evidence(reader, name, np.zeros((count, count)), 0) for reader in readers for name in names]
    pairs = [readers[k : k + 2] for k in range(0, len(readers), 2)]
    passes = [
        (pair, Pass(pair) if processor.device == "cpu" else DevicePass(pair, processor.precision)) for pair in pairs
    ]
    run: Run = partial(map_threads, whole(threads, "threads", least=1))
    for window in _windows(record, readers, part, frames, processor):
        new = [evidence(*item) for item in _read_window(window, passes, folds, record.frames, run)]
        parts = [merge([*parts, *new])]
        if progress is not None:
            progress(window.stop, record.frames)
    return merge(parts)


def window_of(
    record: Record, family: Family, supports: Sequence[Support], region: Region, processor: Processor = CPU,
    form: WeakForm = ALLEN_CAHN.weak_form,
) -> tuple[int, Region]:  # fmt: skip
    """Return how many frames of a region are held at once, at most, and all frames and cells that are read for it."""
    readers = _readers(record, family, supports, region, form, "discrete")
    size, halo = _window_size(readers, processor), max(reader.time.half for reader in readers)
    first, last = region.frames
    frames = max(0, first - halo), min(record.frames, last + halo)
    return min(size + 2 * halo, frames[1] - frames[0]), Region(frames, _with_halo(readers, region))


def support_key(support: Support) -> str:
    """Return the name of a support in the keys of blocks: every digit, so that different supports stay apart.

    >>> support_key(Support(5, 0.0600001))
    '(5 frames, 0.0600001)'
    """
    return f"({support.frames} frames, {float(support.length)!r})"


class Window(NamedTuple):
    """The centre frames start..stop-1 and fields[t, z, y, x] of all frames they need, from frame `first` on.

    ``observed`` marks the values that were observed, None for all of them; ``origin`` is the cell that fields begin at.
    ``means[t, j]`` of the features over the domain are taken off, where there are any.
    """

    start: int
    stop: int
    first: int
    fields: Array
    observed: Bools | None
    origin: tuple[int, ...]
    means: Array


class Part(NamedTuple):
    """What a support reads of a window: centre frames, one row of taps along time for each, and complete centres."""

    frames: Span
    taps: tuple[Array, Array]
    complete: Bools | None


class Kernel(Protocol):
    """What makes the moments of one or two supports of a window into triangles."""

    def read(self, window: Window, parts: Sequence[Part], cut: float, run: Run) -> list[tuple[Array, int]]:
        """Return R and the number of rows of each support, of all centres of the parts' frames."""


class Reader:
    """One support on one record: its weights, its centres in a region, and what it reads of a window."""

    def __init__(
        self, record: Record, family: Family, support: Support, derivative: Derivative, region: Region, form: WeakForm
    ) -> None:
        self.family, self.support, self.form = family, support, form
        self.centred = check_centred(form, record, region.cells)
        self.times = None if record.uniform else record.times
        self.derivative: Derivative = derivative
        self.time = axis_weights(support.frames, record.dt if record.uniform else 1.0, derivative)  # or its lengths
        axes, power = len(record.mesh), bends(form)
        lengths = [axis_weights(support.length / h, h, derivative, bends=power) for h in record.dx]
        self.space = [_NO_AXIS] * (3 - axes) + lengths
        self.mesh = (1,) * (3 - axes) + record.mesh
        self.owned = ((0, 1),) * (3 - axes) + region.cells
        self.points = int(np.prod([high - low for low, high in region.cells]))
        self.terms = {name: [terms(c, axes) for c in form if c.source == name] for name in ("features", "field")}
        self.boxes = {self._box(term.kinds) for columns in self.terms.values() for column in columns for term in column}
        self.reach = tuple(max(box[k] for box in self.boxes) for k in range(4))  # of the taps along t, z, y, x
        self.frames, self.cells = self._tile_size(_QUEUE_BYTES if in_memory(record) else _QUEUE_BYTES // _STORED)

    def taps(self, axis: int, kind: int) -> Array:
        """Return the taps of a kind along t, z, y or x."""
        return self.space[axis - 1].of_space(kind) if axis else self.time.of_time(kind)

    def _box(self, kinds: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(len(self.taps(axis, kind)) // 2 for axis, kind in enumerate(kinds))

    def program(self, source: str, taps: list[float], halves: list[int]) -> tuple[Program, tuple[int, int, int]]:
        """Return the steps that make the columns of a source, and how many results there are along t, z and x.

        Taps that they use are added to the list, and half-lengths along y to theirs.
        """
        from doublewell.weak.kernel import Program

        order = [axis for axis in _WALK if axis != 1 or len(self.space[0].value) > 1]
        levels = steps(self.terms[source], order, mean=source == "field")
        rows: dict[int, list[tuple[int, ...]]] = {axis: [] for axis in _WALK}
        for axis, level in zip(order[1:], levels[1:], strict=True):
            stored: set[int] = set()
            for step in level:
                weights = step.factor * self.taps(axis, step.kind)
                half = len(weights) // 2
                if axis == 2:
                    halves += [] if half in halves else [half]
                    half = halves.index(half)
                rows[axis].append((step.result, step.source, len(taps), len(weights), half, step.result not in stored))
                stored.add(step.result)
                taps.extend(weights)
        times = np.array([step.kind for step in levels[0]], np.int64)
        z, x, y = (np.array(rows[axis], np.int64).reshape(-1, 6) for axis in (1, 3, 2))
        columns = np.array(starts(self.form, self.family.size, source), np.int64)
        return Program(times, z, x, y, columns), (len(times), len(set(z[:, 0])), len(set(x[:, 0])))

    def _tile_size(self, budget: int) -> tuple[int, int]:
        """Return how many centre frames and cells along x a kernel call takes: few where supports are wide.

        Of those whose rings fit the budget, what costs least: halos in x are smoothed along t again, halos in t are
        evaluated again. Costs are in multiply-adds of a centre.
        """
        (z0, z1), _, (x0, x1) = self.centres()
        if x0 == x1 or z0 == z1:
            return _FRAMES, _CELLS
        p, used = self.family.size, [self.program(source, [], [])[1] for source in ("features", "field")]
        entries, smoothings = (p * used[0][k] + used[1][k] for k in (2, 0))
        row = 8 * (entries + 1) * min(ACROSS, z1 - z0) * (4 * self.space[1].half + _BAND)
        taps, halo = self.time.value.size, 2 * self.space[2].half
        costs = []
        for frames in range(min(4, _FRAMES), _FRAMES + 1, 4):
            cells = max(min(_CELLS, _NARROW), min(_CELLS, budget // (row * frames)))
            widest = max(stop - start for start, stop in even_steps(x0, x1, cells))
            smoothed, evaluated = smoothings * taps, _FEATURE * p * (frames + taps) / frames
            fits = row * frames * widest <= budget
            costs.append((not fits, (1 + halo / widest) * (smoothed + evaluated) if fits else frames, frames, cells))
        _, _, frames, cells = min(costs)
        return frames, cells

    def centres(self) -> tuple[Span, ...]:
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
        half, offset = self.time.half, window.first
        complete = None
        if window.observed is not None:
            observed = window.observed[start - half - offset : stop + half - offset]
            complete = complete_centres(observed, self.boxes)[half:-half]
        return Part((start - offset, stop - offset), self._time_taps(start, stop), complete)

    def _time_taps(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return the taps along time of value and derivative, one row for each of the centre frames and spare ones."""
        if self.times is None:
            rows = (stop - start + _SPARE, 1)
            return np.tile(self.time.value, rows), np.tile(self.time.first, rows)
        half = self.time.half
        windows = sliding_window_view(self.times[start - half : stop + half], 2 * half + 1)
        value, first = uneven_weights(self.support.frames, windows, self.derivative)
        return np.pad(value, ((0, _SPARE), (0, 0))), np.pad(first, ((0, _SPARE), (0, 0)))


class _Memory(NamedTuple):
    """What kernel calls of one thread work in: a ring for each support, one for none, and scratch."""

    rings: list[Any]
    nothing: Any
    scratch: Any


class Pass:
    """One or two supports read together, tile by tile, so that rows and features are prepared once for both.

    Each thread has its own memory that the kernel works in. Kernel calls and the order in which their triangles are put
    together do not depend on the number of threads, so neither does the result.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        self.readers, self.family = readers, readers[0].family
        self.columns = width(readers[0].form, self.family.size)
        self.frames = min(reader.frames for reader in readers)
        self.cells = min(reader.cells for reader in readers)
        self.centres = [reader.centres() for reader in readers]
        self._table, self._own, self._programs = self.family.kernel_table(), local(), []
        for reader in readers:
            taps: list[float] = []
            halves: list[int] = []
            (force, used), (field, own) = (reader.program(name, taps, halves) for name in ("features", "field"))
            self._programs.append((np.array(halves, np.int64), force, field, np.array(taps)))
            self._used = used, own  # the same for all supports

    def read(self, window: Window, parts: Sequence[Part], cut: float, run: Run) -> list[tuple[Array, int]]:
        """Fold all centres of the parts' frames, counted in the window; return R and the rows of each."""
        calls = [(step, boxes) for step in self._steps(parts) for boxes in self._boxes(window.origin)]
        triangles = list(run(lambda call: self._call(window, parts, cut, *call), calls))
        none = np.zeros((0, self.columns))
        return [
            (compact(np.vstack([none, *(call[k][0] for call in triangles)])), sum(call[k][1] for call in triangles))
            for k in range(len(parts))
        ]

    def _call(
        self, window: Window, parts: Sequence[Part], cut: float, step: Span, boxes: Sequence[tuple[Span, ...]]
    ) -> list[tuple[Array, int]]:
        """Read one tile of all supports."""
        from doublewell.weak.kernel import assemble

        memory = self._memory()
        pair = [self._reading(k, part, step, boxes[k], memory) for k, part in enumerate(parts)]
        nothing = pair[0]._replace(tile=(0,) * 8, ring=memory.nothing)
        rows = assemble(window.fields, *(*pair, nothing)[:2], window.means, *self._table, cut, memory.scratch)
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
        all_of = [(min(own[k][0] for own in inside), max(own[k][1] for own in inside)) for k in range(3)]
        for z in range(*all_of[0], ACROSS):
            for x in even_steps(*all_of[2], self.cells):
                cuts = ((z, z + ACROSS), all_of[1], x)
                yield [tuple(_within(own[k], cuts[k], origin[k]) for k in range(3)) for own in self.centres]

    def _reading(self, k: int, part: Part, step: Span, box: tuple[Span, ...], memory: _Memory) -> Any:
        from doublewell.weak.kernel import Reading

        low, (start, stop) = part.frames[0], _within(part.frames, step, 0)
        if start >= stop or any(first >= last for first, last in box):
            start = stop = low
        own = slice(start - low, start - low + max(1, stop - start + -(stop - start) % 4))
        tile = (start, stop, *(edge for span in box for edge in span))
        halves, force, field, taps = self._programs[k]
        complete = _ALL
        if part.complete is not None:  # as the kernel walks them, [y, t, z, x]
            t0, t1, z0, z1, y0, y1, x0, x1 = tile
            chosen = part.complete[t0 - low : t1 - low, z0:z1, y0:y1, x0:x1]
            complete = np.ascontiguousarray(chosen.transpose(2, 0, 1, 3))
        value, first = (rows[own] for rows in part.taps)
        reach, triangle = self.readers[k].reach, np.zeros((self.columns, self.columns))
        return Reading(tile, reach, halves, force, field, value, first, taps, complete, memory.rings[k], triangle)

    def _memory(self) -> _Memory:
        """Return the memory of this thread."""
        if not hasattr(self._own, "memory"):
            self._own.memory = self._new_memory()
        memory: _Memory = self._own.memory
        return memory

    def _new_memory(self) -> _Memory:
        from doublewell.weak.kernel import Ring, Scratch

        p, (used, own) = self.family.size, self._used
        widest = [max(0, *(high - low for centres in self.centres for low, high in (centres[k],))) for k in (0, 2)]
        planes, cells = min(ACROSS, widest[0]), min(self.cells, widest[1])
        entries = p * used[2] + own[2]
        reaches = [reader.reach for reader in self.readers]
        rings = [Ring.of(entries, self.columns, self.frames, planes, cells, reach[2]) for reach in reaches]
        t, z, y, x = (max(reach[k] for reach in reaches) for k in range(4))
        nodes = max(used[0], own[0]), max(used[1], own[1], 1)
        scratch = Scratch.of(self.columns, p, nodes, self.frames + 2 * t, planes + 2 * z, cells + 2 * x, y)
        return _Memory(rings, Ring.of(entries, self.columns, 0, 0, 0, 0), scratch)


def _within(own: Span, cut: Span, origin: int) -> Span:
    """Return the part of a range that lies in a cut, counted from an origin; perhaps empty."""
    low, high = max(own[0], cut[0]), min(own[1], cut[1])
    return low - origin, max(low, high) - origin


def _readers(
    record: Record, family: Family, supports: Sequence[Support | tuple[int, float]], region: Region, form: WeakForm,
    derivative: Derivative,
) -> list[Reader]:  # fmt: skip
    checked = check_supports(supports, record.frames, record.mesh, record.dx, bends(form))
    return [Reader(record, family, support, derivative, region, form) for support in checked]


def _windows(
    record: Record, readers: list[Reader], region: Region, frames: FrameBuffer | None, processor: Processor
) -> Iterator[Window]:
    """Walk through a region, holding no more than the centre frames of one step and their halo."""
    halo, cells = max(reader.time.half for reader in readers), _with_halo(readers, region)
    size = _window_size(readers, processor)
    if frames is None and in_memory(record):
        size, frames = size * _DIRECT, Direct(record, cells)
    elif frames is None:
        frames = Rolling(record, size + 2 * halo, cells, first=max(0, region.frames[0] - halo))
    axes = (1,) * (3 - len(cells))
    origin = (0,) * len(axes) + tuple(low for low, _ in cells)
    for start, stop in _owned_frames(region.frames, record.frames, size, halo):
        first, last = max(0, start - halo), min(record.frames, stop + halo)
        fields, observed = frames.read(first, last)
        shape = (last - first, *axes, *fields.shape[1:])
        means, family = np.empty((0, 0)), readers[0].family
        if readers[0].centred:
            means = np.stack([family.features(u).reshape(family.size, -1).mean(axis=1) for u in fields])
        flags = None if observed is None else observed.reshape(shape)
        yield Window(start, stop, first, fields.reshape(shape), flags, origin, means)


def _window_size(readers: list[Reader], processor: Processor) -> int:
    """Return the centre frames of one step: about what a processor takes at once, whole kernel calls."""
    frames = max(reader.frames for reader in readers)
    size = _STEP_BYTES[processor.device] // (8 * readers[0].points)
    return max(size // frames * frames, min(reader.frames for reader in readers))


def _with_halo(readers: list[Reader], region: Region) -> Cells:
    """Return the cells that the centres of a region need."""
    halves = [max(reader.space[3 - len(region.cells) + k].half for reader in readers) for k in range(len(region.cells))]
    mesh = readers[0].mesh[3 - len(region.cells) :]
    return tuple(
        (max(0, low - half), min(n, high + half))
        for (low, high), half, n in zip(region.cells, halves, mesh, strict=True)
    )


def _owned_frames(owned: Span, frames: int, size: int, halo: int) -> Iterator[Span]:
    """Cut a range of frames into parts, each with its halo at most size + 2 halo long."""
    start, end = owned
    stop, last = max(start, halo) + size, end - (halo if end == frames else 0)
    while stop < last:
        yield start, stop
        start, stop = stop, stop + size
    yield start, end


def _read_window(
    window: Window, passes: Sequence[tuple[list[Reader], Kernel]], folds: Sequence[Fold], frames: int, run: Run
) -> Iterator[tuple[Reader, str, Array, int]]:
    for pair, both in passes:
        for segments in zip_longest(*(reader.segments(folds, frames) for reader in pair), fillvalue=("", 0, 0)):
            spans = [(max(low, window.start), min(high, window.stop)) for _, low, high in segments]
            given = [k for k, (begin, end) in enumerate(spans) if begin < end]
            parts = [reader.part(window, *span) for reader, span in zip(pair, spans, strict=True)]
            results = both.read(window, parts, PHASE_CUT, run) if given else []
            yield from ((pair[k], segments[k][0], *results[k]) for k in given)
