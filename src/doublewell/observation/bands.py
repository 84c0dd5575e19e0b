"""Bands: a look at frames that are too large to be held, some rows of the first space axis at a time.

It gives what `look_at` gives of whole frames: the same samples, and sums in another order. Rows are gone through twice,
because a sample of the interface needs to know first how large the interface is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.observation.looks import (
    BINS,
    FOURTH,
    GROUP,
    WIDTHS,
    Look,
    differences,
    fourth_weights,
    gradients,
    known_values,
    laplacians,
    mean_picture,
    observed,
    sample_part,
)
from doublewell.record import Cells, Record

__all__ = ["BLOCK", "look_in_bands"]

BLOCK = max(WIDTHS)  # rows of a band are a multiple of this, so that blocks of cells lie in one band


def look_in_bands(record: Record, start: int, stop: int, rows: int) -> Look | None:
    """Look at frames start..stop-1, holding `rows` rows, a multiple of BLOCK, and their neighbours at a time."""
    n = record.mesh[0]
    bands = [(low, min(low + rows, n)) for low in range(0, n, rows)]
    middle, size = _middle_frame(record, start, stop, bands)
    if middle is None:
        return None
    sums, tail = _Sums(), _Tail(size)
    for band in bands:
        _add_mean(sums, record, (start, stop), band)
        _add_frames(tail, record, (start, stop), band, middle)
    squared, bump, spread = _second_pass(record, (start, stop), bands, sums)
    return Look(
        frames=float(stop - start) if sums.fewest == stop - start else sums.pixels / sums.inverse,
        size=size,
        counts=tail.counts,
        low=tail.low,
        high=tail.high,
        values=np.concatenate(tail.values),
        rest=known_values(np.concatenate(tail.rest)) / np.linalg.norm(FOURTH),
        squared=squared,
        bump=bump,
        variance=spread / sums.pixels,
        curved=tuple(s / c if c else 0.0 for s, c in zip(sums.curved, sums.curves, strict=True)),
        time=float(np.mean(record.times[start:stop])),
        mean=np.empty(0),
    )


@dataclass
class _Sums:
    """Sums over the mean picture."""

    total: float = 0.0
    pixels: int = 0
    near: int = 0
    fewest: int = 2**62
    inverse: float = 0.0
    curved: list[float] = field(default_factory=lambda: [0.0] * len(WIDTHS))
    curves: list[int] = field(default_factory=lambda: [0] * len(WIDTHS))


@dataclass
class _Tail:
    """What is kept of the frames themselves; `size` values of the middle one are known."""

    size: int
    taken: int = 0
    low: float = np.inf
    high: float = -np.inf
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))
    values: list[Array] = field(default_factory=list)
    rest: list[Array] = field(default_factory=list)


def _cells(record: Record, low: int, high: int) -> Cells:
    return (low, high), *((0, n) for n in record.mesh[1:])


def _middle_frame(record: Record, start: int, stop: int, bands: list[tuple[int, int]]) -> tuple[int | None, int]:
    """Return the middle frame, or the first that shows anything, and how many of its values are known."""
    middle = (start + stop) // 2
    for k in (middle, *range(start, stop)):
        seen = sum(int(np.count_nonzero(record.seen(k, k + 1, _cells(record, *band)))) for band in bands)
        if seen:
            return k, seen
    return None, 0


def _mean(record: Record, span: tuple[int, int], band: tuple[int, int], reach: int) -> tuple[Array, int]:
    """Return the mean picture of a band with `reach` rows on either side, where there are, and its first row."""
    low, high = max(0, band[0] - reach), min(record.mesh[0], band[1] + reach)
    return mean_picture(record, span, _cells(record, low, high))[0], low


def _add_mean(sums: _Sums, record: Record, span: tuple[int, int], band: tuple[int, int]) -> None:
    low, high = max(0, band[0] - BLOCK), min(record.mesh[0], band[1] + BLOCK)
    mean, count = mean_picture(record, span, _cells(record, low, high))
    own, shown = mean[band[0] - low : band[1] - low], count[band[0] - low : band[1] - low]
    known = known_values(own)
    sums.total += float(np.sum(known))
    sums.pixels += known.size
    sums.fewest = min(sums.fewest, int(shown.min()))
    sums.inverse += float(np.sum(1.0 / shown[shown > 0]))
    sums.near += _interface(mean, low, band, record)[0].size
    for level, width in enumerate(WIDTHS):
        curved = laplacians(_blocks(mean, low, band, record.mesh[0], width), record.dx, width)
        sums.curved[level] += float(np.sum(curved**2))
        sums.curves[level] += curved.size


def _interface(mean: Array, low: int, band: tuple[int, int], record: Record) -> tuple[Array, Array]:
    """Return the squared gradient and 1 - u^2 near the interface in a band."""
    first, last = max(band[0] - 2, 0), min(band[1] + 2, record.mesh[0])
    return gradients(mean[first - low : last - low], record.dx)


def _blocks(mean: Array, low: int, band: tuple[int, int], n: int, width: int) -> Array:
    """Return the rows of a band's blocks of cells and of one block on either side."""
    blocks = n // width
    first, last = max(band[0] // width, 1), min(min(band[1], blocks * width) // width, blocks - 1)
    rows = (first - 1) * width - low, (last + 1) * width - low
    return mean[rows[0] : rows[1]] if first < last else mean[:0]


def _add_frames(tail: _Tail, record: Record, span: tuple[int, int], band: tuple[int, int], middle: int) -> None:
    cells, group = _cells(record, *band), span[1] - span[0] == GROUP
    samples = []
    for k in range(*span):
        shown = observed(record.slab(k, k + 1, cells), record.seen(k, k + 1, cells))[0]
        rows = shown if group else differences(shown)
        samples.append(sample_part(rows, band[0] * rows[0].size, record.mesh[0] * rows[0].size))
        if k == middle:
            _add_values(tail, known_values(shown).reshape(-1))
    weights = fourth_weights(record.times[slice(*span)]) if group else None
    tail.rest.append(np.concatenate(samples) if weights is None else weights @ np.stack(samples))


def _add_values(tail: _Tail, known: Array) -> None:
    if not known.size:
        return
    tail.counts += np.histogram(known, bins=BINS, range=(-1.0, 1.0))[0]
    tail.low, tail.high = min(tail.low, float(known.min())), max(tail.high, float(known.max()))
    tail.values.append(sample_part(known, tail.taken, tail.size))
    tail.taken += known.size


def _second_pass(
    record: Record, span: tuple[int, int], bands: list[tuple[int, int]], sums: _Sums
) -> tuple[Array, Array, float]:
    """Return samples of the interface, and the sum of squares about the mean."""
    squared, bump, spread, taken = [], [], 0.0, 0
    for band in bands:
        mean, low = _mean(record, span, band, 2)
        steep, near = _interface(mean, low, band, record)
        squared.append(sample_part(steep, taken, sums.near))
        bump.append(sample_part(near, taken, sums.near))
        taken += steep.size
        known = known_values(mean[band[0] - low : band[1] - low])
        spread += float(np.sum((known - sums.total / sums.pixels) ** 2))
    return np.concatenate(squared), np.concatenate(bump), spread
