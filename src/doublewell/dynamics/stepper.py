"""Stepper: what every time stepper offers, and the pieces that a law and a run supply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from doublewell.errors import InputError
from doublewell.law import Family, Law
from doublewell.law.family import Array, namespace

__all__ = ["Stepper", "check_steps", "force"]


class Stepper(Protocol):
    """Advance u_t = q (Laplacian u - G(u)) on a grid by frames of a fixed interval.

    A stepper knows the grid, q, the interval and the number of steps in it; the law comes with each run, read as
    the effective force G.
    """

    @property
    def order(self) -> int:
        """Order of the error in the step length."""

    @property
    def substeps(self) -> int:
        """Steps from one frame to the next."""

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals, a new array each; u0 is not among them."""


def force(family: Family, coefficients: Any, u: Any) -> Any:
    """Evaluate G(u) = -u (1 - u^2) p(u^2) as a pure function of coefficients and field, for JAX transformations.

    Same numbers as ``Law(family, coefficients).force(u)``; here the coefficients may be traced.
    """
    x = namespace(u).clip(u, -1.0, 1.0)
    well = 2.0 * family.bracket(coefficients, 1.0)
    return -x * ((1.0 - x) * (1.0 + x)) * family.bracket(coefficients, x * x) + well * (u - x)


def check_steps(*, dt: float, q: float, substeps: int) -> None:
    """Raise where the interval, the diffusion coefficient or the number of steps cannot be used."""
    for name, value, meaning in (("dt", dt, "the frame interval"), ("q", q, "the diffusion coefficient")):
        if not isinstance(value, int | float | np.number) or not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value!r}: expected {meaning}, a positive number")
    if not isinstance(substeps, int | np.integer) or substeps < 1:
        raise InputError(f"substeps is {substeps!r}: expected the steps from frame to frame, a whole number from 1")
