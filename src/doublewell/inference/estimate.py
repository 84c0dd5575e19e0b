"""Estimate: from evidence to coefficients, with everything that says how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.checks import not_negative
from doublewell.errors import InputError
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.inference.constraint import Constraint, check_constraint
from doublewell.inference.least_squares import Solution, column_scale, solve_free
from doublewell.inference.ridge import RidgeChoice, choose_ridge, penalty, solve
from doublewell.law import Law, LinearFamily

__all__ = ["Constraint", "Estimate", "SupportFit", "estimate"]

_RIDGES = "None, 'validated', or alpha, a number of at least 0"


@dataclass(frozen=True)
class SupportFit:
    """What one support alone would have said; ``coefficients`` is None where it cannot stand alone."""

    support: str
    rows: int
    coefficients: Array | None
    status: str


@dataclass(frozen=True)
class Estimate:
    """The coefficients of the effective force and the numbers behind them.

    ``condition`` is of the matrix as assembled, ``scaled_condition`` with unit columns (the paper's). ``unbounded``
    are the coefficients without bound and ridge. ``bound`` is the lower bound of the coefficients ("bernstein") or of
    the bracket ("admissible"), -inf when there is none.
    """

    family: LinearFamily
    solution: Solution
    unbounded: Array
    bound: float
    constraint: Constraint
    ridge: RidgeChoice | None
    condition: float
    scaled_condition: float
    target_size: float
    rows: int
    supports: tuple[SupportFit, ...]

    @property
    def coefficients(self) -> Array:
        """The estimated coefficients."""
        return self.solution.coefficients

    @property
    def law(self) -> Law:
        """The estimated effective force G as a law."""
        return Law(self.family, self.coefficients)

    @property
    def relative_residual(self) -> float:
        """|A g - d| / |d|, zero when d is."""
        return self.solution.residual / self.target_size if self.target_size else 0.0

    @property
    def support_spread(self) -> float:
        """The largest difference between the force of one support alone and the estimate, relative, in L2."""
        u = np.linspace(-1.0, 1.0, 201)
        features = self.family.features(u)
        whole = self.coefficients @ features
        alone = [fit.coefficients for fit in self.supports if fit.coefficients is not None]
        gaps = [np.linalg.norm((g - self.coefficients) @ features) for g in alone]
        size = np.linalg.norm(whole)
        return float(max(gaps, default=0.0) / size) if size else 0.0


def estimate(
    evidence: Evidence,
    q: float,
    *,
    constraint: Constraint = "admissible",
    ridge: float | Literal["validated"] | None = None,
) -> Estimate:
    """Solve the small problem behind the evidence (paper, Eqs. 12 and 13, with constraint "bernstein").

    `ridge` is alpha, a multiple of the mean squared column norm; "validated" chooses it from the paper's grid on
    the folds "training" and "validation" of the evidence and refits all rows with the same penalty.
    """
    constraint = check_constraint(constraint)
    matrix, target = system(evidence, q)
    _, _, values = column_scale(matrix)
    unbounded = solve_free(matrix, target)
    choice = _ridge(evidence, matrix, q, ridge, constraint)
    solution, bound = solve(
        matrix, target, constraint=constraint, ridge=choice.penalty if choice else 0.0, unbounded=unbounded,
        family=evidence.family,
    )  # fmt: skip
    return Estimate(
        family=evidence.family,
        solution=solution,
        unbounded=unbounded.coefficients,
        bound=bound,
        constraint=constraint,
        ridge=choice,
        condition=float(np.linalg.cond(matrix)),
        scaled_condition=float(values[0] / values[-1]),
        target_size=float(np.linalg.norm(target)),
        rows=evidence.rows,
        supports=_each_support(evidence, q, constraint, choice.penalty if choice else 0.0),
    )


def _ridge(
    evidence: Evidence, matrix: Array, q: float, ridge: float | str | None, constraint: Constraint
) -> RidgeChoice | None:
    if ridge is None:
        return None
    if isinstance(ridge, str):
        if ridge != "validated":
            raise InputError(f"ridge is {ridge!r}: expected {_RIDGES}")
        if not {"training", "validation"} <= set(evidence.folds):
            raise InputError("a validated ridge needs evidence with the folds 'training' and 'validation'")
        training = evidence.select(lambda key: key.fold == "training")
        validation = evidence.select(lambda key: key.fold == "validation")
        return choose_ridge(training, validation, q, constraint=constraint)
    alpha = not_negative(ridge, "ridge", "None, 'validated', or alpha")
    return RidgeChoice(alpha, penalty(matrix, alpha), ())


def _each_support(evidence: Evidence, q: float, constraint: Constraint, ridge: float) -> tuple[SupportFit, ...]:
    """Fit every support alone, for the sensitivity to the choice of supports."""
    return tuple(_one_support(evidence, name, q, constraint, ridge) for name in evidence.supports)


def _one_support(evidence: Evidence, name: str, q: float, constraint: Constraint, ridge: float) -> SupportFit:
    part = evidence.select(lambda key: key.support == name)
    try:
        solution, _ = solve(*system(part, q), constraint=constraint, ridge=ridge, family=evidence.family)
    except InputError as error:  # an expected outcome for a short or poor support, said in the result
        return SupportFit(name, part.rows, None, str(error))
    return SupportFit(name, part.rows, solution.coefficients, "fitted")
