"""What the tests say, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from doublewell.adequacy.directions import AXES, Fit, other_boundary
from doublewell.adequacy.values import ScoreTest

__all__ = ["ADVICE", "FALSE_ALARMS", "SENTENCES", "plain_words", "verdict"]

FALSE_ALARMS = 0.03  # of all tests together; some are approximate, and 5 % is what the user is promised
_CERTAIN = 1e-3  # adjusted probability below which the model is refused; between the two: look
_GENTLE = ("tails", "outliers")  # least squares bears them, so they never refuse the model alone
_NAMED = 3.0  # a wrong boundary leaves traces of the same size; correlated noise far smaller scores than traces
_QUIET = 0.5  # standard error of the share of the other boundary above which the border cannot be told

ADVICE = {
    "q": "check q, and dx and dt, which scale with it",
    "advection": "align the frames, or look for a flow or a moving stage",
    "boundary": "declare the other boundary, or none and use method='weak'",
    "tilt": "the wells are of unequal depth, or the phase values are not centred: check that they are -1 and +1",
    "gain": "rescale the values so that the pure phases lie at -1 and +1, and fit again",
    "gain drift": "rescale each frame to the pure phases -1 and +1",
    "offset": "subtract it and fit again (a large one is seen only in part): the pure phases must lie at -1 and +1",
    "white in t": "the noise lasts over frames, or the time evolution is of another kind",
    "white": "the noise is correlated (optics, compression), or the mesh is too coarse: the intervals are too narrow",
    "tails": "the noise is not normal: the estimate holds, its intervals roughly",
    "outliers": "look for dead pixels or damaged frames and cut them out",
}


def verdict(tests: Sequence[ScoreTest]) -> tuple[str, tuple[str, ...]]:
    """Return the verdict and the sentences behind it: the likeliest cause, then what else was significant."""
    found = sorted((t for t in tests if t.adjusted < FALSE_ALARMS), key=_rank, reverse=True)
    if not found:
        return "adequate", (f"none of {len(tests)} tests is significant after correction for their number",)
    certain = any(t.adjusted < _CERTAIN and t.name not in _GENTLE for t in found)
    first, *others = found
    lines = [_line(first)]
    if others:
        named = ", ".join(f"{t.name} ({_sigma(t):.1f} sigma)" for t in others)
        lines.append(f"also significant, perhaps from the same cause: {named}; cure the first and check again")
    return "not adequate" if certain else "look", tuple(lines)


def _rank(test: ScoreTest) -> float:
    """Order findings by size; a named cause goes before its traces in the residual."""
    if test.name in _GENTLE:
        return 0.0
    return _sigma(test) * (_NAMED if test.shift is not None else 1.0)


def _line(test: ScoreTest) -> str:
    advice = ADVICE.get(test.name, ADVICE["white"] if test.shift is None else "look for its cause")
    moved = "" if test.shift is None else f"; fitting it would move the law by {test.shift:.1f} standard errors"
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
}
