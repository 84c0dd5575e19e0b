"""Estimate: from evidence to the coefficients of one degree, with the numbers that tell how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.errors import InputError, not_negative
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.inference.least_squares import (
    RidgeChoice,
    Solution,
    choose_ridge,
    column_scale,
    penalty,
    solve,
    solve_free,
)
from doublewell.law import Bernstein, Constraint, Family, Law, check_constraint

_RIDGES = "None, 'validated', or alpha, a number of at least 0"


@dataclass(frozen=True)
class SupportFit:
    """The fit of one support alone; ``coefficients`` is None where it cannot stand alone."""

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

    family: Family
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
    size = choice.penalty if choice else 0.0
    solution, bound = solve(matrix, target, evidence.family, constraint=constraint, ridge=size, unbounded=unbounded)
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
        supports=tuple(_one_support(evidence, name, q, constraint, size) for name in evidence.supports),
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


def _one_support(evidence: Evidence, name: str, q: float, constraint: Constraint, ridge: float) -> SupportFit:
    """Fit one support alone, for the sensitivity to the choice of supports."""
    part = evidence.select(lambda key: key.support == name)
    try:
        solution, _ = solve(*system(part, q), evidence.family, constraint=constraint, ridge=ridge)
    except InputError as error:  # an expected outcome for a short or poor support, reported in the result
        return SupportFit(name, part.rows, None, str(error))
    return SupportFit(name, part.rows, solution.coefficients, "fitted")


@dataclass(frozen=True, eq=False)
class Floor:
    """The best approximation of a force in a class of laws, and its relative L2 error on [-1, 1]."""

    coefficients: Array
    error: float


def approximation_floor(law: Law, degree: int, *, constraint: Constraint = "admissible", nodes: int = 80) -> Floor:
    """Return the projection of a law's force in L2(-1, 1) onto the laws of a degree that obey the constraint.

    The integrals are Gauss-Legendre sums. For "bernstein" it is the paper's floor, with nonnegative coefficients.
    No data enter, so the truth must be known: the floor explains a study, it cannot choose a degree.

    >>> from doublewell.law import named_law
    >>> round(100 * approximation_floor(named_law("outside_cone"), 2, constraint="bernstein").error, 2)
    37.68
    >>> approximation_floor(named_law("outside_cone"), 2).error < 1e-12
    True
    """
    from scipy.optimize import nnls

    points, weights = np.polynomial.legendre.leggauss(nodes)
    root, family = np.sqrt(weights), Bernstein(degree)
    matrix, target = (root * family.features(points)).T, root * law.force(points)
    if check_constraint(constraint) == "bernstein":
        coefficients, misfit = nnls(matrix, target)
    else:
        best, _ = solve(matrix, target, family, constraint=constraint)
        coefficients, misfit = best.coefficients, best.residual
    return Floor(coefficients, float(misfit / np.linalg.norm(target)))
