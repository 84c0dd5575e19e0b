"""A window: a field of view cut out of something larger, driven by the values of its two-cell border.

Nothing is assumed about the outside. The border is given frame by frame, the interior follows u_t = q (Lap u - G(u))
with centred stencils (order 4 next to the border, 8 inside) and classical Runge-Kutta steps; between the frames the
border is a cubic in time.
"""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics.etdrk4 import differentiable_force
from doublewell.hints import Array
from doublewell.law import Family

__all__ = ["BORDER", "border_mask", "border_times", "predict_window", "stable_substeps"]

BORDER = 2  # cells
_STABLE = 0.9 * 2.785  # of the real axis that Runge-Kutta 4 covers, with a margin
_LARGEST = 6.51  # eigenvalue of the eighth-order second difference, in units of 1 / dx^2
_ORDERS: dict[int, tuple[float, ...]] = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    6: (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}


def stable_substeps(dx: tuple[float, ...], q: float, dt: float) -> int:
    """Return the steps from frame to frame that the explicit scheme needs to be stable."""
    return max(1, ceil(q * dt * _LARGEST * sum(1.0 / h**2 for h in dx) / _STABLE))


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
    found = np.zeros((at.size, times.size))
    for j in chosen:
        others = [m for m in chosen if m != j]
        found[:, j] = np.prod([(at - times[m]) / (times[j] - times[m]) for m in others], axis=0)
    return found


def predict_window(
    u0: Any, border: Any, coefficients: Any, taus: Any, curve: Any, scales: tuple[float, ...],
    *, family: Family, substeps: int, order: int = 8,
) -> Any:  # fmt: skip
    """Return the trajectory u[t, (z, y,) x] of a window from its first field and its border at the later frames.

    `border` has shape (frames - 1, border cells), `taus` is q times the frame intervals, `curve` the matrix of
    ``border_times`` and `scales` 1 / dx^2 along each axis. A pure JAX function.
    """
    import jax
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    mask = border_mask(u0.shape)
    inside = tuple(slice(BORDER, n - BORDER) for n in u0.shape)
    place = jnp.asarray(np.flatnonzero(mask))
    values = curve @ jnp.concatenate([u0.ravel()[place][None], border])
    per_frame = values[:-1].reshape(len(border), 2 * substeps, -1)
    ends = values[2 * substeps :: 2 * substeps]
    windows = jnp.concatenate([per_frame, ends[:, None]], axis=1)  # the half steps of a frame, both ends included
    rate = partial(_rate, force=differentiable_force(family), coefficients=coefficients, scales=scales, order=order)

    def with_border(interior: Any, edge: Any) -> Any:
        return jnp.zeros(u0.size).at[place].set(edge).reshape(u0.shape).at[inside].set(interior)

    def substep(interior: Any, edges: Any, h: Any) -> Any:
        k1 = rate(with_border(interior, edges[0]))
        k2 = rate(with_border(interior + 0.5 * h * k1, edges[1]))
        k3 = rate(with_border(interior + 0.5 * h * k2, edges[1]))
        k4 = rate(with_border(interior + h * k3, edges[2]))
        return interior + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    def frame(interior: Any, given: Any) -> tuple[Any, Any]:
        edges, tau = given

        def step(now: Any, k: Any) -> tuple[Any, None]:
            three = jax.lax.dynamic_slice_in_dim(edges, 2 * k, 3)
            return substep(now, three, tau / substeps), None

        interior, _ = jax.lax.scan(step, interior, jnp.arange(substeps))
        return interior, with_border(interior, edges[-1])

    _, later = jax.lax.scan(frame, u0[inside], (windows, taus))
    return jnp.concatenate([u0[None], later])


def _rate(u: Any, *, force: Any, coefficients: Any, scales: tuple[float, ...], order: int) -> Any:
    """Return Lap u - G(u) inside the border; the factor q is in the step."""
    inside = tuple(slice(BORDER, n - BORDER) for n in u.shape)
    return _laplacian(u, scales, order) - force(coefficients, u[inside])


def _laplacian(u: Any, scales: tuple[float, ...], order: int) -> Any:
    total = sum(scale * _second(u, axis, 4, BORDER) for axis, scale in enumerate(scales))
    deep = len(_ORDERS[order]) - 1
    if deep <= BORDER or min(u.shape) <= 2 * deep:
        return total
    # further in there is room for wider stencils
    more = sum(s * (_second(u, axis, order, deep) - _second(u, axis, 4, deep)) for axis, s in enumerate(scales))
    inner = tuple(slice(deep - BORDER, n - BORDER - deep) for n in u.shape)
    return total.at[inner].add(more)


def _second(u: Any, axis: int, order: int, margin: int) -> Any:
    """Return the centred second difference along an axis, for the cells at least `margin` from every side."""
    weights = _ORDERS[order]

    def shifted(k: int) -> Any:
        return u[tuple(slice(margin + k * (a == axis), n - margin + k * (a == axis)) for a, n in enumerate(u.shape))]

    total = weights[0] * shifted(0)
    for k, weight in enumerate(weights[1:], start=1):
        total = total + weight * (shifted(k) + shifted(-k))
    return total
