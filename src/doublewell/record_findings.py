"""Findings about a movie: what its survey and its grey values show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partialmethod
from math import atanh, prod, sqrt

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, fastest_rate
from doublewell.errors import option
from doublewell.hints import Array
from doublewell.observation import COVERED, FEW_CELLS, MASK, TOO_FEW_CELLS, TOO_LARGE, Survey
from doublewell.observation.look import FEW_FRAMES, GROUP
from doublewell.record import GreyQuality, Note, Record

Phases = tuple[float, float]
UNIT: Phases = (-1.0, 1.0)
_REACHED = 0.8  # of a pure phase
_GROWS = 1.1  # growth of the contrast over half the record that has not ended
_CENTRED = 0.3  # distance of the middle of the values from zero, in units of half their range
_SCALES = (1.0, 100.0, 255.0, 65535.0)  # white of the usual pictures
_NEAR = 0.1  # fraction of the range by which a picture may miss its scale
_FAST = 30.0  # pace in units of q: a drop has about 0.2, a spinodal start about 1 to 10
_STANDS_OUT = 6.0  # standard deviations of noise, of the 99.9 percentile of the change: noise alone has 3.3
_BORDER = 3.0  # mean square jump across a border, over the largest between neighbours inside, that is not periodic
_KINK = 10.0  # the same of the difference from what the neighbours on either side lead to; at most 3.6 of good records
_TINY = 1e-3  # of the largest value: a difference that tells nothing
_BLURS = 2  # smoothings (1, 2, 1) before derivatives are taken
_EXPLAINS = 0.1  # fraction of the changes along the axis that is the time, at least
_SAME = 1e-6  # of the values: columns that are stored twice
_LIKE = 2.0  # factor between first differences along axes of space
_LAYOUT = 2**20  # values from which the axes are distinguished
_GAPS = 0.05  # fraction of missing values that is worth a warning
_APART = 64.0  # q |G'| dt of frames far apart: mostly a wrong unit
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
    unit = survey.scaled(1.0 / half, -middle / half)
    yield from _value_findings(survey, unit, phases)
    if unit.cells is None:
        words = "no interface is detected: the picture looks like one phase, or like noise"
        yield _movie.fail("no-interface", words)
    elif unit.cells < TOO_FEW_CELLS:
        words, advice = f"an interface spans {unit.cells:.1f} pixels: too few for any fit", "use a higher magnification"
        yield _movie.fail("interface-unresolved", words, advice, cells=unit.cells)
    elif unit.cells < FEW_CELLS:
        words = f"an interface spans {unit.cells:.1f} pixels; {FEW_CELLS:g} or more are better"
        yield _movie.check("interface-few-cells", words, cells=unit.cells)
    if unit.missing > _GAPS:
        words = (
            f"{100 * unit.missing:.3g} % of the values are missing: the weak-form fit uses only test functions that "
            "need none of them, the trajectory fit every value that was observed"
        )
        yield _movie.check("values-missing", words, missing=unit.missing)
    if unit.coverage < COVERED:
        name = "|u|" if phases == UNIT else f"the distance from u = {middle:g}"
        where = " and ".join(f"{half * a:.2g} to {half * b:.2g}" for a, b in unit.unseen)
        words = (
            f"only {100 * unit.coverage:.0f} % of the phase range is visited: for {name} from {where} the law is not "
            "measured but extrapolated"
        )
        yield _movie.check("phase-range-not-covered", words, coverage=unit.coverage)
    if unit.noise > 0.1:
        words = f"the noise is strong ({survey.noise:.2g}; the phases are {2.0 * half:g} apart)"
        yield _movie.check("noise-strong", words, "average pixels or frames before a fit", noise=survey.noise)
    unseen = unit.noise * sqrt(2.0 / (1 if unit.frames < FEW_FRAMES else GROUP))
    if unit.change <= 3.0 * unseen and unit.peak <= _STANDS_OUT * unseen:
        words = "the picture hardly changes from first to last"
        yield _movie.check("little-change", words, "record longer, or a shape that moves", change=survey.change)


def _value_findings(survey: Survey, unit: Survey, phases: Phases) -> Iterator[Finding]:
    """Yield what is wrong with the values; `unit` is the survey on the scale whose phases are -1 and +1."""
    if unit.two_valued:
        words = f"the picture holds no more than {unit.distinct} different values"
        yield _movie.fail("two-valued", words, MASK)
        return
    beyond, pure = max(-unit.low, unit.high), pure_phases(phases)
    scaling = _rescaling(unit) if phases == UNIT else ""
    scale = f"check the scale of the picture{scaling}"
    numbers = {"low": survey.low, "high": survey.high}
    if beyond > TOO_LARGE:
        advice = f"rescale the picture so that the pure phases lie at {pure}{scaling}; phase_from_intensity does it"
        words = f"values run from {survey.low:.3g} to {survey.high:.3g}, which are not phase values"
        yield _movie.fail("not-phase-values", words, advice, **numbers)
    elif beyond > 1.2 + 4.0 * unit.noise:
        value = survey.high if unit.high >= -unit.low else survey.low
        words = f"values reach {abs(value) if phases == UNIT else value:.3g}, beyond the pure phases at {pure}"
        yield _movie.check("values-beyond-phases", words, scale, **numbers)
    elif min(-unit.low, unit.high) < _REACHED and _unfinished(unit):
        words = f"the pure phases are not reached yet (the values run from {survey.low:.2g} to {survey.high:.2g})"
        advice = (
            f"record longer, until {pure} are reached, because nothing is known of the law beyond these values; where "
            "the phases are there already, the scale of the picture is wrong"
        )
        yield _movie.check("phases-still-forming", words, advice, **numbers)
    elif min(-unit.low, unit.high) < _REACHED:
        phase, value = (phases[0], survey.low) if -unit.low < unit.high else (phases[1], survey.high)
        name = f"{phase:+g}" if phases == UNIT else f"{phase:g}"
        words = f"the phase {name} is not reached (the values end at {value:.2g})"
        yield _movie.check("phase-not-reached", words, scale, **numbers)


def _unfinished(unit: Survey) -> bool:
    """Whether phases are still forming: values around zero, with a growing contrast or without two peaks.

    Two phases have most values at the ends of their range, one peak has them in its middle third.
    """
    middle, half, bins = (unit.high + unit.low) / 2, (unit.high - unit.low) / 2, len(unit.histogram)
    centres, weights = (2.0 * np.arange(bins) + 1.0) / bins - 1.0, np.array(unit.histogram)
    one_peak = weights[np.abs(centres) < half / 3].sum() > 0.5 * weights.sum()
    return abs(middle) <= _CENTRED * half and bool(unit.growth > _GROWS or one_peak)


def _rescaling(unit: Survey) -> str:
    """Return what takes the values to -1 and +1; the percentiles reach three standard deviations too far."""
    low, high = unit.low + 3.0 * unit.noise, unit.high - 3.0 * unit.noise
    for white in _SCALES:
        if abs(low) < _NEAR * white and abs(high - white) < _NEAR * white:
            return f"; for a picture from 0 to {white:g}, {'2 u' if white == 1.0 else f'2 u / {white:g}'} - 1 is right"
    middle, half = (float(f"{x:.2g}") for x in ((low + high) / 2, (high - low) / 2))
    if half <= 0.0:
        return ""
    shift = "u" if abs(middle) < 0.05 * half else f"(u {'-' if middle > 0 else '+'} {abs(middle):g})"
    return f"; {shift} / {half:g} takes its values to -1 and +1"


def weak_mesh_findings(survey: Survey) -> Iterator[Finding]:
    """Yield what few cells across an interface cost the weak-form fit; the trajectory fit is far less affected."""
    if survey.cells is not None and TOO_FEW_CELLS <= survey.cells < FEW_CELLS:
        words = (
            f"with an interface of {survey.cells:.1f} pixels and noise the weak-form fit has a force error of ten "
            "percent or more"
        )
        advice = f"use {option('method', 'trajectory')}, or a higher magnification"
        yield _movie.check("weak-mesh-coarse", words, advice, cells=survey.cells)


def pace_findings(
    survey: Survey, q: float | None, dt: float | None, dynamics: Dynamics = ALLEN_CAHN
) -> Iterator[Finding]:
    """Yield that dt, dx and q do not belong together: a picture too fast for q, or frames too far apart.

    A tanh profile of this width belongs to the quartic law with |G'| up to 4 s^2, s = 2 atanh(0.9) / width. `q` is None
    where it is not given, `dt` where frames are not evenly spaced. The pace is measured against the Laplacian: it is
    compared for equations of second order.
    """
    if q is None:
        return
    if dynamics.order == 2 and survey.pace is not None and survey.pace > _FAST * q:
        words = (
            f"the picture changes {survey.pace / q:.2g} times as fast as its own diffusion, q Laplacian u, with "
            f"q = {q:.3g}; expected a few times at most"
        )
        yield _movie.check("change-too-fast", words, "check the units of dt, dx and q", ratio=survey.pace / q)
    if survey.interface_width is not None and dt is not None:
        slope = 4.0 * (2.0 * atanh(0.9) / survey.interface_width) ** 2
        action = dt * q * fastest_rate(dynamics, [np.linspace(0.0, 2.0 * np.sqrt(slope), 201)], slope)
        if action > _APART:
            words = (
                f"the frames are far apart for dt = {dt:.3g} and q = {q:.3g}: an interface of this width settles "
                f"about {action:.2g} times from one frame to the next, expected at most {_APART:g}; a fit follows it "
                "through all of them, and takes long"
            )
            advice = "check the units of dt, dx and q, or record more often"
            yield _movie.check("frames-far-apart", words, advice, action=action)


def layout_findings(record: Record) -> Iterator[Finding]:
    """Yield what the axes of a record show: a border that is not periodic, a period stored twice, a wrong time axis.

    Space is isotropic: where the frames differ as neighbouring pixels along one axis do, and pixels along another axis
    hardly differ, that other axis may be the time. It is where the changes along it are those of u_t = q Laplacian u +
    f(u) and those of the frames are not. A fit of such a record, or over a border that is not periodic, has no answer:
    these two are of severity "fail".
    """
    frames = max(FEW_FRAMES, min(record.frames, _LAYOUT // prod(record.mesh)))
    start = max(0, (record.frames - frames) // 2)
    u = record.slab(start, min(record.frames, start + frames))
    if record.mask is not None or len(u) < GROUP or min(u.shape) < GROUP:
        return
    names = "zyx"[-len(record.mesh) :]
    fourth = [np.mean(np.diff(u, 4, axis=axis) ** 2) / 70.0 for axis in range(u.ndim)]  # 70: squared weights
    squares = [float(np.mean(np.diff(u, axis=axis) ** 2)) for axis in range(u.ndim)]
    for axis, name in enumerate(names, 1) if record.boundary == "periodic" else ():
        lines = np.moveaxis(u, axis, 0)
        across = float(np.mean((lines[0] - lines[-1]) ** 2))
        inside = np.mean(np.diff(lines, axis=0) ** 2, axis=tuple(range(1, u.ndim)))
        least, mirrored = (_SAME * float(np.max(np.abs(u)))) ** 2, float(np.mean((lines[1] - lines[-2]) ** 2))
        if across <= least < mirrored:  # a mirror image in the middle of cells has both
            words = f"the first and the last line of pixels along {name} are the same: both ends of a period are stored"
            advice = f"pass {option('nodes', True)} to Record or open_record, which leaves the last one out"
            yield _movie.check("period-stored-twice", words, advice, jump=across)
        elif across > _BORDER * float(np.max(inside)) or _kink(lines) > _KINK:
            words = (
                f"the picture jumps by {sqrt(across):.2g} (root mean square) across the periodic border along {name}, "
                f"and by {sqrt(float(np.max(inside))):.2g} at most between neighbours inside; expected no more than "
                "there"
            )
            advice = (
                f"the record is a part of the domain, or has another boundary: leave {option('boundary')} out, then it "
                "is a window; or uneven light was left in its values"
            )
            yield _movie.fail("border-not-periodic", words, advice, jump=sqrt(across))
    in_time, *in_space = np.maximum(np.array(squares) - 2.0 * min(fourth), 0.0)
    slow = int(np.argmin(in_space))
    others = np.delete(in_space, slow)
    isotropic = np.all(others < _LIKE**2 * in_time) and np.all(in_time < _LIKE**2 * others)
    if others.size and isotropic and in_space[slow] * _LIKE**2 < in_time:
        declared, other = _explained(u, 0), _explained(u, slow + 1)
        sure, axes = other > _EXPLAINS and declared < other / _LIKE**2, f"(t, {', '.join(names)})"
        words = (
            f"frames differ as much as neighbouring pixels do, and pixels along {names[slow]} differ far less: the "
            f"time axis {'is' if sure else 'may be'} {names[slow]}, expected the axes {axes}"
        )
        advice = f"{'change' if sure else 'check'} the order of the axes ({option('axes')} of a file)"
        severity, ratio = Severity.FAIL if sure else Severity.CHECK, float(np.sqrt(in_space[slow] / in_time))
        yield _movie.finding(severity, "axes-swapped", words, advice, ratio=ratio)


def _kink(lines: Array) -> float:
    """Return how far jumps at a periodic border are from what their neighbours lead to, over the most inside; squares.

    Of a smooth field a difference follows from the two on either side to fourth order, at the border too. Frames are
    the later half: a first field may have a kink there, which diffuses.
    """
    lines = lines[:, lines.shape[1] // 2 :]
    jumps = np.roll(lines, -1, 0) - lines
    near, far = (np.roll(jumps, k, 0) + np.roll(jumps, -k, 0) for k in (1, 2))
    rest = np.mean((jumps - (9.0 * near - far) / 16.0) ** 2, axis=tuple(range(1, lines.ndim)))
    least = (_TINY * float(np.max(np.abs(lines)))) ** 2
    return float(np.max(rest[[-3, -2, -1, 0, 1]])) / max(float(np.max(rest[2:-3])), least)


def _explained(u: Array, axis: int) -> float:
    """Return the fraction of the changes along an axis that u_t = q Laplacian u + f(u) explains, f of degree five."""
    for k in range(u.ndim):
        for _ in range(_BLURS):
            lines = np.moveaxis(u, k, 0)
            u = np.moveaxis(0.25 * lines[:-2] + 0.5 * lines[1:-1] + 0.25 * lines[2:], 0, k)
    u = np.moveaxis(u, axis, 0)
    inner = (slice(1, -1),) * u.ndim
    change, field = (u[2:] - u[:-2])[(slice(None), *inner[1:])].ravel(), u[inner].ravel()
    columns = [field**power for power in (0, 1, 2, 3, 5)]
    for k in range(1, u.ndim):
        low, high = ((*inner[:k], part, *inner[k + 1 :]) for part in (slice(None, -2), slice(2, None)))
        columns.append((u[low] + u[high]).ravel() - 2.0 * field)
    design = np.stack(columns, axis=1)
    rest = change - design @ np.linalg.lstsq(design, change, rcond=None)[0]
    return 1.0 - float(np.var(rest) / max(float(np.var(change)), 1e-300))


def one_sided_findings(survey: Survey, phases: Phases) -> Iterator[Finding]:
    """Yield which phase values are known only by their mirror image, which tells nothing about asymmetric wells."""
    weights = np.array(survey.histogram)
    missing = np.flatnonzero(np.array(survey.visited) & (weights < _SEEN * survey.interface_fraction))
    if missing.size:
        edges = np.linspace(*phases, weights.size + 1)
        low, high = float(edges[missing[0]]), float(edges[missing[-1] + 1])
        words = (
            f"some phase values between {low:.2g} and {high:.2g} are hardly visited, only their mirror images: that "
            "tells nothing where the wells are asymmetric"
        )
        yield _movie.check("phase-range-one-sided", words, "record frames that show them", low=low, high=high)


def note_findings(notes: Iterable[Note]) -> Iterator[Finding]:
    """Yield what was done to the values when they were read, where it matters to a result."""
    yield from (_movie.check(note.code, note.sentence) for note in notes if note.matters)


def grey_findings(grey: GreyQuality) -> Iterator[Finding]:
    """Yield what weakens phase values that were made from grey values; nothing when all is well."""
    for fraction, value in zip(grey.saturated, grey.limits, strict=True):
        if fraction > _SATURATED:
            words = (
                f"{100 * fraction:.1f} % of the values are at the limit {value:g} of the camera or the file: that "
                "plateau is cut off and its level wrong"
            )
            yield _grey.check("grey-saturated", words, "record with less light or another range", fraction=fraction)
    if grey.steps < _FEW_STEPS:
        words = (
            f"only {grey.steps:.0f} grey values lie between the plateaus: phase values come in steps of "
            f"{2 / grey.steps:.2g}"
        )
        yield _grey.check("grey-few-steps", words, "record with more contrast or more bits", steps=grey.steps)
    for name, deficit in zip(("low", "high"), grey.deficit, strict=True):
        if deficit > _FAR:
            words = (
                f"no pixel of the {name} plateau lies far from an interface: its level may be off by {deficit:.2g} in "
                "u, which the error of the levels includes"
            )
            advice = f"a larger picture or {option('levels')} is better"
            yield _grey.check("grey-plateau-narrow", words, advice, deficit=deficit)
    if grey.fade_gap > _GAP and not grey.bleaching:
        words = f"the contrast changes by {grey.fade_gap:.2g} in u over the record"
        advice = f"if the light or the dye fades, take it off with {option('bleaching', True)}"
        yield _grey.check("grey-fading", words, advice, gap=grey.fade_gap)
    elif grey.fade_gap > _GAP:
        words = f"the two plateaus fade differently (by {grey.fade_gap:.2g} in u)"
        advice = f"give {option('dark')}, the camera's value without light, which is {grey.dark:g} here"
        yield _grey.check("grey-fading-unequal", words, advice, gap=grey.fade_gap)
    if grey.moved is not None:
        words = (
            f"frames were moved back by up to {grey.moved:.2f} pixels and interpolated: noise of neighbours is "
            "correlated, and bands of the trajectory fit are then too narrow"
        )
        yield _grey.check("grey-frames-moved", words, pixels=grey.moved)
