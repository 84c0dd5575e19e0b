"""Projection: the nearest law of a class to any force, and whether a force is a double well as it was produced."""

from __future__ import annotations

import numpy as np

from doublewell.baselines.protocol import BaselineFit, Force
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Constraint
from doublewell.inference.ridge import solve
from doublewell.law import MAX_DEGREE, Bernstein, Law

__all__ = ["EXACT_DEGREE", "PAPER_DEGREE", "admissible", "evaluated", "project"]

PAPER_DEGREE = 2  # of the positive family that the paper projects onto
EXACT_DEGREE = MAX_DEGREE  # of the double wells, so that the degree is no part of the error
_NODES = 200
_MESH = 20_001
_ZERO = 1e-6  # of the largest force: how far from zero the force at a pure phase may be


def project(force: Force, degree: int = PAPER_DEGREE, *, constraint: Constraint = "bernstein") -> Law:
    """Return the law of a degree and class that is nearest to a force in L2(-1, 1).

    With "bernstein" and degree two it is the projection of the paper. With "admissible" the class is every plain
    double well of the degree.

    >>> law = project(lambda u: -2.0 * u * (1.0 - u**2))
    >>> law.coefficients.round(9).tolist()
    [2.0, 2.0, 2.0]
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    root = np.sqrt(weights)
    family = Bernstein(degree)
    found, _ = solve((root * family.features(points)).T, root * evaluated(force, points), constraint=constraint)
    return Law(family, found.coefficients)


def admissible(fit: BaselineFit) -> bool:
    """Say whether a force is a plain double well as it was produced.

    Coefficients decide it exactly. Any other force is looked at on 20001 phase values: zero at both pure phases, to
    1e-6 of its largest value, and of the right sign on either side of one maximum of H. The paper's wells are alike, so
    that maximum is at zero, to the width of the mesh.
    """
    if fit.law is not None:
        return fit.law.structure.ok
    u = np.linspace(-1.0, 1.0, _MESH)
    force = evaluated(fit.force, u)
    size = float(np.max(np.abs(force)))
    at_phases = max(abs(force[0]), abs(force[-1])) <= _ZERO * size
    inner, left = force[1:-1], u[1:-1] < 0.0
    right = u[1:-1] > 0.0
    return bool(at_phases and np.all(inner[left] > 0.0) and np.all(inner[right] < 0.0))


def evaluated(force: Force, u: Array) -> Array:
    """Return the values of a force, checked to be finite numbers, one for each phase value."""
    values = np.asarray(force(u), dtype=np.float64)
    if values.shape != u.shape:
        raise InputError(f"the force returned shape {values.shape} for {u.shape} phase values: expected as many")
    if not np.all(np.isfinite(values)):
        raise InputError(f"the force is not finite at u = {u[np.argmin(np.isfinite(values))]:.4g}: expected numbers")
    return values
