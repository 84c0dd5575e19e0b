"""Squares: the nearest polynomial that is positive on [0, 1], by semidefinite programming over sums of squares.

A polynomial p of degree m is nonnegative on [0, 1] exactly when (Markov, Lukacs)
    p = s0 + z (1 - z) s1   (m = 2d),      p = z s0 + (1 - z) s1   (m = 2d + 1)
with sums of squares s0, s1 of fitting degree. With squares written in Bernstein polynomials, s = b' Q b, Q positive
semidefinite, the Bernstein coefficients of p are a linear map of the Q with positive entries. Positive coefficients are
the case of diagonal Q: the cone of the paper is inside this one.

For symmetric wells p is the bracket (``constraint`` solves that faster; this is its fallback), for asymmetric ones a
factor of r (see ``asymmetric``).
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law.structure import classify, powers_of

_TOLERANCE = 1e-10  # of the solver; what it leaves is covered by the margin
MARGINS = (1e-6, 1e-5, 1e-4)  # lower bound of p over its scale, tried until the exact test agrees


def nearest_bracket(root: Array, right: Array) -> tuple[Array, float]:
    """Minimise |root g - right| over brackets that are positive on [0, 1]; return the coefficients and their bound.

    The bracket is kept above a small fraction of its scale, because the solver is exact to its tolerance only; the
    answer is certified by the exact root test.
    """
    for margin in MARGINS:
        g, unit = sum_of_squares(root, right, margin)
        if classify(powers_of(g)).ok:
            return g, margin * unit
    raise InputError(
        f"no double well of degree {len(right) - 1} was found near the data: expected a bracket above "
        f"{MARGINS[-1]:g} of its scale, the exact test refused the solver's answer; use "
        f"{option('constraint', 'bernstein')}"
    )


def sum_of_squares(design: Array, right: Array, margin: float, level: Array | None = None) -> tuple[Array, float]:
    """Minimise |r|^2 / 2 with r = A p - d and p = unit (margin + squares @ x), Q(x) in their cones; return p and unit.

    `level` adds the equation level @ p = 0. Lengths are in units of the data.
    """
    import clarabel
    from scipy.sparse import block_diag, csc_matrix

    size, length = len(right), float(np.linalg.norm(right))
    unit = float(length / np.linalg.norm(np.sum(design, axis=1)))
    scaled = design * (unit / length)
    squares, sizes = square_map(design.shape[1] - 1)
    count = squares.shape[1]
    objective = block_diag([csc_matrix((count, count)), csc_matrix(np.eye(size))], format="csc")
    fixed = np.block([-scaled @ squares, np.eye(size)])
    sides = scaled @ np.full(design.shape[1], margin) - right / length
    if level is not None:
        fixed = np.vstack([fixed, np.concatenate([level @ squares, np.zeros(size)])])
        sides = np.append(sides, -margin * np.sum(level))
    rows = np.vstack([fixed, np.hstack([-np.eye(count), np.zeros((count, size))])])
    cones = [clarabel.ZeroConeT(len(fixed)), *(clarabel.PSDTriangleConeT(n) for n in sizes if n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    problem = objective, np.zeros(count + size), csc_matrix(rows), np.append(sides, np.zeros(count))
    answer = clarabel.DefaultSolver(*problem, cones, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise InputError(
            f"the search for the nearest double well ended as {answer.status}: expected a solution; use "
            f"{option('constraint', 'bernstein')}, or lower the degree"
        )
    return np.asarray(unit * (margin + squares @ np.asarray(answer.x)[:count])), unit


@cache
def square_map(degree: int) -> tuple[Array, tuple[int, int]]:
    """Return the map from the two Q, as scaled upper triangles, to Bernstein coefficients, and the sizes of the Q."""
    half, odd = divmod(degree, 2)
    blocks, sizes = ([(half, 1), (half, 0)] if odd else [(half, 0), (half - 1, 1)]), (half + 1, half + odd)
    products = [(low, shift, i, j) for low, shift in blocks for j in range(low + 1) for i in range(j + 1)]
    out = np.zeros((degree + 1, len(products)))
    for column, (low, shift, i, j) in enumerate(products):  # B_i B_j of degree low, times z^shift and a power of 1 - z
        scale = 1.0 if i == j else np.sqrt(2.0)  # off-diagonal entries count twice and are stored times sqrt(2)
        out[i + j + shift, column] = scale * comb(low, i) * comb(low, j) / comb(degree, i + j + shift)
    return out, sizes


def dual_violation(gradient: Array) -> float:
    """Return by how much the change of a cost along the Q is not positive semidefinite; 0 at a minimum or below it."""
    squares, sizes = square_map(gradient.size - 1)
    values, first, least = gradient @ squares, 0, []
    for size in filter(None, sizes):
        row, column = np.tril_indices(size)  # the lower triangle by rows is the upper one by columns
        scale = np.where(row == column, 1.0, np.sqrt(0.5))
        block = np.zeros((size, size))
        block[row, column] = block[column, row] = scale * values[first : first + row.size]
        least.append(float(np.linalg.eigvalsh(block)[0]))
        first += row.size
    return -min(least)
