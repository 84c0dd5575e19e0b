"""Alternatives: what the model may lack. Derivatives of the prediction by parameters that it does not have.

A direction is a function of a Fit that returns fields of the record's shape, one for each missing parameter. The other
boundary and a tilted force are models of their own, which the fit's batch builds once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, numpy_transforms
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood import RecordModel, Trajectory
from doublewell.likelihood.iterate import compiled
from doublewell.likelihood.model import Constants
from doublewell.observation.optics import mode_grid
from doublewell.record import Boundary, Record
from doublewell.runtime import double_precision

AXES = ("z", "y", "x")
_SMALL = 1e-5  # relative difference of q, and of the force


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit, and what the directions are made of."""

    found: Trajectory

    @property
    def record(self) -> Record:
        """The record that was fitted."""
        return self.found.record

    @cached_property
    def grid(self) -> Grid:
        """The mesh with the modes of its boundary."""
        return mode_grid(self.record)

    @property
    def window(self) -> bool:
        """Whether the record is cut out of something larger."""
        return self.record.boundary == "open"

    @cached_property
    def predicted(self) -> Array:
        """The fitted fields as they are observed, u[t, (z, y,) x]."""
        return self.run(*self.model())

    def model(self, family: Any = None, **variant: Any) -> tuple[RecordModel, Constants]:
        """Return the model that was fitted, or a variant of it, with its constants."""
        return self.found.batch.model(family or self.family, self.found.substeps, **variant)

    def run(self, model: Any, constants: Constants, theta: Array | None = None) -> Array:
        """Return what a model predicts from the fitted nuisance."""
        theta = self.found.theta if theta is None else theta
        with double_precision():
            fields = compiled().predict(model, self.found.nuisance[None], theta[None], constants)
            return np.asarray(fields[0])

    @property
    def family(self) -> Family:
        """The family of the evidence."""
        return self.found.evidence.family

    @property
    def elapsed(self) -> Array:
        """Time as a fraction of the record, shaped for broadcasting."""
        fraction = (self.record.times - self.record.times[0]) / (self.record.times[-1] - self.record.times[0])
        return np.asarray(fraction.reshape(-1, *(1 for _ in self.record.mesh)))


def q_direction(fit: Fit) -> list[Array]:
    """Return the derivative by the relative error of q; empty where q is estimated."""
    if fit.found.view.q_free:
        return []
    batch, substeps = fit.found.batch, fit.found.substeps
    low, high = (fit.run(*batch.model_at(fit.family, substeps, factor)) for factor in (1.0 - _SMALL, 1.0 + _SMALL))
    return [(high - low) / (2.0 * _SMALL)]


def advection_directions(fit: Fit) -> list[Array]:
    """Return the derivative by a velocity along each axis: u(x - c t, t) solves the equation with - c . grad u.

    At a no-flux wall across the velocity it is the pattern that drifts in the frame, not a flow through the wall.
    """
    time = fit.elapsed * (fit.record.times[-1] - fit.record.times[0])
    slopes = (_window_slope(fit.predicted, axis, fit.grid) if fit.window else _slope(fit.predicted, axis, fit.grid)
              for axis in range(len(fit.record.mesh)))  # fmt: skip
    return [-time * slope for slope in slopes]


def boundary_direction(fit: Fit) -> list[Array]:
    """Return what the other boundary condition predicts from the same initial field, minus the prediction.

    Empty for a window, where nothing is assumed.
    """
    if fit.window:
        return []
    return [fit.run(*fit.model(boundary=other_boundary(fit.grid.boundary))) - fit.predicted]


def tilt_direction(fit: Fit) -> list[Array]:
    """Return the derivative by a constant that is added to the force; empty where a constant has no effect."""
    if fit.found.batch.dynamics.gauge == "constant":
        return []
    setting = fit.model(_Tilted(fit.family))
    size = _SMALL * float(np.max(np.abs(fit.found.coefficients)))
    low, high = (fit.run(*setting, np.append(fit.found.theta, tilt)) for tilt in (-size, size))
    return [(high - low) / (2.0 * size)]


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
    if fit.found.view.optics.blur == "estimated":
        return []
    if fit.window:
        axes = range(len(fit.record.mesh))
        twice = [_window_slope(_window_slope(fit.predicted, axis, fit.grid), axis, fit.grid) for axis in axes]
        return [np.asarray(sum(twice))]
    forward, backward = numpy_transforms(fit.record.mesh, fit.grid.boundary)
    return [np.stack([backward(fit.grid.laplacian * forward(frame)) for frame in fit.predicted])]


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

    family: Family

    def force(self, coefficients: Any, u: Any) -> Any:
        return self.family.force(coefficients[:-1], u) + coefficients[-1]


def _window_slope(u: Array, axis: int, grid: Grid) -> Array:
    """Differentiate along a space axis where nothing is known beyond the border."""
    return np.asarray(np.gradient(u, grid.dx[axis], axis=axis + 1, edge_order=2))


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
