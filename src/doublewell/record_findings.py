"""Findings about a movie itself: what its survey and its grey values show, before any law is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partialmethod
from itertools import pairwise
from math import atanh, sqrt

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, fastest_rate
from doublewell.errors import option
from doublewell.observation import COVERED, FEW_CELLS, MASK, TOO_FEW_CELLS, TOO_LARGE, Survey
from doublewell.observation.looks import GROUP
from doublewell.record import GreyQuality

Phases = tuple[float, float]
UNIT: Phases = (-1.0, 1.0)
_REACHED = 0.8  # of a pure phase
_GROWS = 1.1  # growth of the contrast over half the record that has not ended
_CENTRED = 0.3  # distance of the middle of the values from zero, in units of half their range
_SCALES = (1.0, 100.0, 255.0, 65535.0)  # white of the usual pictures
_NEAR = 0.1  # fraction of the range by which a picture may miss its scale
_FAST = 30.0  # pace in units of q: a drop has about 0.2, a spinodal start about 1 to 10
_GAPS = 0.05  # fraction of missing values that is worth a warning
_APART = 64.0  # q |G'| dt of frames too far apart, about twice what the trajectory fit refuses
_SEEN = 0.005  # fraction of the interface's values that shows a phase bin; with its mirror image it needs twice that
_FEW_STEPS = 40  # grey values between the plateaus
_FAR = 3e-3  # deficit of the bulk, in u
_GAP = 0.01  # different fading of the plateaus, in u
_SATURATED = 1e-3  # fraction of saturated values


class Severity(StrEnum):
    """How much a finding matters: not at all, look into it, do not use the numbers."""

    OK = "ok"
    CHECK = "check"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """Something that a reader of a result must know.

    ``code`` names it for programs, ``topic`` the question that it answers, ``numbers`` what it was decided by;
    ``where`` names the record or the tile that it is about, where there are several.
    """

    code: str
    severity: Severity
    topic: str
    sentence: str
    advice: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    where: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        mark = ";" if ": " in self.sentence else ":"
        return place + self.sentence + (f"{mark} {self.advice}" if self.advice else "")


class Topic(str):
    """The question that findings answer; ``topic.check(code, sentence, advice, numbers...)`` makes one."""

    __slots__ = ()

    def finding(self, severity: Severity, code: str, sentence: str, advice: str = "", **numbers: float) -> Finding:
        """Return a finding on this topic."""
        return Finding(code, severity, str(self), sentence, advice, numbers)

    ok = partialmethod(finding, Severity.OK)
    check = partialmethod(finding, Severity.CHECK)
    fail = partialmethod(finding, Severity.FAIL)


_movie, _grey = Topic("movie"), Topic("grey levels")


def pure_phases(phases: Phases) -> str:
    """Return the phase values of the wells as texts name them.

    >>> pure_phases((-1.0, 1.0)), pure_phases((0.0, 1.0))
    ('-1 and +1', '0 and 1')
    """
    return "-1 and +1" if phases == UNIT else f"{phases[0]:g} and {phases[1]:g}"


def survey_findings(survey: Survey, phases: Phases = UNIT) -> Iterator[Finding]:
    """Yield what in a movie prevents a fit or makes it worse; nothing when all is well. `survey` is in its units."""
    middle, half = 0.5 * (phases[0] + phases[1]), 0.5 * (phases[1] - phases[0])
    seen = replace(
        survey, noise=survey.noise / half, low=(survey.low - middle) / half, high=(survey.high - middle) / half,
        change=survey.change / half,
    )  # fmt: skip
    yield from _value_findings(survey, seen, phases)
    yield from _interface_findings(seen)
    if seen.missing > _GAPS:
        yield _movie.check(
            "values-missing",
            f"{100 * seen.missing:.3g} % of the values are missing: the weak-form fit uses only test functions that "
            "need none of them, the trajectory fit every value that was observed",
            missing=seen.missing,
        )
    if seen.coverage < COVERED:
        name = "|u|" if phases == UNIT else f"the distance from u = {middle:g}"
        where = " and ".join(f"{half * a:.2g} to {half * b:.2g}" for a, b in seen.unseen)
        yield _movie.check(
            "phase-range-not-covered",
            f"only {100 * seen.coverage:.0f} % of the phase range is visited: for {name} from {where} the law is not "
            "measured but extrapolated",
            coverage=seen.coverage,
        )
    if seen.noise > 0.1:
        apart = f"{survey.noise:.2g}; the phases are {2.0 * half:g} apart"
        advice = "average pixels or frames before a fit"
        yield _movie.check("noise-strong", f"the noise is strong ({apart})", advice, noise=survey.noise)
    if seen.change <= 3.0 * seen.noise * sqrt(2.0 / min(GROUP, seen.frames)):
        words = "the picture hardly changes from first to last"
        yield _movie.check("little-change", words, "record longer, or a shape that moves", change=survey.change)


def _value_findings(survey: Survey, seen: Survey, phases: Phases) -> Iterator[Finding]:
    """Yield what is wrong with the values; `seen` is the survey on the scale whose phases are -1 and +1."""
    if seen.two_valued:
        yield _movie.fail("two-valued", f"the picture holds no more than {seen.distinct} different values", MASK)
        return
    beyond, pure = max(-seen.low, seen.high), pure_phases(phases)
    scaling = _rescaling(seen) if phases == UNIT else ""
    scale = f"check the scale of the picture{scaling}"
    numbers = {"low": survey.low, "high": survey.high}
    if beyond > TOO_LARGE:
        advice = f"rescale the picture so that the pure phases lie at {pure}{scaling}; phase_from_intensity does it"
        words = f"values run from {survey.low:.3g} to {survey.high:.3g}, which are not phase values"
        yield _movie.fail("not-phase-values", words, advice, **numbers)
    elif beyond > 1.2 + 4.0 * seen.noise:
        value = survey.high if seen.high >= -seen.low else survey.low
        shown = abs(value) if phases == UNIT else value
        yield _movie.check(
            "values-beyond-phases",
            f"values reach {shown:.3g}, beyond the pure phases at {pure}",
            scale,
            **numbers,
        )
    elif min(-seen.low, seen.high) < _REACHED:
        if _unfinished(seen):
            yield _movie.check(
                "phases-still-forming",
                f"the pure phases are not reached yet (the values run from {survey.low:.2g} to {survey.high:.2g})",
                f"record longer, until {pure} are reached, because nothing is known of the law beyond these values; "
                "where the phases are there already, the scale of the picture is wrong",
                **numbers,
            )
            return
        lower = -seen.low < seen.high
        phase, value = (phases[0], survey.low) if lower else (phases[1], survey.high)
        shown_phase = f"{phase:+g}" if phases == UNIT else f"{phase:g}"
        words = f"the phase {shown_phase} is not reached (the values end at {value:.2g})"
        yield _movie.check("phase-not-reached", words, scale, **numbers)


def _unfinished(seen: Survey) -> bool:
    """Whether phases are still forming: values around zero, without two peaks or with a growing contrast."""
    middle, half = (seen.high + seen.low) / 2, (seen.high - seen.low) / 2
    return abs(middle) <= _CENTRED * half and (seen.growth > _GROWS or _one_peak(seen))


def _one_peak(seen: Survey) -> bool:
    """Whether most values lie in the middle third of their range; two phases have theirs at the ends."""
    edges = [-1.0 + 2.0 * k / len(seen.histogram) for k in range(len(seen.histogram) + 1)]
    centres = [(a + b) / 2 for a, b in pairwise(edges)]
    third = (seen.high - seen.low) / 6
    near = sum(share for u, share in zip(centres, seen.histogram, strict=True) if abs(u) < third)
    return near > 0.5 * sum(seen.histogram)


def _rescaling(seen: Survey) -> str:
    """Return what takes the values to -1 and +1; the percentiles reach three standard deviations too far."""
    low, high = seen.low + 3.0 * seen.noise, seen.high - 3.0 * seen.noise
    for white in _SCALES:
        if abs(low) < _NEAR * white and abs(high - white) < _NEAR * white:
            return f"; for a picture from 0 to {white:g}, {'2 u' if white == 1.0 else f'2 u / {white:g}'} - 1 is right"
    middle, half = (float(f"{x:.2g}") for x in ((low + high) / 2, (high - low) / 2))
    if half <= 0.0:
        return ""
    shift = "u" if abs(middle) < 0.05 * half else f"(u {'-' if middle > 0 else '+'} {abs(middle):g})"
    return f"; {shift} / {half:g} takes its values to -1 and +1"


def _interface_findings(seen: Survey) -> Iterator[Finding]:
    if seen.cells is None:
        yield _movie.fail("no-interface", "no interface is detected: the picture looks like one phase, or like noise")
    elif seen.cells < TOO_FEW_CELLS:
        words = f"an interface spans {seen.cells:.1f} pixels: too few for any fit"
        yield _movie.fail("interface-unresolved", words, "use a higher magnification", cells=seen.cells)
    elif seen.cells < FEW_CELLS:
        words = f"an interface spans {seen.cells:.1f} pixels; {FEW_CELLS:g} or more are better"
        yield _movie.check("interface-few-cells", words, cells=seen.cells)


def weak_mesh_findings(seen: Survey) -> Iterator[Finding]:
    """Yield what few cells across an interface cost the weak-form fit; the trajectory fit is far less affected."""
    if seen.cells is not None and TOO_FEW_CELLS <= seen.cells < FEW_CELLS:
        yield _movie.check(
            "weak-mesh-coarse",
            f"with an interface of {seen.cells:.1f} pixels and noise the weak-form fit has a force error of ten "
            "percent or more",
            f"use {option('method', 'trajectory')}, or a higher magnification",
            cells=seen.cells,
        )


def pace_findings(
    seen: Survey, q: float | None, dt: float | None, dynamics: Dynamics = ALLEN_CAHN
) -> Iterator[Finding]:
    """Yield that dt, dx and q do not belong together: a picture too fast for q, or frames too far apart.

    A tanh profile of this width belongs to the quartic law with |G'| up to 4 s^2, s = 2 atanh(0.9) / width. `q` is None
    where it is not given, `dt` where frames are not evenly spaced. The pace is measured against the Laplacian: it is
    compared for equations of second order.
    """
    if q is None:
        return
    if dynamics.order == 2 and seen.pace is not None and seen.pace > _FAST * q:
        yield _movie.check(
            "change-too-fast",
            f"the picture changes {seen.pace / q:.2g} times as fast as its own diffusion, q Laplacian u, with "
            f"q = {q:.3g}; expected a few times at most",
            "check the units of dt, dx and q",
            ratio=seen.pace / q,
        )
    if seen.interface_width is not None and dt is not None:
        slope = 4.0 * (2.0 * atanh(0.9) / seen.interface_width) ** 2
        waves = [np.linspace(0.0, 2.0 * np.sqrt(slope), 201)]
        action = dt * q * fastest_rate(dynamics, waves, slope)
        if action > _APART:
            yield _movie.check(
                "frames-far-apart",
                f"the frames are too far apart for dt = {dt:.3g} and q = {q:.3g}: an interface of this width settles "
                f"about {action:.2g} times from one frame to the next, expected at most {_APART:g}",
                "check the units of dt, dx and q, or record more often",
                action=action,
            )


def one_sided_findings(seen: Survey, phases: Phases) -> Iterator[Finding]:
    """Yield which phase values are known only by their mirror image, which tells nothing about asymmetric wells."""
    shares = np.array(seen.histogram)
    missing = np.array(seen.visited) & (shares < _SEEN * seen.interface_share)
    if not missing.any():
        return
    edges = np.linspace(*phases, shares.size + 1)
    first, last = np.flatnonzero(missing)[[0, -1]]
    low, high = float(edges[first]), float(edges[last + 1])
    yield _movie.check(
        "phase-range-one-sided",
        f"some phase values between {low:.2g} and {high:.2g} are hardly visited, only their mirror images: that tells "
        "nothing where the wells are asymmetric",
        "record frames that show them",
        low=low,
        high=high,
    )


def grey_findings(grey: GreyQuality) -> Iterator[Finding]:
    """Yield what weakens phase values that were made from grey values; nothing when all is well."""
    for share, value in zip(grey.saturated, grey.limits, strict=True):
        if share > _SATURATED:
            yield _grey.check(
                "grey-saturated",
                f"{100 * share:.1f} % of the values are at the limit {value:g} of the camera or the file: that plateau "
                "is cut off and its level wrong",
                "record with less light or another range",
                fraction=share,
            )
    if grey.steps < _FEW_STEPS:
        yield _grey.check(
            "grey-few-steps",
            f"only {grey.steps:.0f} grey values lie between the plateaus: phase values come in steps of "
            f"{2 / grey.steps:.2g}",
            "record with more contrast or more bits",
            steps=grey.steps,
        )
    for name, deficit in zip(("low", "high"), grey.deficit, strict=True):
        if deficit > _FAR:
            yield _grey.check(
                "grey-plateau-narrow",
                f"no pixel of the {name} plateau lies far from an interface: its level may be off by {deficit:.2g} in "
                "u, which the error of the levels includes",
                f"a larger picture or {option('levels')} is better",
                deficit=deficit,
            )
    if grey.fade_gap > _GAP and not grey.bleaching:
        words = f"the contrast changes by {grey.fade_gap:.2g} in u over the record"
        advice = "if the light or the dye fades, convert with phase_from_intensity(..., bleaching=True) in Python"
        yield _grey.check("grey-fading", words, advice, gap=grey.fade_gap)
    elif grey.fade_gap > _GAP:
        words = f"the two plateaus fade differently (by {grey.fade_gap:.2g} in u)"
        advice = f"give phase_from_intensity dark=, the camera's value without light, which is {grey.dark:g} here"
        yield _grey.check("grey-fading-unequal", words, advice, gap=grey.fade_gap)
    if grey.moved is not None:
        yield _grey.check(
            "grey-frames-moved",
            f"frames were moved back by up to {grey.moved:.2f} pixels and interpolated: noise of neighbours is "
            "correlated, and bands of the trajectory fit are then too narrow",
            pixels=grey.moved,
        )
