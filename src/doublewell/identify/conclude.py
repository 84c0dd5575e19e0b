"""Conclude: from what the loop ends in to the law, its posterior and the numbers that defend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from doublewell.adequacy import worst_of_parts
from doublewell.compute.partition import Region, tile_name, tile_shape
from doublewell.evidence import joint_given_law, system
from doublewell.hints import Array
from doublewell.identify.agreement import agreements
from doublewell.identify.parts import Part
from doublewell.inference import DegreeAverage, Posterior, average_degrees, estimate, fit_degree
from doublewell.inference.estimate import column_scale
from doublewell.inference.joint import Joint, PartFit
from doublewell.law import Family, Law
from doublewell.likelihood import Convergence, Resolution, Status, Trajectory
from doublewell.observation.view import noisy
from doublewell.problem import Problem
from doublewell.result import Agreement, Diagnostics, FitQuality, Likelihood, Tiling

_UNFELT = 0.01  # standard errors of a shift that no estimate feels
_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law
_BLOCKS = 48  # along each axis of the map of the residual
_FEW = 0.05  # of the tiles that may be left unfinished


@dataclass(frozen=True, eq=False)
class Answer:
    """A law, its posterior (none of a weak-form fit) and the numbers behind it, for phases at -1 and +1."""

    law: Law
    diagnostics: Diagnostics
    posterior: Posterior | None = None
    agreements: tuple[Agreement, ...] = ()

    def placed(self, phases: tuple[float, float]) -> Answer:
        """Return the same for other phases: u = middle + half s has the force half G(s)."""
        if phases == (-1.0, 1.0):
            return self
        middle, half = 0.5 * (phases[0] + phases[1]), 0.5 * (phases[1] - phases[0])
        numbers, posterior = self.diagnostics, self.posterior
        seen, fit = numbers.survey, numbers.likelihood
        seen = replace(
            seen, noise=half * seen.noise, low=middle + half * seen.low, high=middle + half * seen.high,
            change=half * seen.change,
        )  # fmt: skip
        if fit is not None:
            initial = None if fit.initial is None else _single(middle + half * fit.initial)
            fit = replace(fit, noise=half * fit.noise, residual_frames=half * fit.residual_frames, initial=initial)
        if posterior is not None:
            posterior = replace(posterior, family=posterior.family.placed(phases))
        numbers = replace(numbers, survey=seen, likelihood=fit)
        return replace(self, law=self.law.placed(phases), diagnostics=numbers, posterior=posterior)


def conclude(problem: Problem, parts: Sequence[Part], joint: Joint, tiles: Sequence[Region] | None = None) -> Answer:
    """Estimate the law from the evidence of all parts, with the constraint, and gather what it rests on.

    The fields are those of the first record; of a record in `tiles`, all of them in order, there is one part.
    """
    total, family, record = joint.evidence, joint.evidence.family, parts[0].record
    average = (average_degrees if joint.averaged else fit_degree)(total, 1.0, constraint=problem.law.constraint)
    matrix, _ = system(total)
    law, first_degree = trimmed(average, family), average.path[0]
    # of an average over degrees each has its own in the table
    active, contacts = (first_degree.active, first_degree.contacts) if len(average.path) == 1 else ((), ())
    if problem.method.ridge is not None:
        shrunk = estimate(total, 1.0, constraint=problem.law.constraint, ridge=problem.method.ridge)
        law, contacts = shrunk.law, shrunk.solution.contacts
        active = tuple(np.flatnonzero(shrunk.solution.active).tolist())
    places = sorted(joint.fits)
    fits = [joint.fits[k] for k in places]
    first, resolution = fits[0], combined(fits, matrix)
    given = joint_given_law(total if total.joint else first.evidence)
    units = {"q": float(record.q or 0.0), "blur": record.dx[-1] ** 2}  # of what is estimated jointly with the law
    posterior = Posterior(
        family,
        average.path,
        average.components,
        felt(average, family, matrix, np.stack([resolution.time_shift, resolution.mesh_shift])),
        problem.law.constraint,
        given.scaled(np.array([units[name] for name in given.names])) if given.names else None,
    )
    rise = float(np.sum((matrix @ (average.coefficients - average.free)) ** 2))
    quality = [
        {
            "dx": part.record.dx,
            "boundary": part.record.boundary,
            "noise": own.noise,
            "status": own.status,
            "time_size": (own.resolution or resolution).time_size,
            "mesh_size": (own.resolution or resolution).mesh_size,
            "distance": joint.distance,
            "constraint_rise": rise,
            "adequacy": own.adequacy,
        }
        for part, own in zip(parts, fits, strict=False)
    ]
    common: dict[str, Any] = quality[0] | {
        "rounds": joint.rounds,
        "substeps": first.substeps,
        "extra_structure": posterior.extra_structure(),
    }
    if tiles is None:
        fit, names = first.fields, [f"record {k + 1}" for k in places]
        likelihood = Likelihood(
            **common,
            steps=fit.steps,
            segments=fit.segments,
            residual_map=residual_map(fit),
            residual_frames=_frame_noise([first], [(0, record.frames)], record.frames),
            initial=_initial(fit, law),
            others=tuple(FitQuality(**other) for other in quality[1:]),
        )
        misfit, rows = float(np.linalg.norm(fit.residual) / np.sqrt(first.power)), first.evidence.rows
    else:
        names = [tile_name(k + 1, tiles[k]) for k in places]
        likelihood = _of_tiles(joint, tiles, names, common, resolution, record.frames)
        misfit = float(np.sqrt(sum(r.cost for r in fits) / sum(r.power for r in fits)))
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
        # at a lower degree in the least-squares sense: the rest is negligible by choice of the degree
        unconstrained=np.asarray(np.linalg.lstsq(law.family.elevation(family), average.free, rcond=None)[0]),
        ridge=None,
        supports=(),
        support_spread=0.0,
        survey=parts[0].survey,
        likelihood=likelihood,
        contacts=contacts,
    )
    agreed = agreements([system(r.evidence) for r in fits], names) if len(fits) > 1 else ()
    return Answer(law, diagnostics, posterior, agreed)


def _of_tiles(
    joint: Joint, tiles: Sequence[Region], names: Sequence[str], common: dict[str, Any], resolution: Resolution,
    frames: int,
) -> Likelihood:  # fmt: skip
    """Return how the fit of a record in tiles went: pooled noise, the tests of the worst tile."""
    places = sorted(joint.fits)
    fits, regions = [joint.fits[k] for k in places], [tiles[k] for k in places]
    unfinished = [f"{name}, {r.status.text}" for name, r in zip(names, fits, strict=True) if not r.status.converged]
    status = Status(Convergence.TILES, 0.0, 0)
    if len(unfinished) > _FEW * len(fits):
        status = next(r.status for r in fits if not r.status.converged)
    freedom = sum(r.evidence.rows - r.theta.size for r in fits)
    tests = [(r.adequacy, n.split(" (")[0]) for r, n in zip(fits, names, strict=True) if r.adequacy is not None]
    lost = [f"{tile_name(k + 1, tiles[k])}: {joint.lost[k].status.text}" for k in sorted(joint.lost)]
    numbers = common | {
        "noise": float(np.sqrt(sum(r.cost for r in fits) / freedom)),
        "status": status,
        "time_size": resolution.time_size,
        "mesh_size": resolution.mesh_size,
        "adequacy": worst_of_parts(tests),
    }
    return Likelihood(
        **numbers,
        steps=(),
        segments=1,
        residual_map=_tile_map(fits, regions, tiles),
        residual_frames=_frame_noise(fits, [region.frames for region in regions], frames),
        tiles=Tiling(
            shape=tuple(np.max([tile_shape(region) for region in tiles], axis=0).tolist()),
            read=len(fits),
            empty=len(tiles) - len(fits) - len(lost),
            lost=tuple(lost),
            unfinished=tuple(unfinished),
            checked=len(tests),
        ),
    )


def combined(fits: Sequence[PartFit], matrix: Array) -> Resolution:
    """Return the shifts by time step and mesh of the common law: each part that measured them moves it by its weight.

    They stand for all parts: a finer step or mesh moves every tile by the same amount. Sizes are in standard errors of
    all parts.
    """
    measured = [(system(r.evidence)[0], r.resolution) for r in fits if r.resolution is not None]
    if len(fits) == 1:
        return measured[0][1]
    pulls = [root @ np.stack([res.time_shift, res.mesh_shift], axis=1) for root, res in measured]
    shifts = np.linalg.lstsq(np.vstack([root for root, _ in measured]), np.vstack(pulls), rcond=None)[0].T
    return Resolution(*shifts, *np.linalg.norm(shifts @ matrix.T, axis=1).tolist())


def _initial(fit: Trajectory, law: Law) -> Any:
    """Return the initial field that fits best with a law near the point of linearisation."""
    there = fit.family.at(law.family.degree).elevation(fit.family) @ law.coefficients
    theta, mesh = np.concatenate([joint_given_law(fit.evidence).mean(there), there]), fit.record.mesh
    return _single(fit.moved(theta).ravel()[: prod(mesh)].reshape(mesh))


def _single(field: Any) -> Any:
    single = field.astype(np.float32)
    single.flags.writeable = False
    return single


def felt(average: DegreeAverage, family: Family, matrix: Array, shifts: Array) -> Array:
    """Return the shifts, one per row, with those that the data cannot feel replaced by how far they move the average.

    Where the record holds no information, a shift of a millionth of a standard error is as large as the error itself,
    and a band with it would be wider than the law ten thousand times; the average over degrees does not follow it
    there.
    """
    pull = matrix.T @ matrix
    fraction = np.zeros_like(pull)
    for item in average.components:
        lift = family.at(item.degree).elevation(family)
        fraction += item.weight * (lift @ item.covariance @ lift.T @ pull)
    small = np.linalg.norm(shifts @ matrix.T, axis=1) < _UNFELT
    return np.where(small[:, None], shifts @ fraction.T, shifts)


def trimmed(average: DegreeAverage, top: Family) -> Law:
    """Return the average law at the highest degree whose weight counts."""
    kept = [item for item in average.components if item.weight >= _NEGLIGIBLE]
    family, total, sums = top.at(kept[-1].degree), 0.0, np.zeros(1)  # components are in the order of their degrees
    for item in kept:
        sums = sums + item.weight * (family.at(item.degree).elevation(family) @ item.coefficients)
        total += item.weight
    law = Law(family, sums / total)
    if family.even or law.structure.ok:
        return law
    return Law(top, average.coefficients)  # laws with different maxima may add up to one with two


def residual_map(fit: Trajectory) -> Array:
    """Return how far the residual's variance in each block of cells is from the mean, in standard deviations.

    Zero where a block holds no value that tells of noise.
    """
    kept = noisy(fit.record)
    sums = np.sum(np.where(kept, fit.residual / fit.noise, 0.0) ** 2, axis=0)
    counts = np.count_nonzero(kept, axis=0).astype(float)
    for axis, cells in enumerate(sums.shape):
        edges = np.linspace(0, cells, min(cells, _BLOCKS) + 1).round().astype(int)[:-1]
        sums, counts = np.add.reduceat(sums, edges, axis=axis), np.add.reduceat(counts, edges, axis=axis)
    return _deviations(sums, counts)


def _tile_map(fits: Sequence[PartFit], regions: Sequence[Region], tiles: Sequence[Region]) -> Array:
    """Return the same for tiles in space."""
    places = list(dict.fromkeys(region.cells for region in tiles))
    shape = tuple(len({place[axis] for place in places}) for axis in range(len(places[0])))
    sums, counts = np.zeros(len(places)), np.zeros(len(places))
    for own, region in zip(fits, regions, strict=True):
        sums[places.index(region.cells)] += own.cost
        counts[places.index(region.cells)] += own.evidence.rows - own.theta.size
    return _deviations(sums, counts).reshape(shape)


def _deviations(sums: Array, counts: Array) -> Array:
    """Return how far mean squares are from the common one, in standard deviations (Wilson and Hilferty)."""
    none, freedom = counts == 0.0, np.maximum(counts, 1.0)
    spread = 2.0 / (9.0 * freedom)  # the cube root of a chi-square is close to normal
    ratio = sums / freedom / (np.sum(sums) / np.sum(counts))
    return np.asarray(np.where(none, 0.0, (np.cbrt(ratio) - (1.0 - spread)) / np.sqrt(spread)))


def _frame_noise(fits: Sequence[PartFit], spans: Sequence[tuple[int, int]], frames: int) -> Array:
    """Return the standard deviation of the residual of each frame, 0 where nothing of it was observed."""
    sums, counts = np.zeros(frames), np.zeros(frames)
    for own, span in zip(fits, spans, strict=True):
        sums[slice(*span)] += own.sums
        counts[slice(*span)] += own.counts
    return np.asarray(np.sqrt(sums / np.maximum(counts, 1.0)))
