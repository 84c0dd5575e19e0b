"""Mixture: the posterior over degrees for one record, or for many that share one R.

The likelihood is |R g - d|^2 in units of the noise, with d a row of `targets`. One record is one row. A plan draws
thousands of rows, because its records differ by their noise alone; all are solved at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.inference.constraint import Constraint, hold
from doublewell.inference.degree_prior import DegreePrior, PriorTerm, legendre_to_bernstein
from doublewell.inference.least_squares import check_rank, column_scale
from doublewell.law import Bernstein

__all__ = ["FittedRows", "WeighedTerm", "fit_rows", "free_mean", "mixture_mean", "weigh_terms"]

_NEGLIGIBLE = 1e-9  # weight over the largest one below which a term is not held in the class


@dataclass(frozen=True, eq=False)
class WeighedTerm:
    """A term of the prior after the data, in Bernstein coefficients of its degree; first axis: the rows of targets.

    ``weights`` sum to 1 over the terms. ``free`` is the mean of the normal distribution, ``covariances`` its spread,
    ``coefficients`` the most likely point with the constraint. Where a term cannot count, its weight is 0 and its
    coefficients are those of a constant bracket.
    """

    term: PriorTerm
    weights: Array
    free: Array
    coefficients: Array
    covariances: Array


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Fits of one degree without a prior; first axis: the rows of targets. All share one ``covariance``.

    ``cost`` is the squared residual of ``coefficients``, which obey the constraint; ``active`` marks those at their
    bound, and ``bounds`` are the lower bounds of brackets, -inf where none was needed.
    """

    free: Array
    coefficients: Array
    covariance: Array
    cost: Array
    active: NDArray[np.bool_]
    bounds: Array


def weigh_terms(
    matrix: Array, targets: Array, prior: DegreePrior, *, constraint: Constraint
) -> tuple[WeighedTerm, ...]:
    """Return the terms weighed by their marginal likelihood times their prior weight.

    The cost of a term is that of its best law in the class of the constraint, so that a term that leans on other laws
    loses its weight. Its weight without the constraint bounds that from above: a term that cannot count is not solved.
    """
    basis, triangle = _factors(matrix)
    targets = targets @ basis  # the same likelihood but for a constant
    unit = _unit(triangle, targets)
    top = Bernstein(triangle.shape[1] - 1)
    terms = prior.terms(top.degree)
    found, best = [], np.full(len(targets), -np.inf)
    share = 0.0 if constraint == "none" else _NEGLIGIBLE  # nothing is saved where nothing is solved
    for degree, group in groupby(terms, key=lambda term: term.degree):
        rows = triangle @ Bernstein(degree).elevation(top)
        found.append(_posteriors(rows, targets, unit, tuple(group), constraint, best, share))
        best = np.maximum(best, np.max(found[-1][0], axis=0))
    logs = np.concatenate([log for log, *_ in found])
    weights = np.exp(logs - np.max(logs, axis=0))
    weights /= np.sum(weights, axis=0)
    each = [one for _, *rest in found for one in zip(*rest, strict=True)]
    return tuple(WeighedTerm(t, w, *rest) for t, w, rest in zip(terms, weights, each, strict=True))


def mixture_mean(terms: tuple[WeighedTerm, ...], family: Bernstein) -> Array:
    """Return the mean of the mixture in the coefficients of `family`, one row for each row of targets.

    The classes are convex, and elevation does not change a law, so the mean of double wells is one.
    """
    return _mean(terms, [item.coefficients for item in terms], family)


def free_mean(terms: tuple[WeighedTerm, ...], family: Bernstein) -> Array:
    """Return the mean of the mixture before its terms were held in the class, with the weights that they have there."""
    return _mean(terms, [item.free for item in terms], family)


def _mean(terms: tuple[WeighedTerm, ...], each: list[Array], family: Bernstein) -> Array:
    total = np.zeros((terms[0].weights.size, family.size))
    for item, means in zip(terms, each, strict=True):
        total += item.weights[:, None] * (means @ Bernstein(item.term.degree).elevation(family).T)
    return total


def fit_rows(matrix: Array, targets: Array, *, constraint: Constraint) -> FittedRows:
    """Return the most likely coefficients without a prior, for each row of targets."""
    basis, root = _factors(matrix)
    right = targets @ basis
    inverse = np.linalg.inv(root)
    free = right @ inverse.T
    cost = np.sum((free @ matrix.T - targets) ** 2, axis=1)
    held = hold(constraint, np.broadcast_to(root, (len(free), *root.shape)), right, free)
    return FittedRows(free, held.coefficients, inverse @ inverse.T, cost + held.rise, held.active, held.bounds)


def _factors(matrix: Array) -> tuple[Array, Array]:
    check_rank(column_scale(matrix)[2])
    basis, triangle = np.linalg.qr(matrix)
    return basis, triangle


def _unit(triangle: Array, targets: Array) -> Array:
    """Return the mean of the bracket in a well-determined fit, for each row: the unit of the prior."""
    low = min(2, triangle.shape[1] - 1)
    lift = Bernstein(low).elevation(Bernstein(triangle.shape[1] - 1)) @ legendre_to_bernstein(low)
    basis, root = np.linalg.qr(triangle @ lift)
    return np.asarray(np.abs(np.linalg.solve(root, (targets @ basis).T)[0]))


def _posteriors(
    matrix: Array,
    targets: Array,
    unit: Array,
    terms: tuple[PriorTerm, ...],
    constraint: Constraint,
    best: Array,
    share: float,
) -> tuple[Array, Array, Array, Array]:
    """Return the log weights, means, constrained means and covariances of all terms of one degree, [term, row, ...].

    A term whose weight cannot reach a `share` of the `best` log weight so far gets the log weight -inf.
    """
    turn = legendre_to_bernstein(terms[0].degree)
    spreads = unit[:, None] * np.stack([term.spreads for term in terms])[:, None]
    basis, roots = np.linalg.qr(_with_prior(matrix @ turn, spreads))
    right = np.einsum("tnij,ni->tnj", basis[:, :, : len(matrix)], targets)
    inverse = np.linalg.inv(roots)
    series = np.einsum("tnij,tnj->tni", inverse, right)
    cost = np.sum((series @ (matrix @ turn).T - targets) ** 2, axis=2) + np.sum(
        (series[..., 1:] / spreads) ** 2, axis=2
    )
    free, spread_out = series @ turn.T, turn @ inverse
    occam = np.sum(np.log(np.abs(np.diagonal(roots, axis1=2, axis2=3))), axis=2) + np.sum(np.log(spreads), axis=2)
    logs = np.array([term.log_weight for term in terms])[:, None] - 0.5 * cost - occam
    counts = np.exp(np.minimum(logs - best, 0.0)) >= share
    inside = hold(constraint, roots[counts] @ np.linalg.inv(turn), right[counts], free[counts])
    held = np.broadcast_to(unit[:, None], free.shape).copy()
    held[counts] = inside.coefficients
    logs[counts] -= 0.5 * inside.rise
    logs[~counts] = -np.inf
    return logs, free, held, spread_out @ np.swapaxes(spread_out, 2, 3)


def _with_prior(matrix: Array, spreads: Array) -> Array:
    """Stack the data's rows on those of the prior, a_k / spread = 0, for each term and row of targets."""
    size = matrix.shape[1]
    rows = np.zeros((*spreads.shape[:2], len(matrix) + size, size))
    rows[:, :, : len(matrix)] = matrix
    k = np.arange(1, size)
    rows[:, :, len(matrix) + k, k] = 1.0 / spreads
    return rows
