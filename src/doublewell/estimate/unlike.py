"""The estimate for wells that need not be alike, from the same evidence and in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.checks import not_negative
from doublewell.errors import InputError
from doublewell.estimate.estimate import Constraint, Estimate, SupportFit
from doublewell.estimate.least_squares import Solution, column_scale, solve_free
from doublewell.estimate.ridge import ALPHAS, RidgeChoice, penalty
from doublewell.estimate.wells import solve_wells
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.law import LinearFamily

__all__ = ["estimate_wells"]


@dataclass(frozen=True)
class _Solver:
    """Solve the small problem of one family, in the exact class or freely."""

    family: LinearFamily
    exact: bool

    def __call__(self, matrix: Array, target: Array, ridge: float = 0.0) -> Solution:
        if self.exact:
            return solve_wells(matrix, target, self.family, ridge)
        return solve_free(matrix, target, ridge)


def estimate_wells(
    evidence: Evidence,
    q: float,
    *,
    constraint: Constraint,
    ridge: float | Literal["validated"] | None = None,
) -> Estimate:
    """Solve the small problem in a family of unlike wells; any constraint but "none" is the exact class."""
    solver = _Solver(evidence.family, constraint != "none")
    matrix, target = system(evidence, q)
    values = column_scale(matrix)[2]
    choice = _ridge(evidence, matrix, q, ridge, solver)
    strength = choice.penalty if choice else 0.0
    return Estimate(
        family=evidence.family,
        solution=solver(matrix, target, strength),
        unbounded=solve_free(matrix, target).coefficients,
        bound=-np.inf,
        constraint=constraint,
        ridge=choice,
        condition=float(np.linalg.cond(matrix)),
        scaled_condition=float(values[0] / values[-1]),
        target_size=float(np.linalg.norm(target)),
        rows=evidence.rows,
        supports=tuple(_one_support(evidence, name, q, strength, solver) for name in evidence.supports),
    )


def _ridge(
    evidence: Evidence, matrix: Array, q: float, ridge: float | str | None, solver: _Solver
) -> RidgeChoice | None:
    if ridge is None:
        return None
    if not isinstance(ridge, str):
        alpha = not_negative(ridge, "ridge", "None, 'validated', or alpha")
        return RidgeChoice(alpha, penalty(matrix, alpha), ())
    if ridge != "validated" or not {"training", "validation"} <= set(evidence.folds):
        raise InputError("a validated ridge needs evidence with the folds 'training' and 'validation'")
    training = system(evidence.select(lambda key: key.fold == "training"), q)
    validation = system(evidence.select(lambda key: key.fold == "validation"), q)
    path = []
    for alpha in ALPHAS:
        g = solver(*training, penalty(training[0], alpha)).coefficients
        path.append((alpha, float(np.linalg.norm(validation[0] @ g - validation[1]))))
    alpha = min(path, key=lambda item: (item[1], item[0]))[0]
    return RidgeChoice(alpha, penalty(training[0], alpha), tuple(path))


def _one_support(evidence: Evidence, name: str, q: float, ridge: float, solver: _Solver) -> SupportFit:
    part = evidence.select(lambda key: key.support == name)
    try:
        solution = solver(*system(part, q), ridge)
    except InputError as error:  # an expected outcome for a short or poor support, said in the result
        return SupportFit(name, part.rows, None, str(error))
    return SupportFit(name, part.rows, solution.coefficients, "fitted")
