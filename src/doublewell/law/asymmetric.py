"""Asymmetric wells: forces whose two wells may differ, and those whose wells differ but are equally deep.

Both are written on s in [-1, 1], t = (1 + s)/2, with n = 2m + 1. The symmetric law of degree m lies in both.

Their series is r(s) = s P(s^2) + Q(s^2), P = sum_k a_k P_k(2z - 1), Q = sum_k b_k P_k(2z - 1) in Legendre polynomials
of z = s^2. Without Q it is that of symmetric laws. For equally deep wells b_0 is what makes the depths equal.

A law has two stable phases and one maximum c between them exactly when r = (s - c) p(s) with p > 0 on [-1, 1]. For a
fixed c the r are linear in p, whose cone is that of sums of squares; c is found by a search along one line.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cache
from math import comb, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law.bernstein import Bernstein, bernstein_sum, binomials, elevation_matrix, legendre_to_bernstein
from doublewell.law.family import Constraint, Family, Held, namespace
from doublewell.law.squares import MARGINS, sum_of_squares
from doublewell.law.structure import powers_of

_ROUND_OFF = 1e-13  # of the terms that the difference of the depths is summed from
_GRID = np.cos(np.linspace(np.pi, 0.0, 401))[1:-1]  # at which the maximum of a draw is sought
_SCAN = 21  # values of c that are tried before the search
_EDGE = 0.98  # c lies between -0.98 and 0.98
_FINE = 1e-7  # to which c is found; the cost is flat there


class _TwoWells(Family):
    """What both families share: the exact class of laws with a single barrier."""

    average_degree = 5  # twelve coefficients, and the named laws need no more

    @abstractmethod
    def products(self, c: float) -> tuple[Array, Array | None]:
        """Return the map from p to the coefficients of r = (s - c) p, and the depth of each p if it must be 0."""

    def hold(self, constraint: Constraint, roots: Array, right: Array, free: Array, near: Array | None = None) -> Held:
        """Return laws with one maximum between two stable phases; any constraint but "none" is this class.

        The nearest ones are certified by the exact root test. With `near` each law keeps its own maximum, the one
        closest to that of `near`: one small problem per law and no search.
        """
        held = free.copy()
        if constraint == "none":
            return Held.unchanged(free)
        if near is None:
            moved = np.array([not self.structure(g).ok for g in free], dtype=bool)
            for i in np.flatnonzero(moved):
                held[i] = self._nearest(roots[i], right[i])
        else:
            moved, centre = ~self.single_barrier(free), float(self._s(self.maximum(near)))
            for i in np.flatnonzero(moved):
                r = -(free[i] @ self._features(_GRID))
                rising = np.flatnonzero((r[:-1] < 0.0) & (r[1:] >= 0.0))
                tops = _GRID[rising] if rising.size else np.array([centre])
                c = float(np.clip(tops[np.argmin(np.abs(tops - centre))], -_EDGE, _EDGE))
                g, _ = self._with_maximum(roots[i], right[i], c, MARGINS[1])
                held[i] = free[i] if g is None else g
        rise = np.sum(np.einsum("nij,nj->ni", roots, held - free) ** 2, axis=1)
        return Held.unchanged(free)._replace(coefficients=held, rise=rise, moved=moved)

    def _nearest(self, root: Array, right: Array) -> Array:
        """Minimise |root g - right| over the class."""
        for margin in MARGINS:
            g = self._searched(root, right, margin)
            if g is not None and self.structure(g).ok:
                return g
        raise InputError(
            f"no law of degree {self.degree} with two stable phases and one maximum between was found near the data: "
            f"the exact test refused the solver's answers; use {option('constraint', 'none')} and look at the force, "
            "or another degree"
        )

    def _searched(self, root: Array, right: Array, margin: float) -> Array | None:
        """Search c: first on a scan, then between the neighbours of its best value."""
        from scipy.optimize import minimize_scalar

        def cost(c: float) -> float:
            return self._with_maximum(root, right, float(c), margin)[1]

        scan = np.linspace(-_EDGE, _EDGE, _SCAN)
        costs = np.array([cost(c) for c in scan])
        best = int(np.argmin(costs))
        if not np.isfinite(costs[best]):
            return None
        ends = scan[max(best - 1, 0)], scan[min(best + 1, _SCAN - 1)]
        answer = minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": _FINE})
        c = float(answer.x) if answer.fun <= costs[best] else float(scan[best])
        return self._with_maximum(root, right, c, margin)[0]

    def _with_maximum(self, root: Array, right: Array, c: float, margin: float) -> tuple[Array | None, float]:
        """Minimise with the maximum at c: return the coefficients and the squared residual, or None and inf."""
        lift, level = self.products(c)
        try:
            p, _ = sum_of_squares(root @ lift, right, margin, level)
        except InputError:  # no law of equal depth has its maximum here
            return None, inf
        g = lift @ p
        return g, float(np.sum((root @ g - right) ** 2))


class Wells(_TwoWells):
    """The features B_k = -(1 - s^2) C(n, k) t^k (1 - t)^(n - k), k = 0..n, n = 2m + 1: the wells may differ.

    G = -(1 - s^2) r(s) with r a polynomial of degree n; the maximum between the phases is where r changes its sign.
    Outside [-1, 1] the first and the last feature continue linearly and the others vanish.

    >>> Wells(1).size
    4
    >>> float(Wells(0).features(np.array(0.5)).T @ [-1.0, 1.0])  # r = s: the quartic law
    -0.375
    """

    name = "wells"
    counts = (2, 2)
    equal_depths = False

    def factor(self, coefficients: Any, s: Any) -> Any:
        """Evaluate r(s) for s in [-1, 1]."""
        weights = [g * c for g, c in zip(coefficients, binomials(self.size - 1), strict=True)]
        return bernstein_sum(weights, 0.5 * (1.0 + s))

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (1 - s^2)^2; it exists where the wells are equally deep."""
        if self.tilt(coefficients) != 0.0:
            raise InputError("the wells are not equally deep, so H does not vanish at both")
        return EqualWells(self.degree).height(wells_to_equal(self.degree) @ coefficients, s)

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H''(-1) = -2 r(-1) and H''(1) = 2 r(1)."""
        return -2.0 * float(coefficients[0]), 2.0 * float(coefficients[-1])

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r in powers of t, in exact arithmetic."""
        return powers_of(coefficients)

    def products(self, c: float) -> tuple[Array, Array | None]:
        """Return the map from p to the coefficients of r = (s - c) p."""
        rise, fall = _factors(self.degree)
        return rise * (1.0 - c) - fall * (1.0 + c), None

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the series a_0..a_m, b_0..b_m."""
        odd, even = _series_parts(self.degree)
        return np.hstack([odd, even]), np.tile(np.arange(self.degree + 1), 2)

    def _force(self, coefficients: Any, s: Any) -> Any:
        xp = namespace(s)
        x = xp.clip(s, -1.0, 1.0)
        slope = xp.where(s < 0.0, -2.0 * coefficients[0], 2.0 * coefficients[-1])
        return slope * (s - x) - (1.0 - x) * (1.0 + x) * self.factor(coefficients, x)

    def _features(self, s: Any) -> Any:
        xp = namespace(s)
        x, n = xp.clip(s, -1.0, 1.0), self.size - 1
        t, v, w = 0.5 * (1.0 + x), 0.5 * (1.0 - x), -(1.0 - x) * (1.0 + x)
        inside = [w * c * t**k * v ** (n - k) for k, c in enumerate(binomials(n))]
        inside[0] = inside[0] - 2.0 * xp.minimum(s - x, 0.0)
        inside[-1] = inside[-1] + 2.0 * xp.maximum(s - x, 0.0)
        return xp.stack(inside)

    def _primitives(self, s: Any) -> Any:
        """P_k = -w_k sum_{i >= k + 2} C(n + 3, i) t^i (1 - t)^(n + 3 - i), in closed form."""
        xp = namespace(s)
        x, top = xp.clip(s, -1.0, 1.0), self.size + 2
        t, v = 0.5 * (1.0 + x), 0.5 * (1.0 - x)
        total, inside = t**top, []
        for k in range(self.size - 1, -1, -1):
            total = total + comb(top, k + 2) * t ** (k + 2) * v ** (top - k - 2)
            inside.append(-depth_weights(self.degree)[k] * total)
        inside.reverse()
        inside[0] = inside[0] - xp.minimum(s - x, 0.0) ** 2
        inside[-1] = inside[-1] + xp.maximum(s - x, 0.0) ** 2
        return xp.stack(inside)

    def _kernel_table(self) -> tuple[Array, Array, Array]:
        slopes = np.zeros((2, self.size))
        slopes[0, 0], slopes[1, -1] = -2.0, 2.0
        return np.array([-1.0, 1.0, 0.5, 0.5, 0.0, -1.0, 0.0, 1.0, 0.0]), binomials(self.size - 1), slopes

    def tilt(self, coefficients: Any) -> float:
        """Return H(high) - H(low), the sum of the depths; what is round-off of the terms is zero."""
        terms = depth_weights(self.degree) * np.asarray(coefficients)
        total = float(np.sum(terms))
        return 0.0 if abs(total) <= _ROUND_OFF * float(np.sum(np.abs(terms))) else -(self.half**2) * total

    def _curvature(self, coefficients: Any, s: float) -> float:
        """H'' = -(1 - c^2) r'(c)."""
        n = self.size - 1
        steps = 0.5 * n * np.diff(coefficients)
        weights = [float(d) * comb(n - 1, k) for k, d in enumerate(steps)]
        return float(-(1.0 - s) * (1.0 + s) * bernstein_sum(weights, 0.5 * (1.0 + s)))

    def _embed(self, smaller: Family) -> Array | None:
        if isinstance(smaller, Bernstein):
            return _bernstein_to_wells(self.degree) @ elevation_matrix(smaller.degree, self.degree)
        if isinstance(smaller, EqualWells):
            return elevation_matrix(smaller.size, self.size - 1) @ equal_to_wells(smaller.degree)
        return elevation_matrix(smaller.size - 1, self.size - 1) if isinstance(smaller, Wells) else None


class EqualWells(_TwoWells):
    """Laws with H = (1 - s^2)^2 h(s): two wells of equal depth, by construction.

    The coefficients are those of 4 h in Bernstein polynomials of degree 2m in t, so that H'' at a well is twice one.

    >>> float(EqualWells(0).force(np.array([1.0]), np.array(0.5)))  # h = 1/4: the quartic law
    -0.375
    """

    name = "equal_wells"
    counts = (1, 2)

    @property
    def read_with(self) -> Wells:
        """The family without the condition on the depths."""
        return Wells(self.degree, self.phases)

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s)."""
        weights = [0.25 * g * comb(self.size - 1, j) for j, g in enumerate(coefficients)]
        return bernstein_sum(weights, 0.5 * (1.0 + s))

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H''(-1) = 8 h(-1) and H''(1) = 8 h(1)."""
        return 2.0 * float(coefficients[0]), 2.0 * float(coefficients[-1])

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r = 4 s h - (1 - s^2) h'(s) in powers of t, in exact arithmetic."""
        h = powers_of(coefficients)
        out = [Fraction(0)] * (len(h) + 1)
        for i, c in enumerate(h):  # s = 2t - 1, (1 - s^2) d/ds = 2 (t - t^2) d/dt
            out[i] -= Fraction(2 + i, 2) * c
            out[i + 1] += Fraction(4 + i, 2) * c
        return out

    def products(self, c: float) -> tuple[Array, Array | None]:
        """Return the map from p to the coefficients of r = (s - c) p, and the depth of each p, which must be 0."""
        wells, _ = self.read_with.products(c)
        return wells_to_equal(self.degree) @ wells, depth_weights(self.degree) @ wells

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the series a_0..a_m, b_1..b_m."""
        odd, even = _series_parts(self.degree)
        depths = depth_weights(self.degree) @ even
        even = even[:, 1:] - np.outer(even[:, 0], depths[1:] / depths[0])
        orders = np.arange(self.degree + 1)
        return np.asarray(wells_to_equal(self.degree) @ np.hstack([odd, even])), np.concatenate([orders, orders[1:]])

    def _force(self, coefficients: Any, s: Any) -> Any:
        return Wells(self.degree)._force(equal_to_wells(self.degree) @ coefficients, s)

    def _features(self, s: Any) -> Any:
        xp = namespace(s)
        return xp.tensordot(xp.asarray(equal_to_wells(self.degree).T), Wells(self.degree)._features(s), axes=1)

    def _primitive(self, coefficients: Any, s: Any) -> Any:
        """H = (1 - s^2)^2 h(s), zero at both phases; H''/2 at a well is 4 h."""
        xp = namespace(s)
        x = xp.clip(s, -1.0, 1.0)
        bend = xp.where(s < 0.0, coefficients[0], coefficients[-1])
        return ((1.0 - x) * (1.0 + x)) ** 2 * self.height(coefficients, x) + bend * (s - x) ** 2

    def _curvature(self, coefficients: Any, s: float) -> float:
        return Wells(self.degree)._curvature(equal_to_wells(self.degree) @ coefficients, s)

    def _embed(self, smaller: Family) -> Array | None:
        if isinstance(smaller, Bernstein):
            lifted = _bernstein_to_wells(self.degree) @ elevation_matrix(smaller.degree, self.degree)
            return np.asarray(wells_to_equal(self.degree) @ lifted)
        return elevation_matrix(smaller.size - 1, self.size - 1) if isinstance(smaller, EqualWells) else None


@cache
def depth_weights(degree: int) -> Array:
    """Return w_k, minus the integrals of the features B_k over [-1, 1]."""
    n = 2 * degree + 1
    return _frozen(np.array([8.0 * comb(n, k) / ((n + 3) * comb(n + 2, k + 1)) for k in range(n + 1)]))


@cache
def equal_to_wells(degree: int) -> Array:
    """Return the matrix from the coefficients of EqualWells to those of Wells.

    H = -sum_i C(n + 3, i) c_i t^i (1 - t)^(n + 3 - i) with w_k g_k = c_(k+2) - c_(k+1), and c_(j+2) a multiple of h_j.
    """
    steps = np.eye(2 * degree + 2, 2 * degree + 1) - np.eye(2 * degree + 2, 2 * degree + 1, -1)
    return _frozen(steps * _height_scales(degree) / depth_weights(degree)[:, None])


@cache
def wells_to_equal(degree: int) -> Array:
    """Return the matrix from coefficients of Wells with equal depths to those of EqualWells, summed from both ends."""
    j, k = np.indices((2 * degree + 1, 2 * degree + 2))
    sums = np.where(j <= degree, 1.0 * (k <= j), -1.0 * (k > j))
    return _frozen(sums * depth_weights(degree) / _height_scales(degree)[:, None])


def _height_scales(degree: int) -> Array:
    n = 2 * degree + 1
    return np.array([-4.0 * comb(n - 1, j) / comb(n + 3, j + 2) for j in range(n)])


@cache
def _bernstein_to_wells(m: int, power: int = 1) -> Array:
    """Write s^power p(s^2), power 0 or 1, in Bernstein polynomials of t: s = t - (1 - t), 1 - s^2 = 4 t (1 - t)."""
    n = 2 * m + power
    out = np.zeros((n + 1, m + 1))
    for j in range(m + 1):
        for i in range(2 * j + power + 1):
            k = i + m - j
            out[k, j] = (-1.0) ** (i + power) * comb(2 * j + power, i) * comb(m, j) * 4.0 ** (m - j) / comb(n, k)
    return _frozen(out)


@cache
def _series_parts(m: int) -> tuple[Array, Array]:
    """Return the odd part s P(s^2) and the even part Q(s^2) of r in the coefficients of Wells."""
    turn, even = legendre_to_bernstein(m), elevation_matrix(2 * m, 2 * m + 1) @ _bernstein_to_wells(m, 0)
    return _frozen(_bernstein_to_wells(m) @ turn), _frozen(even @ turn)


@cache
def _factors(m: int) -> tuple[Array, Array]:
    """Return p -> t p and p -> (1 - t) p in Bernstein coefficients, degree 2m to 2m + 1; s - c is a sum of both."""
    n = 2 * m + 1
    k = np.arange(n)
    rise, fall = np.zeros((n + 1, n)), np.zeros((n + 1, n))
    rise[k + 1, k] = (k + 1) / n
    fall[k, k] = (n - k) / n
    return _frozen(rise), _frozen(fall)


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
