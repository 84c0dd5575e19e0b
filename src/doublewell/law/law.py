"""Law: one effective force G = F'/epsilon^2 and everything that follows from it by algebra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import numbers, positive, real, shown
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.bernstein import MAX_DEGREE, Bernstein
from doublewell.law.chebyshev import proxy_of_force, proxy_of_potential
from doublewell.law.family import Family
from doublewell.law.quadrature import TENSION_NODES, gauss_legendre
from doublewell.law.structure import Structure, classify

__all__ = ["Law", "check_law"]

_WIDTH_NODES = 200


@dataclass(frozen=True, eq=False)
class Law:
    """A symmetric law G(u) = -u (1 - u^2) p(u^2) with wells at u = -1 and +1.

    A law is an effective force. Read as F' it has epsilon = 1; ``law.effective(epsilon)`` divides it by
    epsilon^2.

    >>> quartic = Law.from_potential(lambda u: (1 - u**2)**2 / 4)
    >>> round(quartic.surface_tension(epsilon=1.0), 12)  # 2 sqrt(2) / 3
    0.942809041582
    """

    family: Family
    coefficients: Array
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        g = numbers(self.coefficients, "coefficients").copy()
        if g.shape != (self.family.size,):
            raise InputError(f"coefficients have shape {g.shape}: expected ({self.family.size},)")
        if not np.all(np.isfinite(g)):
            raise InputError("coefficients are not finite: expected finite numbers")
        g.flags.writeable = False
        object.__setattr__(self, "coefficients", g)

    @classmethod
    def bernstein(cls, coefficients: ArrayLike, *, name: str = "") -> Law:
        """Return the law with these Bernstein coefficients; their number gives the degree."""
        g = np.atleast_1d(numbers(coefficients, "coefficients"))
        if g.ndim != 1 or g.size == 0:
            raise InputError(f"coefficients have shape {g.shape}: expected a list of 1 to {MAX_DEGREE + 1} numbers")
        return cls(Bernstein(g.size - 1), g, name=name)

    @classmethod
    def from_force(cls, force: Callable[[Array], Array], *, name: str = "") -> Law:
        """Return the law with F' = force, an odd function with zeros at -1, 0 and 1, to 1e-13 of its size."""
        return cls(*proxy_of_force(force), name=name)

    @classmethod
    def from_potential(cls, potential: Callable[[Array], Array], *, name: str = "") -> Law:
        """Return the law with F = potential, even with wells at -1 and 1, to 1e-13 of its size.

        F' comes from the derivative of the proxy and is accurate to about 1e-12 of its own size; where F' is known,
        `from_force` gives it ten times better.
        """
        return cls(*proxy_of_potential(potential), name=name)

    def force(self, u: Any) -> Any:
        """Evaluate G(u); NumPy or JAX. Outside [-1, 1] it goes on linearly with slope G'(1)."""
        return self.family.force(self.coefficients, _as_array(u))

    def primitive(self, u: Any) -> Any:
        """Evaluate H(u), the integral of G from -1 to u, so that H(-1) = H(1) = 0."""
        return self.family.primitive(self.coefficients, _as_array(u))

    def potential(self, u: Any, *, epsilon: float) -> Any:
        """Evaluate F(u) = epsilon^2 H(u)."""
        return positive(epsilon, "epsilon", "the interface scale") ** 2 * self.primitive(u)

    @cached_property
    def well_curvature(self) -> float:
        """H''(1) = G'(1) = 2 p(1)."""
        return float(2.0 * self.family.bracket(self.coefficients, 1.0))

    @cached_property
    def centre_curvature(self) -> float:
        """H''(0) = G'(0) = -p(0); negative for a double well."""
        return -float(self.family.bracket(self.coefficients, 0.0))

    @cached_property
    def barrier(self) -> float:
        """H(0), the height of the central maximum over the pure phases."""
        return float(self.primitive(0.0))

    @cached_property
    def structure(self) -> Structure:
        """Stationary points and whether the law is a double well, decided exactly."""
        return classify(self.family.exact_bracket(self.coefficients))

    @cached_property
    def lowest(self) -> float:
        """The smallest value of H at an interior stationary point; negative when H dips below the wells."""
        return min((float(self.primitive(point.u)) for point in self.structure.stationary), default=0.0)

    @cached_property
    def tension_integral(self) -> float:
        """C_H, the integral of sqrt(2 H) over [-1, 1], by 64-point Gauss-Legendre quadrature."""
        if self.lowest < 0.0:
            raise InputError(
                f"the potential falls below the pure phases (lowest H = {self.lowest:.3g}), so no planar "
                "interface joins them and no surface tension exists; use constraint='admissible', or more data"
            )
        nodes, weights = gauss_legendre(TENSION_NODES)
        return float(weights @ np.sqrt(2.0 * np.maximum(self.primitive(nodes), 0.0)))

    def surface_tension(self, *, epsilon: float) -> float:
        """Return sigma = epsilon C_H, the planar interfacial energy in the normalisation E.

        `epsilon` goes with this law as its effective force. A law read as F' has epsilon = 1, whatever epsilon its
        movie was made with: sigma depends on F alone.
        """
        return positive(epsilon, "epsilon", "the interface scale") * self.tension_integral

    def interface_width(self, low: float = -0.9, high: float = 0.9) -> float:
        """Return the distance over which a planar interface goes from phase value low to high.

        W = int du / sqrt(2 H). With u = tanh s the integrand is smooth up to the wells.
        """
        low, high = (real(level, "a width level", "a phase value") for level in (low, high))
        if not -1.0 < low < high < 1.0:
            raise InputError(f"width levels are {low:g} and {high:g}: expected -1 < low < high < 1")
        nodes, weights = gauss_legendre(_WIDTH_NODES)
        a, b = np.arctanh(low), np.arctanh(high)
        u = np.tanh(0.5 * (b - a) * nodes + 0.5 * (a + b))
        h = self.family.reduced(self.coefficients, u * u)
        if np.min(h) <= 0.0:
            raise InputError(
                f"H is not positive between the levels {low:g} and {high:g}, so no planar interface joins them"
            )
        return float(0.5 * (b - a) * weights @ (1.0 / np.sqrt(2.0 * h)))

    def scaled(self, factor: float) -> Law:
        """Return the law times a factor."""
        return Law(self.family, factor * self.coefficients, name=self.name)

    def effective(self, epsilon: float) -> Law:
        """Return G = F'/epsilon^2 for this law read as F'."""
        scale = positive(epsilon, "epsilon", "the interface scale")
        try:
            factor = 1.0 / scale**2
        except (ZeroDivisionError, OverflowError):
            factor = 0.0
        largest = float(np.max(np.abs(self.coefficients)))
        if not (factor > 0.0 and isfinite(factor * largest)):
            raise InputError(
                f"epsilon is {scale:g}, and F'/epsilon^2 is beyond the range of numbers: expected the interface scale "
                "in the units of dx, a few cells"
            )
        return self.scaled(factor)

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Law({name}{self.family.name} degree {self.family.degree}: {self.structure})"


def check_law(value: Any) -> Law:
    """Return a law as it is; anything else raises and says how to make one."""
    if isinstance(value, Law):
        return value
    way = "Law.bernstein(coefficients), Law.from_force(function) or named_law(name)"
    if isinstance(value, str):
        way = f"named_law({value!r})"
    elif callable(value):
        way = "Law.from_force(function), or Law.from_potential(function)"
    raise InputError(f"law is {shown(value)}: expected a Law; pass {way}")


def _as_array(u: Any) -> Any:
    return u if hasattr(u, "__array_namespace__") else np.asarray(u, dtype=np.float64)
