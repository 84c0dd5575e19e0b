"""Network: a plain tanh network as a list of weights; made in NumPy, trained in JAX, evaluated in either."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.law.family import namespace

__all__ = ["Layers", "apply", "curve", "force_of", "initial", "stacked"]

Layers = list[tuple[Any, Any]]


def initial(sizes: Sequence[int], seed: int, *, gain: float = 4.0) -> Layers:
    """Return Glorot weights in float32 for layers of the given sizes.

    The first layer is `gain` times as steep, with biases spread over as much: with one input this places bends over
    the phase range. With a gain of 1 a curve with three zeros takes thousands of steps.

    >>> [w.shape for w, _ in initial((1, 8, 1), 0)]
    [(1, 8), (8, 1)]
    """
    rng = np.random.default_rng(seed)
    layers = []
    for k, (before, after) in enumerate(pairwise(sizes)):
        weights = rng.standard_normal((before, after)) * np.sqrt(2.0 / (before + after))
        biases = rng.uniform(-gain, gain, after) if k == 0 else np.zeros(after)
        layers.append(((weights * gain if k == 0 else weights).astype(np.float32), biases.astype(np.float32)))
    return layers


def apply(layers: Layers, inputs: Any) -> Any:
    """Return the network's outputs for inputs[..., feature]; NumPy, or JAX where either is."""
    for weights, biases in layers[:-1]:
        sums = inputs @ weights + biases
        inputs = namespace(sums).tanh(sums)
    weights, biases = layers[-1]
    return inputs @ weights + biases


def curve(layers: Layers, u: Any) -> Any:
    """Return a network of one input and one output at values of any shape."""
    return apply(layers, u[..., None])[..., 0]


def stacked(seeds: Sequence[int], sizes: Sequence[int], *, gain: float = 4.0) -> Layers:
    """Return the initial weights for several seeds, stacked along a first axis."""
    each = [initial(sizes, seed, gain=gain) for seed in seeds]
    return [
        (np.stack([layers[k][0] for layers in each]), np.stack([layers[k][1] for layers in each]))
        for k in range(len(sizes) - 1)
    ]


def force_of(layers: Layers, size: float) -> Any:
    """Return u -> size * network(u) in float64 NumPy, for trained weights of one seed."""
    kept = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in layers]

    def force(u: Array) -> Array:
        return np.asarray(size * curve(kept, np.asarray(u, np.float64)))

    return force
