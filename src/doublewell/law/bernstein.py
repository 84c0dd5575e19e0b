"""Bernstein: symmetric wells with a bracket in Bernstein polynomials of u^2, the paper's family, and its classes.

"admissible" is every double well with a single barrier: the brackets p >= l on [0, 1]. With g = l + y and x = R y the
nearest y is a projection onto a cone, and what it adds to x is the projection of -x onto the cone of all c(z),
R' c(z) = b(z), the Bernstein polynomials at z (Moreau). A few contacts z span that, so each round solves a small NNLS
for the contacts known so far and adds the points where the bracket still dips. One to three rounds are enough as a
rule, because dips are refined between the points of the mesh. "bernstein" is the paper's cone of positive coefficients.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.family import Constraint, EvenFamily, Family, Held, namespace
from doublewell.law.squares import nearest_bracket
from doublewell.law.structure import classify, powers_of

_CONE_BOUND = 1e-10  # lower bound of positive coefficients, relative to a constant bracket of the data's size
_BOUND = 1e-6  # lower bound of the bracket, relative to the same
_TOLERANCE = 1e-2  # of the bound: by how much a bracket may dip below it; all are lifted by as much
_ROUNDS = 32
_INSIGNIFICANT = 1e-10  # of the data's size: a dip, in standard errors, that only rounding leaves
_CHUNK = 256  # rows at once, for the memory of their mesh
_POINTS = 257  # two dips of a degree-8 bracket that no point separates differ by less than 1e-7 of its size
_NEWTON = 4
_ROUNDING = 1e-13  # of the largest coefficient: a bracket closer to zero is left to the exact test
_TOUCHING = 3.0  # bounds; what a bracket at its bound may have


class Bernstein(EvenFamily):
    """The features B_j(u) = -u (1 - u^2) C(m, j) (u^2)^j (1 - u^2)^(m - j), j = 0..m, of degree m.

    All coefficients positive means two stable pure phases and one central maximum. Beyond the nearest pure phase x,
    B_m continues as 2 (u - x) and the others vanish.

    >>> Bernstein(2).size
    3
    >>> float(Bernstein(0).features(np.array(0.5))[0])
    -0.375
    """

    name = "bernstein"
    cone = True

    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) = sum_j g_j C(m, j) z^j (1 - z)^(m - j) for z in [0, 1]."""
        return bernstein_sum([g * c for g, c in zip(coefficients, binomials(self.degree), strict=True)], z)

    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = H(u) / (1 - u^2)^2 from the closed form, no cancellation at the wells."""
        m = self.degree
        weights = [(m + 1 - j) / (2 * (m + 1) * (m + 2)) for j in range(self.size)]
        scaled = [g * w for g, w in zip(coefficients, weights, strict=True)]
        tails = [comb(m + 2, i) * sum(scaled[i:]) for i in range(self.size)]
        return bernstein_sum(tails, z)

    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""
        return powers_of(coefficients)

    def hold(self, constraint: Constraint, roots: Array, right: Array, free: Array, near: Array | None = None) -> Held:  # noqa: ARG002
        """Return the nearest brackets that are positive on [0, 1], or the nearest positive coefficients."""
        if constraint == "none":
            return Held.unchanged(free)
        return into_class(roots, right, free) if constraint == "admissible" else into_cone(roots, right, free)

    def contacts(self, coefficients: Array, bound: float) -> tuple[float, ...]:
        """Return the values of |u| = sqrt(z) where the bracket touches its lower bound, increasing.

        A law that is flat at its bound touches it everywhere; of that the ends are returned.
        """
        if not bound > 0.0:
            return ()
        if np.max(coefficients) <= _TOUCHING * bound:
            return (0.0, 1.0)
        low = dips(coefficients[None], np.array([_TOUCHING * bound]))
        return tuple(sorted(float(np.sqrt(z)) for z in low.z))

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the Legendre series of the bracket, p = sum_k a_k P_k(2z - 1)."""
        return legendre_to_bernstein(self.degree), np.arange(self.size)

    def _features(self, s: Any) -> Any:
        xp = namespace(s)
        x = xp.clip(s, -1.0, 1.0)
        z, v = x * x, (1.0 - x) * (1.0 + x)
        inside = [-x * v * c * z**j * v ** (self.degree - j) for j, c in enumerate(binomials(self.degree))]
        inside[-1] = inside[-1] + 2.0 * (s - x)
        return xp.stack(inside)

    def _primitives(self, s: Any) -> Any:
        """P_j = (m+1-j) / (2 (m+1) (m+2)) sum_{i<=j} C(m+2, i) z^i (1-z)^(m+2-i): a sum of positive terms."""
        xp = namespace(s)
        m = self.degree
        x = xp.clip(s, -1.0, 1.0)
        z, v = x * x, (1.0 - x) * (1.0 + x)
        total = 0.0 * x
        inside = []
        for j in range(self.size):
            total = total + comb(m + 2, j) * z**j * v ** (m + 2 - j)
            inside.append((m + 1 - j) / (2 * (m + 1) * (m + 2)) * total)
        inside[-1] = inside[-1] + (s - x) ** 2
        return xp.stack(inside)

    def _kernel_table(self) -> tuple[Array, Array, Array]:
        slopes = np.zeros((2, self.size))
        slopes[:, -1] = 2.0
        return np.array([-1.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0]), binomials(self.degree), slopes

    def _embed(self, smaller: Family) -> Array | None:
        return elevation_matrix(smaller.degree, self.degree) if isinstance(smaller, Bernstein) else None


def binomials(degree: int) -> Array:
    """Return the binomial coefficients of a degree as floats."""
    return np.array([comb(degree, j) for j in range(degree + 1)], dtype=np.float64)


def bernstein_sum(weights: list[Any], z: Any) -> Any:
    """Evaluate sum_j w_j z^j (1 - z)^(m - j) by one pass over j."""
    total, power, rest = weights[0] + 0.0 * z, z, 1.0 - z
    for j, weight in enumerate(weights[1:]):
        power = power * z if j else z
        total = total * rest + weight * power
    return total


@cache
def elevation_matrix(low: int, top: int) -> Array:
    """Return the matrix from Bernstein coefficients of degree `low` to those of degree `top`; read-only."""
    out = np.zeros((top + 1, low + 1))
    for j in range(low + 1):
        for k in range(top - low + 1):
            out[j + k, j] = comb(low, j) * comb(top - low, k) / comb(top, j + k)
    out.flags.writeable = False
    return out


@cache
def legendre_to_bernstein(degree: int) -> Array:
    """Return the matrix from Legendre to Bernstein coefficients of one degree on [0, 1]; read-only.

    P_k(2z - 1) has the Bernstein coefficients (-1)^(k + j) C(k, j) at its own degree.

    >>> legendre_to_bernstein(1).tolist()
    [[1.0, -1.0], [1.0, 1.0]]
    """
    columns = [
        elevation_matrix(k, degree) @ np.array([(-1.0) ** (k + j) * comb(k, j) for j in range(k + 1)])
        for k in range(degree + 1)
    ]
    matrix = np.stack(columns, axis=1)
    matrix.flags.writeable = False
    return matrix


# ---- classes of brackets


class Dips(NamedTuple):
    """Local minima of brackets on [0, 1]: the row each belongs to, its position z and the value there."""

    rows: NDArray[np.intp]
    z: Array
    values: Array


def into_cone(roots: Array, right: Array, free: Array) -> Held:
    """Solve |root g - right| with positive coefficients where `free` has others.

    The bound's unit is the constant bracket of the same size as the data. The largest unbounded coefficient would not
    do: where the record does not reach, it may be larger by ten decades.
    """
    from scipy.optimize import nnls

    held, bounds = Held.unchanged(free.copy()), _CONE_BOUND * _unit(roots, right)
    held = held._replace(moved=np.any(free < bounds[:, None], axis=1))
    for i in np.flatnonzero(held.moved):
        norms = np.linalg.norm(roots[i], axis=0)
        lift, misfit = nnls(roots[i] / norms, right[i] - bounds[i] * np.sum(roots[i], axis=1))
        held.coefficients[i], held.rise[i], held.active[i] = bounds[i] + lift / norms, misfit**2, lift == 0.0
    return held


def into_class(roots: Array, right: Array, free: Array, *, rounds: int = _ROUNDS) -> Held:
    """Solve |root g - right| over the brackets that are positive on [0, 1] where `free` has others.

    Rows that are positive already are returned unchanged, and so are those without data, which have no nearest one.
    """
    moved, bounds = ~positive_rows(free) & np.any(right != 0.0, axis=1), _BOUND * _unit(roots, right)
    held = Held.unchanged(free.copy())._replace(moved=moved, bounds=bounds)
    outside = np.flatnonzero(moved)
    for first in range(0, outside.size, _CHUNK):
        i = outside[first : first + _CHUNK]
        held.coefficients[i] = _certain(roots[i], right[i], _nearest(roots[i], right[i], bounds[i], rounds))
        misfit = np.einsum("nij,nj->ni", roots[i], held.coefficients[i]) - right[i]
        held.rise[i] = np.sum(misfit**2, axis=1)
    return held


def _unit(roots: Array, right: Array) -> Array:
    """Return the constant bracket of the size of the data, for each row."""
    return np.asarray(np.linalg.norm(right, axis=1) / np.linalg.norm(np.sum(roots, axis=2), axis=1))


def _nearest(roots: Array, right: Array, bounds: Array, rounds: int) -> Array:
    """Return the nearest coefficients whose brackets are above their bounds; nan where that was not reached.

    Where the record holds little information, rounding leaves dips that are nothing in standard errors. The bracket
    reached so far is then taken as the start: another projection moves it by no more than what it lacks.
    """
    inverse = np.asarray(np.linalg.inv(roots), dtype=np.float64)
    start = right - bounds[:, None] * np.sum(roots, axis=2)  # of y = g - l, in the metric
    base = np.einsum("nij,nj->ni", inverse, start)
    above, known = base.copy(), [np.zeros(0)] * len(base)
    rows, low = np.arange(len(base)), _significant(inverse, above)
    for _ in range(rounds):
        edges = np.searchsorted(low.rows, np.arange(len(rows) + 1))
        for k in np.flatnonzero(np.diff(edges)):  # a dip between two points of the mesh is added in the second round
            i, z = rows[k], low.z[edges[k] : edges[k + 1]]
            push, known[i] = _push(inverse[i], start[i], np.concatenate([known[i], z]))
            above[i] = base[i] + push
        low = dips(above[rows], -_TOLERANCE * bounds[rows])
        still = np.unique(low.rows)
        rows, low = rows[still], low._replace(rows=np.searchsorted(still, low.rows))
        if not rows.size:
            break
        done = rows[_errors(inverse[rows], low) < _INSIGNIFICANT * np.linalg.norm(right[rows], axis=1)]
        base[done], start[done] = above[done], np.einsum("nij,nj->ni", roots[done], above[done])
        for i in done:
            known[i] = np.zeros(0)
    above[rows] = np.nan
    return np.asarray(above + (1.0 + _TOLERANCE) * bounds[:, None])


def _errors(inverse: Array, low: Dips) -> Array:
    """Return the depth of the deepest dip of each row in standard errors."""
    spread = np.linalg.norm(np.einsum("nj,njk->nk", basis(inverse.shape[1] - 1, low.z), inverse[low.rows]), axis=1)
    deepest = np.zeros(len(inverse))
    np.maximum.at(deepest, low.rows, -low.values / spread)
    return deepest


def _significant(inverse: Array, above: Array) -> Dips:
    """Return the first points: the dips that are deepest in standard errors. One contact alone is there exactly."""
    z, polynomials = _mesh(above.shape[1] - 1)
    size = above @ polynomials.T / np.linalg.norm(polynomials @ inverse, axis=2)
    edge = np.full((len(size), 1), np.inf)
    left, right = np.hstack([edge, size[:, :-1]]), np.hstack([size[:, 1:], edge])
    rows, at = np.nonzero((size <= left) & (size <= right) & (size < 0.0))
    return Dips(rows, z[at], size[rows, at])


def _push(inverse: Array, start: Array, z: Array) -> tuple[Array, Array]:
    """Return what lifts one bracket until it is not below zero at the points z, and the points that count."""
    from scipy.optimize import nnls

    columns = (basis(len(start) - 1, z) @ inverse).T
    norms = np.linalg.norm(columns, axis=0)
    try:
        push, _ = nnls(columns / norms, -start)
    except RuntimeError:  # too many steps: another start brings other points, or the row is given up
        return np.zeros(len(start)), z
    return inverse @ (columns @ (push / norms)), z[push > 0.0]


def _certain(roots: Array, right: Array, held: Array) -> Array:
    """Solve rows again that are not double wells: by sums of squares, or in the positive cone inside the class."""
    lost = ~np.all(np.isfinite(held), axis=1)
    lost[~lost] = ~positive_rows(held[~lost])
    for i in np.flatnonzero(lost):
        choices = [into_cone(roots[i : i + 1], right[i : i + 1], np.full_like(held[i : i + 1], -1.0)).coefficients[0]]
        with suppress(InputError):
            choices.append(nearest_bracket(roots[i], right[i])[0])
        held[i] = choices[int(np.argmin([np.linalg.norm(roots[i] @ g - right[i]) for g in choices]))]
    return held


def basis(degree: int, z: Array) -> Array:
    """Return the Bernstein polynomials of a degree at z; shape (*z.shape, degree + 1)."""
    j, columns = np.arange(degree + 1), z[..., None]
    return np.asarray(binomials(degree) * columns**j * (1.0 - columns) ** (degree - j))


@cache
def _mesh(degree: int) -> tuple[Array, Array]:
    """Return points of [0, 1], dense at its ends, and the Bernstein polynomials there."""
    z = np.sin(np.linspace(0.0, 0.5 * np.pi, _POINTS)) ** 2
    return z, basis(degree, z)


def dips(coefficients: Array, below: Array) -> Dips:
    """Return the local minima of the brackets, one per row, that lie below a value for each row.

    They are located on the mesh and refined by Newton's method between its points.
    """
    z, polynomials = _mesh(coefficients.shape[1] - 1)
    values = coefficients @ polynomials.T
    # A minimum between two points may be lower than both, so the mesh leaves room for the curvature there.
    room = np.max(np.abs(coefficients), axis=1) * coefficients.shape[1] ** 2 * (np.pi / _POINTS) ** 2
    left, right = values[:, :-1], values[:, 1:]
    edge = np.ones((len(values), 1), dtype=bool)
    low = np.hstack([edge, right < left]) & np.hstack([left <= right, edge]) & (values < (below + room)[:, None])
    rows, at = np.nonzero(low)
    fine = _refined(coefficients[rows], z[at], z[np.maximum(at - 1, 0)], z[np.minimum(at + 1, z.size - 1)])
    depth = np.sum(coefficients[rows] * basis(coefficients.shape[1] - 1, fine), axis=1)
    better = depth < values[rows, at]
    fine, depth = np.where(better, fine, z[at]), np.where(better, depth, values[rows, at])
    kept = depth < below[rows]
    return Dips(rows[kept], fine[kept], depth[kept])


def _refined(coefficients: Array, start: Array, low: Array, high: Array) -> Array:
    """Return the minimum of each row near its start, by Newton steps that stay between low and high."""
    degree, z = coefficients.shape[1] - 1, start
    if degree < 2:
        return z
    slopes = degree * np.diff(coefficients, axis=1)
    bends = (degree - 1) * np.diff(slopes, axis=1)
    for _ in range(_NEWTON):
        slope = np.sum(slopes * basis(degree - 1, z), axis=1)
        bend = np.sum(bends * basis(degree - 2, z), axis=1)
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0.0)
        z = np.clip(z - step, low, high)
    return z


def lowest(coefficients: Array) -> Array:
    """Return the minimum of each bracket on [0, 1]."""
    low = dips(coefficients, np.full(len(coefficients), np.inf))
    least = np.full(len(coefficients), np.inf)
    np.minimum.at(least, low.rows, low.values)
    return least


def positive_rows(coefficients: Array) -> NDArray[np.bool_]:
    """Return which brackets are positive on [0, 1].

    Positive coefficients are enough. Otherwise the minimum decides, and where it is zero but for rounding, the exact
    test of the law.
    """
    inside: NDArray[np.bool_] = np.all(coefficients > 0.0, axis=1)
    rest = np.flatnonzero(~inside)
    least = lowest(coefficients[rest])
    room = _ROUNDING * np.max(np.abs(coefficients[rest]), axis=1, initial=0.0)
    inside[rest] = least > room
    for i in rest[np.abs(least) <= room]:
        inside[i] = classify(powers_of(coefficients[i])).ok
    return inside
