"""Project: what a change of a movie does to a fit, and what of it no fit can imitate, at the basis of C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import joint_given_law
from doublewell.hints import Array, Bools, Floats
from doublewell.likelihood.batch import Trajectory, points
from doublewell.likelihood.programs import compiled

LONG = 0.1  # standard errors by which half the time step may move the estimate


class Projector:
    """Take out of fields what the fits of a batch can imitate, at the basis of C that the fits know.

    Every array has the records of the batch along its first axis. Cells left `out` weigh nothing.
    """

    def __init__(self, fits: Sequence[Trajectory], out: Bools | None = None) -> None:
        batch, self.out = fits[0].batch, out
        self.model, self.constants = batch.model(fits[0].family, fits[0].inner)
        self.point = points(fits)
        if out is None:
            self.basis = batch.basis(fits)
            return
        self.constants = self.constants._replace(root=np.where(out, 0.0, self.constants.root))
        # no longer orthogonal to J_u, but together they span the same
        responses = np.stack([fit.response for fit in fits])
        self.basis = compiled().projected_basis(self.model, *self.point, responses, self.constants)

    def whitened(self, fields: Array) -> Array:
        """Weight fields, and take the noise's correlations out of them."""
        return np.asarray(compiled().whiten(self.model, fields, self.constants))

    @cached_property
    def _rows(self) -> Floats:
        return np.asarray(self.basis.rows, dtype=np.float32)[:, : self.basis.triangle.shape[1]]

    def along_theta(self, fields: Floats) -> Floats:
        """Return the components of whitened fields along the basis of C, in single precision."""
        return np.stack([rows @ field.ravel() for field, rows in zip(fields, self._rows, strict=True)])

    def project(self, fields: Array, *, white: bool = False) -> tuple[Array, Array]:
        """Return whitened fields without what the fits can imitate, and how theta moves for one unit of each."""
        rests, shifts = self.project_all([fields if white else self.whitened(fields)])
        return rests[0], shifts[0]

    def project_all(self, fields: Sequence[Floats]) -> tuple[Array, Array]:
        """Return the same of several whitened fields, which come first in the answers."""
        each = self.model, *self.point, self.basis, np.stack(fields, 1), self.constants
        # the fit followed cells that are out: much of the residual has to go, little may be left
        rests, shifts, _ = compiled().project(*each, crossed=self.out is not None)
        return np.moveaxis(np.asarray(rests, dtype=np.float64), 1, 0), np.moveaxis(shifts, 1, 0)


@dataclass(frozen=True, eq=False)
class Resolution:
    """The shift of the coefficients under twice the substeps and under a finer mesh, and their sizes.

    Sizes are in standard errors. ``order`` is that by which the error falls with the step, four at best, measured where
    steps are too long.
    """

    time_shift: Array
    mesh_shift: Array
    time_size: float
    mesh_size: float
    order: float = 4.0


@np.errstate(over="ignore", invalid="ignore")  # other steps may run away: then the shift is infinite
def measure_resolution(fits: Sequence[Trajectory]) -> list[Resolution]:
    """Predict records of one batch again with half the step and on a finer mesh; turn the differences into shifts."""
    first, batch = fits[0], fits[0].batch
    if any(fit.batch is not batch for fit in fits):
        return [measure_resolution([fit])[0] for fit in fits]
    if not all(np.all(np.isfinite(block.triangle)) for fit in fits for block in fit.evidence.blocks):
        raise InputError(
            "the field of the model ran away from that of the record, so its fit has no errors: expected a movie that "
            "obeys the equation; look at dt, dx, q and the values with `doublewell inspect`, or give a lower degree"
        )
    usual = batch.predicted(fits)
    halves = batch.predict(fits, substeps=2 * first.substeps)
    time, sizes = _shifts(fits, usual - halves), [0.0] * len(fits)
    if first.change is None and max(map(Trajectory.size, fits, time)) > LONG:
        quarters = _shifts(fits, halves - batch.predict(fits, substeps=4 * first.substeps))
        sizes = [*map(Trajectory.size, fits, quarters)]
    mesh = _shifts(fits, usual - batch.predict(fits, refine=batch.view.finer(first.record.boundary).refine))
    measured = []
    for fit, halved, finer, quartered in zip(fits, time, mesh, sizes, strict=True):
        size = fit.size(halved)
        order = float(np.clip(np.log2(size / quartered), 1.0, 4.0)) if 0.0 < quartered < np.inf else 4.0
        measured.append(Resolution(halved, finer, size, fit.size(finer), order))
    return measured


def _shifts(fits: Sequence[Trajectory], change: Array) -> list[Array]:
    """Return the change of each estimate when its observations change: (R'R)^-1 C' change.

    The joint parameters are eliminated first.
    """
    batch, shifts = fits[0].batch, []
    model, constants = batch.model(fits[0].family, fits[0].inner)
    constants, n = batch.constants_at(fits, constants), len(batch.view.free)
    gradients = np.asarray(compiled().gradient(model, batch.basis(fits), change, constants))
    for fit, own in zip(fits, gradients, strict=True):
        along, m = joint_given_law(fit.evidence).slope, len(fit.evidence.joint)
        gradient = own[n:] + along[m - n :].T @ own[:n]
        triangle = fit.evidence.blocks[0].triangle[m:-1, m:-1] * fit.noise
        shifts.append(np.asarray(np.linalg.solve(triangle, np.linalg.solve(triangle.T, gradient)), dtype=np.float64))
    return shifts
