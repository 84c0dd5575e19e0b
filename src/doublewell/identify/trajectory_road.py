"""The trajectory road: the likelihood of the whole record, every degree from one evidence, honest bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.errors import InputError
from doublewell.estimate import Constraint, DegreeAverage, Posterior, average_degrees, estimate, fit_degree
from doublewell.estimate.least_squares import Array, column_scale
from doublewell.evidence import system
from doublewell.evidence.likelihood import (
    Resolution,
    Step,
    Trajectory,
    measure_resolution,
    read_trajectory,
    relinearise,
)
from doublewell.law import MAX_DEGREE, Bernstein, Law
from doublewell.record import Record
from doublewell.result import Diagnostics, Likelihood
from doublewell.survey import Survey

__all__ = ["TrajectoryFit", "likelihood_warnings", "trajectory_diagnostics", "trajectory_fit"]

_NEAR = 1.0  # standard errors between the estimate and the point of linearisation that need no other one
_MOST_ROUNDS = 5
_RESOLVED = 0.1  # standard errors by which half the time step may move the estimate
_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law


@dataclass(frozen=True, eq=False)
class TrajectoryFit:
    """What the trajectory road ends in."""

    law: Law
    posterior: Posterior
    found: Trajectory
    resolution: Resolution
    rounds: int
    unconstrained: Array
    rise: float
    active: tuple[int, ...]
    misfit: float
    condition: float


def trajectory_fit(
    record: Record,
    start: Array,
    *,
    degree: int | Literal["auto"],
    constraint: Constraint,
    ridge: float | None,
    progress: Callable[[Step], None] | None = None,
) -> TrajectoryFit:
    """Fit a record by maximum likelihood from a weak estimate `start` (of degree 2, or of the given degree).

    With degree "auto" the evidence has degree 8, and the law is the average over all degrees. The record is linearised
    again where that average lies more than one standard error from the point of linearisation.
    """
    positive = constraint == "bernstein"
    if ridge is not None and degree == "auto":
        raise InputError("ridge is a choice for one degree: give degree= a number, or leave ridge out")
    family = Bernstein(MAX_DEGREE if degree == "auto" else degree)
    summarise = average_degrees if degree == "auto" else fit_degree
    found = read_trajectory(record, start, family=family, progress=progress)
    found, resolution = _resolve(record, found, start, family, progress)
    q = float(record.q or 0.0)
    rounds = 1
    while True:
        free = summarise(found.evidence, q, positive=False)
        matrix, _ = system(found.evidence, q)
        if np.linalg.norm(matrix @ (free.free - found.coefficients)) <= _NEAR or rounds == _MOST_ROUNDS:
            break
        found, rounds = relinearise(record, found, free.free), rounds + 1
    average = summarise(found.evidence, q, positive=positive)
    drift = np.stack([resolution.time_shift, resolution.mesh_shift])
    posterior = Posterior(family, average.path, average.components, drift, positive)
    best = max(average.path, key=lambda fit: fit.weight)
    law, active = _trimmed(average), best.active if degree != "auto" else ()
    if ridge is not None:
        shrunk = estimate(found.evidence, q, constraint=constraint, ridge=ridge)
        law, active = shrunk.law, tuple(int(j) for j in np.flatnonzero(shrunk.solution.active))
    return TrajectoryFit(
        law=law,
        posterior=posterior,
        found=found,
        resolution=resolution,
        rounds=rounds,
        unconstrained=_at_degree(average.free, family, law.family.degree),
        rise=float(np.sum((matrix @ (average.coefficients - average.free)) ** 2)),
        active=active,
        misfit=float(np.linalg.norm(found.residual) / np.linalg.norm(record.slab())),
        condition=float(np.divide(*column_scale(matrix)[2][[0, -1]])),
    )


def _resolve(
    record: Record, found: Trajectory, start: Array, family: Bernstein, progress: Callable[[Step], None] | None
) -> tuple[Trajectory, Resolution]:
    """Double the substeps until half the step moves the estimate by less than a tenth of a standard error."""
    resolution = measure_resolution(record, found)
    while resolution.time_size > _RESOLVED and found.substeps < 64:
        found = read_trajectory(record, start, family=family, substeps=2 * found.substeps, progress=progress)
        resolution = measure_resolution(record, found)
    return found, resolution


def _trimmed(average: DegreeAverage) -> Law:
    """Return the average law at the highest degree whose weight counts."""
    kept = [item for item in average.components if item.weight >= _NEGLIGIBLE]
    family = Bernstein(max(item.degree for item in kept))
    total = sum(item.weight for item in kept)
    lifted = [item.weight / total * (Bernstein(item.degree).elevation(family) @ item.coefficients) for item in kept]
    return Law(family, np.asarray(np.sum(lifted, axis=0)))


def _at_degree(coefficients: Array, family: Bernstein, degree: int) -> Array:
    """Write coefficients at a lower degree, in the least-squares sense; the rest is negligible by choice of degree."""
    lift = Bernstein(degree).elevation(family)
    return np.asarray(np.linalg.lstsq(lift, coefficients, rcond=None)[0])


def trajectory_diagnostics(fit: TrajectoryFit, seen: Survey, warnings: Sequence[str]) -> Diagnostics:
    """Return the numbers behind a trajectory estimate."""
    block = fit.found.evidence.blocks[0]
    return Diagnostics(
        rows=block.rows,
        condition=fit.condition,
        scaled_condition=fit.condition,
        active=fit.active,
        bound=None,
        kkt=None,
        residual=fit.misfit,
        unconstrained=fit.unconstrained,
        ridge=None,
        supports=(),
        support_spread=0.0,
        survey=seen,
        warnings=tuple(warnings),
        likelihood=Likelihood(
            noise=fit.found.noise,
            status=fit.found.status,
            converged=fit.found.converged,
            steps=fit.found.steps,
            substeps=fit.found.substeps,
            rounds=fit.rounds,
            time_size=fit.resolution.time_size,
            mesh_size=fit.resolution.mesh_size,
            constraint_rise=fit.rise,
            extra_structure=structure_probability(fit.posterior),
        ),
    )


def structure_probability(posterior: Posterior) -> float:
    """Return the share of unconstrained draws whose bracket dips to zero: how likely an extra stationary point is."""
    z = np.linspace(0.0, 1.0, 401)
    brackets = posterior.free_draws @ posterior.family.bracket(np.eye(posterior.family.size), z[:, None]).T
    return float(np.mean(np.min(brackets, axis=1) <= 0.0))


def likelihood_warnings(fit: TrajectoryFit) -> list[str]:
    """Say what weakens a trajectory estimate."""
    said = []
    if not fit.found.converged:
        said.append(f"the fit did not converge ({fit.found.status}): do not use its errors")
    if fit.rise > 9.0:
        said.append(
            f"the constraint raises twice the log-likelihood by {fit.rise:.0f}: the truth may lie outside the positive "
            "family; compare with constraint='none'"
        )
    if fit.resolution.mesh_size > 1.0:
        said.append(
            f"a finer mesh would move the estimate by {fit.resolution.mesh_size:.1f} standard errors: the record is "
            "coarser than its dynamics; the bands include this"
        )
    return said
