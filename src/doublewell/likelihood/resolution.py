"""Resolution: how far the estimate would move if time and mesh were resolved better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doublewell.hints import Array
from doublewell.jax_runtime import double_precision
from doublewell.likelihood.compiled import compiled
from doublewell.likelihood.setting import observed, one_mask, record_model
from doublewell.likelihood.trajectory import Trajectory
from doublewell.record import Record

__all__ = ["Resolution", "measure_resolution"]


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
    if not one_mask(records):
        return [measure_resolution([r], [f])[0] for r, f in zip(records, found, strict=True)]
    usual = _predict(records, found, substeps=first.substeps)
    halved = usual - _predict(records, found, substeps=2 * first.substeps)
    shifts = [_shifts(record, found, halved)]
    del halved  # fields of a fine mesh come next
    if record.boundary == "open":  # an upper bound: the stencils differ everywhere but next to the border
        other = _predict(records, found, substeps=first.substeps, order=4)
    else:
        factor = 2 if record.boundary == "periodic" else 3  # a finer mesh that holds the points of this one
        other = _predict(records, found, substeps=first.substeps, refine=factor * first.view.optics.refine)
    shifts.append(_shifts(record, found, usual - other))
    return [_resolution(one, *pair) for one, pair in zip(found, zip(*shifts, strict=True), strict=True)]


def _resolution(found: Trajectory, time: Array, mesh: Array) -> Resolution:
    triangle = found.evidence.blocks[0].triangle[: time.size, : time.size]
    return Resolution(time, mesh, float(np.linalg.norm(triangle @ time)), float(np.linalg.norm(triangle @ mesh)))


def _shifts(record: Record, found: Sequence[Trajectory], change: Array) -> list[Array]:
    """Return the change of each estimate when its observations change: (R'R)^-1 C' change."""
    view = found[0].view
    model, constants = record_model(record, found[0].evidence.family, found[0].substeps, view)
    constants = constants._replace(root=observed(record, view).root)
    with double_precision():
        fields, slopes = compiled().pull(model, *_points(found), change, constants)
    return [
        _solve(f, np.asarray(field), np.asarray(slope)) for f, field, slope in zip(found, fields, slopes, strict=True)
    ]


def _points(found: Sequence[Trajectory]) -> tuple[Array, Array]:
    return np.stack([f.nuisance for f in found]), np.stack([f.theta for f in found])


def _solve(found: Trajectory, field: Array, slope: Array) -> Array:
    """Return the shift of the coefficients; what is beside them is eliminated first."""
    gradient = slope + np.tensordot(found.response, field, axes=field.ndim)
    beside, n = found.beside, len(found.beside.names)
    gradient = gradient[n:] + beside.slope.T @ gradient[:n]
    triangle = found.evidence.blocks[0].triangle[: gradient.size, : gradient.size] * found.noise
    return np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient)))


def _predict(
    records: Sequence[Record], found: Sequence[Trajectory], *, substeps: int, refine: int | None = None, order: int = 8
) -> Array:
    family, view = found[0].evidence.family, found[0].view
    model, constants = record_model(records[0], family, substeps, view, refine=refine, order=order)
    with double_precision():
        return np.array(compiled().predict(model, *_points(found), constants))
