"""Survey: what a record looks like before any law is fitted: noise, phase coverage, interface width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.observation.looks import (
    FOURTH,
    GROUP,
    SLOPE,
    WIDTHS,
    Look,
    frame_slabs,
    look_at,
    look_spans,
    mean_square,
    space_noise,
)
from doublewell.record import Record
from doublewell.record.arrays import missing_fraction

_LEVEL = 0.9  # interface width is measured between the phase values -0.9 and 0.9
_VISITED = 0.01  # share of the interface's values that makes a phase bin count as visited
_CLEAR = 1.2  # mean square, in units of what noise alone makes, that shows a motion or a curvature
_FEW_VALUES = 3  # a movie with no more different values than these is a mask
_ONLY_NOISE = 1.25  # largest variance of a mean picture, in units of what noise alone makes, that shows no interface


@dataclass(frozen=True)
class Survey:
    """Measured properties of a record, from groups of frames spread over it.

    ``noise`` is the standard deviation of one pixel; ``low`` and ``high`` the 0.1 and 99.9 percentiles of u;
    ``histogram`` the share of all values in each of 20 equal bins of [-1, 1]; ``interface_width`` the distance
    from u = -0.9 to 0.9 across an interface, None when no interface is seen (one phase, or nothing but noise), and
    ``cells`` the same in cells of the coarsest axis; ``change`` the root mean square change of u from the first to
    the last look; ``growth`` the factor by which the contrast grows over the later half of the looks; ``pace`` the
    root mean square of u_t over that of the Laplacian of u, None where noise hides either: diffusion alone has
    the pace q; ``distinct`` how many different values the sample of pixels holds, 0 where that was not counted;
    ``missing`` the share of values that the record's mask leaves out: everything else is of the values that were
    observed.
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
        return tuple(bool(x) for x in (folded > 0.0) & (folded >= _VISITED * self.interface_share))

    @property
    def coverage(self) -> float:
        """The share of the phase bins that are visited."""
        return float(np.mean(self.visited))

    @property
    def unseen(self) -> tuple[tuple[float, float], ...]:
        """The ranges of |u| that are not visited, from the centre outwards."""
        bins = len(self.histogram) // 2
        edges = [k / bins for k in range(bins + 1)]
        ranges: list[tuple[float, float]] = []
        for k, seen in enumerate(self.visited[bins:]):
            if seen:
                continue
            start = ranges.pop()[0] if ranges and ranges[-1][1] == edges[k] else edges[k]
            ranges.append((start, edges[k + 1]))
        return tuple(ranges)

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
    looks: list[Look] = []
    _noise_method(record)  # refuses a record that is too small
    done = 0
    for start, stop in look_spans(record.frames):
        for _ in frame_slabs(record, done, start):  # no look holds these frames, but they too must be finite
            pass
        looks += [look for look in [look_at(record, start, stop)] if look is not None]
        done = stop
        if progress is not None:
            progress(stop, record.frames)
    return survey_of(record, looks, moved=_moved(looks), missing=_missing(record))


def survey_of(record: Record, looks: Sequence[Look], *, moved: float, missing: float) -> Survey:
    """Put together what the looks at a record saw; `moved` is the mean square change from the first to the last."""
    _check_not_constant(looks)
    method, spans = _noise_method(record), look_spans(record.frames)
    values = np.concatenate([look.values for look in looks])
    low, high = (float(x) for x in np.percentile(values, [0.1, 99.9]))
    rest = np.concatenate([look.rest for look in looks])
    if not rest.size:
        method, rest = "fourth differences in space", np.concatenate([space_noise(record, *span) for span in spans])
    _check_differences(rest)
    noise = float(1.4826 * np.median(np.abs(rest)))
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
        change=float(np.sqrt(moved)),
        growth=_growth(looks, noise),
        pace=_pace(looks, moved, record.dx, noise),
        distinct=int(np.unique(values).size),
        missing=missing,
    )


def _noise_method(record: Record) -> str:
    if record.frames >= GROUP:
        return "fourth differences in time"
    if record.mesh[-1] < len(FOURTH):
        raise InputError(
            f"{record.frames} frames of {record.mesh[-1]} cells are too few to measure noise: record at least 5 frames"
        )
    return "fourth differences in space"


def _missing(record: Record) -> float:
    """Return the share of all values that the mask leaves out; a stored mask is read frame by frame."""
    if record.mask is None:
        return 0.0
    known = missing_fraction(record.mask)
    return (
        float(np.mean([1.0 - record.observed(k, k + 1).mean() for k in range(record.frames)]))
        if known is None
        else known
    )


def _moved(looks: Sequence[Look]) -> float:
    """Return the mean square change from the first look to the last, of the pixels that both show."""
    return mean_square(looks[-1].mean - looks[0].mean) if looks else 0.0


def _check_differences(rest: Array) -> None:
    if not rest.size:
        raise InputError(
            "too little was observed to measure noise: expected five neighbouring values in time or along x that the "
            "mask leaves in; record more, or correct the mask (True = observed)"
        )


def _check_not_constant(looks: Sequence[Look]) -> None:
    if not looks:
        raise InputError(
            "the mask leaves no value in any of the frames that were looked at: expected True where a value was "
            "observed; correct the mask"
        )
    low, high = min(look.low for look in looks), max(look.high for look in looks)
    if low == high:
        raise InputError(
            f"the field is constant (u = {low + 0.0:g} everywhere): expected two phases and an interface between them"
        )


def _interface_width(looks: Sequence[Look], dx: tuple[float, ...], noise: float) -> float | None:
    """Return 2 atanh(0.9) / s with s the median slope of the later half of the looks that have an interface.

    Profiles relax in time, so the later half is closer to the law's own interface than the initial field. Where noise
    explains all that the mean pictures show, there is no interface.
    """
    if all(look.variance <= _ONLY_NOISE * noise**2 / look.frames for look in looks):
        return None
    slopes = [slope for slope in (_profile_slope(look, dx, noise) for look in looks) if slope > 0.0]
    return 2.0 * atanh(_LEVEL) / float(np.median(slopes[len(slopes) // 2 :])) if slopes else None


def _profile_slope(look: Look, dx: tuple[float, ...], noise: float) -> float:
    """Fit |grad u| = s (1 - u^2) over |u| < 0.8 to the mean of a group, weighted by |grad u|.

    The weight makes every crossing from phase to phase count the same, however wide it is.
    """
    floor = sum(np.sum(SLOPE**2) * noise**2 / look.frames / h**2 for h in dx)
    steep = np.maximum(look.squared - floor, 0.0)
    weight = float(np.sum(np.sqrt(steep) * look.bump))
    return float(np.sum(steep)) / weight if weight > 0.0 else 0.0


def _growth(looks: Sequence[Look], noise: float) -> float:
    """Return the contrast of the last look over that of the middle one, both without noise."""
    last, middle = (
        max(look.variance - noise**2 / look.frames, 0.0) for look in (looks[-1], looks[(len(looks) - 1) // 2])
    )
    return float(np.sqrt(last / middle)) if middle > 0.0 and last > 0.0 else 1.0


def _pace(looks: Sequence[Look], moved: float, dx: tuple[float, ...], noise: float) -> float | None:
    """Return the root mean square of u_t over that of the Laplacian; None where noise hides one of them.

    u_t is the change from first look to last over the time between them, and so on the low side. The Laplacian is taken
    on the finest mesh on which noise does not hide it.
    """
    first, last = looks[0], looks[-1]
    moved -= 2.0 * noise**2 / first.frames
    if last.time == first.time or moved <= _CLEAR * noise**2 / first.frames:
        return None
    floor = noise**2 * (4.0 * sum(h**-2 for h in dx) ** 2 + 2.0 * sum(h**-4 for h in dx)) / first.frames
    for level, width in enumerate(WIDTHS):
        curved, noisy = np.mean([look.curved[level] for look in looks]), floor / width ** (4 + len(dx))
        if curved > _CLEAR * noisy:
            return float(np.sqrt(moved / (curved - noisy)) / (last.time - first.time))
    return None


FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
COVERED = 0.9  # fraction of the phase range from which on a law counts as measured
TOO_FEW_CELLS = 2.5  # fewer are refused
TOO_LARGE = 3.0  # phase values beyond this are not an order parameter with noise
MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; use the "
    "grey values that the mask was made from"
)


def check_survey(seen: Survey) -> None:
    """Refuse a record whose values are not a resolved order parameter."""
    if seen.two_valued:
        raise InputError(f"the record holds no more than {seen.distinct} different values: {MASK}")
    if max(abs(seen.low), abs(seen.high)) > TOO_LARGE:
        raise InputError(
            f"phase values run from {seen.low:.3g} to {seen.high:.3g}: expected the pure phases at -1 and +1; "
            "rescale the field, for example u = 2*(i - low)/(high - low) - 1, or use phase_from_intensity"
        )
    if seen.cells is None:
        raise InputError(
            f"no interface is detected: values from {seen.low:.3g} to {seen.high:.3g} with noise {seen.noise:.2g} look "
            "like one phase, like noise, or like steps sharper than a pixel; expected two phases and a resolved "
            "interface between them; record frames that contain one"
        )
    if seen.cells < TOO_FEW_CELLS:
        raise InputError(
            f"the mesh is too coarse: an interface spans {seen.cells:.1f} cells, expected at least "
            f"{TOO_FEW_CELLS:g} (better {FEW_CELLS:g}); record with finer pixels"
        )
