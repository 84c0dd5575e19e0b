"""Iterate: the steps of the solver for a batch, and why it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite, log
from typing import Any

import numpy as np

from doublewell.hints import Array, Bools
from doublewell.likelihood.programs import compiled
from doublewell.stop import current


class Convergence(Enum):
    """Why an iteration ended, as a sentence for a size and a number of steps."""

    CONVERGED = "converged: the last step was {size:.2g} standard errors"
    NEAR = "converged: the next step would be {size:.2g} standard errors"
    ROUND_OFF = "converged: the last step, of {size:.2g} standard errors, was too small to lower the cost"
    FOLLOWED = "converged: the last step lowered the cost by {size:.1g} of it"
    TILES = "converged: the fields of the tiles follow one law"
    NO_DECREASE = "stopped: no fraction of the step lowers the cost"
    SHORTENED = "stopped: a step had to be shortened"
    MOST_STEPS = "stopped: {steps} steps, the last one {size:.2g} standard errors"
    TIME_LIMIT = "stopped: the time was over after {steps} steps, the last one {size:.2g} standard errors"
    NOT_FOLLOWED = "stopped: {steps} steps, the last one lowered the cost by {size:.1g} of it"
    UNFINISHED = "stopped: the solves behind the errors reached only {size:.1g} of their start"


_GOOD = (Convergence.CONVERGED, Convergence.NEAR, Convergence.ROUND_OFF, Convergence.FOLLOWED, Convergence.TILES)


@dataclass(frozen=True)
class Status:
    """Why an iteration ended, with its numbers.

    ``size`` is that of the last step in standard errors, its relative decrease of the cost where a given law was
    followed, or the worst residual of the solves behind the errors. ``segments`` and ``apart`` are the number of
    segments that were tried and the noise that they leave, where one trajectory does not converge.
    """

    code: Convergence
    size: float
    steps: int
    segments: int = 1
    apart: float | None = None

    @property
    def converged(self) -> bool:
        """Whether the iteration ended where it should."""
        return self.code in _GOOD

    @property
    def text(self) -> str:
        """The status as a sentence."""
        words = self.code.value.format(size=self.size, steps=self.steps)
        if self.apart is None:
            return words
        return f"{words}; cut into {self.segments} segments the record leaves a noise of {self.apart:.3g}"


@dataclass(frozen=True)
class Step:
    """One Gauss-Newton step: cost before and after, its size in standard errors, the fraction taken, and the solve.

    ``stage`` is "whole record", or "segments, links w" while the record is still cut into segments whose ends count w
    times as much as an observation.
    """

    number: int
    before: float
    after: float
    size: float
    length: float
    iterations: int
    residual: float
    stage: str = "whole record"

    @property
    def done(self) -> float:
        """The fraction of a fit that is made: half of it before the first step; then sizes fall threefold a step."""
        left = max(0.0, log(max(self.size, 1e-300) / RULE.small, 3.0)) if isfinite(self.size) else RULE.most
        return 0.5 + 0.5 * self.number / (self.number + left)

    def __str__(self) -> str:
        return (
            f"{self.stage}, step {self.number}: cost {self.after:.6g}, moved {self.size:.2g} standard errors, "
            f"{self.iterations} CG iterations to {self.residual:.1e}"
        )


Watch = Callable[[Step], None]


@dataclass(frozen=True)
class Rule:
    """When an iteration ends: at a step in theta below ``small`` standard errors, or after ``most`` steps.

    In a narrow valley it continues, to the ``last`` step, while the cost falls by a tenth in ``most`` steps.

    With ``gain`` theta is held and the fields follow it: the iteration ends at a step that lowers the cost by less than
    this part of it.
    """

    most: int = 15
    small: float = 0.05
    least: int = 1
    gain: float | None = None
    last: int = 0

    def ends(self, steps: Sequence[Step], *, patient: bool = True) -> Status | None:
        """Return why the iteration ends after these steps, None where it continues.

        One that is not patient ends at the first step that has to be shortened.
        """
        last, count, code = steps[-1], len(steps), None
        if self.gain is not None:
            gained = (last.before - last.after) / last.before if last.before > 0.0 else 0.0
            if gained <= self.gain:  # NaN is not
                return Status(Convergence.FOLLOWED, max(gained, 0.0), count)
            return Status(Convergence.NOT_FOLLOWED, gained, count) if count == self.most else None
        small, near = (size <= self.small and count >= self.least for size in (last.size, next_size(steps)))
        if last.length == 0.0:  # a small step: round-off hides what it would gain
            code = Convergence.ROUND_OFF if small else Convergence.NO_DECREASE
        elif last.length == 1.0 and small:
            code = Convergence.CONVERGED
        elif near:
            return Status(Convergence.NEAR, next_size(steps), count)
        elif count >= self.most and (count >= self.last or last.after > _SLOW * steps[-self.most].before):
            code = Convergence.MOST_STEPS
        elif not patient and last.length < 1.0:
            code = Convergence.SHORTENED
        return None if code is None else Status(code, last.size, count)


def next_size(steps: Sequence[Step]) -> float:
    """Return the size of the next step where the last two were whole ones: it is smaller by their ratio once more."""
    if len(steps) < 2 or min(steps[-1].length, steps[-2].length) < 1.0 or steps[-1].size > _CLOSE:
        return float("inf")
    return steps[-1].size ** 2 / max(steps[-2].size, steps[-1].size)


RULE = Rule(last=60)
_CLOSE = 1.0  # standard errors of a step that may be the last one: the evidence holds one more
_SLOW = 0.9  # of the cost before ``most`` steps: an iteration that leaves more has stalled


@dataclass(eq=False)
class Iteration:
    """Where the iterations of a batch ended; every list has one entry for each record."""

    nuisance: Array
    theta: Array
    steps: list[list[Step]]
    status: list[Status]
    segments: list[int] = field(default_factory=list)
    levels: list[Any] = field(default_factory=list)
    change: Array | None = None  # what shorter steps than the ``inner`` ones, which are linearised, change
    inner: int | None = None
    point: Any = None  # of the programs, from which more steps can be made

    def put(self, indices: Sequence[int], other: Iteration) -> None:
        """Put other iterations in the given places; their steps follow what was tried before."""
        self.nuisance, self.theta = self.nuisance.copy(), self.theta.copy()
        self.nuisance[indices], self.theta[indices] = other.nuisance, other.theta
        for k, at in enumerate(indices):
            self.steps[at] += other.steps[k]
            self.status[at], self.segments[at] = other.status[k], other.segments[k]


def iterate(
    model: Any, constants: Any, data: Array, nuisance: Array, theta: Array, *, freedom: int, lines: Array | None = None,
    rule: Rule = RULE, patient: Bools | None = None, stage: str = "whole record", watch: Watch | None = None,
    point: Any = None,
) -> Iteration:  # fmt: skip
    """Step until every record of a batch has ended by the rule, or the time is over; one that has ended stays.

    `freedom` is the number of observations less that of parameters; theta moves along `lines`, by default all its
    entries; `watch` is called with the largest of each round of steps. A `point` is that of an iteration that ended
    here with other data.
    """
    code, count = compiled(), len(data)
    step = code.advance if rule.gain is None else code.follow
    steps: list[list[Step]] = [[] for _ in data]
    ended: dict[int, Status] = {}
    over = current().over()
    if over:
        point = None
    elif point is None:
        point = code.begin(model, nuisance, theta, data, constants, lines)
    else:
        point = code.compared(model, point, data, constants)
    while point is not None and len(ended) < count and not over:
        running = [k for k in range(count) if k not in ended]
        point = step(model, point, data, constants, np.isin(np.arange(count), running))
        for k in running:
            moved = float(point.size[k]) / float(np.sqrt(point.cost[k] / freedom))  # in standard errors
            numbers = float(point.before[k]), float(point.cost[k]), moved, float(point.length[k])
            solve = int(point.iterations[k]), float(point.residual[k])
            steps[k].append(Step(len(steps[k]) + 1, *numbers, *solve, stage))
            status = rule.ends(steps[k], patient=patient is None or bool(patient[k]))
            if status is not None:
                ended[k] = status
        if watch is not None:
            watch(max((steps[k][-1] for k in running), key=lambda taken: taken.size))
        over = len(ended) < count and current().over()
    status_of = [ended.get(k) or unfinished(own) for k, own in enumerate(steps)]
    nuisance, theta = (nuisance, theta) if point is None else (point.nuisance, point.theta)
    return Iteration(np.asarray(nuisance), np.asarray(theta), steps, status_of, [1] * count, point=point)


def unfinished(steps: Sequence[Step]) -> Status:
    """Return the status of an iteration whose time was over after these steps."""
    return Status(Convergence.TIME_LIMIT, steps[-1].size if steps else float("inf"), len(steps))
