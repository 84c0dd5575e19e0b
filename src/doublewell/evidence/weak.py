"""The weak reader: a record to its space-time moments, compacted while they are made.

    sum_j g_j S[B_j(u)] + (1/q) D S[u] = Lap S[u]

with S the separable smoothing by the test weights, D and Lap fourth-order differences of S[u] (paper, Eq. 11, after
summation by parts). Every mesh point whose whole derivative support lies inside the record is a centre, unless its
weighted temporal mean is in a pure phase, or a mask says that a value of its support is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence.evidence import Block, Evidence, Key, merge
from doublewell.evidence.fold import STRADDLE, Fold
from doublewell.evidence.processor import CPU, Processor, reader_on
from doublewell.evidence.reader import Reader, Region, Window
from doublewell.evidence.reel import Direct, Reel, Rolling
from doublewell.evidence.weights import Derivative, Support, check_supports
from doublewell.hints import Progress
from doublewell.law import LinearFamily
from doublewell.record import Cells, Record

__all__ = ["support_key", "weak_evidence", "window_of"]


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
    processor
        What the sums are made on, and in which precision.
    progress
        Called with (frames done, frames) after each step through the record.
    """
    if derivative not in ("discrete", "analytic"):
        raise InputError(f"derivative is {derivative!r}: expected 'discrete' or 'analytic'")
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    part = Region.whole(record) if region is None else region
    readers = [reader_on(processor, record, family, support, derivative, part) for support in checked]
    names = [*(fold.name for fold in folds), STRADDLE] if folds else ["all"]
    parts = [
        Evidence(family, (Block(Key(label, support_key(support), name), np.zeros((family.size + 2,) * 2), 0),))
        for support in checked
        for name in names
    ]
    for window in _windows(record, readers, part, reel):
        parts = [merge([*parts, *_read_window(window, readers, folds, label, record.frames)])]
        if progress is not None:
            progress(window.stop, record.frames)
    return merge(parts)


def window_of(
    record: Record, family: LinearFamily, supports: Sequence[Support], region: Region, processor: Processor = CPU
) -> tuple[int, Region]:
    """Return how many frames of a region are held at once, at most, and all frames and cells that are read for it."""
    checked = check_supports(supports, record.frames, record.mesh, record.dx)
    readers = [reader_on(processor, record, family, support, "discrete", region) for support in checked]
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


def _windows(record: Record, readers: list[Reader], region: Region, reel: Reel | None) -> Iterator[Window]:
    """Walk through a region, holding no more than the centre frames of one step and their halo."""
    halo, size, cells = max(reader.time.half for reader in readers), _window_size(readers), _with_halo(readers, region)
    reel = _reel(record, size + 2 * halo, cells, max(0, region.frames[0] - halo)) if reel is None else reel
    axes = (1,) * (3 - len(cells))
    origin = (0,) * len(axes) + tuple(low for low, _ in cells)
    for start, stop in _owned_frames(region.frames, record.frames, size, halo):
        first, last = max(0, start - halo), min(record.frames, stop + halo)
        fields, seen = reel.read(first, last)
        shape = (last - first, *axes, *fields.shape[1:])
        yield Window(start, stop, first, fields.reshape(shape), None if seen is None else seen.reshape(shape), origin)


def _window_size(readers: list[Reader]) -> int:
    """Return the centre frames of one step: about the bytes that a reader takes at once, whole kernel calls."""
    frames = max(reader.frames for reader in readers)
    size = readers[0].step_bytes // (8 * readers[0].points)
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
    in_memory = isinstance(record.values, np.ndarray) and record.values.dtype == np.float64
    return Direct(record, cells) if in_memory else Rolling(record, length, cells, first=first)


def _read_window(
    window: Window, readers: list[Reader], folds: Sequence[Fold], label: str, frames: int
) -> Iterator[Evidence]:
    for reader in readers:
        for name, low, high in reader.segments(folds, frames):
            begin, end = max(low, window.start), min(high, window.stop)
            if begin < end:
                triangle, rows = reader.read(window, begin, end)
                key = Key(label, support_key(reader.support), name)
                yield Evidence(reader.family, (Block(key, triangle, rows),))
