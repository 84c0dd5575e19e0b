"""The exact class of laws with two wells that need not be alike: one maximum c between two stable phases.

G = -(1 - s^2) r(s) is such a law exactly when r = (s - c) p(s) with p > 0 on [-1, 1]. For a fixed c the p are a cone,
as sums of squares (see ``sum_of_squares``), and the r are linear in p; c is found by a search along one line.
"""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference.least_squares import Solution, solve_free
from doublewell.inference.sum_of_squares import run_cones, square_map, triangular
from doublewell.law import EqualWells, Law, LinearFamily, Wells
from doublewell.law.wells import depth_weights, wells_to_equal

__all__ = ["are_wells", "into_wells", "solve_wells"]

_MARGINS = (1e-6, 1e-5, 1e-4)  # lower bound of p over its scale, tried until the exact test agrees
_SCAN = 21  # places of c that are tried before the search
_EDGE = 0.98  # c lies between -0.98 and 0.98
_FINE = 1e-7  # to which c is found; the cost is flat there
_GRID = 401  # points at which many laws are looked at together


def solve_wells(
    matrix: Array, target: Array, family: LinearFamily, ridge: float = 0.0, *, free: Solution | None = None
) -> Solution:
    """Minimise |A g - d|^2 + ridge |g|^2 over the laws with two stable phases and one maximum between.

    A free minimiser that is one already is returned unchanged. Otherwise the answer is certified by the exact root
    test. ``active`` is empty: no single coefficient has a bound here.
    """
    free = solve_free(matrix, target, ridge) if free is None else free
    if Law(family, free.coefficients).structure.ok:
        return free
    triangle, right = triangular(matrix, target, ridge)
    for margin in _MARGINS:
        g = _searched(triangle, right, family, margin)
        if g is not None and Law(family, g).structure.ok:
            return _solution(matrix, target, ridge, g)
    raise InputError(
        f"no law of degree {family.degree} with two stable phases and one maximum between was found near the data: the "
        "exact test refused the solver's answers; use constraint='none' and look at the force, or another degree"
    )


def into_wells(roots: Array, right: Array, family: LinearFamily, free: Array, centre: float) -> Array:
    """Return laws near many free ones, |root g - right| small: those that are no double well are moved into the class.

    Each keeps its own maximum, the one nearest to `centre`: one small problem and no search.
    """
    held = free.copy()
    for i in np.flatnonzero(~are_wells(family, free)):
        c = _nearest_maximum(family, free[i], centre)
        g, _ = _fixed(roots, right[i], family, c, _MARGINS[1])
        held[i] = free[i] if g is None else g
    return held


def are_wells(family: LinearFamily, coefficients: Array) -> NDArray[np.bool_]:
    """Whether laws, one a row, have one sign change of r, seen on a grid; the exact test is that of ``Law``."""
    s = np.cos(np.linspace(np.pi, 0.0, _GRID))[1:-1]
    signs = np.sign(-(coefficients @ family.features(s)))
    rises = np.count_nonzero(np.diff(signs, axis=1), axis=1) == 1
    curvatures = np.array([family.well_curvatures(g) for g in coefficients]).reshape(len(coefficients), 2)
    return np.asarray(rises & np.all(curvatures > 0.0, axis=1))


def _nearest_maximum(family: LinearFamily, g: Array, centre: float) -> float:
    s = np.cos(np.linspace(np.pi, 0.0, _GRID))[1:-1]
    r = -(g @ family.features(s))
    rising = np.flatnonzero((r[:-1] < 0.0) & (r[1:] >= 0.0))
    found = s[rising] if rising.size else np.array([centre])
    return float(np.clip(found[np.argmin(np.abs(found - centre))], -_EDGE, _EDGE))


def _searched(triangle: Array, right: Array, family: LinearFamily, margin: float) -> Array | None:
    """Search c: first on a scan, then between the neighbours of its best place."""
    from scipy.optimize import minimize_scalar

    def cost(c: float) -> float:
        return _fixed(triangle, right, family, float(c), margin)[1]

    places = np.linspace(-_EDGE, _EDGE, _SCAN)
    costs = np.array([cost(c) for c in places])
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        return None
    ends = places[max(best - 1, 0)], places[min(best + 1, _SCAN - 1)]
    found = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": _FINE})
    c = float(found.x) if found.fun <= costs[best] else float(places[best])
    return _fixed(triangle, right, family, c, margin)[0]


def _fixed(triangle: Array, right: Array, family: LinearFamily, c: float, margin: float) -> tuple[Array | None, float]:
    """Minimise with the maximum at c: return the coefficients and the squared residual, None and inf where none is."""
    import clarabel
    from scipy.sparse import block_diag, csc_matrix

    lift, level = _products(family, c)
    squares, sizes = square_map(lift.shape[1] - 1)
    design = triangle @ lift
    unit, size, count = _scale(design, right), len(right), squares.shape[1]
    length = float(np.linalg.norm(right))
    scaled = design * (unit / length)
    equal = isinstance(family, EqualWells)
    objective = block_diag([csc_matrix((count, count)), csc_matrix(np.eye(size))], format="csc")
    fixed = np.block([-scaled @ squares, np.eye(size)])
    sides = scaled @ np.full(lift.shape[1], margin) - right / length
    if equal:  # the depths: one equation more
        fixed = np.vstack([fixed, np.concatenate([level @ squares, np.zeros(size)])])
        sides = np.append(sides, -margin * np.sum(level))
    rows = np.vstack([fixed, np.hstack([-np.eye(count), np.zeros((count, size))])])
    cones = [clarabel.ZeroConeT(len(fixed)), *(clarabel.PSDTriangleConeT(n) for n in sizes if n)]
    try:
        answer = run_cones(
            clarabel, objective, np.zeros(count + size), csc_matrix(rows), np.append(sides, np.zeros(count)), cones
        )
    except InputError:  # no law of equal depth has its maximum here
        return None, inf
    g = np.asarray(lift @ (unit * (margin + squares @ answer[:count])))
    return g, float(np.sum((triangle @ g - right) ** 2))


def _scale(design: Array, right: Array) -> float:
    """Return the constant p that has the size of the data."""
    return float(np.linalg.norm(right) / np.linalg.norm(np.sum(design, axis=1)))


def _products(family: LinearFamily, c: float) -> tuple[Array, Array]:
    """Return the map from p to the coefficients of the family for r = (s - c) p, and the depth that each p adds."""
    m = family.degree
    rise, fall = _factors(m)
    wells = rise * (1.0 - c) - fall * (1.0 + c)
    if isinstance(family, EqualWells):
        return wells_to_equal(m) @ wells, depth_weights(m) @ wells
    if not isinstance(family, Wells):
        raise InputError(f"the family is {family.name!r}: expected Wells or EqualWells")
    return wells, np.zeros(wells.shape[1])


@cache
def _factors(m: int) -> tuple[Array, Array]:
    """Return p -> t p and p -> (1 - t) p in Bernstein coefficients, degree 2m to 2m + 1; s - c is a sum of both."""
    n = 2 * m + 1
    k = np.arange(n)
    rise, fall = np.zeros((n + 1, n)), np.zeros((n + 1, n))
    rise[k + 1, k] = (k + 1) / n
    fall[k, k] = (n - k) / n
    return rise, fall


def _solution(matrix: Array, target: Array, ridge: float, g: Array) -> Solution:
    """Wrap the coefficients; `kkt` is how far the gradient is from right angles to g, which the cone holds to."""
    misfit = matrix @ g - target
    gradient = matrix.T @ misfit + ridge * g
    kkt = abs(float(gradient @ g)) / float(target @ target)
    return Solution(g, np.zeros(g.size, dtype=bool), kkt, float(np.linalg.norm(misfit)))
