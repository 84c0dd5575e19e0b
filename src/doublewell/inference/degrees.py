"""Degrees: every degree from one evidence, and the average over them that needs no choice.

A law is written as a series (``Family.series``): for symmetric wells the bracket in Legendre polynomials of z on
[0, 1], p = sum_k a_k P_k(2z - 1). A term of the prior is a degree m, a ratio rho and a size s: a_0 is free,
a_k ~ N(0, (s a_0 rho^k)^2) for the others up to order m, and higher ones vanish. Each term of the prior is weighed by
its marginal likelihood: the data choose how far the series goes, how large its terms are and how fast they decay.

A twentieth of the prior is for rough laws: terms of one size, 0.3 a_0, up to the order of a knee, and a steep decay
beyond. Where noise is small the data exclude them unless the law is one; where it is large they cannot, and bands are
as wide as that demands. Beyond the knee the series does not end at once, or bands of a rough law would be too narrow.

A law that looks smooth may still be rough where the record cannot show it. Of terms a_k ~ N(0, (d a_0)^2) of every
order the data, with a prior P = (2 d a_0)^2 twice as wide, resolve all but U a, U = (R'R + P^-1)^-1 P^-1. The spread
of U a is added to the bands, not to the estimate. It grows with the square of the noise.

The likelihood is |R g - d|^2 in units of the noise, with d a row of `targets`. One record is one row. A plan draws
thousands of rows, because its records differ by their noise alone; all are solved at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import exp, log
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.inference.estimate import check_rank, column_scale
from doublewell.law import Constraint, Family

NEGLIGIBLE = 1e-11  # weight over the largest one below which a term is not held in the class
_SMALL = 1.0  # standard errors of a shift that leaves the weights of the degrees as they are
_LOW = 2  # the degree whose fit gives the prior its unit


@dataclass(frozen=True)
class PriorTerm:
    """One normal distribution of the prior, and the log of its weight; it decays from the order ``knee`` on."""

    degree: int
    ratio: float
    size: float
    log_weight: float
    knee: int = 0

    def spreads(self, orders: NDArray[np.intp]) -> Array:
        """Return the standard deviations of terms of these orders, in units of a_0."""
        return np.asarray(self.size * self.ratio ** np.maximum(orders - self.knee, 0))


@dataclass(frozen=True)
class DegreePrior:
    """Every degree with every pair of a ratio and a size; a further degree is less likely by ``odds``.

    The ``fraction`` of rough laws is divided over the orders ``knees``: their terms have the first size up to there and
    decay with the ratio ``tail`` beyond; the degree is the family's. ``doubt`` is the size d of terms whose unresolved
    part is added to the bands.
    """

    ratios: tuple[float, ...]
    sizes: tuple[float, ...]
    odds: float
    knees: tuple[int, ...] = ()
    tail: float = 0.15
    fraction: float = 0.05
    doubt: float = 0.0

    def terms(self, family: Family) -> tuple[PriorTerm, ...]:
        """Return the terms up to the degree of a family. At degree 0 nothing decays; an even part still has a size.

        >>> from doublewell.law import Bernstein
        >>> [(term.degree, term.ratio) for term in DegreePrior((0.3, 0.6), (1.0,), 0.9, (3,)).terms(Bernstein(1))]
        [(0, 0.3), (1, 0.3), (1, 0.6), (1, 0.15)]
        """
        terms = []
        for degree in range(family.degree + 1):
            ratios = self.ratios if degree else self.ratios[:1]
            pairs = list(product(ratios, self.sizes if degree or not family.symmetric else self.sizes[:1]))
            terms += [PriorTerm(degree, *pair, degree * log(self.odds) - log(len(pairs))) for pair in pairs]
        if self.knees:
            each = self.fraction / (1.0 - self.fraction) * sum(exp(term.log_weight) for term in terms) / len(self.knees)
            first = family.degree, self.tail, self.sizes[0], log(each)
            terms += [PriorTerm(*first, knee) for knee in self.knees]
        return tuple(terms)


# Chosen on random laws that are not among those reported: benchmarks/degree_rules.py, benchmarks/hard_bands.py.
DEGREE_PRIOR = DegreePrior(ratios=(0.3, 0.6, 1.2), sizes=(0.3, 1.0, 3.0), odds=0.9, knees=(4, 5, 6), doubt=0.45)


@dataclass(frozen=True, eq=False)
class DegreeFit:
    """The most likely law of one degree, no prior.

    ``chi2`` is the cost in units of the noise above that of the best degree, ``weight`` the degree's fraction of the
    average, ``free`` the unconstrained coefficients with their ``covariance``, ``coefficients`` the constrained ones,
    ``active`` those at their bound and ``contacts`` the |u| where the bracket touches its bound.
    """

    degree: int
    chi2: float
    weight: float
    coefficients: Array
    free: Array
    covariance: Array
    active: tuple[int, ...]
    contacts: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Component:
    """One normal distribution of the mixture: mean and covariance in the coefficients of its degree.

    ``ratio`` and ``size`` are the prior's decay and scale, None for a flat prior. ``coefficients`` is the most likely
    point with the constraint.
    """

    degree: int
    ratio: float | None
    size: float | None
    weight: float
    free: Array
    coefficients: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class DegreeAverage:
    """The table of degrees, the mixture, and its mean with and without the constraint, at the evidence's degree.

    ``unseen`` are directions, one a row, in which the law may differ unseen by the data, one standard deviation long.
    """

    path: tuple[DegreeFit, ...]
    components: tuple[Component, ...]
    free: Array
    coefficients: Array
    unseen: Array


@dataclass(frozen=True, eq=False)
class WeighedTerm:
    """A term of the prior after the data, in the coefficients of its degree; first axis: the rows of targets.

    ``weights`` sum to 1 over the terms. ``free`` is the mean of the normal distribution, ``covariances`` its spread,
    ``coefficients`` the most likely point with the constraint. Where a term is negligible, its weight is 0 and its
    coefficients are those of the quartic law.
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
    bound, and ``bounds`` are the lower bounds of brackets that were moved, -inf where none was.
    """

    free: Array
    coefficients: Array
    covariance: Array
    cost: Array
    active: NDArray[np.bool_]
    bounds: Array


def average_degrees(
    evidence: Evidence, q: float, *, constraint: Constraint, prior: DegreePrior = DEGREE_PRIOR
) -> DegreeAverage:
    """Average over all degrees up to the evidence's own."""
    _check(evidence)
    (matrix, target), family = system(evidence, q), evidence.family
    terms = weigh_terms(matrix, target[None], family, prior, constraint=constraint)
    weights, components = np.zeros(family.degree + 1), []
    for item in terms:
        term, weight = item.term, float(item.weights[0])
        weights[min(term.knee or term.degree, term.degree)] += weight  # a rough law has the degree of its knee
        rest = item.free[0], item.coefficients[0], item.covariances[0]
        components.append(Component(term.degree, term.ratio, term.size, weight, *rest))
    parts = [(family.at(degree), weight) for degree, weight in enumerate(weights.tolist())]
    path = [_most_likely(matrix @ one.elevation(family), target, one, constraint, weight) for one, weight in parts]
    floor = min(fit.chi2 for fit in path)
    mean = mixture_mean(terms, family)
    if not family.convex:  # laws with different maxima may add up to one with two
        root = np.asarray(np.linalg.qr(matrix, mode="r"))
        mean = family.hold(constraint, root[None], mean @ root.T, mean).coefficients
    table, free = tuple(replace(fit, chi2=fit.chi2 - floor) for fit in path), mixture_mean(terms, family, free=True)[0]
    return DegreeAverage(table, tuple(components), free, mean[0], unseen(matrix, free, family, prior.doubt))


def fit_degree(evidence: Evidence, q: float, *, constraint: Constraint) -> DegreeAverage:
    """Return the fit at the evidence's own degree in the same form: one component, no prior."""
    _check(evidence)
    fit = _most_likely(*system(evidence, q), evidence.family, constraint, 1.0)
    component = Component(fit.degree, None, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    none = np.zeros((0, fit.free.size))
    return DegreeAverage((replace(fit, chi2=0.0),), (component,), fit.free, fit.coefficients, none)


def mix(averages: Sequence[tuple[float, DegreeAverage]], family: Family) -> DegreeAverage:
    """Return one average of several, each with its weight; what is unseen is that of the heaviest."""
    best = max(averages, key=lambda pair: pair[0])[1]
    components = [replace(item, weight=weight * item.weight) for weight, each in averages for item in each.components]
    path = [
        replace(fit, weight=sum(weight * each.path[k].weight for weight, each in averages))
        for k, fit in enumerate(best.path)
    ]
    free, held = (sum(w * np.asarray(getattr(each, name)) for w, each in averages) for name in ("free", "coefficients"))
    mean = held if family.convex else best.coefficients  # laws with different maxima may add up to one with two
    return DegreeAverage(tuple(path), tuple(components), np.asarray(free), np.asarray(mean), best.unseen)


def unseen(matrix: Array, free: Array, family: Family, doubt: float) -> Array:
    """Return what the data leave unresolved of terms of the size `doubt`: a row for each order, in coefficients."""
    if not doubt:
        return np.zeros((0, family.size))
    (turn, _), first = family.series(), family.lowest
    unit, seen = float(np.linalg.norm(np.linalg.solve(turn, free)[:first])), matrix @ turn
    rough = np.diag(np.r_[np.zeros(first), np.full(family.size - first, (2.0 * doubt * unit) ** -2)])
    return np.asarray((turn @ np.linalg.inv(seen.T @ seen + rough))[:, first:].T / (4.0 * doubt * unit))


def _check(evidence: Evidence) -> None:
    if not evidence.whitened:
        raise InputError(
            f"weak moments have no noise model, so degrees cannot be weighed by them: use "
            f"{option('method', 'trajectory')}, or give a degree"
        )


def _most_likely(matrix: Array, target: Array, family: Family, constraint: Constraint, weight: float) -> DegreeFit:
    fit = fit_rows(matrix, target[None], family, constraint=constraint)
    g, active = fit.coefficients[0], tuple(np.flatnonzero(fit.active[0]).tolist())
    contacts = family.contacts(g, float(fit.bounds[0]))
    return DegreeFit(family.degree, float(fit.cost[0]), weight, g, fit.free[0], fit.covariance, active, contacts)


def fit_rows(matrix: Array, targets: Array, family: Family, *, constraint: Constraint) -> FittedRows:
    """Return the most likely coefficients without a prior, for each row of targets."""
    basis, root = _factors(matrix)
    right = targets @ basis
    inverse = np.linalg.inv(root)
    free = right @ inverse.T
    cost = np.sum((free @ matrix.T - targets) ** 2, axis=1)
    held = family.hold(constraint, np.broadcast_to(root, (len(free), *root.shape)), right, free)
    bounds = np.where(held.moved, held.bounds, -np.inf)
    return FittedRows(free, held.coefficients, inverse @ inverse.T, cost + held.rise, held.active, bounds)


def weigh_terms(
    matrix: Array,
    targets: Array,
    family: Family,
    prior: DegreePrior = DEGREE_PRIOR,
    *,
    constraint: Constraint,
    negligible: float = NEGLIGIBLE,
) -> tuple[WeighedTerm, ...]:
    """Return the terms weighed by their marginal likelihood times their prior weight.

    The cost of a term is that of its best law in the class of the constraint, so that a term that leans on other laws
    loses its weight. Its weight without the constraint bounds that from above, so the terms are held in the class in
    the order of that bound, and not at all once it is negligible compared with the best.
    """
    basis, triangle = _factors(matrix)
    targets = targets @ basis  # the same likelihood but for a constant
    low = family.at(min(_LOW, family.degree))
    basis, root = np.linalg.qr(triangle @ low.elevation(family) @ low.series()[0])
    lowest = np.linalg.solve(root, (targets @ basis).T)[: family.lowest]
    unit = np.asarray(np.linalg.norm(lowest, axis=0))  # |a_0| of a well-determined fit
    parts = []
    for degree, group in groupby(prior.terms(family), key=attrgetter("degree")):
        part = family.at(degree)
        parts.append(_Posteriors.of(part, triangle @ part.elevation(family), targets, unit, tuple(group)))
    logs = np.concatenate([part.logs for part in parts])
    if constraint != "none":
        logs = _held_logs(parts, logs, constraint, negligible)
    weights = np.exp(logs - np.max(logs, axis=0))
    weights /= np.sum(weights, axis=0)
    weighed, rows = list[WeighedTerm](), iter(weights)
    for each in parts:
        held = each.free if constraint == "none" else each.held
        weighed += map(WeighedTerm, each.terms, rows, each.free, held, each.covariances)
    return tuple(weighed)


def mixture_mean(terms: tuple[WeighedTerm, ...], family: Family, *, free: bool = False) -> Array:
    """Return the mean of the mixture in the coefficients of `family`, one row for each row of targets.

    Where the class is convex, the mean of double wells is one. With `free` the mean is that of the terms before they
    were held in the class, with the weights that they have there.
    """
    total = np.zeros((terms[0].weights.size, family.size))
    for item in terms:
        means = item.free if free else item.coefficients
        total += item.weights[:, None] * (means @ family.at(item.term.degree).elevation(family).T)
    return total


def _factors(matrix: Array) -> tuple[Array, Array]:
    check_rank(column_scale(matrix)[2])
    basis, triangle = np.linalg.qr(matrix)
    return basis, triangle


@dataclass(frozen=True, eq=False)
class _Posteriors:
    """All terms of one degree after the data: [term, row, ...]. |roots g - right| is a term's own problem."""

    family: Family
    terms: tuple[PriorTerm, ...]
    logs: Array
    roots: Array
    right: Array
    free: Array
    held: Array
    covariances: Array

    @classmethod
    def of(
        cls, family: Family, matrix: Array, targets: Array, unit: Array, terms: tuple[PriorTerm, ...]
    ) -> _Posteriors:
        (turn, orders), first = family.series(), family.lowest
        spreads = unit[:, None] * np.stack([term.spreads(orders[first:]) for term in terms])[:, None]
        size, k = len(matrix), np.arange(first, family.size)
        rows = np.zeros((*spreads.shape[:2], size + family.size, family.size))
        rows[:, :, :size] = matrix @ turn
        rows[:, :, size + k, k] = 1.0 / spreads  # a_k / spread = 0
        basis, roots = np.linalg.qr(rows)
        right = np.einsum("tnij,ni->tnj", basis[:, :, :size], targets)
        inverse = np.linalg.inv(roots)
        series = np.einsum("tnij,tnj->tni", inverse, right)
        cost = np.sum((series @ (matrix @ turn).T - targets) ** 2, axis=2)
        cost += np.sum((series[..., first:] / spreads) ** 2, axis=2)
        occam = np.sum(np.log(np.abs(np.diagonal(roots, axis1=2, axis2=3))), axis=2) + np.sum(np.log(spreads), axis=2)
        logs = np.array([term.log_weight for term in terms])[:, None] - 0.5 * cost - occam
        free, spread_out = series @ turn.T, turn @ inverse
        covariances = spread_out @ np.swapaxes(spread_out, 2, 3)
        quartic = np.broadcast_to(unit[:, None] * turn[:, 0], free.shape).copy()
        return cls(family, terms, logs, roots @ np.linalg.inv(turn), right, free, quartic, covariances)


def _held_logs(parts: list[_Posteriors], logs: Array, constraint: Constraint, negligible: float) -> Array:
    """Hold the terms in the class, those of the largest weights first; return the log weights, -inf for the others."""
    rank = np.argsort(np.argsort(-logs, axis=0, kind="stable"), axis=0)
    held, best, done, count = np.full_like(logs, -np.inf), np.full(logs.shape[1], -np.inf), 0, 1
    while done < len(logs):
        chosen = (rank >= done) & (rank < done + count) & (np.exp(np.minimum(logs - best, 0.0)) >= negligible)
        if not chosen.any():
            break
        first = 0
        for part in parts:
            here = slice(first, first + len(part.logs))
            first, counts = here.stop, chosen[here]
            if not counts.any():
                continue
            inside = part.family.hold(constraint, part.roots[counts], part.right[counts], part.free[counts])
            part.held[counts] = inside.coefficients
            held[here][counts] = logs[here][counts] - 0.5 * inside.rise
        best = np.maximum(best, np.max(held, axis=0))
        done, count = done + count, 2 * count
    return held


def felt(average: DegreeAverage, family: Family, matrix: Array, shifts: Array) -> Array:
    """Return the shifts, one per row, with small ones replaced by how far they move the average over degrees.

    Shifts are of the highest degree. Where the record holds little information, one of a hundredth of a standard error
    can be larger than the law, and the average over degrees does not follow it there.
    """
    pull = matrix.T @ matrix
    fraction = np.zeros_like(pull)
    for item in average.components:
        lift = family.at(item.degree).elevation(family)
        fraction += item.weight * (lift @ item.covariance @ lift.T @ pull)
    small = np.linalg.norm(shifts @ matrix.T, axis=1) < _SMALL
    return np.where(small[:, None], shifts @ fraction.T, shifts)


def law_estimator(*, averaged: bool) -> Callable[..., DegreeAverage]:
    """Return what estimates a law from evidence: the average over degrees, or the one degree of the family."""
    return average_degrees if averaged else fit_degree
