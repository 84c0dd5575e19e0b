"""Findings about the model: what the tests of the residual give, in sentences, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from doublewell.adequacy import NUMERICAL, STEADY, ScoreTest, Verdict
from doublewell.errors import option
from doublewell.record_findings import Finding, Severity, Topic, pure_phases
from doublewell.result import FitQuality

_QUIET = 0.5  # standard error of the fraction of the other boundary above which the border is too quiet
_DETECTED = 4.0  # standard errors of a variance that is detected
_BLIND = 6.0  # cells of a Gaussian that is as wide as an interface
_FLICKER = 3.0  # spread over mean of a cell that flickers; a constant deviation has 1.48
_FAR = 5.0  # standard deviations of an outlier
_AXES = ("z", "y", "x")
_CODES = {
    "q": "q-off", "advection": "pattern-drifts", "tilt": "force-tilted", "gain": "contrast-off",
    "gain drift": "contrast-drifts", "offset": "offset", "white in t": "noise-correlated-in-time",
    "white in z": "noise-correlated-in-space", "white in y": "noise-correlated-in-space",
    "white in x": "noise-correlated-in-space", "tails": "noise-tails", "outliers": "outliers",
}  # fmt: skip


_model = Topic("model")


class Setting(NamedTuple):
    """What a test was made in: cell sizes, boundary, phases of the wells, and the largest force."""

    dx: tuple[float, ...]
    boundary: str | None
    phases: tuple[float, float]
    force: float

    @property
    def half(self) -> float:
        """Half the distance of the phases: the tests are made on a scale where it is 1."""
        return 0.5 * (self.phases[1] - self.phases[0])


def model_findings(fit: FitQuality, setting: Setting) -> Iterator[Finding]:
    """Yield whether a record is the model plus white noise: the likeliest cause, then what else is significant."""
    answer = fit.adequacy
    if answer is None:
        words = "the tests were switched off, so it is not known whether the record is this model plus white noise"
        yield _model.check("model-untested", words, f"run with {option('check', True)}")
        return
    if answer.numerical:
        yield _model.ok(
            "residual-numerical",
            f"the residual is {fit.noise:.1g}, {100 * answer.relative_noise:.1g} % of the field; noise of a "
            f"measurement would be {100 * NUMERICAL:g} % or more, and differences between two solvers are of this "
            "size: the movie follows the model as closely as numbers allow. The tests are of white noise and have no "
            "meaning here; the bands do not include such differences",
            noise=answer.relative_noise,
        )
        return
    if not answer.significant:
        words = f"none of {len(answer.tests)} tests is significant after correction for their number"
        yield _model.ok("no-test-significant", words)
        return
    severity = Severity.FAIL if answer.verdict == Verdict.NOT_ADEQUATE else Severity.CHECK
    first, *others = answer.significant
    fix = "leaving them out" if first.name == "cells" else "fitting it"
    moved = "" if first.shift is None else f"; {fix} would move the law by {first.shift:.1f} standard errors"
    words = f"{sentence_of(first, setting)} ({first.sigma:.1f} sigma){moved}"
    numbers = {"sigma": first.sigma} | ({} if first.shift is None else {"shift": first.shift})
    yield _model.finding(severity, code_of(first, setting), words, _advice(first, setting), **numbers)
    if answer.rivals:
        words = f"the residual alone can hardly distinguish this from {' or '.join(map(_sized, answer.rivals))}"
        yield _model.finding(severity, "cause-ambiguous", words, "check each")
    if traces := [test for test in others if test not in answer.rivals]:
        words = f"also significant, perhaps from the same cause: {', '.join(map(_sized, traces))}"
        yield _model.finding(severity, "also-significant", words, "fix the first and check again")
    if (rest := answer.unexplained) is not None:
        yield _model.finding(
            severity,
            "residual-unexplained",
            f"all named causes together do not explain the residual ({sentence_of(rest, setting)} without them)",
            "look for something that is not among the tests, such as correlated noise, another equation or a strong "
            "blur, or for a fault so large that its name is only a guess",
        )
    if answer.steadiness is not None and answer.steadiness < STEADY:
        own = answer.steadiness * fit.noise
        yield _model.finding(
            severity,
            "residual-not-noise",
            f"the record itself has almost no noise ({own:.1g}, and the residual is {fit.noise:.2g}): the residual is "
            "a difference between two computations, or a wrong model",
            "if the movie is simulated, make it again with half the time step and a finer mesh, and see whether the "
            "residual shrinks",
        )


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
    return _CODES.get(test.name, test.name.replace(" ", "-"))


def sentence_of(test: ScoreTest, setting: Setting) -> str:
    """Return what a test gave."""
    value, error, half = test.estimate[0], test.error[0], setting.half
    up, size = value >= 0, f"{100 * abs(value):.2g} +- {100 * error:.1g} %"
    unit = 100.0 * half / setting.force if setting.force else 0.0
    known = {
        "q": f"q is {size} {'larger' if up else 'smaller'} than declared",
        "tilt": f"the force lacks a constant of {half * value:.3g}, {unit * value:.2g} +- {unit * error:.1g} % of its "
        "largest value",
        "gain": f"the contrast is {size} too {'large' if up else 'small'}",
        "gain drift": f"the contrast {'grows' if up else 'falls'} by {size} over the record",
        "offset": f"the values are too {'large' if up else 'small'} by {half * abs(value):.2g} +- {half * error:.1g}",
        "tails": f"excess kurtosis of the residual {value:+.3f} +- {error:.3f}",
    }
    if test.name.startswith("white in "):
        axis = test.name.removeprefix("white in ")
        which = "consecutive frames" if axis == "t" else f"neighbours along {axis}"
        known[test.name] = f"{which} of the residual correlate by {value:+.4f} +- {error:.4f}"
    words = known.get(test.name) or _SENTENCES.get(test.name, _plain)(test, setting)
    return words + (f" in {test.part}" if test.part else "")


def _advice(test: ScoreTest, setting: Setting) -> str:
    pure = pure_phases(setting.phases)
    if test.name == "cells" and test.shift is None:
        return (
            "these are not single bad pixels: the noise differs from place to place, or an object lies in the picture; "
            "see the map of the residual"
        )
    correlated = (
        "the noise is correlated (optics, compression), or the mesh is too coarse: the intervals are too narrow"
    )
    known = {
        "q": "check q, and dx and dt, which scale with it",
        "advection": "align the frames, or look for a flow or a moving stage",
        "boundary": "declare the other boundary, or none: then the movie is fitted as a window",
        "tilt": f"the wells are of unequal depth: use {option('wells', 'unequal')}; or the phase values are not "
        f"centred at {pure}",
        "gain": f"rescale the values so that the pure phases lie at {pure}, and fit again",
        "gain drift": f"rescale each frame to the pure phases {pure}",
        "offset": "subtract it and fit again (a large one is detected only in part): the pure phases must lie at "
        f"{pure}",
        "white in t": "the noise lasts over frames, or the time evolution is of another kind",
        "tails": "the noise is not normal: the estimate holds, its intervals roughly",
        "outliers": "look for damaged pixels or frames there and cut them out",
        "cells": "set these pixels to the mean of their neighbours in every frame, or cut them off, and fit again; the "
        "other tests are made without them",
        "blur": "the optics widen the interface, so epsilon comes out too large: focus, fit the blur "
        f"({option('blur', 'estimated')}), or deconvolve the frames, and fit again",
    }
    return known.get(test.name, correlated if test.shift is None else "look for its cause")


def _plain(test: ScoreTest, _: Setting) -> str:
    parts = (f"{v:.3g} +- {e:.2g}" for v, e in zip(test.estimate, test.error, strict=True))
    return f"{test.name} is {', '.join(parts)}"


def _advection(test: ScoreTest, setting: Setting) -> str:
    axes = _AXES[-len(setting.dx) :]
    parts = (f"{v:.3g} +- {e:.2g} along {a}" for v, e, a in zip(test.estimate, test.error, axes, strict=True))
    return f"the pattern drifts with the velocity {', '.join(parts)}"


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


def _outliers(test: ScoreTest, _: Setting) -> str:
    number, where = "1 value" if test.count == 1 else f"{test.count} values", ""
    if test.spots:
        frame, *cell = test.spots[0].index
        where = f", the largest in frame {frame} at cell {tuple(cell)}"
        if test.common:
            where = f", all in frame {frame}" if test.common == "frame" else f", all at cell {tuple(cell)}"
    return f"{number} beyond {_FAR:g} standard deviations, {test.error[0] ** 2:.2g} expected{where}"


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
    top = test.spots[0]
    most = f"the most at {top.index}, {half * top.size:+.2g} +- {half * test.error[0]:.1g} on average"
    number = f"{test.count} of {test.total} cells stand" if test.count else "no single cell stands"
    return f"{number} out, {most}"


_SENTENCES: dict[str, Callable[[ScoreTest, Setting], str]] = {
    "advection": _advection, "boundary": _boundary, "blur": _blur, "outliers": _outliers, "cells": _cells,
}  # fmt: skip
