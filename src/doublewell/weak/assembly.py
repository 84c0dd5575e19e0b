"""The weak reader: a record to its space-time moments, compacted while they are made.

    sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S[u] (paper, Eq. 11, after
summation by parts). Every mesh point whose whole derivative support lies inside the record is a centre, unless its
weighted temporal mean is in a pure phase, or a mask says that a value of its support is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from doublewell.checks import whole
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, merge
from doublewell.hints import Progress
from doublewell.law import Family
from doublewell.record import Cells, Record
from doublewell.threads import map_threads
from doublewell.weak.fold import STRADDLE, Fold
from doublewell.weak.frame_buffer import Direct, Reel, Rolling
from doublewell.weak.passes import Run
from doublewell.weak.processor import CPU, Kernel, Processor
from doublewell.weak.reader import PHASE_CUT, Reader, Region, Window, in_memory
from doublewell.weak.weights import Derivative, Support, check_supports

__all__ = ["support_key", "weak_evidence", "window_of"]

_STEP_BYTES = {"cpu": 8 * 2**20, "gpu": 2**30}  # of centre frames, about, in one step through a record
_DIRECT = 4  # times as many frames in a step where nothing is copied, so that threads find enough to do


def weak_evidence(
    record: Record,
    family: Family,
    supports: Sequence[Support | tuple[int, float]],
    *,
    derivative: Derivative = "discrete",
    folds: Sequence[Fold] = (),
    label: str = "record",
    region: Region | None = None,
    reel: Reel | None = None,
    threads: int = 1,
    processor: Processor = CPU,
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
    processor
        What the sums are made on, and in which precision. Threads are for a CPU.
    progress
        Called with (frames done, frames) after each step through the record.
    """
    if derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {derivative!r}: expected 'discrete' or 'analytic'")
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    part = Region.whole(record) if region is None else region
    readers = [Reader(record, family, support, derivative, part) for support in checked]
    names = [*(fold.name for fold in folds), STRADDLE] if folds else ["all"]
    parts = [
        Evidence(family, (Block(Key(label, support_key(support), name), np.zeros((family.size + 2,) * 2), 0),))
        for support in checked
        for name in names
    ]
    passes = processor.passes(readers)
    run: Run = partial(map_threads, whole(threads, "threads", least=1))
    for window in _windows(record, readers, part, reel, processor):
        parts = [merge([*parts, *_read_window(window, passes, folds, label, record.frames, run)])]
        if progress is not None:
            progress(window.stop, record.frames)
    return merge(parts)


def window_of(
    record: Record, family: Family, supports: Sequence[Support], region: Region, processor: Processor = CPU
) -> tuple[int, Region]:
    """Return how many frames of a region are held at once, at most, and all frames and cells that are read for it."""
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    readers = [Reader(record, family, support, "discrete", region) for support in checked]
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


def _windows(
    record: Record, readers: list[Reader], region: Region, reel: Reel | None, processor: Processor
) -> Iterator[Window]:
    """Walk through a region, holding no more than the centre frames of one step and their halo."""
    halo, cells = max(reader.time.half for reader in readers), _with_halo(readers, region)
    size = _window_size(readers, processor)
    size *= _DIRECT if reel is None and in_memory(record) else 1
    reel = _reel(record, size + 2 * halo, cells, max(0, region.frames[0] - halo)) if reel is None else reel
    axes = (1,) * (3 - len(cells))
    origin = (0,) * len(axes) + tuple(low for low, _ in cells)
    for start, stop in _owned_frames(region.frames, record.frames, size, halo):
        first, last = max(0, start - halo), min(record.frames, stop + halo)
        fields, seen = reel.read(first, last)
        shape = (last - first, *axes, *fields.shape[1:])
        yield Window(start, stop, first, fields.reshape(shape), None if seen is None else seen.reshape(shape), origin)


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


def _owned_frames(owned: tuple[int, int], frames: int, size: int, halo: int) -> Iterator[tuple[int, int]]:
    """Cut a range of frames into parts, each with its halo at most size + 2 halo long."""
    start, end = owned
    stop, last = max(start, halo) + size, end - (halo if end == frames else 0)
    while stop < last:
        yield start, stop
        start, stop = stop, stop + size
    yield start, end


def _reel(record: Record, length: int, cells: Cells, first: int) -> Reel:
    return Direct(record, cells) if in_memory(record) else Rolling(record, length, cells, first=first)


def _read_window(
    window: Window, passes: list[tuple[list[Reader], Kernel]], folds: Sequence[Fold], label: str, frames: int, run: Run
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
