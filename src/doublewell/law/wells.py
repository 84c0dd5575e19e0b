"""Wells: forces with two wells that need not be alike, and those whose wells are equally deep.

Both are written on s in [-1, 1], t = (1 + s)/2, with n = 2m + 1. The symmetric law of degree m lies in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.bernstein import bernstein_sum, elevation_matrix
from doublewell.law.family import OfDegree, namespace
from doublewell.law.structure import Structure, classify_wells

__all__ = ["EqualWells", "Wells", "depth_weights", "equal_to_wells"]

_ROUND_OFF = 1e-13  # of the terms that the difference of the depths is summed from


@dataclass(frozen=True)
class Wells(OfDegree):
    """The features B_k = -(1 - s^2) C(n, k) t^k (1 - t)^(n - k), k = 0..n, n = 2m + 1: the wells may differ.

    G = -(1 - s^2) r(s) with r a polynomial of degree n; the maximum between the phases is where r changes its sign.
    Outside [-1, 1] the first and the last feature go on linearly and the others vanish.

    >>> Wells(1).size
    4
    >>> float(Wells(0).features(np.array(0.5)).T @ [-1.0, 1.0])  # r = s: the quartic law
    -0.375
    """

    @property
    def name(self) -> str:
        """Short name, as written to files."""
        return "wells"

    @property
    def size(self) -> int:
        """Number of coefficients, 2 m + 2."""
        return 2 * self.degree + 2

    @property
    def binomials(self) -> Array:
        """The binomial coefficients C(n, k)."""
        return np.array([comb(self.size - 1, k) for k in range(self.size)], dtype=np.float64)

    def factor(self, coefficients: Any, s: Any) -> Any:
        """Evaluate r(s) for s in [-1, 1]."""
        weights = [g * c for g, c in zip(coefficients, self.binomials, strict=True)]
        return bernstein_sum(weights, 0.5 * (1.0 + s))

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u); outside [-1, 1] it goes on linearly with its slope at the well."""
        xp = namespace(u)
        x = xp.clip(u, -1.0, 1.0)
        slope = xp.where(u < 0.0, -2.0 * coefficients[0], 2.0 * coefficients[-1])
        return slope * (u - x) - (1.0 - x) * (1.0 + x) * self.factor(coefficients, x)

    def features(self, u: Any) -> Any:
        """Evaluate all B_k at u; shape (2 m + 2, *u.shape)."""
        xp = namespace(u)
        x, n = xp.clip(u, -1.0, 1.0), self.size - 1
        t, v, w = 0.5 * (1.0 + x), 0.5 * (1.0 - x), -(1.0 - x) * (1.0 + x)
        inside = [w * c * t**k * v ** (n - k) for k, c in enumerate(self.binomials)]
        inside[0] = inside[0] - 2.0 * xp.minimum(u - x, 0.0)
        inside[-1] = inside[-1] + 2.0 * xp.maximum(u - x, 0.0)
        return xp.stack(inside)

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Return the family as numbers for the fused kernel; see ``Bernstein.kernel_table``."""
        table = np.array([-1.0, 1.0, 0.5, 0.5, 0.0, -1.0, 0.0, 1.0, 0.0])
        slopes = np.zeros((2, self.size))
        slopes[0, 0], slopes[1, -1] = -2.0, 2.0
        return table, self.binomials, slopes

    def primitives(self, u: Any) -> Any:
        """Evaluate all P_k, the integrals of B_k from -1 to u, in closed form; shape (2 m + 2, *u.shape).

        P_k = -w_k sum_{i >= k + 2} C(n + 3, i) t^i (1 - t)^(n + 3 - i).
        """
        xp = namespace(u)
        x, top = xp.clip(u, -1.0, 1.0), self.size + 2
        t, v = 0.5 * (1.0 + x), 0.5 * (1.0 - x)
        total, inside = t**top, []
        for k in range(self.size - 1, -1, -1):
            total = total + comb(top, k + 2) * t ** (k + 2) * v ** (top - k - 2)
            inside.append(-depth_weights(self.degree)[k] * total)
        inside.reverse()
        inside[0] = inside[0] - xp.minimum(u - x, 0.0) ** 2
        inside[-1] = inside[-1] + xp.maximum(u - x, 0.0) ** 2
        return xp.stack(inside)

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u), zero at the low phase."""
        return namespace(u).tensordot(namespace(u).asarray(coefficients), self.primitives(u), axes=1)

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (1 - s^2)^2; it exists where the wells are equally deep."""
        if self.tilt(coefficients) != 0.0:
            raise InputError("the wells are not equally deep, so H does not vanish at both")
        return EqualWells(self.degree).height(wells_to_equal(self.degree) @ coefficients, s)

    def tilt(self, coefficients: Any) -> float:
        """Return H(1) - H(-1); what is round-off of its terms is zero."""
        terms = depth_weights(self.degree) * np.asarray(coefficients)
        total = float(np.sum(terms))
        return 0.0 if abs(total) <= _ROUND_OFF * float(np.sum(np.abs(terms))) else -total

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H''(-1) = -2 r(-1) and H''(1) = 2 r(1)."""
        return -2.0 * float(coefficients[0]), 2.0 * float(coefficients[-1])

    def curvature(self, coefficients: Any, maximum: float) -> float:
        """Return H'' at the maximum, -(1 - c^2) r'(c)."""
        n = self.size - 1
        steps = 0.5 * n * np.diff(coefficients)
        weights = [float(d) * comb(n - 1, k) for k, d in enumerate(steps)]
        return float(-(1.0 - maximum) * (1.0 + maximum) * bernstein_sum(weights, 0.5 * (1.0 + maximum)))

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify_wells(self.exact_factor(coefficients), -1.0, 1.0)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r in powers of t, in exact arithmetic."""
        return _exact_sum([Fraction(float(g)) for g in coefficients])

    def elevation(self, higher: Wells) -> Array:
        """Return E with g_higher = E g: the same law written at a higher degree."""
        _check_higher(self.degree, higher.degree)
        return elevation_matrix(self.size - 1, higher.size - 1)

    def at(self, degree: int) -> Wells:
        """Return the family of another degree."""
        return Wells(degree)


@dataclass(frozen=True)
class EqualWells(OfDegree):
    """Laws with H = (1 - s^2)^2 h(s): two wells of equal depth, by construction.

    The coefficients are those of 4 h in Bernstein polynomials of degree 2m in t, so that H'' at a well is twice one.

    >>> float(EqualWells(0).force(np.array([1.0]), np.array(0.5)))  # h = 1/4: the quartic law
    -0.375
    """

    @property
    def name(self) -> str:
        """Short name, as written to files."""
        return "equal_wells"

    @property
    def size(self) -> int:
        """Number of coefficients, 2 m + 1."""
        return 2 * self.degree + 1

    @property
    def wells(self) -> Wells:
        """The family without the condition on the depths."""
        return Wells(self.degree)

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u)."""
        return self.wells.force(equal_to_wells(self.degree) @ coefficients, u)

    def features(self, u: Any) -> Any:
        """Evaluate all features at u; shape (2 m + 1, *u.shape)."""
        xp = namespace(u)
        return xp.tensordot(xp.asarray(equal_to_wells(self.degree).T), self.wells.features(u), axes=1)

    def primitives(self, u: Any) -> Any:
        """Evaluate the integrals of the features from -1 to u; shape (2 m + 1, *u.shape)."""
        xp = namespace(u)
        return xp.stack([self.primitive(row, u) for row in np.eye(self.size)])

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u) = (1 - s^2)^2 h(s), zero at both phases."""
        xp = namespace(u)
        x = xp.clip(u, -1.0, 1.0)
        bend = xp.where(u < 0.0, coefficients[0], coefficients[-1])  # H''/2 at a well is 4 h
        return ((1.0 - x) * (1.0 + x)) ** 2 * self.height(coefficients, x) + bend * (u - x) ** 2

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s)."""
        weights = [0.25 * g * comb(self.size - 1, j) for j, g in enumerate(coefficients)]
        return bernstein_sum(weights, 0.5 * (1.0 + s))

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Refuse: weak moments are read in the family Wells and restricted afterwards."""
        raise InputError("weak moments are read with Wells(degree): expected that family, then restrict the evidence")

    def tilt(self, coefficients: Any) -> float:  # noqa: ARG002 - of every law of the family
        """Return zero: the wells are equally deep."""
        return 0.0

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H''(-1) = 8 h(-1) and H''(1) = 8 h(1)."""
        return 2.0 * float(coefficients[0]), 2.0 * float(coefficients[-1])

    def curvature(self, coefficients: Any, maximum: float) -> float:
        """Return H'' at the maximum."""
        return self.wells.curvature(equal_to_wells(self.degree) @ coefficients, maximum)

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify_wells(self.exact_factor(coefficients), -1.0, 1.0)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r = 4 s h - (1 - s^2) h'(s) in powers of t, in exact arithmetic."""
        h = _exact_sum([Fraction(float(g)) for g in coefficients])
        out = [Fraction(0)] * (len(h) + 1)
        for i, c in enumerate(h):  # s = 2t - 1, (1 - s^2) d/ds = 2 (t - t^2) d/dt
            out[i] -= Fraction(2 + i, 2) * c
            out[i + 1] += Fraction(4 + i, 2) * c
        return out

    def elevation(self, higher: EqualWells) -> Array:
        """Return E with g_higher = E g: the same law written at a higher degree."""
        _check_higher(self.degree, higher.degree)
        return elevation_matrix(self.size - 1, higher.size - 1)

    def at(self, degree: int) -> EqualWells:
        """Return the family of another degree."""
        return EqualWells(degree)


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
    n = 2 * degree + 1
    out = np.zeros((n + 1, n))
    for j, scale in enumerate(_height_scales(degree)):
        out[j, j] += scale / depth_weights(degree)[j]
        out[j + 1, j] -= scale / depth_weights(degree)[j + 1]
    return _frozen(out)


@cache
def wells_to_equal(degree: int) -> Array:
    """Return the matrix from coefficients of Wells with equal depths to those of EqualWells, summed from both ends."""
    n, weights = 2 * degree + 1, depth_weights(degree)
    out = np.zeros((n, n + 1))
    for j in range(n):
        if j <= degree:
            out[j, : j + 1] = weights[: j + 1]
        else:
            out[j, j + 1 :] = -weights[j + 1 :]
    return _frozen(out / _height_scales(degree)[:, None])


def _height_scales(degree: int) -> Array:
    n = 2 * degree + 1
    return np.array([-4.0 * comb(n - 1, j) / comb(n + 3, j + 2) for j in range(n)])


def _exact_sum(coefficients: list[Fraction]) -> list[Fraction]:
    """Write Bernstein coefficients in powers of t."""
    n = len(coefficients) - 1
    out = [Fraction(0)] * (n + 1)
    for j, g in enumerate(coefficients):
        for i in range(n - j + 1):
            out[j + i] += g * comb(n, j) * comb(n - j, i) * (-1) ** i
    return out


def _check_higher(low: int, top: int) -> None:
    if top < low:
        raise InputError(f"cannot elevate degree {low} to degree {top}: expected a degree of at least {low}")


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
