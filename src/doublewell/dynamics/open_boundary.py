"""Open boundary: a field of view cut out of something larger, driven by the values of its two-cell border.

Nothing is assumed about the outside. The border is given frame by frame, the interior follows the dynamics' local rate
with centred stencils (order 4 next to the border, 8 inside) and classical Runge-Kutta steps; between the frames the
border is a cubic in time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics.etdrk4 import differentiable_force
from doublewell.dynamics.protocol import Dynamics, steps_per_frame
from doublewell.hints import Array
from doublewell.law import Family

BORDER = 2  # cells
_TIMES, _WEIGHTS = np.array([0.0, 0.5, 0.5, 1.0]), np.array([1.0, 2.0, 2.0, 1.0]) / 6  # of Runge-Kutta 4
_STABLE = 0.9 * 2.785  # of the real axis that Runge-Kutta 4 covers, with a margin
_LARGEST = 6.51  # eigenvalue of the eighth-order second difference, in units of 1 / dx^2
_ORDERS: dict[int, tuple[float, ...]] = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    6: (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}


def stable_substeps(dynamics: Dynamics, dx: tuple[float, ...], q: float, dt: float) -> int:
    """Return the steps from frame to frame that the explicit scheme needs to be stable.

    The fastest decay is L at the shortest waves, whose second differences are _LARGEST / dx^2.
    """
    shortest = [np.array(np.sqrt(_LARGEST) / h) for h in dx]
    return steps_per_frame(-q * float(dynamics.linear(shortest)), dt, _STABLE)


def border_mask(cells: tuple[int, ...], width: int = BORDER) -> NDArray[np.bool_]:
    """Return True on the border of a mesh."""
    mask = np.ones(cells, dtype=bool)
    mask[tuple(slice(width, n - width) for n in cells)] = False
    return mask


def border_times(times: Array, substeps: int) -> Array:
    """Return the matrix from border values at the frames to those at all half steps; cubic in time, local.

    Rows: frame interval after frame interval, 2 substeps values each, then the last frame.
    """
    rows = []
    for k in range(len(times) - 1):
        first = min(max(k - 1, 0), max(len(times) - 4, 0))
        chosen = np.arange(first, min(first + 4, len(times)))
        at = times[k] + (times[k + 1] - times[k]) * np.arange(2 * substeps) / (2 * substeps)
        rows.append(_lagrange(times, chosen, at))
    rows.append(np.eye(len(times))[-1:])
    return np.concatenate(rows)


def _lagrange(times: Array, chosen: Any, at: Array) -> Array:
    matrix = np.zeros((at.size, times.size))
    for j in chosen:
        others = [m for m in chosen if m != j]
        matrix[:, j] = np.prod([(at - times[m]) / (times[j] - times[m]) for m in others], axis=0)
    return matrix


def second_differences(cells: int, dx: float, order: int = 8) -> Array:
    """Return the matrix of second differences of the cells inside the border, each of the highest order that fits."""
    matrix = np.zeros((cells - 2 * BORDER, cells))
    for row, cell in enumerate(range(BORDER, cells - BORDER)):
        room = min(cell, cells - 1 - cell)
        weights = _ORDERS[min(order, 2 * room)]
        for k, weight in enumerate(weights):
            matrix[row, cell + k] = matrix[row, cell - k] = weight
    return matrix / dx**2


def predict_window(
    u0: Any, border: Any, coefficients: Any, taus: Any, curve: Any, differences: tuple[Any, ...],
    *, dynamics: Dynamics, family: Family, substeps: int, extra: Any = None, known: Any = None,
) -> Any:  # fmt: skip
    """Return the trajectory u[t, (z, y,) x] of a window from its first field and its border at the later frames.

    `border` has shape (frames - 1, border cells), `taus` is q times the frame intervals, `curve` the matrix of
    ``border_times`` and `differences` those of ``second_differences`` along each axis. `extra` maps u, its Laplacian,
    the force and what is `known` of each frame to what is taken off the force. A pure JAX function. Products with
    matrices, because stencils of shifted slices are fused into code that computes most of it again and again.
    """
    import jax
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    inside = tuple(slice(BORDER, n - BORDER) for n in u0.shape)
    edge = jnp.asarray(np.flatnonzero(border_mask(u0.shape)))
    force = differentiable_force(family)
    inner = [matrix[:, BORDER:-BORDER] for matrix in differences]
    values = curve @ jnp.concatenate([u0.ravel()[edge][None], border])
    per_frame = values[:-1].reshape(len(border), 2 * substeps, -1)
    ends = values[2 * substeps :: 2 * substeps]
    windows = jnp.concatenate([per_frame, ends[:, None]], axis=1)  # the half steps of a frame, both ends included

    def laplacian(w: Any) -> Any:
        return sum(_along(matrix, w, axis) for axis, matrix in enumerate(inner))

    def from_border(values: Any) -> Any:
        field = jnp.zeros(u0.size).at[edge].set(values).reshape(u0.shape)
        parts = []
        for axis, matrix in enumerate(differences):
            cut = tuple(slice(None) if a == axis else part for a, part in enumerate(inside))
            parts.append(_along(matrix, field[cut], axis))
        return sum(parts)

    def frame(interior: Any, given: Any) -> tuple[Any, Any]:
        edges, tau, about = given
        sources, h = jax.vmap(from_border)(edges), tau / substeps

        def stage(state: tuple[Any, Any, Any], given: Any) -> tuple[Any, None]:
            start, slope, total = state
            source, time, weight = given
            now = start + time * h * slope
            curved, pull = laplacian(now) + source, force(coefficients, now)
            pull = pull if extra is None else pull - extra(now, curved, pull, about)
            slope = dynamics.local_rate(curved, pull)
            return (start, slope, total + weight * h * slope), None

        def step(now: Any, k: Any) -> tuple[Any, None]:
            three = jax.lax.dynamic_slice_in_dim(sources, 2 * k, 3)
            given = (three[jnp.array([0, 1, 1, 2])], jnp.asarray(_TIMES), jnp.asarray(_WEIGHTS))
            (_, _, total), _ = jax.lax.scan(stage, (now, jnp.zeros_like(now), now), given)
            return total, None

        interior, _ = jax.lax.scan(step, interior, jnp.arange(substeps))
        last = jnp.zeros(u0.size).at[edge].set(edges[-1]).reshape(u0.shape).at[inside].set(interior)
        return interior, last

    _, later = jax.lax.scan(frame, u0[inside], (windows, taus, known))
    return jnp.concatenate([u0[None], later])


def _along(matrix: Any, field: Any, axis: int) -> Any:
    import jax.numpy as jnp

    return jnp.moveaxis(jnp.tensordot(matrix, field, axes=(1, axis)), 0, axis)
