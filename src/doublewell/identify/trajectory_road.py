"""The trajectory road: the likelihood of the whole record, every degree from one evidence, honest bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.adequacy import Adequacy, check_adequacies
from doublewell.estimate import Constraint, DegreeAverage, Posterior, average_degrees, estimate, fit_degree
from doublewell.estimate.least_squares import Array, column_scale
from doublewell.estimate.wells import are_wells
from doublewell.evidence import system
from doublewell.evidence.likelihood import (
    MOST_SUBSTEPS,
    Resolution,
    Trajectory,
    Watch,
    measure_resolution,
    read_trajectories,
    relinearise,
)
from doublewell.hints import Report
from doublewell.identify.families import WellsKind, family_of, highest_degree
from doublewell.law import Bernstein, EvenFamily, Law, LinearFamily
from doublewell.record import Record
from doublewell.result import Diagnostics, Likelihood
from doublewell.survey import Survey

__all__ = ["TrajectoryFit", "likelihood_warnings", "settled", "trajectory_diagnostics", "trajectory_fits"]

_NEAR = 1.0  # standard errors between the estimate and the point of linearisation that need no other one
_UNSETTLED = 3.0  # standard errors from there that are said
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_RESOLVED = 0.1  # standard errors by which half the time step may move the estimate
_UNFELT = 0.01  # standard errors of a shift that no estimate feels
_BLOCKS = 48  # along each axis of the map of the residual
_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law

Summary = Callable[..., DegreeAverage]


@dataclass(frozen=True, eq=False)
class TrajectoryFit:
    """What the trajectory road ends in."""

    law: Law
    posterior: Posterior
    found: Trajectory
    resolution: Resolution
    rounds: int
    distance: float
    unconstrained: Array
    rise: float
    active: tuple[int, ...]
    misfit: float
    condition: float
    adequacy: Adequacy | None


def trajectory_fits(
    records: Sequence[Record],
    starts: Array,
    *,
    degree: int | Literal["auto"],
    constraint: Constraint,
    ridge: float | None,
    check: bool,
    wells: WellsKind = "symmetric",
    report: Report | None = None,
) -> list[TrajectoryFit]:
    """Fit records of one batch by maximum likelihood from weak estimates (of degree 2, or of the given degree).

    With degree "auto" the evidence has degree 8 (5 for unlike wells), and the law is the average over all degrees.
    Records are linearised again where that average lies more than one standard error from the point of linearisation.
    With `check` the residuals are asked for what the model lacks.
    """
    say = report or _silent
    family = family_of(wells, highest_degree(wells) if degree == "auto" else degree)
    fitted = family.at(2 if degree == "auto" else degree)
    summarise = average_degrees if degree == "auto" else fit_degree
    found, resolutions = _resolved(records, starts, family, fitted, say)
    found, rounds = settled(records, found, summarise, say)
    adequacy: list[Adequacy] | list[None] = [None] * len(records)
    if check:
        say("checking the model", 0, 0)
        adequacy = check_adequacies(records, found)
    return [
        _conclude(*one, summarise=summarise, constraint=constraint, ridge=ridge)
        for one in zip(records, found, resolutions, rounds, adequacy, strict=True)
    ]


def _resolved(
    records: Sequence[Record], starts: Array, family: LinearFamily, fitted: LinearFamily, say: Report
) -> tuple[list[Trajectory], list[Resolution]]:
    """Double the substeps until half the step moves no estimate by more than a tenth of a standard error."""
    found = read_trajectories(records, starts, family=family, fitted=fitted, watch=_watch(say))
    while True:
        say("checking the resolution", 0, 0)
        resolutions = measure_resolution(records, found)
        if max(one.time_size for one in resolutions) <= _RESOLVED or found[0].substeps >= MOST_SUBSTEPS:
            return found, resolutions
        found = read_trajectories(
            records, starts, family=family, fitted=fitted, substeps=2 * found[0].substeps, watch=_watch(say)
        )


def settled(
    records: Sequence[Record], found: list[Trajectory], summarise: Summary = average_degrees, say: Report | None = None
) -> tuple[list[Trajectory], list[int]]:
    """Linearise again, all together, until each estimate lies near the point of its linearisation.

    A point where the residual grows is not taken, and the next one is nearer: the force of a high degree may run away
    beyond the pure phases, where a movie that the model does not describe can have values.
    """
    rounds, shares = [1] * len(records), np.ones(len(records))
    for number in range(2, _MOST_ROUNDS + 1):
        places = np.stack([summarise(one.evidence, 1.0, positive=False).free for one in found])
        far = np.array([_distance(one, place) > _NEAR for one, place in zip(found, places, strict=True)])
        if not far.any():
            break
        if say is not None:
            say(f"linearising again, round {number}", 0, 0)
        here = np.stack([one.coefficients for one in found])
        fresh = relinearise(records, found, here + np.where(far, shares, 0.0)[:, None] * (places - here))
        taken = far & np.array([new.noise <= _WORSE * old.noise for new, old in zip(fresh, found, strict=True)])
        found = [new if take else old for new, old, take in zip(fresh, found, taken, strict=True)]
        rounds = [count + int(move) for count, move in zip(rounds, far, strict=True)]
        shares = np.where(far & ~taken, 0.25 * shares, shares)
    return found, rounds


def _distance(found: Trajectory, coefficients: Array) -> float:
    return float(np.linalg.norm(system(found.evidence, 1.0)[0] @ (coefficients - found.coefficients)))


def _conclude(
    record: Record,
    found: Trajectory,
    resolution: Resolution,
    rounds: int,
    adequacy: Adequacy | None,
    *,
    summarise: Summary,
    constraint: Constraint,
    ridge: float | None,
) -> TrajectoryFit:
    q, positive, family = float(record.q or 0.0), constraint == "bernstein", found.evidence.family
    average = summarise(found.evidence, q, positive=positive)
    matrix, _ = system(found.evidence, q)
    shifts = np.stack([resolution.time_shift, resolution.mesh_shift])
    one_degree = len(average.path) == 1
    law, active = _trimmed(average, family), average.path[0].active if one_degree else ()
    if ridge is not None:
        shrunk = estimate(found.evidence, q, constraint=constraint, ridge=ridge)
        law, active = shrunk.law, tuple(int(j) for j in np.flatnonzero(shrunk.solution.active))
    return TrajectoryFit(
        law=law,
        posterior=Posterior(family, average.path, average.components, _felt(average, family, matrix, shifts), positive),
        found=found,
        resolution=resolution,
        rounds=rounds,
        distance=_distance(found, average.free),
        unconstrained=_at_degree(average.free, family, law.family.degree),
        rise=float(np.sum((matrix @ (average.coefficients - average.free)) ** 2)),
        active=active,
        misfit=float(np.linalg.norm(found.residual) / np.linalg.norm(record.slab())),
        condition=float(np.divide(*column_scale(matrix)[2][[0, -1]])),
        adequacy=adequacy,
    )


def _felt(average: DegreeAverage, family: LinearFamily, matrix: Array, shifts: Array) -> Array:
    """Return the shifts, one a row, with those that the data cannot feel replaced by how far they move the average.

    Where the record says nothing, a shift of a millionth of a standard error is as large as the error itself, and a
    band with it would be wider than the law ten thousand times; the average over degrees does not follow it there.
    """
    pull = matrix.T @ matrix
    share = np.zeros_like(pull)
    for item in average.components:
        lift = family.at(item.degree).elevation(family)
        share += item.weight * (lift @ item.covariance @ lift.T @ pull)
    small = np.linalg.norm(shifts @ matrix.T, axis=1) < _UNFELT
    return np.where(small[:, None], shifts @ share.T, shifts)


def _watch(say: Report) -> Watch:
    return lambda step: say(f"fitting: {step}", step.number, 0)


def _silent(_: str, __: int, ___: int) -> None:
    pass


def _trimmed(average: DegreeAverage, top: LinearFamily) -> Law:
    """Return the average law at the highest degree whose weight counts."""
    kept = [item for item in average.components if item.weight >= _NEGLIGIBLE]
    family = top.at(max(item.degree for item in kept))
    total = sum(item.weight for item in kept)
    lifted = [item.weight / total * (family.at(item.degree).elevation(family) @ item.coefficients) for item in kept]
    law = Law(family, np.asarray(np.sum(lifted, axis=0)))
    if isinstance(family, EvenFamily) or law.structure.ok:
        return law
    return Law(top, average.coefficients)  # laws with different maxima may add up to one with two


def _at_degree(coefficients: Array, family: LinearFamily, degree: int) -> Array:
    """Write coefficients at a lower degree, in the least-squares sense; the rest is negligible by choice of degree."""
    lift = family.at(degree).elevation(family)
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
            segments=fit.found.segments,
            residual_map=residual_map(fit.found),
            residual_frames=np.sqrt(np.mean(fit.found.residual.reshape(len(fit.found.residual), -1) ** 2, axis=1)),
            adequacy=fit.adequacy,
        ),
    )


def residual_map(found: Trajectory) -> Array:
    """Return how far the residual's variance in each block of cells is from the mean, in standard deviations."""
    sums = np.sum((found.residual / found.noise) ** 2, axis=0)
    counts = np.full(sums.shape, float(len(found.residual)))
    for axis, cells in enumerate(sums.shape):
        edges = np.linspace(0, cells, min(cells, _BLOCKS) + 1).round().astype(int)[:-1]
        sums, counts = (np.add.reduceat(values, edges, axis=axis) for values in (sums, counts))
    share = 2.0 / (9.0 * counts)  # Wilson and Hilferty: the cube root of a chi-square is close to normal
    ratio = sums / counts / (np.sum(sums) / np.sum(counts))
    return np.asarray((np.cbrt(ratio) - (1.0 - share)) / np.sqrt(share))


def structure_probability(posterior: Posterior) -> float:
    """Return the share of unconstrained draws whose bracket dips to zero: how likely an extra stationary point is."""
    if not isinstance(posterior.family, Bernstein):
        return float(np.mean(~are_wells(posterior.family, posterior.free_draws)))
    z = np.linspace(0.0, 1.0, 401)
    brackets = posterior.free_draws @ posterior.family.bracket(np.eye(posterior.family.size), z[:, None]).T
    return float(np.mean(np.min(brackets, axis=1) <= 0.0))


def likelihood_warnings(fit: TrajectoryFit) -> list[str]:
    """Say what weakens a trajectory estimate."""
    said = []
    if fit.adequacy is not None and fit.adequacy.verdict != "adequate":
        said += [f"model {fit.adequacy.verdict}: {line}" for line in fit.adequacy.words]
    if not fit.found.converged:
        said.append(f"the fit did not converge ({fit.found.status}): do not use its errors")
    if fit.distance > _UNSETTLED:
        said.append(
            f"the law lies {fit.distance:.0f} standard errors from the fit that its errors come from, and a fit nearby "
            "is worse: the movie does not follow the model, or says too little; do not use the errors"
        )
    if fit.rise > 9.0:
        said.append(
            f"the constraint raises chi2 by {fit.rise:.0f}: the truth may lie outside the positive family, or the "
            "phase values are not at -1 and +1; compare with constraint='none'"
        )
    if fit.resolution.mesh_size > 1.0:
        said.append(
            f"a finer mesh would move the estimate by {fit.resolution.mesh_size:.1f} standard errors: the record is "
            "coarser than its dynamics; the bands include this"
        )
    return said
