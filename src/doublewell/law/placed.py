"""Placed: a family whose pure phases are not at -1 and +1, and how one family lies in another."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, Self

import numpy as np

from doublewell.checks import real
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.bernstein import Bernstein
from doublewell.law.family import Family, LinearFamily
from doublewell.law.structure import Structure, classify_wells
from doublewell.law.wells import EqualWells, Wells, equal_to_wells, wells_to_equal

__all__ = ["Placed", "check_phases", "embedding", "place"]


@dataclass(frozen=True)
class Placed:
    """A family of laws on [-1, 1] moved to the phases low < high: G(u) = w G_family(s), u = (low + high)/2 + w s.

    The coefficients keep their values: they belong to s, and the equation of s is that of u.

    >>> float(Placed(Wells(0), 0.0, 1.0).force(np.array([-1.0, 1.0]), np.array(0.75)))
    -0.1875
    """

    family: Family
    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = check_phases((self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def name(self) -> str:
        """Short name, as written to files."""
        return "placed"

    @property
    def degree(self) -> int:
        """Degree of the family."""
        return self.family.degree

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.family.size

    @property
    def phases(self) -> tuple[float, float]:
        """The pure phases."""
        return (self.low, self.high)

    @property
    def half(self) -> float:
        """Half the distance of the phases."""
        return 0.5 * (self.high - self.low)

    @property
    def linear(self) -> LinearFamily:
        """The family, which must have features."""
        if not isinstance(self.family, LinearFamily):
            raise InputError(
                f"the family {self.family.name!r} has no features: expected one that a record is read with"
            )
        return self.family

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u)."""
        return self.half * self.family.force(coefficients, self._s(u))

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u), the integral of G from the low phase to u."""
        return self.half**2 * self.family.primitive(coefficients, self._s(u))

    def features(self, u: Any) -> Any:
        """Evaluate all features at u."""
        return self.half * self.linear.features(self._s(u))

    def primitives(self, u: Any) -> Any:
        """Evaluate the integrals of the features from the low phase to u."""
        return self.half**2 * self.linear.primitives(self._s(u))

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Refuse: a record is brought to the phases -1 and +1 before it is read."""
        raise InputError("a record is read with its phases at -1 and +1: use identify(record, phases=(low, high))")

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (w^2 (1 - s^2)^2)."""
        return self.family.height(coefficients, s)

    def tilt(self, coefficients: Any) -> float:
        """Return H(high) - H(low)."""
        return self.half**2 * self.family.tilt(coefficients)

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H'' at the low and at the high phase."""
        return self.family.well_curvatures(coefficients)

    def curvature(self, coefficients: Any, maximum: float) -> float:
        """Return H'' at the maximum between the phases."""
        return self.family.curvature(coefficients, float(self._s(maximum)))

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify_wells(self.exact_factor(coefficients), self.low, self.high)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r in powers of t, in exact arithmetic."""
        return self.family.exact_factor(coefficients)

    def elevation(self, higher: Self) -> Array:
        """Return E with g_higher = E g."""
        return self.linear.elevation(higher.linear)

    def at(self, degree: int) -> Placed:
        """Return the family of another degree at the same phases."""
        return Placed(self.linear.at(degree), self.low, self.high)

    def _s(self, u: Any) -> Any:
        return (u - 0.5 * (self.low + self.high)) / self.half


def place(family: Family, phases: tuple[float, float]) -> Family:
    """Return the family at these phases; at -1 and +1 it is the family itself."""
    inner = family.family if isinstance(family, Placed) else family
    return inner if phases == (-1.0, 1.0) else Placed(inner, *phases)


def check_phases(phases: Any) -> tuple[float, float]:
    """Return the phase values of the two wells as floats, the lower first."""
    try:
        low, high = phases
    except (TypeError, ValueError):
        raise InputError(f"phases is {phases!r}: expected a pair such as (-1, 1) or (0, 1)") from None
    low, high = real(low, "the low phase", "a phase value"), real(high, "the high phase", "a phase value")
    if not low < high:
        raise InputError(f"the phases are {low:g} and {high:g}: expected the lower one first")
    return low, high


def embedding(family: Family, larger: Family) -> Array:
    """Return E with g_larger = E g: a law of one family written in a larger one.

    Symmetric laws lie in EqualWells and in Wells of the same degree, EqualWells in Wells, each degree in higher ones.

    >>> embedding(Bernstein(0), Wells(0)).ravel().tolist()
    [-1.0, 1.0]
    """
    if family.phases != larger.phases:
        raise InputError(f"the phases differ ({family.phases} and {larger.phases}): expected families of one pair")
    family, larger = (one.family if isinstance(one, Placed) else one for one in (family, larger))
    if isinstance(family, Bernstein):
        if isinstance(larger, Bernstein):
            return family.elevation(larger)
        if isinstance(larger, Wells):
            return _bernstein_to_wells(family.elevation(Bernstein(larger.degree)), larger.degree)
        if isinstance(larger, EqualWells):
            lifted = _bernstein_to_wells(family.elevation(Bernstein(larger.degree)), larger.degree)
            return wells_to_equal(larger.degree) @ lifted
    if isinstance(family, EqualWells) and isinstance(larger, EqualWells):
        return family.elevation(larger)
    if isinstance(family, EqualWells) and isinstance(larger, Wells):
        return family.wells.elevation(larger) @ equal_to_wells(family.degree)
    if isinstance(family, Wells) and isinstance(larger, Wells):
        return family.elevation(larger)
    raise InputError(f"the family {family.name!r} does not lie in {larger.name!r}: expected a larger one")


def _bernstein_to_wells(lift: Array, m: int) -> Array:
    """Write s p(s^2) in Bernstein polynomials of t: s = t - (1 - t), 1 - s^2 = 4 t (1 - t)."""
    out = np.zeros((2 * m + 2, m + 1))
    for j in range(m + 1):
        for i in range(2 * j + 2):
            k = i + m - j
            out[k, j] = (-1.0) ** (i + 1) * comb(2 * j + 1, i) * comb(m, j) * 4.0 ** (m - j) / comb(2 * m + 1, k)
    return np.asarray(out @ lift)
