"""Family: what an effective force is a linear combination of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from doublewell.hints import Array

__all__ = ["Array", "EvenFamily", "Family", "LinearFamily", "namespace"]


@runtime_checkable
class Family(Protocol):
    """The span of features: G(u) = sum_j g_j B_j(u) = -u (1 - u^2) p(u^2) with p the bracket polynomial.

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
        """Degree of the bracket polynomial in z = u^2."""

    @property
    def size(self) -> int:
        """Number of coefficients."""

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u)."""

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u), the integral of G from -1 to u."""

    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) for z in [0, 1]."""

    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = H(u) / (1 - u^2)^2, finite and smooth up to the wells."""

    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""


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


def namespace(u: Any) -> Any:
    """Return the array library of u: NumPy, or JAX where u is a JAX array."""
    return u.__array_namespace__() if hasattr(u, "__array_namespace__") else np
