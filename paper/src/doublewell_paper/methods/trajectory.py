"""The trajectory reading: averaged over degrees, and at fixed degrees from the same reading's table of degrees."""

from __future__ import annotations

from functools import partial

import numpy as np

from doublewell.inference import DEGREE_PRIOR
from doublewell.law import Bernstein, Law
from doublewell.result import Result
from doublewell_paper.outcome import Method, Outcome
from doublewell_paper.sample import Sample

__all__ = ["METHODS"]


def _auto(sample: Sample) -> Outcome:
    result, seconds = sample.trajectory("bernstein")
    return _outcome(result, result.law, 0, seconds)


def _fixed(sample: Sample, *, degree: int) -> Outcome:
    result, seconds = sample.trajectory("bernstein")
    if result.posterior is None:
        return Outcome(None, "the reading has no table of degrees", seconds=seconds)
    fit = result.posterior.path[degree]
    return _outcome(result, Law(Bernstein(degree), fit.coefficients), len(fit.active), seconds)


def _free(sample: Sample) -> Outcome:
    """Read without the constraint, for laws outside the positive family."""
    result, seconds = sample.trajectory("none")
    return _outcome(result, result.law, None, seconds)


def _exact(sample: Sample) -> Outcome:
    """Read with every plain double well, inside the positive family or not."""
    result, seconds = sample.trajectory("admissible")
    return _outcome(result, result.law, None, seconds)


def _outcome(result: Result, law: Law, active: int | None, seconds: float) -> Outcome:
    seen = result.diagnostics
    extra: dict[str, float] = {"degree": law.family.degree}
    status = "fitted"
    if seen.likelihood is not None:
        extra |= {"noise": seen.likelihood.noise, "rounds": seen.likelihood.rounds}
        status = "fitted" if seen.likelihood.converged else f"not converged: {seen.likelihood.status}"
    condition = seen.scaled_condition if np.isfinite(seen.scaled_condition) else None
    return Outcome(law, status, active, seconds, condition, seen.rows, extra)


_TABLE, _FREE = "constraint bernstein, from the table of degrees", f"constraint none, {DEGREE_PRIOR}"
_EXACT = f"constraint admissible, {DEGREE_PRIOR}"
METHODS = (
    Method("trajectory auto", "Trajectory, auto", _auto, f"constraint bernstein, {DEGREE_PRIOR}", reads="bernstein"),
    Method("trajectory m=2", "Trajectory, m = 2", partial(_fixed, degree=2), _TABLE, reads="bernstein"),
    Method("trajectory m=5", "Trajectory, m = 5", partial(_fixed, degree=5), _TABLE, reads="bernstein"),
    Method("trajectory admissible", "Trajectory, auto, admissible", _exact, _EXACT, reads="admissible"),
    Method("trajectory free", "Trajectory, auto, unconstrained", _free, _FREE, reads="none"),
)
