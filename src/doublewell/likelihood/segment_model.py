"""SegmentModel: the record cut into segments, each with an initial field of its own, held together by links.

An unstable start (spinodal decomposition, drops that merge) multiplies an error of the initial field by
exp(q |G'(0)| T). A whole trajectory from a rough start then lies nowhere near the record, and Gauss-Newton has nothing
to go by. Segments follow the record from the first step on, whatever the law; links that grow stiffer turn them into
one trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Grid, jax_transforms, predict, step_weights, symbols
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.record import Boundary

__all__ = ["SegmentModel", "segment_constants"]


class Constants(NamedTuple):
    """Step weights, what frames and gaps count, the preconditioner's symbol."""

    weights: Any
    root: Any
    damping: Any


@dataclass(frozen=True)
class SegmentModel:
    """Predict all frames and all gaps at the links; the nuisance is the first field of each segment.

    The predictions are the frames, then for each inner segment its first field minus where its predecessor ends, which
    is observed to be zero.
    """

    family: LinearFamily
    boundary: Boundary
    frames: int
    substeps: int
    length: int  # frame intervals in a segment

    @property
    def count(self) -> int:
        """The number of segments."""
        return -(-self.frames // self.length)

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return the frames u[t, (z, y,) x], then the gaps."""
        import jax
        import jax.numpy as jnp

        def run(first: Any) -> Any:
            return predict(
                first, theta, constants.weights,
                family=self.family, boundary=self.boundary, frames=self.length + 1, substeps=self.substeps,
            )  # fmt: skip

        runs = jax.vmap(run)(nuisance)
        fields = runs[:, :-1].reshape(-1, *nuisance.shape[1:])[: self.frames]
        return jnp.concatenate([fields, nuisance[1:] - runs[:-1, -1]])

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight frames and gaps."""
        return constants.root * field

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Divide each mode of each segment by what diffusion alone makes of its frames and its two links."""
        import jax

        del theta  # a segment is too short for its rate to count
        forward, backward = jax_transforms(nuisance.shape[1:], self.boundary)
        return jax.vmap(lambda one: backward(constants.damping * forward(one)))

    def firsts(self, data: Array) -> Array:
        """Return the observed frames at which the segments begin; time is the axis before the mesh."""
        return data[:: self.length]

    def observations(self, data: Array) -> Array:
        """Return the frames followed by the gaps, zero."""
        return np.concatenate([data, np.zeros((self.count - 1, *data.shape[1:]))])


def segment_constants(model: SegmentModel, grid: Grid, *, dt: float, q: float, link: float) -> Constants:
    """Return the constants of a record whose links count `link` times as much as an observation."""
    decay = np.exp(2.0 * q * dt * grid.laplacian)
    seen = sum((decay**k for k in range(model.length)), np.zeros_like(decay))
    root = np.concatenate([np.ones(model.frames), np.full(model.count - 1, link)])
    return Constants(
        step_weights(symbols(ALLEN_CAHN, grid), dt / model.substeps * q),
        root.reshape(-1, *(1 for _ in grid.cells)),
        1.0 / (seen + link**2 * (1.0 + decay**model.length)),
    )
