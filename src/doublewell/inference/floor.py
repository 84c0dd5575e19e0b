"""The approximation floor: how close a class of laws comes to a known one, before any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.inference.constraint import Constraint, check_constraint
from doublewell.inference.ridge import solve
from doublewell.law import Bernstein, Law
from doublewell.law.family import Array

__all__ = ["Floor", "approximation_floor"]


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
    points, weights = np.polynomial.legendre.leggauss(nodes)
    root = np.sqrt(weights)
    matrix = (root * Bernstein(degree).features(points)).T
    target = root * law.force(points)
    coefficients, misfit = _nearest(matrix, target, check_constraint(constraint))
    return Floor(coefficients, float(misfit / np.linalg.norm(target)))


def _nearest(matrix: Array, target: Array, constraint: Constraint) -> tuple[Array, float]:
    from scipy.optimize import nnls

    if constraint == "bernstein":
        coefficients, misfit = nnls(matrix, target)
        return coefficients, float(misfit)
    found, _ = solve(matrix, target, constraint=constraint)
    return found.coefficients, found.residual
