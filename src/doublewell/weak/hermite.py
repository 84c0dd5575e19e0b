"""Noise and polynomials: features whose mean over the noise is the feature itself, and the covariance that is left.

For Gaussian noise of variance s^2 the mean of s^k He_k(v/s) over v = u + noise is u^k, so every polynomial f has a
corrected one, H[f], with mean f(u). The corrected features of one pixel still vary together: an estimate of their
covariance without bias is H[f] H[g] - H[f g]. Both are exact for polynomials on the whole line and a known variance.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

import numpy as np

from doublewell.hints import Array
from doublewell.law import Bernstein

__all__ = ["corrected_features", "exact_nodes", "hermite_matrix", "monomial_matrix", "noise_covariance"]


def monomial_matrix(family: Bernstein) -> Array:
    """Return the features as polynomials, in the odd powers u, u^3, ...: one column a feature."""
    out = np.zeros((family.size + 1, family.size))
    for j in range(family.size):
        bracket = [float(c) for c in family.exact_bracket(np.eye(family.size)[j])]
        for i, c in enumerate(bracket):  # -u (1 - u^2) z^i = -u^(2i + 1) + u^(2i + 3)
            out[i, j] -= c
            out[i + 1, j] += c
    return out


def hermite_matrix(size: int, variance: float) -> Array:
    """Return the corrected powers in powers: column k is s^n He_n(u/s) for the k-th odd power n = 2 k + 1."""
    return _as_floats(_hermite(size, Fraction(variance)))


def corrected_features(family: Bernstein, u: Array, variance: float) -> Array:
    """Evaluate the corrected features H[B_j] at u; shape (size, *u.shape). Without noise they are the B_j."""
    # in u times Bernstein polynomials of u^2, one degree higher: powers of u would cancel at high degree
    turn = _as_floats(_from_powers(family.size) @ _hermite(family.size + 1, Fraction(variance)) @ _powers(family))
    order = family.size
    z = (u * u).ravel()
    fields = np.empty((order + 1, z.size))
    fields[0] = u.ravel()
    for i in range(order):  # powers of z from the left, of 1 - z from the right
        np.multiply(fields[i], z, out=fields[i + 1])
    rest = np.ones_like(z)
    for i in range(order - 1, -1, -1):
        rest *= 1.0 - z
        fields[i] *= rest
    scale = np.array([comb(order, i) for i in range(order + 1)], dtype=np.float64)
    return np.asarray((turn * scale[:, None]).T @ fields).reshape(family.size, *u.shape)


def noise_covariance(family: Bernstein, u: Array, variance: float) -> Array:
    """Evaluate the estimated covariance of (H[B_0], ..., H[B_m], u) at each of the pixels u; shape (n, size + 1, ...).

    H[f](u) is the mean of f(u + i s Z) over a normal Z, so quadrature does it without powers of u.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * family.size + 4)
    points = u[:, None] + 1j * np.sqrt(variance) * nodes
    values = _polynomials(family, points)
    means = np.real(values @ (weights / weights.sum()))
    products = np.einsum("ank,bnk,k->nab", values, values, weights / weights.sum())
    return np.asarray(np.einsum("an,bn->nab", means, means) - np.real(products))


def exact_nodes(u: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Return Chebyshev points and weights with the sums of all polynomials below degree `count` over weighted pixels.

    A sum over a million pixels becomes one over some thirty points, exactly.
    """
    reach = float(np.max(np.abs(u), initial=1.0))
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    x, moments = u.ravel() / reach, np.empty(count)
    before, now, size = x, np.ones_like(x), weights.ravel()  # T_(-1) = x and T_0 = 1 start the recursion
    for k in range(count):
        moments[k] = size @ now
        before, now = now, 2.0 * x * now - before
    table = np.polynomial.chebyshev.chebvander(points, count - 1)
    moments[1:] *= 2.0
    return reach * points, table @ moments / count


def _polynomials(family: Bernstein, u: Array) -> Array:
    """Evaluate B_0, ..., B_m and u as polynomials, at complex points too; shape (size + 1, *u.shape)."""
    z, v = u * u, (1.0 - u) * (1.0 + u)
    inside = [-u * v * c * z**j * v ** (family.degree - j) for j, c in enumerate(family.binomials)]
    return np.stack([*inside, u])


def _hermite(size: int, variance: Fraction) -> Array:
    out = np.full((size, size), Fraction(0), dtype=object)
    for column in range(size):
        k = 2 * column + 1
        for i in range(column + 1):
            out[column - i, column] = (-variance / 2) ** i * factorial(k) / (factorial(i) * factorial(k - 2 * i))
    return out


def _powers(family: Bernstein) -> Array:
    """Return monomial_matrix in exact arithmetic; its entries are whole numbers."""
    return np.asarray(np.vectorize(Fraction, otypes=[object])(monomial_matrix(family)))


def _from_powers(order: int) -> Array:
    """Return the odd powers in the columns u C(n, j) z^j (1 - z)^(n - j), j = 0..n, n = order."""
    out = np.full((order + 1, order + 1), Fraction(0), dtype=object)
    for k in range(order + 1):
        for j in range(k, order + 1):
            out[j, k] = Fraction(comb(j, k), comb(order, k))
    return out


def _as_floats(values: Array) -> Array:
    return np.array(values, dtype=np.float64)
