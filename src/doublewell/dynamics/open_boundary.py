"""Open boundary: a field of view cut out of something larger, driven by the values of its two-cell border.

Nothing is assumed about the outside. The border is given frame by frame, a cubic in time between the frames. Inside,
centred stencils (order 4 next to the border, 8 beyond) have modes of their own along each axis, V with A = V diag(a)
V^-1: real, and nearly orthogonal (the condition number of V is 1.11). On these modes the steps are those of a whole
domain, and what the border adds to the Laplacian goes with the force.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics.etdrk4 import StepTable, differentiable_force, roll
from doublewell.dynamics.protocol import Dynamics, Symbols
from doublewell.hints import Array
from doublewell.law import Family

BORDER = 2  # cells
_ORDERS: dict[int, tuple[float, ...]] = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    6: (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}


class Axis(NamedTuple):
    """An axis of a window: second differences of its inner cells, the map of these to their modes, and back."""

    differences: Any
    into: Any
    back: Any


def window_axes(
    cells: tuple[int, ...], dx: tuple[float, ...], dynamics: Dynamics, order: int = 8
) -> tuple[tuple[Axis, ...], Symbols]:
    """Return the axes of a window, and the symbols of a dynamics on the modes of its inner cells."""
    axes, waves = [], []
    for n, h in zip(cells, dx, strict=True):
        differences = second_differences(n, h, order)
        values, vectors = np.linalg.eig(differences[:, BORDER:-BORDER])
        axes.append(Axis(differences, np.linalg.inv(vectors), vectors))
        waves.append(np.sqrt(-values))
    shaped = np.meshgrid(*waves, indexing="ij", sparse=True)
    return tuple(axes), Symbols(np.asarray(dynamics.linear(shaped)), np.asarray(dynamics.coupling(shaped), np.float64))


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
    u0: Any, border: Any, coefficients: Any, taus: Any, curve: Any, axes: tuple[Axis, ...], table: StepTable,
    *, family: Family, substeps: int, extra: Any = None, linear: Any = None, known: Any = None,
) -> Any:  # fmt: skip
    """Return the trajectory u[t, (z, y,) x] of a window from its first field and its border at the later frames.

    `border` has shape (frames - 1, border cells), `taus` is q times the frame intervals, `curve` the matrix of
    ``border_times`` and `table` that of the steps on the modes of `axes`. `extra` maps u, its Laplacian, the force and
    what is `known` of each frame to what is taken off the force; it needs the symbol `linear`. A pure JAX function.
    """
    import jax
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    inside = tuple(slice(BORDER, n - BORDER) for n in u0.shape)
    edge, force = jnp.asarray(np.flatnonzero(border_mask(u0.shape))), differentiable_force(family)
    values = curve @ jnp.concatenate([u0.ravel()[edge][None], border])
    per_frame = values[:-1].reshape(len(border), 2 * substeps, -1)
    ends = values[2 * substeps :: 2 * substeps]
    halves = jnp.concatenate([per_frame, ends[:, None]], axis=1)  # the half steps of a frame, both ends included

    def forward(w: Any) -> Any:
        return _turned([axis.into for axis in axes], w)

    def backward(modes: Any) -> Any:
        return _turned([axis.back for axis in axes], modes)

    def from_border(values: Any) -> Any:
        field, parts = jnp.zeros(u0.size).at[edge].set(values).reshape(u0.shape), []
        for k, axis in enumerate(axes):
            cut = tuple(slice(None) if a == k else part for a, part in enumerate(inside))
            parts.append(_along(axis.differences, field[cut], k))
        return sum(parts)

    def reaction(given: Any) -> Any:
        sources = jax.vmap(from_border)(given[1])

        def force_modes(modes: Any, half: Any) -> Any:
            u, source = backward(modes), sources[half]
            pull = force(coefficients, u)
            if extra is not None:
                pull = pull - extra(u, backward(linear * modes) + source, pull, given[2])
            return forward(pull - source)

        return force_modes

    later = roll(
        forward(u0[inside]), reaction, lambda given: table.weigh(given[0]), backward,
        (table.fractions(taus / substeps), halves, known), frames=len(border) + 1, substeps=substeps,
    )  # fmt: skip
    fields = jnp.zeros((len(border), u0.size)).at[:, edge].set(border).reshape(-1, *u0.shape)
    return jnp.concatenate([u0[None], fields.at[(slice(None), *inside)].set(later)])


def _turned(matrices: list[Any], field: Any) -> Any:
    for axis, matrix in enumerate(matrices):
        field = _along(matrix, field, axis)
    return field


def _along(matrix: Any, field: Any, axis: int) -> Any:
    import jax.numpy as jnp

    return jnp.moveaxis(jnp.tensordot(matrix, field, axes=(1, axis)), 0, axis)
