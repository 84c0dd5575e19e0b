"""The joint fit: parts that share one law (one record, several, the tiles of one) and the loop that fits them.

The loop is a generator. It yields the jobs that it wants done, one for each part, and receives what each part says; who
does them, one after the other, on a GPU in batches, in processes or on a cluster, is not its concern. It knows evidence
alone, no fields.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Evidence, eliminate_joint, joint_given_law, merge, system
from doublewell.hints import Array
from doublewell.inference.degrees import average_degrees, fit_degree
from doublewell.likelihood import Resolution, Status

_NEAR = 1.0  # standard errors between the estimate and the point of linearisation that need no other one
_NEAR_TILE = 3.0  # of a tile: a step of eleven of them was right to a fiftieth of one
_WORSE = 1.05  # growth of the residual at which a point of linearisation is not taken
_MOST_ROUNDS = 5
_RESOLVED = 0.1  # standard errors by which half the time step may move the estimate


@dataclass(frozen=True, eq=False)
class Reading:
    """What one part says of a law.

    ``evidence`` has one block, in units of the ``noise``, linearised at ``theta``: what is estimated jointly with the
    law, then the coefficients. ``cost`` is the sum of squares that the best law leaves, ``power`` that of the
    values. ``sums`` and ``counts`` are the squares of the residual in each frame and how many values they are of.
    ``resolution`` and ``adequacy`` are there where they were wanted, ``fields`` where the part is in this process.
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
    resolution: Resolution | None = None
    adequacy: Any = None
    fields: Any = None

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

    ``before`` is what the part said last. With ``weigh`` the noise is first measured on its residual. ``check`` wants
    the resolution and, where the problem asks for it, the tests of the residual.
    """

    part: int
    theta: Array | None = None
    before: Reading | None = None
    substeps: int | None = None
    weigh: bool = False
    resolution: bool = False
    adequacy: bool = False


@dataclass(frozen=True)
class Plan:
    """How parts are fitted.

    ``stages`` are the parts that are read together, one stage after the other; the last one holds all. Without a
    ``start`` each part is fitted by itself at first; with one, parts are read at that point, and what is estimated
    jointly with the law is common to them. ``checked`` are the parts whose resolution and residual are tested.
    ``weighings`` is how often the noise is measured and the fit made again.
    """

    stages: tuple[tuple[int, ...], ...]
    averaged: bool
    checked: tuple[int, ...]
    check: bool
    start: tuple[float, ...] | None = None
    weighings: int = 0
    most_substeps: int = 64

    def average(self, total: Evidence) -> Array:
        """Return the unconstrained estimate from evidence: an average over degrees, or the fit of one."""
        return (average_degrees if self.averaged else fit_degree)(total, 1.0, constraint="none").free


@dataclass(frozen=True, eq=False)
class Joint:
    """What the loop ends in: the readings by part, those that were lost, their sum, and how it was reached."""

    readings: Mapping[int, Reading]
    lost: Mapping[int, Reading]
    evidence: Evidence
    rounds: int
    distance: float
    averaged: bool


Loop = Generator[list[Job], list[Reading], Joint]
Settled = Generator[list[Job], list[Reading], tuple[dict[int, Reading], int]]


def run_loops(loops: Sequence[Loop], read: Callable[[list[Job]], list[Reading]]) -> list[Joint]:
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
        readings = yield from _own_fits(plan, parts)
        rounds = 1
        for k in parts:
            settled, count = yield from _settled(plan, {k: readings[k]}, common=False)
            readings, rounds = readings | settled, max(rounds, count)
        if plan.check:
            jobs = [Job(k, readings[k].theta, readings[k], readings[k].substeps, adequacy=True) for k in plan.checked]
            readings |= zip(plan.checked, (yield jobs), strict=True)
        if len(parts) > 1:
            alone = readings
            readings, _ = yield from _settled(plan, readings, common=False, rounds=0, worse=np.inf)
            # what a record that disagrees has left at the common law is not its noise
            readings = {k: replace(reading, noise=alone[k].noise) for k, reading in readings.items()}
    else:
        readings, rounds = yield from _staged(plan, np.array(plan.start))
    sound = {k: reading for k, reading in readings.items() if reading.sound}
    lost = {k: reading for k, reading in readings.items() if not reading.sound}
    total = add_up(sound.values(), common=plan.start is not None)
    law = plan.average(total)
    return Joint(sound, lost, total, rounds, max(reading.distance(law) for reading in sound.values()), plan.averaged)


def _own_fits(plan: Plan, parts: Sequence[int]) -> Generator[list[Job], list[Reading], dict[int, Reading]]:
    """Fit each part by itself, with steps that are short enough; then again with its noise as the fit shows it."""
    readings: dict[int, Reading] = {}
    for weighing in range(plan.weighings + 1):
        jobs = [Job(k, before=readings.get(k), weigh=weighing > 0, resolution=True) for k in parts]
        while jobs:
            replies = yield jobs
            later = []
            for job, reply in zip(jobs, replies, strict=True):
                readings[job.part] = reply
                assert reply.resolution is not None
                if reply.resolution.time_size > _RESOLVED and reply.substeps < plan.most_substeps:
                    later.append(replace(job, substeps=2 * reply.substeps, before=reply, weigh=False))
            jobs = later
    return readings


def _settled(
    plan: Plan, readings: dict[int, Reading], *,
    common: bool, rounds: int = 1, near: float = _NEAR, check: bool = False, worse: float = _WORSE,
) -> Settled:  # fmt: skip
    """Linearise parts again until their common estimate lies near the point of linearisation of each.

    A point where a part's residual grows is not taken, and the next one is nearer: the force of a high degree may run
    away beyond the pure phases, where a movie that the model does not describe can have values.
    """
    readings, fractions = dict(readings), dict.fromkeys(readings, 1.0)
    while rounds < _MOST_ROUNDS:
        sound = {k: reading for k, reading in readings.items() if reading.sound}
        total = add_up(sound.values(), common=common)
        law = plan.average(total)
        if max(reading.distance(law) for reading in sound.values()) <= near:
            break
        jobs = []
        for k, reading in sound.items():
            start = reading.theta[-law.size :]
            target = start + fractions[k] * (law - start)
            joint = joint_given_law(total if common else reading.evidence).mean(target)
            jobs.append(_checked(plan, Job(k, np.concatenate([joint, target]), reading, reading.substeps), check))
        for job, reply in zip(jobs, (yield jobs), strict=True):
            if reply.noise <= worse * readings[job.part].noise:
                readings[job.part] = replace(reply, adequacy=reply.adequacy or readings[job.part].adequacy)
            else:
                fractions[job.part] *= 0.25
        rounds += 1
    return readings, rounds


def _checked(plan: Plan, job: Job, check: bool) -> Job:
    if not check or job.part not in plan.checked:
        return job
    return replace(job, resolution=True, adequacy=plan.check)


def _staged(plan: Plan, theta: Array) -> Settled:
    """Read a few parts first, then more, each stage at the law that the one before leads to."""
    rounds = 0
    readings: dict[int, Reading] = {}
    for stage in plan.stages:
        last = stage is plan.stages[-1]
        replies = yield [_checked(plan, Job(k, theta), last) for k in stage]
        readings = dict(zip(stage, replies, strict=True))
        rounds += 1
        if len(stage) > 1 or last:
            settled = _settled(plan, readings, common=True, rounds=rounds, near=_NEAR_TILE, check=last)
            readings, rounds = yield from settled
        sound = [reading for reading in readings.values() if reading.sound]
        if not sound:
            raise InputError(
                "no tile of the record could be followed by the law that its weak moments give: expected a movie that "
                "obeys the equation; check the units of dx, dt and q, or use the weak-form fit"
            )
        total = add_up(sound, common=True)
        law = plan.average(total)
        theta = np.concatenate([joint_given_law(total).mean(law), law])
    return readings, rounds


def add_up(readings: Iterable[Reading], *, common: bool) -> Evidence:
    """Add the evidence of parts; what each estimates jointly with the law is common to them, or its own."""
    each = [reading.evidence if common else eliminate_joint(reading.evidence) for reading in readings]
    return each[0] if len(each) == 1 and common else merge(each)
