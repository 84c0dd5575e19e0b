"""Stepper: what every time stepper offers, and the check of what every one is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from doublewell.checks import positive, whole
from doublewell.hints import Array
from doublewell.law import Law

__all__ = ["HasForce", "Stepper", "check_steps"]


class HasForce(Protocol):
    """What the reaction of a step needs of a law: the force alone."""

    def force(self, u: Any) -> Any:
        """Evaluate G(u)."""


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


def check_steps(*, dt: float, q: float, substeps: int) -> None:
    """Raise where the interval, the diffusion coefficient or the number of steps cannot be used."""
    positive(dt, "dt", "the frame interval")
    positive(q, "q", "the diffusion coefficient")
    whole(substeps, "substeps", least=1, meaning="the steps from frame to frame")
