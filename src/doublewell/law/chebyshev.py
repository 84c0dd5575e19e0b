"""Chebyshev: a bracket polynomial of any degree, the proxy of a law given as a formula."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev as cheb

from doublewell.errors import InputError, shown
from doublewell.hints import Array
from doublewell.law.family import EvenFamily
from doublewell.law.structure import powers_of_t

_MAX_DEGREE = 128
_TOLERANCE = 1e-13  # of the largest value of what was given, F' or F
_ROUND_OFF = 5e-16  # relative size of a last Chebyshev coefficient that counts as noise
_CHECK = np.linspace(-1.0, 1.0, 201)


class Chebyshev(EvenFamily):
    """The features -u (1 - u^2) T_k(2 u^2 - 1), k = 0..n: any smooth symmetric law to round-off."""

    name = "chebyshev"
    most = None

    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) by Clenshaw's recurrence for z in [0, 1]."""
        return _clenshaw(coefficients, 2.0 * z - 1.0)

    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = 1/2 int_0^1 s p(1 - s (1 - z)) ds, which is H(u) / (1 - u^2)^2."""
        return _clenshaw(_reduction(self.degree) @ coefficients, 2.0 * z - 1.0)

    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""
        series: Any = [Fraction(float(c)) for c in coefficients]
        powers = powers_of_t(list(cheb.cheb2poly(series)))  # without zeros at the end
        return powers + [Fraction(0)] * (self.size - len(powers))


def proxy_of_force(force: Callable[[Array], Array]) -> tuple[Chebyshev, Array]:
    """Interpolate the bracket of an odd force F' that vanishes at -1, 0 and 1."""
    _check_symmetry(force, odd=True)
    coefficients = _shortest(lambda u, v: -_evaluate(force, u) / (u * v))
    family = Chebyshev(len(coefficients) - 1)
    fitted = -_CHECK * (1.0 - _CHECK) * (1.0 + _CHECK) * family.bracket(coefficients, _CHECK**2)
    _check_error(fitted, _evaluate(force, _CHECK))
    return family, coefficients


def proxy_of_potential(potential: Callable[[Array], Array]) -> tuple[Chebyshev, Array]:
    """Interpolate an even potential F in z = u^2, differentiate the polynomial and divide by 1 - z.

    F' = 2 u f'(z), so p = -2 f'(z) / (1 - z); dividing the polynomial avoids the cancellation at the wells,
    and the lowest degree that serves keeps the round-off of the derivative (degree squared) small. The error that is
    checked is that of F; F' is about ten times less accurate.
    """
    _check_symmetry(potential, odd=False)
    values = _shortest(lambda u, _: _evaluate(potential, u))
    orders = np.arange(len(values)) ** 2.0  # T_k'(1) = k^2
    values[-1] -= orders @ values / orders[-1]  # the well is at z = 1 exactly, at the least change of F
    slope = 2.0 * cheb.chebder(values)  # d/dz on [0, 1]
    quotient, _ = cheb.chebdiv(slope, np.array([0.5, -0.5]))  # 1 - z = (1 - T_1)/2
    coefficients = np.asarray(-2.0 * quotient)
    family = Chebyshev(len(coefficients) - 1)
    fitted = ((1.0 - _CHECK) * (1.0 + _CHECK)) ** 2 * family.reduced(coefficients, _CHECK**2)
    wanted = _evaluate(potential, _CHECK)
    _check_error(fitted, wanted - wanted[-1])
    return family, coefficients


def _shortest(function: Callable[[Array, Array], Array]) -> Array:
    """Interpolate a function of u and v = 1 - u^2 in z = u^2, at the lowest degree whose last terms are round-off.

    The points of the first kind are u = cos(a), v = sin(a)^2: no end points, no cancellation in v.
    """
    from scipy.fft import dct  # half of the package's import time, so only where it is used

    for degree in range(2, _MAX_DEGREE + 1, 2):
        angles = 0.5 * np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
        coefficients = np.asarray(dct(function(np.cos(angles), np.sin(angles) ** 2), type=2) / (degree + 1))
        coefficients[0] *= 0.5
        if np.max(np.abs(coefficients[-2:])) <= _ROUND_OFF * np.max(np.abs(coefficients)):
            break
    keep = np.flatnonzero(np.abs(coefficients) > 0.1 * _ROUND_OFF * np.max(np.abs(coefficients)))
    return coefficients[: keep[-1] + 1].copy()


def _check_error(fitted: Array, wanted: Array) -> None:
    error = np.max(np.abs(fitted - wanted)) / np.max(np.abs(wanted))
    if not error <= _TOLERANCE:
        raise InputError(
            f"the law is not smooth enough for a polynomial proxy: relative error {error:.1e}, expected "
            f"{_TOLERANCE:.0e}; give a law that is analytic on [-1, 1]"
        )


def _check_symmetry(function: Callable[[Array], Array], *, odd: bool) -> None:
    u = np.linspace(0.0, 1.0, 33)
    right, left = _evaluate(function, u), _evaluate(function, -u)
    size = np.max(np.abs(right - right[-1] * (not odd)))
    kind, sign = ("force F'", -1.0) if odd else ("potential F", 1.0)
    if size == 0.0:
        raise InputError(f"the {kind} is constant on [-1, 1]: expected a double well")
    if np.max(np.abs(right - sign * left)) > 1e-12 * size:
        raise InputError(
            f"the {kind} is not symmetric: expected an {'odd' if odd else 'even'} function of u; "
            "shift and scale the phase values so that the wells lie at -1 and +1"
        )
    step = 1e-6
    slope = right[-1] if odd else (right[-1] - float(_evaluate(function, np.array([1.0 - step]))[0])) / step
    if abs(slope) > (1e-12 if odd else 1e-4) * size:
        raise InputError(
            f"the {kind} has no stationary point at u = 1 (slope {slope:.3g}): expected the pure phases at -1 and +1"
        )


def _evaluate(function: Callable[[Array], Array], u: Array) -> Array:
    if not callable(function):
        raise InputError(f"the law is {shown(function)}: expected a function of u that takes a NumPy array")
    try:
        with np.errstate(all="ignore"):  # what is not finite is named below
            values = np.broadcast_to(np.asarray(function(u), dtype=np.float64), u.shape)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the law cannot be evaluated on an array ({type(error).__name__}: {error}): expected a function that "
            "takes a NumPy array of phase values and returns as many; use numpy's sin, exp, ..., not math's, or "
            "wrap it in numpy.vectorize"
        ) from error
    if not np.all(np.isfinite(values)):
        first = u[np.argmin(np.isfinite(values))]
        raise InputError(f"the law is not finite at u = {first:.4g}: expected a smooth function on [-1, 1]")
    return values


def _clenshaw(coefficients: Any, t: Any) -> Any:
    later, latest = 0.0 * t, 0.0 * t
    for c in coefficients[:0:-1]:
        later, latest = latest, 2.0 * t * latest - later + c
    return t * latest - later + coefficients[0]


@cache
def _reduction(degree: int) -> Array:
    """The linear map from the Chebyshev coefficients of p to those of h, exact for polynomials."""
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 2)
    s, w = 0.5 * (nodes + 1.0), 0.25 * weights  # 1/2 int_0^1
    angles = np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
    v = 0.5 * (1.0 - np.cos(angles))
    basis = cheb.chebvander(1.0 - 2.0 * np.outer(s, v), degree)  # T_k(2 (1 - s v) - 1)
    values = np.einsum("s,svk->vk", w * s, basis)
    table = 2.0 / (degree + 1) * np.cos(np.outer(np.arange(degree + 1), angles))
    table[0] *= 0.5
    return np.asarray(table @ values)
