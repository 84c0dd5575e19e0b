"""Meshes: values on nodes that form a lattice, contain one, or lie anywhere in a box, as values of a regular mesh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import Axis
from doublewell.record import Note
from doublewell.record.arrays import Values

_FLAT = 1e-9  # of the longest axis: an axis of nodes that is not longer is left out
_SAME = 1e-6  # of the length of an axis: nodes closer than that have the same coordinate
_UNEVEN = 1e-3  # of a step: how far a node may lie from the regular mesh
_TWIN = 1e-6  # of the range of the values: how far two nodes at one place may differ
_STRIDES = (1, 2, 4)  # of a lattice within the nodes: those of crossed cells and of quadratic elements have 2
_ENOUGH = 0.2  # of all nodes: a lattice of fewer is much coarser than the mesh; one of twenty-node bricks has 1/4
_FEWEST = 4  # nodes of a lattice along each axis
_FULL = 1e-6  # of the box: what the hull of the nodes may leave of it
_HOLE = 2.5  # mean distances of nodes: there is one as near to every place of the box
_INSIDE = 1e-9  # of the length of an axis: how far places on the border are moved in
_LEFT_OUT = 10  # of so many nodes one is left out to measure the error,
_MANY = 5000  # and of fewer nodes than these each one in turn
_BOX = "expected the nodes of a box; interpolate the field onto a regular mesh, or cut out a box"


@dataclass(frozen=True, eq=False)
class GridNodes:
    """A regular mesh of nodes: cells and axes in the order (z, y,) x, and the number of the node at each cell.

    ``total`` counts the nodes of the file; ``twins`` are rows of two nodes at one place, the first of which is used.
    """

    mesh: tuple[int, ...]
    axes: tuple[Axis, ...]
    nodes: NDArray[np.int64]
    total: int
    twins: NDArray[np.int64]

    def __call__(self, frames: Values, first: int = 0) -> Values:  # noqa: ARG002 (all frames have one mesh)
        """Sort values u[t, node] into u[t, (z, y,) x]."""
        return frames[:, self.nodes].reshape(-1, *self.mesh)

    def notes(self, frames: Values) -> list[Note]:
        """Return what is to be said of the mesh, and of some frames on it: nodes not used, and nodes that disagree."""
        notes, unused = [], self.total - len(self.nodes) - len(self.twins)
        if unused:
            shape = " x ".join(map(str, self.mesh))
            notes.append(
                Note("lattice-used", f"{shape} of {self.total} nodes are a regular mesh; the others are left out")
            )
        if len(self.twins):
            gaps = np.max(np.abs(frames[:, self.twins[:, 0]] - frames[:, self.twins[:, 1]]), axis=0)
            apart = gaps > _TWIN * float(np.ptp(frames))
            if apart.any():
                words = (
                    f"{int(apart.sum())} places have several nodes with different values, up to "
                    f"{float(gaps.max()):.2g} apart: the first node is used; a field that jumps from element to "
                    "element is no order parameter"
                )
                notes.append(Note("nodes-disagree", words, matters=True))
        return notes


@dataclass(frozen=True, eq=False)
class ScatteredNodes:
    """Nodes anywhere in a box, brought to a regular mesh: cubic in the plane and on a line, linear in space."""

    mesh: tuple[int, ...]
    axes: tuple[Axis, ...]
    points: NDArray[Any]  # columns (z, y,) x
    places: NDArray[Any]
    kept: NDArray[np.int64]  # one of several nodes at one place
    total: int

    def __call__(self, frames: Values, first: int = 0) -> Values:  # noqa: ARG002 (all frames have one mesh)
        """Interpolate values u[t, node] to u[t, (z, y,) x]."""
        values = _interpolated(self.points, frames[:, self.kept], self.places)
        return values.reshape(-1, *self.mesh)

    def notes(self, frames: Values) -> list[Note]:
        """Return the error of the interpolation of some frames: of nodes that are left out, from all others."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        inner = np.flatnonzero(np.all((self.points > low) & (self.points < high), axis=1))
        values, parts = np.asarray(frames[:, self.kept], dtype=np.float64), []
        for start in range(_LEFT_OUT if len(self.points) < _MANY else 1):
            tested = np.isin(np.arange(len(self.points)), inner[start::_LEFT_OUT])
            found = _interpolated(self.points[~tested], values[:, ~tested], self.points[tested])
            parts.append(np.abs(found - values[:, tested]))
        off = np.concatenate(parts, axis=1)
        shape, percent = " x ".join(map(str, self.mesh)), 100.0 / (float(np.ptp(values)) or 1.0)
        typical, largest = float(np.sqrt(np.sum(off**2) / max(off.size, 1))), float(np.max(off, initial=0.0))
        words = (
            f"the {self.total} nodes are no regular mesh: values are interpolated to {shape}; nodes that are left out "
            f"are met within {percent * typical:.2g} % of the range (root mean square), at most "
            f"{percent * largest:.2g} %; write the field on a regular mesh where that is too much"
        )
        return [Note("interpolated", words, matters=True)]


def mesh_of(points: NDArray[Any], *, centres: bool = False) -> GridNodes | ScatteredNodes:
    """Bring nodes, rows x, y, z, to a regular mesh: all of them, those that are a lattice, or by interpolation.

    `centres` are middles of cells, which reach no border: places closer than a cell to it are left out.
    """
    exact = np.asarray(points, dtype=np.float64)
    if exact.ndim != 2 or not exact.size or not np.all(np.isfinite(exact)):
        raise InputError("the coordinates of the nodes are not finite: copy the file again")
    length = np.ptp(exact, axis=0)
    axes = [axis for axis in range(exact.shape[1]) if length[axis] > _FLAT * length.max()][::-1]
    if not axes:
        raise InputError(f"{len(exact)} nodes do not fill a mesh: {_BOX}")
    columns, letters = exact[:, axes], ["xyz"[axis] for axis in axes]
    return _lattice(columns, letters) or _scattered(columns, letters, centres=centres)


def _lattice(columns: NDArray[Any], letters: list[str]) -> GridNodes | None:
    """Return the finest lattice of nodes that fills the box, None where there is none with enough of them."""
    parts = [_numbered(column) for column in columns.T]
    if any(part is None for part in parts):  # perhaps on the coordinates that many nodes share
        shared = [_shared(column) for column in columns.T]
        parts = [
            None if keep.sum() < _FEWEST else _numbered(column, keep)
            for column, keep in zip(columns.T, shared, strict=True)
        ]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    for strides in sorted(product(_STRIDES, repeat=len(known)), key=prod):
        counts = [count for _, count, _ in known]
        mesh = tuple((n - 1) // stride + 1 for n, stride in zip(counts, strides, strict=True))
        even = all((n - 1) % stride == 0 for n, stride in zip(counts, strides, strict=True))
        if (
            not even
            or (prod(strides) > 1 and min(mesh) < _FEWEST)
            or not _ENOUGH * len(columns) <= prod(mesh) <= len(columns)
        ):
            continue
        own = np.all(
            [(numbers >= 0) & (numbers % stride == 0) for (numbers, *_), stride in zip(known, strides, strict=True)], 0
        )
        index = np.flatnonzero(own)
        places = np.ravel_multi_index(
            [numbers[own] // s for (numbers, *_), s in zip(known, strides, strict=True)], mesh
        )
        nodes = np.full(prod(mesh), -1, dtype=np.int64)
        nodes[places[::-1]] = index[::-1]  # the first of several nodes stays
        if np.all(nodes >= 0):
            others = nodes[places] != index
            axes = [Axis(name, step=step * s) for name, (*_, step), s in zip(letters, known, strides, strict=True)]
            return GridNodes(mesh, tuple(axes), nodes, len(columns), np.stack([nodes[places], index], 1)[others])
    return None


def _numbered(points: NDArray[Any], keep: NDArray[Any] | None = None) -> tuple[NDArray[np.int64], int, float] | None:
    """Return the number of each node along an axis (-1 of those not kept), how many there are, and their step.

    None where they are not evenly spaced.
    """
    known = points if keep is None else points[keep]
    low, extent = float(known.min()), float(np.ptp(known))
    intervals = int(np.sum(np.diff(np.sort(known)) > _SAME * extent))
    if not intervals or extent < (1 - _SAME) * float(np.ptp(points)):
        return None
    step = extent / intervals
    exact = (known - low) / step
    if np.max(np.abs(exact - np.rint(exact))) > _UNEVEN:
        return None
    numbers = np.full(len(points), -1, dtype=np.int64)
    numbers[slice(None) if keep is None else keep] = np.rint(exact).astype(np.int64)
    return numbers, intervals + 1, step


def _shared(points: NDArray[Any]) -> NDArray[Any]:
    """Return which nodes have a coordinate that at least half as many nodes share as share any."""
    order = np.argsort(points, kind="stable")
    group = np.cumsum(np.diff(points[order], prepend=points[order[0]]) > _SAME * float(np.ptp(points)))
    sizes = np.bincount(group)
    keep = np.zeros(len(points), dtype=bool)
    keep[order] = (sizes >= 0.5 * sizes.max())[group]
    return keep


def _scattered(columns: NDArray[Any], letters: list[str], *, centres: bool) -> ScatteredNodes:
    """Return the regular mesh in the box of the nodes, with about as many places; a hole in the nodes is refused."""
    from scipy.spatial import ConvexHull, cKDTree

    low, length = columns.min(axis=0), np.ptp(columns, axis=0)
    _, kept = np.unique(np.rint((columns - low) / (_SAME * length)), axis=0, return_index=True)
    kept.sort()
    points, axes = columns[kept], len(letters)
    step = (float(np.prod(length)) / len(points)) ** (1.0 / axes)
    irregular = f"the mesh is not regular, and {len(points)} nodes"
    if not (isfinite(step) and step > 0.0 and np.all(length / step <= len(points))) or len(points) < _FEWEST**axes:
        raise InputError(f"{irregular} are too few to interpolate between them: {_BOX}")
    margin = step if centres else 0.0
    mesh = tuple(max(int(n), 1) + 1 for n in np.rint((length - 2.0 * margin) / step))
    if min(mesh) < _FEWEST:
        raise InputError(f"{irregular} are too few along one axis: {_BOX}")
    if axes > 1 and not centres and ConvexHull(points).volume < (1.0 - _FULL) * float(np.prod(length)):
        raise InputError(f"{irregular} do not fill a box: {_BOX}")
    inset = np.maximum(margin, _INSIDE * length)
    lines = [np.linspace(a + d, a + size - d, n) for a, size, d, n in zip(low, length, inset, mesh, strict=True)]
    places = np.stack([grid.ravel() for grid in np.meshgrid(*lines, indexing="ij")], axis=1)
    distance, _ = cKDTree(points).query(places)
    if np.max(distance) > _HOLE * step:
        worst = ", ".join(
            f"{name} = {x:.4g}" for name, x in zip(letters, places[int(np.argmax(distance))], strict=True)
        )
        raise InputError(f"{irregular} leave a hole, or a part with far fewer, around {worst}: {_BOX}")
    steps = (length - 2.0 * margin) / (np.array(mesh) - 1)
    space = tuple(Axis(name, step=float(h)) for name, h in zip(letters, steps, strict=True))
    return ScatteredNodes(mesh, space, points, places, kept, len(columns))


def _interpolated(points: NDArray[Any], values: Values, places: NDArray[Any]) -> Values:
    """Return values[t, node] at other places inside the hull of the nodes."""
    from scipy.interpolate import CloughTocher2DInterpolator, CubicSpline, LinearNDInterpolator

    exact = np.asarray(values, dtype=np.float64).T
    if points.shape[1] == 1:
        order = np.argsort(points[:, 0])
        found = CubicSpline(points[order, 0], exact[order])(places[:, 0])
    else:
        kind = CloughTocher2DInterpolator if points.shape[1] == 2 else LinearNDInterpolator
        found = kind(_triangles(points.shape, np.ascontiguousarray(points).tobytes()), exact)(places)
    if np.isnan(found).any() and not np.isnan(exact).any():
        raise InputError(f"the nodes form no triangles at some places of the box: {_BOX}")
    return np.asarray(found).T


@lru_cache(maxsize=4)
def _triangles(shape: tuple[int, int], content: bytes) -> Any:
    from scipy.spatial import Delaunay

    return Delaunay(np.frombuffer(content).reshape(shape))
