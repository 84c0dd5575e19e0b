"""Degrees: every degree from one evidence, and the average over them that needs no choice.

The bracket is written in Legendre polynomials of z on [0, 1], p = sum_k a_k P_k(2z - 1). A component of the average is
a degree m and a ratio rho: a_0 is free, a_k ~ N(0, (a_0 rho^k)^2) for k = 1..m, and higher terms vanish. Its weight is
its marginal likelihood times 0.9^m: the data choose both how far the series goes and how fast it decays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate.least_squares import Solution, solve_free, solve_positive
from doublewell.evidence import Evidence, lower, system
from doublewell.hints import Array
from doublewell.law import Bernstein

__all__ = ["Component", "DegreeAverage", "DegreeFit", "average_degrees", "fit_degree"]

RATIOS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2)
DEGREE_ODDS = 0.9
_BOUND = 1e-10  # lower bound of positive coefficients, relative to a constant bracket of the data's size


@dataclass(frozen=True, eq=False)
class DegreeFit:
    """The most likely law of one degree, no prior.

    ``chi2`` is the cost in units of the noise above the highest degree's unconstrained fit, ``weight`` the degree's
    share of the average, ``free`` the unconstrained coefficients with their ``covariance``, ``coefficients`` the
    constrained ones and ``active`` those at their bound.
    """

    degree: int
    chi2: float
    weight: float
    coefficients: Array
    free: Array
    covariance: Array
    active: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Component:
    """One normal distribution of the mixture: mean and covariance in the Bernstein coefficients of its degree.

    ``ratio`` is the prior's decay, None for a flat prior. ``coefficients`` is the constrained mean.
    """

    degree: int
    ratio: float | None
    weight: float
    free: Array
    coefficients: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class DegreeAverage:
    """The table of degrees, the mixture, and its mean with and without the constraint, at the evidence's degree."""

    path: tuple[DegreeFit, ...]
    components: tuple[Component, ...]
    free: Array
    coefficients: Array


def average_degrees(evidence: Evidence, q: float, *, positive: bool) -> DegreeAverage:
    """Average over all degrees up to the evidence's own.

    Elevation and averaging keep positive coefficients positive, so the mean of double wells is one.
    """
    _check(evidence)
    amplitude = _amplitude(evidence, q)
    table, weighed = [], []
    for degree in range(evidence.family.degree + 1):
        matrix, target = system(lower(evidence, degree), q)
        table.append(_most_likely(matrix, target, positive))
        for ratio in RATIOS if degree else RATIOS[:1]:
            weighed.append(_component(matrix, target, amplitude, ratio, positive, len(RATIOS) if degree else 1))
    logs = np.array([log for log, _ in weighed])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    components = tuple(_with_weight(item, float(w)) for (_, item), w in zip(weighed, weights, strict=True))
    return _average(evidence, table, components)


def fit_degree(evidence: Evidence, q: float, *, positive: bool) -> DegreeAverage:
    """Return the fit at the evidence's own degree in the same form: one component, no prior."""
    _check(evidence)
    fit = _most_likely(*system(evidence, q), positive)
    component = Component(fit.degree, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    return _average(evidence, [fit], (component,))


def _check(evidence: Evidence) -> None:
    if evidence.reading != "trajectory":
        raise InputError(
            "weak moments have no noise model, so degrees cannot be weighed by them: use method='trajectory', or give "
            "a degree"
        )


def _average(evidence: Evidence, table: list[DegreeFit], components: tuple[Component, ...]) -> DegreeAverage:
    floor = min(fit.chi2 for fit in table)
    shares = {m: sum(c.weight for c in components if c.degree == m) for m in {c.degree for c in components}}
    path = tuple(
        DegreeFit(f.degree, f.chi2 - floor, shares[f.degree], f.coefficients, f.free, f.covariance, f.active)
        for f in table
    )
    lifts = [Bernstein(c.degree).elevation(evidence.family) for c in components]
    free = np.sum([c.weight * (lift @ c.free) for c, lift in zip(components, lifts, strict=True)], axis=0)
    mean = np.sum([c.weight * (lift @ c.coefficients) for c, lift in zip(components, lifts, strict=True)], axis=0)
    return DegreeAverage(path, components, np.asarray(free), np.asarray(mean))


def _most_likely(matrix: Array, target: Array, positive: bool) -> DegreeFit:
    free = solve_free(matrix, target)
    fit = _constrained(matrix, target, free, positive)
    inverse = np.linalg.inv(np.linalg.qr(matrix, mode="r"))
    active = tuple(int(j) for j in np.flatnonzero(fit.active))
    degree = matrix.shape[1] - 1
    return DegreeFit(degree, fit.residual**2, 0.0, fit.coefficients, free.coefficients, inverse @ inverse.T, active)


def _component(
    matrix: Array, target: Array, amplitude: float, ratio: float, positive: bool, choices: int
) -> tuple[float, Component]:
    """Return the log of the weight and the component of one degree and ratio."""
    degree = matrix.shape[1] - 1
    turn = legendre_to_bernstein(degree)
    spread = amplitude * ratio ** np.arange(1, degree + 1)
    prior = np.diag(np.concatenate([[0.0], 1.0 / spread]))
    rows = np.vstack([matrix @ turn, prior])
    right = np.concatenate([target, np.zeros(degree + 1)])
    basis, triangle = np.linalg.qr(rows)
    a = np.linalg.solve(triangle, basis.T @ right)
    cost = float(np.sum((rows @ a - right) ** 2))
    spread_out = turn @ np.linalg.inv(triangle)
    untold = rows @ np.linalg.inv(turn)  # the same rows in Bernstein coefficients
    fit = _constrained(untold, right, solve_free(untold, right), positive)
    occam = float(np.sum(np.log(np.abs(np.diag(triangle)))) + np.sum(np.log(spread)))
    log = -0.5 * max(cost, fit.residual**2) - occam
    log += degree * np.log(DEGREE_ODDS) - np.log(choices)
    return log, Component(degree, ratio, 0.0, turn @ a, fit.coefficients, spread_out @ spread_out.T)


def _constrained(matrix: Array, target: Array, free: Solution, positive: bool) -> Solution:
    """Solve again with the bound; its unit is the constant bracket of the same size as the data.

    The largest unbounded coefficient is no unit: where the record does not reach, it may be larger by ten decades.
    """
    if not positive:
        return free
    unit = float(np.linalg.norm(target) / np.linalg.norm(np.sum(matrix, axis=1)))
    return solve_positive(matrix, target, _BOUND * unit, free=free)


def _amplitude(evidence: Evidence, q: float) -> float:
    """The mean of the bracket in a well-determined fit: the prior's unit."""
    low = min(2, evidence.family.degree)
    matrix, target = system(lower(evidence, low), q)
    return float(abs(np.linalg.solve(legendre_to_bernstein(low), solve_free(matrix, target).coefficients)[0]))


def _with_weight(item: Component, weight: float) -> Component:
    return Component(item.degree, item.ratio, weight, item.free, item.coefficients, item.covariance)


@cache
def legendre_to_bernstein(degree: int) -> Array:
    """Return the matrix from Legendre to Bernstein coefficients of one degree on [0, 1].

    P_k(2z - 1) has the Bernstein coefficients (-1)^(k + j) C(k, j) at its own degree.

    >>> legendre_to_bernstein(1).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """
    family = Bernstein(degree)
    columns = [
        Bernstein(k).elevation(family) @ np.array([(-1.0) ** (k + j) * comb(k, j) for j in range(k + 1)])
        for k in range(degree + 1)
    ]
    matrix = np.stack(columns, axis=1)
    matrix.flags.writeable = False
    return matrix
