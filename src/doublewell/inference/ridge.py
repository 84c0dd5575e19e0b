"""Ridge: the paper's penalty and its choice on held-out frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.inference.admissible import solve_admissible
from doublewell.inference.constraint import Constraint
from doublewell.inference.least_squares import Solution, solve_free, solve_positive
from doublewell.inference.wells import solve_wells
from doublewell.law import Bernstein, LinearFamily

__all__ = ["ALPHAS", "RidgeChoice", "choose_ridge", "penalty", "solve"]

ALPHAS = (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0)
BOUND = 1e-10  # lower bound of the coefficients, relative to the largest unbounded one


@dataclass(frozen=True)
class RidgeChoice:
    """The chosen alpha, the penalty it stands for, and the held-out residual of every candidate."""

    alpha: float
    penalty: float
    path: tuple[tuple[float, float], ...]


def penalty(matrix: Array, alpha: float) -> float:
    """Return lambda = alpha |A|_F^2 / p, alpha times the mean squared column norm."""
    return alpha * float(np.sum(matrix**2)) / int(matrix.shape[1])


def solve(
    matrix: Array,
    target: Array,
    *,
    constraint: Constraint,
    ridge: float = 0.0,
    unbounded: Solution | None = None,
    family: LinearFamily | None = None,
) -> tuple[Solution, float]:
    """Solve with a constraint; return the solution and the lower bound l of its coefficients, or of its bracket.

    The bound of positive coefficients is the paper's, l = 1e-10 max|g_unbounded|. `unbounded` is the minimiser without
    bound and ridge, where it is known already. `family` is that of symmetric wells by default; in one of unlike wells
    any constraint but "none" is the exact class.
    """
    free = solve_free(matrix, target, ridge) if ridge or unbounded is None else unbounded
    if constraint == "none":
        return free, -np.inf
    if not isinstance(family, Bernstein | None):
        return solve_wells(matrix, target, family, ridge, free=free), -np.inf
    if constraint == "admissible":
        return solve_admissible(matrix, target, free, ridge)
    plain = unbounded or (solve_free(matrix, target) if ridge else free)
    bound = BOUND * float(np.max(np.abs(plain.coefficients)))
    return solve_positive(matrix, target, bound, ridge, free=free), bound


def choose_ridge(training: Evidence, validation: Evidence, q: float, *, constraint: Constraint) -> RidgeChoice:
    """Choose alpha by the smallest residual on the validation rows; ties go to the smaller alpha."""
    matrix, target = system(training, q)
    held_matrix, held_target = system(validation, q)
    path = []
    for alpha in ALPHAS:
        fit, _ = solve(matrix, target, constraint=constraint, ridge=penalty(matrix, alpha), family=training.family)
        path.append((alpha, float(np.linalg.norm(held_matrix @ fit.coefficients - held_target))))
    alpha = min(path, key=lambda item: (item[1], item[0]))[0]
    return RidgeChoice(alpha, penalty(matrix, alpha), tuple(path))
