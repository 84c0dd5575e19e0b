"""Family: what an effective force is a linear combination of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from doublewell.checks import whole
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.structure import Structure, classify

__all__ = ["MAX_DEGREE", "Array", "EvenFamily", "Family", "LinearFamily", "OfDegree", "even_family", "namespace"]

MAX_DEGREE = 8


@runtime_checkable
class Family(Protocol):
    """The span of features: G(u) = sum_j g_j B_j(u), zero at the two pure phases.

    With s in [-1, 1] the place between the phases, u = (low + high)/2 + w s and w = (high - low)/2, every force is
    G = -w (1 - s^2) r(s). Coefficients do not change when the phases are given other values.

    Methods are pure functions of the coefficients and of NumPy or JAX arrays, and return the same kind; under JAX
    both may be traced.
    """

    def __hash__(self) -> int:
        """Families are values: compiled code is kept for each."""

    @property
    def name(self) -> str:
        """Short name, as written to files."""

    @property
    def degree(self) -> int:
        """Degree of the bracket polynomial: in u^2 for symmetric wells, half of that in u for others."""

    @property
    def size(self) -> int:
        """Number of coefficients."""

    @property
    def phases(self) -> tuple[float, float]:
        """The phase values of the two wells, low and high."""

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u)."""

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u), the integral of G from the low phase to u."""

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (w^2 (1 - s^2)^2), finite and smooth up to the wells; wells of unequal depth raise."""

    def tilt(self, coefficients: Any) -> float:
        """Return H(high) - H(low), by how much the high phase lies above the low one."""

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H'' at the low and at the high phase."""

    def curvature(self, coefficients: Any, maximum: float) -> float:
        """Return H'' at the maximum between the phases."""

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of r in t = (1 + s)/2, constant first, in exact arithmetic."""


@runtime_checkable
class LinearFamily(Family, Protocol):
    """A family that a record can be read with: its features one by one, and its degrees inside each other."""

    def features(self, u: Any) -> Any:
        """Evaluate all B_j at u; shape (size, *u.shape)."""

    def primitives(self, u: Any) -> Any:
        """Evaluate all P_j, the integrals of B_j from -1 to u; shape (size, *u.shape)."""

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Return the features as numbers for the fused kernel: table, binomials, outer slopes."""

    def elevation(self, higher: Self) -> Array:
        """Return E with g_higher = E g: the same law written in the same family at a higher degree."""

    def at(self, degree: int) -> Self:
        """Return the same family at another degree."""


@dataclass(frozen=True)
class OfDegree:
    """What families of polynomials share: a degree from 0 to MAX_DEGREE, and their pure phases at -1 and +1."""

    degree: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", least=0, most=MAX_DEGREE))

    @property
    def phases(self) -> tuple[float, float]:
        """The pure phases, -1 and +1."""
        return (-1.0, 1.0)


class EvenFamily(ABC):
    """What all families with p a function of z = u^2 share: the force and primitive from p and h.

    Outside [-1, 1] the force goes on linearly with its slope at the well, so that the primitive is twice
    continuously differentiable.
    """

    @abstractmethod
    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) for z in [0, 1]."""

    @abstractmethod
    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = H(u) / (1 - u^2)^2."""

    @abstractmethod
    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""

    @property
    def phases(self) -> tuple[float, float]:
        """The pure phases, -1 and +1."""
        return (-1.0, 1.0)

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h at s."""
        return self.reduced(coefficients, s * s)

    def tilt(self, coefficients: Any) -> float:  # noqa: ARG002 - of every symmetric law
        """Return zero: the wells are equally deep."""
        return 0.0

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H''(-1) = H''(1) = 2 p(1)."""
        value = float(2.0 * self.bracket(coefficients, 1.0))
        return value, value

    def curvature(self, coefficients: Any, maximum: float) -> float:  # noqa: ARG002 - always at 0
        """Return H''(0) = -p(0)."""
        return -float(self.bracket(coefficients, 0.0))

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify(self.exact_bracket(coefficients))

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r(s) = s p(s^2) in powers of t = (1 + s)/2, by Horner's scheme with s = 2t - 1."""
        out = [Fraction(0)]
        for c in reversed(self.exact_bracket(coefficients)):
            out = _times_s(_times_s(out))
            out[0] += c
        return _times_s(out)

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u) = -u (1 - u^2) p(u^2); 1 - u^2 is formed without cancellation."""
        x = namespace(u).clip(u, -1.0, 1.0)
        inside = -x * ((1.0 - x) * (1.0 + x)) * self.bracket(coefficients, x * x)
        return inside + 2.0 * self.bracket(coefficients, 1.0) * (u - x)

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u) = (1 - u^2)^2 h(u^2), zero at the pure phases."""
        x = namespace(u).clip(u, -1.0, 1.0)
        inside = ((1.0 - x) * (1.0 + x)) ** 2 * self.reduced(coefficients, x * x)
        return inside + self.bracket(coefficients, 1.0) * (u - x) ** 2


def even_family(family: Family, purpose: str) -> EvenFamily:
    """Return a symmetric family with its phases at -1 and +1; others are refused."""
    if not isinstance(family, EvenFamily):
        raise InputError(
            f"{purpose} needs a symmetric law with its wells at -1 and +1: got a law of the family {family.name!r}; "
            "fit with wells='symmetric' and the phases at -1 and +1"
        )
    return family


def _times_s(polynomial: list[Fraction]) -> list[Fraction]:
    """Multiply a polynomial in t by s = 2t - 1."""
    out = [-c for c in polynomial] + [Fraction(0)]
    for i, c in enumerate(polynomial):
        out[i + 1] += 2 * c
    return out


def namespace(u: Any) -> Any:
    """Return the array library of u: NumPy, or JAX where u is a JAX array."""
    return u.__array_namespace__() if hasattr(u, "__array_namespace__") else np
