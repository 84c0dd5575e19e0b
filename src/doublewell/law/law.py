"""Law: one effective force G = F'/epsilon^2 and everything that follows from it by algebra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import numbers, positive, real, shown
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.bernstein import MAX_DEGREE, Bernstein
from doublewell.law.chebyshev import proxy_of_force, proxy_of_potential
from doublewell.law.family import EvenFamily, Family
from doublewell.law.placed import check_phases, embedding, place
from doublewell.law.quadrature import TENSION_NODES, gauss_legendre
from doublewell.law.structure import Structure
from doublewell.law.wells import Wells

__all__ = ["Law", "check_law"]

_WIDTH_NODES = 200
_WIDTH_LEVEL = 0.9  # of the way from the middle to a pure phase


@dataclass(frozen=True, eq=False)
class Law:
    """A law with two wells: symmetric, G(u) = -u (1 - u^2) p(u^2) with wells at u = -1 and +1, or of unlike wells.

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
    def wells(cls, coefficients: ArrayLike, *, phases: tuple[float, float] = (-1.0, 1.0), name: str = "") -> Law:
        """Return the law -w (1 - s^2) r(s) with these Bernstein coefficients of r: 2 m + 2 of them for the degree m.

        >>> law = Law.wells([-1.2, 0.8])  # r = s - 0.2: the quartic law, tilted
        >>> round(law.maximum, 12), law.tilt > 0.0
        (0.2, True)
        """
        g = np.atleast_1d(numbers(coefficients, "coefficients"))
        if g.ndim != 1 or g.size == 0 or g.size % 2 or g.size > 2 * MAX_DEGREE + 2:
            raise InputError(
                f"coefficients have shape {g.shape}: expected a list of 2, 4, ... {2 * MAX_DEGREE + 2} numbers"
            )
        return cls(Wells(g.size // 2 - 1), g, name=name).placed(phases)

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
        """Evaluate G(u); NumPy or JAX. Beyond the pure phases it goes on linearly with its slope there."""
        return self.family.force(self.coefficients, _as_array(u))

    def primitive(self, u: Any) -> Any:
        """Evaluate H(u), the integral of G from the low phase to u: H(-1) = H(1) = 0 for symmetric wells."""
        return self.family.primitive(self.coefficients, _as_array(u))

    def potential(self, u: Any, *, epsilon: float) -> Any:
        """Evaluate F(u) = epsilon^2 H(u)."""
        return positive(epsilon, "epsilon", "the interface scale") ** 2 * self.primitive(u)

    @property
    def phases(self) -> tuple[float, float]:
        """The phase values of the two wells."""
        return self.family.phases

    @cached_property
    def well_curvatures(self) -> tuple[float, float]:
        """H'' = G' at the low and at the high phase."""
        return self.family.well_curvatures(self.coefficients)

    @property
    def well_curvature(self) -> float:
        """The smaller of H'' at the two phases; for symmetric wells both are 2 p(1)."""
        return min(self.well_curvatures)

    @cached_property
    def maximum(self) -> float:
        """The phase value of the maximum between the wells: 0 for symmetric wells, NaN where there is none."""
        if isinstance(self.family, EvenFamily):
            return 0.0
        tops = [point.u for point in self.structure.stationary if point.kind == "maximum"]
        return max(tops, key=lambda u: float(self.primitive(u)), default=nan)

    @cached_property
    def centre_curvature(self) -> float:
        """H'' at the maximum, -p(0) for symmetric wells; negative for a double well."""
        return self.family.curvature(self.coefficients, self.maximum)

    @cached_property
    def tilt(self) -> float:
        """By how much the high phase lies above the low one, H(high) - H(low); 0 for symmetric wells."""
        return self.family.tilt(self.coefficients)

    @cached_property
    def barriers(self) -> tuple[float, float]:
        """The height of the maximum over the low and over the high phase."""
        top = float(self.primitive(self.maximum))
        return top, top - self.tilt

    @property
    def barrier(self) -> float:
        """The height of the maximum over the higher of the pure phases."""
        return min(self.barriers)

    @cached_property
    def structure(self) -> Structure:
        """Stationary points and whether the law is a double well, decided exactly."""
        return self.family.structure(self.coefficients)

    @cached_property
    def lowest(self) -> float:
        """The smallest value of H at an interior stationary point; negative when H dips below the wells."""
        return min((float(self.primitive(point.u)) for point in self.structure.stationary), default=0.0)

    @property
    def has_interface(self) -> bool:
        """Whether a planar interface at rest joins the phases: stable, equally deep, and H above them in between."""
        return self.tilt == 0.0 and self.lowest > 0.0 and self.well_curvature > 0.0

    @cached_property
    def tension_integral(self) -> float:
        """C_H, the integral of sqrt(2 H) between the phases, by 64-point Gauss-Legendre quadrature."""
        self._check_depths()
        if self.lowest < 0.0:
            raise InputError(
                f"the potential falls below the pure phases (lowest H = {self.lowest:.3g}), so no planar "
                "interface joins them and no surface tension exists; use constraint='admissible', or more data"
            )
        nodes, weights = gauss_legendre(TENSION_NODES)
        middle, half = self._frame()
        return float(half * (weights @ np.sqrt(2.0 * np.maximum(self.primitive(middle + half * nodes), 0.0))))

    def _frame(self) -> tuple[float, float]:
        """Return the middle of the phases and half their distance."""
        low, high = self.phases
        return 0.5 * (low + high), 0.5 * (high - low)

    def _check_depths(self) -> None:
        if self.tilt != 0.0:
            share = 100.0 * abs(self.tilt) / max(self.barriers)
            raise InputError(
                f"the wells are not equally deep (they differ by {share:.2g} % of the higher barrier): a planar "
                "interface travels and none is at rest, so no planar tension and no interface width exist; G and H are "
                "given. Where the depths are known to be equal, use wells='equal'"
            )

    def surface_tension(self, *, epsilon: float) -> float:
        """Return sigma = epsilon C_H, the planar interfacial energy in the normalisation E.

        `epsilon` goes with this law as its effective force. A law read as F' has epsilon = 1, whatever epsilon its
        movie was made with: sigma depends on F alone.
        """
        return positive(epsilon, "epsilon", "the interface scale") * self.tension_integral

    def interface_width(self, low: float | None = None, high: float | None = None) -> float:
        """Return the distance over which a planar interface goes from phase value low to high (-0.9 and 0.9).

        W = int du / sqrt(2 H). With s = tanh(sigma) the integrand is smooth up to the wells. For other phases the
        levels are at 90 % of the way from the middle.
        """
        self._check_depths()
        middle, half = self._frame()
        low, high = (
            middle + sign * _WIDTH_LEVEL * half if level is None else real(level, "a width level", "a phase value")
            for sign, level in ((-1.0, low), (1.0, high))
        )
        if not self.phases[0] < low < high < self.phases[1]:
            first, last = self.phases
            raise InputError(f"width levels are {low:g} and {high:g}: expected {first:g} < low < high < {last:g}")
        nodes, weights = gauss_legendre(_WIDTH_NODES)
        a, b = np.arctanh((low - middle) / half), np.arctanh((high - middle) / half)
        s = np.tanh(0.5 * (b - a) * nodes + 0.5 * (a + b))
        h = self.family.height(self.coefficients, s)
        if np.min(h) <= 0.0:
            raise InputError(
                f"H is not positive between the levels {low:g} and {high:g}, so no planar interface joins them"
            )
        return float(0.5 * (b - a) * weights @ (1.0 / np.sqrt(2.0 * h)))

    def placed(self, phases: tuple[float, float]) -> Law:
        """Return the same law with its wells at other phase values: G(u) becomes w G(s), u = middle + w s."""
        return Law(place(self.family, check_phases(phases)), self.coefficients, name=self.name)

    def tilted(self, share: float) -> Law:
        """Return the law with a constant taken from r, so that the high phase lies above the low one.

        Then H(high) - H(low) is `share` of the barrier over the higher phase; a negative share lifts the low phase.

        >>> law = Law.bernstein([0.75, 1.5]).tilted(0.2)
        >>> round(law.tilt / law.barrier, 10), law.structure.ok
        (0.2, True)
        """
        share = real(share, "share", "a share of the barrier")
        family = Wells(self.family.degree)
        g = embedding(place(self.family, (-1.0, 1.0)), family) @ self.coefficients
        low, high = 0.0, float(min(-g[0], g[-1]))
        for _ in range(100):  # the share of the barrier grows with the constant, to infinity where the barrier ends
            constant = 0.5 * (low + high)
            law = Law(family, g - np.sign(share) * constant)
            grown = not law.structure.ok or abs(law.tilt) > abs(share) * law.barrier
            low, high = (low, constant) if grown else (constant, high)
        return Law(family, g - np.sign(share) * low, name=self.name).placed(self.phases)

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
