"""Degrees: every degree from one evidence, and the average over them that needs no choice.

A component of the average is a term of the degree prior, weighed by its marginal likelihood: the data choose how far
the series of the bracket goes, how large its terms are and how fast they decay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.inference.bracket import contacts
from doublewell.inference.constraint import Constraint
from doublewell.inference.degree_prior import DEGREE_PRIOR, DegreePrior
from doublewell.inference.mixture import WeighedTerm, fit_rows, free_mean, mixture_mean, weigh_terms
from doublewell.law import Bernstein

__all__ = ["Component", "DegreeAverage", "DegreeFit", "average_degrees", "fit_degree"]


@dataclass(frozen=True, eq=False)
class DegreeFit:
    """The most likely law of one degree, no prior.

    ``chi2`` is the cost in units of the noise above the highest degree's unconstrained fit, ``weight`` the degree's
    share of the average, ``free`` the unconstrained coefficients with their ``covariance``, ``coefficients`` the
    constrained ones, ``active`` those at their bound and ``contacts`` the |u| where the bracket touches its bound.
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
    """One normal distribution of the mixture: mean and covariance in the Bernstein coefficients of its degree.

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
    """The table of degrees, the mixture, and its mean with and without the constraint, at the evidence's degree."""

    path: tuple[DegreeFit, ...]
    components: tuple[Component, ...]
    free: Array
    coefficients: Array


def average_degrees(
    evidence: Evidence, q: float, *, constraint: Constraint, prior: DegreePrior = DEGREE_PRIOR
) -> DegreeAverage:
    """Average over all degrees up to the evidence's own."""
    _check(evidence)
    matrix, target = system(evidence, q)
    family = evidence.family
    if not isinstance(family, Bernstein):
        from doublewell.inference.wells_degrees import average_wells  # it needs DegreeAverage

        return average_wells(matrix, target, family, constrained=constraint != "none", prior=prior)
    table = [_most_likely(matrix @ Bernstein(m).elevation(family), target, constraint) for m in range(family.size)]
    terms = weigh_terms(matrix, target[None], prior, constraint=constraint)
    means = free_mean(terms, family)[0], mixture_mean(terms, family)[0]
    return DegreeAverage(_with_shares(table, terms), tuple(_component(item) for item in terms), *means)


def fit_degree(evidence: Evidence, q: float, *, constraint: Constraint) -> DegreeAverage:
    """Return the fit at the evidence's own degree in the same form: one component, no prior."""
    _check(evidence)
    if not isinstance(evidence.family, Bernstein):
        from doublewell.inference.wells_degrees import fit_wells

        return fit_wells(*system(evidence, q), evidence.family, constrained=constraint != "none")
    fit = _most_likely(*system(evidence, q), constraint)
    component = Component(fit.degree, None, None, 1.0, fit.free, fit.coefficients, fit.covariance)
    return DegreeAverage((replace(fit, chi2=0.0, weight=1.0),), (component,), fit.free, fit.coefficients)


def _check(evidence: Evidence) -> None:
    if evidence.kind != "trajectory":
        raise InputError(
            "weak moments have no noise model, so degrees cannot be weighed by them: use method='trajectory', or give "
            "a degree"
        )


def _most_likely(matrix: Array, target: Array, constraint: Constraint) -> DegreeFit:
    fit = fit_rows(matrix, target[None], constraint=constraint)
    g, degree = fit.coefficients[0], matrix.shape[1] - 1
    active = tuple(int(j) for j in np.flatnonzero(fit.active[0]))
    touching = contacts(g, float(fit.bounds[0]))
    return DegreeFit(degree, float(fit.cost[0]), 0.0, g, fit.free[0], fit.covariance, active, touching)


def _with_shares(table: list[DegreeFit], terms: tuple[WeighedTerm, ...]) -> tuple[DegreeFit, ...]:
    """Count chi2 from the best degree, and give each degree the weight of its terms."""
    floor = min(fit.chi2 for fit in table)
    shares = [sum(float(t.weights[0]) for t in terms if t.term.degree == fit.degree) for fit in table]
    return tuple(replace(fit, chi2=fit.chi2 - floor, weight=w) for fit, w in zip(table, shares, strict=True))


def _component(item: WeighedTerm) -> Component:
    weight = float(item.weights[0])
    means = item.free[0], item.coefficients[0], item.covariances[0]
    return Component(item.term.degree, item.term.ratio, item.term.size, weight, *means)
