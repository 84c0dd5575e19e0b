"""Gauss-Newton with the nuisance eliminated: the one solver behind every trajectory fit.

The observations are v = predict(nuisance, theta) + noise. theta is a short vector, the nuisance (an initial field, a
boundary ring) a large pytree that is itself observed. With J_u and J_g the derivatives of the whitened prediction and
r the whitened residual,

    step:         P = 1 - Q Q', Q an orthonormal basis of J_g;   (J_u' P J_u) du = J_u' P r   by conjugate gradients;
                  dg = J_g^+ (r - J_u du)
    information:  C = J_g - J_u X with (J_u' J_u) X = J_u' J_g;   R from the QR of C.

Eliminating theta first leaves one right-hand side a step. Frame 0 observes the nuisance and not theta, so J_u' P J_u
stays as well conditioned as J_u' J_u. What is known of theta beforehand is more rows of J_g, where the constants have
a ``prior``: rows W theta = t, in units of the whitened residual. One program makes all solves, of steps, of
sensitivities and of directions that are tested (``solve_all``). The functions of a Model are pure JAX functions, to be
called under jit and vmap; what is made of them, steps too, is in programs.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from doublewell.law.family import namespace

GROUP = 3  # directions of theta whose derivatives are made at a time: a basis has a multiple of it as rows
TARGET, IMAGE, REST = 0, 1, 2  # what the error of a solve is compared with
NOTHING, ENDS, BOTH = 0, 1, 2  # what is taken out: of targets and of what is left of them, or of J_u too
_LAST = 10  # steps of conjugate gradients that tell what is left to gain, where they gain little
_SLOWEST = 0.99  # ratio of the gains of consecutive steps of conjugate gradients
_TINY = 1e-30
_STRAIGHT = 1e-10  # how far from orthonormal rows are left
_BLOCK = 8192  # columns at a time: they stay in a cache


class Model(Protocol):
    """What the solver needs of a model. Hashable, so that compiled code serves all records of one shape.

    `constants` is a pytree of arrays that the methods share: step weights, root weights, the preconditioner's symbol.
    A model `rounds` where its linearisation may be in single precision.
    """

    rounds: ClassVar[bool]

    def predict(self, nuisance: Any, theta: Any, constants: Any) -> Any:
        """Return the prediction of the observations."""

    def whiten(self, field: Any, constants: Any) -> Any:
        """Return the residual in units of the noise's shape: a linear map; unobserved values become zero."""

    def preconditioner(self, nuisance: Any, theta: Any, constants: Any) -> Any:
        """Return a symmetric positive map from a gradient to an approximate solution of J_u' J_u x = gradient there."""


class Basis(NamedTuple):
    """Derivatives by theta, J_g or C, as R' Q: orthonormal fields, one for each column, and the triangle."""

    rows: Any
    triangle: Any


class Tangents(NamedTuple):
    """The prediction, the whitened residual, and a basis of J_g along some directions of theta."""

    prediction: Any
    residual: Any
    cost: Any  # |residual|^2
    basis: Basis


class Plane(NamedTuple):
    """Directions that are taken out: those of A'Q and, in the rows of what is known beforehand, of B."""

    rows: Any
    inner: Any  # A; 0 for a direction that is not used
    below: Any  # B


class Goal(NamedTuple):
    """How solves end, and what is taken out of them: numbers, so that one program makes all solves."""

    tolerance: Any
    over: Any  # what the error is compared with: TARGET, IMAGE or REST
    outside: Any  # whether the plane is taken out; of J_u too (BOTH), where it is not orthogonal to that
    count: Any  # of the targets; the others are left out


class Solves(NamedTuple):
    """What the nuisance leaves of each target, how it moves, the plane's components of what is left, and the solve."""

    rests: Any
    motions: Any
    along: Any
    moved: Any  # |J_u du|^2
    iterations: Any
    residuals: Any


class Sensitivity(NamedTuple):
    """The linearisation in theta with the nuisance projected out."""

    triangle: Any  # R of C, the projected sensitivities
    shift: Any  # the step in theta that one more Gauss-Newton step would take
    response: Any  # how the best nuisance moves with each entry of theta, -X
    cost: Any
    iterations: Any
    residuals: Any  # relative, of the solve for each entry of theta
    scores: Any  # of each frame: of its residual along each entry of an orthonormal basis of C
    basis: Any  # of C
    prediction: Any


def tangents_at(
    model: Model, nuisance: Any, theta: Any, data: Any, lines: Any, groups: Any, constants: Any, *, together: int | None
) -> Tangents:  # fmt: skip
    """Return what the model predicts, what it leaves, and its derivatives along lines of theta in place of their basis.

    They are made `together` at a time, those of the first `groups`, at least one; all others are taken for zero. None
    makes all of them at once.
    """

    def predicted(g: Any) -> Any:
        return model.predict(nuisance, g, constants)

    def along(direction: Any) -> Any:
        return jax.jvp(predicted, (theta,), (direction,))

    many = jax.vmap(along, out_axes=(None, 0))
    sets = lines.reshape(-1, together or len(lines), theta.size)
    groups = groups if together else 1
    shape = jax.eval_shape(many, sets[0])

    def more(k: Any, held: tuple[Any, Any]) -> tuple[Any, Any]:
        prediction, changes = many(sets[k])
        return prediction, held[1].at[k].set(jax.vmap(lambda change: model.whiten(change, constants))(changes))

    empty = jnp.zeros(shape[0].shape, shape[0].dtype), jnp.zeros((len(sets), *shape[1].shape), shape[1].dtype)
    prediction, changes = jax.lax.fori_loop(0, groups, more, empty)
    residual = model.whiten(data - prediction, constants)
    return Tangents(prediction, residual, jnp.vdot(residual, residual), changes.reshape(len(lines), -1))


def solve_all(
    model: Model, nuisance: Any, theta: Any, plane: Plane, targets: Any, rests: Any, goal: Goal, constants: Any, *,
    most: int, together: int,
) -> Any:  # fmt: skip
    """Take out of whitened targets what the nuisance can imitate, outside of a plane.

    Each target is followed by the entries that belong to the rows of what is known of theta. Where solves are made one
    by one, those past the count of the goal are not made.
    """
    push, pull = maps_at(model, nuisance, theta, constants)
    condition, shape = model.preconditioner(nuisance, theta, constants), targets.shape[1:]

    def outside(y: Any, rest: Any) -> tuple[Any, Any, Any]:
        parts = plane.inner.T @ (plane.rows @ y.ravel()) + plane.below.T @ rest
        return y - ((plane.inner @ parts) @ plane.rows).reshape(shape), rest - plane.below @ parts, parts

    def where(wanted: Any, y: Any, rest: Any) -> Any:
        """Return what is outside of the plane, where that is wanted, and its components, which no length counts."""
        return jax.lax.cond(wanted, outside, lambda *both: (*both, jnp.zeros_like(plane.inner[0])), y, rest)

    def solved(target: Any, known: Any) -> Any:
        solution, left, count, error = solve_least(
            lambda x: where(goal.outside == BOTH, push(x), 0.0 * known), lambda y: pull(y[0]),
            where(goal.outside != NOTHING, target, known), condition, tolerance=goal.tolerance, most=most,
            over=goal.over, counted=2,
        )  # fmt: skip
        moved = target - left[0]
        rest, _, _ = where(goal.outside == ENDS, *left[:2])
        motion = jax.tree.map(lambda leaf: -leaf, solution)
        return Solves(rest, motion, left[2], jnp.vdot(moved, moved), count, error)

    if together > 1:
        return jax.lax.map(lambda each: solved(*each), (targets, rests), batch_size=together)
    blank = jax.tree.map(
        lambda leaf: jnp.zeros((len(targets), *leaf.shape), leaf.dtype), jax.eval_shape(solved, targets[0], rests[0])
    )

    def next_one(k: Any, done: Any) -> Any:
        return jax.tree.map(lambda held, new: held.at[k].set(new), done, solved(targets[k], rests[k]))

    return jax.lax.fori_loop(0, goal.count, next_one, blank)


def eliminated(theta: Any, at: Tangents, solves: Solves, prior: Any) -> Sensitivity:
    """Return the linearisation in theta that is left without the nuisance.

    An unfinished solve leaves part of J_u in C and makes R too large, by the square of the solve's error. So the solves
    are made for an orthonormal basis of J_g, J_g' = T'Q: neighbouring coefficients have almost the same effect, and an
    error of a hundredth of J_g's columns would be larger than the directions in which they differ.
    """
    xp, size, residual = namespace(at.residual), theta.size, at.residual
    outer = at.basis.triangle[:size, :size]
    rows, motions = (xp.asarray(part[:size], dtype=outer.dtype) for part in solves[:2])
    turned, inner = orthonormal(rows.reshape(size, -1))
    held, known = known_of(theta, prior)
    mixed, triangle = xp.linalg.qr(xp.concatenate([inner @ outer, known]))
    right = mixed.T @ xp.concatenate([turned @ residual.ravel(), -held])
    left = residual.ravel() - (turned @ residual.ravel()) @ turned
    scores = xp.einsum("ptx,tx->tp", turned.reshape(size, len(residual), -1), left.reshape(len(residual), -1))
    turn, inner = xp.linalg.qr(inner @ outer)
    basis = Basis(_padded(_times(turn.T, turned, True), len(at.basis.rows)), inner)
    response = xp.tensordot(outer.T, motions, axes=1)
    return Sensitivity(
        triangle, solve_upper(triangle, right), response, at.cost + xp.vdot(held, held),
        xp.sum(solves.iterations), solves.residuals[:size], scores, basis, at.prediction,
    )  # fmt: skip


def orthonormal(rows: Any) -> Basis:
    """Return Q and R of a few long rows, R'Q, as accurate as by Householder's reflections; of zero rows nothing.

    Q'Q is factorised and R divided out, three times, first with a shift that keeps it definite (Fukaya et al. 2020):
    products of matrices, in NumPy or JAX as the rows are.
    """
    xp, (n, length), tiny = namespace(rows), rows.shape, float(np.finfo(rows.dtype).eps)
    q, r = rows, xp.eye(n, dtype=rows.dtype)
    for shift in (11.0 * n * (length + n + 1) * tiny, tiny, tiny):
        gram = q @ q.T
        if xp is np and not np.all(np.isfinite(gram)):  # of a field that ran away: NumPy would raise
            return Basis(np.full_like(rows, np.nan), np.full_like(gram, np.nan))
        norms = xp.sqrt(xp.diag(gram))
        sizes = xp.where(norms > 0.0, norms, 1.0)
        if xp is np and q is not rows and np.max(np.abs(gram - np.diag(norms > 0.0))) < _STRAIGHT:
            break
        factor = xp.linalg.cholesky(gram / (sizes * sizes[:, None]) + shift * xp.eye(n, dtype=rows.dtype))
        q, r = _times(xp.linalg.solve(factor, xp.diag(1.0 / sizes)), q, q is not rows), (factor.T * norms) @ r
    return Basis(q, r)


def _times(matrix: Any, rows: Any, own: bool) -> Any:
    """Return a small matrix times long rows; in place, a block at a time, where they are one's own in NumPy."""
    if not own or namespace(rows) is not np:
        return matrix @ rows
    for k in range(0, rows.shape[1], _BLOCK):
        rows[:, k : k + _BLOCK] = matrix @ rows[:, k : k + _BLOCK]
    return rows


def _padded(rows: Any, count: int) -> Any:
    return rows if len(rows) == count else namespace(rows).pad(rows, ((0, count - len(rows)), (0, 0)))


def solve_upper(triangle: Any, right: Any) -> Any:
    """Solve R x = right, of one or several columns; what R does not determine stays at zero."""
    xp, x = namespace(triangle), list[Any]()
    for k in range(len(triangle) - 1, -1, -1):
        pivot = triangle[k, k]
        rest = right[k] - sum(triangle[k, k + 1 + j] * value for j, value in enumerate(x))
        x.insert(0, xp.where(pivot == 0.0, 0.0, rest / xp.where(pivot == 0.0, 1.0, pivot)))
    return xp.stack(x)


def projected_basis(model: Model, nuisance: Any, theta: Any, response: Any, constants: Any) -> Basis:
    """Return the basis of C where the response of the nuisance is known. A pure JAX function."""

    def moved(x: Any, g: Any) -> Any:
        return model.whiten(model.predict(x, g, constants), constants)

    def column(motion: Any, direction: Any) -> Any:
        return jax.jvp(moved, (nuisance, theta), (motion, direction))[1].ravel()

    rows, triangle = orthonormal(jax.vmap(column)(response, jnp.eye(theta.size, dtype=theta.dtype)))
    return Basis(_padded(rows, theta.size + -theta.size % GROUP), triangle)


def gradient(model: Model, basis: Basis, change: Any, constants: Any) -> Any:
    """Return C' of a change of the observations."""
    rows = basis.rows[: len(basis.triangle)]
    return basis.triangle.T @ (rows @ model.whiten(change, constants).ravel())


def room_slope(
    model: Model, nuisance: Any, theta: Any, noise: Any, constants: Any, *, tolerance: float, most: int
) -> tuple[Any, Any]:  # fmt: skip
    """Return the gradient of log det(J_u' J_u) / 2 by the nuisance and by theta, on average over white noise.

    A nuisance x drawn with the covariance (J_u' J_u)^-1 is the solution for such noise, and the gradient is that of
    |J_u x|^2 / 2 with x held.
    """

    def whitened(x: Any, g: Any) -> Any:
        return model.whiten(model.predict(x, g, constants), constants)

    condition = model.preconditioner(nuisance, theta, constants)
    maps = maps_at(model, nuisance, theta, constants)
    drawn, _, _, _ = solve_least(*maps, noise, condition, tolerance=tolerance, most=most, over=IMAGE)

    def room(x: Any, g: Any) -> Any:
        image = jax.jvp(lambda y: whitened(y, g), (x,), (drawn,))[1]
        return 0.5 * jnp.vdot(image, image)

    along, slope = jax.grad(room, argnums=(0, 1))(nuisance, theta)
    return along, slope


def force_needed(model: Model, nuisance: Any, theta: Any, fields: Any, constants: Any) -> tuple[Any, Any]:
    """Return the gradient of <prediction, white> by a force in each frame interval, for each of several white fields.

    The forces are the `pushes` of the constants. The second value is how much of |white|^2 one along the gradient
    explains.
    """

    def pushed(pushes: Any) -> Any:
        return model.whiten(model.predict(nuisance, theta, constants._replace(pushes=pushes)), constants)

    _, push = jax.linearize(pushed, jnp.zeros_like(constants.pushes))
    pull = jax.linear_transpose(push, constants.pushes)

    def each(white: Any) -> tuple[Any, Any]:
        gradient = pull(white)[0]
        motion = push(gradient)
        return gradient, jnp.vdot(gradient, gradient) ** 2 / jnp.vdot(motion, motion)

    gradients, explained = jax.lax.map(each, fields)
    return gradients, explained


def maps_at(model: Model, nuisance: Any, theta: Any, constants: Any) -> tuple[Any, Any]:
    """Return J_u and J_u'; the linearisation is kept, not repeated."""
    _, push = jax.linearize(lambda x: model.whiten(model.predict(x, theta, constants), constants), nuisance)
    transpose = jax.linear_transpose(push, nuisance)
    return push, lambda y: transpose(y)[0]


def solve_least(
    push: Any, pull: Any, target: Any, precondition: Any, *, tolerance: Any, most: int, over: Any = TARGET,
    counted: int | None = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Minimise |y - J x| by preconditioned conjugate gradients, from J (`push`) and J' (`pull`) alone.

    Returns x, y - J x, the number of steps and the error of J x over |y|, |J x| or |y - J x|, as `over` is TARGET,
    IMAGE or REST. It stops where that is below `tolerance`, or after `most` steps. The error is estimated from by
    how much the last two steps have lowered |y - J x|^2, as a geometric series; after the first one from its length,
    which is 1 where the preconditioner is (J' J)^-1. That may differ a little from step to step. Of y only the first
    `counted` parts have a length, by default all.
    """

    def dot(a: Any, b: Any) -> Any:
        return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

    def square(y: Any) -> Any:
        return dot(y, y) if counted is None else dot(y[:counted], y[:counted])

    def combine(a: Any, factor: Any, b: Any) -> Any:
        return jax.tree.map(lambda x, y: x + factor * y, a, b)

    def unfinished(state: tuple[Any, ...]) -> Any:
        count, *_, size, error = state
        return (count < most) & (error > tolerance**2 * size)

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, solution, rest, gradient, direction, product, gains, size, _ = state
        fresh = pull(rest)
        turned = precondition(fresh)
        bend = jnp.where(count == 0, 0.0, dot(turned, combine(fresh, -1.0, gradient)) / product)
        direction, product = combine(turned, bend, direction), dot(turned, fresh)
        image = push(direction)
        length = product / jnp.maximum(square(image), _TINY)
        ratio = jnp.where(count == 0, jnp.abs(1.0 - length), length * product / gains[0])
        ratio = jnp.minimum(ratio, _SLOWEST)
        gains = jnp.roll(gains, 1).at[0].set(length * product)
        error = jnp.minimum(jnp.maximum(gains[0], product) * ratio / (1.0 - ratio), jnp.sum(gains))
        solution, rest = combine(solution, length, direction), combine(rest, -length, image)
        made = jnp.where(count == 0, 0.0, size) + gains[0]
        size = jnp.where(over == TARGET, whole, jnp.where(over == IMAGE, made, square(rest)))
        return count + 1, solution, rest, fresh, direction, product, gains, size, error

    whole = square(target)
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(pull, target))
    start = 0, zero, target, zero, zero, 1.0 + 0.0 * whole, jnp.full(_LAST, whole), whole, whole
    count, solution, rest, *_, size, error = jax.lax.while_loop(unfinished, body, start)
    return solution, rest, count, jnp.sqrt(error / jnp.where(size > 0, size, 1.0))


def column(model: Model, nuisance: Any, theta: Any, direction: Any, constants: Any) -> Any:
    """Return how the whitened prediction moves with theta along a direction."""

    def predicted(x: Any) -> Any:
        return model.predict(nuisance, x, constants)

    return model.whiten(jax.jvp(predicted, (theta,), (direction,))[1], constants)


def columns(model: Model, nuisance: Any, theta: Any, directions: Any, constants: Any) -> Any:
    """Return the same along several directions, which come first: the field itself is computed once for all."""
    return jax.vmap(partial(column, model, nuisance, theta, constants=constants))(directions)


def known_of(theta: Any, prior: Any) -> tuple[Any, Any]:
    """Return how far theta is from what is known of it, in units of the whitened residual, and the derivative."""
    if isinstance(prior, tuple):
        return theta[:0], theta[:0, None] * theta
    return prior[:, :-1] @ theta - prior[:, -1], prior[:, :-1]
