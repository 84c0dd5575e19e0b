"""Resolution: how far the estimate would move if time and mesh were resolved better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, double_precision
from doublewell.evidence.likelihood.field_model import FieldModel, field_constants
from doublewell.evidence.likelihood.trajectory import Trajectory, check_record, compiled
from doublewell.hints import Array
from doublewell.record import Record

__all__ = ["Resolution", "measure_resolution", "refine_field"]


@dataclass(frozen=True, eq=False)
class Resolution:
    """The shift of the coefficients under twice the substeps and under a finer mesh, and their sizes.

    Sizes are in standard errors of the evidence: |R shift|, R in units of the noise.
    """

    time_shift: Array
    mesh_shift: Array
    time_size: float
    mesh_size: float


def measure_resolution(record: Record, found: Trajectory) -> Resolution:
    """Predict the record again with half the step and on a finer mesh, and turn the differences into shifts."""
    grid = check_record(record)
    coarse = _predict(record, grid, found, found.initial, found.substeps)
    halved = _predict(record, grid, found, found.initial, 2 * found.substeps)
    factor = 2 if grid.boundary == "periodic" else 3  # a finer mesh that holds the points of this one
    fine = Grid([factor * n for n in grid.cells], [h / factor for h in grid.dx], grid.boundary)
    pick = (slice(None), *(slice(0 if factor == 2 else 1, None, factor) for _ in grid.cells))
    refined = _predict(record, fine, found, refine_field(found.initial, grid, factor), found.substeps)[pick]
    shifts = [shift_of(record, found, coarse - other) for other in (halved, refined)]
    sizes = [float(np.linalg.norm(found.evidence.blocks[0].triangle[: s.size, : s.size] @ s)) for s in shifts]
    return Resolution(shifts[0], shifts[1], sizes[0], sizes[1])


def shift_of(record: Record, found: Trajectory, change: Array) -> Array:
    """Return the change of the estimate when the observations change by `change`: (R'R)^-1 C' change."""
    grid = check_record(record)
    model, constants = _pieces(record, grid, found, found.substeps)
    with double_precision():
        field, theta = compiled().pull(model, found.initial, found.coefficients, change, constants)
    gradient = np.asarray(theta) + np.tensordot(found.response, np.asarray(field), axes=found.initial.ndim)
    triangle = found.evidence.blocks[0].triangle[: gradient.size, : gradient.size] * found.noise
    return np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient)))


def refine_field(field: Array, grid: Grid, factor: int) -> Array:
    """Interpolate a field by its modes to a mesh `factor` times finer."""
    from scipy import fft

    wide = tuple((0, (factor - 1) * n) for n in field.shape)
    if grid.boundary == "neumann":
        modes = np.pad(fft.dctn(field, norm="ortho"), wide)
        return np.asarray(fft.idctn(modes, norm="ortho") * np.sqrt(float(factor) ** field.ndim))
    for axis, n in enumerate(field.shape):
        modes = fft.rfft(field, axis=axis)
        fine = fft.irfft(modes, n=factor * n, axis=axis) * factor
        if n % 2 == 0:  # irfft counts the highest mode of an even mesh twice once it is no longer the last
            top = np.take(modes, [n // 2], axis=axis).real / n
            points = np.arange(factor * n) / factor
            shape = [-1 if a == axis else 1 for a in range(field.ndim)]
            fine = fine - top * np.cos(np.pi * points).reshape(shape)
        field = fine
    return np.asarray(field)


def _predict(record: Record, grid: Grid, found: Trajectory, initial: Array, substeps: int) -> Array:
    model, constants = _pieces(record, grid, found, substeps)
    with double_precision():
        return np.asarray(compiled().predict(model, initial, found.coefficients, constants))


def _pieces(record: Record, grid: Grid, found: Trajectory, substeps: int) -> tuple[FieldModel, Any]:
    q = float(record.q or 0.0)
    constants = field_constants(grid, dt=record.dt, frames=record.frames, q=q, substeps=substeps)
    return FieldModel(found.evidence.family, grid.boundary, record.frames, substeps), constants
