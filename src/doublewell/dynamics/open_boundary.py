"""Open boundary: a field of view cut out of something larger, driven by the values of its two-cell border.

Nothing is assumed about the outside. The border is given frame by frame, a cubic in time between the frames. Inside,
centred stencils (order 4 next to the border, 8 beyond) have modes of their own along each axis, V with A = V diag(a)
V^-1: real, and nearly orthogonal (the condition number of V is 1.11). On these modes the steps are those of a whole
domain, and what the border adds to the Laplacian goes with the force.

What is stepped is the picture of the field, v = K u, so that the border is what was observed there. A narrow K is like
diffusion for a short time and commutes with the Laplacian: v_t = q (Laplacian v - K G(K^-1 v)). On the modes, with the
border held, K is v = E u + (E - 1) / (Laplacian) (source of the border).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics.etdrk4 import StepTable, differentiable_force, roll
from doublewell.hints import Array
from doublewell.law import Family

BORDER = 2  # cells
_ORDERS: dict[int, tuple[float, ...]] = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    6: (-49 / 18, 3 / 2, -3 / 20, 1 / 90),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}
_SLOPES: dict[int, tuple[float, ...]] = {
    4: (0.0, 2 / 3, -1 / 12),
    6: (0.0, 3 / 4, -3 / 20, 1 / 60),
    8: (0.0, 4 / 5, -1 / 5, 4 / 105, -1 / 280),
}


class Axis(NamedTuple):
    """An axis of a window: second and first differences at its inner cells; maps to their modes and back."""

    differences: Any
    slopes: Any
    into: Any
    back: Any


def window_axes(
    cells: tuple[int, ...], dx: tuple[float, ...], order: int = 8
) -> tuple[tuple[Axis, ...], tuple[Array, ...]]:
    """Return the axes of a window, and the wave numbers of the modes of its inner cells, shaped for broadcasting."""
    axes, waves = [], []
    for n, h in zip(cells, dx, strict=True):
        differences = centred_differences(n, h, order)
        values, vectors = map(np.real, np.linalg.eig(differences[:, BORDER:-BORDER]))  # complex from NumPy 2.5 on
        slopes = centred_differences(n, h, 8, first=True)
        axes.append(Axis(differences, slopes, np.linalg.inv(vectors), vectors))
        waves.append(np.sqrt(-values))
    return tuple(axes), tuple(np.meshgrid(*waves, indexing="ij", sparse=True))


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


def centred_differences(cells: int, dx: float, order: int = 8, *, first: bool = False) -> Array:
    """Return the matrix of second (or first) differences at the cells inside the border, of highest order."""
    matrix, sign = np.zeros((cells - 2 * BORDER, cells)), -1.0 if first else 1.0
    for row, cell in enumerate(range(BORDER, cells - BORDER)):
        room = min(cell, cells - 1 - cell)
        for k, weight in enumerate((_SLOPES if first else _ORDERS)[min(order, 2 * room)]):
            matrix[row, cell - k], matrix[row, cell + k] = sign * weight, weight
    return matrix / (dx if first else dx**2)


class Optics(NamedTuple):
    """The picture of a field, on the modes of a window: E of each mode, an inverse of it, (E - 1) / (Laplacian)."""

    image: Any
    sharpen: Any
    spread: Any


def predict_window(
    u0: Any, border: Any, coefficients: Any, taus: Any, curve: Any, axes: tuple[Axis, ...], table: StepTable,
    *, family: Family, substeps: int, extra: Any = None, linear: Any = None, known: Any = None,
    optics: Optics | None = None, ways: Any = None,
) -> Any:  # fmt: skip
    """Return the pictures u[t, (z, y,) x] of a window from the first one and the border of the later ones.

    `border` has shape (frames - 1, border cells), `taus` is q times the frame intervals, `curve` the matrix of
    ``border_times`` and `table` that of the steps on the modes of `axes`. `extra` maps u, its Laplacian, the force and
    what is `known` of each frame to what is taken off the force; it needs the symbol `linear`. `ways` are the
    displacements of the picture in each frame interval, (frames - 1, axes): half of it before the steps and half after
    them. A pure JAX function.
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

    def framed(values: Any) -> Any:
        return jnp.zeros(u0.size).at[edge].set(values).reshape(u0.shape)

    def source(values: Any) -> Any:
        """Return what border values add to the Laplacian inside."""
        field, parts = framed(values), []
        for k, axis in enumerate(axes):
            cut = tuple(slice(None) if a == k else part for a, part in enumerate(inside))
            parts.append(_along(axis.differences, field[cut], k))
        return sum(parts)

    def reaction(given: Any) -> Any:
        sources = jax.vmap(source)(given[1])

        def pull(u: Any, modes: Any, half: Any) -> Any:
            strength = force(coefficients, u)
            if extra is None:
                return strength
            return strength - extra(u, backward(linear * modes) + sources[half], strength, given[2])

        if optics is None:
            return lambda modes, half: forward(pull(backward(modes), modes, half) - sources[half])
        turned = jax.vmap(forward)(sources)
        pulls = jax.vmap(lambda values: forward(source(force(coefficients, values))))(given[1])

        def of_picture(modes: Any, half: Any) -> Any:
            modes = optics.sharpen * (modes - optics.spread * turned[half])
            inner = optics.image * forward(pull(backward(modes), modes, half))
            return inner + optics.spread * pulls[half] - turned[half]

        return of_picture

    def moved(inner: Any, values: Any, way: Any) -> Any:
        field = framed(values).at[inside].set(inner)
        for k, axis in enumerate(axes):
            unit = np.eye(u0.shape[k])[inside[k]]
            shift = unit - way[k] * axis.slopes + 0.5 * way[k] ** 2 * axis.differences
            field = _along(shift, field, k)
        return field

    def begin(modes: Any, given: Any) -> Any:
        return modes if ways is None else forward(moved(backward(modes), given[1][0], given[3]))

    def emit(modes: Any, given: Any) -> Any:
        return backward(modes) if ways is None else moved(backward(modes), given[1][-1], given[4])

    shifts = (None, None)
    if ways is not None:
        shifts = 0.5 * jnp.concatenate([ways[:1], ways[1:] + ways[:-1]]), 0.5 * ways
    later = roll(
        forward(u0[inside]), reaction, lambda given: table.weigh(given[0]), emit,
        (table.fractions(taus / substeps), halves, known, *shifts), frames=len(border) + 1, substeps=substeps,
        begin=begin,
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
