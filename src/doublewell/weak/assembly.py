"""Weak moments of a record, compacted while they are made.

    sum_j g_j column_j + (1/q) rate = target,      column = factor D^time Lap^space S[source]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S (paper, Eq. 11, after
summation by parts). The columns are those of a dynamics: for Allen-Cahn S[B_j(u)], D S[u] and Lap S[u]. Every mesh
point whose whole derivative support lies inside the record is a centre, unless its weighted temporal mean is in a pure
phase, or a mask marks that a value of its support is missing.

Ranges are (first, past the last); arrays of them have the axes t, z, y, x or z, y, x first. A missing space axis has
one cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, zip_longest
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.compute.partition import Region
from doublewell.dynamics import ALLEN_CAHN, WeakForm
from doublewell.errors import InputError, whole
from doublewell.evidence import Block, Evidence, Key, compact, merge
from doublewell.hints import Array, Bools, Progress
from doublewell.law import Family
from doublewell.record import Cells, Record
from doublewell.runtime import CPU, Processor, map_threads
from doublewell.weak.weights import (
    AxisWeights,
    Derivative,
    Fold,
    Support,
    axis_weights,
    bends,
    check_centred,
    check_supports,
    complete_centres,
    steps,
    terms,
    time_weights,
    uneven_weights,
)

if TYPE_CHECKING:
    from doublewell.weak.gpu import DevicePass
    from doublewell.weak.kernel import Program
    from doublewell.weak.stream import Rolling

Span = tuple[int, int]

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
STRADDLE = "straddle"  # the name of rows whose support lies in no fold
ACROSS = 8  # centres along z per kernel call
_STEP_BYTES = {"cpu": 8 * 2**20, "gpu": 2**30}  # of centre frames, about, in one step through a record
_DIRECT = 4  # times as many frames in a step where nothing is copied, so that threads find enough to do
_QUEUE_BYTES = 24 * 2**20  # of rows that wait in a ring
_STORED = 4  # times less for a stored record, of which a part is held too
_SPARE = 3  # rows of taps past the last frame: the kernel smooths four frames together
_FRAMES = 12  # most centre frames per kernel call; features of the halo frames are evaluated again in the next
_FEATURE = 4  # multiply-adds that a feature costs, about
_BAND = 24  # rows of a ring besides those that the taps of a band along y reach
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
    frames: Rolling | None = None,
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
    threads, kernels = whole(threads, "threads", least=1), list["Pass | DevicePass"]()
    region = region or Region.whole(record)
    checked = check_supports(supports, record.frames, record.mesh, record.dx, bends(form))
    readers = [Reader(record, family, support, derivative, region, form) for support in checked]
    for k in range(0, len(readers), 2):
        if processor.device == "cpu":
            kernels.append(Pass(readers[k : k + 2], threads))
            continue
        from doublewell.weak.gpu import DevicePass

        kernels.append(DevicePass(readers[k : k + 2], processor.precision))
    names = [*[fold.name for fold in folds], STRADDLE] if folds else ["all"]
    none = np.zeros((readers[0].columns,) * 2)
    blocks = [Block(Key(label, reader.support.key, name), none, 0) for reader in readers for name in names]
    evidence = Evidence(family, tuple(blocks), columns=tuple([column.name for column in form]))
    for window in _windows(record, readers, region, frames, processor):
        blocks = []
        for kernel in kernels:
            every = [reader.segments(folds, record.frames) for reader in kernel.readers]
            for segments in zip_longest(*every, fillvalue=("", 0, 0)):
                pairs = list(zip(kernel.readers, segments, strict=True))
                parts = [reader.part(window, low, high) for reader, (_, low, high) in pairs]
                keys = [Key(label, reader.support.key, fold) for reader, (fold, _, _) in pairs]
                full = [k for k, part in enumerate(parts) if part.frames != (0, 0)]
                read = kernel.read(window, parts) if full else []
                blocks += [Block(keys[k], *read[k]) for k in full]
        evidence = merge([evidence, replace(evidence, blocks=tuple(blocks))])
        if progress is not None:
            progress(window.stop, record.frames)
    return evidence


def window_of(
    record: Record, family: Family, supports: Sequence[Support], region: Region, processor: Processor = CPU,
    form: WeakForm = ALLEN_CAHN.weak_form,
) -> tuple[int, Region]:  # fmt: skip
    """Return how many frames of a region are held at once, at most, and all frames and cells that are read for it."""
    readers = [Reader(record, family, support, "discrete", region, form) for support in supports]
    size, halo, cells = _window_size(readers, region, processor)
    first, last = max(0, region.frames[0] - halo), min(record.frames, region.frames[1] + halo)
    return min(size + 2 * halo, last - first), Region((first, last), cells)


class Window(NamedTuple):
    """The centre frames start..stop-1 and fields[t, z, y, x] of all frames they need, from frame `first` on.

    ``origin`` are the first cells. ``means[t, j]`` of the features over the domain are taken off, where there are any.
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


class Reader:
    """One support on one record: its taps by axis and kind, its centres in a region, and the steps of the kernel.

    ``half`` are the margins of a centre along t, z, y, x, ``reach`` the longest half-lengths of the taps. ``terms`` and
    ``programs`` are by source, and ``used`` counts the results of a program along t, z and x.
    """

    def __init__(
        self, record: Record, family: Family, support: Support, derivative: Derivative, region: Region, form: WeakForm
    ) -> None:
        self.family, self.support, self.form, self.derivative = family, support, form, derivative
        self.centred = check_centred(form, record, region.cells)
        self.times = None if record.uniform else record.times
        self.direct = isinstance(record.values, np.ndarray) and record.values.dtype == np.float64
        axes, power = len(record.mesh), bends(form)
        time = time_weights(support.frames, record.dt if record.uniform else 1.0, derivative)  # or its lengths
        space = [axis_weights(support.length / h, h, derivative, bends=power) for h in record.dx]
        space = [_NO_AXIS] * (3 - axes) + space
        self.taps = [(time.value, time.first), *[(w.value, w.second, w.fourth) for w in space]]
        self.half = np.array([w.half for w in (time, *space)])
        self.mesh = np.array((1,) * (3 - axes) + record.mesh)
        owned = np.array(((0, 1),) * (3 - axes) + region.cells)
        low = np.maximum(owned[:, 0], self.half[1:])
        self.centres = np.stack([low, np.maximum(low, np.minimum(owned[:, 1], self.mesh - self.half[1:]))], axis=1)
        self.points = int(np.prod(owned[:, 1] - owned[:, 0]))
        self.terms: dict[str, list[dict[tuple[int, ...], float]]] = {"features": [], "field": []}
        first: dict[str, list[int]] = {"features": [], "field": []}  # columns of the moments
        self.columns, self.boxes = 0, set[tuple[int, ...]]()
        for column in form:
            self.terms[column.source].append(terms(column, axes))
            first[column.source].append(self.columns)
            self.columns += family.size if column.source == "features" else 1
            for kinds in self.terms[column.source][-1]:
                self.boxes.add(tuple([len(self.taps[axis][kind]) // 2 for axis, kind in enumerate(kinds)]))
        self.reach: tuple[int, ...] = tuple(np.max(list(self.boxes), axis=0).tolist())
        taps, halves = list[float](), list[int]()
        self.programs = {name: self._program(name, first[name], taps, halves) for name in self.terms}
        self.flat, self.halves = np.array(taps), np.array(halves, np.int64)  # taps along space, half-lengths along y
        self.used = np.array([(p.times.size, len(set(p.z[:, 0])), p.entries) for p in self.programs.values()])
        self.frames, self.cells = self._tile_size()

    def _program(self, source: str, columns: list[int], taps: list[float], halves: list[int]) -> Program:
        """Return the steps that make the columns of a source; its taps, and halves of those along y, join the lists."""
        from doublewell.weak.kernel import Program

        order = [axis for axis in _WALK if axis != 1 or len(self.taps[1][0]) > 1]
        levels = dict(zip(order, steps(self.terms[source], order, mean=source == "field"), strict=True))
        tables = []
        for axis in (1, 3, 2):
            rows: list[tuple[int, ...]] = []
            for step in levels.get(axis, []):
                weights = step.factor * self.taps[axis][step.kind]
                half, fresh = len(weights) // 2, not rows or rows[-1][0] != step.result
                if axis == 2:
                    halves += [] if half in halves else [half]
                    half = halves.index(half)
                rows.append((step.result, step.source, len(taps), len(weights), half, fresh))
                taps.extend(weights)
            tables.append(np.array(rows, np.int64).reshape(-1, 6))
        times = np.array([step.kind for step in levels[0]], np.int64)
        z, x, y = tables
        return Program(times, z, x, y, np.array(columns, np.int64), len(set(x[:, 0])))

    def _tile_size(self) -> Span:
        """Return how many centre frames and cells along x a kernel call takes: few where supports are wide.

        Of those whose rings fit the budget, what costs least: halos in x are smoothed along t again, halos in t are
        evaluated again. Costs are in multiply-adds of a centre.
        """
        planes, _, cells = self.centres[:, 1] - self.centres[:, 0]
        if planes == 0 or cells == 0:
            return _FRAMES, _CELLS
        budget = _QUEUE_BYTES if self.direct else _QUEUE_BYTES // _STORED
        p, taps = self.family.size, len(self.taps[0][0])
        smoothings, _, entries = np.array([p, 1]) @ self.used
        frames = np.arange(min(4, _FRAMES), _FRAMES + 1, 4)
        row = 8 * (entries + 1) * min(ACROSS, planes) * (4 * self.half[2] + _BAND) * frames
        widths = np.clip(budget // row, min(_CELLS, _NARROW), _CELLS)
        widest = -(-cells // -(-cells // widths))  # of even steps
        costs = (1 + 2 * self.half[3] / widest) * (smoothings * taps + _FEATURE * p * (frames + taps) / frames)
        best = np.argmin(np.where(row * widest <= budget, costs, np.inf))
        return int(frames[best]), int(widths[best])

    def segments(self, folds: Sequence[Fold], frames: int) -> list[tuple[str, int, int]]:
        """Return (fold, first centre frame, past the last), a partition of all centre frames."""
        half = int(self.half[0])
        if not folds:
            return [("all", half, frames - half)]
        inside = [(fold.start + half, fold.stop - half, fold.name) for fold in folds]
        inside = sorted([item for item in inside if item[0] < item[1]])
        edges = [half, *[edge for item in inside for edge in item[:2]], frames - half]
        between = [(STRADDLE, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        return [(name, low, high) for low, high, name in inside] + between

    def part(self, window: Window, start: int, stop: int) -> Part:
        """Return what is read of a window for the centre frames start..stop-1, as far as they are its own."""
        start, stop = max(start, window.start), min(stop, window.stop)
        value, first = self.taps[0][0][None], self.taps[0][1][None]
        if start >= stop:
            return Part((0, 0), (value, first), None)
        half, rows, complete = int(self.half[0]), stop - start + _SPARE, None
        low, high = start - window.first, stop - window.first
        if window.observed is not None:
            complete = complete_centres(window.observed[low - half : high + half], self.boxes)[half:-half]
        if self.times is None:
            value, first = (np.repeat(value, rows, axis=0), np.repeat(first, rows, axis=0))
        else:
            windows = sliding_window_view(self.times[start - half : stop + half], 2 * half + 1)
            value, first = uneven_weights(self.support.frames, windows, self.derivative)
            value, first = np.pad(value, ((0, _SPARE), (0, 0))), np.pad(first, ((0, _SPARE), (0, 0)))
        return Part((low, high), (value, first), complete)


class Pass:
    """One or two supports read together, tile by tile, so that rows and features are prepared once for both.

    Each thread has its own memory that the kernel works in. Kernel calls and the order in which their triangles are put
    together do not depend on the number of threads, so neither does the result.
    """

    def __init__(self, readers: Sequence[Reader], threads: int) -> None:
        self.readers, self.threads, self._own = readers, threads, local()
        self.table = readers[0].family.kernel_table()
        self.frames, self.cells = np.min([(reader.frames, reader.cells) for reader in readers], axis=0).tolist()
        self.centres = np.array([reader.centres for reader in readers])
        self.reach = np.array([reader.reach for reader in readers])
        longest = [len(r.taps[0][r.programs["features"].times.max()]) // 2 for r in readers]
        self.spare = int(np.min(self.reach[:, 0] - longest))  # frames at both ends that only the field reaches
        full = self.centres[np.all(self.centres[..., 0] < self.centres[..., 1], axis=1)]
        self.cuts: list[tuple[Span, ...]] = []  # of the centres along z and x, the same for all supports
        if len(full):
            z, y, x = zip(full[..., 0].min(axis=0).tolist(), full[..., 1].max(axis=0).tolist(), strict=True)
            self.cuts = [((a, a + ACROSS), y, b) for a in range(*z, ACROSS) for b in even_steps(*x, self.cells)]

    def read(self, window: Window, parts: Sequence[Part]) -> list[tuple[Array, int]]:
        """Fold all centres of the parts' frames, counted in the window; return R and the rows of each."""
        spans, columns = np.array([part.frames for part in parts]), self.readers[0].columns
        first, last = spans[spans[:, 0] < spans[:, 1]].T
        times = [(t, t + self.frames) for t in range(first.min(), last.max(), self.frames)]
        cuts = np.array([(time, *cut) for time in times for cut in self.cuts], np.int64).reshape(-1, 1, 4, 2)
        origin = np.array(window.origin)[:, None]
        cuts[..., 1:, :] -= origin
        own = np.concatenate([spans[:, None], self.centres - origin], axis=1)  # [support, axis, first or last]
        low = np.maximum(own[..., 0], cuts[..., 0])  # [call, support, axis]
        high = np.maximum(low, np.minimum(own[..., 1], cuts[..., 1]))
        empty = np.any(low == high, axis=2)
        low[..., 0], high[..., 0] = np.where(empty, spans[:, 0], (low[..., 0], high[..., 0]))  # no frames then
        far, some = np.where(empty, 2**40, 0)[..., None], ~empty.all(axis=1)
        boxes = np.min(low - self.reach + far, axis=1), np.max(high + self.reach - far, axis=1)  # of all values needed
        tiles = np.stack([low, high], axis=3)[some].reshape(-1, len(parts), 8)
        triangles = np.zeros((len(tiles), len(parts), columns, columns))
        calls = zip(tiles.tolist(), np.stack(boxes, axis=2)[some].reshape(-1, 8).tolist(), triangles, strict=True)
        run = map if self.threads == 1 else partial(map_threads, self.threads)
        rows = np.array(list(run(partial(self._call, window, parts), calls))).reshape(-1, 2).sum(axis=0)
        return [(compact(triangles[:, k].reshape(-1, columns)), int(rows[k])) for k in range(len(parts))]

    def _call(self, window: Window, parts: Sequence[Part], call: tuple[list[list[int]], list[int], Array]) -> Span:
        """Read one tile of each support into its triangle; return the numbers of rows."""
        from doublewell.weak.kernel import Reading, assemble, make_memory

        tiles, box, triangles = call
        if not hasattr(self._own, "memory"):
            planes, _, cells = np.max(self.centres[..., 1] - self.centres[..., 0], axis=0).tolist()
            extent, one = (self.frames, min(ACROSS, planes), min(self.cells, cells)), self.readers[0]
            self._own.memory = make_memory(one.columns, one.family.size, one.used, extent, self.reach)
        rings, scratch = self._own.memory
        pair: list[Any] = []
        for k, (reader, part) in enumerate(zip(self.readers, parts, strict=True)):
            t0, t1, z0, z1, y0, y1, x0, x1 = tiles[k]
            start, stop, complete = t0 - part.frames[0], t1 - part.frames[0], _ALL
            if part.complete is not None:  # as the kernel walks them, [y, t, z, x]
                chosen = part.complete[start:stop, z0:z1, y0:y1, x0:x1]
                complete = np.ascontiguousarray(chosen.transpose(2, 0, 1, 3))
            own = slice(start, start + max(1, -(-(stop - start) // 4) * 4))
            force, field = reader.programs.values()
            value, first = part.taps[0][own], part.taps[1][own]
            tile, reach, halves = tuple(tiles[k]), reader.reach[2], reader.halves
            taps, ring, triangle = reader.flat, rings[k], triangles[k]
            pair.append(Reading(tile, reach, halves, force, field, value, first, taps, complete, ring, triangle))
        nothing = pair[0]._replace(tile=(0,) * 8, ring=rings[0]._replace(state=np.zeros(3, np.int64)))
        both, where = (*pair, nothing)[:2], (tuple(box), self.spare)
        rows: Span = assemble(window.fields, *both, *where, window.means, *self.table, PHASE_CUT, scratch)
        return rows


def even_steps(start: int, stop: int, size: int) -> list[Span]:
    """Cut start..stop into parts of nearly equal size, none larger than `size`."""
    parts = -(-(stop - start) // size)
    edges = start + (stop - start) * np.arange(parts + 1) // max(parts, 1)
    return list(pairwise(edges.tolist()))


def _window_size(readers: list[Reader], region: Region, processor: Processor) -> tuple[int, int, Cells]:
    """Return the centre frames of one step, their halo, and the cells that the centres of a region need.

    A step is about what a processor takes at once, in whole kernel calls.
    """
    frames, missing = [reader.frames for reader in readers], 3 - len(region.cells)
    size = _STEP_BYTES[processor.device] // (8 * readers[0].points)
    half = np.max([reader.half for reader in readers], axis=0)
    wide = np.array(region.cells) + half[1 + missing :, None] * [-1, 1]
    cells = [(low, high) for low, high in np.clip(wide, 0, readers[0].mesh[missing:, None]).tolist()]
    return max(size // max(frames) * max(frames), min(frames)), int(half[0]), tuple(cells)


def _windows(
    record: Record, readers: list[Reader], region: Region, frames: Rolling | None, processor: Processor
) -> Iterator[Window]:
    """Walk through a region, holding no more than the centre frames of one step and their halo."""
    size, halo, cells = _window_size(readers, region, processor)
    (start, end), family = region.frames, readers[0].family
    if frames is None and readers[0].direct:
        size *= _DIRECT
    elif frames is None:
        from doublewell.weak.stream import Rolling

        frames = Rolling(record, size + 2 * halo, cells, first=max(0, start - halo))
    last_stop = end - (halo if end == record.frames else 0)
    for begin, stop in pairwise([start, *range(max(start, halo) + size, last_stop, size), end]):
        first, last = max(0, begin - halo), min(record.frames, stop + halo)
        if frames is None:
            fields = record.slab(first, last, cells)
            observed = None if record.mask is None else record.observed(first, last, cells)
        else:
            fields, observed = frames.read(first, last)
        means = np.empty((0, 0))
        if readers[0].centred:
            means = np.stack([family.features(u).reshape(family.size, -1).mean(axis=1) for u in fields])
        axes = (1,) * (3 - len(cells))
        shape, origin = (last - first, *axes, *fields.shape[1:]), (*([0] * len(axes)), *[low for low, _ in cells])
        flags = None if observed is None else observed.reshape(shape)
        yield Window(begin, stop, first, fields.reshape(shape), flags, origin, means)
