"""Survey: what a record looks like before any law is fitted: noise, phase coverage, interface width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import atanh

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.observation.look import (
    FEW_FRAMES,
    SLOPE,
    WIDTHS,
    Look,
    frame_slabs,
    known_values,
    look_at,
    look_spans,
    mean_square,
    sample,
    space_noise,
)  # fmt: skip
from doublewell.record import Record
from doublewell.record.arrays import missing_fraction

FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
COVERED = 0.9  # fraction of the phase range from which on a law counts as measured
TOO_FEW_CELLS = 2.5  # fewer are refused
TOO_LARGE = 3.0  # phase values beyond this are not an order parameter with noise
MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; use the "
    "grey values that the mask was made from"
)
_LEVEL = 0.9  # interface width is measured between the phase values -0.9 and 0.9
_NOISY = 0.15  # part of the squared slopes that is noise, from which on coarser meshes are asked
_NARROWED = 1.25  # factor by which noise must narrow an interface for a coarser mesh to count
_SHOWN = 0.1  # part of the interface that a coarser mesh must show: blocks along a step have values of the phases only
_STEP = 2.0  # width of a step on a mesh, in its cells
_GONE = 0.3  # of the most interface that a frame has: less is what is left of a drop
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
    with the slope measured in the later half of the looks, less noise; where noise is strong, on a mesh of blocks of 2
    or 4 cells. `progress` gets (frames read, frames).
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
    return survey_of(record, looks, mean_square(change), sample(change, 0, change.size), missing)


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
        rest, method = space_noise(record), "space"
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

    Noise that is white in time and space is taken off. Thermal noise is neither, and has slopes of its own: it makes an
    interface look narrow, on coarser meshes less so. These are asked where noise is strong, and have a width to take
    off, that of a step: s^-2 adds up as variances do.
    """
    floor = float(np.sum(SLOPE**2) * noise**2 * np.sum(np.array(dx) ** -2.0))
    least, steep = _GONE if looks[0].frames <= 1.0 else 0.0, [look.squared for look in looks]
    noisy = [np.minimum(own, floor / look.frames) for own, look in zip(steep, looks, strict=True)]
    clear = [own - less for own, less in zip(steep, noisy, strict=True)]
    sums = [(float(np.sum(c)), float(np.sum(np.sqrt(c) * look.bump))) for c, look in zip(clear, looks, strict=True)]
    width = _median_width(sums, least)
    if width is None or not sum(map(np.sum, noisy)) > _NOISY * sum(map(np.sum, steep)):
        return width
    for n, cells in enumerate(WIDTHS[1:], 1):
        slopes, step = [look.slopes[n] for look in looks], _STEP * cells * max(dx)
        shown = cells ** len(dx) * sum([weight for _, weight in slopes]) > _SHOWN * sum([weight for _, weight in sums])
        coarse = _median_width(slopes, least) if shown else None
        if coarse is not None and coarse > TOO_FEW_CELLS / _STEP * step:
            own = float(np.sqrt(coarse**2 - step**2))
            width = own if own > _NARROWED * width else width
    return width


def _median_width(sums: Sequence[tuple[float, float]], least: float) -> float | None:
    """Return the width from sums of |grad u|^2 and |grad u| (1 - u^2) of each look."""
    seen = [(steep, weight) for steep, weight in sums if weight > 0.0]
    most = max([weight for _, weight in seen], default=0.0)
    slopes = [steep / weight for steep, weight in seen if weight >= least * most]
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
