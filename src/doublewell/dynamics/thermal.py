"""Thermal noise: a stepper, in NumPy, of u_t = q (L u - D G(u)) + sqrt(2 q theta D) times white noise.

theta = kT / kappa ties fluctuation to dissipation: in equilibrium a field has the probability exp(-E / kT) with
E / kappa = integral of |grad u|^2 / 2 + H(u), H' = G, on the mesh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, numpy_transforms
from doublewell.dynamics.protocol import Dynamics, check_known, check_steps, symbols
from doublewell.errors import InputError, positive
from doublewell.errors import seed as generator
from doublewell.hints import Array
from doublewell.law import Law
from doublewell.law.family import namespace

_NEAR = 1e-3  # -z up to which phi_2 is a series
_SLOW, _SHORT = 1e-9, 0.02  # of a rate times an exposure: the least, and that below which series serve


class Weights(NamedTuple):
    """Of a step: decay, phi_1, phi_2, variance of the noise over h q theta D / V, its part that stage two sees."""

    decay: Any
    first: Any
    second: Any
    noise: Any
    seen: Any


def kick_weights(z: Any) -> Weights:
    """Return the weights of a step for exponents z < 0, of NumPy or JAX."""
    xp = namespace(z)
    near = xp.where(z > -_NEAR, -_NEAR, z)
    first = xp.where(z > -_NEAR, 1.0 + z / 2.0 + z**2 / 6.0, xp.expm1(near) / near)
    second = xp.where(z > -_NEAR, 0.5 + z / 6.0 + z**2 / 24.0, (xp.expm1(near) / near - 1.0) / near)
    decay = xp.exp(z)
    # d log(variance) / d curvature is -1 / a: of the decay, and the part of the noise that is seen
    rate = -2.0 * near * decay * (first + second * xp.expm1(near)) / -xp.expm1(2.0 * near)
    seen = xp.where(z > -_NEAR, 1.0 + z / 12.0, (1.0 - rate) / (-2.0 * near * second))
    return Weights(decay, first, second, (decay + 1.0) * first, seen)


def kicked(modes: Any, noise: Any, drive: Any, weights: Weights, push: Any, later: Any) -> Any:
    """Return modes after one step; `push` and `later` are the nonlinear force before and after it."""
    before = push(modes)
    modes = weights.decay * modes + drive * weights.first * before
    return modes + noise + drive * weights.second * (later(modes + weights.seen * noise) - before)


class Exposure(NamedTuple):
    """What the mean over an exposure is of each mode: that of the path from a field on, and noise on the way there.

    The path itself leaves the fraction ``left`` of a mode that decays. Noise of the exposure ``follows`` the gap, the
    difference of the next field from the path; what it adds on its own has the variance ``own`` times theta D / V, and
    a wave of which nothing else is seen has ``short`` times its variance in equilibrium.
    """

    left: Array
    follows: Array
    own: Array
    short: Array


def exposure_weights(rate: Array, tau: float, fraction: float) -> Exposure:
    """Return what an exposure of a fraction of the interval `tau` makes of modes that decay at a rate >= 0."""
    t = fraction * tau
    x, y = np.maximum(rate * t, _SLOW), np.maximum(2.0 * rate * tau, 2.0 * _SLOW / fraction)
    near = x < _SHORT
    safe = np.where(near, 1.0, x)
    left = -np.expm1(-x) / x
    gap = 2.0 * tau * -np.expm1(-y) / y  # its variance over theta D / V
    shared = np.exp(x - 0.5 * y) * left**2 * t
    whole = (safe + 2.0 * np.expm1(-safe) - 0.5 * np.expm1(-2.0 * safe)) / safe**3
    whole = 2.0 * t * np.where(near, 1.0 / 3.0 - x / 4.0 + 7.0 * x**2 / 60.0, whole)
    short = np.where(near, 1.0 - x / 3.0 + x**2 / 12.0, 2.0 * (safe + np.expm1(-safe)) / safe**2)
    return Exposure(left, shared / gap, whole - shared**2 / gap, short)


@dataclass(frozen=True)
class Etdrk2:
    """Advance a fluctuating field by ETDRK2 (Cox and Matthews 2002), the noise of a step added to its first stage.

    What is stepped exactly is L - D m, m the ``curvature`` (by default the mean one of the law's wells), with
    a = h q (D m - L) for a step h, and the noise of a mode is theta D (1 - exp(-2 a)) h q / (V a), V the volume of a
    cell: a phase has the spectrum of its energy for steps of any length. The second stage sees a part of the noise, for
    each mode the one with which a force of another curvature has the spectrum of its energy too, to first order in the
    difference: an interface, even where a step is longer than a mode lives. Kicks before and after a step leave such
    modes that of m.
    """

    grid: Grid
    dt: float
    q: float
    substeps: int
    dynamics: Dynamics = ALLEN_CAHN
    theta: float = 1.0
    seed: int | np.random.Generator | None = None
    curvature: float | None = None
    order: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_steps(dt=self.dt, q=self.q, substeps=self.substeps)
        check_known(self.dynamics)
        positive(self.theta, "theta", "kT / kappa of the thermal noise")
        if self.dynamics.parts.mobility is not None:
            raise InputError(
                "thermal noise of a mobility that depends on the phase has a drift of its own, which is not included: "
                "expected a constant mobility"
            )

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals; u0 is not among them."""
        rng, parts, step = generator(self.seed, "thermal noise"), self.dynamics.parts, self.dt / self.substeps
        forward, backward = numpy_transforms(self.grid.cells, self.grid.boundary)
        linear, coupling = symbols(self.dynamics, self.grid.waves, self.grid.crossed)
        wells = float(np.mean(law.well_curvatures)) if self.curvature is None else self.curvature
        mean, h = max(wells, 0.0), self.q * step
        weights = kick_weights(h * (linear - coupling * mean))
        spread, drive = np.sqrt(h * self.theta * coupling * weights.noise / prod(self.grid.dx)), -h * coupling

        def push(modes: Array, time: float) -> Array:
            u = backward(modes)
            driven = parts.driven(np.array([time]))
            return np.asarray(forward(law.force(u) - mean * u - (0.0 if driven is None else driven[0, 0])))

        modes = forward(u0)
        for frame in range(intervals):
            for number in range(self.substeps):
                time, noise = frame * self.dt + number * step, spread * forward(rng.normal(size=self.grid.cells))
                modes = kicked(modes, noise, drive, weights, partial(push, time=time), partial(push, time=time + step))
            yield backward(modes)
