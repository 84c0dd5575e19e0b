"""Estimator: what `identify` would conclude from many records that differ by their noise alone.

All share one R, so the small problems of `estimate.degrees` are solved for all draws at once; the rule is the same, and
a test holds the two together. 4000 draws take about a second, one by one a minute.
"""

from __future__ import annotations

import numpy as np

from doublewell.estimate.degrees import DEGREE_ODDS, RATIOS, legendre_to_bernstein
from doublewell.estimate.ridge import BOUND
from doublewell.hints import Array
from doublewell.law import Bernstein

__all__ = ["average_many", "fit_many"]


def average_many(triangle: Array, most_likely: Array, *, positive: bool) -> Array:
    """Return the average over degrees for each row of most likely coefficients; `triangle` is R in units of the noise.

    Rows and results are coefficients of the degree of R.
    """
    top = Bernstein(len(triangle) - 1)
    targets = most_likely @ triangle.T
    amplitude = _amplitude(triangle, targets, top)
    logs, found = [], []
    for degree in range(top.degree + 1):
        lift = Bernstein(degree).elevation(top)
        for ratio in RATIOS if degree else RATIOS[:1]:
            spread = amplitude[:, None] * ratio ** np.arange(1, degree + 1)
            log, coefficients = _component(triangle @ lift, targets, spread, positive)
            logs.append(log + degree * np.log(DEGREE_ODDS) - np.log(len(RATIOS) if degree else 1))
            found.append(coefficients @ lift.T)
    weights = np.exp(np.array(logs) - np.max(logs, axis=0))
    weights /= np.sum(weights, axis=0)
    return np.asarray(np.einsum("cn,cnk->nk", weights, np.array(found)))


def fit_many(triangle: Array, most_likely: Array, degree: int, *, positive: bool) -> Array:
    """Return the fit of one degree for each row of most likely coefficients, written at the degree of R."""
    top = Bernstein(len(triangle) - 1)
    lift = Bernstein(degree).elevation(top)
    basis, root = np.linalg.qr(triangle @ lift)
    right = most_likely @ triangle.T @ basis
    free = np.linalg.solve(root, right.T).T
    if positive:
        free, _ = _into_cone(np.broadcast_to(root, (len(free), *root.shape)), right, free)
    return np.asarray(free @ lift.T)


def _amplitude(triangle: Array, targets: Array, top: Bernstein) -> Array:
    """Return the mean of the bracket in a fit of degree 2, the unit of the prior."""
    low = min(2, top.degree)
    matrix = triangle @ Bernstein(low).elevation(top) @ legendre_to_bernstein(low)
    return np.asarray(np.abs(np.linalg.lstsq(matrix, targets.T, rcond=None)[0][0]))


def _component(matrix: Array, targets: Array, spread: Array, positive: bool) -> tuple[Array, Array]:
    """Return the log of the marginal likelihood and the mean of one degree and ratio, for every draw."""
    count, size = len(targets), matrix.shape[1]
    turn = legendre_to_bernstein(size - 1)
    rows = np.zeros((count, len(matrix) + size, size))
    rows[:, : len(matrix)] = matrix @ turn
    k = np.arange(1, size)
    rows[:, len(matrix) + k, k] = 1.0 / spread
    basis, root = np.linalg.qr(rows)
    right = np.einsum("nij,ni->nj", basis[:, : len(matrix)], targets)
    free = np.linalg.solve(root, right[:, :, None])[:, :, 0] @ turn.T
    cost = np.sum(targets**2, axis=1) - np.sum(right**2, axis=1)
    if positive:
        free, rise = _into_cone(root @ np.linalg.inv(turn), right, free)
        cost = cost + rise
    occam = np.sum(np.log(np.abs(np.diagonal(root, axis1=1, axis2=2))), axis=1) + np.sum(np.log(spread), axis=1)
    return -0.5 * cost - occam, free


def _into_cone(roots: Array, right: Array, free: Array) -> tuple[Array, Array]:
    """Solve again, with positive coefficients, where a coefficient is not; return also the rise of the cost."""
    from scipy.optimize import nnls

    found, rise = free.copy(), np.zeros(len(free))
    bounds = BOUND * np.max(np.abs(free), axis=1)
    for i in np.flatnonzero(np.any(free < bounds[:, None], axis=1)):
        norms = np.linalg.norm(roots[i], axis=0)
        lift, _ = nnls(roots[i] / norms, right[i] - bounds[i] * np.sum(roots[i], axis=1))
        found[i] = bounds[i] + lift / norms
        rise[i] = np.sum((roots[i] @ found[i] - right[i]) ** 2)
    return found, rise
