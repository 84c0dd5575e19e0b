"""What the tests say, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from doublewell.adequacy.alternatives import AXES, Fit, other_boundary
from doublewell.adequacy.values import ScoreTest

__all__ = ["ADVICE", "FALSE_ALARMS", "SENTENCES", "findings", "left_words", "plain_words", "verdict"]

FALSE_ALARMS = 0.03  # of all tests together; some are approximate, and 5 % is what the user is promised
_CERTAIN = 1e-3  # adjusted probability below which the model is refused; between the two: look
_GENTLE = ("tails", "outliers")  # least squares bears them, so they never refuse the model alone
_NAMED = 3.0  # a wrong boundary leaves traces of the same size; correlated noise far smaller scores than traces
_SEEN = 4.0  # standard errors of a variance that is seen
_BLIND = 6.0  # cells of a Gaussian that is as wide as an interface
_PLAIN = 2.0  # standard deviations of a cause that counts as a rival of the first
_CLOSE = 9.0  # difference of chi-square below which two causes cannot be told apart
_QUIET = 0.5  # standard error of the share of the other boundary above which the border cannot be told

ADVICE = {
    "q": "check q, and dx and dt, which scale with it",
    "advection": "align the frames, or look for a flow or a moving stage",
    "boundary": "declare the other boundary, or none and use method='weak'",
    "tilt": "the wells are of unequal depth: use wells='unequal'; or the phase values are not centred at -1 and +1",
    "gain": "rescale the values so that the pure phases lie at -1 and +1, and fit again",
    "gain drift": "rescale each frame to the pure phases -1 and +1",
    "offset": "subtract it and fit again (a large one is seen only in part): the pure phases must lie at -1 and +1",
    "white in t": "the noise lasts over frames, or the time evolution is of another kind",
    "white": "the noise is correlated (optics, compression), or the mesh is too coarse: the intervals are too narrow",
    "tails": "the noise is not normal: the estimate holds, its intervals roughly",
    "outliers": "look for damaged pixels or frames there and cut them out",
    "cells": "set these pixels to the mean of their neighbours in every frame, or cut them off, and fit again; the "
    "other tests are made without them",
    "blur": "the optics widen the interface, so epsilon comes out too large: focus, or deconvolve the frames, and fit "
    "again",
}
_SEVERAL = (
    "these are no single bad pixels: the noise differs from place to place, or an object lies in the picture; see the "
    "map of the residual"
)


def verdict(tests: Sequence[ScoreTest]) -> tuple[str, tuple[str, ...]]:
    """Return the verdict and the sentences behind it: the likeliest cause, then what else was significant."""
    found = findings(tests)
    if not found:
        return "adequate", (f"none of {len(tests)} tests is significant after correction for their number",)
    certain = any(t.adjusted < _CERTAIN and not _gentle(t) for t in found)
    first, *others = found
    lines = [_line(first)]
    rivals = [t for t in tests if t is not first and _rival(first, t)]
    if rivals:
        lines.append(f"the residual alone can hardly tell this from {' or '.join(map(_sized, rivals))}: check each")
    traces = [t for t in others if t not in rivals]
    if traces:
        named = ", ".join(map(_sized, traces))
        lines.append(f"also significant, perhaps from the same cause: {named}; cure the first and check again")
    return "not adequate" if certain else "look", tuple(lines)


def findings(tests: Sequence[ScoreTest]) -> list[ScoreTest]:
    """Return the significant tests, the likeliest cause first."""
    return sorted((t for t in tests if t.adjusted < FALSE_ALARMS), key=_rank, reverse=True)


def left_words(tests: Sequence[ScoreTest]) -> tuple[str, ...]:
    """Say that neighbours stay correlated after every tested cause is taken out; nothing where they do not."""
    worst = min(tests, key=lambda t: t.p)
    if len(tests) * worst.p >= _CERTAIN:
        return ()
    return (
        f"all named causes together do not explain the residual ({worst.words} without them): look for something that "
        "is not among the tests, such as correlated noise, another equation or a strong blur, or for a fault so large "
        "that its name is only a guess",
    )


def _rival(first: ScoreTest, other: ScoreTest) -> bool:
    """Whether two named causes explain the residual about equally well."""
    named = first.shift is not None and other.shift is not None and "cells" not in (first.name, other.name)
    return named and _sigma(other) > _PLAIN and _sigma(first) ** 2 - _sigma(other) ** 2 < _CLOSE


def _sized(test: ScoreTest) -> str:
    return f"{test.name} ({_sigma(test):.1f} sigma)"


def _rank(test: ScoreTest) -> float:
    """Order findings by size; a named cause goes before its traces in the residual."""
    if _gentle(test):
        return 0.0
    return _sigma(test) * (_NAMED if test.shift is not None else 1.0)


def _gentle(test: ScoreTest) -> bool:
    """Whether least squares bears a finding: tails, and a noise that differs from cell to cell."""
    return test.name in _GENTLE or (test.name == "cells" and test.shift is None)


def _line(test: ScoreTest) -> str:
    advice = ADVICE.get(test.name, ADVICE["white"] if test.shift is None else "look for its cause")
    if test.name == "cells" and test.shift is None:
        advice = _SEVERAL
    cure = "leaving them out" if test.name == "cells" else "fitting it"
    moved = "" if test.shift is None else f"; {cure} would move the law by {test.shift:.1f} standard errors"
    return f"{test.words} ({_sigma(test):.1f} sigma){moved}: {advice}"


def _sigma(test: ScoreTest) -> float:
    """Return the size of a finding; chi-square of several parameters as the normal deviate of the same chance."""
    from scipy.special import ndtri

    if test.degrees == 1:
        return abs(test.statistic)
    return float(-ndtri(0.5 * test.p) if test.p > 1e-300 else np.sqrt(test.statistic))


def plain_words(_: Fit, test: ScoreTest) -> str:
    """Say what a direction without a sentence of its own gave."""
    parts = (f"{v:.3g} +- {e:.2g}" for v, e in zip(test.estimate, test.error, strict=True))
    return f"{test.name} is {', '.join(parts)}"


def _q_words(_: Fit, test: ScoreTest) -> str:
    return f"q is {_percent(test)} {_either(test, 'larger', 'smaller')} than declared"


def _advection_words(fit: Fit, test: ScoreTest) -> str:
    axes = AXES[-len(fit.record.mesh) :]
    parts = (f"{v:.3g} +- {e:.2g} along {a}" for v, e, a in zip(test.estimate, test.error, axes, strict=True))
    return f"the pattern drifts with the velocity {', '.join(parts)}"


def _boundary_words(fit: Fit, test: ScoreTest) -> str:
    declared = fit.grid.boundary
    if test.error[0] > _QUIET:
        return f"the border is too quiet to tell {declared} from {other_boundary(declared)}"
    share = f"{test.estimate[0]:.2f} +- {test.error[0]:.2g}"
    return f"share of the way from the {declared} border (0) to the {other_boundary(declared)} one (1): {share}"


def _tilt_words(fit: Fit, test: ScoreTest) -> str:
    u = np.linspace(-1.0, 1.0, 401)
    unit = 100.0 / float(np.max(np.abs(fit.family.force(fit.found.coefficients, u))))
    share = f"{unit * test.estimate[0]:.2g} +- {unit * test.error[0]:.1g} % of its largest value"
    return f"the force lacks a constant of {test.estimate[0]:.3g}, {share}"


def _contrast_words(_: Fit, test: ScoreTest) -> str:
    return f"the contrast is {_percent(test)} too {_either(test, 'large', 'small')}"


def _gain_words(_: Fit, test: ScoreTest) -> str:
    return f"the contrast {_either(test, 'grows', 'falls')} by {_percent(test)} over the record"


def _offset_words(_: Fit, test: ScoreTest) -> str:
    return f"the values are too {_either(test, 'large', 'small')} by {abs(test.estimate[0]):.2g} +- {test.error[0]:.1g}"


def _blur_words(fit: Fit, test: ScoreTest) -> str:
    """Say the variance of the blur in cells, and from which width on it would be seen."""
    unit = 2.0 / max(fit.grid.dx) ** 2  # the direction is half the variance
    value, error = unit * test.estimate[0], unit * test.error[0]
    if not np.isfinite(error) or np.sqrt(_SEEN * error) > _BLIND:
        return "blur cannot be told from another law here: the interface is too flat or too quiet"
    said = f"a blur of the variance {value:.2g} +- {error:.1g} cells^2"
    if value > _SEEN * error:
        return f"{said}, a Gaussian of {np.sqrt(value):.2g} cells"
    if value < -_SEEN * error:
        return f"{said}: less than none, as if the frames were sharpened"
    return f"{said}; one of less than {np.sqrt(_SEEN * error):.2g} cells looks like another law"


def _percent(test: ScoreTest) -> str:
    return f"{100 * abs(test.estimate[0]):.2g} +- {100 * test.error[0]:.1g} %"


def _either(test: ScoreTest, up: str, down: str) -> str:
    return up if test.estimate[0] >= 0 else down


SENTENCES: dict[str, Callable[[Fit, ScoreTest], str]] = {
    "q": _q_words,
    "advection": _advection_words,
    "boundary": _boundary_words,
    "tilt": _tilt_words,
    "gain": _contrast_words,
    "gain drift": _gain_words,
    "offset": _offset_words,
    "blur": _blur_words,
}
