"""ETDRK4 in JAX: exponential time differencing of order four (Kassam and Trefethen 2005)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics.grid import Grid
from doublewell.dynamics.precision import double_precision
from doublewell.dynamics.stepper import check_steps
from doublewell.dynamics.transforms import jax_transforms
from doublewell.hints import Array
from doublewell.law import Family, Law
from doublewell.law.family import namespace
from doublewell.record import Boundary

__all__ = ["Etdrk4", "Weights", "differentiable_force", "etd_weights", "predict", "roll"]

_CONTOUR = np.exp(1j * np.pi * (np.arange(16) + 0.5) / 16)  # upper half of the unit circle; the rest is conjugate


class Weights(NamedTuple):
    """The six factors of one step for each mode; a pytree, so they are run-time arguments of compiled code.

    With z = h q symbol and the reaction -q G: ``whole`` exp(z), ``half`` exp(z/2), ``stage`` the weight of a stage's
    reaction over half a step, ``first``, ``middle``, ``last`` those of the final sum. The factor -q is included.
    """

    whole: Any
    half: Any
    stage: Any
    first: Any
    middle: Any
    last: Any


def etd_weights(symbol: Any, *, step: float, q: Any) -> Weights:
    """Return the weights for one step length and one q: means over a circle of radius 1 around each z.

    The closed forms cancel near z = 0; on the circle they do not. q may be traced by JAX, to estimate it.
    """
    z = step * q * symbol
    sums: list[Any] = [0.0, 0.0, 0.0, 0.0]
    for r in _CONTOUR:
        sums = [total + term for total, term in zip(sums, _contour_terms(z + r), strict=True)]
    scaled = [-step * q * total / _CONTOUR.size for total in sums]
    exp = namespace(z).exp
    return Weights(exp(z), exp(0.5 * z), *scaled)


def _contour_terms(s: Any) -> list[Any]:
    """Evaluate the closed forms at complex points s away from zero (Kassam and Trefethen, Eqs. 26 to 29)."""
    e, half, cube = namespace(s).exp(s), namespace(s).exp(0.5 * s), s * s * s
    first = (-4.0 - s + e * (4.0 - 3.0 * s + s * s)) / cube
    middle = 2.0 * (2.0 + s + e * (s - 2.0)) / cube
    last = (-4.0 - 3.0 * s - s * s + e * (4.0 - s)) / cube
    return [term.real for term in ((half - 1.0) / s, first, middle, last)]


def predict(
    u0: Any, coefficients: Any, weights: Weights, *, family: Family, boundary: Boundary, frames: int, substeps: int
) -> Any:
    """Return the trajectory u[t, (z, y,) x] of `frames` frames, u0 included as frame 0.

    A pure JAX function of the initial field, the coefficients of the effective force and the step's weights
    (for a step of dt / substeps); the keywords are static. Call it inside ``double_precision()``, under any of
    jit, jvp, vjp, linearize, vmap.
    """
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    forward, backward = jax_transforms(u0.shape, boundary)
    force = differentiable_force(family)
    later = roll(
        forward(u0), lambda modes: forward(force(coefficients, backward(modes))), lambda _: weights, backward, None,
        frames=frames, substeps=substeps,
    )  # fmt: skip
    return jnp.concatenate([u0[None], later])


def roll(modes: Any, reaction: Any, weights: Any, emit: Any, given: Any, *, frames: int, substeps: int) -> Any:
    """Return emit(modes) after each frame interval; `weights` maps what is `given` for a frame to its step's weights.

    `reaction` maps modes to the modes of the force. A pure JAX function.
    """
    import jax

    def frame(modes: Any, one: Any) -> tuple[Any, Any]:
        step = weights(one)

        def substep(now: Any, _: None) -> tuple[Any, None]:
            return _etd_step(now, reaction, step), None

        modes, _ = jax.lax.scan(substep, modes, None, length=substeps)
        return modes, emit(modes)

    return jax.lax.scan(frame, modes, given, length=frames - 1)[1]


@lru_cache(maxsize=64)
def differentiable_force(family: Any) -> Any:
    """Return the family's force with its derivative by hand: a linearisation in u keeps one field, G'(u), a stage.

    Left to itself JAX keeps every intermediate of the polynomial, about ten times the memory.
    """
    import jax
    import jax.numpy as jnp

    def derivative(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (coefficients, u), (change, motion) = primals, tangents
        value, slope = jax.jvp(partial(family.force, coefficients), (u,), (jnp.ones_like(u),))
        total = jnp.zeros_like(value) if _is_zero(motion) else slope * motion
        return value, total if _is_zero(change) else total + family.force(change, u)

    force = jax.custom_jvp(family.force)
    force.defjvp(derivative, symbolic_zeros=True)
    return force


def _is_zero(tangent: Any) -> bool:
    from jax.custom_derivatives import SymbolicZero

    return isinstance(tangent, SymbolicZero)


def _etd_step(modes: Any, reaction: Any, w: Weights) -> Any:
    start = reaction(modes)
    drift = w.half * modes
    a = drift + w.stage * start
    at_a = reaction(a)
    at_b = reaction(drift + w.stage * at_a)
    at_c = reaction(w.half * a + w.stage * (2.0 * at_b - start))
    return w.whole * modes + w.first * start + w.middle * (at_a + at_b) + w.last * at_c


@dataclass(frozen=True)
class Etdrk4:
    """Advance a field by steps h = dt / substeps of ETDRK4; NumPy in and out, float64.

    The compiled code serves every law of a family, every dx, dt and q on meshes of one shape.
    """

    grid: Grid
    dt: float
    q: float
    substeps: int
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_steps(dt=self.dt, q=self.q, substeps=self.substeps)

    @property
    def weights(self) -> Weights:
        """The weights of one step, NumPy arrays."""
        return etd_weights(self.grid.symbol, step=self.dt / self.substeps, q=self.q)

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals; u0 is not among them."""
        static = {"family": law.family, "boundary": self.grid.boundary, "frames": 2, "substeps": int(self.substeps)}
        with double_precision():
            u, coefficients, weights = _on_device((u0, law.coefficients, self.weights))
        for _ in range(intervals):  # one compilation serves any number of frames; a call costs 0.3 ms
            with double_precision():  # not around the loop: the caller's code runs between the frames
                u = _compiled()(u, coefficients, weights, **static)[1]
            yield np.array(u)


def _on_device(arrays: Any) -> Any:
    import jax

    return jax.device_put(arrays)


@lru_cache(maxsize=1)
def _compiled() -> Any:
    import jax

    return jax.jit(predict, static_argnames=("family", "boundary", "frames", "substeps"))
