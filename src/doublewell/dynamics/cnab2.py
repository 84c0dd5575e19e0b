"""CNAB2 in NumPy: Crank-Nicolson for the linear part, Adams-Bashforth of order two for the force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, numpy_transforms
from doublewell.dynamics.protocol import Dynamics, HasForce, check_steps, fastest_rate, steps_per_frame, symbols
from doublewell.hints import Array

_STABLE = 0.5  # largest h q D |G'|; from 1 on the scheme is unstable


def cnab2_steps(dynamics: Dynamics, waves: Sequence[Array], slope: float, tau: float, largest: float) -> int:
    """Return steps in a time tau = q dt, for a force with |G'| up to `slope`, that are stable and resolve it.

    A step times the fastest rate is at most `largest`.
    """
    stiffest = slope * float(np.max(dynamics.coupling(waves)))
    rate = fastest_rate(dynamics, waves, slope)
    return max(steps_per_frame(rate, tau, largest), steps_per_frame(stiffest, tau, _STABLE))


@dataclass(frozen=True)
class Cnab2:
    """Advance a field by the two-step scheme of second order.

    With h = dt / substeps and the symbols L, D of the dynamics,

        (1 - h/2 q L) u' = (1 + h/2 q L) u - h q D (3/2 G(u) - 1/2 G(u_before)).

    The first step has no field before it; it predicts with G(u0) alone and corrects with the mean of both ends, so
    that its error is of third order and the whole of second. The force is explicit: h q D G'(1) must stay below 1 on
    all modes, for what is implicit hardly damps those of a large L. Deterministic, float64, one core.
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
        linear, coupling = symbols(self.dynamics, self.grid.waves)
        h = self.q * self.dt / self.substeps
        keep, gain = (1.0 + 0.5 * h * linear) / (1.0 - 0.5 * h * linear), 0.5 * h * coupling / (1.0 - 0.5 * h * linear)
        modes, before = forward(u0), forward(law.force(u0))
        u = backward(keep * modes - gain * 2.0 * before)
        modes = keep * modes - gain * (forward(law.force(u)) + before)
        while True:
            u = backward(modes)
            yield u
            now = forward(law.force(u))
            before -= 3.0 * now
            before *= gain
            modes *= keep
            modes += before
            before = now
