"""The trajectory reading: averaged over degrees, and at fixed degrees from the same reading's table of degrees."""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

from doublewell.identify import identify
from doublewell.law import Bernstein, Law
from doublewell.result import Result
from doublewell.study.outcome import Method, Outcome
from doublewell.study.sample import Sample

__all__ = ["METHODS"]


def _auto(sample: Sample) -> Outcome:
    result, seconds = sample.trajectory
    return _outcome(result, result.law, 0, seconds)


def _fixed(sample: Sample, *, degree: int) -> Outcome:
    result, seconds = sample.trajectory
    if result.posterior is None:
        return Outcome(None, "the reading has no table of degrees", seconds=seconds)
    fit = result.posterior.path[degree]
    return _outcome(result, Law(Bernstein(degree), fit.coefficients), len(fit.active), seconds)


def _free(sample: Sample) -> Outcome:
    """Read again without the constraint, for laws outside the positive family."""
    record = sample.record
    began = perf_counter()
    result = identify(record, sample.tension, method="trajectory", degree="auto", constraint="none")
    return _outcome(result, result.law, None, perf_counter() - began)


def _outcome(result: Result, law: Law, active: int | None, seconds: float) -> Outcome:
    seen = result.diagnostics
    extra: dict[str, float] = {"degree": law.family.degree}
    status = "fitted"
    if seen.likelihood is not None:
        extra |= {"noise": seen.likelihood.noise, "rounds": seen.likelihood.rounds}
        status = "fitted" if seen.likelihood.converged else f"not converged: {seen.likelihood.status}"
    condition = seen.scaled_condition if np.isfinite(seen.scaled_condition) else None
    return Outcome(law, status, active, seconds, condition, seen.rows, extra)


METHODS = (
    Method("trajectory auto", "Trajectory, auto", _auto, "constraint bernstein", slow=True),
    Method("trajectory m=2", "Trajectory, m = 2", partial(_fixed, degree=2), "from the table of degrees", slow=True),
    Method("trajectory m=5", "Trajectory, m = 5", partial(_fixed, degree=5), "from the table of degrees", slow=True),
    Method("trajectory free", "Trajectory, auto, unconstrained", _free, "constraint none", slow=True),
)
