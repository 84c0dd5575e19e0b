"""ETDRK4 in JAX: exponential time differencing of order four (Kassam and Trefethen 2005), for any dynamics.

A step of length h treats z = h q L exactly; its weights are functions of z alone, times -h q D for the reaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import factorial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, jax_transforms
from doublewell.dynamics.mobility import acted, pace
from doublewell.dynamics.protocol import Dynamics, Symbols, check_known, check_steps, symbols
from doublewell.hints import Array
from doublewell.law import Family, Law
from doublewell.law.family import namespace
from doublewell.record import Boundary
from doublewell.runtime import double_precision

_NEAR, _TERMS = 0.5, 15  # -z up to which a power series serves, and its last power: exact to round-off
BLOCK = 16  # steps whose stages are computed again where they are needed: of long trajectories they are not kept
_KEPT = 2**27  # numbers of all stages that are kept: 1 GB in double precision


class Weights(NamedTuple):
    """The six factors of one step for each mode; a pytree, so they are run-time arguments of compiled code.

    ``whole`` exp(z), ``half`` exp(z/2), ``stage`` the weight of a stage's force over half a step, ``first``,
    ``middle``, ``last`` those of the final sum. The factor -h q D of the force is included.
    """

    whole: Any
    half: Any
    stage: Any
    first: Any
    middle: Any
    last: Any


def etd_weights(z: Any, drive: Any) -> Weights:
    """Return the weights of a step from z = h q L <= 0 and drive = -h q D; both may be traced by JAX.

    Of phi_1 = (exp(z) - 1) / z, phi_2 = (phi_1 - 1) / z, phi_3 = (phi_2 - 1/2) / z. These cancel near z = 0: there
    phi_3 is a power series, and the others follow from it.
    """
    xp = namespace(z)
    near, whole, half = z > -_NEAR, xp.exp(z), xp.exp(0.5 * z)
    small, large = xp.where(near, z, 0.0), xp.where(near, -_NEAR, z)
    third = 0.0 * small
    for n in range(_TERMS, 2, -1):
        third = small * third + 1.0 / factorial(n)
    second = 0.5 + small * third
    first = xp.expm1(large) / large
    one = xp.where(near, 1.0 + small * second, first)
    two = xp.where(near, second, (first - 1.0) / large)
    three = xp.where(near, third, ((first - 1.0) / large - 0.5) / large)
    return Weights(
        whole, half, drive * one / (half + 1.0), drive * (one - 3.0 * two + 4.0 * three),
        drive * (2.0 * two - 4.0 * three), drive * (4.0 * three - two),
    )  # fmt: skip


def step_weights(of: Symbols, tau: Any) -> Weights:
    """Return the weights of a step with tau = h q."""
    return etd_weights(tau * of.linear, -tau * of.coupling)


def predict(
    u0: Any, coefficients: Any, weights: Weights, acting: Any = None, *, family: Family, boundary: Boundary,
    frames: int, substeps: int,
) -> Any:  # fmt: skip
    """Return the trajectory u[t, (z, y,) x] of `frames` frames, u0 included as frame 0.

    A pure JAX function of the initial field, the coefficients of the effective force and the step's weights
    (for a step of dt / substeps); the keywords are static. `acting` is what acts in addition to the law: L, a
    driving force at the half steps of each frame interval and the coefficients of a mobility, each of the two or None.
    Call it inside ``double_precision()``, under any of jit, jvp, vjp, linearize, vmap.
    """
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    forward, backward = jax_transforms(u0.shape, boundary)
    force = differentiable_force(family)
    linear, driving, rates = (None, None, None) if acting is None else acting
    speed = None if rates is None else pace(rates)[1]

    def reaction(driven: Any) -> Any:
        def force_modes(modes: Any, half: Any) -> Any:
            u = backward(modes)
            curved = None if speed is None else backward(linear * modes)
            return forward(acted(u, curved, force(coefficients, u), None if driven is None else driven[half], speed))

        return force_modes

    later = roll(
        forward(u0), reaction, lambda _: weights, lambda modes, _: backward(modes), driving, frames=frames,
        substeps=substeps,
    )  # fmt: skip
    return jnp.concatenate([u0[None], later])


def roll(
    modes: Any, reaction: Any, weights: Any, emit: Any, given: Any, *, frames: int, substeps: int, begin: Any = None
) -> Any:
    """Return emit(modes, known) after each frame interval; `weights` maps what is `given` for it to its step's weights.

    `reaction` maps the same to a map from modes, and how many half steps of the interval have passed, to the modes of
    the force G; `begin` changes the modes before the steps of an interval. A pure JAX function. A linearisation
    keeps G' at all stages, or, where these are too many, the modes after every few steps.
    """
    import jax
    import jax.numpy as jnp

    kept = 4 * substeps * (frames - 1) * 2 * modes.size
    block = BLOCK if kept > _KEPT and substeps % BLOCK == 0 else 0

    def frame(modes: Any, known: Any) -> tuple[Any, Any]:
        step, react = weights(known), jax.jit(reaction(known))
        modes = modes if begin is None else begin(modes, known)

        def substep(now: Any, number: Any) -> tuple[Any, None]:
            return _etd_step(now, lambda modes, half: react(modes, 2 * number + half), step), None

        @partial(jax.checkpoint, prevent_cse=False)
        def steps(now: Any, numbers: Any) -> Any:
            return jax.lax.scan(substep, now, numbers)

        numbers = jnp.arange(substeps)
        if block:
            modes, _ = jax.lax.scan(steps, modes, numbers.reshape(-1, block))
        else:
            modes, _ = jax.lax.scan(substep, modes, numbers)
        return modes, emit(modes, known)

    return jax.lax.scan(frame, modes, given, length=frames - 1)[1]


@lru_cache(maxsize=64)
def differentiable_force(family: Any) -> Any:
    """Return the family's force with its derivative by hand: a linearisation in u keeps one field, G'(u), a stage.

    Left to itself JAX keeps every intermediate of the polynomial, about ten times the memory.
    """
    import jax
    import jax.numpy as jnp
    from jax.custom_derivatives import SymbolicZero

    def derivative(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (coefficients, u), (change, motion) = primals, tangents
        value, slope = jax.jvp(partial(family.force, coefficients), (u,), (jnp.ones_like(u),))
        total = jnp.zeros_like(value) if isinstance(motion, SymbolicZero) else slope * motion
        return value, total if isinstance(change, SymbolicZero) else total + family.force(change, u)

    force = jax.custom_jvp(family.force)
    force.defjvp(derivative, symbolic_zeros=True)
    return force


def _etd_step(modes: Any, reaction: Any, w: Weights) -> Any:
    start = reaction(modes, 0)
    drift = w.half * modes
    a = drift + w.stage * start
    at_a = reaction(a, 1)
    at_b = reaction(drift + w.stage * at_a, 1)
    at_c = reaction(w.half * a + w.stage * (2.0 * at_b - start), 2)
    return w.whole * modes + w.first * start + w.middle * (at_a + at_b) + w.last * at_c


@dataclass(frozen=True)
class Etdrk4:
    """Advance a field by steps h = dt / substeps of ETDRK4; NumPy in and out, float64.

    The compiled code serves every dynamics, every law of a family, every dx, dt and q on meshes of one shape.
    """

    grid: Grid
    dt: float
    q: float
    substeps: int
    dynamics: Dynamics = ALLEN_CAHN
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_steps(dt=self.dt, q=self.q, substeps=self.substeps)
        check_known(self.dynamics)

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals; u0 is not among them."""
        import jax

        static = {"family": law.family, "boundary": self.grid.boundary, "frames": 2, "substeps": int(self.substeps)}
        of, parts, tau = (
            symbols(self.dynamics, self.grid.waves, self.grid.crossed),
            self.dynamics.parts,
            self.q * self.dt,
        )
        rates = None if parts.rate is None else np.array(parts.rate.coefficients)
        with double_precision():
            weights = step_weights(of, tau / self.substeps * (1.0 if rates is None else float(pace(rates)[0])))
            u, coefficients, weights = jax.device_put((u0, law.coefficients, weights))
        for frame in range(intervals):  # one compilation serves any number of frames; a call costs 0.3 ms
            driven = parts.driven(self.dt * (frame + np.arange(2 * self.substeps + 1) / (2 * self.substeps)))
            acting = (of.linear, driven, rates) if parts.acts else None
            with double_precision():  # not around the loop: the caller's code runs between the frames
                u = _compiled()(u, coefficients, weights, acting, **static)[1]
            yield np.array(u)


@lru_cache(maxsize=1)
def _compiled() -> Any:
    import jax

    return jax.jit(predict, static_argnames=("family", "boundary", "frames", "substeps"))
