"""Estimate: from evidence to the coefficients of one degree, with the numbers that tell how far to trust them.

The small problem is min |A g - d|^2 + ridge |g|^2 in a class of laws, by scaled QR and SVD, never normal equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, not_negative
from doublewell.evidence import Evidence, system
from doublewell.hints import Array
from doublewell.law import Bernstein, Constraint, Family, Law, check_constraint
from doublewell.law.squares import dual_violation

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


@dataclass(frozen=True)
class SupportFit:
    """The fit of one support alone; ``coefficients`` is None where it cannot stand alone."""

    support: str
    rows: int
    coefficients: Array | None
    status: str


@dataclass(frozen=True)
class Estimate:
    """The coefficients of the effective force and the numbers behind them.

    ``condition`` is of the matrix as assembled, ``scaled_condition`` with unit columns (the paper's). ``unbounded``
    are the coefficients without bound and ridge. ``bound`` is the lower bound of the coefficients ("bernstein") or of
    the bracket ("admissible"), -inf when there is none.
    """

    family: Family
    solution: Solution
    unbounded: Array
    bound: float
    constraint: Constraint
    ridge: RidgeChoice | None
    condition: float
    scaled_condition: float
    target_size: float
    rows: int
    supports: tuple[SupportFit, ...]

    @property
    def coefficients(self) -> Array:
        """The estimated coefficients."""
        return self.solution.coefficients

    @property
    def law(self) -> Law:
        """The estimated effective force G as a law."""
        return Law(self.family, self.coefficients)

    @property
    def relative_residual(self) -> float:
        """|A g - d| / |d|, zero when d is."""
        return self.solution.residual / self.target_size if self.target_size else 0.0

    @property
    def support_spread(self) -> float:
        """The largest difference between the force of one support alone and the estimate, relative, in L2."""
        u = np.linspace(-1.0, 1.0, 201)
        features = self.family.features(u)
        whole = self.coefficients @ features
        alone = [fit.coefficients for fit in self.supports if fit.coefficients is not None]
        gaps = [np.linalg.norm((g - self.coefficients) @ features) for g in alone]
        size = np.linalg.norm(whole)
        return float(max(gaps, default=0.0) / size) if size else 0.0


def estimate(
    evidence: Evidence,
    q: float,
    *,
    constraint: Constraint = "admissible",
    ridge: float | Literal["validated"] | None = None,
) -> Estimate:
    """Solve the small problem behind the evidence (paper, Eqs. 12 and 13, with constraint "bernstein").

    `ridge` is alpha, a multiple of the mean squared column norm; "validated" chooses it from the paper's grid on
    the folds "training" and "validation" of the evidence and refits all rows with the same penalty.
    """
    constraint = check_constraint(constraint)
    matrix, target = system(evidence, q)
    _, _, values = column_scale(matrix)
    unbounded = solve_free(matrix, target)
    choice = _ridge(evidence, matrix, q, ridge, constraint)
    size = choice.penalty if choice else 0.0
    solution, bound = solve(matrix, target, evidence.family, constraint=constraint, ridge=size, unbounded=unbounded)
    return Estimate(
        family=evidence.family,
        solution=solution,
        unbounded=unbounded.coefficients,
        bound=bound,
        constraint=constraint,
        ridge=choice,
        condition=float(np.linalg.cond(matrix)),
        scaled_condition=float(values[0] / values[-1]),
        target_size=float(np.linalg.norm(target)),
        rows=evidence.rows,
        supports=tuple(_one_support(evidence, name, q, constraint, size) for name in evidence.supports),
    )


def _ridge(
    evidence: Evidence, matrix: Array, q: float, ridge: float | str | None, constraint: Constraint
) -> RidgeChoice | None:
    if ridge is None:
        return None
    if isinstance(ridge, str):
        if ridge != "validated":
            raise InputError(f"ridge is {ridge!r}: expected None, 'validated', or alpha, a number of at least 0")
        if not {"training", "validation"} <= set(evidence.folds):
            raise InputError("a validated ridge needs evidence with the folds 'training' and 'validation'")
        training, validation = (evidence.select(fold=name) for name in ("training", "validation"))
        return choose_ridge(training, validation, q, constraint=constraint)
    alpha = not_negative(ridge, "ridge", "None, 'validated', or alpha")
    return RidgeChoice(alpha, penalty(matrix, alpha), ())


def _one_support(evidence: Evidence, name: str, q: float, constraint: Constraint, ridge: float) -> SupportFit:
    """Fit one support alone, for the sensitivity to the choice of supports."""
    part = evidence.select([name])
    try:
        solution, _ = solve(*system(part, q), evidence.family, constraint=constraint, ridge=ridge)
    except InputError as error:  # an expected outcome for a short or poor support, reported in the result
        return SupportFit(name, part.rows, None, str(error))
    return SupportFit(name, part.rows, solution.coefficients, "fitted")


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
            f"the record does not determine coefficient {empty}: expected phase values between the pure phases; "
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
    rows, right = _augment(matrix, target, ridge)
    basis, root = np.linalg.qr(rows)
    held = family.hold(constraint, root[None], (basis.T @ right)[None], free.coefficients[None])
    bound = float(held.bounds[0])
    return (_judged(matrix, target, ridge, held.coefficients[0], bound, family) if held.moved[0] else free), bound


def solve_free(matrix: Array, target: Array, ridge: float = 0.0) -> Solution:
    """Minimise without bounds by the SVD of the column-scaled matrix; a deficient rank raises.

    The ridge enters as extra rows sqrt(ridge) I, never through normal equations.
    """
    rows, right = _augment(matrix, target, ridge)
    norms, scaled, values = column_scale(rows)
    check_rank(values)
    g = np.linalg.lstsq(scaled, right, rcond=None)[0] / norms
    return _judged(matrix, target, ridge, g, -np.inf)


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
    return _judged(matrix, target, ridge, bound + lift / norms, bound)


def _augment(matrix: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    if ridge == 0.0:
        return matrix, target
    size = matrix.shape[1]
    return np.vstack([matrix, np.sqrt(ridge) * np.eye(size)]), np.concatenate([target, np.zeros(size)])


def _judged(
    matrix: Array, target: Array, ridge: float, g: Array, bound: float, family: Family | None = None
) -> Solution:
    """Return coefficients as a solution: with bounds of the coefficients, or of a class of laws of a family.

    Of a class `kkt` is how far the gradient is from the dual cone and from right angles to g - bound.
    """
    misfit = matrix @ g - target
    gradient, left = matrix.T @ misfit + ridge * g, float(np.linalg.norm(misfit))
    if family is not None:
        along = abs(float(gradient @ (g - max(bound, 0.0)))) / float(target @ target)
        outside = dual_violation(gradient) if family.cone else 0.0  # of the positive brackets; else it is not known
        outside /= float(np.linalg.norm(matrix) * np.linalg.norm(target))
        return Solution(g, np.zeros(g.size, dtype=bool), max(along, outside), left, family.contacts(g, bound))
    active, size = g <= bound, np.linalg.norm(matrix, axis=0) * np.linalg.norm(target)
    slack = np.where(active, np.maximum(-gradient, 0.0), np.abs(gradient))
    return Solution(g, active, float(np.max(np.divide(slack, size, out=np.zeros_like(slack), where=size > 0))), left)


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


@dataclass(frozen=True, eq=False)
class Floor:
    """The best approximation of a force in a class of laws, and its relative L2 error on [-1, 1]."""

    coefficients: Array
    error: float


def approximation_floor(law: Law, degree: int, *, constraint: Constraint = "admissible", nodes: int = 80) -> Floor:
    """Return the projection of a law's force in L2(-1, 1) onto the laws of a degree that obey the constraint.

    The integrals are Gauss-Legendre sums. For "bernstein" it is the paper's floor, with nonnegative coefficients.
    No data enter, so the truth must be known: the floor explains a study, it cannot choose a degree.

    >>> from doublewell.law import named_law
    >>> round(100 * approximation_floor(named_law("outside_cone"), 2, constraint="bernstein").error, 2)
    37.68
    >>> approximation_floor(named_law("outside_cone"), 2).error < 1e-12
    True
    """
    from scipy.optimize import nnls

    points, weights = np.polynomial.legendre.leggauss(nodes)
    root, family = np.sqrt(weights), Bernstein(degree)
    matrix, target = (root * family.features(points)).T, root * law.force(points)
    if check_constraint(constraint) == "bernstein":
        coefficients, misfit = nnls(matrix, target)
    else:
        best, _ = solve(matrix, target, family, constraint=constraint)
        coefficients, misfit = best.coefficients, best.residual
    return Floor(coefficients, float(misfit / np.linalg.norm(target)))
