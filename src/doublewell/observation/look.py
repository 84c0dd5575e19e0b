"""Look: what one group of frames leaves behind for the survey of a record.

Groups of frames spread over the record are looked at, and each leaves behind what is needed; no more than a part of
them is held. Frames too large to be held are gone through some rows of the first space axis at a time, with the same
samples and sums in another order, twice: a sample of the interface needs to know first how large it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.observation.view import FOURTH
from doublewell.record import Cells, Record
from doublewell.record.record import regular_step

GROUP = len(FOURTH)  # frames per look: one fourth difference in time
FEW_FRAMES = 13  # fewer are looked at one by one: they may be far apart, and groups of them would overlap
WIDTHS = (1, 2, 4)  # cells of the meshes on which a Laplacian is taken
BLOCK = max(WIDTHS)  # rows of a band are a multiple of this, so that blocks of cells lie in one band
SLOPE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_CENTRAL = np.array([-0.5, 0.0, 0.5])
_BINS = 20
_LOOKS = 12  # groups of frames that are looked at, spread over the record
_SAMPLE = 2**14  # pixels of one look that enter the medians; smaller frames enter whole
_READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size
_NEAR = 0.8  # largest |u| that counts for the slope of the interface


@dataclass(frozen=True, eq=False)
class Look:
    """What one group of frames leaves behind: counts, and samples of bounded size.

    ``values`` are pixels of the middle frame, ``rest`` fourth differences of unit noise gain, ``squared`` and
    ``bump`` the squared gradient and 1 - u^2 of the mean picture where |u| < 0.8, ``curved`` its mean squared Laplacian
    on meshes of growing width, ``slopes`` the sums of |grad u|^2 and of |grad u| (1 - u^2) there, again where
    |u| < 0.8, ``time`` its mean time. Only the first and the last look keep their mean picture.

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
    slopes: tuple[tuple[float, float], ...]
    time: float
    mean: Array


def look_spans(record: Record) -> list[tuple[int, int]]:
    """Return the groups of frames that are looked at, as (first, last + 1), spread over a record; refuse a tiny one."""
    frames, size = record.frames, GROUP if record.frames >= FEW_FRAMES else 1
    needs = len(FOURTH) if len(record.mesh) > 1 else 2 * len(FOURTH) - 1
    if frames < FEW_FRAMES and min(record.mesh[-2:]) < needs:
        raise InputError(
            f"{frames} frames of {' x '.join(map(str, record.mesh))} cells are too few to measure noise: expected at "
            f"least {needs} cells along an axis, or {FEW_FRAMES} frames"
        )
    starts = np.unique(np.linspace(0, frames - size, min(_LOOKS, frames - size + 1)).round().astype(int))
    return list(zip(starts.tolist(), (starts + size).tolist(), strict=True))


def frame_slabs(record: Record, start: int, stop: int, cells: Cells | None = None) -> Iterator[tuple[int, Array]]:
    """Read frames start..stop-1 in small parts: pairs of first frame and slab; none where start >= stop."""
    values = prod(record.mesh) if cells is None else int(np.prod(np.diff(cells)))
    size = max(1, _READ_BYTES // (8 * values))
    for first in range(start, stop, size):
        yield first, record.slab(first, min(first + size, stop), cells)


def look_at(record: Record, start: int, stop: int, rows: int | None = None) -> Look | None:
    """Look at frames start..stop-1; None where nothing was observed.

    With `rows`, a multiple of BLOCK, no more rows of the first space axis, and their neighbours, are held at a time.
    """
    n, span, rest, values = record.mesh[0], (start, stop), [], []
    rows = min(rows or n, n)
    bands = [(low, min(low + rows, n)) for low in range(0, n, rows)]
    for middle in ((start + stop) // 2, *range(start, stop)):  # the middle frame, or the first that shows anything
        size = sum([int(np.count_nonzero(record.observed(middle, middle + 1, _rows(record, *band)))) for band in bands])
        if size:
            break
    else:
        return None
    counts, curved, curves = np.zeros(_BINS, np.int64), np.zeros(len(WIDTHS)), np.zeros(len(WIDTHS), np.int64)
    slopes = np.zeros((len(WIDTHS), 2))
    low, high, total, inverse, fewest, pixels, near, taken = np.inf, -np.inf, 0.0, 0.0, stop - start, 0, 0, 0
    for band in bands:
        mean, count, shown, samples = _read_band(record, span, band, middle)
        rest.append(samples)
        if shown.size:
            counts += np.histogram(shown, bins=_BINS, range=(-1.0, 1.0))[0]
            low, high = min(low, float(shown.min())), max(high, float(shown.max()))
            values.append(sample(shown, taken, size))
            taken += shown.size
        own = slice(min(band[0], BLOCK), min(band[0], BLOCK) + band[1] - band[0])  # rows of the band in its mean
        known, frames = known_values(mean[own]), count[own]
        total, pixels = total + float(np.sum(known)), pixels + known.size
        fewest, inverse = min(fewest, int(frames.min())), inverse + float(np.sum(1.0 / frames[frames > 0]))
        steep, bump = _gradients(mean[max(own.start - 2, 0) : own.stop + 2], record.dx)
        near += steep.size
        for level, width in enumerate(WIDTHS):
            u, dx = _block_means(mean, own, record, band, width), width * np.array(record.dx)
            second, (coarse, wide) = _laplacians(u, dx), _gradients(u, dx, _CENTRAL)
            curved[level] += np.sum(second**2)
            curves[level] += second.size
            slopes[level] += np.sum(coarse), np.sum(np.sqrt(coarse) * wide)
    squared, bumps, spread, taken = [], [], 0.0, 0
    for band in bands:
        if len(bands) > 1:  # what one band leaves is still here
            rows_held = (max(0, band[0] - 2), min(n, band[1] + 2))
            mean = mean_picture(record, span, _rows(record, *rows_held))[0]
            steep, bump = _gradients(mean, record.dx)
            mean = mean[band[0] - rows_held[0] : band[1] - rows_held[0]]
        squared.append(sample(steep, taken, near))
        bumps.append(sample(bump, taken, near))
        taken += steep.size
        spread += float(np.sum((known_values(mean) - total / pixels) ** 2))
    ends = len(bands) == 1 and (start == 0 or stop == record.frames or record.mask is not None)
    return Look(
        frames=float(stop - start) if fewest == stop - start else pixels / inverse,
        size=size,
        counts=counts,
        low=low,
        high=high,
        values=np.concatenate(values),
        rest=known_values(np.concatenate(rest)),
        squared=np.concatenate(squared),
        bump=np.concatenate(bumps),
        variance=spread / pixels,
        curved=tuple((curved / np.maximum(curves, 1)).tolist()),
        slopes=tuple((float(a), float(b)) for a, b in slopes),
        time=float(np.mean(record.times[start:stop])),
        mean=mean if ends else np.empty(0),
    )


def _rows(record: Record, low: int, high: int) -> Cells:
    return (low, high), *zip(repeat(0), record.mesh[1:], strict=False)


def _read_band(
    record: Record, span: tuple[int, int], band: tuple[int, int], middle: int
) -> tuple[Array, NDArray[np.int64], Array, Array]:
    """Read the rows of a band, each frame once: mean picture, frames behind each of its pixels, values, samples.

    Mean and count have BLOCK rows more on either side, where there are. Values are those known of the middle frame,
    samples the fourth differences of noise: in time, of few frames in space.
    """
    low, high = max(0, band[0] - BLOCK), min(record.mesh[0], band[1] + BLOCK)
    cells, group, samples, values = _rows(record, low, high), span[1] - span[0] == GROUP, [], np.empty(0)
    reach = 0 if group else (8, 4, 0)[len(record.mesh) - 1]  # rows beyond its own that a difference takes in
    total = np.zeros((high - low, *record.mesh[1:]))
    count = np.zeros(total.shape, np.int64)
    for first, slab in frame_slabs(record, *span, cells):
        masks = record.observed(first, first + len(slab), cells)
        for k, (frame, mask) in enumerate(zip(slab, masks, strict=True), first):
            total += frame  # 0 where it is missing
            count += mask
            shown = (frame if mask.all() else np.where(mask, frame, np.nan))[band[0] - low :]
            line = shown[: band[1] - band[0]] if group else _differences(shown[: band[1] - band[0] + reach])
            row = prod(line.shape[1:])
            samples.append(sample(line, band[0] * row, (record.mesh[0] - reach) * row))
            if k == middle:
                values = known_values(shown[: band[1] - band[0]]).reshape(-1)
    mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    rest = _fourth_weights(record.times[slice(*span)]) @ np.stack(samples) if group else np.concatenate(samples)
    return mean, count, values, rest


def change_between(record: Record, first: tuple[int, int], last: tuple[int, int]) -> tuple[float, Array]:
    """Return the mean square change between mean pictures of two groups of frames, part by part, and a sample of it."""
    total, count, row, samples = 0.0, 0, prod(record.mesh[1:]), []
    size = max(1, _READ_BYTES // (8 * row))
    for low in range(0, record.mesh[0], size):
        cells = _rows(record, low, min(low + size, record.mesh[0]))
        change = mean_picture(record, last, cells)[0] - mean_picture(record, first, cells)[0]
        known = int(np.count_nonzero(np.isfinite(change)))
        total, count = total + mean_square(change) * known, count + known
        samples.append(sample(change, low * row, record.mesh[0] * row))
    return total / count if count else 0.0, np.concatenate(samples)


def mean_picture(record: Record, span: tuple[int, int], cells: Cells) -> tuple[Array, NDArray[np.int64]]:
    """Return the mean of some frames over a part of the mesh, NaN where none shows it, and how many frames do."""
    total = np.zeros(np.diff(cells)[:, 0])
    count = np.zeros(total.shape, np.int64)
    for k in range(*span):
        total += record.slab(k, k + 1, cells)[0]
        count += record.observed(k, k + 1, cells)[0]
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count


def mean_square(change: Array) -> float:
    """Return the mean square of what is known, 0 where nothing is."""
    known = known_values(change)
    return float(np.mean(known**2)) if known.size else 0.0


def known_values(values: Array) -> Array:
    """Return the values that are not NaN, or all as they are where none is."""
    known = np.isfinite(values)
    return values if known.all() else values[known]


def space_noise(record: Record) -> Array:
    """Return fourth differences in space of unit noise gain, for records in which no pixel is seen five times."""
    samples = []
    for span in look_spans(record):
        for first, slab in frame_slabs(record, *span):
            shown = np.where(record.observed(first, first + len(slab)), slab, np.nan)
            samples += [sample(frame, 0, frame.size) for frame in _differences(shown)]
    return known_values(np.concatenate(samples))


def _fourth_weights(times: Array) -> Array:
    """Return the weights of a fourth difference in time, of unit noise gain, blind to cubics at uneven times too."""
    weights = FOURTH
    if regular_step(times) is None:
        apart = times[:, None] - times + np.eye(times.size)
        weights = 1.0 / np.prod(apart / np.max(np.abs(apart)), axis=1)
    return np.asarray(weights / np.linalg.norm(weights))


def sample(values: Array, first: int, size: int) -> Array:
    """Copy what a sample of `size` values, at most _SAMPLE of them, takes of a part that begins at number `first`.

    The step shares no factor with the usual row lengths.
    """
    step = max(1, -(-size // _SAMPLE))
    while step > 1 and gcd(step, 30) > 1:
        step += 1
    return values.reshape(-1)[-first % step :: step].copy()


def _differences(frame: Array) -> Array:
    """Return fourth differences of unit noise gain along the last two axes, one after the other; twice along one."""
    weights = FOURTH if frame.ndim > 1 else np.convolve(FOURTH, FOURTH)
    if min(frame.shape[-2:]) < len(weights):  # the last rows of a mesh
        return np.empty((0, 1))
    for axis in range(-min(frame.ndim, 2), 0):
        lines = np.lib.stride_tricks.sliding_window_view(frame, len(weights), axis=axis)
        frame = lines @ (weights / np.linalg.norm(weights))
    return frame


def _gradients(u: Array, dx: Sequence[float] | Array, weights: Array = SLOPE) -> tuple[Array, Array]:
    """Return |grad u|^2 by central differences, of fourth order by default, and 1 - u^2, both where |u| < 0.8."""
    if min(u.shape) < len(weights):
        return np.empty(0), np.empty(0)
    reach = len(weights) // 2
    inner = (slice(reach, -reach),) * u.ndim
    near = np.abs(u[inner]) < _NEAR
    squared = np.zeros(int(np.count_nonzero(near)))
    for axis, h in enumerate(dx):
        slope = np.zeros(squared.size)
        for k in np.flatnonzero(weights):
            moved = (*inner[:axis], slice(k, u.shape[axis] - 2 * reach + k), *inner[axis + 1 :])
            slope += weights[k] / h * u[moved][near]
        squared += slope**2
    known = np.isfinite(squared)
    return squared[known], 1.0 - u[inner][near][known] ** 2


def _block_means(mean: Array, own: slice, record: Record, band: tuple[int, int], width: int) -> Array:
    """Return the means of a band's blocks `width` cells wide, with one more on either side, of neighbouring bands.

    `own` are the rows of the band in its mean picture. Empty where there is no block with two neighbours.
    """
    blocks = record.mesh[0] // width
    first, last = max(band[0] // width, 1), min(min(band[1], blocks * width) // width, blocks - 1)
    offset = own.start - band[0]
    u = mean[offset + (first - 1) * width : offset + (last + 1) * width] if first < last else mean[:0]
    for axis, n in enumerate(u.shape if width > 1 else ()):
        lines = np.moveaxis(u, axis, 0)[: n - n % width]  # cells beyond the last block say nothing
        u = np.moveaxis(lines.reshape(n // width, width, *lines.shape[1:]).mean(axis=1), 0, axis)
    return u


def _laplacians(u: Array, dx: Array) -> Array:
    """Return the known Laplacians by second differences."""
    if min(u.shape) < 3:
        return np.empty(0)
    total = np.zeros(np.array(u.shape) - 2)
    for axis, h in enumerate(dx):
        inner = [slice(1, -1)] * u.ndim
        inner[axis] = slice(None)
        total += np.diff(u, 2, axis=axis)[tuple(inner)] / h**2
    return known_values(total)
