"""Bernstein: the paper's family, Bernstein polynomials of degree m in u^2 times -u (1 - u^2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.family import MAX_DEGREE, EvenFamily, OfDegree, namespace

__all__ = ["MAX_DEGREE", "Bernstein", "bernstein_sum", "elevation_matrix"]


@dataclass(frozen=True)
class Bernstein(OfDegree, EvenFamily):
    """The features B_j(u) = -u (1 - u^2) C(m, j) (u^2)^j (1 - u^2)^(m - j), j = 0..m, of degree m.

    All coefficients positive means two stable pure phases and one central maximum. Outside [-1, 1], with x
    the nearest pure phase, B_m goes on as 2 (u - x) and the others vanish.

    >>> Bernstein(2).size
    3
    >>> float(Bernstein(0).features(np.array(0.5))[0])
    -0.375
    """

    @property
    def name(self) -> str:
        """Short name, as written to files."""
        return "bernstein"

    @property
    def size(self) -> int:
        """Number of coefficients, m + 1."""
        return self.degree + 1

    @property
    def binomials(self) -> Array:
        """The binomial coefficients C(m, j)."""
        return np.array([comb(self.degree, j) for j in range(self.size)], dtype=np.float64)

    def features(self, u: Any) -> Any:
        """Evaluate all B_j at u; shape (m + 1, *u.shape)."""
        xp = namespace(u)
        x = xp.clip(u, -1.0, 1.0)
        z, v = x * x, (1.0 - x) * (1.0 + x)
        inside = [-x * v * c * z**j * v ** (self.degree - j) for j, c in enumerate(self.binomials)]
        inside[-1] = inside[-1] + 2.0 * (u - x)
        return xp.stack(inside)

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Return the family as numbers for the fused kernel: table, binomials, outer slopes.

        table = [low, high, z0, z1, z2, c0, c1, c2, c3]: features are (c0 + c1 x + c2 x^2 + c3 x^3) times Bernstein
        polynomials of z0 + z1 x + z2 x^2, x = u clipped to [low, high]; slopes[0] and slopes[1] continue each
        feature linearly below and above.
        """
        table = np.array([-1.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0])
        slopes = np.zeros((2, self.size))
        slopes[:, -1] = 2.0
        return table, self.binomials, slopes

    def primitives(self, u: Any) -> Any:
        """Evaluate all P_j(u), the integrals of B_j from -1 to u, in closed form; shape (m + 1, *u.shape).

        P_j = (m+1-j) / (2 (m+1) (m+2)) sum_{i<=j} C(m+2, i) z^i (1-z)^(m+2-i): a sum of positive terms.
        """
        xp = namespace(u)
        m = self.degree
        x = xp.clip(u, -1.0, 1.0)
        z, v = x * x, (1.0 - x) * (1.0 + x)
        total = 0.0 * x
        inside = []
        for j in range(self.size):
            total = total + comb(m + 2, j) * z**j * v ** (m + 2 - j)
            inside.append((m + 1 - j) / (2 * (m + 1) * (m + 2)) * total)
        inside[-1] = inside[-1] + (u - x) ** 2
        return xp.stack(inside)

    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) = sum_j g_j C(m, j) z^j (1 - z)^(m - j) for z in [0, 1]."""
        return bernstein_sum([g * c for g, c in zip(coefficients, self.binomials, strict=True)], z)

    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = H(u) / (1 - u^2)^2 from the closed form, no cancellation at the wells."""
        m = self.degree
        weights = [(m + 1 - j) / (2 * (m + 1) * (m + 2)) for j in range(self.size)]
        scaled = [g * w for g, w in zip(coefficients, weights, strict=True)]
        tails = [comb(m + 2, i) * sum(scaled[i:]) for i in range(self.size)]
        return bernstein_sum(tails, z)

    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""
        m = self.degree
        out = [Fraction(0)] * self.size
        for j, g in enumerate(coefficients):
            for i in range(m - j + 1):
                out[j + i] += Fraction(float(g)) * comb(m, j) * comb(m - j, i) * (-1) ** i
        return out

    def elevation(self, higher: Bernstein) -> Array:
        """Return E with g_higher = E g: the same law written at a higher degree.

        >>> Bernstein(0).elevation(Bernstein(2)).ravel().tolist()
        [1.0, 1.0, 1.0]
        """
        m, top = self.degree, higher.degree
        if top < m:
            raise InputError(f"cannot elevate degree {m} to degree {top}: expected a degree of at least {m}")
        return elevation_matrix(m, top)

    def at(self, degree: int) -> Bernstein:
        """Return the family of another degree."""
        return Bernstein(degree)


@cache
def elevation_matrix(low: int, top: int) -> Array:
    """Return the matrix from Bernstein coefficients of degree `low` to those of degree `top`; read-only."""
    out = np.zeros((top + 1, low + 1))
    for j in range(low + 1):
        for k in range(top - low + 1):
            out[j + k, j] = comb(low, j) * comb(top - low, k) / comb(top, j + k)
    out.flags.writeable = False
    return out


def bernstein_sum(weights: list[Any], z: Any) -> Any:
    """Evaluate sum_j w_j z^j (1 - z)^(m - j) by one pass over j."""
    total, power = weights[0] + 0.0 * z, 1.0
    for weight in weights[1:]:
        power = power * z
        total = total * (1.0 - z) + weight * power
    return total
