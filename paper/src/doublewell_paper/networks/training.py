"""Training: Adam with a warm-up and a cosine decay, several initialisations at once; plain JAX, float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from doublewell.jax_runtime import keep_compiled

__all__ = ["Schedule", "Trained", "train"]

Loss = Callable[[Any, Any, Any], Any]  # of weights, a random key and the data
_BETAS = (0.9, 0.999)
_TINY = 1e-8
_WARM = 0.05  # share of the steps over which the rate grows
_CHUNK = 50  # steps that are compiled into one call
_PROBES = 2  # calls after the first one that tell how long a step takes


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: `steps` of Adam, or as many as fit into `seconds` (with compilation) where they are given.

    The rate grows over the first twentieth to `rate` and falls along a cosine to `last` times that.
    """

    steps: int
    rate: float
    last: float = 0.01
    seconds: float | None = None


@dataclass(frozen=True)
class Trained:
    """The terminal weights, stacked over seeds; steps taken; the loss of the last chunk for each seed."""

    weights: Any
    steps: int
    loss: tuple[float, ...]


def train(loss: Loss, weights: Any, data: Any, *, schedule: Schedule, seeds: Sequence[int]) -> Trained:
    """Return the weights after the last step of the schedule.

    `weights` are stacked over the seeds along a first axis; all are trained in one compiled loop on the same data.
    Steps are a multiple of 50.
    """
    import jax

    began = time.perf_counter()
    keep_compiled()
    advance = _compiled(loss, schedule.rate, schedule.last)
    empty = jax.tree.map(np.zeros_like, weights)
    state, data = jax.device_put(((weights, empty, empty), data))
    keys = jax.numpy.stack([jax.random.key(seed) for seed in seeds])
    values: Any = np.zeros(len(seeds))
    with jax.default_matmul_precision("highest"):  # a GPU would take 10 bits of each factor
        total = schedule.steps if schedule.seconds is None else _fitting(advance, state, keys, data, schedule, began)
        total = _CHUNK * max(1, round(total / _CHUNK))
        for first in range(0, total, _CHUNK):
            state, values = advance(state, keys, data, np.int32(first), np.int32(total))
    return Trained(jax.tree.map(np.asarray, state[0]), total, tuple(float(v) for v in np.asarray(values)))


def _fitting(advance: Any, state: Any, keys: Any, data: Any, schedule: Schedule, began: float) -> int:
    """Return how many steps fit into the seconds that are left after compiling and timing."""
    import jax

    def call() -> None:
        jax.block_until_ready(advance(state, keys, data, np.int32(0), np.int32(_CHUNK)))

    call()
    start = time.perf_counter()
    for _ in range(_PROBES):
        call()
    now = time.perf_counter()
    left = float(schedule.seconds or 0.0) - (now - began)
    return int(left / (now - start) * _PROBES * _CHUNK)


@lru_cache(maxsize=8)
def _compiled(loss: Loss, peak: float, last: float) -> Any:
    """Return the function that takes all seeds' weights and moments through 50 steps; one compilation a mesh."""
    import jax

    return jax.jit(jax.vmap(_chunk(loss, peak, last), in_axes=(0, 0, None, None, None)))


def _chunk(loss: Loss, peak: float, last: float) -> Any:
    import jax

    gradient = jax.value_and_grad(loss)

    def chunk(state: Any, key: Any, data: Any, first: Any, total: Any) -> tuple[Any, Any]:
        def step(state: Any, number: Any) -> tuple[Any, Any]:
            value, slope = gradient(state[0], jax.random.fold_in(key, number), data)
            rate = peak * _share(number / total, last, total)
            return _adam(state, slope, number + 1, rate), value

        state, values = jax.lax.scan(step, state, first + jax.numpy.arange(_CHUNK))
        return state, values.mean()

    return chunk


def _share(done: Any, last: float, total: Any) -> Any:
    import jax.numpy as jnp

    cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * done))
    return jnp.minimum(1.0, (done + 1.0 / total) / _WARM) * (last + (1.0 - last) * cosine)


def _adam(state: Any, slope: Any, number: Any, rate: Any) -> Any:
    """Return weights and moments after one step of Adam (Kingma and Ba 2015)."""
    import jax

    weights, mean, square = state
    one, two = _BETAS
    mean = jax.tree.map(lambda m, g: one * m + (1 - one) * g, mean, slope)
    square = jax.tree.map(lambda s, g: two * s + (1 - two) * g * g, square, slope)
    down, up = 1 - one**number, 1 - two**number
    weights = jax.tree.map(
        lambda w, m, s: w - rate * (m / down) / (jax.numpy.sqrt(s / up) + _TINY), weights, mean, square
    )
    return weights, mean, square
