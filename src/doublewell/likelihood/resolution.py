"""Resolution: how far an estimate would move if time and mesh were resolved better. Information: what it will know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics
from doublewell.errors import whole
from doublewell.evidence import system
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.batch import Trajectory, points
from doublewell.likelihood.iterate import compiled
from doublewell.likelihood.model import first_substeps, record_model
from doublewell.record import Record
from doublewell.runtime import double_precision


@dataclass(frozen=True, eq=False)
class Resolution:
    """The shift of the coefficients under twice the substeps and under a finer mesh, and their sizes.

    Sizes are in standard errors of the evidence: |R shift|, R in units of the noise.
    """

    time_shift: Array
    mesh_shift: Array
    time_size: float
    mesh_size: float


def measure_resolution(fits: Sequence[Trajectory]) -> list[Resolution]:
    """Predict records of one batch again with half the step and on a finer mesh; turn the differences into shifts."""
    first = fits[0]
    if any(fit.batch is not first.batch for fit in fits):
        return [measure_resolution([fit])[0] for fit in fits]
    batch, family, substeps, boundary = first.batch, first.family, first.substeps, first.record.boundary
    usual = batch.predict(fits, family, substeps)
    halved = usual - batch.predict(fits, family, 2 * substeps)
    time = _shifts(fits, halved)
    del halved  # fields of a fine mesh come next
    if boundary == "open":  # an upper bound: the stencils differ everywhere but next to the border
        other = batch.predict(fits, family, substeps, order=4)
    else:
        factor = 2 if boundary == "periodic" else 3  # a finer mesh that holds the points of this one
        other = batch.predict(fits, family, substeps, refine=factor * first.view.optics.refine)
    mesh = _shifts(fits, usual - other)
    return [_resolution(*each) for each in zip(fits, time, mesh, strict=True)]


def _resolution(fit: Trajectory, time: Array, mesh: Array) -> Resolution:
    matrix, _ = system(fit.evidence)
    return Resolution(time, mesh, float(np.linalg.norm(matrix @ time)), float(np.linalg.norm(matrix @ mesh)))


def _shifts(fits: Sequence[Trajectory], change: Array) -> list[Array]:
    """Return the change of each estimate when its observations change: (R'R)^-1 C' change."""
    model, constants = fits[0].batch.model(fits[0].family, fits[0].substeps)
    with double_precision():
        fields, slopes = compiled().pull(model, *points(fits), change, constants)
    return [_solve(fit, np.asarray(f), np.asarray(s)) for fit, f, s in zip(fits, fields, slopes, strict=True)]


def _solve(fit: Trajectory, field: Array, slope: Array) -> Array:
    """Return the shift of the coefficients; the joint parameters are eliminated first."""
    gradient = slope + np.tensordot(fit.response, field, axes=field.ndim)
    beside, n = fit.beside, len(fit.beside.names)
    gradient = gradient[n:] + beside.slope.T @ gradient[:n]
    triangle = fit.evidence.blocks[0].triangle[n:-1, n:-1] * fit.noise
    return np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient)))


@dataclass(frozen=True, eq=False)
class Information:
    """R of the projected sensitivities for noise 1, and the coefficients that a fit without noise ends in.

    The estimate from a record with noise s is normal with mean ``best`` and covariance s^2 (R' R)^-1. ``rows`` counts
    the values less those of the initial field. ``solve`` is the worst relative residual of the solves behind R: R is
    too large, by its square, where it is not small.
    """

    family: Family
    triangle: Array
    best: Array
    rows: int
    solve: float


def record_information(
    clean: Record, family: Family, coefficients: Array, *, seen: int | None = None,
    dynamics: Dynamics = ALLEN_CAHN,
) -> Information:  # fmt: skip
    """Linearise the likelihood of a clean record at its law and its first frame.

    `coefficients` are those of the law, or of one close to it in the family: one Gauss-Newton step from there gives
    ``best``. With `seen` only that many first frames count, and one compilation serves every such number.
    """
    seen = clean.frames if seen is None else whole(seen, "seen", least=2, most=clean.frames)
    model, constants = record_model(
        clean, family, first_substeps(clean, coefficients, dynamics=dynamics), dynamics=dynamics
    )
    root = (np.arange(clean.frames) < seen).astype(np.float64).reshape(-1, *(1 for _ in clean.mesh))
    data = clean.slab()
    with double_precision():
        last = compiled().sensitivity(
            model, data[:1], coefficients[None], data[None], constants._replace(root=root)
        )  # a batch of one
        triangle, shift = np.asarray(last.triangle)[0], np.asarray(last.shift)[0]
    signs = np.where(np.diag(triangle) < 0.0, -1.0, 1.0)
    solve = float(np.max(np.asarray(last.residuals)))
    return Information(family, signs[:, None] * triangle, coefficients + shift, (seen - 1) * data[0].size, solve)
