"""Conclude: from what the loop ends in to the law, its posterior and the numbers that defend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.adequacy import worst_of_parts
from doublewell.adequacy.check import holm_adjusted
from doublewell.compute.partition import Region, tile_name, tile_shape
from doublewell.evidence import Beside, compact, joint_given_law, system
from doublewell.hints import Array
from doublewell.identify.readers import noisy
from doublewell.inference import DegreeAverage, Posterior, average_degrees, estimate, fit_degree
from doublewell.inference.joint import Joint, Reading
from doublewell.inference.least_squares import column_scale
from doublewell.law import Family, Law
from doublewell.likelihood import Convergence, Resolution, Status, Trajectory, moved
from doublewell.observation import Survey
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.result import Agreement, Diagnostics, FitQuality, Likelihood, Tiling

_UNFELT = 0.01  # standard errors of a shift that no estimate feels
_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law
_BLOCKS = 48  # along each axis of the map of the residual
_FEW = 0.05  # of the tiles that may be left unfinished


@dataclass(frozen=True, eq=False)
class Answer:
    """The law of a trajectory fit on the scale of phases -1 and +1, its posterior and the numbers behind it."""

    law: Law
    posterior: Posterior
    diagnostics: Diagnostics


@dataclass(frozen=True, eq=False)
class TilePlan:
    """All tiles of a record, by which those that were fitted are known."""

    regions: tuple[Region, ...]

    def names(self, joint: Joint) -> list[str]:
        """Return the tiles that were fitted in words."""
        return [tile_name(k + 1, self.regions[k]) for k in sorted(joint.readings)]


def conclude(
    problem: Problem, records: Sequence[Record], survey: Survey, joint: Joint, tiles: TilePlan | None = None
) -> Answer:
    """Estimate the law from the evidence of all parts, with the constraint, and gather what it rests on.

    The fields are those of the first record; a record in tiles has none of its own.
    """
    total, family = joint.evidence, joint.evidence.family
    summarise = average_degrees if joint.averaged else fit_degree
    average = summarise(total, 1.0, constraint=problem.law.constraint)
    matrix, _ = system(total)
    law, (active, contacts) = trimmed(average, family), touched(average)
    ridge = problem.method.ridge
    if ridge is not None:
        shrunk = estimate(total, 1.0, constraint=problem.law.constraint, ridge=ridge)
        law, contacts = shrunk.law, shrunk.solution.contacts
        active = tuple(int(j) for j in np.flatnonzero(shrunk.solution.active))
    readings = [joint.readings[k] for k in sorted(joint.readings)]
    resolution, first = combined(readings, matrix), readings[0]
    shifts = np.stack([resolution.time_shift, resolution.mesh_shift])
    posterior = Posterior(
        family,
        average.path,
        average.components,
        felt(average, family, matrix, shifts),
        problem.law.constraint,
        in_units(records[0], joint_given_law(total if total.joint else first.evidence)),
    )
    rise = float(np.sum((matrix @ (average.coefficients - average.free)) ** 2))
    quality = [
        _quality(record, reading, reading.resolution or resolution, joint.distance, rise)
        for record, reading in zip(records, readings, strict=False)
    ]
    shared: dict[str, Any] = quality[0] | {"rounds": joint.rounds, "substeps": first.substeps}
    shared |= {"extra_structure": posterior.extra_structure()}
    if tiles is None:
        fit = first.fields
        likelihood = Likelihood(
            **shared,
            steps=fit.steps,
            segments=fit.segments,
            residual_map=residual_map(fit),
            residual_frames=_frame_noise(readings[:1], [(0, records[0].frames)], records[0].frames),
            initial=_read_only(_initial(fit, law)),
            others=tuple(FitQuality(**one) for one in quality[1:]),
        )
        misfit, rows = float(np.linalg.norm(fit.residual) / np.sqrt(first.power)), first.evidence.rows
    else:
        likelihood = _of_tiles(joint, tiles, shared, resolution, records[0].frames)
        misfit = float(np.sqrt(sum(r.cost for r in readings) / sum(r.power for r in readings)))
        rows = total.rows
    condition = float(np.divide(*column_scale(matrix)[2][[0, -1]]))
    diagnostics = Diagnostics(
        rows=rows,
        condition=condition,
        scaled_condition=condition,
        active=active,
        bound=None,
        kkt=None,
        residual=misfit,
        unconstrained=at_degree(average.free, family, law.family.degree),
        ridge=None,
        supports=(),
        support_spread=0.0,
        survey=survey,
        likelihood=likelihood,
        contacts=contacts,
    )
    return Answer(law, posterior, diagnostics)


def _quality(record: Record, reading: Reading, resolution: Resolution, distance: float, rise: float) -> dict[str, Any]:
    return {
        "dx": record.dx,
        "boundary": record.boundary,
        "noise": reading.noise,
        "status": reading.status,
        "time_size": resolution.time_size,
        "mesh_size": resolution.mesh_size,
        "distance": distance,
        "constraint_rise": rise,
        "adequacy": reading.adequacy,
    }


def _of_tiles(joint: Joint, plan: TilePlan, shared: dict[str, Any], resolution: Resolution, frames: int) -> Likelihood:
    """Return how the fit of a record in tiles went: pooled noise, the tests of the worst tile."""
    places = sorted(joint.readings)
    readings, names = [joint.readings[k] for k in places], plan.names(joint)
    regions = [plan.regions[k] for k in places]
    unfinished = [f"{name}, {r.status.text}" for name, r in zip(names, readings, strict=True) if not r.status.converged]
    converged = len(unfinished) <= _FEW * len(readings)
    status = (
        Status(Convergence.TILES, 0.0, 0) if converged else next(r.status for r in readings if not r.status.converged)
    )
    freedom = sum(r.evidence.rows - r.theta.size for r in readings)
    tests = [
        (r.adequacy, name.split(" (")[0]) for r, name in zip(readings, names, strict=True) if r.adequacy is not None
    ]
    lost = [f"{tile_name(k + 1, plan.regions[k])}: {joint.lost[k].status.text}" for k in sorted(joint.lost)]
    return Likelihood(
        **shared
        | {
            "noise": float(np.sqrt(sum(r.cost for r in readings) / freedom)),
            "status": status,
            "time_size": resolution.time_size,
            "mesh_size": resolution.mesh_size,
            "adequacy": worst_of_parts(tests),
        },
        steps=(),
        segments=1,
        residual_map=_place_map(readings, regions, plan.regions),
        residual_frames=_frame_noise(readings, [region.frames for region in regions], frames),
        tiles=Tiling(
            shape=tuple(int(n) for n in np.max([tile_shape(region) for region in plan.regions], axis=0)),
            read=len(readings),
            empty=len(plan.regions) - len(readings) - len(lost),
            lost=tuple(lost),
            unfinished=tuple(unfinished),
            checked=len(tests),
        ),
    )


def combined(readings: Sequence[Reading], matrix: Array) -> Resolution:
    """Return the shifts by time step and mesh of the common law: each part that measured them moves it by its weight.

    They stand for all parts: a finer step or mesh moves every tile alike. Sizes are in standard errors of all parts.
    """
    measured = [(system(r.evidence)[0], r.resolution) for r in readings if r.resolution is not None]
    if len(readings) == 1:
        return measured[0][1]
    own = np.vstack([root for root, _ in measured])
    pulls = [np.vstack([root @ getattr(res, name)[:, None] for root, res in measured]) for name in _SHIFTS]
    time, mesh = (np.linalg.lstsq(own, pull, rcond=None)[0][:, 0] for pull in pulls)
    return Resolution(time, mesh, float(np.linalg.norm(matrix @ time)), float(np.linalg.norm(matrix @ mesh)))


_SHIFTS = ("time_shift", "mesh_shift")


def in_units(record: Record, joint: Beside) -> Beside | None:
    """Return q and the variance of the blur in the record's units; None where nothing is estimated beside the law."""
    units = {"q": float(record.q or 0.0), "blur": record.dx[-1] ** 2}
    return joint.scaled(np.array([units[name] for name in joint.names])) if joint.names else None


def _initial(fit: Trajectory, law: Law) -> Array:
    """Return the initial field that fits best with a law near the point of linearisation."""
    family = fit.family
    there = family.at(law.family.degree).elevation(family) @ law.coefficients
    move = np.concatenate([joint_given_law(fit.evidence).mean(there), there]) - fit.theta
    return replace(fit, nuisance=moved(fit, move)).initial


def _read_only(field: Array) -> NDArray[np.float32]:
    single = field.astype(np.float32)
    single.flags.writeable = False
    return single


def felt(average: DegreeAverage, family: Family, matrix: Array, shifts: Array) -> Array:
    """Return the shifts, one per row, with those that the data cannot feel replaced by how far they move the average.

    Where the record says nothing, a shift of a millionth of a standard error is as large as the error itself, and a
    band with it would be wider than the law ten thousand times; the average over degrees does not follow it there.
    """
    pull = matrix.T @ matrix
    fraction = np.zeros_like(pull)
    for item in average.components:
        lift = family.at(item.degree).elevation(family)
        fraction += item.weight * (lift @ item.covariance @ lift.T @ pull)
    small = np.linalg.norm(shifts @ matrix.T, axis=1) < _UNFELT
    return np.where(small[:, None], shifts @ fraction.T, shifts)


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
    if family.even or law.structure.ok:
        return law
    return Law(top, average.coefficients)  # laws with different maxima may add up to one with two


def at_degree(coefficients: Array, family: Family, degree: int) -> Array:
    """Write coefficients at a lower degree, in the least-squares sense; the rest is negligible by choice of degree."""
    lift = family.at(degree).elevation(family)
    return np.asarray(np.linalg.lstsq(lift, coefficients, rcond=None)[0])


def residual_map(fit: Trajectory) -> Array:
    """Return how far the residual's variance in each block of cells is from the mean, in standard deviations.

    Zero where a block holds no value that tells of noise.
    """
    kept = noisy(fit.record)
    sums = np.sum(np.where(kept, fit.residual / fit.noise, 0.0) ** 2, axis=0)
    counts = np.count_nonzero(kept, axis=0).astype(float)
    for axis, cells in enumerate(sums.shape):
        edges = np.linspace(0, cells, min(cells, _BLOCKS) + 1).round().astype(int)[:-1]
        sums, counts = (np.add.reduceat(values, edges, axis=axis) for values in (sums, counts))
    return _deviations(sums, counts)


def _place_map(readings: Sequence[Reading], regions: Sequence[Region], plan: Sequence[Region]) -> Array:
    """Return the same for tiles in space; `plan` are all tiles."""
    places = list(dict.fromkeys(region.cells for region in plan))
    shape = tuple(len({place[axis] for place in places}) for axis in range(len(places[0])))
    sums, counts = np.zeros(len(places)), np.zeros(len(places))
    for reading, region in zip(readings, regions, strict=True):
        sums[places.index(region.cells)] += reading.cost
        counts[places.index(region.cells)] += reading.evidence.rows - reading.theta.size
    return _deviations(sums, counts).reshape(shape)


def _deviations(sums: Array, counts: Array) -> Array:
    """Return how far mean squares are from the common one, in standard deviations (Wilson and Hilferty)."""
    none, freedom = counts == 0.0, np.maximum(counts, 1.0)
    spread = 2.0 / (9.0 * freedom)  # the cube root of a chi-square is close to normal
    ratio = sums / freedom / (np.sum(sums) / np.sum(counts))
    return np.asarray(np.where(none, 0.0, (np.cbrt(ratio) - (1.0 - spread)) / np.sqrt(spread)))


def _frame_noise(readings: Sequence[Reading], spans: Sequence[tuple[int, int]], frames: int) -> Array:
    """Return the standard deviation of the residual of each frame, 0 where nothing of it was observed."""
    sums, counts = np.zeros(frames), np.zeros(frames)
    for reading, span in zip(readings, spans, strict=True):
        sums[slice(*span)] += reading.sums
        counts[slice(*span)] += reading.counts
    return np.asarray(np.sqrt(sums / np.maximum(counts, 1.0)))


_UNLIKELY = 1e-3  # adjusted probability below which a record disagrees


def agreements(systems: Sequence[tuple[Array, Array]], names: Sequence[str]) -> tuple[Agreement, ...]:
    """Test each record against the others: the difference of their best laws over its covariance is chi-square.

    `systems` are the small least-squares problems of the records in units of their noise. Others are those that agree:
    of three or more records the one that is farthest off leaves first, so that it does not make the good ones look
    wrong. Two records that differ disagree both, for nothing says which is right.
    """
    from scipy.special import chdtrc

    kept = _agreeing(systems)
    chi2, degrees = _against(systems, kept), systems[0][0].shape[1]
    chances = [float(chdtrc(degrees, one)) for one in chi2]
    return tuple(
        Agreement(name, one, degrees, p, a, a >= _UNLIKELY)
        for name, one, p, a in zip(names, chi2, chances, holm_adjusted(chances), strict=True)
    )


def _agreeing(systems: Sequence[tuple[Array, Array]]) -> list[int]:
    """Leave out the record that is farthest off, again and again, until the others agree or two are left."""
    from scipy.special import chdtrc

    kept = list(range(len(systems)))
    while len(kept) > 2:
        chi2 = _against(systems, kept)
        worst = max(kept, key=lambda k: chi2[k])
        if len(kept) * chdtrc(systems[0][0].shape[1], chi2[worst]) >= _UNLIKELY:
            break
        kept.remove(worst)
    return kept


def _against(systems: Sequence[tuple[Array, Array]], kept: Sequence[int]) -> list[float]:
    """Return the chi-square of each record against the kept ones but itself, with sums from both ends."""
    rows = [np.hstack([matrix, target[:, None]]) for matrix, target in systems]
    before, after = _sums([rows[k] for k in kept]), _sums([rows[k] for k in reversed(kept)])[::-1]
    found = []
    for place, own in enumerate(rows):
        at = kept.index(place) if place in kept else None
        rest = before[-1] if at is None else np.vstack([before[at], after[at + 1]])
        found.append(_disagreement(own[:, :-1], own[:, -1], rest[:, :-1], rest[:, -1]))
    return found


def _sums(rows: Sequence[Array]) -> list[Array]:
    """Return the triangles of the first 0, 1, 2, ... of them."""
    sums = [np.zeros((0, rows[0].shape[1]))]
    for one in rows:
        sums.append(compact(np.vstack([sums[-1], one])))
    return sums


def _disagreement(matrix: Array, target: Array, rest: Array, aim: Array) -> float:
    """Return how much larger the least cost of both together is than apart."""
    both = np.vstack([matrix, rest]), np.concatenate([target, aim])
    return max(_cost(*both) - _cost(matrix, target) - _cost(rest, aim), 0.0)


def _cost(matrix: Array, target: Array) -> float:
    norms = np.linalg.norm(matrix, axis=0)
    basis = np.linalg.qr(matrix / norms)[0]
    return float(np.sum((target - basis @ (basis.T @ target)) ** 2))
