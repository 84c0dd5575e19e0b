"""Mixtures: forces of conserved fields, polynomials over a range of values; the coexisting phases follow from them.

A conserved field feels a force only up to a constant, and its phases are where a straight line touches the potential
twice: G(low) = G(high) = mu, and the integral of G - mu between them is zero (Maxwell). They are found, not assumed.

With s in [-1, 1] the position in the range, G = s q(s), q a polynomial in Bernstein form. The record has its values in
the inner half of the range: phases that it does not reach are extrapolated to as far as the ends. Beyond them the force
is linear. The series of the prior is that of Legendre polynomials on the inner half: the first three, a potential of
fourth degree, are free.

The class: one interval (a, b) in which G falls, the spinodal, among the values of the record. For fixed a and b these
are linear inequalities of the slopes on a grid, and the nearest law is that of a least-distance problem.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law.bernstein import bernstein_sum, binomials, elevation_matrix
from doublewell.law.family import Constraint, Family, Held, namespace, run_around
from doublewell.law.structure import (
    StationaryPoint,
    Structure,
    Tangents,
    bernstein_of,
    classify_wells,
    powers_of_s,
    powers_of_t,
)

COEXISTING = "two coexisting phases"
INNER = 0.5  # of the range, on either side of its middle: where the record has values
_REACH = Fraction(3, 2)  # up to where in s the polynomial of a law with assumed wells is continued
_GRID = np.linspace(-1.0, 1.0, 401)
_NEAR = np.linspace(-INNER, INNER, 201)
_BISECTIONS, _NEWTON = 40, 8
_FEASIBLE = 1e-12  # of what NNLS leaves where no law is in the class
_MARGIN = 1e-6  # least size of a slope on the grid, of the largest
_CLOSE = 1e-9  # of the largest force on the grid: what Newton's method may leave


class Mixture(Family):
    """The features B_j = s C(n, j) t^j (1 - t)^(n - j), j = 0..n, n = m + 2, t = (1 + s)/2: G has the degree m + 3.

    ``phases`` are the ends of the range. Every force is zero in its middle, by choice of the constant.

    >>> Mixture(0).size
    3
    >>> law = Mixture(0).fitted(lambda u: u**3 - 0.25 * u)  # wells at -1/2 and 1/2
    >>> [round(float(x), 12) + 0.0 for x in Mixture(0).tangents(law[None]).low]
    [-0.5]
    """

    name = "mixture"
    counts = (3, 1)
    most = None
    average_degree = 5
    lowest = 3  # those of a potential of fourth degree
    inner = INNER
    found = True

    @classmethod
    def continuing(cls, family: Family, coefficients: Array) -> tuple[Mixture, Array]:
        """Return the polynomial of a law with assumed wells also beyond them, up to s = -1.5 and 1.5."""
        r, none = powers_of_s(family.exact_factor(coefficients)), [Fraction(0)] * 2
        force = [b - a for a, b in zip([*r, *none], [*none, *r], strict=True)]  # -(1 - s^2) r
        powers = powers_of_t([c * _REACH**k for k, c in enumerate(force[1:])])  # of q: G = s q(s) but for a constant
        q, ends = bernstein_of(powers), [family.middle + sign * float(_REACH) * family.half for sign in (-1.0, 1.0)]
        return cls(len(q) - 3, (ends[0], ends[1])), np.array(q)

    def fitted(self, force: Any) -> Array:
        """Return the coefficients of the law nearest to a force, up to a constant, in the inner half of the range."""
        return self._closest(force(self.middle + self.half * _NEAR) / self.half)

    def _closest(self, forces: Any) -> Array:
        """Return the coefficients nearest to forces at the points of the inner half, up to a constant; in s."""
        design = np.column_stack([self._features(_NEAR).T, np.ones(_NEAR.size)])
        return np.asarray(np.linalg.lstsq(design, forces, rcond=None)[0][:-1])

    def slopes(self, u: Any) -> Any:
        """Evaluate all B_j' at u; shape (size, *u.shape)."""
        return self._slopes(self._s(u))

    def steepness(self, coefficients: Array) -> float:
        """Return the largest |G'| in the inner half of the range."""
        return float(np.max(np.abs(np.asarray(coefficients) @ self._slopes(_NEAR))))

    def stable(self, coefficients: Array) -> bool:
        """Return whether the force rises at both ends of the record's values, as it does where phases have formed."""
        return bool(np.all(np.asarray(coefficients) @ self._slopes(np.array([-INNER, INNER])) > 0.0))

    def tangents(self, rows: Array) -> Tangents:
        """Return the straight line that touches each potential twice; NaN where there is none in the range."""
        force, slope = rows @ self._features(_GRID), rows @ self._slopes(_GRID)
        inner, index = np.abs(_GRID) <= INNER, np.arange(_GRID.size)
        falls = slope < 0.0
        middle = np.argmin(np.where(inner, slope, np.inf), axis=1)
        first, last = run_around(falls, middle)
        before, after, row = np.maximum(first - 1, 0), np.minimum(last + 1, index[-1]), np.arange(len(rows))
        lowest, highest = run_around(~falls, before)[0], run_around(~falls, after)[1]
        good = falls[row, middle] & (first > 0) & (last < index[-1])
        top, bottom = force[row, before], force[row, after]
        above, below = np.minimum(top, force[row, highest]), np.maximum(bottom, force[row, lowest])
        rising_left = (index >= lowest[:, None]) & (index < first[:, None])
        rising_right = (index > last[:, None]) & (index <= highest[:, None])
        between = (index >= first[:, None]) & (index <= last[:, None])

        def kept(mu: Array) -> NDArray[np.bool_]:
            over = force > mu[:, None]
            return np.asarray(between | (rising_left & over) | (rising_right & ~over))

        def area(mu: Array) -> Array:
            return np.asarray(np.sum(np.where(kept(mu), force - mu[:, None], 0.0), axis=1))

        good &= (above > below) & (area(below) > 0.0) & (area(above) < 0.0)
        low, high = below.copy(), above.copy()
        for _ in range(_BISECTIONS):
            mu = 0.5 * (low + high)
            more = area(mu) > 0.0
            low, high = np.where(more, mu, low), np.where(more, high, mu)
        inside = kept(0.5 * (low + high))
        a, b = _GRID[np.argmax(inside, axis=1)], _GRID[index[-1] - np.argmax(inside[:, ::-1], axis=1)]
        return self._polished(rows, a, b, good, np.max(np.abs(force), axis=1))

    def _polished(self, rows: Array, a: Array, b: Array, good: NDArray[np.bool_], size: Array) -> Tangents:
        """Return both contacts by Newton's method: equal forces, and the area between."""
        with np.errstate(all="ignore"):
            for _ in range(_NEWTON):
                (ga, gb), (da, db) = ([self._at(f, rows, x) for x in (a, b)] for f in (self._features, self._slopes))
                areas = self._at(self._primitives, rows, b) - self._at(self._primitives, rows, a) - ga * (b - a)
                # [da, -db; -da (b - a), gb - ga] step = [gb - ga, -areas]
                width = b - a
                determinant = da * (gb - ga) - db * da * width
                a = a + ((gb - ga) * (gb - ga) - db * areas) / determinant
                b = b + (da * -areas + da * width * (gb - ga)) / determinant
            ga, gb = (self._at(self._features, rows, np.clip(x, -1.0, 1.0)) for x in (a, b))
            good = good & (np.abs(a) <= 1.0) & (np.abs(b) <= 1.0) & (a < b) & (np.abs(gb - ga) <= _CLOSE * size)
        low, high = (np.where(good, self.middle + self.half * x, np.nan) for x in (a, b))
        force = np.where(good, self.half * ga, np.nan)
        level = np.where(good, self.half**2 * self._at(self._primitives, rows, np.where(good, a, 0.0)), np.nan)
        return Tangents(low, high, force, level)

    @staticmethod
    def _at(curves: Any, rows: Array, s: Array) -> Array:
        """Return a curve of each row at a point of its own."""
        return np.asarray(np.sum(rows * curves(s).T, axis=1))

    def heights(self, rows: Array, s: Array) -> Array:
        """Return H over the common tangent of laws, one per row, at positions s between their phases."""
        return self._between(self.primitives, rows, s, lambda line, u: line.under(u))

    def forces(self, rows: Array, s: Array) -> Array:
        """Return G of laws, one per row, at positions s between their phases, zero at both."""
        return self._between(self.features, rows, s, lambda line, _: line.force[:, None])

    def _between(self, curves: Any, rows: Array, s: Array, under: Any) -> Array:
        """Return curves of laws at positions s between the phases of each, less what is `under` them."""
        line = self.tangents(rows)
        u = line.low[:, None] + 0.5 * (line.high - line.low)[:, None] * (1.0 + s)
        values = np.einsum("nj,jnk->nk", rows, curves(np.where(np.isfinite(u), u, self.middle)))
        return np.asarray(values - under(line, u))

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (w^2 (1 - s^2)^2), s the position between the coexisting phases and H above their line.

        H = (1 - t)^2 t^2 h: of the polynomial between the phases, divided by both double zeros.
        """
        r = Polynomial([float(c) for c in self.exact_factor(coefficients)])
        t = Polynomial([0.0, 1.0])
        whole = (-8.0 * t * (1.0 - t) * r).integ()  # (1 - s^2)^2 h, with ds = 2 dt
        quotient = Polynomial(_divided(_divided(_divided(_divided(whole.coef, 0.0), 0.0), 1.0), 1.0))
        return quotient(0.5 * (1.0 + s)) / 16.0

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return G' at both coexisting phases, at the ends of the range where there are none."""
        pair = self.ends(np.asarray(coefficients)[None])[0]
        low, high = (np.asarray(coefficients) @ self._slopes(self._s(pair))).tolist()
        return low, high

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points above the common tangent; without one it is stated what is missing."""
        line = self.tangents(np.asarray(coefficients)[None])
        if np.isfinite(line.low[0]):
            found = classify_wells(self.exact_factor(coefficients), float(line.low[0]), float(line.high[0]))
            return replace(found, wells=COEXISTING)
        return self._without_phases(np.asarray(coefficients))

    def _without_phases(self, g: Array) -> Structure:
        """Return the structure of a law without coexisting phases."""
        ends = self.spinodals(g[None])[0].tolist()
        known = tuple(StationaryPoint(u, "inflection") for u in ends if np.isfinite(u))
        missing = "the force rises everywhere: one phase"
        if np.any(g @ self._slopes(_NEAR) < 0.0):
            missing = "no straight line touches the potential twice near the values of the record"
        return Structure(False, (missing,), known)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r of G - mu = -w (1 - s^2) r(s) in powers of t, s the position between the coexisting phases."""
        low, high = (float(self._s(u)) for u in self.ends(np.asarray(coefficients)[None])[0])
        weights = np.asarray(coefficients) * binomials(self.size - 1)
        parts = (g * _RISE**j * _FALL ** (self.size - 1 - j) for j, g in enumerate(weights.tolist()))
        force = (Polynomial([0.0, 1.0]) * sum(parts, Polynomial([0.0])))(Polynomial([low, high - low]))
        r = _divided(_divided(force.coef, 0.0), 1.0) / (-2.0 * (high - low))  # G - mu = -4 t (1 - t) r (high - low)/2
        return [Fraction(float(c)) for c in r]

    def hold(self, constraint: Constraint, roots: Array, right: Array, free: Array, near: Array | None = None) -> Held:
        """Return laws whose force falls in one interval of the record's values; any constraint but "none" is this."""
        if constraint == "none":
            return Held.unchanged(free)
        held, moved = free.copy(), ~self.single_barrier(free)
        for i in np.flatnonzero(moved):
            found = self._nearest(roots[i], right[i], free[i], search=near is None)
            if found is None and near is None:
                raise InputError(
                    f"no law of degree {self.degree} with one spinodal interval was found near the data: use "
                    f"{option('constraint', 'none')} and look at the force, or another degree"
                )
            held[i] = free[i] if found is None else found
        rise = np.sum(np.einsum("nij,nj->ni", roots, held - free) ** 2, axis=1)
        return Held.unchanged(free)._replace(coefficients=held, rise=rise, moved=moved)

    def _nearest(self, root: Array, right: Array, free: Array, *, search: bool) -> Array | None:
        """Minimise |root g - right| over the class: from the spinodal of the free law, and where asked by a search."""
        from scipy.optimize import minimize

        slopes, inverse = self._slopes(_NEAR).T, np.linalg.inv(root)
        least = _MARGIN * float(np.max(np.abs(slopes @ free)))

        def solved(pair: Array) -> tuple[Array | None, float]:
            signs = np.where((np.min(pair) < _NEAR) & (np.max(pair) > _NEAR), -1.0, 1.0)
            sides = signs[:, None] * slopes
            z = least_distance(sides @ inverse, least - sides @ (inverse @ right))
            return (None, np.inf) if z is None else (inverse @ (right + z), float(z @ z))

        slope = slopes @ free
        first, last = run_around((slope < 0.0)[None], np.array([np.argmin(slope)]))
        start = _NEAR[[int(first[0]), int(last[0])]] + np.array([-1e-3, 1e-3])
        if search:
            options = {"xatol": 1e-3, "fatol": 1e-6, "maxfev": 120}
            start = minimize(lambda pair: solved(pair)[1], start, method="Nelder-Mead", options=options).x
        return solved(start)[0]

    def single_barrier(self, coefficients: Array) -> NDArray[np.bool_]:
        """Return which laws, one per row, fall in at most one interval of the record's values, judged on a grid."""
        falls = coefficients @ self._slopes(_NEAR) < 0.0
        edges = np.diff(falls, axis=1, prepend=False, append=False)
        return np.asarray(np.count_nonzero(edges, axis=1) <= 2)

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return Legendre polynomials of the inner half, P_1 .. P_(m+3) of s / INNER; the first three are free."""
        turn = self._closest(legvander(_NEAR / INNER, self.size)[:, 1:])
        return turn, np.maximum(np.arange(self.size) - self.lowest + 1, 0)

    def _force(self, coefficients: Any, s: Any) -> Any:
        x = namespace(s).clip(s, -1.0, 1.0)
        weights = [g * c for g, c in zip(coefficients, binomials(self.size - 1), strict=True)]
        below, above = (sum(g * float(c) for g, c in zip(coefficients, ends, strict=True)) for ends in self._ends())
        outside = namespace(s).where(s < 0.0, below, above) * (s - x)
        return x * bernstein_sum(weights, 0.5 * (1.0 + x)) + outside

    def _features(self, s: Any) -> Any:
        xp = namespace(s)
        x, n = xp.clip(s, -1.0, 1.0), self.size - 1
        t, v = 0.5 * (1.0 + x), 0.5 * (1.0 - x)
        below, above = self._ends()
        return xp.stack([
            c * x * t**j * v ** (n - j) + below[j] * xp.minimum(s - x, 0.0) + above[j] * xp.maximum(s - x, 0.0)
            for j, c in enumerate(binomials(n))
        ])  # fmt: skip

    def _slopes(self, s: Any) -> Any:
        """Evaluate B_j' inside the range, and at its ends beyond."""
        x, n = np.clip(s, -1.0, 1.0), self.size - 1
        t, v, out = 0.5 * (1.0 + x), 0.5 * (1.0 - x), []
        for j, c in enumerate(binomials(n)):
            rise = (j * t ** max(j - 1, 0) * v ** (n - j) - (n - j) * t**j * v ** max(n - j - 1, 0)) * 0.5
            out.append(c * (t**j * v ** (n - j) + x * rise))
        return np.stack(out)

    def _primitives(self, s: Any) -> Any:
        """Evaluate the integrals of B_j from the low end: Bernstein polynomials of degree n + 2, all positive sums."""
        xp = namespace(s)
        x, top = xp.clip(s, -1.0, 1.0), self.size + 1
        t, v = 0.5 * (1.0 + x), 0.5 * (1.0 - x)
        basis = xp.stack([c * t**j * v ** (top - j) for j, c in enumerate(binomials(top))])
        inside = xp.tensordot(xp.asarray(_integrals(self.size - 1).T), basis, axes=1)
        (below, above), ends = self._ends(), np.eye(self.size)[[0, -1]] * [[-1.0], [1.0]]  # and the forces there
        down, up = xp.minimum(s - x, 0.0), xp.maximum(s - x, 0.0)
        outside = [
            ends[0, j] * down + 0.5 * below[j] * down**2 + ends[1, j] * up + 0.5 * above[j] * up**2
            for j in range(self.size)
        ]
        return inside + xp.stack(outside)

    def _ends(self) -> Array:
        """Return the slopes of the features at both ends of the range."""
        return np.asarray(self._slopes(np.array([-1.0, 1.0])).T)

    def _kernel_table(self) -> tuple[Array, Array, Array]:
        return np.array([-1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0]), binomials(self.size - 1), self._ends().copy()

    def _curvature(self, coefficients: Any, s: float) -> float:
        return float(np.asarray(coefficients) @ self._slopes(np.array(s)))

    def _embed(self, smaller: Family) -> Array | None:
        if type(smaller) is Mixture:
            return elevation_matrix(smaller.size - 1, self.size - 1)
        # nearly: logarithms as polynomials
        return self._closest(smaller._features(_NEAR).T) if isinstance(smaller, Mixture) else None


_RISE, _FALL = Polynomial([0.5, 0.5]), Polynomial([0.5, -0.5])


def _divided(coefficients: Any, root: float) -> Array:
    """Divide a polynomial, constant first, by t (root 0) or by 1 - t (root 1); the remainder is round-off."""
    if root == 0.0:
        return np.asarray(coefficients[1:])
    return np.cumsum(coefficients)[:-1]


def least_distance(sides: Array, least: Array) -> Array | None:
    """Return the shortest z with sides @ z >= least (Lawson and Hanson, by NNLS); None where there is none.

    >>> least_distance(np.array([[1.0, 1.0]]), np.array([2.0])).round(9).tolist()
    [1.0, 1.0]
    """
    from scipy.optimize import nnls

    rows = np.vstack([sides.T, least])
    weights, _ = nnls(rows, np.append(np.zeros(len(rows) - 1), 1.0))
    rest = rows @ weights
    rest[-1] -= 1.0
    return None if abs(rest[-1]) < _FEASIBLE else np.asarray(-rest[:-1] / rest[-1])


@cache
def _integrals(degree: int) -> Array:
    """Return the integrals of the features over s in Bernstein coefficients of degree + 2; columns are features."""
    n = degree + 1  # that of the force: (2t - 1) B_j = (j + 1)/n B_(j+1) - (n - j)/n B_j
    force = np.zeros((n + 1, degree + 1))
    j = np.arange(degree + 1)
    force[j + 1, j], force[j, j] = (j + 1) / n, -(n - j) / n
    return np.vstack([np.zeros(degree + 1), 2.0 / (n + 1) * np.cumsum(force, axis=0)])
