"""Conclude: from what the loop ends in to the law, its posterior and the numbers that defend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from doublewell.adequacy import worst_of_parts
from doublewell.compute.partition import Region, tile_name, tile_shape
from doublewell.evidence import (
    Evidence,
    contract,
    eliminate_joint,
    joint_given_law,
    merge,
    pooled,
    system,
    weakened,
)
from doublewell.hints import Array
from doublewell.identify.agreement import agreements
from doublewell.identify.parts import Part
from doublewell.inference import DegreeAverage, Posterior, estimate
from doublewell.inference.degrees import felt, law_estimator, mix
from doublewell.inference.estimate import column_scale
from doublewell.inference.joint import Joint, PartFit
from doublewell.inference.posterior import free_covariance
from doublewell.law import Family, Law
from doublewell.likelihood import Convergence, Resolution, Status, Trajectory
from doublewell.observation.view import CONTRAST, SOME_BLUR, joint_parameters, middle_half, noisy
from doublewell.problem import Problem
from doublewell.result import Agreement, Contrast, Diagnostics, FitQuality, Likelihood, Tiling

_NEGLIGIBLE = 1e-4  # weight of a degree that is left out of the law
_BLOCKS = 48  # along each axis of the map of the residual
_FEW = 0.05  # of the tiles that may be left unfinished
_POINTS = 201
_BLURS = 3  # values of a blur that is not declared, beside none


@dataclass(frozen=True, eq=False)
class Answer:
    """A law, its posterior (none of a weak-form fit) and the numbers behind it, for phases at -1 and +1.

    ``phases`` are those that the law is to have.
    """

    law: Law
    diagnostics: Diagnostics
    phases: tuple[float, float]
    posterior: Posterior | None = None
    agreements: tuple[Agreement, ...] = ()

    def placed(self, values: tuple[float, float]) -> Answer:
        """Return the same for the phases: u = middle + half s has the force half G(s).

        `values` are those of the record that the fit had at -1 and +1: fields, noise and survey become those of the
        record again.
        """
        if self.phases == values == (-1.0, 1.0):
            return self
        middle, half = middle_half(values)
        numbers, posterior = self.diagnostics, self.posterior
        fit = numbers.likelihood
        if fit is not None:
            initial = None if fit.initial is None else _single(middle + half * fit.initial)
            fit = replace(fit, noise=half * fit.noise, residual_frames=half * fit.residual_frames, initial=initial)
        if posterior is not None:
            posterior = replace(posterior, family=posterior.family.placed(self.phases))
        numbers = replace(numbers, survey=numbers.survey.scaled(half, middle), likelihood=fit)
        return replace(self, law=self.law.placed(self.phases), diagnostics=numbers, posterior=posterior)


def conclude(problem: Problem, parts: Sequence[Part], joint: Joint, tiles: Sequence[Region] | None = None) -> Answer:
    """Estimate the law from the evidence of all parts, with the constraint, and gather what it rests on.

    The fields are those of the first record; of a record in `tiles`, all of them in order, there is one part.
    """
    total, family, record = joint.evidence, joint.evidence.family, parts[0].record
    places = sorted(joint.fits)
    fits = [joint.fits[k] for k in places]
    each = [total] if total.joint else [r.evidence for r in fits]
    average = law_estimator(averaged=problem.averaged)(total, 1.0, constraint=problem.law.constraint)
    if parts[0].view.optics.blur == "some" and len(each) == 1:
        average = perhaps_sharp(problem, each[0], average)
    matrix, _ = system(total)
    law, first_degree = trimmed(average, family), average.path[0]
    # of an average over degrees each has its own in the table
    active, contacts = (first_degree.active, first_degree.contacts) if len(average.path) == 1 else ((), ())
    if problem.method.ridge is not None:
        shrunk = estimate(total, 1.0, constraint=problem.law.constraint, ridge=problem.method.ridge)
        law, contacts = shrunk.law, shrunk.solution.contacts
        active = tuple(np.flatnonzero(shrunk.solution.active).tolist())
    first, resolution = fits[0], combined(fits, matrix)
    given = joint_given_law(pooled(each, "theta") if "theta" in each[0].joint else each[0])
    phases, contrasts = estimate_contrast(problem, parts, each, average)
    units, shifts = units_of(parts[0], phases, given.names)
    shifted = np.stack([resolution.time_shift, resolution.mesh_shift])
    posterior = Posterior(
        family,
        average.path,
        average.components,
        np.vstack([felt(average, family, matrix, shifted), average.unseen]),
        problem.law.constraint,
        given.scaled(units, shifts) if given.names else None,
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
            "contrast": contrast,
            "refine": part.view.refine if own.fields is None else own.fields.batch.view.refine,
            "excess": own.excess,
        }
        for part, own, contrast in zip(parts, fits, contrasts, strict=False)
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
    # a part whose residual is not noise shows it here, unless that of every part is not
    usual = min(r.excess for r in fits)
    agreed = agreements([system(weakened(r.evidence, usual / r.excess)) for r in fits], names) if len(fits) > 1 else ()
    return Answer(law, diagnostics, phases, posterior, agreed)


def estimate_contrast(
    problem: Problem, parts: Sequence[Part], each: Sequence[Evidence], average: DegreeAverage
) -> tuple[tuple[float, float], list[Contrast | None]]:
    """Return the phases of the law, and gain and offset of each record where they were estimated.

    `each` is the evidence of each record with the columns that it estimates. Where the phases are estimated, they are
    the plateaus of the record.
    """
    declared = problem.observation.phases
    if "gain" not in each[0].joint:
        if problem.family.found:
            declared = parts[0].phases
        return (parts[0].phases if isinstance(declared, str) else declared), [None] * len(parts)
    plateaus, best, exact, names = [], [], [], [parameter.name for parameter in CONTRAST]
    for part, evidence in zip(parts, each, strict=False):
        mean = dict(zip(evidence.joint, joint_given_law(evidence).mean(average.coefficients).tolist(), strict=True))
        middle, half = middle_half(part.phases)
        gain, offset = (mean[name] + 0.5 * mean.get(f"{name} drift", 0.0) for name in ("gain", "offset"))
        plateaus.append((middle + half * (offset - gain), middle + half * (offset + gain)))
        phases = plateaus[0] if isinstance(declared, str) else declared
        target, size = middle_half(phases)
        best.append({name: mean[name] for name in names if name in mean})
        exact.append(dict.fromkeys(best[-1], 0.0) | {"gain": size / half, "offset": (target - middle) / half})
    family = each[0].family
    features = family.features(np.linspace(-1.0, 1.0, _POINTS))
    forces, spreads = [], []
    for values in (None, best, exact):
        held = each if values is None else [contract(e, v) for e, v in zip(each, values, strict=True)]
        mixture = law_estimator(averaged=problem.averaged)(merge([*map(eliminate_joint, held)]), 1.0, constraint="none")
        forces.append(mixture.free @ features)
        spreads.append(float(np.sqrt(np.sum(features * (free_covariance(mixture, family) @ features)))))
    change = float(np.linalg.norm(forces[2] - forces[0]) / np.linalg.norm(forces[0]))
    cost = spreads[0] / spreads[1]
    contrasts: list[Contrast | None] = []
    for pair in plateaus:
        middle, half = middle_half(pair)
        contrasts.append(Contrast(half / size, middle - target, pair, change, cost))
    return phases, contrasts


def perhaps_sharp(problem: Problem, total: Evidence, average: DegreeAverage) -> DegreeAverage:
    """Return the average over sharp pictures and pictures with some blur, each as likely before; a blur is positive.

    `average` is that over a blur of either sign. What the data say of the two is how likely no blur is after them, over
    how likely it was (Savage and Dickey). A blur that is there has a few values, each as likely as the next.
    """
    from scipy.special import log_ndtr, ndtr, ndtri

    family, given, k = total.family, joint_given_law(total), total.joint.index("blur")
    spread = free_covariance(average, family)
    own = np.linalg.solve(given.root.T, np.eye(len(given.names))[k])
    mean, sd = float(given.mean(average.free)[k]), float(np.sqrt(own @ own + given.slope[k] @ spread @ given.slope[k]))
    both = (mean, sd), (SOME_BLUR.start, SOME_BLUR.prior)
    after, before = (-0.5 * (m / s) ** 2 - np.log(s) - log_ndtr(m / s) for m, s in both)  # densities at zero
    sharp = 1.0 / (1.0 + float(np.exp(min(before - after, 500.0))))
    above = (np.arange(_BLURS) + 0.5) / _BLURS
    values = [0.0, *np.maximum(mean - sd * ndtri(ndtr(mean / sd) * above), 0.0).tolist()]
    weights = [sharp, *[(1.0 - sharp) / _BLURS] * _BLURS]
    fit, held = law_estimator(averaged=problem.averaged), [contract(total, {"blur": value}) for value in values]
    each = [fit(evidence, 1.0, constraint=problem.law.constraint) for evidence in held]
    return mix([*zip(weights, each, strict=True)], family)


def units_of(part: Part, phases: tuple[float, float], names: Sequence[str]) -> tuple[Array, Array]:
    """Return units and shifts of what is estimated jointly with the law: gain and offset become those of the record."""
    known = {parameter.name: parameter for parameter in joint_parameters(part.view)}
    named, shifts = [known.get(name) for name in names], np.zeros(len(names))
    (middle, half), (target, size) = middle_half(part.phases), middle_half(phases)
    units = np.array([size**2 if own is None else own.scale(part.record) for own in named])  # theta is a square of u
    for k, parameter in enumerate(named):
        if parameter in CONTRAST:
            units[k] = half / size if parameter.name.startswith("gain") else half
            shifts[k] = middle - target if parameter.name == "offset" else 0.0
    return units, shifts


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
    if not measured:  # there was no time
        unmoved = np.zeros(matrix.shape[1])
        return Resolution(unmoved, unmoved, np.nan, np.nan)
    if len(fits) == 1:
        return measured[0][1]
    pulls = [root @ np.stack([res.time_shift, res.mesh_shift], axis=1) for root, res in measured]
    shifts = np.linalg.lstsq(np.vstack([root for root, _ in measured]), np.vstack(pulls), rcond=None)[0].T
    return Resolution(*shifts, *np.linalg.norm(shifts @ matrix.T, axis=1).tolist())


def _initial(fit: Trajectory, law: Law) -> Any:
    """Return the initial field that fits best with a law near the point of linearisation."""
    there = fit.family.at(law.family.degree).elevation(fit.family) @ law.coefficients
    mesh = fit.record.mesh
    return _single(fit.moved(fit.theta_at(there)).ravel()[: prod(mesh)].reshape(mesh))


def _single(field: Any) -> Any:
    single = field.astype(np.float32)
    single.flags.writeable = False
    return single


def trimmed(average: DegreeAverage, top: Family) -> Law:
    """Return the average law at the highest degree whose weight counts."""
    kept = [item for item in average.components if item.weight >= _NEGLIGIBLE]
    family, total, sums = top.at(max(item.degree for item in kept)), 0.0, np.zeros(1)
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
    kept = noisy(fit.record, fit.batch.border)
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
