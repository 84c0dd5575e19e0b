"""The joint fit: parts that share one law (one record, several, the tiles of one) and the loop that fits them.

The loop is a generator. It yields the jobs that it wants done, one for each part, and receives the fit of each part;
who does them, one after the other, on a GPU in batches, in processes or on a cluster, is not its concern. It knows
evidence alone, no fields.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, inf, log2
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Evidence, eliminate_joint, joint_given_law, merge, system
from doublewell.hints import Array
from doublewell.inference.degrees import felt, law_estimator
from doublewell.inference.posterior import free_covariance
from doublewell.likelihood import LONG, Resolution, Status

_NEAR = 1.0  # standard errors between the estimate and the point of linearisation that need no other one
_NEAR_TILE = 3.0  # of a tile: a step of eleven of them was right to a fiftieth of one
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_COARSE = 0.3  # the same of a finer mesh, and of the force: it takes four times as long and more
_MOST_SUBSTEPS, _FINER = 64, 4  # steps are added up to this number, or up to so many times those of the first fit
_EXPLAINED = 0.5  # of what is left that is not noise: a finer mesh that leaves more is not kept
_PLAIN = 1.2  # times the noise of the record: a fit that leaves more is tested at once
_MATTERS = 1e-3  # of the force: less is no reason for a finer mesh
_PHASES = np.linspace(-1.0, 1.0, 201)


@dataclass(frozen=True, eq=False)
class PartFit:
    """The fit of one part.

    ``evidence`` has one block, in units of the ``noise``, linearised at ``theta``: what is estimated jointly with the
    law, then the coefficients. ``cost`` is the sum of squares that the best law leaves, ``power`` that of the values.
    ``excess`` is by how much the evidence was weakened, because the residual is not noise. ``sums`` and ``counts`` are
    the squares of the residual in each frame and how many values they are of. ``resolution`` and ``adequacy`` are there
    where they were wanted, ``fields`` where the part is in this process. ``surplus`` is the ``noise`` over that which
    the values show from frame to frame, ``refused`` whether the tests say that the model is not adequate.
    """

    evidence: Evidence
    theta: Array
    noise: float
    cost: float
    power: float
    status: Status
    solve: float
    substeps: int
    sums: tuple[float, ...]
    counts: tuple[int, ...]
    excess: float = 1.0
    resolution: Resolution | None = None
    adequacy: Any = None
    fields: Any = None
    surplus: float = 1.0
    refused: bool = False

    @property
    def resolved(self) -> bool:
        """Whether neither a finer step nor a finer mesh moves the law by more than a standard error."""
        return self.resolution is not None and max(self.resolution.time_size, self.resolution.mesh_size) < 1.0

    @property
    def sound(self) -> bool:
        """Whether all numbers are finite."""
        return bool(np.isfinite(self.evidence.blocks[0].triangle).all() and np.isfinite(self.cost))

    def distance(self, law: Array) -> float:
        """Return how far a law is from the point of linearisation, in standard errors of the part."""
        return float(np.linalg.norm(system(self.evidence)[0] @ (law - self.theta[-law.size :])))


@dataclass(frozen=True, eq=False)
class Job:
    """What the loop wants of one part: a fit of its own where ``theta`` is None, else evidence at that point.

    ``before`` is its last fit. With ``finer`` the mesh is finer than that fit's. With ``weigh`` the noise is first
    measured on its residual. ``check`` wants the resolution and, where the problem asks for it, the tests of the
    residual.
    """

    part: int
    theta: Array | None = None
    before: PartFit | None = None
    substeps: int | None = None
    finer: bool = False
    weigh: bool = False
    resolution: bool = False
    adequacy: bool = False


@dataclass(frozen=True)
class Plan:
    """How parts are fitted.

    ``stages`` are the parts that are read together, one stage after the other; the last one holds all. Without a
    ``start`` each part is fitted by itself at first; with one, parts are read at that point, and what is estimated
    jointly with the law is common to them. ``checked`` are the parts whose resolution and residual are tested.
    ``weighings`` is how often the noise is measured and the fit made again. A plan that ``refines`` takes a finer mesh
    where that matters.
    """

    stages: tuple[tuple[int, ...], ...]
    averaged: bool
    checked: tuple[int, ...]
    check: bool
    start: tuple[float, ...] | None = None
    weighings: int = 0
    refines: bool = False


@dataclass(frozen=True, eq=False)
class Joint:
    """What the loop ends in: the fits by part, those that were lost, their sum, and how it was reached."""

    fits: Mapping[int, PartFit]
    lost: Mapping[int, PartFit]
    evidence: Evidence
    rounds: int
    distance: float
    averaged: bool


Replies = list[PartFit | None]  # None: there was no time for the job
Loop = Generator[list[Job], Replies, Joint]
Settled = Generator[list[Job], Replies, tuple[dict[int, PartFit], int]]
Fitted = Generator[list[Job], Replies, dict[int, PartFit]]


def run_loops(loops: Sequence[Loop], read: Callable[[list[Job]], Sequence[PartFit | None]]) -> list[Joint]:
    """Run independent loops side by side; the jobs that all of them want next are done together."""
    wanted, ends = {k: next(loop) for k, loop in enumerate(loops)}, dict[int, Joint]()
    while wanted:
        replies = iter(read([job for jobs in wanted.values() for job in jobs]))
        for k, jobs in list(wanted.items()):
            try:
                wanted[k] = loops[k].send(list(islice(replies, len(jobs))))
            except StopIteration as end:
                ends[k] = end.value
                del wanted[k]
    return [ends[k] for k in range(len(loops))]


def fit_parts(plan: Plan) -> Loop:
    """Fit the law that parts share."""
    if plan.start is None:
        parts = plan.stages[-1]
        fits = own = yield from _own_fits(plan, parts)
        rounds = 1
        for k in parts:
            if not fits[k].refused:
                settled, count = yield from _settled(plan, {k: fits[k]}, common=False)
                fits, rounds = fits | settled, max(rounds, count)
        if plan.check:
            untested = [k for k in plan.checked if fits[k] is not own[k] or fits[k].adequacy is None]
            fits = yield from _tested(fits, untested)
        if len(parts) > 1:
            alone = fits
            fits, _ = yield from _settled(plan, fits, common=False, rounds=0, worse=np.inf)
            # what a record that disagrees has left at the common law is not its noise
            fits = {k: replace(fit, noise=alone[k].noise) for k, fit in fits.items()}
    else:
        fits, rounds = yield from _staged(plan, np.array(plan.start))
    total, _, far = joined(plan, fits, common=plan.start is not None)
    sound, lost = {k: r for k, r in fits.items() if r.sound}, {k: r for k, r in fits.items() if not r.sound}
    return Joint(sound, lost, total, rounds, far, plan.averaged)


def done(parts: Sequence[int], replies: Replies) -> dict[int, PartFit]:
    """Return the fits of those parts whose job was done."""
    return {k: reply for k, reply in zip(parts, replies, strict=True) if reply is not None}


def _tested(fits: dict[int, PartFit], parts: Sequence[int]) -> Fitted:
    """Have the residuals of some parts tested."""
    jobs = [Job(k, fits[k].theta, fits[k], fits[k].substeps, adequacy=True) for k in parts]
    return fits | done(parts, (yield jobs)) if jobs else fits


def _own_fits(plan: Plan, parts: Sequence[int]) -> Fitted:
    """Fit each part by itself, with steps that are short enough; then again with its noise as the fit shows it.

    A part whose fit leaves more than noise, and which no finer fit would help, is tested at once: where the model is
    refused, nothing else is worth its time.
    """
    fits: dict[int, PartFit] = {}
    refined: set[int] = set()
    first: dict[tuple[int, int], int] = {}
    for weighing in range(plan.weighings + 1):
        jobs = [Job(k, before=fits.get(k), weigh=weighing > 0, resolution=True) for k in parts]
        while jobs:
            replies = yield jobs
            later = []
            for job, reply in zip(jobs, replies, strict=True):
                if reply is None:
                    continue
                if job.finer and job.before is not None and reply.excess > max(1.0, _EXPLAINED * job.before.excess):
                    continue  # a finer mesh is not what the movie lacks
                fits[job.part] = reply
                if reply.resolution is None:
                    continue
                most = max(_MOST_SUBSTEPS, _FINER * first.setdefault((weighing, job.part), reply.substeps))
                longer = reply.resolution.time_size > LONG and reply.substeps < most
                coarse = plan.refines and job.part not in refined and too_coarse(plan, reply)
                if longer or coarse:
                    steps = min(reply.substeps * shorter_by(reply), 2 * most) if longer else reply.substeps
                    later.append(replace(job, substeps=steps, finer=coarse, before=reply, weigh=False))
                    refined |= {job.part} if coarse else set()
            if plan.check and weighing == plan.weighings:
                again = [job.part for job in later]
                ends = [job.part for job in jobs if job.part not in again or fits[job.part].resolved]
                fits = yield from _tested(fits, [k for k in ends if k in fits and fits[k].surplus > _PLAIN])
            jobs = [job for job in later if not fits[job.part].refused]
    return fits


def shorter_by(fit: PartFit) -> int:
    """Return how many times more steps a part wants, a power of two."""
    seen = fit.resolution
    if seen is None or not LONG < seen.time_size < inf:
        return 2
    return int(2 ** ceil(log2(seen.time_size / LONG) / seen.order))


def too_coarse(plan: Plan, fit: PartFit) -> bool:
    """Return whether a finer mesh would move the law by an amount that matters, to its errors and to itself.

    The shift is that of the highest degree, and the average over degrees follows it in part.
    """
    if fit.resolution is None or not fit.resolution.mesh_size > _COARSE:
        return False
    evidence = eliminate_joint(fit.evidence)
    average, family = law_estimator(averaged=plan.averaged)(evidence, 1.0, constraint="none"), evidence.family
    shift = felt(average, family, system(evidence)[0], fit.resolution.mesh_shift[None])
    spread = free_covariance(average, family)
    features = family.features(_PHASES)
    change, law = np.linalg.norm(shift @ features), np.linalg.norm(average.free @ features)
    error = np.sqrt(np.sum(features * (spread @ features)))
    return bool(change > max(_COARSE * error, _MATTERS * law))


def _settled(
    plan: Plan, fits: dict[int, PartFit], *,
    common: bool, rounds: int = 1, near: float = _NEAR, check: bool = False, worse: float = _WORSE,
) -> Settled:  # fmt: skip
    """Linearise parts again until their common estimate lies near the point of linearisation of each.

    A point where a part's residual grows is not taken, and the next one is nearer: the force of a high degree may run
    away beyond the pure phases, where a movie that the model does not describe can have values.
    """
    fits, fractions = dict(fits), dict.fromkeys(fits, 1.0)
    while rounds < _MOST_ROUNDS:
        total, law, far = joined(plan, fits, common=common)
        if far <= near:
            break
        jobs = []
        for k, fit in fits.items():
            if not fit.sound:
                continue
            start = fit.theta[-law.size :]
            target = start + fractions[k] * (law - start)
            joint = joint_given_law(total if common else fit.evidence).mean(target)
            job, tested = Job(k, np.concatenate([joint, target]), fit, fit.substeps), check and k in plan.checked
            jobs.append(replace(job, resolution=tested, adequacy=tested and plan.check))
        for job, reply in zip(jobs, (yield jobs), strict=True):
            if reply is None:
                return fits, rounds
            if reply.noise <= worse * fits[job.part].noise:
                fits[job.part] = replace(reply, adequacy=reply.adequacy or fits[job.part].adequacy)
            else:
                fractions[job.part] *= 0.25
        rounds += 1
    return fits, rounds


def _staged(plan: Plan, theta: Array) -> Settled:
    """Read a few parts first, then more, each stage at the law that the one before leads to."""
    rounds = 0
    fits: dict[int, PartFit] = {}
    for stage in plan.stages:
        last = stage is plan.stages[-1]
        tested = plan.checked if last else ()
        replies = yield [Job(k, theta, resolution=k in tested, adequacy=k in tested and plan.check) for k in stage]
        fits = done(stage, replies)
        rounds += 1
        if len(stage) > 1 or last:
            settled = _settled(plan, fits, common=True, rounds=rounds, near=_NEAR_TILE, check=last)
            fits, rounds = yield from settled
        total, law, _ = joined(plan, fits, common=True)
        theta = np.concatenate([joint_given_law(total).mean(law), law])
    return fits, rounds


def joined(plan: Plan, fits: Mapping[int, PartFit], *, common: bool) -> tuple[Evidence, Array, float]:
    """Add the evidence of parts; what each estimates jointly with the law is common to them, or its own.

    Return the sum, its unconstrained law, and how far that is from the farthest point of linearisation.
    """
    sound = [fit for fit in fits.values() if fit.sound]
    if not sound:
        raise InputError(
            "no part of the record could be followed by the law that its weak moments give: expected a movie that "
            "obeys the equation; check the units of dx, dt and q, or use the weak-form fit"
        )
    each = [fit.evidence if common else eliminate_joint(fit.evidence) for fit in sound]
    total = each[0] if len(each) == 1 and common else merge(each)
    law = law_estimator(averaged=plan.averaged)(total, 1.0, constraint="none").free
    return total, law, max(fit.distance(law) for fit in sound)
