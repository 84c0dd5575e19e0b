"""FieldModel: a whole domain with its boundary declared; the nuisance is the initial field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from doublewell.dynamics import Grid, etd_weights, jax_transforms, predict
from doublewell.law import LinearFamily
from doublewell.record import Boundary

__all__ = ["Constants", "FieldModel", "field_constants"]


class Constants(NamedTuple):
    """The arrays of a FieldModel: step weights, root of the observations' weights, the preconditioner's symbol."""

    weights: Any
    root: Any
    damping: Any


@dataclass(frozen=True)
class FieldModel:
    """Predict all frames from an initial field and the coefficients of a family by ETDRK4."""

    family: LinearFamily
    boundary: Boundary
    frames: int
    substeps: int

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return u[t, (z, y,) x] for the initial field `nuisance` and the coefficients `theta`."""
        return predict(
            nuisance, theta, constants.weights,
            family=self.family, boundary=self.boundary, frames=self.frames, substeps=self.substeps,
        )  # fmt: skip

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight the residual; white noise of one level has the weight 1 everywhere."""
        return constants.root * field

    def precondition(self, gradient: Any, constants: Constants) -> Any:
        """Divide each mode by sum_k exp(-2 q |kappa|^2 t_k), what diffusion alone makes of J_u' J_u."""
        forward, backward = jax_transforms(gradient.shape, self.boundary)
        return backward(constants.damping * forward(gradient))


def field_constants(grid: Grid, *, dt: float, frames: int, q: float, substeps: int) -> Constants:
    """Return the constants of a record, NumPy arrays."""
    decay = np.exp(2.0 * q * dt * grid.symbol)  # exp(-2 q |kappa|^2 dt)
    total = np.where(decay < 1.0, (1.0 - decay**frames) / np.where(decay < 1.0, 1.0 - decay, 1.0), float(frames))
    return Constants(etd_weights(grid.symbol, step=dt / substeps, q=q), 1.0, 1.0 / total)
