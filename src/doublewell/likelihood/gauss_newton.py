"""Gauss-Newton with the nuisance eliminated: the one solver behind every trajectory fit.

The observations are v = predict(nuisance, theta) + noise. theta is a short vector, the nuisance (an initial field, a
boundary ring) a large pytree that is itself observed. With J_u and J_g the derivatives of the whitened prediction and
r the whitened residual,

    step:         P = 1 - Q Q', Q an orthonormal basis of J_g;   (J_u' P J_u) du = J_u' P r   by conjugate gradients;
                  dg = J_g^+ (r - J_u du)
    information:  C = J_g - J_u X with (J_u' J_u) X = J_u' J_g;   R from the QR of C.

Eliminating theta first leaves one right-hand side a step. Frame 0 observes the nuisance and not theta, so J_u' P J_u
stays as well conditioned as J_u' J_u. What is known of theta beforehand is more rows of J_g, where the constants have
a ``prior``: rows W theta = t, in units of the whitened residual. The functions of a Model are pure JAX functions, to be
called in double precision, under jit and vmap.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp

_SHORTEST = 2.0**-12  # a step cut this short is not taken
_LAST = 10  # steps of conjugate gradients that tell what is left to gain, where they gain little
_SLOWEST = 0.99  # ratio of the gains of consecutive steps of conjugate gradients
_TINY = 1e-30


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


class Point(NamedTuple):
    """Where the iteration stands, and how the last step went."""

    nuisance: Any
    theta: Any
    cost: Any  # |whitened residual|^2
    before: Any  # the cost before the last step
    size: Any  # |J_g dg|: an upper bound of the step in theta, in units of the whitened residual
    length: Any  # fraction of the step that was taken; 0 when every fraction raised the cost
    iterations: Any  # of conjugate gradients
    residual: Any  # relative, of conjugate gradients


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


class Basis(NamedTuple):
    """J_g or C as Q R: an orthonormal basis and its triangle."""

    columns: Any
    triangle: Any


def begin(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> Point:
    """Return the point to start from."""
    cost = _cost(model, nuisance, theta, data, constants)
    return Point(nuisance, theta, cost, cost, 0.0 * cost, 1.0 + 0.0 * cost, 0, 0.0 * cost)


def advance(model: Model, point: Point, data: Any, constants: Any, *, tolerance: float, most: int) -> Point:
    """Take one Gauss-Newton step; a step that raises the cost is halved until it does not."""
    now = _linearise(model, point.nuisance, point.theta, data, constants)
    columns = tangents(model, point.nuisance, point.theta, constants)
    norms, (held, rows) = jnp.linalg.norm(columns, axis=0), _prior(point.theta, constants)
    basis, triangle = tall_qr(jnp.concatenate([columns, rows]) / norms)
    basis, below = basis[: now.residual.size], basis[now.residual.size :]

    def without_theta(y: Any, rest: Any) -> tuple[Any, Any]:
        along = basis.T @ y.ravel() + below.T @ rest
        return y - (basis @ along).reshape(y.shape), rest - below @ along

    step_u, _, count, rest = solve_least(
        lambda x: without_theta(now.push(x), 0.0 * held), lambda y: now.pull(y[0]),
        without_theta(now.residual, -held), model.preconditioner(point.nuisance, point.theta, constants),
        tolerance=tolerance, most=most, over="image",
    )  # fmt: skip
    turned = basis.T @ (now.residual - now.push(step_u)).ravel() - below.T @ held
    step_g = jax.scipy.linalg.solve_triangular(triangle, turned) / norms
    taken = _shortened(model, point, step_u, step_g, now.residual, data, constants)
    return taken._replace(size=jnp.linalg.norm(triangle @ (step_g * norms)), iterations=count, residual=rest)


def follow(model: Model, point: Point, data: Any, constants: Any, *, tolerance: float, most: int) -> Point:
    """Take one Gauss-Newton step of the nuisance alone, theta held: the fields that follow a given law.

    The size is |J_u du|, how far the prediction would move.
    """
    now = _linearise(model, point.nuisance, point.theta, data, constants)
    condition = model.preconditioner(point.nuisance, point.theta, constants)
    step, left, count, rest = solve_least(
        now.push, now.pull, now.residual, condition, tolerance=tolerance, most=most, over="image"
    )
    taken = _shortened(model, point, step, jnp.zeros_like(point.theta), now.residual, data, constants)
    return taken._replace(size=jnp.linalg.norm(now.residual - left), iterations=count, residual=rest)


def _shortened(
    model: Model, point: Point, step_u: Any, step_g: Any, residual: Any, data: Any, constants: Any
) -> Point:  # fmt: skip
    """Take a step, halved until the cost is not above the one before; none where no fraction of it is.

    It begins with as much of the step as moves no entry of theta farther than its reach; ``length`` is a part of that.
    """
    held, _ = _prior(point.theta, constants)
    now = jnp.vdot(residual, residual) + jnp.vdot(held, held)

    def moved(length: Any) -> tuple[Any, Any]:
        shifted = jax.tree.map(lambda a, b: a + length * b, point.nuisance, step_u)
        return shifted, point.theta + length * step_g

    def halved(state: tuple[Any, Any]) -> tuple[Any, Any]:
        length = 0.5 * state[0]
        return length, _cost(model, *moved(most * length), data, constants)

    reach = jnp.array(getattr(constants, "reach", ()))
    most = 1.0 / jnp.max(jnp.abs(step_g[: reach.size]) / reach, initial=1.0)

    length, cost = jax.lax.while_loop(  # begins with half of 2, so that the program holds the cost once
        lambda state: ~(state[1] <= now * (1.0 + 1e-12)) & (state[0] > _SHORTEST),
        halved,
        (2.0 * jnp.ones_like(now), jnp.full_like(now, jnp.inf)),
    )
    taken = cost <= now * (1.0 + 1e-12)
    length, cost = jnp.where(taken, length, 0.0), jnp.where(taken, cost, now)
    nuisance, theta = jax.tree.map(
        lambda new, old: jnp.where(taken, new, old), moved(most * length), (point.nuisance, point.theta)
    )  # a failed solve has no finite step: 0 times it is not 0
    return point._replace(nuisance=nuisance, theta=theta, cost=cost, before=now, length=length)


class Tangents(NamedTuple):
    """The prediction, the whitened residual, and J_g = Q T."""

    prediction: Any
    residual: Any
    basis: Basis


class Solves(NamedTuple):
    """What the nuisance does not imitate of the columns of Q, and how it moves with each, as rows."""

    rows: Any
    motions: Any
    counts: Any
    residuals: Any


def sensitivity(
    model: Model, nuisance: Any, theta: Any, data: Any, constants: Any, *, tolerance: float, most: int, together: int
) -> Sensitivity:
    """Return R of the projected sensitivities at a point, `together` solves at a time.

    An unfinished solve leaves part of J_u in C and makes R too large, by the square of the solve's error. So the solves
    are made for an orthonormal basis of J_g, J_g = Q T: neighbouring coefficients have almost the same effect, and an
    error of a hundredth of J_g's columns would be larger than the directions in which they differ.
    """
    at = tangents_at(model, nuisance, theta, data, constants)
    solves = without_nuisance(
        model, nuisance, theta, at.basis, constants, tolerance=tolerance, most=most, together=together
    )
    return eliminated(theta, at, solves, constants)


def tangents_at(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> Tangents:
    """Return what the model predicts at a point, what it leaves, and a basis of its derivatives by theta."""

    def along(direction: Any) -> Any:
        return jax.jvp(lambda g: model.predict(nuisance, g, constants), (theta,), (direction,))

    prediction, changes = jax.vmap(along, out_axes=(None, 0))(jnp.eye(theta.size, dtype=theta.dtype))
    columns = jax.vmap(lambda change: model.whiten(change, constants))(changes).reshape(theta.size, -1).T
    return Tangents(prediction, model.whiten(data - prediction, constants), Basis(*tall_qr(columns)))


def without_nuisance(
    model: Model, nuisance: Any, theta: Any, basis: Basis, constants: Any, *,
    tolerance: float, most: int, together: int,
) -> Solves:  # fmt: skip
    """Take out of the columns of Q what the nuisance can imitate."""
    push, pull = _maps(model, nuisance, theta, constants)
    condition, shape = model.preconditioner(nuisance, theta, constants), jax.eval_shape(push, nuisance).shape

    def project(column: Any) -> tuple[Any, Any, Any, Any]:
        solution, left, count, rest = solve_least(
            push, pull, column.reshape(shape), condition, tolerance=tolerance, most=most
        )
        return left.ravel(), jax.tree.map(lambda leaf: -leaf, solution), count, rest

    return Solves(*jax.lax.map(project, basis.columns.T, batch_size=together))


def eliminated(theta: Any, at: Tangents, solves: Solves, constants: Any) -> Sensitivity:
    """Return the linearisation in theta that is left without the nuisance."""
    residual, outer = at.residual, at.basis.triangle
    rows, motions = (jax.tree.map(lambda leaf: leaf.astype(outer.dtype), part) for part in solves[:2])
    turned, inner = tall_qr(rows.T)
    held, known = _prior(theta, constants)
    mixed, triangle = jnp.linalg.qr(jnp.concatenate([inner @ outer, known]))
    right = mixed.T @ jnp.concatenate([turned.T @ residual.ravel(), -held])
    shift = jax.scipy.linalg.solve_triangular(triangle, right)
    response = jax.tree.map(lambda leaf: jnp.tensordot(outer.T, leaf, axes=1), motions)
    cost = jnp.vdot(residual, residual) + jnp.vdot(held, held)
    left = residual.ravel() - turned @ (turned.T @ residual.ravel())
    scores = jnp.sum((turned * left[:, None]).reshape(len(residual), -1, theta.size), axis=1)
    turn, inner = jnp.linalg.qr(inner @ outer)
    basis = Basis(turned @ turn, inner)
    return Sensitivity(
        triangle, shift, response, cost, jnp.sum(solves.counts), solves.residuals, scores, basis, at.prediction
    )


def tall_qr(a: Any) -> Any:
    """Return Q and R of a matrix with many more rows than columns, as accurate as by Householder's reflections.

    Q'Q is factorised and R divided out, three times, first with a shift that keeps it definite (Fukaya et al. 2020):
    products of matrices, four times as fast as reflections on a CPU.
    """
    sizes = jnp.linalg.norm(a, axis=0)
    sizes = jnp.where(sizes > 0.0, sizes, 1.0)
    rows, n = a.shape
    q, r = a / sizes, jnp.diag(sizes)
    tiny = jnp.finfo(a.dtype).eps
    for shift in (11.0 * n * (rows + n + 1) * tiny, tiny, tiny):
        factor = jnp.linalg.cholesky(q.T @ q + shift * jnp.eye(n, dtype=a.dtype)).T
        q, r = q @ jax.scipy.linalg.solve_triangular(factor, jnp.eye(n, dtype=a.dtype)), factor @ r
    return q, r


def projected_basis(model: Model, nuisance: Any, theta: Any, response: Any, constants: Any) -> Basis:
    """Return the basis of C where the response of the nuisance is known. A pure JAX function."""

    def moved(x: Any, g: Any) -> Any:
        return model.whiten(model.predict(x, g, constants), constants)

    def column(motion: Any, direction: Any) -> Any:
        return jax.jvp(moved, (nuisance, theta), (motion, direction))[1].ravel()

    return Basis(*tall_qr(jax.vmap(column)(response, jnp.eye(theta.size, dtype=theta.dtype)).T))


def gradient(model: Model, basis: Basis, change: Any, constants: Any) -> Any:
    """Return C' of a change of the observations."""
    return basis.triangle.T @ (basis.columns.T @ model.whiten(change, constants).ravel())


def tangent_basis(model: Model, nuisance: Any, theta: Any, constants: Any) -> Basis:
    """Return a basis of J_g, the whitened derivatives by theta. A pure JAX function."""
    return Basis(*tall_qr(tangents(model, nuisance, theta, constants)))


def project(
    model: Model, nuisance: Any, theta: Any, basis: Basis, direction: Any, constants: Any, *,
    tolerance: float, most: int,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the part of a whitened direction that neither the nuisance nor theta can imitate. A pure JAX function.

    `basis` is of J_g or of C. The other values are how theta moves, and with J_g the nuisance, when the direction's
    parameter becomes 1.
    """
    push, pull = _maps(model, nuisance, theta, constants)
    solution, rest, _, _ = solve_least(
        lambda x: _without(basis, push(x)), pull, _without(basis, direction),
        model.preconditioner(nuisance, theta, constants), tolerance=tolerance, most=most, over="rest",
    )  # fmt: skip
    return rest, _moved(basis, direction - push(solution)), jax.tree.map(lambda leaf: -leaf, solution)


def project_all(
    model: Model, nuisance: Any, theta: Any, basis: Basis, directions: Any, constants: Any, *,
    tolerance: float, most: int, together: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the same of several directions, `together` solves at a time, where `basis` is of C, orthogonal to J_u."""
    push, pull = _maps(model, nuisance, theta, constants)
    condition = model.preconditioner(nuisance, theta, constants)

    def without(fields: Any) -> tuple[Any, Any]:
        flat = fields.reshape(len(fields), -1)
        along = flat @ basis.columns
        return (flat - along @ basis.columns.T).reshape(fields.shape), along

    def solved(direction: Any) -> Any:
        return solve_least(push, pull, direction, condition, tolerance=tolerance, most=most, over="rest")[1]

    fields, along = without(directions)
    moves = -jax.scipy.linalg.solve_triangular(basis.triangle, along.T).T
    return without(jax.lax.map(solved, fields, batch_size=together))[0], moves


def _maps(model: Model, nuisance: Any, theta: Any, constants: Any) -> tuple[Any, Any]:
    """Return J_u and J_u'."""
    _, push = jax.linearize(lambda x: model.whiten(model.predict(x, theta, constants), constants), nuisance)
    transpose = jax.linear_transpose(push, nuisance)
    return push, lambda y: transpose(y)[0]


def _without(basis: Basis, y: Any) -> Any:
    return y - (basis.columns @ (basis.columns.T @ y.ravel())).reshape(y.shape)


def _moved(basis: Basis, rest: Any) -> Any:
    return -jax.scipy.linalg.solve_triangular(basis.triangle, basis.columns.T @ rest.ravel())


def room_slope(
    model: Model, nuisance: Any, theta: Any, noise: Any, constants: Any, *, tolerance: float, most: int
) -> tuple[Any, Any]:  # fmt: skip
    """Return the gradient of log det(J_u' J_u) / 2 by the nuisance and by theta, on average over white noise.

    A nuisance x drawn with the covariance (J_u' J_u)^-1 is the solution for such noise, and the gradient is that of
    |J_u x|^2 / 2 with x held.
    """

    def whitened(x: Any, g: Any) -> Any:
        return model.whiten(model.predict(x, g, constants), constants)

    push, pull = _maps(model, nuisance, theta, constants)
    condition = model.preconditioner(nuisance, theta, constants)
    drawn, _, _, _ = solve_least(push, pull, noise, condition, tolerance=tolerance, most=most, over="image")

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


def solve_least(
    push: Any, pull: Any, target: Any, precondition: Any, *, tolerance: float, most: int, over: str = "target"
) -> tuple[Any, Any, Any, Any]:
    """Minimise |y - J x| by preconditioned conjugate gradients, from J (`push`) and J' (`pull`) alone.

    Returns x, y - J x, the number of steps and the error of J x over |y|, |J x| or |y - J x|, as `over` is "target",
    "image" or "rest". It stops where that is below `tolerance`, or after `most` steps. The error is estimated from by
    how much the last two steps have lowered |y - J x|^2, as a geometric series; after the first one from its length,
    which is 1 where the preconditioner is (J' J)^-1. That may differ a little from step to step.
    """

    def dot(a: Any, b: Any) -> Any:
        return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

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
        length = product / jnp.maximum(dot(image, image), _TINY)
        ratio = jnp.where(count == 0, jnp.abs(1.0 - length), length * product / gains[0])
        ratio = jnp.minimum(ratio, _SLOWEST)
        gains = jnp.roll(gains, 1).at[0].set(length * product)
        error = jnp.minimum(jnp.maximum(gains[0], product) * ratio / (1.0 - ratio), jnp.sum(gains))
        solution, rest = combine(solution, length, direction), combine(rest, -length, image)
        if over != "target":
            size = dot(rest, rest) if over == "rest" else jnp.where(count == 0, 0.0, size) + gains[0]
        return count + 1, solution, rest, fresh, direction, product, gains, size, error

    whole = dot(target, target)
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(pull, target))
    start = 0, zero, target, zero, zero, 1.0 + 0.0 * whole, jnp.full(_LAST, whole), whole, whole
    count, solution, rest, *_, size, error = jax.lax.while_loop(unfinished, body, start)
    return solution, rest, count, jnp.sqrt(error / jnp.where(size > 0, size, 1.0))


class Linearised(NamedTuple):
    """A model at a point: the prediction, the whitened residual, and the maps J_u and J_u'."""

    prediction: Any
    residual: Any
    push: Any
    pull: Any


def _linearise(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> Linearised:
    """Return a model at a point; the linearisation is kept, not repeated."""
    prediction, change = jax.linearize(lambda x: model.predict(x, theta, constants), nuisance)

    def push(x: Any) -> Any:
        return model.whiten(change(x), constants)

    transpose = jax.linear_transpose(push, nuisance)
    return Linearised(prediction, model.whiten(data - prediction, constants), push, lambda y: transpose(y)[0])


def column(model: Model, nuisance: Any, theta: Any, direction: Any, constants: Any) -> Any:
    """Return how the whitened prediction moves with theta along a direction."""

    def predicted(x: Any) -> Any:
        return model.predict(nuisance, x, constants)

    return model.whiten(jax.jvp(predicted, (theta,), (direction,))[1], constants)


def columns(model: Model, nuisance: Any, theta: Any, directions: Any, constants: Any) -> Any:
    """Return the same along several directions, which come first: the field itself is computed once for all."""
    return jax.vmap(partial(column, model, nuisance, theta, constants=constants))(directions)


def tangents(model: Model, nuisance: Any, theta: Any, constants: Any) -> Any:
    """Return J_g, one column for each entry of theta."""
    each = columns(model, nuisance, theta, jnp.eye(theta.size, dtype=theta.dtype), constants)
    return each.reshape(theta.size, -1).T


def _cost(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> Any:
    residual = model.whiten(data - model.predict(nuisance, theta, constants), constants)
    held, _ = _prior(theta, constants)
    return jnp.vdot(residual, residual) + jnp.vdot(held, held)


def _prior(theta: Any, constants: Any) -> tuple[Any, Any]:
    """Return how far theta is from what is known of it, in units of the whitened residual, and the derivative."""
    prior = getattr(constants, "prior", ())
    if isinstance(prior, tuple):
        return jnp.zeros(0), jnp.zeros((0, theta.size))
    return prior[:, :-1] @ theta - prior[:, -1], prior[:, :-1]
