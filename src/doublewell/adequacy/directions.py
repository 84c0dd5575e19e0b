"""Directions: derivatives of the prediction by parameters that the model does not have.

A direction is a function of a Fit that returns fields of the record's shape, one for each missing parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, Weights, double_precision, etd_weights, predict
from doublewell.dynamics.transforms import numpy_transforms
from doublewell.evidence.likelihood import Trajectory
from doublewell.evidence.likelihood.field_model import Constants, FieldModel, field_constants
from doublewell.evidence.likelihood.trajectory import check_record
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.record import Boundary, Record

__all__ = ["AXES", "DIRECTIONS", "Array", "Fit", "other_boundary"]

AXES = ("z", "y", "x")
_SMALL = 1e-4  # relative difference of q


@dataclass(frozen=True, eq=False)
class Fit:
    """A record with its fit, and what the directions are made of."""

    record: Record
    found: Trajectory

    @cached_property
    def grid(self) -> Grid:
        """The mesh with its declared boundary."""
        return check_record(self.record)

    @cached_property
    def predicted(self) -> Array:
        """The fitted fields, u[t, (z, y,) x]."""
        return np.asarray(self.record.slab() - self.found.residual)

    @property
    def model(self) -> FieldModel:
        """The model that was fitted."""
        return FieldModel(self.family, self.grid.boundary, self.record.frames, self.found.substeps)

    @property
    def family(self) -> LinearFamily:
        """The family of the evidence."""
        return self.found.evidence.family

    @property
    def q(self) -> float:
        """The declared diffusion coefficient."""
        return float(self.record.q or 0.0)

    @property
    def elapsed(self) -> Array:
        """Time as a share of the record, shaped for broadcasting."""
        share = (self.record.times - self.record.times[0]) / (self.record.times[-1] - self.record.times[0])
        return np.asarray(share.reshape(-1, *(1 for _ in self.record.mesh)))

    def constants(self, boundary: Boundary) -> Constants:
        """Return the arrays of the model under a boundary condition."""
        grid = Grid(self.record.mesh, self.record.dx, boundary)
        return field_constants(
            grid, dt=self.record.dt, frames=self.record.frames, q=self.q, substeps=self.found.substeps
        )


def q_direction(fit: Fit) -> list[Array]:
    """Return the derivative by the relative error of q."""
    step = fit.record.dt / fit.found.substeps
    # differences of the step's weights, exact to 1e-8: to trace their contour sums takes 25 s of compilation
    low, high = (etd_weights(fit.grid.symbol, step=step, q=fit.q * (1.0 + h)) for h in (-_SMALL, _SMALL))
    change = Weights(*((b - a) / (2.0 * _SMALL) for a, b in zip(low, high, strict=True)))
    return [_tangent(fit, change, 0.0)]


def advection_directions(fit: Fit) -> list[Array]:
    """Return the derivative by a velocity along each axis: u(x - c t, t) solves the equation with - c . grad u.

    At a no-flux wall across the velocity it is the pattern that drifts in the frame, not a flow through the wall.
    """
    time = fit.elapsed * (fit.record.times[-1] - fit.record.times[0])
    return [-time * _slope(fit.predicted, axis, fit.grid) for axis in range(len(fit.record.mesh))]


def boundary_direction(fit: Fit) -> list[Array]:
    """Return what the other boundary condition predicts from the same initial field, minus the prediction."""
    other = other_boundary(fit.grid.boundary)
    model = FieldModel(fit.family, other, fit.record.frames, fit.found.substeps)
    with double_precision():
        fields = _compiled()[1](model, fit.found.initial, fit.found.coefficients, fit.constants(other))
    return [np.asarray(fields) - fit.predicted]


def tilt_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a constant that is added to the force."""
    still = Weights(*(np.zeros_like(weight) for weight in fit.constants(fit.grid.boundary).weights))
    return [_tangent(fit, still, 1.0)]


def gain_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a, the observation being (1 + a) u."""
    return [fit.predicted]


def drift_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a, the observation being (1 + a t / T) u."""
    return [fit.elapsed * fit.predicted]


def blur_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a, the observation being u + a Laplacian u: a Gaussian blur of the variance 2 a.

    Where the interface is flat and at rest, |grad u|^2 is a function of u, and blur is the same as another law.
    """
    forward, backward = numpy_transforms(fit.record.mesh, fit.grid.boundary)
    return [np.stack([backward(fit.grid.symbol * forward(frame)) for frame in fit.predicted])]


def offset_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a constant that is added to the observation."""
    return [np.ones(fit.record.shape)]


DIRECTIONS: dict[str, Callable[[Fit], list[Array]]] = {
    "q": q_direction,
    "advection": advection_directions,
    "boundary": boundary_direction,
    "tilt": tilt_direction,
    "gain": gain_direction,
    "gain drift": drift_direction,
    "offset": offset_direction,
    "blur": blur_direction,
}


@dataclass(frozen=True)
class _Tilted:
    """A family with one more coefficient: a constant force."""

    family: LinearFamily

    def force(self, coefficients: Any, u: Any) -> Any:
        return self.family.force(coefficients[:-1], u) + coefficients[-1]


def _tangent(fit: Fit, weights: Weights, tilt: float) -> Array:
    """Return the change of the prediction when the step's weights and a constant force change."""
    point = (fit.found.initial, fit.found.coefficients, fit.constants(fit.grid.boundary).weights)
    with double_precision():
        return np.asarray(_compiled()[0](fit.model, *point, weights, tilt))


@lru_cache(maxsize=1)
def _compiled() -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    def tangent(model: FieldModel, initial: Any, theta: Any, weights: Any, change: Any, tilt: Any) -> Any:
        family: Any = _Tilted(model.family)
        pushed = jnp.append(jnp.zeros_like(theta), tilt)

        def predicted(coefficients: Any, weights: Any) -> Any:
            return predict(
                initial, coefficients, weights,
                family=family, boundary=model.boundary, frames=model.frames, substeps=model.substeps,
            )  # fmt: skip

        return jax.jvp(predicted, (jnp.append(theta, 0.0), weights), (pushed, change))[1]

    return jax.jit(tangent, static_argnums=0), jax.jit(lambda model, *rest: model.predict(*rest), static_argnums=0)


def _slope(u: Array, axis: int, grid: Grid) -> Array:
    """Differentiate along a space axis with the modes of the boundary condition."""
    from scipy import fft

    n, length = grid.cells[axis], grid.extent[axis]
    along = [1] * u.ndim
    along[axis + 1] = -1
    if grid.boundary == "periodic":
        waves = 2j * np.pi * np.arange(n // 2 + 1) / length
        if n % 2 == 0:
            waves[-1] = 0.0  # the highest mode has no slope at the points
        return np.asarray(fft.irfft(waves.reshape(along) * fft.rfft(u, axis=axis + 1), n=n, axis=axis + 1))
    cosines = fft.dct(u, axis=axis + 1, norm="ortho") * (-np.pi * np.arange(n) / length).reshape(along)
    sines = np.roll(cosines, -1, axis=axis + 1)  # the constant, now last, is zero
    return np.asarray(fft.idst(sines, axis=axis + 1, norm="ortho"))


def other_boundary(boundary: Boundary) -> Boundary:
    """Return the boundary condition that was not declared."""
    return "neumann" if boundary == "periodic" else "periodic"
