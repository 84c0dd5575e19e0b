"""Degrees: every degree from one evidence, and the average over them that needs no choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate.least_squares import Array
from doublewell.estimate.ridge import solve
from doublewell.evidence import Evidence, lower, system
from doublewell.law import Bernstein

__all__ = ["PENALTY", "DegreeFit", "average_coefficients", "degree_path"]

PENALTY = 4.0  # per coefficient: chosen by coverage and error on laws inside and outside the polynomials


@dataclass(frozen=True, eq=False)
class DegreeFit:
    """The best law of one degree in the metric of the evidence.

    ``chi2`` is the cost in units of the noise above the highest degree's unconstrained fit, ``weight`` the degree's
    share of the average, ``free`` the unconstrained coefficients with their ``covariance``, ``coefficients`` the
    constrained ones.
    """

    degree: int
    chi2: float
    weight: float
    coefficients: Array
    free: Array
    covariance: Array
    active: tuple[int, ...]


def degree_path(
    evidence: Evidence, q: float, *, positive: bool, degrees: tuple[int, ...] | None = None
) -> tuple[DegreeFit, ...]:
    """Fit every degree from 0 to the evidence's own (or the given ones) and weight them.

    The weight of degree m is proportional to exp(-(chi2 + 4 (m + 1)) / 2): a likelihood times a prior that asks each
    further coefficient for a rise of 4 in twice the log-likelihood.
    """
    if evidence.reading != "trajectory":
        raise InputError(
            "weak moments have no noise model, so degrees cannot be weighed by them: use method='trajectory', or give "
            "a degree"
        )
    top = evidence.family.degree
    chosen = tuple(range(top + 1)) if degrees is None else degrees
    floor = _floor(evidence, q)
    fits = [_one_degree(lower(evidence, m), q, positive, floor) for m in chosen]
    scores = np.array([fit.chi2 + PENALTY * (fit.degree + 1) for fit in fits])
    weights = np.exp(-0.5 * (scores - scores.min()))
    weights /= weights.sum()
    return tuple(
        DegreeFit(f.degree, f.chi2, float(w), f.coefficients, f.free, f.covariance, f.active)
        for f, w in zip(fits, weights, strict=True)
    )


def average_coefficients(path: tuple[DegreeFit, ...], evidence: Evidence) -> Array:
    """Return the weighted mean of the path's laws, written at the evidence's degree.

    Elevation and averaging keep positive coefficients positive, so the mean of double wells is one.
    """
    lifted = [fit.weight * (Bernstein(fit.degree).elevation(evidence.family) @ fit.coefficients) for fit in path]
    return np.asarray(np.sum(lifted, axis=0))


def _floor(evidence: Evidence, q: float) -> float:
    matrix, target = system(evidence, q)
    return solve(matrix, target, positive=False)[0].residual ** 2


def _one_degree(evidence: Evidence, q: float, positive: bool, floor: float) -> DegreeFit:
    matrix, target = system(evidence, q)
    free, _ = solve(matrix, target, positive=False)
    fit, _ = solve(matrix, target, positive=positive)
    inverse = np.linalg.inv(np.linalg.qr(matrix, mode="r"))
    active = tuple(int(j) for j in np.flatnonzero(fit.active))
    chi2 = fit.residual**2 - floor
    return DegreeFit(
        evidence.family.degree, chi2, 0.0, fit.coefficients, free.coefficients, inverse @ inverse.T, active
    )
