"""Nodes: fields on the nodes of a mesh, sorted into a regular mesh, and nodes on the borders of a domain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.record import LazyArray
from doublewell.record.arrays import Values, lazy

_FLAT = 1e-9  # of the longest axis: an axis that is not longer is left out
_SAME = 1e-6  # of the length of an axis: nodes closer than that have the same coordinate
_UNEVEN = 1e-3  # of a step: how far a node may lie from the regular mesh
_IDENTICAL = 1e-6  # of the range of the values: how far a node may differ from its periodic image


@dataclass(frozen=True, eq=False)
class GridNodes:
    """A regular mesh of nodes: cells and spacing in the order (z, y,) x, and the number of the node at each cell."""

    mesh: tuple[int, ...]
    spacing: tuple[float, ...]
    names: tuple[str, ...]
    nodes: NDArray[np.int64]

    def __call__(self, frames: Values, first: int = 0) -> Values:  # noqa: ARG002 (all frames have one mesh)
        """Sort values u[t, node] into u[t, (z, y,) x]."""
        return frames[:, self.nodes].reshape(-1, *self.mesh)


@dataclass(frozen=True)
class Middles:
    """Values u[t, (z, y,) x] on nodes as those in the middle of the cells between them.

    The cosine series through the nodes, whose slope is zero on both borders, is evaluated half a step on, where its
    last term is zero: exact for fields that the mesh resolves.
    """

    path: Path

    def __call__(self, frames: Values, first: int) -> Array:  # noqa: ARG002 (all frames have one mesh)
        """Convert whole frames."""
        from scipy.fft import dct

        block = np.asarray(frames, dtype=np.float64)
        if not np.all(np.isfinite(block)):
            raise InputError(
                f"{self.path} has values on its nodes that are not finite: expected finite phase values, since with "
                f"{option('boundary', 'neumann')} all nodes of a frame are used together; fill them, or leave out "
                f"{option('boundary')}"
            )
        for axis in range(1, block.ndim):
            cells = block.shape[axis] - 1
            series = dct(block, type=1, axis=axis).take(range(cells), axis)
            block = np.asarray(dct(series, type=3, axis=axis) / (2.0 * cells))
        return block


def inside_borders(path: Path, values: Any, boundary: Any) -> Any:
    """Return the field as a record with this boundary has it.

    Nodes on both borders of a periodic domain are one node stored twice: the last is left out. A record with zero slope
    has its values in the middle of cells, so nodes are brought there. Without a boundary nothing changes.
    """
    frames, *mesh = values.shape
    if boundary == "neumann":
        return lazy(values).map_frames(Middles(path), tuple(n - 1 for n in mesh))
    if boundary != "periodic":
        return values
    frame = np.asarray(values[0:1])[0]
    for axis, name in enumerate("zyx"[-frame.ndim :]):
        gap = np.max(np.abs(frame.take(0, axis) - frame.take(-1, axis)))
        if not gap <= _IDENTICAL * float(np.ptp(frame)):
            raise InputError(
                f"{path}: boundary is 'periodic', and the first and the last layer of nodes along {name} are not the "
                f"same: expected border nodes that are one node stored twice; leave out {option('boundary')}"
            )
    return lazy(values).part((0, frames), *((0, n - 1) for n in mesh))


def node_field(values: Any, grid: GridNodes) -> LazyArray:
    """Return values u[t, node] as u[t, (z, y,) x]."""
    return lazy(values).map_frames(grid, grid.mesh, values.dtype)


def grid_nodes(points: NDArray[Any]) -> GridNodes:
    """Sort nodes, rows x, y, z, into a regular mesh; any other mesh is refused.

    Axes without extent are left out. Nodes that several parts of a mesh share count once.
    """
    exact = np.asarray(points, dtype=np.float64)
    if exact.ndim != 2 or not exact.size or not np.all(np.isfinite(exact)):
        raise InputError("the coordinates of the nodes are not finite: copy the file again")
    length = np.ptp(exact, axis=0)
    axes = [axis for axis in range(exact.shape[1]) if length[axis] > _FLAT * length.max()][::-1]
    columns = [_column(exact[:, axis], "xyz"[axis]) for axis in axes]
    mesh = tuple(int(column.max()) + 1 for column, _ in columns)
    if not columns or int(np.prod(mesh, dtype=object)) > len(exact):
        raise _irregular(f"{len(exact)} nodes do not fill {' x '.join(map(str, mesh)) or 'a mesh'}")
    flat = np.ravel_multi_index([column for column, _ in columns], mesh)
    nodes = np.full(int(np.prod(mesh)), -1, dtype=np.int64)
    nodes[flat[::-1]] = np.arange(len(exact))[::-1]  # the first of several nodes at one position stays
    if np.any(nodes < 0):
        raise _irregular(f"{int(np.sum(nodes < 0))} points of the mesh have no node")
    return GridNodes(mesh, tuple(step for _, step in columns), tuple("xyz"[axis] for axis in axes), nodes)


def _column(points: NDArray[Any], name: str) -> tuple[NDArray[np.int64], float]:
    """Return the number of each node along an axis, and the spacing."""
    ordered = np.sort(points)
    length = float(ordered[-1] - ordered[0])
    step = length / int(np.sum(np.diff(ordered) > _SAME * length))
    numbers = (points - ordered[0]) / step
    column = np.rint(numbers)
    if np.max(np.abs(numbers - column)) > _UNEVEN:
        raise _irregular(f"the nodes are not evenly spaced along {name}")
    return column.astype(np.int64), step


def _irregular(why: str) -> InputError:
    return InputError(
        f"the mesh is not regular, {why}: expected the nodes of a box with even spacing along each axis; "
        "interpolate the field onto one"
    )
