"""The trajectory road: the likelihood of the whole record, every degree from one evidence, honest bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from doublewell.adequacy import Adequacy, check_adequacies
from doublewell.evidence import Beside, system
from doublewell.hints import Array, Report
from doublewell.inference import Constraint, DegreeAverage, Posterior, average_degrees, estimate, fit_degree
from doublewell.inference.least_squares import column_scale
from doublewell.law import Family, Law
from doublewell.likelihood import (
    MOST_SUBSTEPS,
    Resolution,
    Trajectory,
    Watch,
    measure_resolution,
    read_trajectories,
    relinearise,
)
from doublewell.observation import PLAIN, Noise, View, noise_view, outlier_mask
from doublewell.problem import Problem
from doublewell.record import Record

__all__ = [
    "TrajectoryFit",
    "at_degree",
    "felt",
    "in_units",
    "settled",
    "touched",
    "trajectory_fits",
    "trimmed",
]

_NEAR = 1.0  # standard errors between the estimate and the point of linearisation that need no other one
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_RESOLVED = 0.1  # standard errors by which half the time step may move the estimate
_UNFELT = 0.01  # standard errors of a shift that no estimate feels
_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law

Summary = Callable[..., DegreeAverage]


@dataclass(frozen=True, eq=False)
class TrajectoryFit:
    """What the trajectory road ends in."""

    law: Law
    initial: Array
    posterior: Posterior
    found: Trajectory
    resolution: Resolution
    rounds: int
    distance: float
    unconstrained: Array
    rise: float
    active: tuple[int, ...]
    contacts: tuple[float, ...]
    misfit: float
    record: Record
    condition: float
    adequacy: Adequacy | None


def trajectory_fits(
    records: Sequence[Record], starts: Array, asked: Problem, *, report: Report | None = None, view: View = PLAIN
) -> list[TrajectoryFit]:
    """Fit records of one batch by maximum likelihood from weak estimates (of degree 2, or of the given degree).

    With degree "auto" the evidence has degree 8 (5 for asymmetric wells), and the law is the average over all degrees.
    Records are linearised again where that average lies more than one standard error from the point of linearisation.
    With a check the residuals are tested for model misspecification. Noise that is not white is measured on the
    residual of a first fit, for one record at a time.
    """
    say = report or _silent
    family, fitted, noise = asked.family, asked.fitted, asked.observation.noise
    summarise = average_degrees if asked.averaged else fit_degree
    found, resolutions = _resolved(records, starts, family, fitted, say, view)
    if noise != "white":
        records, found, resolutions = _weighed(records, starts, (found, resolutions), family, fitted, say, view, noise)
    found, rounds = settled(records, found, summarise, say)
    adequacy: list[Adequacy] | list[None] = [None] * len(records)
    if asked.check:
        say("checking the model", 0, 0)
        adequacy = check_adequacies(records, found)
    ridge = None if isinstance(asked.method.ridge, str) else asked.method.ridge
    return [
        _conclude(*one, summarise=summarise, constraint=asked.law.constraint, ridge=ridge)
        for one in zip(records, found, resolutions, rounds, adequacy, strict=True)
    ]


def _resolved(
    records: Sequence[Record], starts: Array, family: Family, fitted: Family, say: Report, view: View
) -> tuple[list[Trajectory], list[Resolution]]:
    """Double the substeps until half the step moves no estimate by more than a tenth of a standard error."""
    found = read_trajectories(records, starts, family=family, fitted=fitted, watch=_watch(say), view=view)
    while True:
        say("checking the resolution", 0, 0)
        resolutions = measure_resolution(records, found)
        if max(one.time_size for one in resolutions) <= _RESOLVED or found[0].substeps >= MOST_SUBSTEPS:
            return found, resolutions
        finer = 2 * found[0].substeps
        found = read_trajectories(
            records, starts, family=family, fitted=fitted, substeps=finer, watch=_watch(say), view=view
        )


def _weighed(
    records: Sequence[Record],
    starts: Array,
    first: tuple[list[Trajectory], list[Resolution]],
    family: Family,
    fitted: Family,
    say: Report,
    view: View,
    noise: Noise,
) -> tuple[list[Record], list[Trajectory], list[Resolution]]:
    """Read a record again with its noise as the first fit shows it; outliers are masked, twice."""
    (record,), (found, resolution) = records, (first[0][0], first[1][0])
    for _ in range(2 if noise == "robust" else 1):
        say(f"reading again with {noise} noise", 0, 0)
        if noise == "robust":
            record = record.replace(mask=outlier_mask(record, found.residual))
        else:
            view = noise_view(record, found.residual, view, noise)
        (found,), (resolution,) = _resolved([record], starts, family, fitted, say, view)
    return [record], [found], [resolution]


def settled(
    records: Sequence[Record], found: list[Trajectory], summarise: Summary = average_degrees, say: Report | None = None
) -> tuple[list[Trajectory], list[int]]:
    """Linearise again, all together, until each estimate lies near the point of its linearisation.

    A point where the residual grows is not taken, and the next one is nearer: the force of a high degree may run away
    beyond the pure phases, where a movie that the model does not describe can have values.
    """
    rounds, shares = [1] * len(records), np.ones(len(records))
    for number in range(2, _MOST_ROUNDS + 1):
        places = np.stack([summarise(one.evidence, 1.0, constraint="none").free for one in found])
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
    q, family = float(record.q or 0.0), found.evidence.family
    average = summarise(found.evidence, q, constraint=constraint)
    matrix, _ = system(found.evidence, q)
    shifts = np.stack([resolution.time_shift, resolution.mesh_shift])
    law, (active, contacts) = trimmed(average, family), touched(average)
    if ridge is not None:
        shrunk = estimate(found.evidence, q, constraint=constraint, ridge=ridge)
        law, contacts = shrunk.law, shrunk.solution.contacts
        active = tuple(int(j) for j in np.flatnonzero(shrunk.solution.active))
    return TrajectoryFit(
        law=law,
        initial=_initial(found, law),
        posterior=Posterior(
            family,
            average.path,
            average.components,
            felt(average, family, matrix, shifts),
            constraint,
            in_units(record, found.beside),
        ),
        found=found,
        resolution=resolution,
        rounds=rounds,
        distance=_distance(found, average.free),
        unconstrained=at_degree(average.free, family, law.family.degree),
        rise=float(np.sum((matrix @ (average.coefficients - average.free)) ** 2)),
        active=active,
        contacts=contacts,
        misfit=float(np.linalg.norm(found.residual) / np.linalg.norm(record.slab())),
        record=record,
        condition=float(np.divide(*column_scale(matrix)[2][[0, -1]])),
        adequacy=adequacy,
    )


def in_units(record: Record, beside: Beside) -> Beside | None:
    """Return q and the variance of the blur in the record's units; None where nothing is estimated beside the law."""
    units = {"q": float(record.q or 0.0), "blur": record.dx[-1] ** 2}
    return beside.scaled(np.array([units[name] for name in beside.names])) if beside.names else None


def _initial(found: Trajectory, law: Law) -> Array:
    """Return the initial field that fits best with a law near the point of linearisation."""
    family = found.evidence.family
    law_there = family.at(law.family.degree).elevation(family) @ law.coefficients
    move = np.concatenate([found.beside.mean(law_there), law_there]) - found.theta
    moved = replace(found, nuisance=found.nuisance + np.tensordot(move, found.response, axes=1))
    return moved.initial


def felt(average: DegreeAverage, family: Family, matrix: Array, shifts: Array) -> Array:
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


def touched(average: DegreeAverage) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the coefficients and the |u| that are at a bound, of a single degree; an average has a table of them."""
    first, *others = average.path
    return ((), ()) if others else (first.active, first.contacts)


def trimmed(average: DegreeAverage, top: Family) -> Law:
    """Return the average law at the highest degree whose weight counts."""
    kept = [item for item in average.components if item.weight >= _NEGLIGIBLE]
    family = top.at(max(item.degree for item in kept))
    total = sum(item.weight for item in kept)
    lifted = [item.weight / total * (family.at(item.degree).elevation(family) @ item.coefficients) for item in kept]
    law = Law(family, np.asarray(np.sum(lifted, axis=0)))
    if family.convex or law.structure.ok:
        return law
    return Law(top, average.coefficients)  # laws with different maxima may add up to one with two


def at_degree(coefficients: Array, family: Family, degree: int) -> Array:
    """Write coefficients at a lower degree, in the least-squares sense; the rest is negligible by choice of degree."""
    lift = family.at(degree).elevation(family)
    return np.asarray(np.linalg.lstsq(lift, coefficients, rcond=None)[0])
