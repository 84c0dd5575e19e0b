"""CNAB2 in NumPy: Crank-Nicolson for the linear part, Adams-Bashforth of order two for the force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, numpy_transforms
from doublewell.dynamics.protocol import Dynamics, HasForce, check_steps, symbols
from doublewell.hints import Array


@dataclass(frozen=True)
class Cnab2:
    """Advance a field by the two-step scheme of second order.

    With h = dt / substeps and the symbols L, D of the dynamics,

        (1 - h/2 q L) u' = (1 + h/2 q L) u - h q D (3/2 G(u) - 1/2 G(u_before)).

    The first step has no field before it; it predicts with G(u0) alone and corrects with the mean of both ends, so
    that its error is of third order and the whole of second. The force is explicit: h q D G'(1) must stay below about 1
    on modes that L does not damp. Deterministic, float64, one core.
    """

    grid: Grid
    dt: float
    q: float
    substeps: int
    dynamics: Dynamics = ALLEN_CAHN
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_steps(dt=self.dt, q=self.q, substeps=self.substeps)

    def run(self, law: HasForce, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals; u0 is not among them."""
        steps = self._steps(law, u0)
        for _ in range(intervals):
            for _ in range(self.substeps):
                u = next(steps)
            yield u

    def _steps(self, law: HasForce, u0: Array) -> Iterator[Array]:
        """Yield the field after each step, without end."""
        forward, backward = numpy_transforms(self.grid.cells, self.grid.boundary)
        keep, gain = self._factors()
        modes, before = forward(u0), forward(law.force(u0))
        u = backward(_step(modes.copy(), before, before, keep, gain))
        drive = 0.5 * (forward(law.force(u)) + before)
        modes = _step(modes, drive, drive, keep, gain)
        while True:
            u = backward(modes)
            yield u
            now = forward(law.force(u))
            modes, before = _step(modes, now, before, keep, gain), now

    def _factors(self) -> tuple[Array, Array]:
        """The factors of u and of 3 G(u) - G(u_before)."""
        h = self.dt / self.substeps
        linear, coupling = symbols(self.dynamics, self.grid)
        half = 0.5 * h * self.q * linear
        return (1.0 + half) / (1.0 - half), -0.5 * h * self.q * coupling / (1.0 - half)


def _step(modes: Any, now: Any, before: Any, keep: Array, gain: Array) -> Any:
    """Take one step of the modes in place."""
    drive = np.multiply(now, 3.0)
    drive -= before
    drive *= gain
    modes *= keep
    modes += drive
    return modes
