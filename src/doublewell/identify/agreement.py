"""Agreement: whether the parts of a joint fit, records or tiles, have one law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublewell.adequacy.check import holm_adjusted
from doublewell.evidence import compact
from doublewell.hints import Array
from doublewell.result import Agreement

_UNLIKELY = 1e-3  # adjusted probability below which a record disagrees


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
