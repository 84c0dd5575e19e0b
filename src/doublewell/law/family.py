"""Family: what an effective force is a linear combination of."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Family", "namespace"]

Array = NDArray[np.float64]


@runtime_checkable
class Family(Protocol):
    """The span of features G(u) = sum_j g_j B_j(u) = -u (1 - u^2) p(u^2) with p the bracket polynomial.

    Methods take NumPy or JAX arrays and return the same kind. Outside [-1, 1] the force goes on linearly
    with its slope at the well, so that the primitive is twice continuously differentiable.
    """

    @property
    def name(self) -> str:
        """Short name, as written to files."""

    @property
    def degree(self) -> int:
        """Degree of the bracket polynomial in z = u^2."""

    @property
    def size(self) -> int:
        """Number of coefficients."""

    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) for z in [0, 1]."""

    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z) = H(u) / (1 - u^2)^2, finite and smooth up to the wells."""

    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""


def namespace(u: Any) -> Any:
    """Return the array library of u: NumPy, or JAX where u is a JAX array."""
    return u.__array_namespace__() if hasattr(u, "__array_namespace__") else np
