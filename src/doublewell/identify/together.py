"""Several records of one material: each has its own mesh, noise and initial field, and all have one law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from doublewell.adequacy.check import holm_adjusted
from doublewell.errors import InputError
from doublewell.evidence import Evidence, compact, merge, system
from doublewell.hints import Array, Report
from doublewell.identify.trajectory_road import TrajectoryFit, at_degree, felt, trimmed
from doublewell.inference import DegreeAverage, average_degrees, fit_degree
from doublewell.inference.least_squares import column_scale
from doublewell.likelihood import Trajectory, relinearise
from doublewell.result import Agreement

__all__ = ["agreements", "join"]

_NEAR = 1.0  # standard errors of all records together
_ROUNDS = 5
_UNLIKELY = 1e-3  # adjusted probability below which a record disagrees


def join(fits: Sequence[TrajectoryFit], report: Report | None = None) -> tuple[TrajectoryFit, tuple[Agreement, ...]]:
    """Return the fit of all records together, with the first record's own numbers, and how each agrees with the others.

    Every record is linearised at the common law, then their evidences add: the noise of each is its own.
    """
    if len({fit.found.evidence.family for fit in fits}) > 1:
        raise InputError("the records were read with different degrees: expected one for all")
    summarise = average_degrees if len(fits[0].posterior.path) > 1 else fit_degree
    found = [replace(fit.found, evidence=_named(fit.found.evidence, k)) for k, fit in enumerate(fits)]
    for _ in range(_ROUNDS):
        place = summarise(merge([one.evidence for one in found]), 1.0, constraint="none").free
        if max(_distance(one, place) for one in found) <= _NEAR:
            break
        if report is not None:
            report("linearising all records at their common law", 0, 0)
        found = [relinearise([fit.record], [one], place[None])[0] for fit, one in zip(fits, found, strict=True)]
    total = merge([one.evidence for one in found])
    average: DegreeAverage = summarise(total, 1.0, constraint=fits[0].posterior.constraint)
    names = [f"record {k + 1}" for k in range(len(found))]
    return _joined(fits, found, total, average), agreements([system(one.evidence, 1.0) for one in found], names)


def _joined(
    fits: Sequence[TrajectoryFit], found: Sequence[Trajectory], total: Evidence, average: DegreeAverage
) -> TrajectoryFit:
    first, family, law = fits[0], total.family, trimmed(average, total.family)
    matrix, _ = system(total, 1.0)
    posterior = replace(
        first.posterior,
        path=average.path,
        components=average.components,
        drift=felt(average, family, matrix, _shifts(fits, found, matrix)),
    )
    return replace(
        first,
        law=law,
        posterior=posterior,
        distance=max(_distance(one, average.free) for one in found),
        unconstrained=at_degree(average.free, family, law.family.degree),
        rise=float(np.sum((matrix @ (average.coefficients - average.free)) ** 2)),
        condition=float(np.divide(*column_scale(matrix)[2][[0, -1]])),
    )


def _shifts(fits: Sequence[TrajectoryFit], found: Sequence[Trajectory], matrix: Array) -> Array:
    """Return the shifts by time and mesh of the common law: each record moves it by what it weighs."""
    size = matrix.shape[1]
    rows = np.zeros((2, size))
    for fit, one in zip(fits, found, strict=True):
        own, _ = system(one.evidence, 1.0)
        both = np.stack([fit.resolution.time_shift, fit.resolution.mesh_shift])
        rows += both @ (own.T @ own)
    return np.asarray(np.linalg.lstsq(matrix.T @ matrix, rows.T, rcond=None)[0].T)


def _named(evidence: Evidence, place: int) -> Evidence:
    blocks = tuple(replace(b, key=b.key._replace(record=f"record {place + 1}")) for b in evidence.blocks)
    return replace(evidence, blocks=blocks)


def _distance(found: Trajectory, coefficients: Array) -> float:
    return float(np.linalg.norm(system(found.evidence, 1.0)[0] @ (coefficients - found.coefficients)))


def agreements(systems: Sequence[tuple[Array, Array]], names: Sequence[str]) -> tuple[Agreement, ...]:
    """Test each record against the others: the difference of their best laws over its covariance is chi-square.

    `systems` are the small least-squares problems of the records in units of their noise. Others are those that agree:
    of three or more records the one that is farthest off leaves first, so that it does not make the good ones look
    wrong. Two records that differ disagree both, for nothing says which is right.
    """
    from scipy.special import chdtrc

    kept = _agreeing(systems)
    chi2, degrees = _against(systems, kept), systems[0][0].shape[1]
    chances = [float(chdtrc(degrees, one)) for one in chi2]
    return tuple(
        Agreement(name, one, degrees, p, a, a >= _UNLIKELY)
        for name, one, p, a in zip(names, chi2, chances, holm_adjusted(chances), strict=True)
    )


def _agreeing(systems: Sequence[tuple[Array, Array]]) -> list[int]:
    """Leave out the record that is farthest off, again and again, until the others agree or two are left."""
    from scipy.special import chdtrc

    kept = list(range(len(systems)))
    while len(kept) > 2:
        chi2 = _against(systems, kept)
        worst = max(kept, key=lambda k: chi2[k])
        if len(kept) * chdtrc(systems[0][0].shape[1], chi2[worst]) >= _UNLIKELY:
            break
        kept.remove(worst)
    return kept


def _against(systems: Sequence[tuple[Array, Array]], kept: Sequence[int]) -> list[float]:
    """Return the chi-square of each record against the kept ones but itself, with sums from both ends."""
    rows = [np.hstack([matrix, target[:, None]]) for matrix, target in systems]
    before, after = _sums([rows[k] for k in kept]), _sums([rows[k] for k in reversed(kept)])[::-1]
    found = []
    for place, own in enumerate(rows):
        at = kept.index(place) if place in kept else None
        rest = before[-1] if at is None else np.vstack([before[at], after[at + 1]])
        found.append(_disagreement(own[:, :-1], own[:, -1], rest[:, :-1], rest[:, -1]))
    return found


def _sums(rows: Sequence[Array]) -> list[Array]:
    """Return the triangles of the first 0, 1, 2, ... of them."""
    sums = [np.zeros((0, rows[0].shape[1]))]
    for one in rows:
        sums.append(compact(np.vstack([sums[-1], one])))
    return sums


def _disagreement(matrix: Array, target: Array, rest: Array, aim: Array) -> float:
    """Return how much larger the least cost of both together is than apart."""
    both = np.vstack([matrix, rest]), np.concatenate([target, aim])
    return max(_cost(*both) - _cost(matrix, target) - _cost(rest, aim), 0.0)


def _cost(matrix: Array, target: Array) -> float:
    norms = np.linalg.norm(matrix, axis=0)
    basis = np.linalg.qr(matrix / norms)[0]
    return float(np.sum((target - basis @ (basis.T @ target)) ** 2))
