"""Open boundary: a field of view cut out of something larger, driven by the values of its border.

Nothing is assumed about the outside. The border is given frame by frame, a cubic in time between the frames. Inside,
centred stencils (order 4 next to the border, 8 beyond) have modes of their own along each axis, V with A = V diag(a)
V^-1: real, and nearly orthogonal (the condition number of V is 1.11). On these modes the steps are those of a whole
domain, and what the border adds to the Laplacian goes with the force.

A finer mesh begins inside: along an axis its nodes are 0, 1 (the border as it was observed), 1 + 1/r, 1 + 2/r, ... in
units of dx. Between the points of the record, along the border and in the first field, values are interpolated.

What is stepped is the picture of the field, v = K u, so that the border is what was observed there. A narrow K is like
diffusion for a short time and commutes with the Laplacian: v_t = q (Laplacian v - K G(K^-1 v)). On the modes, K
multiplies by E what is left of u without w, the field of zero Laplacian on the same border: v - w = E (u - w).

The border has two cells. Where u_t = q Laplacian mu, mu = G(u) - Laplacian u, two fields are given there, u and mu: so
both Laplacians have the same modes, L = -a^2 and D = -a, and what mu adds to the second one goes with the force, over
a. mu is taken from two more cells on each side, and such a border has six; the inner two of these are stepped as well,
but what is observed there is compared with the border alone. (With u alone, given up to the inner edge, the modes would
be those of a clamped plate, which do not separate along the axes.)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics.etdrk4 import differentiable_force, roll, step_weights
from doublewell.dynamics.protocol import Symbols
from doublewell.hints import Array
from doublewell.law import Family

BORDER = 2  # cells
_ENDS = np.array([0, 1, -2, -1], dtype=np.int32)  # the border along an axis
_ORDER = 8  # of the stencils away from the border
_AROUND = 8  # points on each side that interpolate a value, where there are so many


class Axis(NamedTuple):
    """An axis of a window: second and first differences at its inner nodes, maps to their modes and back.

    ``finer`` interpolates from the cells of the record to all nodes; None where these are the same. ``across`` are
    second differences at the cells next to the inside, by the cells of a wide border: those at both ends of the axis.
    ``weight`` is what second differences count in the Laplacian, 1 but for anisotropy.
    """

    differences: Any
    slopes: Any
    into: Any
    back: Any
    finer: Any = None
    across: Any = None
    weight: Any = 1.0


def window_axes(
    cells: tuple[int, ...], dx: tuple[float, ...], refine: int = 1, order: int = _ORDER, width: int = BORDER
) -> tuple[tuple[Axis, ...], tuple[Array, ...]]:
    """Return the axes of a window, and the wave numbers of the modes of its inner nodes, shaped for broadcasting.

    Of a border that is wider than two cells the outer ones and as many inner ones do no more than give a potential.
    """
    axes, waves, outer = [], [], spare(width)
    for n, h in zip([n - 2 * outer for n in cells], dx, strict=True):
        nodes = window_nodes(n, refine)
        second, first = centred_differences(nodes, 2, order) / h**2, centred_differences(nodes, 1) / h
        values, vectors = map(np.real, np.linalg.eig(second[:, BORDER:-BORDER]))  # complex from NumPy 2.5 on
        finer = None if refine == 1 else interpolation(n, nodes)
        across = np.kron(np.eye(2), centred_differences(range(width), 2, BORDER + outer)) / h**2 if outer else None
        axes.append(Axis(second, first, np.linalg.inv(vectors), vectors, finer, across))
        waves.append(np.sqrt(-values))
    return tuple(axes), tuple(np.meshgrid(*waves, indexing="ij", sparse=True))


def spare(width: int) -> int:
    """Return the cells on each side of the two next to the inside: none of a border of two, two of one of six."""
    return (width - BORDER) // 2


def window_nodes(cells: int, refine: int) -> list[Fraction]:
    """Return the nodes along an axis in units of dx: the border's cells, and the inner ones `refine` times closer."""
    last = cells - BORDER
    inner = [BORDER - 1 + Fraction(k, refine) for k in range(1, refine * (last - BORDER + 1))]
    return [*map(Fraction, range(BORDER)), *inner, *map(Fraction, range(last, cells))]


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


def interpolation(cells: int, nodes: Sequence[Fraction]) -> Array:
    """Return the matrix from values at 0, 1, 2, ... to those at nodes between: polynomials, centred."""
    matrix = np.zeros((len(nodes), cells))
    for row, node in enumerate(nodes):
        before = min(int(node), cells - 2)
        room = min(before + 1, cells - 1 - before, _AROUND)
        near = range(before - room + 1, before + room + 1)
        matrix[row, near] = _weights(tuple([k - node for k in near]), 0)
    return matrix


def centred_differences(nodes: Sequence[Fraction | int], derivative: int, order: int = _ORDER) -> Array:
    """Return the matrix of a derivative at the nodes inside the border, by as many neighbours as `order` allows."""
    count = len(nodes)
    matrix = np.zeros((count - 2 * BORDER, count))
    for row, at in enumerate(range(BORDER, count - BORDER)):
        room = min(at, count - 1 - at, order // 2)
        near = slice(at - room, at + room + 1)
        matrix[row, near] = _weights(tuple([node - nodes[at] for node in nodes[near]]), derivative)
    return matrix


@lru_cache(maxsize=256)
def _weights(away: tuple[Fraction, ...], derivative: int) -> Array:
    """Return the weights of values at these distances in a derivative here, exact up to their rounding."""
    weights = []
    for j, own in enumerate(away):
        terms = [Fraction(1)]  # of the polynomial that is 1 there and 0 at the others
        for other in away[:j] + away[j + 1 :]:
            lower, upper = [Fraction(0), *terms], [*terms, Fraction(0)]
            terms = [(low - other * same) / (own - other) for low, same in zip(lower, upper, strict=True)]
        weights.append(float(factorial(derivative) * terms[derivative]))
    return np.array(weights)


class Optics(NamedTuple):
    """The picture of a field, on the modes of a window: E of each mode, an inverse of it, -1 / (Laplacian)."""

    image: Any
    sharpen: Any
    smooth: Any


class _Mesh:
    """The nodes of a window: `cells` of the record, a border of `width` of them, `refine` times as many inside.

    Of a wide border the two cells next to the inside are known like any border, and so is the potential G(u) -
    Laplacian u on them, by centred differences that reach as far to one side as to the other. So the steps begin behind
    these two, and the innermost cells of the border are both: given, and stepped behind the scenes.
    """

    def __init__(self, cells: tuple[int, ...], axes: tuple[Axis, ...], refine: int, width: int) -> None:
        self.cells, self.axes, self.refine, self.width, self.outer = cells, axes, refine, width, spare(width)
        self.finer, self.shape = [axis.finer for axis in axes], tuple(axis.differences.shape[1] for axis in axes)
        self.inside = tuple(slice(BORDER, n - BORDER) for n in self.shape)
        self.seen, self.core = (tuple(slice(off, n - off) for n in cells) for off in (width, self.outer))
        last = [n - 2 * BORDER - refine * self.outer for n in self.shape]
        self.pick = tuple(slice(refine * (self.outer + 1) - 1, n, refine) for n in last)
        self.edge = np.flatnonzero(border_mask(cells, width))

    def forward(self, inner: Any) -> Any:
        return _turned([axis.into for axis in self.axes], inner)

    def backward(self, modes: Any) -> Any:
        return _turned([axis.back for axis in self.axes], modes)

    def spread(self, values: Any) -> Any:
        """Return the record's cells from those of the border."""
        import jax.numpy as jnp

        return jnp.zeros(np.prod(self.cells)).at[self.edge].set(values).reshape(self.cells)

    def framed(self, values: Any, inner: Any = 0.0) -> Any:
        """Return a field on all nodes, from its border and the inner nodes."""
        import jax.numpy as jnp

        cells = self.spread(values)[self.core]
        if self.refine == 1:
            return cells.at[self.inside].set(inner)
        field = jnp.zeros(self.shape)
        for k in range(len(self.shape)):  # two cells at each end of an axis, all of them known
            ends = self._finer_along(k, jnp.take(cells, _ENDS, axis=k))
            field = field.at[(*(slice(None),) * k, _ENDS)].set(ends)
        return field.at[self.inside].set(inner)

    def source(self, values: Any) -> Any:
        """Return what border values add to the Laplacian inside."""
        field, parts = self.framed(values), []
        for k, axis in enumerate(self.axes):
            parts.append(axis.weight * _along(axis.differences, field[self._inner_but(k)], k))
        return sum(parts)

    def potential(self, values: Any, force: Any, blur: Any = None) -> Any:
        """Return what G(u) - Laplacian u on the two cells next to the inside adds to its Laplacian there.

        Of a picture v = K u it is K G(K^-1 v), to first order in half the variance of the `blur`: G(v) + blur
        (Laplacian G(v) - G'(v) Laplacian v).
        """
        import jax
        import jax.numpy as jnp

        cells, parts, w = self.spread(values), [], self.width
        for k, axis in enumerate(self.axes):
            cut = tuple(slice(None) if a == k else part for a, part in enumerate(self.core))
            strip = self._finer_along(k, jnp.take(cells[cut], np.r_[0:w, -w:0], axis=k))  # the border at both ends
            ring, curved = self._ring(k, strip)
            pull = force(ring)
            if blur is not None:
                pull = pull + blur * (self._ring(k, force(strip))[1] - jax.jvp(force, (ring,), (curved,))[1])
            parts.append(_along(axis.differences[:, _ENDS], pull - curved, k))
        return sum(parts)

    def _ring(self, axis: int, strip: Any) -> tuple[Any, Any]:
        """Return a field and its Laplacian on the cells next to the inside, from the border at both ends of an axis."""
        import jax.numpy as jnp

        ring = jnp.take(strip, np.r_[self.outer + _ENDS[:2], self.width + self.outer + _ENDS[:2]], axis=axis)
        curved = _along(self.axes[axis].across, strip[self._inner_but(axis)], axis)
        for a, other in enumerate(self.axes):
            if a != axis:
                curved = curved + _along(other.differences, ring[self._inner_but(a, axis)], a)
        return ring[self._inner_but(axis)], curved

    def moved(self, inner: Any, values: Any, way: Any) -> Any:
        """Return the inner nodes of a field that is displaced."""
        field = self.framed(values, inner)
        for k, axis in enumerate(self.axes):
            unit = np.eye(self.shape[k])[self.inside[k]]
            shift = unit - way[k] * axis.slopes + 0.5 * way[k] ** 2 * axis.differences
            field = _along(shift, field, k)
        return field

    def _inner_but(self, *axes: int) -> tuple[slice, ...]:
        return tuple(slice(None) if a in axes else part for a, part in enumerate(self.inside))

    def _finer_along(self, axis: int, field: Any) -> Any:
        """Interpolate along the other axes."""
        return _turned([None if a == axis else matrix for a, matrix in enumerate(self.finer)], field)


def predict_window(
    u0: Any, border: Any, coefficients: Any, taus: Any, curve: Any, axes: tuple[Axis, ...], of: Symbols,
    *, family: Family, substeps: int, pull: Any = None, known: Any = None,
    optics: Optics | None = None, ways: Any = None, refine: int = 1, width: int = BORDER, smooth: Any = None,
) -> Any:  # fmt: skip
    """Return the pictures u[t, (z, y,) x] of a window from the first one and the border of the later ones.

    `border` has shape (frames - 1, border cells), `taus` is q times the frame intervals, `curve` the matrix of
    ``border_times`` and `of` the symbols on the modes of `axes`. `pull` maps u, its Laplacian, the force, what is
    `known` of each frame and the number of half steps that have passed to the force that is stepped. `ways` are the
    displacements of the picture in each frame interval, (frames - 1, axes): half of it before the steps and half after
    them. A border of a `width` beyond two is that of u_t = q Laplacian (G(u) - Laplacian u), which needs -1 /
    (Laplacian) of each mode, `smooth`. A pure JAX function.
    """
    import jax
    import jax.numpy as jnp

    u0 = jnp.asarray(u0)
    mesh, law = _Mesh(u0.shape, axes, refine, width), differentiable_force(family)
    forward, backward, edge = mesh.forward, mesh.backward, jnp.asarray(mesh.edge)
    values = curve @ jnp.concatenate([u0.ravel()[edge][None], border])
    per_frame = values[:-1].reshape(len(border), 2 * substeps, -1)
    last = values[2 * substeps :: 2 * substeps, None]
    halves = jnp.concatenate([per_frame, last], axis=1)  # the half steps of a frame, both ends included

    blur = None
    if optics is not None and mesh.outer:  # half its variance, by what is left of the longest mode
        longest = jnp.argmax(smooth)
        blur = -jnp.log(jnp.ravel(optics.image)[longest]) * jnp.ravel(smooth)[longest]

    def force(u: Any) -> Any:
        return law(coefficients, u)

    def local(given: Any) -> Any:
        sources = jax.vmap(mesh.source)(given[1])

        def acting(u: Any, modes: Any, half: Any) -> Any:
            strength = force(u)
            if pull is None:
                return strength
            curved = None if mesh.outer else backward(of.linear * modes) + sources[half]
            return pull(u, curved, strength, given[2], half)

        if optics is None:
            return lambda modes, half: forward(acting(backward(modes), modes, half) - sources[half])
        turned = jax.vmap(forward)(sources)
        pulls = jax.vmap(lambda values: forward(mesh.source(force(values))))(given[1])

        def of_picture(modes: Any, half: Any) -> Any:
            level, pulled = optics.smooth * turned[half], optics.smooth * pulls[half]
            modes = level + optics.sharpen * (modes - level)
            return pulled + optics.image * (forward(acting(backward(modes), modes, half)) - pulled) - turned[half]

        return of_picture

    def reaction(given: Any) -> Any:
        react = local(given)
        if not mesh.outer:
            return react

        def of_ring(u: Any) -> Any:
            strength = force(u)
            return strength if pull is None else pull(u, None, strength, (given[2][0], None, None), 0)

        potentials = jax.vmap(lambda values: smooth * forward(mesh.potential(values, of_ring, blur)))(given[1])
        return lambda modes, half: react(modes, half) - potentials[half]

    def begin(modes: Any, given: Any) -> Any:
        return modes if ways is None else forward(mesh.moved(backward(modes), given[1][0], given[3]))

    def emit(modes: Any, given: Any) -> Any:
        return (backward(modes) if ways is None else mesh.moved(backward(modes), given[1][-1], given[4]))[mesh.pick]

    shifts = (None, None)
    if ways is not None:
        shifts = 0.5 * jnp.concatenate([ways[:1], ways[1:] + ways[:-1]]), 0.5 * ways
    later = roll(
        forward(_turned(mesh.finer, u0[mesh.core])[mesh.inside]), reaction,
        lambda given: step_weights(of, given[0]), emit,
        (taus / substeps, halves, known, *shifts), frames=len(border) + 1, substeps=substeps, begin=begin,
    )  # fmt: skip
    fields = jnp.zeros((len(border), u0.size)).at[:, edge].set(border).reshape(-1, *u0.shape)
    return jnp.concatenate([u0[None], fields.at[(slice(None), *mesh.seen)].set(later)])


def _turned(matrices: list[Any], field: Any) -> Any:
    for axis, matrix in enumerate(matrices):
        field = field if matrix is None else _along(matrix, field, axis)
    return field


def _along(matrix: Any, field: Any, axis: int) -> Any:
    import jax.numpy as jnp

    return jnp.moveaxis(jnp.tensordot(matrix, field, axes=(1, axis)), 0, axis)
