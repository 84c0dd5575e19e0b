"""Resolution: how far the estimate would move if time and mesh were resolved better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from doublewell.dynamics import Grid, double_precision
from doublewell.evidence.likelihood.compiled import compiled
from doublewell.evidence.likelihood.field_model import Constants, FieldModel, field_constants
from doublewell.evidence.likelihood.trajectory import Trajectory, check_record, record_model
from doublewell.hints import Array
from doublewell.law import LinearFamily
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


def measure_resolution(records: Sequence[Record], found: Sequence[Trajectory]) -> list[Resolution]:
    """Predict records of one batch again with half the step and on a finer mesh; turn the differences into shifts."""
    record, first = records[0], found[0]
    grid, substeps, family = check_record(record), first.substeps, first.evidence.family
    initial, theta = np.stack([f.initial for f in found]), np.stack([f.coefficients for f in found])
    coarse = _predict(record, grid, family, substeps, initial, theta)
    halved = coarse - _predict(record, grid, family, 2 * substeps, initial, theta)
    shifts = [_shifts(record, found, halved)]
    del halved  # fields of a fine mesh come next
    factor = 2 if grid.boundary == "periodic" else 3  # a finer mesh that holds the points of this one
    fine = Grid([factor * n for n in grid.cells], [h / factor for h in grid.dx], grid.boundary)
    finer = np.stack([refine_field(field, grid, factor) for field in initial])
    pick = tuple(slice(0 if factor == 2 else 1, None, factor) for _ in grid.cells)
    for k, fields in enumerate(_frames(record, fine, family, substeps, finer, theta), start=1):
        coarse[:, k] -= fields[(slice(None), *pick)]
    coarse[:, 0] = 0.0  # the finer field holds the points of this one
    shifts.append(_shifts(record, found, coarse))
    return [_resolution(one, *pair) for one, pair in zip(found, zip(*shifts, strict=True), strict=True)]


def _resolution(found: Trajectory, time: Array, mesh: Array) -> Resolution:
    triangle = found.evidence.blocks[0].triangle[: time.size, : time.size]
    return Resolution(time, mesh, float(np.linalg.norm(triangle @ time)), float(np.linalg.norm(triangle @ mesh)))


def _shifts(record: Record, found: Sequence[Trajectory], change: Array) -> list[Array]:
    """Return the change of each estimate when its observations change: (R'R)^-1 C' change."""
    model, constants = record_model(record, found[0].evidence.family, found[0].substeps)
    initial, theta = np.stack([f.initial for f in found]), np.stack([f.coefficients for f in found])
    with double_precision():
        fields, slopes = compiled().pull(model, initial, theta, change, constants)
    return [
        _solve(f, np.asarray(field), np.asarray(slope)) for f, field, slope in zip(found, fields, slopes, strict=True)
    ]


def _solve(found: Trajectory, field: Array, slope: Array) -> Array:
    gradient = slope + np.tensordot(found.response, field, axes=field.ndim)
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


def _predict(record: Record, grid: Grid, family: LinearFamily, substeps: int, initial: Array, theta: Array) -> Array:
    model, constants = _pieces(record, grid, family, substeps, record.frames)
    with double_precision():
        return np.array(compiled().predict(model, initial, theta, constants))


def _frames(
    record: Record, grid: Grid, family: LinearFamily, substeps: int, fields: Array, theta: Array
) -> Iterator[Array]:
    """Yield the frames after the first, one at a time: a fine movie need not fit into memory."""
    model, constants = _pieces(record, grid, family, substeps, 2)
    for _ in range(record.frames - 1):
        with double_precision():
            fields = np.asarray(compiled().predict(model, fields, theta, constants))[:, 1]
        yield fields


def _pieces(
    record: Record, grid: Grid, family: LinearFamily, substeps: int, frames: int
) -> tuple[FieldModel, Constants]:
    constants = field_constants(grid, dt=record.dt, frames=frames, q=float(record.q or 0.0), substeps=substeps)
    return FieldModel(family, grid.boundary, frames, substeps), constants
