"""Degrees of laws with unlike wells: the same average, with the even part of r as a second series.

r(s) = s P(s^2) + Q(s^2), P = sum_k a_k P_k(2z - 1), Q = sum_k b_k P_k(2z - 1) in Legendre polynomials of z = s^2. P has
the prior of symmetric laws, and Q the same: b_k ~ N(0, (size a_0 ratio^k)^2) for k = 0..m. Without Q it is the
symmetric average. For equally deep wells b_0 is what makes the depths equal.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from math import comb, log
from typing import NamedTuple

import numpy as np

from doublewell.hints import Array
from doublewell.inference.degree_prior import DegreePrior, PriorTerm, legendre_to_bernstein
from doublewell.inference.degrees import Component, DegreeAverage, DegreeFit
from doublewell.inference.least_squares import Solution, check_rank, column_scale
from doublewell.inference.wells import solve_wells
from doublewell.law import Bernstein, EqualWells, LinearFamily, Wells, embedding
from doublewell.law.bernstein import elevation_matrix
from doublewell.law.wells import depth_weights, wells_to_equal

__all__ = ["average_wells", "fit_wells", "series_matrix"]

_LOW = 2  # the degree whose fit gives the prior its unit
_FAR = 25.0  # log weights below the best by more than this are not worth the constraint


def average_wells(
    matrix: Array, target: Array, family: LinearFamily, *, constrained: bool, prior: DegreePrior
) -> DegreeAverage:
    """Average over all degrees up to the family's own."""
    check_rank(column_scale(matrix)[2])
    basis, triangle = np.linalg.qr(matrix)
    right = basis.T @ target
    parts = [family.at(m) for m in range(family.degree + 1)]
    table = [_most_likely(triangle @ one.elevation(family), right, one, constrained) for one in parts]
    weighed = _weighed(triangle, right, family, prior, constrained)
    shares = [sum(item.weight for item in weighed if item.degree == fit.degree) for fit in table]
    floor = min(fit.chi2 for fit in table)
    path = tuple(replace(fit, chi2=fit.chi2 - floor, weight=w) for fit, w in zip(table, shares, strict=True))
    free = _mean(weighed, family, [item.free for item in weighed])
    held = _mean(weighed, family, [item.coefficients for item in weighed])
    if constrained:  # laws with different maxima may add up to one with two
        held = solve_wells(triangle, triangle @ held, family, free=_as_solution(held)).coefficients
    return DegreeAverage(path, tuple(weighed), free, held if constrained else free)


def fit_wells(matrix: Array, target: Array, family: LinearFamily, *, constrained: bool) -> DegreeAverage:
    """Return the fit at one degree in the same form: one component, no prior."""
    check_rank(column_scale(matrix)[2])
    basis, triangle = np.linalg.qr(matrix)
    fit = _most_likely(triangle, basis.T @ target, family, constrained)
    component = Component(fit.degree, None, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    return DegreeAverage((replace(fit, chi2=0.0, weight=1.0),), (component,), fit.free, fit.coefficients)


@cache
def series_matrix(family: LinearFamily) -> Array:
    """Return the matrix from the series a_0..a_m, b_0..b_m (b_1..b_m for equal depths) to the coefficients."""
    m = family.degree
    odd = embedding(Bernstein(m), Wells(m)) @ legendre_to_bernstein(m)
    even = _even_to_wells(m) @ legendre_to_bernstein(m)
    if isinstance(family, EqualWells):
        depths = depth_weights(m) @ even
        even = even[:, 1:] - np.outer(even[:, 0], depths[1:] / depths[0])
        return np.asarray(wells_to_equal(m) @ np.hstack([odd, even]))
    return np.hstack([odd, even])


def _even_to_wells(m: int) -> Array:
    """Write q(s^2), given in Bernstein polynomials of z, in those of t of degree 2m + 1."""
    out = np.zeros((2 * m + 1, m + 1))
    for j in range(m + 1):
        for i in range(2 * j + 1):
            k = i + m - j
            out[k, j] = (-1.0) ** i * comb(2 * j, i) * comb(m, j) * 4.0 ** (m - j) / comb(2 * m, k)
    return np.asarray(elevation_matrix(2 * m, 2 * m + 1) @ out)


class _Term(NamedTuple):
    """A term of the prior after the data: its log weight, its own problem |root g - right|, mean and covariance."""

    prior: PriorTerm
    log: float
    root: Array
    right: Array
    free: Array
    covariance: Array


def _weighed(
    triangle: Array, right: Array, family: LinearFamily, prior: DegreePrior, constrained: bool
) -> list[Component]:
    unit = _unit(triangle, right, family)
    terms = [_posterior(triangle, right, family, unit, term) for term in _terms(prior, family.degree)]
    logs, held = np.array([term.log for term in terms]), [term.free for term in terms]
    if constrained:
        best = -np.inf
        for i in np.argsort(-logs, kind="stable"):  # the constraint only takes weight
            term, one = terms[i], family.at(terms[i].prior.degree)
            if term.log < best - _FAR:
                break
            held[i] = solve_wells(term.root, term.right, one, free=_as_solution(term.free)).coefficients
            logs[i] -= 0.5 * float(np.sum((term.root @ (held[i] - term.free)) ** 2))
            best = max(best, float(logs[i]))
        logs = np.where(logs < best - _FAR, -np.inf, logs)
    weights = np.exp(logs - np.max(logs))
    weights /= np.sum(weights)
    return [
        Component(t.prior.degree, t.prior.ratio, t.prior.size, float(w), t.free, g, t.covariance)
        for t, w, g in zip(terms, weights, held, strict=True)
    ]


def _terms(prior: DegreePrior, highest: int) -> list[PriorTerm]:
    """Return the terms of the prior; at degree 0 nothing decays, but b_0 has a size."""
    first = [(prior.ratios[0], size) for size in prior.sizes]
    pairs = list(product(prior.ratios, prior.sizes))
    return [
        PriorTerm(degree, ratio, size, degree * log(prior.odds) - log(len(kept)))
        for degree in range(highest + 1)
        for kept in (pairs if degree else first,)
        for ratio, size in kept
    ]


def _spreads(term: PriorTerm, family: LinearFamily) -> Array:
    """Return the standard deviations of a_1.., b_0.. over a_0."""
    first = 1 if isinstance(family, EqualWells) else 0
    return np.concatenate([term.spreads, term.size * term.ratio ** np.arange(first, term.degree + 1)])


def _unit(triangle: Array, right: Array, family: LinearFamily) -> float:
    """Return |a_0| in a well-determined fit: the unit of the prior."""
    low = family.at(min(_LOW, family.degree))
    design = triangle @ low.elevation(family) @ series_matrix(low)
    return abs(float(np.linalg.lstsq(design, right, rcond=None)[0][0]))


def _posterior(triangle: Array, right: Array, family: LinearFamily, unit: float, term: PriorTerm) -> _Term:
    """Return one term after the data, without the constraint."""
    one = family.at(term.degree)
    turn = series_matrix(one)
    design = triangle @ one.elevation(family) @ turn
    spreads = unit * _spreads(term, one)
    rows = np.vstack([design, np.hstack([np.zeros((spreads.size, 1)), np.diag(1.0 / spreads)])])
    basis, root = np.linalg.qr(rows)
    target = basis[: len(design)].T @ right
    inverse = np.linalg.inv(root)
    series = inverse @ target
    cost = float(np.sum((design @ series - right) ** 2) + np.sum((series[1:] / spreads) ** 2))
    occam = float(np.sum(np.log(np.abs(np.diag(root)))) + np.sum(np.log(spreads)))
    spread_out = turn @ inverse
    back = np.linalg.inv(turn)
    return _Term(
        term, term.log_weight - 0.5 * cost - occam, root @ back, target, turn @ series, spread_out @ spread_out.T
    )


def _most_likely(matrix: Array, target: Array, family: LinearFamily, constrained: bool) -> DegreeFit:
    basis, root = np.linalg.qr(matrix)
    right = basis.T @ target
    inverse = np.linalg.inv(root)
    free = inverse @ right
    held = solve_wells(root, right, family, free=_as_solution(free)).coefficients if constrained else free
    cost = float(np.sum((matrix @ held - target) ** 2))
    return DegreeFit(family.degree, cost, 0.0, held, free, inverse @ inverse.T, ())


def _mean(items: list[Component], family: LinearFamily, rows: list[Array]) -> Array:
    lifted = [
        item.weight * (family.at(item.degree).elevation(family) @ row) for item, row in zip(items, rows, strict=True)
    ]
    return np.asarray(np.sum(lifted, axis=0))


def _as_solution(g: Array) -> Solution:
    return Solution(g, np.zeros(g.size, dtype=bool), 0.0, 0.0)
