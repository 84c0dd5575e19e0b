"""ETDRK4 in JAX: exponential time differencing of order four (Kassam and Trefethen 2005), for any dynamics.

A step of length h treats z = h q L exactly; its weights are functions of z alone, times -h q D for the reaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics.allen_cahn import ALLEN_CAHN
from doublewell.dynamics.grid import Grid, jax_transforms
from doublewell.dynamics.protocol import Dynamics, Symbols, check_steps, symbols
from doublewell.hints import Array
from doublewell.law import Family, Law
from doublewell.law.family import namespace
from doublewell.record import Boundary
from doublewell.runtime import double_precision

_CONTOUR = np.exp(1j * np.pi * (np.arange(16) + 0.5) / 16)  # upper half of the unit circle; the rest is conjugate
_NEAR = 1e-10  # error of interpolated weights, relative to the largest of their kind
_LEAST, _MOST = 6, 40  # nodes of a table
_WIDER = 1.05  # the ends of a table's range lie inside, where the series can be differentiated


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
    """Return the weights of a step from z = h q L and drive = -h q D: means over a circle of radius 1 around each z.

    The closed forms cancel near z = 0; on the circle they do not. Both may be traced by JAX. z is real.
    """
    exp, stage, first, middle, last = namespace(z).exp, 0.0, 0.0, 0.0, 0.0
    for r in _CONTOUR:  # Kassam and Trefethen, Eqs. 26 to 29
        s = z + r
        e, cube = exp(s), s * s * s
        stage = stage + ((exp(0.5 * s) - 1.0) / s).real
        first = first + ((-4.0 - s + e * (4.0 - 3.0 * s + s * s)) / cube).real
        middle = middle + (2.0 * (2.0 + s + e * (s - 2.0)) / cube).real
        last = last + ((-4.0 - 3.0 * s - s * s + e * (4.0 - s)) / cube).real
    drive = drive / _CONTOUR.size
    return Weights(exp(z), exp(0.5 * z), drive * stage, drive * first, drive * middle, drive * last)


def step_weights(of: Symbols, tau: Any) -> Weights:
    """Return the weights of a step with tau = h q; of taus[node], those of all nodes along a leading axis."""
    tau = tau.reshape(-1, *[1] * of.linear.ndim) if np.ndim(tau) else tau
    return etd_weights(tau * of.linear, -tau * of.coupling)


class StepTable(NamedTuple):
    """The weights as a smooth function of tau = h q: at Chebyshev nodes of log tau, the leading axis; a pytree.

    For frames at uneven times, or a q that is estimated. Exact to round-off, and cheap to differentiate, where tracing
    the contour sums would take half a minute of compilation. ``middle`` and ``half`` are the centre and the half-length
    of the range of log tau.
    """

    middle: Any
    half: Any
    weights: Weights

    def fractions(self, tau: Any) -> Any:
        """Return the part of each node in the weights at tau; shape (*tau.shape, nodes). May be traced by JAX.

        The Chebyshev series through the nodes: T_k(x) = cos(k arccos x), by their discrete orthogonality.
        """
        xp, count = namespace(tau), len(self.weights.whole)
        if count == 1:
            return xp.ones((*tau.shape, 1))
        k = np.arange(count)
        at_nodes = np.where(k == 0, 1.0, 2.0)[:, None] / count * np.cos(k[:, None] * _angles(count))
        angle = xp.arccos((xp.log(tau) - self.middle) / self.half)
        return xp.cos(angle[..., None] * k) @ at_nodes

    def weigh(self, fractions: Any) -> Weights:
        """Return the weights of a step from its fractions of the nodes."""
        xp = namespace(fractions)
        return Weights(*(xp.tensordot(fractions, xp.asarray(part), axes=1) for part in self.weights))


def step_table(of: Symbols, low: float, high: float) -> StepTable:
    """Return a table for steps with tau = h q from `low` to `high`; one node where they are equal."""
    if high <= low * (1.0 + 1e-12):
        return StepTable(np.log(low), 1.0, step_weights(of, np.array([low])))
    middle, half = 0.5 * np.log(low * high), _WIDER * 0.5 * np.log(high / low)
    probes = np.exp(middle + half * np.linspace(-0.97, 0.97, 7))
    exact = step_weights(of, probes)
    for count in range(_LEAST, _MOST + 1, 2):
        table = StepTable(middle, half, step_weights(of, np.exp(middle + half * np.cos(_angles(count)))))
        close = table.weigh(table.fractions(probes))
        pairs = [pair for both in zip(close, exact, strict=True) for pair in zip(*both, strict=True)]
        if max(float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) or 1.0)) for a, b in pairs) < _NEAR:
            break
    return table


def _angles(count: int) -> Array:
    return (np.arange(count) + 0.5) * np.pi / count


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
        forward(u0), lambda _: lambda modes, _: forward(force(coefficients, backward(modes))), lambda _: weights,
        lambda modes, _: backward(modes), None, frames=frames, substeps=substeps,
    )  # fmt: skip
    return jnp.concatenate([u0[None], later])


def roll(
    modes: Any, reaction: Any, weights: Any, emit: Any, given: Any, *, frames: int, substeps: int, begin: Any = None
) -> Any:
    """Return emit(modes, known) after each frame interval; `weights` maps what is `given` for it to its step's weights.

    `reaction` maps the same to a map from modes, and how many half steps of the interval have passed, to the modes of
    the force G; `begin` changes the modes before the steps of an interval. A pure JAX function.
    """
    import jax
    import jax.numpy as jnp

    def frame(modes: Any, known: Any) -> tuple[Any, Any]:
        step, react = weights(known), jax.jit(reaction(known))
        modes = modes if begin is None else begin(modes, known)

        def substep(now: Any, number: Any) -> tuple[Any, None]:
            return _etd_step(now, lambda modes, half: react(modes, 2 * number + half), step), None

        modes, _ = jax.lax.scan(substep, modes, jnp.arange(substeps))
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

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals; u0 is not among them."""
        import jax

        static = {"family": law.family, "boundary": self.grid.boundary, "frames": 2, "substeps": int(self.substeps)}
        weights = step_weights(symbols(self.dynamics, self.grid.waves), self.dt / self.substeps * self.q)
        with double_precision():
            u, coefficients, weights = jax.device_put((u0, law.coefficients, weights))
        for _ in range(intervals):  # one compilation serves any number of frames; a call costs 0.3 ms
            with double_precision():  # not around the loop: the caller's code runs between the frames
                u = _compiled()(u, coefficients, weights, **static)[1]
            yield np.array(u)


@lru_cache(maxsize=1)
def _compiled() -> Any:
    import jax

    return jax.jit(predict, static_argnames=("family", "boundary", "frames", "substeps"))
