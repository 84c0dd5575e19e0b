"""CNAB2 in NumPy: Crank-Nicolson for the linear part, Adams-Bashforth of order two for the force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, numpy_transforms
from doublewell.dynamics.protocol import (
    Dynamics,
    HasForce,
    check_known,
    check_steps,
    fastest_rate,
    steps_per_frame,
    symbols,
)
from doublewell.errors import InputError
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
        check_known(self.dynamics)
        if self.dynamics.parts.mobility is not None:
            raise InputError("cnab2 is not stable with a mobility that depends on the phase: use solver='etdrk4'")

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
        linear, coupling = symbols(self.dynamics, self.grid.waves, self.grid.crossed)
        h = self.q * self.dt / self.substeps
        keep, gain = (1.0 + 0.5 * h * linear) / (1.0 - 0.5 * h * linear), 0.5 * h * coupling / (1.0 - 0.5 * h * linear)
        parts, step = self.dynamics.parts, self.dt / self.substeps

        def pull(u: Array, number: int) -> Array:
            driven = parts.driven(np.array([number * step]))
            return np.asarray(forward(law.force(u) if driven is None else law.force(u) - driven[0, 0]))

        modes, before = forward(u0), pull(u0, 0)
        u = backward(keep * modes - gain * 2.0 * before)
        modes = keep * modes - gain * (pull(u, 1) + before)
        for number in count(1):
            u = backward(modes)
            yield u
            now = pull(u, number)
            before -= 3.0 * now
            before *= gain
            modes *= keep
            modes += before
            before = now
