"""Bernstein: symmetric wells with a bracket in Bernstein polynomials of u^2, the paper's family."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.law.constraint import Constraint, Held, contacts, hold_brackets
from doublewell.law.family import EvenFamily, Family, namespace
from doublewell.law.squares import dual_violation
from doublewell.law.structure import powers_of


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

    @property
    def size(self) -> int:
        """Number of coefficients, m + 1."""
        return self.degree + 1

    @property
    def binomials(self) -> Array:
        """The binomial coefficients C(m, j)."""
        return binomials(self.degree)

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
        return powers_of(coefficients)

    def hold(
        self,
        constraint: Constraint,
        roots: Array,
        right: Array,
        free: Array,
        near: Array | None = None,  # noqa: ARG002
    ) -> Held:
        """Return the nearest brackets that are positive on [0, 1], or the nearest positive coefficients."""
        return hold_brackets(constraint, roots, right, free)

    def contacts(self, coefficients: Array, bound: float) -> tuple[float, ...]:
        """Return the values of |u| where the bracket touches its lower bound, increasing."""
        return contacts(coefficients, bound)

    def dual_violation(self, gradient: Array) -> float:
        """Return by how much a gradient lies outside the dual cone of positive brackets."""
        return dual_violation(gradient)

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the Legendre series of the bracket, p = sum_k a_k P_k(2z - 1)."""
        return legendre_to_bernstein(self.degree), np.arange(self.size)

    def _features(self, s: Any) -> Any:
        xp = namespace(s)
        x = xp.clip(s, -1.0, 1.0)
        z, v = x * x, (1.0 - x) * (1.0 + x)
        inside = [-x * v * c * z**j * v ** (self.degree - j) for j, c in enumerate(self.binomials)]
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
        return np.array([-1.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 1.0]), self.binomials, slopes

    def _embed(self, smaller: Family) -> Array | None:
        return elevation_matrix(smaller.degree, self.degree) if isinstance(smaller, Bernstein) else None


def binomials(degree: int) -> Array:
    """Return the binomial coefficients of a degree as floats."""
    return np.array([comb(degree, j) for j in range(degree + 1)], dtype=np.float64)


def bernstein_sum(weights: list[Any], z: Any) -> Any:
    """Evaluate sum_j w_j z^j (1 - z)^(m - j) by one pass over j."""
    total, power = weights[0] + 0.0 * z, 1.0
    for weight in weights[1:]:
        power = power * z
        total = total * (1.0 - z) + weight * power
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
