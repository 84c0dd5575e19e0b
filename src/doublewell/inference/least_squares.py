"""Least squares: min |A g - d|^2 + ridge |g|^2 in a class of laws, by scaled QR/SVD, and the choice of the ridge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, not_negative
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.law import Constraint, Family

RANK_TOLERANCE = 1e-10  # of the scaled singular values, as in the paper
ALPHAS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
_BOUND = 1e-10  # lower bound of the coefficients, relative to the largest unbounded one, as in the paper


@dataclass(frozen=True)
class Solution:
    """A minimiser and how far it is from the conditions of optimality.

    ``active`` marks coefficients at their lower bound, ``contacts`` are the |u| where the bracket is at its own.
    ``kkt`` is the largest violation of stationarity relative to the size of the gradient's terms: the gradient of a
    free coefficient, or one that asks an active coefficient to rise. Feasibility holds by construction. ``residual``
    is |A g - d|.
    """

    coefficients: Array
    active: NDArray[np.bool_]
    kkt: float
    residual: float
    contacts: tuple[float, ...] = ()


@dataclass(frozen=True)
class RidgeChoice:
    """The chosen alpha, the penalty it stands for, and the held-out residual of every candidate."""

    alpha: float
    penalty: float
    path: tuple[tuple[float, float], ...]


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


def check_rank(values: Array) -> None:
    """Refuse a matrix whose scaled singular values span more than RANK_TOLERANCE."""
    ratio = float(values[-1] / values[0])
    if ratio <= RANK_TOLERANCE:
        raise InputError(
            f"the record does not determine {values.size} coefficients: scaled singular-value ratio {ratio:.1e}, "
            f"expected above {RANK_TOLERANCE:.0e}; lower the degree or record a wider range of phase values"
        )


def solve(
    matrix: Array,
    target: Array,
    family: Family,
    *,
    constraint: Constraint,
    ridge: float = 0.0,
    unbounded: Solution | None = None,
) -> tuple[Solution, float]:
    """Solve with a constraint; return the solution and the lower bound l of its coefficients, or of its bracket.

    The bound of positive coefficients is the paper's, l = 1e-10 max|g_unbounded|. `unbounded` is the minimiser without
    bound and ridge, where it is known already.
    """
    free = solve_free(matrix, target, ridge) if ridge or unbounded is None else unbounded
    if constraint == "none":
        return free, -np.inf
    if constraint == "bernstein" and family.cone:
        plain = unbounded or (solve_free(matrix, target) if ridge else free)
        bound = _BOUND * float(np.max(np.abs(plain.coefficients)))
        return solve_positive(matrix, target, bound, ridge, free=free), bound
    size = matrix.shape[1]
    basis, root = np.linalg.qr(np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]))
    right = basis.T @ np.concatenate([target, np.zeros(size)])
    held = family.hold(constraint, root[None], right[None], free.coefficients[None])
    bound = float(held.bounds[0])
    return (_judged(matrix, target, ridge, held.coefficients[0], family, bound) if held.moved[0] else free), bound


def _judged(matrix: Array, target: Array, ridge: float, g: Array, family: Family, bound: float) -> Solution:
    """Return coefficients as a solution of their class.

    `kkt` is how far the gradient is from the dual cone and from right angles to g - bound.
    """
    misfit = matrix @ g - target
    gradient = matrix.T @ misfit + ridge * g
    size = float(np.linalg.norm(matrix)) * float(np.linalg.norm(target))
    along = abs(float(gradient @ (g - max(bound, 0.0)))) / float(target @ target)
    kkt = max(along, family.dual_violation(gradient) / size)
    contacts = family.contacts(g, bound)
    return Solution(g, np.zeros(g.size, dtype=bool), kkt, float(np.linalg.norm(misfit)), contacts)


def solve_free(matrix: Array, target: Array, ridge: float = 0.0) -> Solution:
    """Minimise without bounds by the SVD of the column-scaled matrix; a deficient rank raises.

    The ridge enters as extra rows sqrt(ridge) I, never through normal equations.
    """
    rows, right = _augment(matrix, target, ridge)
    norms, scaled, values = column_scale(rows)
    check_rank(values)
    left, singular, turn = np.linalg.svd(scaled, full_matrices=False)
    g = (turn.T @ ((left.T @ right) / singular)) / norms
    return _solution(matrix, target, ridge, g, -np.inf)


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
    return _solution(matrix, target, ridge, bound + lift / norms, bound)


def _augment(matrix: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    if not_negative(ridge, "ridge") == 0.0:
        return matrix, target
    size = matrix.shape[1]
    return np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]), np.concatenate([target, np.zeros(size)])


def _solution(matrix: Array, target: Array, ridge: float, g: Array, bound: float) -> Solution:
    active = g <= bound
    misfit = matrix @ g - target
    gradient = matrix.T @ misfit + ridge * g
    size = np.linalg.norm(matrix, axis=0) * np.linalg.norm(target)
    slack = np.where(active, np.maximum(-gradient, 0.0), np.abs(gradient))
    relative = np.divide(slack, size, out=np.zeros_like(slack), where=size > 0)
    return Solution(g, active, float(np.max(relative)), float(np.linalg.norm(misfit)))


def penalty(matrix: Array, alpha: float) -> float:
    """Return lambda = alpha |A|_F^2 / p, alpha times the mean squared column norm."""
    return alpha * float(np.sum(matrix**2)) / int(matrix.shape[1])


def choose_ridge(training: Evidence, validation: Evidence, q: float, *, constraint: Constraint) -> RidgeChoice:
    """Choose alpha by the smallest residual on the validation rows; ties go to the smaller alpha."""
    matrix, target = system(training, q)
    held_matrix, held_target = system(validation, q)
    path = []
    for alpha in ALPHAS:
        fit, _ = solve(matrix, target, training.family, constraint=constraint, ridge=penalty(matrix, alpha))
        path.append((alpha, float(np.linalg.norm(held_matrix @ fit.coefficients - held_target))))
    alpha = min(path, key=lambda item: (item[1], item[0]))[0]
    return RidgeChoice(alpha, penalty(matrix, alpha), tuple(path))
