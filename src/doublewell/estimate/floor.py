"""The approximation floor: how close the positive family comes to a known law, before any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.law import Bernstein, Law
from doublewell.law.family import Array

__all__ = ["Floor", "approximation_floor"]


@dataclass(frozen=True, eq=False)
class Floor:
    """The best approximation of a force with nonnegative coefficients, and its relative L2 error on [-1, 1]."""

    coefficients: Array
    error: float


def approximation_floor(law: Law, degree: int, *, nodes: int = 80) -> Floor:
    """Return the nonnegative-cone projection of a law's force in L2(-1, 1) by Gauss-Legendre quadrature.

    No data enter, so the truth must be known: the floor explains a study, it cannot choose a degree.

    >>> from doublewell.law import named_law
    >>> round(100 * approximation_floor(named_law("outside_cone"), 2).error, 2)
    37.68
    """
    from scipy.optimize import nnls

    points, weights = np.polynomial.legendre.leggauss(nodes)
    root = np.sqrt(weights)
    matrix = (root * Bernstein(degree).features(points)).T
    target = root * law.force(points)
    coefficients, misfit = nnls(matrix, target)
    return Floor(coefficients, float(misfit / np.linalg.norm(target)))
