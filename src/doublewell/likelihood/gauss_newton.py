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
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

_SHORTEST = 2.0**-12  # a step cut this short is not taken
_LAST = 10  # steps of conjugate gradients that tell what is left to gain


class Model(Protocol):
    """What the solver needs of a model. Hashable, so that compiled code serves all records of one shape.

    `constants` is a pytree of arrays that the methods share: step weights, root weights, the preconditioner's symbol.
    """

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


def begin(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> Point:
    """Return the point to start from."""
    cost = _cost(model, nuisance, theta, data, constants)
    return Point(nuisance, theta, cost, cost, 0.0 * cost, 1.0 + 0.0 * cost, 0, 0.0 * cost)


def advance(model: Model, point: Point, data: Any, constants: Any, *, tolerance: float, most: int) -> Point:
    """Take one Gauss-Newton step; a step that raises the cost is halved until it does not."""
    residual, push, pull = _linearise(model, point.nuisance, point.theta, data, constants)
    columns = _columns(model, point.nuisance, point.theta, constants)
    norms, (held, rows) = jnp.linalg.norm(columns, axis=0), _prior(point.theta, constants)
    basis, triangle = jnp.linalg.qr(jnp.concatenate([columns, rows]) / norms)
    basis, below = basis[: residual.size], basis[residual.size :]

    def project(y: Any) -> Any:
        return y - (basis @ (basis.T @ y.ravel())).reshape(y.shape)

    right = pull(project(residual) + (basis @ (below.T @ held)).reshape(residual.shape))
    step_u, count, rest = solve_normal(
        lambda x: pull(project(push(x))), right, model.preconditioner(point.nuisance, point.theta, constants),
        tolerance=tolerance, most=most,
    )  # fmt: skip
    turned = basis.T @ (residual - push(step_u)).ravel() - below.T @ held
    step_g = jax.scipy.linalg.solve_triangular(triangle, turned) / norms
    taken = _shortened(model, point, step_u, step_g, residual, data, constants)
    return taken._replace(size=jnp.linalg.norm(triangle @ (step_g * norms)), iterations=count, residual=rest)


def follow(model: Model, point: Point, data: Any, constants: Any, *, tolerance: float, most: int) -> Point:
    """Take one Gauss-Newton step of the nuisance alone, theta held: the fields that follow a given law.

    The size is |J_u du|, how far the prediction would move.
    """
    residual, push, pull = _linearise(model, point.nuisance, point.theta, data, constants)
    step, count, rest = solve_normal(
        lambda x: pull(push(x)), pull(residual), model.preconditioner(point.nuisance, point.theta, constants),
        tolerance=tolerance, most=most,
    )  # fmt: skip
    taken = _shortened(model, point, step, jnp.zeros_like(point.theta), residual, data, constants)
    return taken._replace(size=jnp.linalg.norm(push(step)), iterations=count, residual=rest)


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


def sensitivity(
    model: Model, nuisance: Any, theta: Any, data: Any, constants: Any, *, tolerance: float, most: int, together: int
) -> Sensitivity:
    """Return R of the projected sensitivities at a point, `together` solves at a time.

    An unfinished solve leaves part of J_u in C and makes R too large, by the square of the solve's error. So the solves
    are made for an orthonormal basis of J_g, J_g = Q T: neighbouring coefficients have almost the same effect, and an
    error of a hundredth of J_g's columns would be larger than the directions in which they differ.
    """
    residual, push, pull = _linearise(model, nuisance, theta, data, constants)
    condition = model.preconditioner(nuisance, theta, constants)
    basis, outer = jnp.linalg.qr(tangents(model, nuisance, theta, constants))

    def project(column: Any) -> tuple[Any, Any, Any, Any]:
        column = column.reshape(residual.shape)
        solution, count, rest = solve_normal(
            lambda x: pull(push(x)), pull(column), condition, tolerance=tolerance, most=most, size=1.0
        )
        return (column - push(solution)).ravel(), jax.tree.map(lambda leaf: -leaf, solution), count, rest

    rows, motions, counts, rests = jax.lax.map(project, basis.T, batch_size=together)
    turned, inner = jnp.linalg.qr(rows.T)
    held, known = _prior(theta, constants)
    mixed, triangle = jnp.linalg.qr(jnp.concatenate([inner @ outer, known]))
    right = mixed.T @ jnp.concatenate([turned.T @ residual.ravel(), -held])
    shift = jax.scipy.linalg.solve_triangular(triangle, right)
    response = jax.tree.map(lambda leaf: jnp.tensordot(outer.T, leaf, axes=1), motions)
    cost = jnp.vdot(residual, residual) + jnp.vdot(held, held)
    left = residual.ravel() - turned @ (turned.T @ residual.ravel())
    scores = jnp.sum((turned * left[:, None]).reshape(len(residual), -1, theta.size), axis=1)
    return Sensitivity(triangle, shift, response, cost, jnp.sum(counts), rests, scores)


class Basis(NamedTuple):
    """J_g = Q R diag(norms): an orthonormal basis, its triangle, and the lengths of the columns."""

    columns: Any
    triangle: Any
    norms: Any


def tangent_basis(model: Model, nuisance: Any, theta: Any, constants: Any) -> Basis:
    """Return a basis of J_g, the whitened derivatives by theta. A pure JAX function."""
    columns = tangents(model, nuisance, theta, constants)
    norms = jnp.linalg.norm(columns, axis=0)
    basis, triangle = jnp.linalg.qr(columns / norms)
    return Basis(basis, triangle, norms)


def project(
    model: Model, nuisance: Any, theta: Any, basis: Basis, direction: Any, constants: Any, *,
    tolerance: float, most: int,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the part of a whitened direction that neither the nuisance nor theta can imitate. A pure JAX function.

    The second value is how theta moves when the direction's parameter becomes 1.
    """

    def whitened(x: Any) -> Any:
        return model.whiten(model.predict(x, theta, constants), constants)

    def without_theta(y: Any) -> Any:
        return y - (basis.columns @ (basis.columns.T @ y.ravel())).reshape(y.shape)

    _, push = jax.linearize(whitened, nuisance)
    pull = jax.linear_transpose(push, nuisance)
    solution, _, _ = solve_normal(
        lambda x: pull(without_theta(push(x)))[0], pull(without_theta(direction))[0],
        model.preconditioner(nuisance, theta, constants), tolerance=tolerance, most=most,
        size=jnp.linalg.norm(direction.ravel()),
    )  # fmt: skip
    rest = direction - push(solution)
    turned = basis.columns.T @ rest.ravel()
    return without_theta(rest), -jax.scipy.linalg.solve_triangular(basis.triangle, turned) / basis.norms


def room_slope(
    model: Model, nuisance: Any, theta: Any, noise: Any, constants: Any, *, tolerance: float, most: int
) -> tuple[Any, Any]:  # fmt: skip
    """Return the gradient of log det(J_u' J_u) / 2 by the nuisance and by theta, on average over white noise.

    A nuisance x drawn with the covariance (J_u' J_u)^-1 is the solution for such noise, and the gradient is that of
    |J_u x|^2 / 2 with x held.
    """

    def whitened(x: Any, g: Any) -> Any:
        return model.whiten(model.predict(x, g, constants), constants)

    _, push = jax.linearize(lambda x: whitened(x, theta), nuisance)
    pull = jax.linear_transpose(push, nuisance)
    drawn, _, _ = solve_normal(
        lambda x: pull(push(x))[0], pull(noise)[0], model.preconditioner(nuisance, theta, constants),
        tolerance=tolerance, most=most,
    )  # fmt: skip

    def room(x: Any, g: Any) -> Any:
        image = jax.jvp(lambda y: whitened(y, g), (x,), (drawn,))[1]
        return 0.5 * jnp.vdot(image, image)

    along, slope = jax.grad(room, argnums=(0, 1))(nuisance, theta)
    return along, slope


def pull_back(model: Model, nuisance: Any, theta: Any, field: Any, constants: Any) -> tuple[Any, Any]:
    """Return J_u' and J_g' of a field of the observations' shape, whitened on the way.

    J_g' takes one tangent for each entry of theta: its transpose would keep every feature of every step.
    """
    white = model.whiten(field, constants)
    _, pull = jax.vjp(lambda x: model.whiten(model.predict(x, theta, constants), constants), nuisance)
    slopes = jax.lax.map(
        lambda direction: jnp.vdot(column(model, nuisance, theta, direction, constants), white),
        jnp.eye(theta.size, dtype=theta.dtype),
    )
    return pull(white)[0], slopes


def force_needed(model: Model, nuisance: Any, theta: Any, white: Any, constants: Any) -> tuple[Any, Any]:
    """Return the gradient of <prediction, white> by a force in each frame interval, the `pushes` of the constants.

    The second value is how much of |white|^2 a force along the gradient explains.
    """

    def pushed(pushes: Any) -> Any:
        return model.whiten(model.predict(nuisance, theta, constants._replace(pushes=pushes)), constants)

    zero = jnp.zeros_like(constants.pushes)
    gradient = jax.vjp(pushed, zero)[1](white)[0]
    motion = jax.jvp(pushed, (zero,), (gradient,))[1]
    return gradient, jnp.vdot(gradient, gradient) ** 2 / jnp.vdot(motion, motion)


def solve_normal(
    apply: Any, right: Any, precondition: Any, *, tolerance: float, most: int, size: Any = None
) -> tuple[Any, Any, Any]:
    """Solve a symmetric positive system by preconditioned conjugate gradients on pytrees.

    Stops at `tolerance` times the first residual in the preconditioner's norm, or after `most` steps; returns the
    solution, the number of steps and the relative residual reached.

    Where J_u' J_u x = J_u' y is solved for y - J_u x, `size` is |y|. Where the first residual is larger than that, the
    solve stops when the residual, or by how much the last steps have lowered |y - J_u x|^2, says that less than
    (tolerance |y|)^2 is left to gain. On a border, which the preconditioner leaves as it is, the first residual is up
    to 60 |y|, and a hundredth of that hides directions of the law that the nuisance imitates well.
    """

    def dot(a: Any, b: Any) -> Any:
        return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

    def combine(a: Any, factor: Any, b: Any) -> Any:
        return jax.tree.map(lambda x, y: x + factor * y, a, b)

    def left(product: Any, gains: Any) -> Any:
        return product if size is None else jnp.where(start > whole, jnp.minimum(product, jnp.sum(gains)), product)

    def unfinished(state: tuple[Any, ...]) -> Any:
        count, *_, product, gains = state
        return (count < most) & (product > 0.0) & (left(product, gains) > tolerance**2 * whole)

    def body(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, solution, rest, direction, product, gains = state
        image = apply(direction)
        length = product / dot(direction, image)
        solution, rest = combine(solution, length, direction), combine(rest, -length, image)
        turned = precondition(rest)
        fresh = dot(rest, turned)
        gains = jnp.roll(gains, 1).at[0].set(length * product)  # by how much this step lowers |y - J_u x|^2
        return count + 1, solution, rest, combine(turned, fresh / product, direction), fresh, gains

    first = precondition(right)
    start = dot(right, first)
    whole = start if size is None else jnp.minimum(start, size**2)
    zero, unknown = jax.tree.map(jnp.zeros_like, right), jnp.full(_LAST, whole)
    count, solution, _, _, product, gains = jax.lax.while_loop(
        unfinished, body, (0, zero, right, first, start, unknown)
    )
    return solution, count, jnp.sqrt(left(product, gains) / jnp.where(whole > 0, whole, 1.0))


def _linearise(model: Model, nuisance: Any, theta: Any, data: Any, constants: Any) -> tuple[Any, Any, Any]:
    """Return the whitened residual and the maps J_u and J_u' there; the linearisation is kept, not repeated."""

    def whitened(x: Any) -> Any:
        return model.whiten(data - model.predict(x, theta, constants), constants)

    residual, change = jax.linearize(whitened, nuisance)
    transpose = jax.linear_transpose(change, nuisance)

    def push(x: Any) -> Any:
        return -change(x)

    def pull(y: Any) -> Any:
        return jax.tree.map(lambda leaf: -leaf, transpose(y)[0])

    return residual, push, pull


def column(model: Model, nuisance: Any, theta: Any, direction: Any, constants: Any) -> Any:
    """Return how the whitened prediction moves with theta along a direction."""

    def predicted(x: Any) -> Any:
        return model.predict(nuisance, x, constants)

    return model.whiten(jax.jvp(predicted, (theta,), (direction,))[1], constants)


def tangents(model: Model, nuisance: Any, theta: Any, constants: Any) -> Any:
    """Return J_g, one tangent after the other: the memory of one, where ``_columns`` takes that of all."""
    return jax.lax.map(
        lambda direction: column(model, nuisance, theta, direction, constants).ravel(),
        jnp.eye(theta.size, dtype=theta.dtype),
    ).T


def _columns(model: Model, nuisance: Any, theta: Any, constants: Any) -> Any:
    """Return J_g, one column for each entry of theta."""
    each = jax.vmap(partial(column, model, nuisance, theta, constants=constants))
    return each(jnp.eye(theta.size, dtype=theta.dtype)).reshape(theta.size, -1).T


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
