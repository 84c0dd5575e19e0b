"""Findings about the model: what the tests of a residual give, what it does to the law, and what to do about it.

The cause that explains most of the residual comes first, with what cannot be distinguished from it; the rest is one
line.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

import numpy as np

from doublewell.adequacy import NUMERICAL, STEADY, Adequacy, ScoreTest, Verdict
from doublewell.errors import option
from doublewell.facts import Fact
from doublewell.law import Law
from doublewell.observation import Survey
from doublewell.record_findings import Finding, Severity, Topic, pure_phases
from doublewell.result import Result, Rival
from doublewell.units import percent

_QUIET = 0.5  # standard error of the fraction of the other boundary above which the border is too quiet
_DETECTED = 4.0  # standard errors of a variance that is detected
_BLIND = 6.0  # cells of a Gaussian that is as wide as an interface
_FLICKER = 3.0  # spread over mean of a cell that flickers; a constant deviation has 1.48
_OUTLIER = 5.0  # standard deviations of an outlier
_BACKWARDS = -1.0  # relative error of q of a movie whose time runs backwards; the truth is -2
_LEFT = ("thermal", "unknown")  # tests of what the first cause leaves
_LOOSE_Q = 0.25  # relative standard error of q above which it counts as not determined
_VARIES = 0.05  # probability below which a constant mobility is excluded
_DEVIATES = 2 * 1.96  # standard deviations in a 95 % interval
_DECIDED, _CHANCE = 30.0, 4.0  # rise of chi-square, beyond so many standard deviations, that excludes an equation
_REST = 4  # causes that the one line names
_WEAK = 0.2  # of the force that holds an interface
_AXES = ("z", "y", "x")
_CODES = {
    "q": "q-off", "advection": "pattern-drifts", "tilt": "force-tilted", "gain": "contrast-off",
    "gain drift": "contrast-drifts", "response": "response-nonlinear", "white in t": "noise-correlated-in-time",
    "white in z": "noise-correlated-in-space", "white in y": "noise-correlated-in-space",
    "white in x": "noise-correlated-in-space", "tails": "noise-tails", "force(t)": "force-changes",
    "mobility(u)": "mobility-of-phase", "mobility(x)": "mobility-uneven", "mass": "mass-constrained",
    "conserved": "conserved-dynamics", "time step": "movie-time-step", "anisotropy": "anisotropic",
    "thermal": "thermal-noise", "unknown": "residual-unexplained", "spectrum": "noise-not-thermal",
    "camera spectrum": "noise-correlated-in-space", "noise(u)": "noise-not-thermal", "memory": "noise-not-thermal",
}  # fmt: skip
_SEVERITY = {
    Verdict.ADEQUATE: Severity.OK, Verdict.CHECK: Severity.CHECK, Verdict.NOT_ADEQUATE: Severity.FAIL,
}  # fmt: skip
_model = Topic("model")
OF_TWO_PHASES = frozenset(  # what has no meaning where the record shows one
    {"no-force", "not-a-double-well", "not-phase-values", "values-beyond-phases", "phases-still-forming",
     "phase-not-reached", "phase-range-not-covered", "phase-range-one-sided", "numbers-extrapolated",
     "law-undetermined"}
)  # fmt: skip


class Setting(NamedTuple):
    """What a test was made in: cell sizes, boundary, phases of the wells, the largest force, whether time was over."""

    dx: tuple[float, ...]
    boundary: str | None
    phases: tuple[float, float]
    force: float
    stopped: bool = False

    @property
    def half(self) -> float:
        """Half the distance of the phases: the tests are made on a scale where it is 1."""
        return 0.5 * (self.phases[1] - self.phases[0])


def coexistence_findings(law: Law, survey: Survey) -> Iterator[Finding]:
    """Yield whether the coexisting phases of a conserved field were found, and whether the record reaches them."""
    make, (low, high) = Topic("structure"), law.phases
    if law.one_phase:
        words = (
            f"the record shows one phase, u from {survey.low:.4g} to {survey.high:.4g}: it determines q G' there, by "
            "which its waves decay, and nothing of a second phase"
        )
        yield make.check("one-phase", words, "for the law between two phases record a mixture that separates")
    elif not law.coexists:
        words = f"the coexisting phases are not determined: {law.structure}"
        advice = "record until both phases have formed"
        yield make.check("phases-undetermined", words, advice)
    elif beyond := [u for u, seen in ((low, low >= survey.low), (high, high <= survey.high)) if not seen]:
        named = " and ".join(f"u = {u:.4g}" for u in beyond)
        words = f"the coexisting phase {named} lies beyond the values of the record and is extrapolated to"
        yield make.check("phases-extrapolated", words, "record until both phases have formed", low=low, high=high)


def force_findings(result: Result) -> Iterator[Finding]:
    """Yield whether there is a force at all; what else is wrong then follows from that, so it comes first."""
    if (width := result.diagnostics.survey.interface_width) is None:
        return
    # the quartic law whose interface has this width, s = 2 atanh(0.9) / width
    usual = 2.0 / 3.0**1.5 * result.law.half * 2.0 * (2.0 * np.arctanh(0.9) / width) ** 2
    largest = float(np.max(np.abs(result.law.force(np.linspace(*result.law.phases, 201)))))
    if largest < _WEAK * usual:
        words = (
            f"the force reaches {percent(largest / usual)} of what an interface of this width needs: nothing holds "
            "the phases apart, and the movie is nearly explained by diffusion alone"
        )
        advice = "this is not a phase field with two wells"
        yield Topic("structure").fail("no-force", words, advice, ratio=largest / usual)


def mobility_findings(result: Result) -> Iterator[Finding]:
    """Yield whether a mobility that was estimated as a function of the phase differs from a constant one."""
    from scipy.special import chdtrc

    if result.posterior is None or not result.problem.dynamics.parts.degree:
        return
    chi2, freedom = result.posterior.constant_mobility()
    make, p, (low, high) = Topic("diffusion"), float(chdtrc(freedom, chi2)), result.law.phases
    if p < _VARIES:
        ratio = float(result.mobility(high) / result.mobility(low))
        words = f"the mobility depends on the phase, q({high:g}) / q({low:g}) = {ratio:.3g}; a constant is excluded"
        yield make.ok("mobility-varies", f"{words} (p = {p:.1g})", p=p)
        return
    words = f"a constant mobility would do (p = {p:.2g}): q(u) varies by no more than its error"
    yield make.ok("mobility-constant", words, p=p)


def diffusion_findings(q: Fact) -> Iterator[Finding]:
    """Yield whether a record determines q; nothing where q was given."""
    error = q.sd if q.interval is None else (q.interval[1] - q.interval[0]) / _DEVIATES
    if error is None:
        return
    relative = error / abs(q.value)
    make, size = Topic("diffusion"), f"q = {q.value:.4g} +- {percent(relative)} (standard error)"
    if relative <= _LOOSE_Q:
        yield make.ok("q-estimated", size, error=relative)
        return
    advice = f"pass {option('q')}, record longer, or a shape that moves"
    yield make.check("q-undetermined", f"q is not determined: {size}", advice, error=relative)


def rival_findings(rivals: tuple[Rival, ...], tests: Adequacy | None = None) -> Iterator[Finding]:
    """Yield which equation was chosen by the data, and how clearly; a path driven by noise is not evidence."""
    if len(rivals) < 2:
        return
    make, (best, *others) = Topic("equation"), rivals
    nearest = min(others, key=lambda one: one.chi2 - _CHANCE * one.sd)
    if tests is not None and any(test.name == "thermal" for test in tests.significant):
        words = f"{best.dynamics} follows the movie most closely, but thermal noise drives it, and may have chosen so"
        advice = f"state the equation, with {option('temperature')}: tests then tell whether the noise belongs to it"
        yield make.check("equation-undecided", words, advice, chi2=nearest.chi2, sd=nearest.sd)
        return
    if nearest.chi2 - _CHANCE * nearest.sd > _DECIDED:
        worse = ", ".join(
            f"{one.dynamics} by {one.chi2:.3g}" if isfinite(one.chi2) else f"{one.dynamics} cannot be fitted"
            for one in others
        )
        words = f"the movie follows {best.dynamics}; chi2 of the others is larger: {worse}"
        yield make.ok("equation-chosen", words, chi2=nearest.chi2)
        return
    words = (
        f"the movie does not distinguish {best.dynamics} from {nearest.dynamics}: chi2 differs by {nearest.chi2:.3g}, "
        f"at random by {nearest.sd:.2g}"
    )
    advice = "a shape that moves, or a growing pattern, tells them apart; where the equation is known, state it"
    yield make.check("equation-undecided", words, advice, chi2=nearest.chi2, sd=nearest.sd)


def model_findings(answer: Adequacy | None, noise: float, setting: Setting) -> Iterator[Finding]:
    """Yield whether a record is the model plus white noise: the likeliest cause, then in one line what else counts.

    `noise` is what the fit leaves in a value.
    """
    if answer is None:
        why = "there was no time for the tests" if setting.stopped else "the tests were switched off"
        advice = f"give more time ({option('time_limit')})" if setting.stopped else f"run with {option('check', True)}"
        words = f"{why}, so it is not known whether the record is this model plus white noise"
        yield _model.check("model-untested", words, advice)
        return
    if answer.numerical:
        words = (
            f"the residual is {noise:.1g}, {100 * answer.relative_noise:.1g} % of the field; noise of a "
            f"measurement would be {100 * NUMERICAL:g} % or more, and differences between two solvers are of this "
            "size: the movie follows the model as closely as numbers allow. The tests are of white noise and have no "
            "meaning here; the bands do not include such differences"
        )
        yield _model.ok("residual-numerical", words, noise=answer.relative_noise)
        return
    if not answer.significant:
        words = f"none of {len(answer.tests)} tests is significant after correction for their number"
        yield _model.ok("no-test-significant", words)
        return
    severity = _SEVERITY[answer.verdict]
    first, *others = answer.significant
    rivals = f"; the residual cannot tell this from {' or '.join(map(_sized, answer.rivals))}" if answer.rivals else ""
    words = f"{sentence_of(first, setting)} ({first.sigma:.1f} sigma){_weight(first, answer)}{rivals}"
    numbers = {"sigma": first.sigma, "drop": first.drop, "deviation": first.deviation}
    numbers |= {} if first.effect is None else {"effect": first.effect}
    yield _model.finding(severity, code_of(first, setting), words, _advice(first, setting), **numbers)
    left = [test for test in others if test.name in _LEFT and test.grade(answer.band) != Verdict.ADEQUATE]
    if left and first.effect is not None:
        words = f"what that leaves is not noise: {sentence_of(left[0], setting)}{_weight(left[0], answer)}"
        yield _model.finding(severity, "residual-unexplained", words, "a large fault is explained only in part")
        others = [test for test in others if test is not left[0]]
    if traces := [_sized(test) for test in others if test not in answer.rivals]:
        more = f" and {len(traces) - _REST} more" if len(traces) > _REST else ""
        words = f"also significant, perhaps from the same cause: {', '.join(traces[:_REST])}{more}"
        yield _model.finding(severity, "also-significant", words)
    if answer.steadiness is not None and answer.steadiness < STEADY:
        words = (
            f"the record itself has almost no noise ({answer.steadiness * noise:.1g}, and the residual is "
            f"{noise:.2g}): the residual is a difference between two computations, or a wrong model"
        )
        advice = "if the movie is simulated, make it again with half the time step and a finer mesh, and see whether "
        yield _model.finding(severity, "residual-not-noise", words, f"{advice}the residual shrinks")


def _weight(test: ScoreTest, answer: Adequacy) -> str:
    """Return what a cause does: to the law, or to the movie where it has no effect on the law."""
    if test.effect is not None:
        verb = "leaving them out" if test.name == "cells" else "fitting it"
        words = f"; {verb} would change the force by {percent(test.effect)} (95 % band +-{percent(answer.band)})"
        return words + (": too little to matter" if test.grade(answer.band) == Verdict.ADEQUATE else "")
    return f"; it makes {percent(test.deviation)} of the motion of the field" if test.deviation else ""


def _sized(test: ScoreTest) -> str:
    return f"{test.name} ({test.sigma:.1f} sigma)"


def code_of(test: ScoreTest, setting: Setting) -> str:
    """Return the code of what a test finds."""
    if test.name == "boundary":
        return "boundary-quiet" if test.error[0] > _QUIET else "boundary-off"
    if test.name == "blur":
        return "blurred" if _blur_known(test, 2.0 / max(setting.dx) ** 2) else "blur-unseen"
    if test.name == "cells":
        return "bad-pixels" if test.shift is not None else "noise-uneven" if test.count else "cells-even"
    if test.name == "q" and test.estimate[0] < _BACKWARDS:
        return "time-reversed"
    return _CODES.get(test.name, test.name.replace(" ", "-"))


def sentence_of(test: ScoreTest, setting: Setting) -> str:
    """Return what a test gave."""
    value, error, half = test.estimate[0], test.error[0], setting.half
    up, size = value >= 0, f"{100 * abs(value):.2g} +- {100 * error:.1g} %"
    unit = 100.0 * half / setting.force if setting.force else 0.0
    axes = _AXES[-len(setting.dx) :]
    pairs = [f"{v:.3g} +- {e:.2g}" for v, e in zip(test.estimate, test.error, strict=True)]
    known = {
        "q": f"q is {size} {'larger' if up else 'smaller'} than declared",
        "tilt": f"the force lacks a constant of {half * value:.3g}, {unit * value:.2g} +- {unit * error:.1g} % of its "
        "largest value",
        "force(t)": f"the force {'grows' if up else 'falls'} by {size} over the record",
        "mobility(u)": f"the mobility depends on the phase: 1 + a u + b u^2 with a, b = {', '.join(pairs[:2])}",
        "mobility(x)": "the mobility varies in space: its lowest modes are "
        f"{', '.join(pairs[: 2 * len(axes)])} (two along each of {', '.join(axes)})",
        "mass": f"the mean of the field is held fixed: {size} of the mean force is missing",
        "conserved": f"the field is conserved: it lacks a rate {value:.3g} +- {error:.1g} times minus the Laplacian of "
        "its own rate",
        "time step": f"the movie was made with too large a time step: like {'implicit' if up else 'explicit'} Euler "
        f"steps of q h = {2.0 * abs(value):.2g} +- {2.0 * error:.1g}",
        "anisotropy": "the gradient energy differs between the axes: the second derivatives lack " + ", ".join(pairs),
        "gain": f"the contrast is {size} too {'large' if up else 'small'}",
        "gain drift": f"the contrast {'grows' if up else 'falls'} by {size} over the record",
        "offset": f"the values are too {'large' if up else 'small'} by {half * abs(value):.2g} +- {half * error:.1g}",
        "response": f"the grey values are a power {1.0 + value:.3f} +- {error:.1g} of what the camera saw",
        "thermal": f"a random force drives the field: what one would explain is {1.0 + value:.3g} +- {error:.1g} times "
        "that of camera noise, all over the picture",
        "unknown": "no named cause explains the residual: what an unknown force would explain is "
        f"{1.0 + value:.3g} +- {error:.1g} times that of noise",
        "spectrum": "the spectrum of the noise is not thermal: its power from long waves to short ones is "
        f"{', '.join(f'{v:.3f}' for v in test.estimate)} of what it should be",
        "camera spectrum": "camera noise is not white: its power from long waves to short ones is "
        f"{', '.join(f'{v:.3f}' for v in test.estimate)} of the mean",
        "noise(u)": "the size of the noise depends on the phase: "
        f"{', '.join(f'{v:.3f}' for v in test.estimate)} of what it should be, from the low phase to the high one",
        "memory": f"consecutive frames are driven by noise that correlates by {value:+.4f} +- {error:.4f}",
        "tails": f"excess kurtosis of the residual {value:+.3f} +- {error:.3f}",
        "advection": "the pattern drifts with the velocity "
        + ", ".join(f"{pair} along {axis}" for pair, axis in zip(pairs, axes, strict=False)),
        "boundary": _boundary(test, setting),
        "blur": _blur(test, setting),
        "outliers": _outliers(test),
        "cells": _cells(test, setting),
    }
    if code_of(test, setting) == "time-reversed":
        known["q"] = f"time runs backwards: the rate has the wrong sign (q would be {1.0 + value:.2g} of the declared)"
    if test.name.startswith("white in "):
        axis = test.name.removeprefix("white in ")
        which = "consecutive frames" if axis == "t" else f"neighbours along {axis}"
        known[test.name] = f"{which} of the residual correlate by {value:+.4f} +- {error:.4f}"
    return known.get(test.name, f"{test.name} is {', '.join(pairs)}") + (f" in {test.part}" if test.part else "")


def _advice(test: ScoreTest, setting: Setting) -> str:
    pure, code = pure_phases(setting.phases), code_of(test, setting)
    other = "the law of this fit is not that of the movie: it follows another equation"
    known = {
        "q-off": "check q, dx and dt, which act only as q dt / dx^2, or leave q out: it is then estimated",
        "time-reversed": "put the frames in the order of time",
        "pattern-drifts": f"let the fit follow it ({option('drift', 'estimated')}), or align the frames",
        "boundary-off": "declare the other boundary, or none: then the movie is fitted as a window",
        "force-tilted": f"the wells are of unequal depth: use {option('wells', 'unequal')}; or the phase values are "
        f"not centred at {pure}; or the force is not that of a double well",
        "force-changes": "fit parts of the record, and see whether the temperature or the composition changes",
        "mobility-of-phase": f"{other}: use {option('dynamics', 'allen-cahn(mobility=estimated)')}",
        "mobility-uneven": "fit parts of the picture, and see whether temperature or material vary",
        "mass-constrained": f"{other}: try {option('dynamics', 'mass-conserving')}",
        "conserved-dynamics": f"{other}: try {option('dynamics', 'cahn-hilliard')}, or auto",
        "movie-time-step": "make the movie again with half the time step",
        "anisotropic": f"check the pixel size along each axis, which acts the same; else use "
        f"{option('dynamics', 'allen-cahn(anisotropy=estimated)')}",
        "contrast-off": f"let the fit estimate it ({option('contrast', 'estimated')})",
        "offset": f"let the fit estimate it ({option('contrast', 'estimated')})",
        "contrast-drifts": f"let the fit estimate it ({option('contrast', 'drifting')})",
        "response-nonlinear": f"undo the gamma curve of the camera or the file, or let the fit estimate it "
        f"({option('response', 'estimated')})",
        "thermal-noise": "its bands are too narrow: read it as a field with thermal noise "
        f"({option('temperature', 1.0)} for energies in kT), which gives the tension too",
        "noise-not-thermal": "fluctuation and dissipation do not belong together: check q, blur, pixels and exposure; "
        "or the noise is not that of a temperature",
        "residual-unexplained": "look for something that is not among the tests: a second field, another equation, "
        "a fault that moves",
        "noise-correlated-in-time": f"use {option('noise', 'correlated')}; or the time evolution is of another kind",
        "noise-correlated-in-space": f"use {option('noise', 'correlated')}: the intervals are too narrow",
        "noise-tails": "the noise is not normal: the estimate holds, its intervals roughly",
        "outliers": f"leave them out: {option('noise', 'robust')}",
        "bad-pixels": f"leave them out: {option('noise', 'robust')}, or a mask; the other tests are made without them",
        "noise-uneven": "these are not single bad pixels: the noise differs from place to place, or an object lies in "
        "the picture; see the map of the residual",
        "blurred": f"the optics widen the interface: let the fit estimate it ({option('blur', 'estimated')})",
    }
    return known.get(code, "look for its cause")


def _boundary(test: ScoreTest, setting: Setting) -> str:
    other = "neumann" if setting.boundary == "periodic" else "periodic"
    if test.error[0] > _QUIET:
        return f"the border is too quiet to distinguish {setting.boundary} from {other}"
    way = f"fraction of the way from the {setting.boundary} border (0) to the {other} one (1)"
    return f"{way}: {test.estimate[0]:.2f} +- {test.error[0]:.2g}"


def _blur_known(test: ScoreTest, unit: float) -> bool:
    error = unit * test.error[0]
    return bool(np.isfinite(error) and np.sqrt(_DETECTED * error) <= _BLIND)


def _blur(test: ScoreTest, setting: Setting) -> str:
    """Return the variance of the blur in cells, and from which width on it would be detected."""
    unit = 2.0 / max(setting.dx) ** 2  # the direction is half the variance
    value, error = unit * test.estimate[0], unit * test.error[0]
    if not _blur_known(test, unit):
        return "blur cannot be distinguished from another law here: the interface is too flat or too quiet"
    words = f"a blur of the variance {value:.2g} +- {error:.1g} cells^2"
    if value > _DETECTED * error:
        return f"{words}, a Gaussian of {np.sqrt(value):.2g} cells"
    if value < -_DETECTED * error:
        return f"{words}: less than none, as if the frames were sharpened"
    return f"{words}; one of less than {np.sqrt(_DETECTED * error):.2g} cells looks like another law"


def _outliers(test: ScoreTest) -> str:
    number, where = "1 value" if test.count == 1 else f"{test.count} values", ""
    if test.spots:
        frame, *cell = test.spots[0].index
        where = f", the largest in frame {frame} at cell {tuple(cell)}"
        if test.common:
            where = f", all in frame {frame}" if test.common == "frame" else f", all at cell {tuple(cell)}"
    return f"{number} beyond {_OUTLIER:g} standard deviations, {test.error[0] ** 2:.2g} expected{where}"


def _cells(test: ScoreTest, setting: Setting) -> str:
    half, more = setting.half, test.count - len(test.spots)
    if test.shift is not None:
        words = "1 cell stands out, a bad pixel" if test.count == 1 else f"{test.count} cells stand out, bad pixels"
        named = ", ".join(
            f"{spot.index} flickers by {half * spot.spread:.2g}"
            if spot.spread > _FLICKER * abs(spot.size)
            else f"{spot.index} is off by {half * spot.size:+.2g}"
            for spot in test.spots
        )
        return f"{words}: {named}{f' and {more} more' if more > 0 else ''}"
    number = f"{test.count} of {test.total} cells stand" if test.count else "no single cell stands"
    if not test.spots:
        return f"{number} out"
    top = test.spots[0]
    return f"{number} out, the most at {top.index}, {half * top.size:+.2g} +- {half * test.error[0]:.1g} on average"
