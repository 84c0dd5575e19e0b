"""Looks: groups of frames spread over a record, and what each leaves behind; no more than a part is held.

A look at frames that are too large to be held goes through some rows of the first space axis at a time. It gives what
a look at whole frames gives: the same samples, and sums in another order. Rows are gone through twice, because a sample
of the interface needs to know first how large the interface is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array, Bools
from doublewell.record import Cells, Record
from doublewell.record.record import regular_step

GROUP = 5  # frames per look: one fourth difference in time
FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
SLOPE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
WIDTHS = (1, 2, 4)  # cells of the meshes on which a Laplacian is taken

BLOCK = max(WIDTHS)  # rows of a band are a multiple of this, so that blocks of cells lie in one band
BINS = 20
_LOOKS = 12  # groups of frames that are looked at, spread over the record
_SAMPLE = 2**14  # pixels of one look that enter the medians; smaller frames enter whole
_READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size


@dataclass(frozen=True, eq=False)
class Look:
    """What one group of frames leaves behind: counts, and samples of bounded size.

    ``values`` are pixels of the middle frame, ``rest`` fourth differences of unit noise gain, ``squared`` and
    ``bump`` the squared gradient and 1 - u^2 of the mean picture where |u| < 0.8, ``curved`` its mean squared Laplacian
    on meshes of growing width, ``time`` its mean time. Only the first and the last look keep their mean picture.

    Values that a mask leaves out do not enter, nor does a difference that would need one. A pixel of the mean picture
    is the mean of the frames that show it, NaN where none does; ``frames`` is how many of them a pixel has on average.
    """

    frames: float
    size: int
    counts: NDArray[np.int64]
    low: float
    high: float
    values: Array
    rest: Array
    squared: Array
    bump: Array
    variance: float
    curved: tuple[float, ...]
    time: float
    mean: Array


def look_spans(frames: int) -> list[tuple[int, int]]:
    """Return the groups of frames that are looked at, as (first, last + 1), spread over a record."""
    size = min(GROUP, frames)
    starts = np.unique(np.linspace(0, frames - size, min(_LOOKS, frames - size + 1)).round().astype(int))
    return [(int(start), int(start) + size) for start in starts]


def frame_slabs(record: Record, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Read frames start..stop-1 in small parts: pairs of first frame and slab; none where start >= stop."""
    size = max(1, _READ_BYTES // (8 * int(np.prod(record.mesh))))
    for first in range(start, stop, size):
        yield first, record.slab(first, min(first + size, stop))


def look_at(record: Record, start: int, stop: int) -> Look | None:
    """Look at frames start..stop-1 one by one; no more than a part of them is held. None where nothing was observed."""
    total, count, samples, middle = np.zeros(record.mesh), np.zeros(record.mesh, np.int64), [], np.empty(0)
    for first, slab in frame_slabs(record, start, stop):
        for k, (frame, seen) in enumerate(zip(slab, record.observed(first, first + len(slab)), strict=True), first):
            total += frame  # 0 where it is missing
            count += seen
            shown = observed(frame, seen)
            samples.append(_sample(shown) if stop - start == GROUP else _sample(differences(shown)))
            if k == (start + stop) // 2 or not middle.size:
                middle = known_values(shown) if seen.any() else middle
    if not middle.size:
        return None
    mean = np.divide(total, count, out=np.full(record.mesh, np.nan), where=count > 0)
    squared, bump = gradients(mean, record.dx)
    rest = (
        fourth_weights(record.times[start:stop]) @ np.stack(samples)
        if stop - start == GROUP
        else np.concatenate(samples)
    )
    return Look(
        frames=float(stop - start) if count.min() == stop - start else 1.0 / float(np.mean(1.0 / count[count > 0])),
        size=middle.size,
        counts=np.histogram(middle, bins=BINS, range=(-1.0, 1.0))[0],
        low=float(middle.min()),
        high=float(middle.max()),
        values=_sample(middle),
        rest=known_values(rest) / np.linalg.norm(FOURTH),
        squared=_sample(squared),
        bump=_sample(bump),
        variance=float(known_values(mean).var()),
        curved=tuple(_curved(mean, record.dx, width) for width in WIDTHS),
        time=float(np.mean(record.times[start:stop])),
        mean=mean if start == 0 or stop == record.frames or record.mask is not None else np.empty(0),
    )


def change_between(record: Record, first: tuple[int, int], last: tuple[int, int]) -> float:
    """Return the mean square change between the mean pictures of two groups of frames, part by part of the mesh."""
    total, count = 0.0, 0
    for cells in mesh_bands(record.mesh):
        change = mean_picture(record, last, cells)[0] - mean_picture(record, first, cells)[0]
        known = int(np.count_nonzero(np.isfinite(change)))
        total, count = total + mean_square(change) * known, count + known
    return total / count if count else 0.0


def mesh_bands(mesh: tuple[int, ...]) -> list[Cells]:
    """Cut a mesh across its first axis into parts of which one frame takes about _READ_BYTES."""
    size = max(1, _READ_BYTES // (8 * int(np.prod(mesh[1:]))))
    rest = tuple((0, n) for n in mesh[1:])
    return [((low, min(low + size, mesh[0])), *rest) for low in range(0, mesh[0], size)]


def mean_picture(record: Record, span: tuple[int, int], cells: Cells) -> tuple[Array, NDArray[np.int64]]:
    """Return the mean of some frames over a part of the mesh, NaN where none shows it, and how many frames do."""
    total = np.zeros(tuple(high - low for low, high in cells))
    count = np.zeros(total.shape, np.int64)
    for k in range(*span):
        total += record.slab(k, k + 1, cells)[0]
        count += record.observed(k, k + 1, cells)[0]
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count


def mean_square(change: Array) -> float:
    """Return the mean square of what is known, 0 where nothing is."""
    known = np.isfinite(change)
    return float(np.mean(change[known] ** 2)) if known.any() else 0.0


def space_noise(record: Record, start: int, stop: int) -> Array:
    """Return fourth differences in space of unit noise gain, for records in which no pixel is seen five times."""
    samples = []
    for first, slab in frame_slabs(record, start, stop):
        shown = observed(slab, record.observed(first, first + len(slab)))
        samples += [_sample(differences(frame)) for frame in shown]
    return known_values(np.concatenate(samples)) / float(np.linalg.norm(FOURTH))


def observed(values: Array, seen: Bools) -> Array:
    """Return the values with NaN where they are missing."""
    return values if seen.all() else np.where(seen, values, np.nan)


def known_values(values: Array) -> Array:
    """Return the values that are no NaN, or all as they are where none is."""
    known = np.isfinite(values)
    return values if known.all() else values[known]


def fourth_weights(times: Array) -> Array:
    """Return the weights of a fourth difference in time, as long as FOURTH; at uneven times too no cubic is seen."""
    if regular_step(times) is not None:
        return FOURTH
    apart = times[:, None] - times + np.eye(times.size)
    weights = 1.0 / np.prod(apart / np.max(np.abs(apart)), axis=1)
    return np.asarray(weights * np.linalg.norm(FOURTH) / np.linalg.norm(weights))


def _sample(values: Array) -> Array:
    """Copy every step-th value, at most _SAMPLE of them."""
    return sample_part(values, 0, values.size)


def sample_part(values: Array, first: int, size: int) -> Array:
    """Copy what a sample of `size` values takes of a part that begins at the place `first` of them.

    The step shares no factor with the usual row lengths.
    """
    step = max(1, -(-size // _SAMPLE))
    while step > 1 and gcd(step, 30) > 1:
        step += 1
    return values.reshape(-1)[-first % step :: step].copy()


def differences(frame: Array) -> Array:
    """Return fourth differences along the last axis."""
    cells = frame.shape[-1] - len(FOURTH) + 1
    return np.asarray(sum(c * frame[..., k : k + cells] for k, c in enumerate(FOURTH)))


def gradients(u: Array, dx: tuple[float, ...]) -> tuple[Array, Array]:
    """Return |grad u|^2 by fourth-order differences and 1 - u^2, both where |u| < 0.8."""
    if min(u.shape) < len(SLOPE):
        return np.empty(0), np.empty(0)
    inner = u[(slice(2, -2),) * u.ndim]
    near = np.abs(inner) < 0.8
    squared = np.zeros(int(np.count_nonzero(near)))
    for axis, h in enumerate(dx):
        squared += sum(c * _moved(u, axis, k)[near] for k, c in enumerate(SLOPE) if c) ** 2 / h**2
    known = np.isfinite(squared)
    return squared[known], 1.0 - inner[near][known] ** 2


def _moved(u: Array, axis: int, k: int) -> Array:
    """Return the part of u without its two outer cells, moved by k - 2 cells along one axis."""
    window = [slice(2, n - 2) for n in u.shape]
    window[axis] = slice(k, u.shape[axis] - 4 + k)
    return u[tuple(window)]


def _curved(u: Array, dx: tuple[float, ...], width: int) -> float:
    """Return the mean squared Laplacian of the means of blocks `width` cells wide."""
    known = laplacians(u, dx, width)
    return float(np.mean(known**2)) if known.size else 0.0


def laplacians(u: Array, dx: tuple[float, ...], width: int) -> Array:
    """Return the known Laplacians, by second differences, of the means of blocks `width` cells wide."""
    for axis, n in enumerate(u.shape):
        whole = np.take(u, np.arange(n - n % width), axis=axis)  # cells beyond the last block say nothing
        u = np.add.reduceat(whole, np.arange(0, n - n % width, width), axis=axis) / width if width > 1 else u
    if min(u.shape) < 3:
        return np.empty(0)
    total = np.zeros(tuple(n - 2 for n in u.shape))
    for axis, h in enumerate(dx):
        total += np.diff(u, 2, axis=axis)[_inner(u.ndim, axis)] / (width * h) ** 2
    return known_values(total)


def _inner(axes: int, but: int) -> tuple[slice, ...]:
    """Return the inner cells along all axes but one."""
    return tuple(slice(None) if axis == but else slice(1, -1) for axis in range(axes))


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
        seen = sum(int(np.count_nonzero(record.observed(k, k + 1, _cells(record, *band)))) for band in bands)
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
        shown = observed(record.slab(k, k + 1, cells), record.observed(k, k + 1, cells))[0]
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
