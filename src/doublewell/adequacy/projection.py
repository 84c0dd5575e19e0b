"""Score tests: whether the residual points along a parameter that the model does not have.

An enlarged model has one more parameter a, zero in the model that was fitted, and d is the derivative of its
prediction. What the fitted parameters can imitate of d is taken out,

    d_perp = P (d - J_u x),   P = 1 - Q Q', Q an orthonormal basis of J_g;   (J_u' P J_u) x = J_u' P d,

and a is estimated from the residual r alone: a = <d_perp, r> / |d_perp|^2 with the standard error s / |d_perp|. The
fitted values and the residual are independent, so d may be formed at the estimate. No second fit is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from doublewell.hints import Array
from doublewell.likelihood.gauss_newton import Model, solve_normal, tangents
from doublewell.runtime import double_precision

_TOLERANCE = 1e-2  # the residual is projected too: an unfinished solve for a direction only makes its test less sharp
_MOST = 200


class Basis(NamedTuple):
    """J_g = Q R diag(norms): an orthonormal basis, its triangle, and the lengths of the columns."""

    columns: Any
    triangle: Any
    norms: Any


class Projection(NamedTuple):
    """A direction without what the fit can imitate, and how theta moves when its parameter becomes 1."""

    field: Any
    shift: Any
    iterations: Any


@dataclass(frozen=True, eq=False)
class Score:
    """The parameters of one or several directions, estimated from the residual: chi-square, values, covariance."""

    chi2: float
    values: Array
    covariance: Array


def tangent_basis(model: Model, nuisance: Any, theta: Any, constants: Any) -> Basis:
    """Return a basis of J_g, the whitened derivatives by theta. A pure JAX function."""
    import jax.numpy as jnp

    columns = tangents(model, nuisance, theta, constants)
    norms = jnp.linalg.norm(columns, axis=0)
    basis, triangle = jnp.linalg.qr(columns / norms)
    return Basis(basis, triangle, norms)


def project(
    model: Model, nuisance: Any, theta: Any, basis: Basis, direction: Any, constants: Any,
    *, tolerance: float = _TOLERANCE, most: int = _MOST,
) -> Projection:  # fmt: skip
    """Return the part of a whitened direction that neither the nuisance nor theta can imitate. A pure JAX function."""
    import jax

    def whitened(x: Any) -> Any:
        return model.whiten(model.predict(x, theta, constants), constants)

    def without_theta(y: Any) -> Any:
        return y - (basis.columns @ (basis.columns.T @ y.ravel())).reshape(y.shape)

    _, push = jax.linearize(whitened, nuisance)
    pull = jax.linear_transpose(push, nuisance)
    solution, count, _ = solve_normal(
        lambda x: pull(without_theta(push(x)))[0], pull(without_theta(direction))[0],
        model.preconditioner(nuisance, theta, constants), tolerance=tolerance, most=most,
    )  # fmt: skip
    rest = direction - push(solution)
    turned = basis.columns.T @ rest.ravel()
    shift = -jax.scipy.linalg.solve_triangular(basis.triangle, turned) / basis.norms
    return Projection(without_theta(rest), shift, count)


def score(fields: Sequence[Array], residual: Array, noise: float) -> Score:
    """Estimate the parameters of projected directions together; directions that hold nothing have infinite variance."""
    flat = np.stack([np.asarray(field).ravel() for field in fields])
    information = flat @ flat.T / noise**2
    slope = flat @ residual.ravel() / noise**2
    scale = np.sqrt(np.diag(information))
    if not (np.all(scale > 0.0) and np.linalg.cond(information / np.outer(scale, scale)) < 1e12):
        return Score(0.0, np.zeros(len(flat)), np.diag(np.full(len(flat), np.inf)))
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    values = covariance @ slope
    return Score(float(slope @ values), values, covariance)


@dataclass(frozen=True, eq=False)
class Projector:
    """Project directions at the linearisations of a batch: J_g is computed once, each direction costs one solve.

    Every array has the records of the batch along its first axis.
    """

    model: Model
    nuisance: Array
    theta: Array
    constants: Any
    basis: Basis

    @classmethod
    def at(cls, model: Model, nuisance: Array, theta: Array, constants: Any) -> Projector:
        """Prepare the projections at the fits of a batch."""
        with double_precision():
            return cls(model, nuisance, theta, constants, _compiled()[0](model, nuisance, theta, constants))

    def whiten(self, field: Array) -> Array:
        """Return fields of the observations' shape in units of the noise's shape."""
        with double_precision():
            return np.asarray(self.model.whiten(field, self.constants))

    def project(self, directions: Array) -> tuple[Array, Array]:
        """Return whitened directions without what the fits can imitate, and the shifts of theta for the parameter 1."""
        return self.project_white(self.whiten(directions))

    def project_white(self, directions: Array) -> tuple[Array, Array]:
        """Do the same for directions that are whitened already."""
        with double_precision():
            found = _compiled()[1](self.model, self.nuisance, self.theta, self.basis, directions, self.constants)
            return np.asarray(found.field), np.asarray(found.shift)


@lru_cache(maxsize=1)
def _compiled() -> tuple[Any, Any]:
    import jax

    def bases(model: Model, nuisance: Any, theta: Any, constants: Any) -> Any:
        return jax.vmap(partial(tangent_basis, model), in_axes=(0, 0, None))(nuisance, theta, constants)

    def projections(model: Model, nuisance: Any, theta: Any, basis: Basis, directions: Any, constants: Any) -> Any:
        each = jax.vmap(partial(project, model), in_axes=(0, 0, 0, 0, None))
        return each(nuisance, theta, basis, directions, constants)

    return jax.jit(bases, static_argnums=0), jax.jit(projections, static_argnums=0)
