"""Survey: what a record looks like before any law is fitted: noise, phase coverage, interface width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import atanh, gcd, sqrt

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.record import Record

__all__ = ["FEW_CELLS", "LARGE", "TOO_FEW_CELLS", "Survey", "survey", "survey_notes"]

FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
TOO_FEW_CELLS = 2.5  # fewer are refused
LARGE = 3.0  # phase values beyond this are no order parameter with noise

_LEVEL = 0.9  # interface width is measured between the phase values -0.9 and 0.9
_BINS = 20
_LOOKS = 12  # groups of frames that are looked at, spread over the record
_GROUP = 5  # frames per look: one fourth difference in time
_SAMPLE = 2**14  # pixels of one look that enter the medians; smaller frames enter whole
_READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size
_VISITED = 0.01  # share of the interface's values that makes a phase bin count as visited
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_SLOPE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_ONLY_NOISE = 1.25  # largest variance of a mean picture, in units of what noise alone makes, that shows no interface


@dataclass(frozen=True)
class Survey:
    """Measured properties of a record, from groups of frames spread over it.

    ``noise`` is the standard deviation of one pixel; ``low`` and ``high`` the 0.1 and 99.9 percentiles of u;
    ``histogram`` the share of all values in each of 20 equal bins of [-1, 1]; ``interface_width`` the distance
    from u = -0.9 to 0.9 across an interface, None when no interface is seen (one phase, or nothing but noise), and
    ``cells`` the same in cells of the coarsest axis; ``change`` the root mean square change of u from the first to
    the last look.
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

    @property
    def visited(self) -> tuple[bool, ...]:
        """For each of the 20 phase bins whether it, or its mirror image, holds 1 % of the interface's values.

        The force is odd, so a value tells as much about its mirror image. Bulk does not count: however large it is, the
        values between the pure phases determine the law.
        """
        folded = np.array(self.histogram) + np.array(self.histogram[::-1])
        return tuple(bool(x) for x in (folded > 0.0) & (folded >= _VISITED * self.interface_share))

    @property
    def coverage(self) -> float:
        """The share of the phase bins that are visited."""
        return float(np.mean(self.visited))

    @property
    def interface_share(self) -> float:
        """The share of all values between -0.9 and 0.9."""
        return float(sum(self.histogram[1:-1]))


def survey(record: Record, *, progress: Progress | None = None) -> Survey:
    """Look at a record: groups of five frames spread over it (all frames when there are fewer than five).

    Every frame is read, part by part, and must be finite; no more than a part is held. Noise comes from fourth
    differences in time, which a smooth evolution leaves nearly empty (in space, with fewer than five frames), by the
    median absolute deviation. The interface width is that of the tanh profile with the slope measured in the later half
    of the looks, the noise's share of the squared gradient taken off. `progress` is called with (frames read, frames).
    """
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=)")
    looks, method = [], _noise_method(record)
    done = 0
    for start, stop in _looks(record.frames):
        for _ in _slabs(record, done, start):  # no look holds these frames, but they too must be finite
            pass
        looks.append(_look(record, start, stop))
        done = stop
        if progress is not None:
            progress(stop, record.frames)
    _check_not_constant(looks)
    values = np.concatenate([look.values for look in looks])
    low, high = (float(x) for x in np.percentile(values, [0.1, 99.9]))
    noise = float(1.4826 * np.median(np.abs(np.concatenate([look.rest for look in looks]))))
    width = _interface_width(looks, record.dx, noise)
    size = sum(look.size for look in looks)
    return Survey(
        frames=record.frames,
        mesh=record.mesh,
        noise=noise,
        noise_method=method,
        low=low,
        high=high,
        histogram=tuple(float(c) / size for c in np.sum([look.counts for look in looks], axis=0)),
        interface_width=width,
        cells=None if width is None else width / max(record.dx),
        change=float(np.sqrt(np.mean((looks[-1].mean - looks[0].mean) ** 2))),
    )


def survey_notes(seen: Survey) -> tuple[str, ...]:
    """Say what in a survey stands in the way of a fit, or makes it worse; nothing when all is well."""
    return (*_value_notes(seen), *_interface_notes(seen), *_quality_notes(seen))


def _value_notes(seen: Survey) -> Iterator[str]:
    beyond = max(-seen.low, seen.high)
    scale = f"check the scale of the picture{_rescaling(seen)}"
    if beyond > LARGE:
        yield (
            f"values run from {seen.low:.3g} to {seen.high:.3g}: these are no phase values; rescale the picture so "
            "that the pure phases lie at -1 and +1"
        )
    elif beyond > 1.2 + 4.0 * seen.noise:
        yield f"values reach {beyond:.3g}, beyond the pure phases at -1 and +1: {scale}"
    elif min(-seen.low, seen.high) < 0.8:
        phase, value = ("-1", seen.low) if -seen.low < seen.high else ("+1", seen.high)
        yield f"the phase {phase} is not reached (the values end at {value:.2g}): {scale}"


def _rescaling(seen: Survey) -> str:
    """Say what takes the ends of the values to -1 and +1; the percentiles reach three standard deviations too far."""
    low, high = seen.low + 3.0 * seen.noise, seen.high - 3.0 * seen.noise
    middle, half = (float(f"{x:.2g}") for x in ((low + high) / 2, (high - low) / 2))
    if half <= 0.0:
        return ""
    shift = "u" if abs(middle) < 0.05 else f"(u {'-' if middle > 0 else '+'} {abs(middle):g})"
    return f"; {shift} / {half:g} takes its values to -1 and +1"


def _interface_notes(seen: Survey) -> Iterator[str]:
    if seen.cells is None:
        yield "no interface is seen: the picture looks like one phase, or like noise"
    elif seen.cells < TOO_FEW_CELLS:
        yield f"an interface spans {seen.cells:.1f} pixels: too few for any fit; use a higher magnification"
    elif seen.cells < FEW_CELLS:
        yield (
            f"an interface spans {seen.cells:.1f} pixels; {FEW_CELLS:g} or more are better: with noise expect a force "
            "error of ten percent or more"
        )


def _quality_notes(seen: Survey) -> Iterator[str]:
    if seen.coverage < 0.9:
        yield f"only {100 * seen.coverage:.0f} % of the phase range is visited: the law is extrapolated elsewhere"
    if seen.noise > 0.1:
        yield f"the noise is strong ({seen.noise:.2g}; the phases are 2 apart): average pixels or frames before a fit"
    if seen.change <= 3.0 * seen.noise * sqrt(2.0 / min(_GROUP, seen.frames)):
        yield "the picture hardly changes from first to last: record longer, or a shape that moves"


@dataclass(frozen=True, eq=False)
class _Look:
    """What one group of frames leaves behind: counts, and samples of bounded size.

    ``values`` are pixels of the middle frame, ``rest`` fourth differences of unit noise gain, ``squared`` and
    ``bump`` the squared gradient and 1 - u^2 of the mean picture where |u| < 0.8. Only the first and the last
    look keep their mean picture.
    """

    frames: int
    size: int
    counts: NDArray[np.int64]
    low: float
    high: float
    values: Array
    rest: Array
    squared: Array
    bump: Array
    variance: float
    mean: Array


def _looks(frames: int) -> list[tuple[int, int]]:
    size = min(_GROUP, frames)
    starts = np.unique(np.linspace(0, frames - size, min(_LOOKS, frames - size + 1)).round().astype(int))
    return [(int(start), int(start) + size) for start in starts]


def _slabs(record: Record, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Read frames start..stop-1 in small parts: pairs of first frame and slab; none where start >= stop."""
    size = max(1, _READ_BYTES // (8 * int(np.prod(record.mesh))))
    for first in range(start, stop, size):
        yield first, record.slab(first, min(first + size, stop))


def _look(record: Record, start: int, stop: int) -> _Look:
    """Look at frames start..stop-1 one by one; no more than a part of them is held."""
    mean, samples, middle = np.zeros(record.mesh), [], np.empty(0)
    for first, slab in _slabs(record, start, stop):
        for k, frame in enumerate(slab, first):
            mean += frame
            samples.append(_sample(frame) if stop - start == _GROUP else _sample(_across(frame)))
            middle = frame if k == (start + stop) // 2 else middle
    mean /= stop - start
    squared, bump = _gradient(mean, record.dx)
    rest = _FOURTH @ np.stack(samples) if stop - start == _GROUP else np.concatenate(samples)
    return _Look(
        frames=stop - start,
        size=middle.size,
        counts=np.histogram(middle, bins=_BINS, range=(-1.0, 1.0))[0],
        low=float(middle.min()),
        high=float(middle.max()),
        values=_sample(middle),
        rest=rest / np.linalg.norm(_FOURTH),
        squared=_sample(squared),
        bump=_sample(bump),
        variance=float(mean.var()),
        mean=mean if start == 0 or stop == record.frames else np.empty(0),
    )


def _sample(values: Array) -> Array:
    """Copy every step-th value, at most _SAMPLE of them; the step shares no factor with the usual row lengths."""
    step = max(1, -(-values.size // _SAMPLE))
    while step > 1 and gcd(step, 30) > 1:
        step += 1
    return values.reshape(-1)[::step].copy()


def _across(frame: Array) -> Array:
    """Return fourth differences along the last axis."""
    cells = frame.shape[-1] - len(_FOURTH) + 1
    return np.asarray(sum(c * frame[..., k : k + cells] for k, c in enumerate(_FOURTH)))


def _noise_method(record: Record) -> str:
    if record.frames >= _GROUP:
        return "fourth differences in time"
    if record.mesh[-1] < len(_FOURTH):
        raise InputError(
            f"{record.frames} frames of {record.mesh[-1]} cells are too few to measure noise: record at least 5 frames"
        )
    return "fourth differences in space"


def _check_not_constant(looks: list[_Look]) -> None:
    low, high = min(look.low for look in looks), max(look.high for look in looks)
    if low == high:
        raise InputError(
            f"the field is constant (u = {low + 0.0:g} everywhere): expected two phases and an interface between them"
        )


def _gradient(u: Array, dx: tuple[float, ...]) -> tuple[Array, Array]:
    """Return |grad u|^2 by fourth-order differences and 1 - u^2, both where |u| < 0.8."""
    if min(u.shape) < len(_SLOPE):
        return np.empty(0), np.empty(0)
    inner = u[(slice(2, -2),) * u.ndim]
    near = np.abs(inner) < 0.8
    squared = np.zeros(int(np.count_nonzero(near)))
    for axis, h in enumerate(dx):
        squared += sum(c * _moved(u, axis, k)[near] for k, c in enumerate(_SLOPE) if c) ** 2 / h**2
    return squared, 1.0 - inner[near] ** 2


def _moved(u: Array, axis: int, k: int) -> Array:
    """Return the part of u without its two outer cells, moved by k - 2 cells along one axis."""
    window = [slice(2, n - 2) for n in u.shape]
    window[axis] = slice(k, u.shape[axis] - 4 + k)
    return u[tuple(window)]


def _interface_width(looks: list[_Look], dx: tuple[float, ...], noise: float) -> float | None:
    """Return 2 atanh(0.9) / s with s the median slope of the later half of the looks that have an interface.

    Profiles relax in time, so the later half is closer to the law's own interface than the initial field. Where noise
    explains all that the mean pictures show, there is no interface.
    """
    if all(look.variance <= _ONLY_NOISE * noise**2 / look.frames for look in looks):
        return None
    slopes = [slope for slope in (_profile_slope(look, dx, noise) for look in looks) if slope > 0.0]
    return 2.0 * atanh(_LEVEL) / float(np.median(slopes[len(slopes) // 2 :])) if slopes else None


def _profile_slope(look: _Look, dx: tuple[float, ...], noise: float) -> float:
    """Fit |grad u| = s (1 - u^2) over |u| < 0.8 to the mean of a group, weighted by |grad u|.

    The weight makes every crossing from phase to phase count the same, however wide it is.
    """
    floor = sum(np.sum(_SLOPE**2) * noise**2 / look.frames / h**2 for h in dx)
    steep = np.maximum(look.squared - floor, 0.0)
    weight = float(np.sum(np.sqrt(steep) * look.bump))
    return float(np.sum(steep)) / weight if weight > 0.0 else 0.0
