"""Admissible: the nearest plain double wells to many free solutions, by the places where their brackets touch zero.

The class is the brackets p >= l on [0, 1]. With g = l + y and x = R y the nearest y is a projection onto a cone, and
what it adds to x is the projection of -x onto the cone of all c(z), R' c(z) = b(z), the Bernstein polynomials at z
(Moreau). A few contacts z span that, so each round solves a small NNLS for the contacts known so far and adds the
places where the bracket still dips. One to three rounds are enough as a rule, because dips are refined between the
points of the mesh.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference.bracket import Dips, basis, dips, mesh, positive_rows
from doublewell.inference.cone import Held, into_cone
from doublewell.inference.least_squares import Solution
from doublewell.inference.sum_of_squares import judged, solve_squares, triangular

__all__ = ["into_class", "solve_admissible"]

_BOUND = 1e-6  # lower bound of the bracket, relative to a constant bracket of the data's size
_TOLERANCE = 1e-2  # of the bound: by how much a bracket may dip below it; all are lifted by as much
_ROUNDS = 32
_ROUNDING = 1e-10  # of the data's size: a dip, in standard errors, that only rounding leaves
_CHUNK = 256  # rows at once, for the memory of their first look


def into_class(roots: Array, right: Array, free: Array) -> Held:
    """Solve |root g - right| over the brackets that are positive on [0, 1] where `free` has others.

    Rows that are positive already come back unchanged, and so do those without data, which no bracket is nearest to.
    """
    held, rise, bounds = free.copy(), np.zeros(len(free)), np.full(len(free), -np.inf)
    outside = np.flatnonzero(~positive_rows(free) & np.any(right != 0.0, axis=1))
    for first in range(0, outside.size, _CHUNK):
        i = outside[first : first + _CHUNK]
        bounds[i] = _bound(roots[i], right[i])
        held[i] = _certain(roots[i], right[i], _nearest(roots[i], right[i], bounds[i]))
        rise[i] = np.sum((np.einsum("nij,nj->ni", roots[i], held[i]) - right[i]) ** 2, axis=1)
    return Held(held, rise, np.zeros(free.shape, dtype=bool), bounds)


def solve_admissible(matrix: Array, target: Array, free: Solution, ridge: float = 0.0) -> tuple[Solution, float]:
    """Minimise |A g - d|^2 + ridge |g|^2 over the plain double wells; return the solution and its bound.

    `free` is the minimiser over all laws. It is returned unchanged where it is a double well.
    """
    root, right = triangular(matrix, target, ridge)
    held = into_class(root[None], right[None], free.coefficients[None])
    bound = float(_bound(root[None], right[None])[0])
    if not np.isfinite(held.bounds[0]):
        return free, bound
    return judged(matrix, target, ridge, held.coefficients[0], bound), bound


def _bound(roots: Array, right: Array) -> Array:
    return np.asarray(_BOUND * np.linalg.norm(right, axis=1) / np.linalg.norm(np.sum(roots, axis=2), axis=1))


def _nearest(roots: Array, right: Array, bounds: Array) -> Array:
    """Return the nearest coefficients whose brackets are above their bounds; nan where that was not found.

    Where the record says little, rounding leaves dips that are nothing in standard errors. The bracket found so far is
    then taken as the start: another projection moves it by no more than what it lacks.
    """
    inverse = np.asarray(np.linalg.inv(roots), dtype=np.float64)
    start = right - bounds[:, None] * np.sum(roots, axis=2)  # of y = g - l, in the metric
    base = np.einsum("nij,nj->ni", inverse, start)
    above, known = base.copy(), [np.zeros(0)] * len(base)
    rows, found = np.arange(len(base)), _significant(inverse, above)
    for _ in range(_ROUNDS):
        for i, places in _by_row(rows, found):
            push, known[i] = _push(inverse[i], start[i], np.concatenate([known[i], places]))
            above[i] = base[i] + push
        found = dips(above[rows], -_TOLERANCE * bounds[rows])
        still = np.unique(found.rows)
        rows, found = rows[still], found._replace(rows=np.searchsorted(still, found.rows))
        if not rows.size:
            break
        done = rows[_errors(inverse[rows], found) < _ROUNDING * np.linalg.norm(right[rows], axis=1)]
        base[done], start[done] = above[done], np.einsum("nij,nj->ni", roots[done], above[done])
        for i in done:
            known[i] = np.zeros(0)
    above[rows] = np.nan
    return np.asarray(above + (1.0 + _TOLERANCE) * bounds[:, None])


def _errors(inverse: Array, found: Dips) -> Array:
    """Return the depth of the deepest dip of each row in standard errors."""
    spread = np.linalg.norm(
        np.einsum("nj,njk->nk", basis(inverse.shape[1] - 1, found.places), inverse[found.rows]), axis=1
    )
    deepest = np.zeros(len(inverse))
    np.maximum.at(deepest, found.rows, -found.values / spread)
    return deepest


def _significant(inverse: Array, above: Array) -> Dips:
    """Return the first places: the dips that are deepest in standard errors. One contact alone is there exactly."""
    z, polynomials = mesh(above.shape[1] - 1)
    size = above @ polynomials.T / np.linalg.norm(polynomials @ inverse, axis=2)
    edge = np.full((len(size), 1), np.inf)
    left, right = np.hstack([edge, size[:, :-1]]), np.hstack([size[:, 1:], edge])
    rows, at = np.nonzero((size <= left) & (size <= right) & (size < 0.0))
    return Dips(rows, z[at], size[rows, at])


def _by_row(rows: NDArray[np.intp], found: Dips) -> Iterator[tuple[int, Array]]:
    edges = np.searchsorted(found.rows, np.arange(len(rows) + 1))
    for k in np.flatnonzero(np.diff(edges)):  # a dip between two points of the mesh is seen in the second round
        yield int(rows[k]), found.places[edges[k] : edges[k + 1]]


def _push(inverse: Array, start: Array, places: Array) -> tuple[Array, Array]:
    """Return what lifts one bracket until it is not below zero at the places, and the places that count."""
    from scipy.optimize import nnls

    columns = (basis(len(start) - 1, places) @ inverse).T
    norms = np.linalg.norm(columns, axis=0)
    try:
        push, _ = nnls(columns / norms, -start)
    except RuntimeError:  # too many steps: a start anew brings other places, or the row is given up
        return np.zeros(len(start)), places
    return inverse @ (columns @ (push / norms)), places[push > 0.0]


def _certain(roots: Array, right: Array, held: Array) -> Array:
    """Solve rows anew that are no double wells: by sums of squares, or in the positive cone inside the class."""
    lost = ~np.all(np.isfinite(held), axis=1)
    lost[~lost] = ~positive_rows(held[~lost])
    for i in np.flatnonzero(lost):
        found = [into_cone(roots[i : i + 1], right[i : i + 1], np.full_like(held[i : i + 1], -1.0)).coefficients[0]]
        with suppress(InputError):
            found.append(solve_squares(roots[i], right[i]).coefficients)
        held[i] = min(found, key=partial(_misfit, roots[i], right[i]))
    return held


def _misfit(root: Array, right: Array, coefficients: Array) -> float:
    return float(np.linalg.norm(root @ coefficients - right))
