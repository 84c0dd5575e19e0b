"""The small problem min |A g - d|^2 + ridge |g|^2 with g >= lower, by scaled QR/SVD and NNLS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublewell.checks import not_negative
from doublewell.errors import InputError
from doublewell.hints import Array

__all__ = ["RANK_TOLERANCE", "Array", "Solution", "column_scale", "solve_free", "solve_positive"]

RANK_TOLERANCE = 1e-10  # of the scaled singular values, as in the paper


@dataclass(frozen=True)
class Solution:
    """A minimiser and how far it is from the conditions of optimality.

    ``active`` marks coefficients at their lower bound, ``contacts`` are the |u| where the bracket is at its own.
    ``kkt`` is the largest violation of stationarity: the gradient
    of a free coefficient, or one that asks an active coefficient to rise, relative to the size of the gradient's
    terms. Feasibility holds by construction. ``residual`` is |A g - d|.
    """

    coefficients: Array
    active: NDArray[np.bool_]
    kkt: float
    residual: float
    contacts: tuple[float, ...] = ()


def column_scale(matrix: Array) -> tuple[Array, Array, Array]:
    """Return the column norms, the matrix with unit columns and its singular values, largest first."""
    norms = np.linalg.norm(matrix, axis=0)
    if not np.all(np.isfinite(norms)):
        raise InputError(
            "the evidence has values that are not finite: expected finite moments or sensitivities; the model's field "
            "ran away from the record's, so look at the record's values, dt, dx and q with `doublewell inspect`"
        )
    if not np.all(norms > 0):
        empty = ", ".join(str(j) for j in np.flatnonzero(norms == 0))
        raise InputError(
            f"the record says nothing about coefficient {empty}: expected phase values between the pure phases; "
            "record frames that contain an interface, or lower the degree"
        )
    scaled = matrix / norms
    return norms, scaled, np.linalg.svd(scaled, compute_uv=False)


def solve_free(matrix: Array, target: Array, ridge: float = 0.0) -> Solution:
    """Minimise without bounds by the SVD of the column-scaled matrix; a deficient rank raises.

    The ridge enters as extra rows sqrt(ridge) I, never through normal equations.
    """
    rows, right = _augment(matrix, target, ridge)
    norms, scaled, values = column_scale(rows)
    check_rank(values)
    left, singular, turn = np.linalg.svd(scaled, full_matrices=False)
    g = (turn.T @ ((left.T @ right) / singular)) / norms
    return _solution(matrix, target, ridge, g, np.full(g.shape, -np.inf))


def solve_positive(
    matrix: Array, target: Array, bound: float, ridge: float = 0.0, *, free: Solution | None = None
) -> Solution:
    """Minimise with every coefficient at or above `bound` by active-set NNLS on the scaled columns.

    `free` is the unbounded minimiser where it is known already. When it is feasible it is returned unchanged.
    """
    free = solve_free(matrix, target, ridge) if free is None else free
    if np.all(free.coefficients >= bound):
        return free
    from scipy.optimize import nnls

    rows, right = _augment(matrix, target, ridge)
    norms, scaled, _ = column_scale(rows)
    lift, _ = nnls(scaled, right - rows @ np.full(rows.shape[1], bound))
    return _solution(matrix, target, ridge, bound + lift / norms, np.full(lift.shape, bound))


def check_rank(values: Array) -> None:
    """Refuse a matrix whose scaled singular values span more than RANK_TOLERANCE."""
    ratio = float(values[-1] / values[0])
    if ratio <= RANK_TOLERANCE:
        raise InputError(
            f"the record does not determine {values.size} coefficients: scaled singular-value ratio {ratio:.1e}, "
            f"expected above {RANK_TOLERANCE:.0e}; lower the degree or record a wider range of phase values"
        )


def _augment(matrix: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    if not_negative(ridge, "ridge") == 0.0:
        return matrix, target
    size = matrix.shape[1]
    return np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]), np.concatenate([target, np.zeros(size)])


def _solution(matrix: Array, target: Array, ridge: float, g: Array, bound: Array) -> Solution:
    active = g <= bound
    misfit = matrix @ g - target
    gradient = matrix.T @ misfit + ridge * g
    size = np.linalg.norm(matrix, axis=0) * np.linalg.norm(target)
    slack = np.where(active, np.maximum(-gradient, 0.0), np.abs(gradient))
    relative = np.divide(slack, size, out=np.zeros_like(slack), where=size > 0)
    return Solution(g, active, float(np.max(relative)), float(np.linalg.norm(misfit)))
