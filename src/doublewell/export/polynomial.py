"""Polynomial: a law in powers of w = 1 - u^2, from which force and primitive follow term by term.

    G(u) = -u w (a_0 + a_1 w + a_2 w^2 + ...),    H(u) = w^2 (b_0 + b_1 w + ...),    b_i = a_i / (2 (i + 2)).

Both vanish at the wells without cancellation, and the slope of G there is 2 a_0.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Law, even_family

__all__ = ["horner", "powers_of_w", "primitive_powers"]

_LOST = 1e-9  # of the largest force: more than this must not be lost by writing a law in powers


def powers_of_w(law: Law) -> tuple[float, ...]:
    """Return a_0, a_1, ... of the bracket p = a_0 + a_1 w + ..., converted exactly and then rounded to floats.

    >>> powers_of_w(Law.bernstein([0.75, 1.5]))
    (1.5, -0.75)
    """
    in_z = even_family(law.family, "a text for another program").exact_bracket(law.coefficients)
    exact = [Fraction(0)] * len(in_z)
    for k, c in enumerate(in_z):  # z^k = (1 - w)^k
        for i in range(k + 1):
            exact[i] += c * comb(k, i) * (-1) ** i
    powers = tuple(float(a) for a in exact)
    _check_digits(law, powers)
    return powers


def primitive_powers(powers: tuple[float, ...]) -> tuple[float, ...]:
    """Return b_0, b_1, ... of H = w^2 (b_0 + b_1 w + ...)."""
    return tuple(a / (2 * (i + 2)) for i, a in enumerate(powers))


def horner(powers: tuple[float, ...], name: str = "w") -> str:
    """Return a polynomial as code that Python, SymPy and MOOSE all read, floats with all their digits.

    >>> horner((1.5, -0.75, 2.0))
    '1.5 + w*(-0.75 + w*2.0)'
    """
    text = repr(powers[-1])
    for a in powers[-2::-1]:
        text = f"{a!r} + {name}*{text if text.replace('.', '').isdigit() else f'({text})'}"
    return text


def _check_digits(law: Law, powers: tuple[float, ...]) -> None:
    """Refuse a law of so high a degree that its powers cancel."""
    u = np.linspace(-1.0, 1.0, 401)
    w = (1.0 - u) * (1.0 + u)
    written = -u * w * _evaluate(powers, w)
    exact = law.force(u)
    size = float(np.max(np.abs(exact)))
    if size > 0.0 and float(np.max(np.abs(written - exact))) > _LOST * size:
        raise InputError(
            f"a law of degree {len(powers) - 1} in u^2 cannot be written in powers without losing digits: identify it "
            "with a degree of at most 8"
        )


def _evaluate(powers: tuple[float, ...], w: Array) -> Array:
    total = np.zeros_like(w)
    for a in reversed(powers):
        total = total * w + a
    return total
