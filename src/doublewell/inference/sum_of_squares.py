"""Sums of squares: the nearest bracket that is positive on [0, 1], by semidefinite programming.

A polynomial p of degree m is nonnegative on [0, 1] exactly when (Markov, Lukacs)
    p = s0 + z (1 - z) s1   (m = 2d),      p = z s0 + (1 - z) s1   (m = 2d + 1)
with sums of squares s0, s1 of fitting degree. With squares written in Bernstein polynomials, s = b' Q b, Q positive
semidefinite, the Bernstein coefficients of p are a linear map of the Q with positive entries. Positive coefficients are
the case of diagonal Q: the cone of the paper is inside this one.

`admissible` solves the same problem faster. This is its second opinion: where it fails, and in the tests.
"""

from __future__ import annotations

from functools import cache
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference.bracket import contacts
from doublewell.inference.least_squares import Solution, solve_free
from doublewell.law import Bernstein, Law

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

__all__ = ["judged", "run_cones", "solve_squares", "square_map", "triangular"]

_TOLERANCE = 1e-10  # asked of the solver; what it leaves is covered by the margin
_MARGINS = (1e-6, 1e-5, 1e-4)  # lower bound of the bracket over its scale, tried until the exact test agrees


def solve_squares(matrix: Array, target: Array, ridge: float = 0.0, *, free: Solution | None = None) -> Solution:
    """Minimise |A g - d|^2 + ridge |g|^2 over the laws that are plain double wells.

    A free minimiser that is one already is returned unchanged. Otherwise the bracket is kept above a small share of its
    scale, because the solver is exact to its tolerance only; the answer is certified by the exact root test. ``active``
    is empty: no single coefficient has a bound here.
    """
    free = solve_free(matrix, target, ridge) if free is None else free
    family = Bernstein(matrix.shape[1] - 1)
    if Law(family, free.coefficients).structure.ok:
        return free
    rows, right = triangular(matrix, target, ridge)
    for margin in _MARGINS:
        g, bound = _sum_of_squares(rows, right, margin)
        if Law(family, g).structure.ok:
            return judged(matrix, target, ridge, g, bound)
    raise InputError(
        f"no double well of degree {family.degree} was found near the data: expected a bracket above "
        f"{_MARGINS[-1]:g} of its scale, the exact test refused the solver's answer; use constraint='bernstein'"
    )


def triangular(matrix: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    """Return the triangle and right side of the same problem, ridge rows included."""
    size = matrix.shape[1]
    rows = np.vstack([matrix, np.sqrt(ridge) * np.eye(size)])
    basis, triangle = np.linalg.qr(rows)
    return triangle, basis.T @ np.concatenate([target, np.zeros(size)])


def _sum_of_squares(triangle: Array, right: Array, margin: float) -> tuple[Array, float]:
    """Minimise |r|^2 / 2 with r = A g - d and g = margin + squares @ x, each Q(x) in its cone, in units of the data."""
    import clarabel
    from scipy.sparse import block_diag, csc_matrix

    size = len(right)
    unit = float(np.linalg.norm(right) / np.linalg.norm(np.sum(triangle, axis=1)))
    scaled, wanted = triangle * (unit / np.linalg.norm(right)), right / np.linalg.norm(right)
    squares, sizes = square_map(size - 1)
    count = squares.shape[1]
    objective = block_diag([csc_matrix((count, count)), csc_matrix(np.eye(size))], format="csc")
    rows = np.block([[-scaled @ squares, np.eye(size)], [-np.eye(count), np.zeros((count, size))]])
    sides = np.concatenate([scaled @ np.full(size, margin) - wanted, np.zeros(count)])
    cones = [clarabel.ZeroConeT(size), *(clarabel.PSDTriangleConeT(n) for n in sizes if n)]
    answer = run_cones(clarabel, objective, np.zeros(count + size), csc_matrix(rows), sides, cones)
    return np.asarray(unit * (margin + squares @ answer[:count])), unit * margin


def run_cones(
    clarabel: Any, objective: csc_matrix, linear: Array, rows: csc_matrix, sides: Array, cones: list[Any]
) -> Array:
    """Return the minimiser of a quadratic over cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    found = clarabel.DefaultSolver(objective, linear, rows, sides, cones, settings).solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        raise InputError(
            f"the search for the nearest double well ended as {found.status}: expected a solution; use "
            "constraint='bernstein', or lower the degree"
        )
    return np.asarray(found.x)


@cache
def square_map(degree: int) -> tuple[Array, tuple[int, int]]:
    """Return the map from the two Q, as scaled upper triangles, to Bernstein coefficients, and the sizes of the Q."""
    half = degree // 2
    if degree % 2 == 0:
        blocks, sizes = [(half, 0), (half - 1, 1)], (half + 1, half)
    else:
        blocks, sizes = [(half, 1), (half, 0)], (half + 1, half + 1)
    columns = [
        _product(degree, low, shift, i, j) for low, shift in blocks for j in range(low + 1) for i in range(j + 1)
    ]
    return np.stack(columns, axis=1), sizes


def _product(degree: int, low: int, shift: int, i: int, j: int) -> Array:
    """Return B_i B_j of degree `low`, times z^shift and what is left of (1 - z), in Bernstein coefficients."""
    column = np.zeros(degree + 1)
    place = i + j + shift
    scale = 1.0 if i == j else np.sqrt(2.0)  # off-diagonal entries count twice and are stored times sqrt(2)
    column[place] = scale * comb(low, i) * comb(low, j) / comb(degree, place)
    return column


def judged(matrix: Array, target: Array, ridge: float, g: Array, bound: float) -> Solution:
    """Return coefficients as a solution whose bracket is above a bound.

    `kkt` is how far the gradient is from the dual cone and from right angles to g - bound.
    """
    misfit = matrix @ g - target
    gradient = matrix.T @ misfit + ridge * g
    size = float(np.linalg.norm(matrix)) * float(np.linalg.norm(target))
    along = abs(float(gradient @ (g - bound))) / float(target @ target)
    kkt = max(along, -min(float(np.linalg.eigvalsh(block)[0]) for block in _duals(gradient)) / size)
    return Solution(g, np.zeros(g.size, dtype=bool), kkt, float(np.linalg.norm(misfit)), contacts(g, bound))


def _duals(gradient: Array) -> list[Array]:
    """Return the matrices whose products with the Q are the change of the cost; at the minimum all are positive."""
    squares, sizes = square_map(gradient.size - 1)
    values, blocks, first = gradient @ squares, [], 0
    for size in filter(None, sizes):
        row, column = np.tril_indices(size)  # the lower triangle by rows is the upper one by columns
        scale = np.where(row == column, 1.0, np.sqrt(0.5))
        block = np.zeros((size, size))
        block[row, column] = block[column, row] = scale * values[first : first + row.size]
        blocks.append(block)
        first += row.size
    return blocks
