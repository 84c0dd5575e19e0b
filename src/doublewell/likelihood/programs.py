"""Programs: the solver's functions compiled for a batch, and what is made of them: steps, sensitivities, projections.

Compiling a fit takes longer than making it, so there are few programs. Derivatives by theta are made three at a time,
along as many directions as are wanted, and one program makes all solves: of a step, of sensitivities, of directions
that are tested. Several solves are made on two cores.
"""

from __future__ import annotations

from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from doublewell.hints import Array, Bools
from doublewell.runtime import cores, double_precision, map_threads, on_gpu, single_precision
from doublewell.stop import current

# errors of solves over the length of what is solved for: benchmarks/trajectory_cost.py --runs
STEP_TOLERANCE = 0.1  # of a step, over its own length: the next one begins with what is left
SOLVE_TOLERANCE = 1e-2  # of sensitivities, which enter by their squares
TEST_TOLERANCE = 0.05  # of directions that are tested, over what is left of them: lengths to a thousandth
PROBE_TOLERANCE = 1e-3  # the same where little may be left, or squares are compared
CG_MOST = 200
AT_ONCE = 8  # directions that wait to be projected together
_OWN = ("prior", "links")  # constants of each record of a batch
_RUNAWAY = np.errstate(over="ignore", invalid="ignore")  # fields of a step that is too long; it is shortened
_SHORTEST = 2.0**-12  # a step cut this short is not taken
_HIDDEN = 0.05**2  # squared standard errors of a step whose gain round-off hides: it is not cut as short
_TOGETHER = 16  # solves at a time on a GPU, which waits for its next kernel, where a core waits for its numbers


class Point(NamedTuple):
    """Where an iteration stands, and how the last step went; one entry for each record of a batch."""

    nuisance: Any
    theta: Array
    cost: Array  # |whitened residual|^2
    before: Array  # the cost before the last step
    size: Array  # |J_g dg|: an upper bound of the step in theta, in units of the whitened residual
    length: Array  # fraction of the step that was taken; 0 when every fraction raised the cost
    iterations: Array  # of conjugate gradients
    residual: Array  # relative, of conjugate gradients
    at: Any  # the tangents there, along the ``lines`` of theta that it moves along
    lines: Array


def compiled() -> Programs:
    """Return the functions of the solver, compiled for the device of this call.

    The first argument of each is the model; all others but the constants have a leading record axis, and of these the
    prior and the links: one record is a batch of one. One compilation serves all records of a shape.
    """
    return _compiled(on_gpu())


@lru_cache(maxsize=2)
def _compiled(gpu: bool) -> Programs:
    return Programs(gpu)


class Programs(SimpleNamespace):
    """The compiled functions, as attributes, and the operations that are made of several calls.

    Solves whose errors are larger than those of single precision are made in it, twice as fast, where the model allows.
    """

    def __init__(self, gpu: bool, most: int = CG_MOST) -> None:
        solve = partial(pure().solve_all, most=most, together=_TOGETHER if gpu else 1)
        super().__init__(
            gpu=gpu,
            tangents_at=_over(partial(pure().tangents_at, together=None if gpu else pure().GROUP), 4, shared=1),
            solve_all=_over(solve, 5, shared=1, single=True),
            solve_exactly=_over(solve, 5, shared=1),
            eliminated=_each(pure().eliminated, gpu),
            orthonormal=_each(pure().orthonormal, gpu),
            predict=_over(lambda model, *rest: model.predict(*rest), 2),
            whiten=_over(lambda model, *rest: model.whiten(*rest), 1),
            room=_over(partial(pure().room_slope, tolerance=STEP_TOLERANCE, most=most), 3),
            gradient=_over(pure().gradient, 2),
            column=_over(pure().column, 3),
            columns=_over(pure().columns, 3, single=True),
            force_needed=_over(pure().force_needed, 3, single=True),
            projected_basis=_over(pure().projected_basis, 3),
            uniform_rest=_over(lambda model, *rest: model.uniform_rest(*rest), 2),
            drawn=_over(lambda model, *rest: model.drawn(*rest), 3),
            path=_over(lambda model, *rest: model.path(*rest), 3),
            coloured=_over(lambda model, *rest: model.coloured(*rest), 1),
            uniform=_over(lambda model, *rest: model.uniform(*rest), 1),
        )

    def tangents(
        self, model: Any, nuisance: Any, theta: Array, data: Any, constants: Any, lines: Array | None = None
    ) -> Any:  # fmt: skip
        """Return predictions, what they leave, and a basis of J_g along lines of theta, by default all its entries."""
        size, group = theta.shape[1], pure().GROUP
        lines = np.eye(size) if lines is None else lines
        padded = np.zeros((len(theta), -(-size // group) * group, size))
        padded[:, : len(lines)] = lines
        at = self.tangents_at(model, nuisance, theta, data, padded, np.int32(-(-len(lines) // group)), constants)
        at = pure().Tangents(*map(self._held, at))
        return at._replace(basis=self.orthonormal(at.basis))

    def solves(
        self, model: Any, nuisance: Any, theta: Array, plane: Any, targets: Any, constants: Any, *,
        tolerance: float, over: int, outside: int, rests: Array | None = None, exact: bool = False,
    ) -> Any:  # fmt: skip
        """Return what the nuisance leaves of targets[record, k], and how it moves; on a CPU two halves side by side."""
        width, count = plane.rows.shape[1], targets.shape[1]
        rests = np.zeros((len(theta), count, width)) if rests is None else rests
        program, kind = self.solve_all, np.float32 if model.rounds and not exact else np.float64
        program = self.solve_exactly if exact and model.rounds else program
        room = count if self.gpu else width  # on a CPU one program makes all solves
        each = count if self.gpu else min(width, -(-count // 2))

        def part(start: int) -> Any:
            own = [self._held(values[:, start : start + each]).astype(kind) for values in (targets, rests)]
            here = own[0].shape[1]
            goal = pure().Goal(np.float64(tolerance), np.int32(over), np.int32(outside), np.int32(here))
            done = program(model, nuisance, theta, plane, *[_filled(values, room) for values in own], goal, constants)
            return pure().Solves(*[self._held(value)[:, :here] for value in done])

        done = map_threads(1 if self.gpu else min(2, cores()), part, range(0, count, each))
        if len(done) == 1:
            return done[0]
        return pure().Solves(*[np.concatenate(same, axis=1) for same in zip(*done, strict=True)])

    def sensitivity(
        self, model: Any, nuisance: Any, theta: Array, data: Any, constants: Any, *,
        tolerance: float = SOLVE_TOLERANCE, exact: bool = False,
    ) -> Any:  # fmt: skip
        """Return the linearisation in theta that is left without the nuisance."""
        at = self.tangents(model, nuisance, theta, data, constants)
        targets = self._held(at.basis.rows)[:, : theta.shape[1]].reshape(len(theta), -1, *at.residual.shape[1:])
        goal: dict[str, Any] = {
            "tolerance": tolerance,
            "over": pure().TARGET,
            "outside": pure().NOTHING,
            "exact": exact,
        }
        solved = self.solves(model, nuisance, theta, _plane(at.basis.rows), targets, constants, **goal)
        return self.eliminated(theta, at, solved, getattr(constants, "prior", ()))

    def project(
        self, model: Any, nuisance: Any, theta: Array, basis: Any, directions: Any, constants: Any, *,
        crossed: bool = False,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Return the part of whitened directions[record, k] that neither the nuisance nor theta can imitate.

        `basis` is of C, orthogonal to J_u, or `crossed` with it, as J_g is; then the solves are exact. The other values
        are how theta moves, and with J_g the nuisance, when the direction's parameter becomes 1.
        """
        triangles, used = np.asarray(basis.triangle), range(min(theta.shape[1], basis.triangle.shape[1]))
        inner = np.zeros((len(theta), *[basis.rows.shape[1]] * 2))
        inner[:, used, used] = 1.0
        goal: dict[str, Any] = {"over": pure().REST, "outside": pure().BOTH if crossed else pure().ENDS}
        goal |= {"tolerance": PROBE_TOLERANCE if crossed else TEST_TOLERANCE, "exact": crossed}
        solved = self.solves(model, nuisance, theta, _plane(basis.rows, inner), directions, constants, **goal)
        along = np.asarray(solved.along, dtype=np.float64)[:, :, used]
        pairs = zip(triangles[:, used][:, :, used], along, strict=True)
        return solved.rests, np.stack([-pure().solve_upper(own, parts.T).T for own, parts in pairs]), solved.motions

    def begin(
        self, model: Any, nuisance: Array, theta: Array, data: Any, constants: Any, lines: Array | None = None
    ) -> Point:  # fmt: skip
        """Return the point to start from; steps are along lines of theta, by default all its entries."""
        lines, zero = np.eye(theta.shape[1]) if lines is None else lines, np.zeros(len(theta))
        at = self.tangents(model, nuisance, theta, data, constants, lines)
        cost = _cost(at, theta, constants)
        return Point(np.asarray(nuisance), theta, cost, cost, zero, zero + 1.0, zero, zero, at, lines)

    def compared(self, model: Any, point: Point, data: Any, constants: Any) -> Point:
        """Return a point with other data, of which only the residual knows."""
        residual = np.asarray(self.whiten(model, data - np.asarray(point.at.prediction), constants))
        squares = np.array([np.vdot(own, own) for own in residual])
        at = point.at._replace(residual=residual, cost=squares)
        cost = _cost(at, point.theta, constants)
        return point._replace(at=at, cost=cost, before=cost)

    @_RUNAWAY
    def advance(self, model: Any, point: Point, data: Any, constants: Any, active: Bools | None = None) -> Point:
        """Take one Gauss-Newton step of the active records; one that raises the cost is halved until it does not."""
        at, lines, (held, known) = point.at, point.lines, _known(point.theta, constants)
        records, used, width = len(held), len(lines), at.basis.rows.shape[1]
        inner, below, rests = (np.zeros((records, *shape)) for shape in ((width, width), (width, width), (1, width)))
        back = list[tuple[Array, Array]]()
        for k, triangle in enumerate(np.asarray(at.basis.triangle)):
            # what is known, as no more rows than theta has entries
            rows = np.linalg.qr(np.column_stack([known[k] @ lines.T, -held[k]]))[1][:used]
            stacked = np.vstack([triangle[:used, :used], rows[:, :-1]])
            sizes = np.linalg.norm(stacked, axis=0)
            sizes[sizes == 0.0] = 1.0  # nothing observed depends on it
            turned, outer = np.linalg.qr(stacked / sizes)
            inner[k, :used, :used], below[k, : len(rows), :used] = turned[:used], turned[used:]
            rests[k, 0, : len(rows)] = rows[:, -1]
            back.append((outer, sizes))
        goal = {"tolerance": STEP_TOLERANCE, "over": pure().IMAGE, "outside": pure().BOTH, "rests": rests}
        plane, target = _plane(at.basis.rows, inner, below), self._held(at.residual)[:, None]
        solved = self.solves(model, point.nuisance, point.theta, plane, target, constants, **goal)
        along = np.asarray(solved.along, dtype=np.float64)[:, 0, :used]
        step = np.stack([pure().solve_upper(outer, a) / sizes for (outer, sizes), a in zip(back, along, strict=True)])
        size = np.linalg.norm(along, axis=1)
        return self._moved(model, point, solved, step @ lines, size, data, constants, active)

    def follow(self, model: Any, point: Point, data: Any, constants: Any, active: Bools | None = None) -> Point:
        """Take one Gauss-Newton step of the nuisance alone, theta held: the fields that follow a given law.

        The size is |J_u du|, how far the prediction would move.
        """
        goal = {"tolerance": STEP_TOLERANCE, "over": pure().IMAGE, "outside": pure().NOTHING}
        plane, target = _plane(point.at.basis.rows), self._held(point.at.residual)[:, None]
        solved = self.solves(model, point.nuisance, point.theta, plane, target, constants, **goal)
        size = np.sqrt(np.asarray(solved.moved, dtype=np.float64)[:, 0])
        return self._moved(model, point, solved, np.zeros(point.theta.shape), size, data, constants, active)

    @_RUNAWAY
    def _moved(
        self, model: Any, point: Point, solved: Any, step: Array, size: Array, data: Any, constants: Any,
        active: Bools | None,
    ) -> Point:  # fmt: skip
        """Take a step, halved until the cost is not above the one before; none where no fraction of it is.

        It begins with as much of the step as moves no entry of theta farther than its reach, and ``length`` is a part
        of that. An active record is one that has not ended; None takes all for active.
        """
        now, reach = _cost(point.at, point.theta, constants), np.asarray(getattr(constants, "reach", ()))
        most = 1.0 / np.max(np.abs(step[:, : reach.size]) / reach, axis=1, initial=1.0)
        motion = -np.asarray(solved.motions, dtype=np.float64)[:, 0]
        length = np.ones(len(now)) if active is None else active.astype(np.float64)
        while True:
            part = np.where(length > 0.0, most * length, 0.0)
            theta = point.theta + np.where(part > 0.0, part * step.T, 0.0).T  # a failed solve has no finite step
            nuisance = point.nuisance + np.where(part > 0.0, part * motion.T, 0.0).T
            at = self.tangents(model, nuisance, theta, data, constants, point.lines)
            cost = _cost(at, theta, constants)
            worse = ~(cost <= now * (1.0 + 1e-12)) & (length > 0.0)
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
            length[length <= np.where(size**2 * at.residual[0].size <= _HIDDEN * now, 0.25, _SHORTEST)] = 0.0
        counts, rest = (np.asarray(values)[:, 0] for values in (solved.iterations, solved.residuals))
        return Point(nuisance, theta, cost, now, size, length, counts, rest, at, point.lines)

    def _held(self, values: Any) -> Any:
        """Return values where they are needed: on a GPU, or as a NumPy array, which takes no copy on a CPU."""
        return values if self.gpu else np.asarray(values)


def pure() -> Any:
    """Return the module of the pure functions, which imports JAX."""
    from doublewell.likelihood import gauss_newton

    return gauss_newton


def _over(function: Any, count: int, *, shared: int = 0, single: bool = False) -> Any:
    """Compile a function of a model and `count` values for each record, then some that they share, and constants."""
    import jax
    import jax.numpy as jnp

    def batched(model: Any, *arguments: Any) -> Any:
        axes = [0] * count + [None] * shared
        constants = arguments[-1]
        own = constants._make([0 if name in _OWN else None for name in constants._fields])
        if len(arguments[0]) > 1:
            return jax.vmap(partial(function, model), in_axes=(*axes, own))(*arguments)
        # a record alone: a loop need not keep what has ended while others go on
        first = jax.tree.map(lambda leaf: leaf[0], arguments[:count])
        known = {name: getattr(constants, name) for name in _OWN}
        constants = constants._replace(**jax.tree.map(lambda leaf: leaf[0], known))
        alone = function(model, *first, *arguments[count:-1], constants)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], alone)

    program = jax.jit(batched, static_argnums=0)

    def run(model: Any, *arguments: Any) -> Any:
        current().check()
        with double_precision():
            if not (single and model.rounds):
                return program(model, *arguments)
            arguments = jax.tree.map(_rounded, arguments)
            with single_precision():
                return program(model, *arguments)

    return run


def _rounded(leaf: Any) -> Any:
    """Return numbers in single precision; all others as they are."""
    leaf = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return leaf.astype(np.float32) if leaf.dtype == np.float64 else leaf


def _filled(values: Any, count: int) -> Any:
    """Add zeros to values[record, k] up to a count."""
    if values.shape[1] == count:
        return values
    filled = np.zeros((len(values), count, *values.shape[2:]), values.dtype)
    filled[:, : values.shape[1]] = values
    return filled


def _plane(rows: Any, inner: Array | None = None, below: Array | None = None) -> Any:
    """Return a plane of a basis; nothing is taken out without `inner`."""
    records, width = rows.shape[:2]
    inner = np.zeros((records, width, width)) if inner is None else inner
    return pure().Plane(rows, inner, np.zeros((records, width, width)) if below is None else below)


def _each(function: Any, gpu: bool) -> Any:
    """Make a function of values of each record one of a batch: a program on a GPU, NumPy on a CPU."""
    import jax

    if gpu:
        program = jax.jit(jax.vmap(function))

        def on_device(*arguments: Any) -> Any:
            with double_precision():
                return program(*arguments)

        return on_device

    @_RUNAWAY
    def call(*arguments: Any) -> Any:
        count = len(jax.tree.leaves(arguments)[0])
        each = [function(*jax.tree.map(lambda leaf: np.asarray(leaf)[k], arguments)) for k in range(count)]  # noqa: B023
        return jax.tree.map(lambda *leaves: np.stack(leaves) if count > 1 else np.asarray(leaves[0])[None], *each)

    return call


def _known(theta: Array, constants: Any) -> tuple[Array, Array]:
    """Return how far each theta is from what is known of it, in units of the whitened residual, and the derivative."""
    prior = getattr(constants, "prior", ())
    each = [pure().known_of(row, prior if isinstance(prior, tuple) else prior[k]) for k, row in enumerate(theta)]
    held, known = (np.stack(part) for part in zip(*each, strict=True))
    return held, known


def _cost(at: Any, theta: Array, constants: Any) -> Array:
    held, _ = _known(theta, constants)
    return np.asarray(np.asarray(at.cost) + np.sum(held**2, axis=1))
