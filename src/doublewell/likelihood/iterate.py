"""Iterate: the solver's functions compiled for a batch, its steps, and why it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from math import isfinite, log
from types import SimpleNamespace
from typing import Any

import numpy as np

from doublewell.hints import Array, Bools
from doublewell.runtime import double_precision, on_gpu, single_precision
from doublewell.stop import current

# errors of solves over the length of what is solved for: benchmarks/trajectory_cost.py --runs
STEP_TOLERANCE = 0.1  # of a step, over its own length: the next one begins with what is left
SOLVE_TOLERANCE = 1e-2  # of sensitivities, which enter by their squares
TEST_TOLERANCE = 0.05  # of directions that are tested, over what is left of them: lengths to a thousandth
PROBE_TOLERANCE = 1e-3  # of what is left of noise, whose squares are compared
CG_MOST = 200
AT_ONCE = 8  # directions that are projected by one program, which linearises once for them
_TOGETHER = 16  # solves at a time on a GPU, which waits for its next kernel, where a core waits for its numbers


def compiled() -> Any:
    """Return the functions of the solver, and choose, compiled for the device of this call.

    Solves whose errors are larger than those of single precision are made in it, twice as fast, where the model allows.

    The first argument is the model; all others but the constants have a leading record axis, and of these the prior:
    one record is a batch of one. One compilation serves all records of a shape.
    """
    return _compiled(_TOGETHER if on_gpu() else 1)


@lru_cache(maxsize=2)
def _compiled(together: int) -> Any:
    import jax
    import jax.numpy as jnp

    from doublewell.likelihood import gauss_newton

    def options(tolerance: float) -> dict[str, Any]:
        return {"tolerance": tolerance, "most": CG_MOST}

    def over(function: Any, count: int, *, single: bool = False) -> Any:
        def batched(model: Any, *arguments: Any) -> Any:
            constants = arguments[-1]
            shared = constants._make([0 if name in ("prior", "links") else None for name in constants._fields])
            return jax.vmap(partial(function, model), in_axes=(*(0,) * count, shared))(*arguments)

        program = jax.jit(batched, static_argnums=0)

        def run(model: Any, *arguments: Any) -> Any:
            current().check()
            if not (single and model.rounds):
                return program(model, *arguments)
            arguments = jax.tree.map(_rounded, arguments)
            with single_precision():
                return program(model, *arguments)

        return run

    tangents = over(gauss_newton.tangents_at, 3)
    solves = over(partial(gauss_newton.without_nuisance, together=together, **options(SOLVE_TOLERANCE)), 3, single=True)
    eliminated = over(lambda _, *rest: gauss_newton.eliminated(*rest), 3)

    def sensitivity(model: Any, nuisance: Any, theta: Any, data: Any, constants: Any) -> Any:
        at = tangents(model, nuisance, theta, data, constants)
        return eliminated(model, theta, at, solves(model, nuisance, theta, at.basis, constants), constants)

    def choose(mask: Any, new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(jnp.reshape(mask, (-1, *(1,) * (jnp.ndim(a) - 1))), a, b), new, old)

    return SimpleNamespace(
        start=lambda nuisance, theta: gauss_newton.Point(nuisance, theta, *[()] * 6),
        begin=over(gauss_newton.begin, 3),
        advance=over(partial(gauss_newton.advance, **options(STEP_TOLERANCE)), 2),
        follow=over(partial(gauss_newton.follow, **options(STEP_TOLERANCE)), 2),
        sensitivity=sensitivity,
        predict=over(lambda model, *rest: model.predict(*rest), 2),
        whiten=over(lambda model, *rest: model.whiten(*rest), 1),
        room=over(partial(gauss_newton.room_slope, **options(STEP_TOLERANCE)), 3),
        gradient=over(gauss_newton.gradient, 2),
        column=over(gauss_newton.column, 3),
        columns=over(gauss_newton.columns, 3, single=True),
        force_needed=over(gauss_newton.force_needed, 3, single=True),
        basis=over(gauss_newton.tangent_basis, 2),
        projected_basis=over(gauss_newton.projected_basis, 3),
        project_all=over(
            partial(gauss_newton.project_all, together=together, **options(TEST_TOLERANCE)), 4, single=True
        ),
        uniform_rest=over(lambda model, *rest: model.uniform_rest(*rest), 2),
        drawn=over(lambda model, *rest: model.drawn(*rest), 3),
        path=over(lambda model, *rest: model.path(*rest), 3),
        coloured=over(lambda model, *rest: model.coloured(*rest), 1),
        uniform=over(lambda model, *rest: model.uniform(*rest), 1),
        probe=over(partial(gauss_newton.project, **options(PROBE_TOLERANCE)), 4),
        choose=jax.jit(choose),
    )


def _rounded(leaf: Any) -> Any:
    """Return numbers in single precision; all others as they are."""
    leaf = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return leaf.astype(np.float32) if leaf.dtype == np.float64 else leaf


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
        small, near = (size <= self.small and count >= self.least for size in (last.size, _next(steps)))
        if last.length == 0.0:  # a small step: round-off hides what it would gain
            code = Convergence.ROUND_OFF if small else Convergence.NO_DECREASE
        elif last.length == 1.0 and small:
            code = Convergence.CONVERGED
        elif near:
            return Status(Convergence.NEAR, _next(steps), count)
        elif count >= self.most and (count >= self.last or last.after > _SLOW * steps[-self.most].before):
            code = Convergence.MOST_STEPS
        elif not patient and last.length < 1.0:
            code = Convergence.SHORTENED
        return None if code is None else Status(code, last.size, count)


def _next(steps: Sequence[Step]) -> float:
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

    def put(self, indices: Sequence[int], other: Iteration) -> None:
        """Put other iterations in the given places; their steps follow what was tried before."""
        self.nuisance, self.theta = self.nuisance.copy(), self.theta.copy()
        self.nuisance[indices], self.theta[indices] = other.nuisance, other.theta
        for k, at in enumerate(indices):
            self.steps[at] += other.steps[k]
            self.status[at], self.segments[at] = other.status[k], other.segments[k]


def iterate(
    model: Any, constants: Any, data: Array, nuisance: Array, theta: Array, *, freedom: int, rule: Rule = RULE,
    patient: Bools | None = None, stage: str = "whole record", watch: Watch | None = None,
) -> Iteration:  # fmt: skip
    """Step until every record of a batch has ended by the rule, or the time is over; one that has ended stays.

    `freedom` is the number of observations less that of parameters; `watch` is called with the largest of each round of
    steps.
    """
    code = compiled()
    step = code.advance if rule.gain is None else code.follow
    steps: list[list[Step]] = [[] for _ in data]
    ended: dict[int, Status] = {}
    with double_precision():
        over = current().over()
        while len(ended) < len(data) and not over:
            fresh = step(model, code.start(nuisance, theta), data, constants)
            running = [k for k in range(len(data)) if k not in ended]
            moved_to = fresh.nuisance, fresh.theta
            if ended:
                moved_to = code.choose(np.isin(np.arange(len(data)), running), moved_to, (nuisance, theta))
            nuisance, theta = moved_to
            cost, before, size, length, count, rest = map(np.asarray, fresh[2:])
            for k in running:
                moved = float(size[k]) / float(np.sqrt(cost[k] / freedom))  # in standard errors
                numbers = float(before[k]), float(cost[k]), moved, float(length[k]), int(count[k]), float(rest[k])
                steps[k].append(Step(len(steps[k]) + 1, *numbers, stage))
                status = rule.ends(steps[k], patient=patient is None or bool(patient[k]))
                if status is not None:
                    ended[k] = status
            if watch is not None:
                watch(max((steps[k][-1] for k in running), key=lambda taken: taken.size))
            over = len(ended) < len(data) and current().over()
        status_of = [ended.get(k) or unfinished(own) for k, own in enumerate(steps)]
        return Iteration(np.asarray(nuisance), np.asarray(theta), steps, status_of, [1] * len(data))


def unfinished(steps: Sequence[Step]) -> Status:
    """Return the status of an iteration whose time was over after these steps."""
    return Status(Convergence.TIME_LIMIT, steps[-1].size if steps else float("inf"), len(steps))
