"""Grid points: scattered nodes that are those of a regular mesh in any order, and what is refused as no such mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.view import Index, ranges

__all__ = ["GridNodes", "NodeField", "grid_nodes"]

_FLAT = 1e-9  # of the longest axis: an axis no longer than that is none
_SAME = 1e-6  # of the length of an axis: nodes closer than that have the same coordinate
_UNEVEN = 1e-3  # of a step: how far a node may lie from the regular mesh


@dataclass(frozen=True)
class GridNodes:
    """A regular mesh of nodes: cells and spacing in the order (z, y,) x, and which node is at each place."""

    mesh: tuple[int, ...]
    spacing: tuple[float, ...]
    names: tuple[str, ...]
    nodes: NDArray[np.int64]


class NodeField:
    """Values u[t, node] as u[t, (z, y,) x], read when sliced."""

    def __init__(self, values: Any, grid: GridNodes) -> None:
        self.values, self.grid = values, grid
        self.shape = (int(values.shape[0]), *grid.mesh)
        self.dtype, self.ndim = np.dtype(values.dtype), len(self.shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        frames, *cells = ranges(index, self.shape)
        block = np.asarray(self.values[(frames, slice(None))])
        return block[:, self.grid.nodes].reshape(-1, *self.grid.mesh)[(slice(None), *cells)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)


def grid_nodes(points: NDArray[Any]) -> GridNodes:
    """Sort nodes, rows x, y, z, into a regular mesh; a mesh that is none is refused.

    Axes without extent are left out. Nodes that several parts of a mesh share count once.
    """
    places = np.asarray(points, dtype=np.float64)
    if places.ndim != 2 or not places.size or not np.all(np.isfinite(places)):
        raise InputError("the nodes are no finite places: copy the file again")
    length = np.ptp(places, axis=0)
    axes = [axis for axis in range(places.shape[1]) if length[axis] > _FLAT * length.max()][::-1]
    columns = [_column(places[:, axis], "xyz"[axis]) for axis in axes]
    mesh = tuple(int(column.max()) + 1 for column, _ in columns)
    if not columns or int(np.prod(mesh, dtype=object)) > len(places):
        raise InputError(_irregular(f"{len(places)} nodes do not fill {' x '.join(map(str, mesh)) or 'a mesh'}"))
    flat = np.ravel_multi_index([column for column, _ in columns], mesh)
    nodes = np.full(int(np.prod(mesh)), -1, dtype=np.int64)
    nodes[flat[::-1]] = np.arange(len(places))[::-1]  # the first of several nodes at a place stays
    if np.any(nodes < 0):
        raise InputError(_irregular(f"{int(np.sum(nodes < 0))} places of the mesh have no node"))
    return GridNodes(mesh, tuple(step for _, step in columns), tuple("xyz"[axis] for axis in axes), nodes)


def _column(places: NDArray[Any], name: str) -> tuple[NDArray[np.int64], float]:
    """Return the number of each node along an axis, and the spacing."""
    ordered = np.sort(places)
    length = float(ordered[-1] - ordered[0])
    count = int(np.sum(np.diff(ordered) > _SAME * length))
    step = length / count
    numbers = (places - ordered[0]) / step
    column = np.rint(numbers)
    if np.max(np.abs(numbers - column)) > _UNEVEN:
        raise InputError(_irregular(f"the nodes are not evenly spaced along {name}"))
    return column.astype(np.int64), step


def _irregular(why: str) -> str:
    return (
        f"the mesh is not regular, {why}: expected the nodes of a box with even spacing along each axis; "
        "interpolate the field onto one"
    )
