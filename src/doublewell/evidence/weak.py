"""The weak reader: a record to its space-time moments, compacted while they are made.

    sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S[u] (paper, Eq. 11, after
summation by parts). Every mesh point whose whole derivative support lies inside the record is a centre, unless its
weighted temporal mean is in a pure phase, or a mask says that a value of its support is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from doublewell.checks import whole
from doublewell.errors import InputError
from doublewell.evidence.complete import complete_centres
from doublewell.evidence.evidence import Block, Evidence, Key, merge
from doublewell.evidence.passes import ACROSS, Part, Pass, Run, even_steps
from doublewell.evidence.reel import Direct, Reel, Rolling
from doublewell.evidence.uneven import uneven_weights
from doublewell.evidence.weights import AxisWeights, Derivative, Support, axis_weights, check_supports
from doublewell.hints import Array, Progress
from doublewell.law import LinearFamily
from doublewell.record import Cells, Record

__all__ = ["PHASE_CUT", "Fold", "Region", "split_folds", "support_key", "weak_evidence", "window_of"]

PHASE_CUT = 0.98  # centres whose temporal mean reaches this are bulk and carry no information
_SLAB_BYTES = 8 * 2**20  # one step through a record takes centre frames of about this size
_DIRECT = 4  # times as much where nothing is copied, so that threads find enough to do
_QUEUE_BYTES = 24 * 2**20  # of rows that wait in a ring
_STORED = 4  # times less for a stored record, of which a part is held too
_SPARE = 3  # rows of taps past the last frame: the kernel smooths four frames together
_FRAMES = 12  # most centre frames per kernel call; features of the halo frames are evaluated again in the next
_FEATURE = 4  # multiply-adds that a feature costs, about
_BAND = 24  # rows of a ring beside those that the taps of a band along y reach
_CELLS = 256  # most centres along x per kernel call
_NARROW = 64  # least centres along x per kernel call, where there are that many


@dataclass(frozen=True)
class Fold:
    """A named range of frames. Rows whose whole support lies inside belong to it."""

    name: str
    start: int
    stop: int


STRADDLE = "straddle"


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


def split_folds(frames: int, longest: int, training: float = 0.6) -> tuple[Fold, Fold]:
    """Split a record in time into training and validation frames; rows that straddle belong to neither.

    `longest` is the temporal half-width, in intervals, of the longest support: both parts must hold it.
    """
    cut = round(training * frames)
    needs = 2 * (longest + 2) + 1
    if min(cut, frames - cut) < needs:
        raise InputError(
            f"record is too short for a validated ridge: each part needs {needs} frames, but {frames} frames split "
            f"into {cut} and {frames - cut}; record longer, pass shorter supports, or give ridge a number"
        )
    return Fold("training", 0, cut), Fold("validation", cut, frames)


def weak_evidence(
    record: Record,
    family: LinearFamily,
    supports: Sequence[Support | tuple[int, float]],
    *,
    derivative: Derivative = "discrete",
    folds: Sequence[Fold] = (),
    label: str = "record",
    region: Region | None = None,
    reel: Reel | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Evidence:
    """Read the weak moments of a record for a family and a set of supports.

    Parameters
    ----------
    supports
        Pairs (frames, length): half-widths of the test function in frame intervals and in length.
    derivative
        "discrete" differences of the sampled weights (exact summation by parts), or "analytic" samples.
    folds
        Ranges of frames kept in blocks of their own; rows that lie in none form the block "straddle".
    label
        The name of the record in the keys of the blocks.
    region
        The part whose centres are read, all without it. Only what their supports need is read from the record.
    reel
        Where the frames come from, in place of the record: those of `window_of` the region, for many regions a reader
        that looks ahead.
    threads
        How many cores work on it; the result is the same, to the last bit.
    progress
        Called with (frames done, frames) after each step through the record.
    """
    if derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {derivative!r}: expected 'discrete' or 'analytic'")
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    part = Region.whole(record) if region is None else region
    readers = [_Reader(record, family, support, derivative, part) for support in checked]
    names = [*(fold.name for fold in folds), STRADDLE] if folds else ["all"]
    parts = [
        Evidence(family, (Block(Key(label, support_key(support), name), np.zeros((family.size + 2,) * 2), 0),))
        for support in checked
        for name in names
    ]
    passes = _passes(readers)
    with _running(whole(threads, "threads", least=1)) as run:
        for window in _windows(record, readers, part, reel):
            parts = [merge([*parts, *_read_window(window, passes, folds, label, record.frames, run)])]
            if progress is not None:
                progress(window.stop, record.frames)
    return merge(parts)


@contextmanager
def _running(threads: int) -> Iterator[Run]:
    """Give `map`, or that of some threads."""
    if threads == 1:
        yield map
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map


def window_of(record: Record, family: LinearFamily, supports: Sequence[Support], region: Region) -> tuple[int, Region]:
    """Return how many frames of a region are held at once, at most, and all frames and cells that are read for it."""
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    readers = [_Reader(record, family, support, "discrete", region) for support in checked]
    size, halo = _window_size(readers), max(reader.time.half for reader in readers)
    first, last = region.frames
    frames = max(0, first - halo), min(record.frames, last + halo)
    return min(size + 2 * halo, frames[1] - frames[0]), Region(frames, _with_halo(readers, region))


def support_key(support: Support) -> str:
    """Return the name of a support in the keys of blocks: every digit, so that different supports stay apart.

    >>> support_key(Support(5, 0.0600001))
    '(5 frames, 0.0600001)'
    """
    return f"({support.frames} frames, {float(support.length)!r})"


@dataclass(frozen=True, eq=False)
class _Window:
    """The centre frames start..stop-1 and fields[t, z, y, x] of all frames they need, from frame `first` on.

    ``seen`` says which of the values were observed, None for all of them; ``origin`` is the cell that fields begin at.
    """

    start: int
    stop: int
    first: int
    fields: Array
    seen: NDArray[np.bool_] | None
    origin: tuple[int, ...]


def _windows(record: Record, readers: list[_Reader], region: Region, reel: Reel | None) -> Iterator[_Window]:
    """Walk through a region, holding no more than the centre frames of one step and their halo."""
    halo, size, cells = max(reader.time.half for reader in readers), _window_size(readers), _with_halo(readers, region)
    size *= _DIRECT if reel is None and _in_memory(record) else 1
    reel = _reel(record, size + 2 * halo, cells, max(0, region.frames[0] - halo)) if reel is None else reel
    axes = (1,) * (3 - len(cells))
    origin = (0,) * len(axes) + tuple(low for low, _ in cells)
    for start, stop in _owned_frames(region.frames, record.frames, size, halo):
        first, last = max(0, start - halo), min(record.frames, stop + halo)
        fields, seen = reel.read(first, last)
        shape = (last - first, *axes, *fields.shape[1:])
        yield _Window(start, stop, first, fields.reshape(shape), None if seen is None else seen.reshape(shape), origin)


def _window_size(readers: list[_Reader]) -> int:
    """Return the centre frames of one step: about _SLAB_BYTES, whole kernel calls."""
    frames = max(reader.frames for reader in readers)
    size = _SLAB_BYTES // (8 * readers[0].points)
    return max(size // frames * frames, min(reader.frames for reader in readers))


def _with_halo(readers: list[_Reader], region: Region) -> Cells:
    """Return the cells that the centres of a region need."""
    halves = [max(reader.space[3 - len(region.cells) + k].half for reader in readers) for k in range(len(region.cells))]
    mesh = readers[0].mesh[3 - len(region.cells) :]
    return tuple(
        (max(0, low - half), min(n, high + half))
        for (low, high), half, n in zip(region.cells, halves, mesh, strict=True)
    )


def _owned_frames(owned: tuple[int, int], frames: int, size: int, halo: int) -> Iterator[tuple[int, int]]:
    """Cut a range of frames into parts, each with its halo at most size + 2 halo long."""
    start, end = owned
    stop, last = max(start, halo) + size, end - (halo if end == frames else 0)
    while stop < last:
        yield start, stop
        start, stop = stop, stop + size
    yield start, end


def _reel(record: Record, length: int, cells: Cells, first: int) -> Reel:
    return Direct(record, cells) if _in_memory(record) else Rolling(record, length, cells, first=first)


def _in_memory(record: Record) -> bool:
    return isinstance(record.values, np.ndarray) and record.values.dtype == np.float64


def _passes(readers: list[_Reader]) -> list[tuple[list[_Reader], Pass]]:
    """Put the supports in pairs, each with its pass over the record."""
    pairs = [readers[k : k + 2] for k in range(0, len(readers), 2)]
    return [(pair, _pass(pair)) for pair in pairs]


def _pass(pair: list[_Reader]) -> Pass:
    return Pass(
        pair[0].family, tuple(tuple(reader.space) for reader in pair), tuple(reader.centres() for reader in pair),
        tuple((len(reader.time.value) // 2, len(reader.time.first) // 2) for reader in pair),
        min(reader.frames for reader in pair), min(reader.cells for reader in pair),
    )  # fmt: skip


def _read_window(
    window: _Window, passes: list[tuple[list[_Reader], Pass]], folds: Sequence[Fold], label: str, frames: int, run: Run
) -> Iterator[Evidence]:
    for pair, both in passes:
        for segments in zip_longest(*(reader.segments(folds, frames) for reader in pair), fillvalue=("", 0, 0)):
            spans = [(max(low, window.start), min(high, window.stop)) for _, low, high in segments]
            given = [k for k, (begin, end) in enumerate(spans) if begin < end]
            parts = [reader.part(window, *span) for reader, span in zip(pair, spans, strict=True)]
            found = both.read(window.fields, window.origin, parts, PHASE_CUT, run) if given else []
            for k in given:
                triangle, rows = found[k]
                key = Key(label, support_key(pair[k].support), segments[k][0])
                yield Evidence(pair[k].family, (Block(key, triangle, rows),))


class _Reader:
    """The weights of one support on one record, and the loop over tiles."""

    def __init__(
        self, record: Record, family: LinearFamily, support: Support, derivative: Derivative, region: Region
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
        self.frames, self.cells = self._tile_size(_QUEUE_BYTES if _in_memory(record) else _QUEUE_BYTES // _STORED)

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

    def part(self, window: _Window, start: int, stop: int) -> Part:
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

    def _complete(self, window: _Window, start: int, stop: int) -> NDArray[np.bool_] | None:
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
