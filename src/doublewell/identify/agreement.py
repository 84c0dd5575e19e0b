"""Agreement: whether records of one material agree on its law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublewell.adequacy import holm_adjusted
from doublewell.errors import InputError
from doublewell.evidence import compact
from doublewell.hints import Array
from doublewell.result import Agreement, Result

_UNLIKELY = 1e-3  # adjusted probability below which a record disagrees


def agreements(systems: Sequence[tuple[Array, Array]], names: Sequence[str]) -> tuple[Agreement, ...]:
    """Test each record against the others: the difference of their best laws over its covariance is chi-square.

    `systems` are the small least-squares problems of the records in units of their noise. Others are those that agree:
    of three or more records the one that is farthest off leaves first, so that it does not make the good ones look
    wrong. Two records that differ both disagree, because nothing shows which is right.
    """
    from scipy.special import chdtrc

    kept, degrees = list(range(len(systems))), systems[0][0].shape[1]
    while True:
        chi2 = _against(systems, kept)
        worst = max(kept, key=lambda k: chi2[k])
        if len(kept) <= 2 or len(kept) * chdtrc(degrees, chi2[worst]) >= _UNLIKELY:
            break
        kept.remove(worst)
    probabilities = [float(chdtrc(degrees, value)) for value in chi2]
    return tuple(
        Agreement(name, value, degrees, p, a, a >= _UNLIKELY)
        for name, value, p, a in zip(names, chi2, probabilities, holm_adjusted(probabilities), strict=True)
    )


def compare_laws(results: Sequence[Result], names: Sequence[str]) -> tuple[Agreement, ...]:
    """Test whether laws that were identified one by one are one law, at the highest degree that all were fitted with.

    InputError where they cannot be compared: without bands, of other equations, over other phases, in other units.
    """
    posteriors = [result.posterior for result in results if result.posterior is not None]
    kinds = {(result.dynamics.name, result.problem.records[0].length_unit) for result in results}
    if len(posteriors) < len(results):
        raise InputError("some laws have no error bands: expected trajectory fits")
    if len(kinds) > 1:
        raise InputError("equation of motion or unit of length differ: expected the same for all")
    tables = [{fit.degree: fit for fit in each.path} for each in posteriors]
    degree = max(set.intersection(*map(set, tables)), default=None)
    if degree is None or len({each.family.at(degree) for each in posteriors}) > 1:
        raise InputError("the laws are not of one family: expected the same phases, wells and degree for all")
    fits = [table[degree] for table in tables]
    roots = [np.linalg.inv(np.linalg.cholesky(fit.covariance)) for fit in fits]
    return agreements([(root, root @ fit.free) for root, fit in zip(roots, fits, strict=True)], names)


def _against(systems: Sequence[tuple[Array, Array]], kept: Sequence[int]) -> list[float]:
    """Return the chi-square of each record against the kept ones but itself, with sums from both ends."""
    rows = [np.hstack([matrix, target[:, None]]) for matrix, target in systems]
    before, after = _sums([rows[k] for k in kept]), _sums([rows[k] for k in reversed(kept)])[::-1]
    chi2 = []
    for k, own in enumerate(rows):
        at = kept.index(k) if k in kept else None
        rest = before[-1] if at is None else np.vstack([before[at], after[at + 1]])
        chi2.append(max(_cost(np.vstack([own, rest])) - _cost(own) - _cost(rest), 0.0))
    return chi2


def _sums(rows: Sequence[Array]) -> list[Array]:
    """Return the triangles of the first 0, 1, 2, ... of them."""
    sums = [np.zeros((0, rows[0].shape[1]))]
    for more in rows:
        sums.append(compact(np.vstack([sums[-1], more])))
    return sums


def _cost(rows: Array) -> float:
    """Return the least cost of rows [matrix | target]."""
    matrix, target = rows[:, :-1], rows[:, -1]
    basis = np.linalg.qr(matrix / np.linalg.norm(matrix, axis=0))[0]
    return float(np.sum((target - basis @ (basis.T @ target)) ** 2))
