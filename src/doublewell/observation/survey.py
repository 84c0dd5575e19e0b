"""Survey: what a record looks like before any law is fitted: noise, phase coverage, interface width.

Groups of frames spread over the record are looked at, and each leaves behind what is needed; no more than a part of
them is held. Frames too large to be held are gone through some rows of the first space axis at a time, with the same
samples and sums in another order, twice: a sample of the interface needs to know first how large it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import atanh, gcd, prod

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.observation.view import FOURTH
from doublewell.record import Cells, Record
from doublewell.record.arrays import missing_fraction
from doublewell.record.record import regular_step

GROUP = len(FOURTH)  # frames per look: one fourth difference in time
FEW_FRAMES = 13  # fewer are looked at one by one: they may be far apart, and groups of them would overlap
WIDTHS = (1, 2, 4)  # cells of the meshes on which a Laplacian is taken
BLOCK = max(WIDTHS)  # rows of a band are a multiple of this, so that blocks of cells lie in one band
FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
COVERED = 0.9  # fraction of the phase range from which on a law counts as measured
TOO_FEW_CELLS = 2.5  # fewer are refused
TOO_LARGE = 3.0  # phase values beyond this are not an order parameter with noise
MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; use the "
    "grey values that the mask was made from"
)
_SLOPE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_BINS = 20
_LOOKS = 12  # groups of frames that are looked at, spread over the record
_SAMPLE = 2**14  # pixels of one look that enter the medians; smaller frames enter whole
_READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size
_LEVEL = 0.9  # interface width is measured between the phase values -0.9 and 0.9
_GONE = 0.3  # of the most interface that a frame has: less is what is left of a drop
_NEAR = 0.8  # largest |u| that counts for the slope of the interface
_VISITED = 0.01  # fraction of the interface's values that makes a phase bin count as visited
_CLEAR = 1.2  # mean square, in units of what noise alone makes, that shows a motion or a curvature
_FEW_VALUES = 3  # a movie with no more different values than these is a mask
_ONLY_NOISE = 1.25  # largest variance of a mean picture, in units of what noise alone makes, that shows no interface


@dataclass(frozen=True)
class Survey:
    """Measured properties of a record, from groups of frames spread over it.

    ``noise`` is the standard deviation of one pixel; ``low`` and ``high`` the 0.1 and 99.9 percentiles of u;
    ``histogram`` the fraction of all values in each of 20 equal bins of [-1, 1]; ``interface_width`` the distance
    from u = -0.9 to 0.9 across an interface, None when no interface is seen (one phase, or nothing but noise), and
    ``cells`` the same in cells of the coarsest axis; ``change`` the root mean square change of u from the first to
    the last look, ``peak`` the 99.9 percentile of its size; ``growth`` the factor by which the contrast grows
    over the later half of the looks; ``pace`` the root mean square of u_t over that of the Laplacian of u, None where
    noise hides either: diffusion alone has the pace q; ``distinct`` how many different values the sample of pixels
    holds, 0 where that was not counted; ``missing`` the fraction of values that the record's mask leaves out:
    everything else is of the values that were observed.
    """

    frames: int
    mesh: tuple[int, ...]
    noise: float
    noise_method: str
    low: float
    high: float
    histogram: tuple[float, ...]
    interface_width: float | None
    cells: float | None
    change: float
    growth: float = 1.0
    pace: float | None = None
    distinct: int = 0
    missing: float = 0.0
    peak: float = 0.0

    def scaled(self, gain: float, offset: float) -> Survey:
        """Return the survey of the values gain u + offset."""
        low, high = gain * self.low + offset, gain * self.high + offset
        sizes = {name: gain * getattr(self, name) for name in ("noise", "change", "peak")}
        return replace(self, low=low, high=high, **sizes)

    @property
    def two_valued(self) -> bool:
        """Whether the values are those of a mask: two, perhaps with a third between them, and nothing else."""
        return 0 < self.distinct <= _FEW_VALUES

    @property
    def visited(self) -> tuple[bool, ...]:
        """For each of the 20 phase bins whether it, or its mirror image, holds 1 % of the interface's values.

        The force is odd, so a value tells as much about its mirror image. Bulk does not count: however large it is, the
        values between the pure phases determine the law.
        """
        folded = np.array(self.histogram) + np.array(self.histogram[::-1])
        return tuple(bool(x) for x in (folded > 0.0) & (folded >= _VISITED * self.interface_fraction))

    @property
    def coverage(self) -> float:
        """The fraction of the phase bins that are visited."""
        return float(np.mean(self.visited))

    @property
    def unseen(self) -> tuple[tuple[float, float], ...]:
        """The ranges of |u| that are not visited, from the centre outwards."""
        bins = len(self.histogram) // 2
        ends = np.flatnonzero(np.diff([True, *self.visited[bins:], True]))  # where visited ranges end and begin again
        return tuple((low / bins, high / bins) for low, high in ends.reshape(-1, 2).tolist())

    @property
    def interface_fraction(self) -> float:
        """The fraction of all values between -0.9 and 0.9."""
        return float(sum(self.histogram[1:-1]))


def survey(record: Record, *, progress: Progress | None = None) -> Survey:
    """Look at a record: groups of five frames spread over it, or each frame by itself of fewer than 13.

    Every frame is read, part by part, and must be finite; no more than a part is held. Noise comes from fourth
    differences in time (of fewer than 13 frames from those along two axes in space, one after the other), which leave
    next to nothing of a smooth field, by the median absolute deviation. The interface width is that of the tanh profile
    with the slope measured in the later half of the looks, less noise. `progress` gets (frames read, frames).
    """
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=)")
    looks: list[Look] = []
    done = 0
    for start, stop in look_spans(record):
        for _ in frame_slabs(record, done, start):  # no look holds these frames, but they too must be finite
            pass
        look = look_at(record, start, stop)
        looks += [] if look is None else [look]
        done = stop
        if progress is not None:
            progress(stop, record.frames)
    change = looks[-1].mean - looks[0].mean if looks else np.empty(0)
    missing = 0.0 if record.mask is None else missing_fraction(record.mask)
    if missing is None:  # a stored mask is read frame by frame
        missing = float(np.mean([1.0 - record.observed(k, k + 1).mean() for k in range(record.frames)]))
    return survey_of(record, looks, mean_square(change), _sample(change, 0, change.size), missing)


def survey_of(record: Record, looks: Sequence[Look], moved: float, changes: Array, missing: float) -> Survey:
    """Put together what the looks saw; `moved` is the mean square, `changes` a sample of the change over the record."""
    if not looks:
        raise InputError(
            "the mask leaves no value in any of the frames that were looked at: expected True where a value was "
            "observed; correct the mask"
        )
    if (low := min([look.low for look in looks])) == max([look.high for look in looks]):
        raise InputError(
            f"the field is constant (u = {low + 0.0:g} everywhere): expected two phases and an interface between them"
        )
    values = np.concatenate([look.values for look in looks])
    rest, method = np.concatenate([look.rest for look in looks]), "space" if record.frames < FEW_FRAMES else "time"
    if not rest.size:
        rest, method = _space_noise(record), "space"
    if not rest.size:
        raise InputError(
            "too little was observed to measure noise: expected five neighbouring values in time, or along each axis, "
            "that the mask leaves in; record more, or correct the mask (True = observed)"
        )
    noise = float(1.4826 * np.median(np.abs(rest)))
    variance, floor = np.array([(look.variance, noise**2 / look.frames) for look in looks]).T
    last, middle = np.maximum(variance - floor, 0.0)[[-1, (len(looks) - 1) // 2]]
    width = None if np.all(variance <= _ONLY_NOISE * floor) else _interface_width(looks, record.dx, noise)
    counts = np.sum([look.counts for look in looks], axis=0) / sum([look.size for look in looks])
    return Survey(
        frames=record.frames,
        mesh=record.mesh,
        noise=noise,
        noise_method=f"fourth differences in {method}",
        low=float(np.percentile(values, 0.1)),
        high=float(np.percentile(values, 99.9)),
        histogram=tuple(counts.tolist()),
        interface_width=width,
        cells=None if width is None else width / max(record.dx),
        change=float(np.sqrt(moved)),
        growth=float(np.sqrt(last / middle)) if middle > 0.0 and last > 0.0 else 1.0,
        pace=_pace(looks, moved, record.dx, noise),
        distinct=int(np.unique(values).size),
        missing=missing,
        peak=float(np.percentile(np.abs(known_values(np.append(changes, 0.0))), 99.9)),
    )


def _interface_width(looks: Sequence[Look], dx: tuple[float, ...], noise: float) -> float | None:
    """Return 2 atanh(0.9) / s with s the median slope of the later half of the looks that have an interface.

    |grad u| = s (1 - u^2), weighted by |grad u|: every crossing counts the same. Profiles relax, so later looks count;
    single frames with far less interface do not: a drop may be gone.
    """
    sums, floor = [], float(np.sum(_SLOPE**2) * noise**2 * np.sum(np.array(dx) ** -2.0))
    for look in looks:
        steep = np.maximum(look.squared - floor / look.frames, 0.0)
        weight = float(np.sum(np.sqrt(steep) * look.bump))
        if weight > 0.0:
            sums.append((float(np.sum(steep)), weight))
    least = _GONE * max([weight for _, weight in sums], default=0.0) if looks[0].frames <= 1.0 else 0.0
    slopes = [steep / weight for steep, weight in sums if weight >= least]
    return 2.0 * atanh(_LEVEL) / float(np.median(slopes[len(slopes) // 2 :])) if slopes else None


def _pace(looks: Sequence[Look], moved: float, dx: tuple[float, ...], noise: float) -> float | None:
    """Return the rms of u_t, from first look to last, over that of the Laplacian; None where noise hides either."""
    time, variance = looks[-1].time - looks[0].time, noise**2 / looks[0].frames
    moved -= 2.0 * variance
    if time == 0.0 or moved <= _CLEAR * variance:
        return None
    inverse = np.array(dx) ** -2.0
    noisy = variance * (4.0 * np.sum(inverse) ** 2 + 2.0 * np.sum(inverse**2)) / np.array(WIDTHS) ** (4.0 + len(dx))
    curved = np.mean([look.curved for look in looks], axis=0)
    clear = np.flatnonzero(curved > _CLEAR * noisy)
    return float(np.sqrt(moved / (curved - noisy)[clear[0]]) / time) if clear.size else None


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
    low, high, total, inverse, fewest, pixels, near, taken = np.inf, -np.inf, 0.0, 0.0, stop - start, 0, 0, 0
    for band in bands:
        mean, count, shown, samples = _read_band(record, span, band, middle)
        rest.append(samples)
        if shown.size:
            counts += np.histogram(shown, bins=_BINS, range=(-1.0, 1.0))[0]
            low, high = min(low, float(shown.min())), max(high, float(shown.max()))
            values.append(_sample(shown, taken, size))
            taken += shown.size
        own = slice(min(band[0], BLOCK), min(band[0], BLOCK) + band[1] - band[0])  # rows of the band in its mean
        known, frames = known_values(mean[own]), count[own]
        total, pixels = total + float(np.sum(known)), pixels + known.size
        fewest, inverse = min(fewest, int(frames.min())), inverse + float(np.sum(1.0 / frames[frames > 0]))
        steep, bump = _gradients(mean[max(own.start - 2, 0) : own.stop + 2], record.dx)
        near += steep.size
        for level, width in enumerate(WIDTHS):
            second = _laplacians(mean, own, record, band, width)
            curved[level] += np.sum(second**2)
            curves[level] += second.size
    squared, bumps, spread, taken = [], [], 0.0, 0
    for band in bands:
        if len(bands) > 1:  # what one band leaves is still here
            rows_held = (max(0, band[0] - 2), min(n, band[1] + 2))
            mean = mean_picture(record, span, _rows(record, *rows_held))[0]
            steep, bump = _gradients(mean, record.dx)
            mean = mean[band[0] - rows_held[0] : band[1] - rows_held[0]]
        squared.append(_sample(steep, taken, near))
        bumps.append(_sample(bump, taken, near))
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
            samples.append(_sample(line, band[0] * row, (record.mesh[0] - reach) * row))
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
        samples.append(_sample(change, low * row, record.mesh[0] * row))
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


def _space_noise(record: Record) -> Array:
    """Return fourth differences in space of unit noise gain, for records in which no pixel is seen five times."""
    samples = []
    for span in look_spans(record):
        for first, slab in frame_slabs(record, *span):
            shown = np.where(record.observed(first, first + len(slab)), slab, np.nan)
            samples += [_sample(frame, 0, frame.size) for frame in _differences(shown)]
    return known_values(np.concatenate(samples))


def _fourth_weights(times: Array) -> Array:
    """Return the weights of a fourth difference in time, of unit noise gain, blind to cubics at uneven times too."""
    weights = FOURTH
    if regular_step(times) is None:
        apart = times[:, None] - times + np.eye(times.size)
        weights = 1.0 / np.prod(apart / np.max(np.abs(apart)), axis=1)
    return np.asarray(weights / np.linalg.norm(weights))


def _sample(values: Array, first: int, size: int) -> Array:
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


def _gradients(u: Array, dx: tuple[float, ...]) -> tuple[Array, Array]:
    """Return |grad u|^2 by fourth-order differences and 1 - u^2, both where |u| < 0.8."""
    if min(u.shape) < len(_SLOPE):
        return np.empty(0), np.empty(0)
    inner = (slice(2, -2),) * u.ndim
    near = np.abs(u[inner]) < _NEAR
    squared = np.zeros(int(np.count_nonzero(near)))
    for axis, h in enumerate(dx):
        slope = np.zeros(squared.size)
        for k in np.flatnonzero(_SLOPE):
            moved = (*inner[:axis], slice(k, u.shape[axis] - 4 + k), *inner[axis + 1 :])
            slope += _SLOPE[k] / h * u[moved][near]
        squared += slope**2
    known = np.isfinite(squared)
    return squared[known], 1.0 - u[inner][near][known] ** 2


def _laplacians(mean: Array, own: slice, record: Record, band: tuple[int, int], width: int) -> Array:
    """Return the known Laplacians, by second differences, of the means of a band's blocks `width` cells wide.

    Blocks of neighbouring bands serve as neighbours, `own` are the rows of the band in its mean picture.
    """
    blocks = record.mesh[0] // width
    first, last = max(band[0] // width, 1), min(min(band[1], blocks * width) // width, blocks - 1)
    offset = own.start - band[0]
    u = mean[offset + (first - 1) * width : offset + (last + 1) * width] if first < last else mean[:0]
    for axis, n in enumerate(u.shape if width > 1 else ()):
        lines = np.moveaxis(u, axis, 0)[: n - n % width]  # cells beyond the last block say nothing
        u = np.moveaxis(lines.reshape(n // width, width, *lines.shape[1:]).mean(axis=1), 0, axis)
    if min(u.shape) < 3:
        return np.empty(0)
    total = np.zeros(np.array(u.shape) - 2)
    for axis, h in enumerate(record.dx):
        inner = [slice(1, -1)] * u.ndim
        inner[axis] = slice(None)
        total += np.diff(u, 2, axis=axis)[tuple(inner)] / (width * h) ** 2
    return known_values(total)


def check_survey(survey: Survey) -> None:
    """Refuse a record whose values are not a resolved order parameter."""
    if survey.two_valued:
        raise InputError(f"the record holds no more than {survey.distinct} different values: {MASK}")
    if max(abs(survey.low), abs(survey.high)) > TOO_LARGE:
        raise InputError(
            f"phase values run from {survey.low:.3g} to {survey.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1, or use phase_from_intensity"
        )
    if survey.cells is None:
        raise InputError(
            f"no interface is detected: values from {survey.low:.3g} to {survey.high:.3g} with noise "
            f"{survey.noise:.2g} look like one phase, like noise, or like steps sharper than a pixel; expected two "
            "phases and a resolved interface between them; record frames that contain one"
        )
    if survey.cells < TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {survey.cells:.1f} cells, expected at least "
            f"{TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )
