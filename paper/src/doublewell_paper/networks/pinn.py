"""PINN: one network for u(x, t), one for the force, trained on the frames and on the equation's residual.

The inverse problem of the physics-informed literature (Raissi and others 2019): the loss is the mean square misfit of
the field's network at random pixels plus `physics` times the mean square residual of u_t / q - Laplacian u + G(u) at
the same places. Space enters through sines and cosines, so that the field is periodic by construction.

Tuned on a record that is in no table (sixth law, wobbled, noise 0.01, seed 24100; e_G in percent, raw and projected on
the positive degree two, means over three initialisations; benchmarks/results/neural_tuning.json). The search began
with 4 waves, a weight of 0.01 and 5000 steps, which gave 5.94 and 5.64. A weight of 0.001 gave 5.42 and 5.11, of 0.1
9.04 and 8.61; batches of 16384 gave 5.91 and 5.63; 8 waves gave 3.56 and 3.28. The default has 8 waves, a weight
between the first two and 8000 steps; these three together were not in that search.

Written in plain JAX rather than with DeepXDE, so that it runs where only JAX is installed, on the same loop as the
other networks. DeepXDE 1.15 does train the same problem on its JAX backend, once the weights of the force's
network are handed over as unknown numbers. On a record of 32 x 32 cells, with small networks and 1500 steps for both,
it came to 28 % raw and 12 % projected in 32 s of one core, this one to 20 % and 13 % in 43 s
(benchmarks/results/deepxde_pinn.json). It takes all places at each step and one fixed set of them, because the measured
values are compiled in; on a large record that is a fraction of the data, or too much for one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np

from doublewell_paper.networks.network import Layers, Movie, Network, Problem, Schedule, apply, curve, stacked

_OTHER = 1_000_003  # moves the seed of the force's network away from that of the field's

_SCHEDULE = Schedule(steps=8000, rate=0.003)


@dataclass(frozen=True)
class Pinn(Network):
    """Train a network of the field and one of the force together.

    `field` and `hidden` are the widths of the layers of the two, `waves` the sines and cosines along each axis, `batch`
    the places of one step, `physics` the weight of the residual, in units of the size of the force squared, and
    `resolution` the cells across an interface that the frames are low-passed to (None: as they are).
    """

    name: str = "PINN"
    field: tuple[int, ...] = (128, 128, 128)
    hidden: tuple[int, ...] = (32, 32)
    waves: int = 8
    batch: int = 4096
    physics: float = 0.003
    resolution: float | None = 10.0
    schedule: Schedule = _SCHEDULE

    def problem(self, movie: Movie, seeds: Sequence[int]) -> Problem:
        """Return what is trained on a movie."""
        inputs = 2 * self.waves * len(movie.grid.cells) + 1
        start = (
            stacked(seeds, (inputs, *self.field, 1), gain=1.0),
            stacked([seed + _OTHER for seed in seeds], (1, *self.hidden, 1)),
        )
        return Problem(_loss(len(movie.grid.cells), self.waves, self.batch, self.physics), start, _data(movie))

    def force_layers(self, weights: Any) -> Layers:
        """Return the second of the two networks."""
        layers: Layers = weights[1]
        return layers


def _data(movie: Movie) -> Any:
    """Return the frames, the cumulated weights of their values, and the scales of the equation."""
    odds = np.cumsum(movie.weights.astype(np.float64).ravel())
    lengths = np.array(movie.grid.extent, np.float32)
    scales = np.array([movie.size, movie.q, (movie.frames - 1) * movie.dt], np.float32)
    return movie.values, np.asarray(odds / odds[-1], np.float32), lengths, scales


@lru_cache(maxsize=8)
def _loss(axes: int, waves: int, batch: int, physics: float) -> Any:
    """Return the misfit and the residual at places drawn by their weights; one object per setting."""
    import jax
    import jax.numpy as jnp

    numbers = 2.0 * pi * np.arange(1, waves + 1, dtype=np.float32)

    def field(layers: Any, place: Any) -> Any:
        """Return u at a place (t, then space), each in [0, 1]."""
        turns = (place[1:, None] * numbers).ravel()
        features = jnp.concatenate([2.0 * place[:1] - 1.0, jnp.sin(turns), jnp.cos(turns)])
        return apply(layers, features)[0]

    def residual(both: Any, place: Any, lengths: Any, scales: Any) -> tuple[Any, Any]:
        """Return u and the residual over the size of the force."""
        size, q, duration = scales
        value, slope, bends = _derivatives(lambda p: field(both[0], p), place, axes)
        rest = slope / (q * duration) - jnp.sum(bends / lengths**2)
        return value, rest / size + curve(both[1], value)

    def loss(both: Any, key: Any, data: Any) -> Any:
        values, odds, lengths, scales = data
        drawn = jnp.searchsorted(odds, jax.random.uniform(key, (batch,)))
        index = jnp.stack(jnp.unravel_index(jnp.minimum(drawn, odds.size - 1), values.shape), -1)
        counts = jnp.array([values.shape[0] - 1, *values.shape[1:]])
        fields, rest = jax.vmap(residual, in_axes=(None, 0, None, None))(both, index / counts, lengths, scales)
        return jnp.mean((fields - values.ravel()[drawn]) ** 2) + physics * jnp.mean(rest**2)

    return loss


def _derivatives(field: Any, place: Any, axes: int) -> tuple[Any, Any, Any]:
    """Return u, its time derivative and its second derivatives along the space axes, by forward differentiation."""
    import jax
    import jax.numpy as jnp

    units = jnp.eye(axes + 1, dtype=place.dtype)

    def along(unit: Any) -> Any:
        return jax.jvp(field, (place,), (unit,))

    def twice(unit: Any) -> Any:
        return jax.jvp(lambda p: jax.jvp(field, (p,), (unit,))[1], (place,), (unit,))[1]

    value, slope = along(units[0])
    return value, slope, jax.vmap(twice)(units[1:])
