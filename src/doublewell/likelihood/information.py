"""Information: what a record will say about the coefficients, known before it is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.checks import whole
from doublewell.hints import Array
from doublewell.jax_runtime import double_precision
from doublewell.law import LinearFamily
from doublewell.likelihood.compiled import compiled
from doublewell.likelihood.setting import record_model
from doublewell.likelihood.trajectory import first_substeps
from doublewell.record import Record

__all__ = ["Information", "record_information"]


@dataclass(frozen=True, eq=False)
class Information:
    """R of the projected sensitivities for noise 1, and the coefficients that a reading without noise ends in.

    The estimate from a record with noise s is normal with mean ``best`` and covariance s^2 (R' R)^-1. ``rows`` counts
    the values less those of the initial field. ``solve`` is the worst relative residual of the solves behind R: R is
    too large, by its square, where it is not small.
    """

    family: LinearFamily
    triangle: Array
    best: Array
    rows: int
    solve: float


def record_information(
    clean: Record, family: LinearFamily, coefficients: Array, *, seen: int | None = None
) -> Information:
    """Linearise the likelihood of a clean record at its law and its first frame.

    `coefficients` are those of the law, or of one close to it in the family: one Gauss-Newton step from there gives
    ``best``. With `seen` only that many first frames count, and one compilation serves every such number.
    """
    seen = clean.frames if seen is None else whole(seen, "seen", least=2, most=clean.frames)
    model, constants = record_model(clean, family, first_substeps(clean, coefficients))
    root = (np.arange(clean.frames) < seen).astype(np.float64).reshape(-1, *(1 for _ in clean.mesh))
    data = clean.slab()
    with double_precision():
        found = compiled().sensitivity(
            model, data[:1], coefficients[None], data[None], constants._replace(root=root)
        )  # a batch of one
        triangle, shift = np.asarray(found.triangle)[0], np.asarray(found.shift)[0]
    signs = np.where(np.diag(triangle) < 0.0, -1.0, 1.0)
    solve = float(np.max(np.asarray(found.residuals)))
    return Information(family, signs[:, None] * triangle, coefficients + shift, (seen - 1) * data[0].size, solve)
