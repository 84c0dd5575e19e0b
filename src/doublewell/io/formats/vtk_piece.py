"""A piece of a VTK file, as both kinds of its files have it: points, cells and scalar arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.record.arrays import Values

SECTIONS = {"PointData": "points", "CellData": "cells"}
MOST = 2**40  # points that a header may claim
DAMAGED = "copy the file again"
Extent = tuple[tuple[int, int], ...]  # first and last point along z, y and x


@dataclass(frozen=True)
class Piece:
    """A part of a mesh: how many points and cells it has, and its scalar arrays by section and name, not yet read.

    Of an image ``spacing`` is known along z, y and x; other meshes have functions that return the ``points``, rows
    x, y, z, and the ``centres`` of the cells. ``size`` is that of the file in bytes.
    """

    sizes: dict[str, int]
    arrays: dict[tuple[str, str], tuple[np.dtype[Any], Callable[[], Values]]]
    size: int
    extent: Extent | None = None
    spacing: tuple[float, ...] | None = None
    points: Callable[[], Values] | None = None
    centres: Callable[[], Values] | None = None


@dataclass(frozen=True)
class VtkFile:
    """The pieces of a file, the extent of the whole where it is structured, and its time where it has one."""

    pieces: tuple[Piece, ...]
    whole: Extent | None
    time: float | None


def cell_counts(extent: Extent) -> tuple[int, ...]:
    """Return cells along z, y, x; an axis with one point has one layer of cells."""
    return tuple(max(last - first, 1) for first, last in extent)


def mid_cells(points: Values, shape: tuple[int, ...]) -> Values:
    """Return the middles of the cells of structured points, whose counts along z, y, x are `shape`."""
    grid = points.reshape(*shape, 3).astype(np.float64)
    for axis, n in enumerate(shape):
        if n > 1:
            grid = 0.5 * (grid.take(range(n - 1), axis) + grid.take(range(1, n), axis))
    return grid.reshape(-1, 3)


@dataclass(frozen=True)
class Centres:
    """The cells of an unstructured mesh: the points at their corners, one cell after the other, and their ends."""

    points: Values
    corners: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __call__(self) -> Values:
        """Return the means of the corners of all cells."""
        sizes = np.diff(self.ends, prepend=0)
        if not sizes.size or np.any(sizes <= 0) or self.ends[-1] != len(self.corners):
            raise InputError(f"the cells of the mesh are damaged: {DAMAGED}")
        if self.corners.min() < 0 or self.corners.max() >= len(self.points):
            raise InputError(f"the cells of the mesh name points that it does not have: {DAMAGED}")
        sums = np.add.reduceat(self.points[self.corners].astype(np.float64), self.ends - sizes, axis=0)
        return np.asarray(sums / sizes[:, None])


def placed(piece: Piece, section: str, whole: Extent) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return where the values of a piece of an image lie in the whole, and their counts along z, y, x."""
    extent = piece.extent or whole
    counts = tuple(n - a + 1 for a, n in extent) if section == "PointData" else cell_counts(extent)
    starts = [first - origin for (first, _), (origin, _) in zip(extent, whole, strict=True)]
    ends = [start + n for start, n in zip(starts, counts, strict=True)]
    room = [last - first + 1 for first, last in whole] if section == "PointData" else cell_counts(whole)
    if min(starts) < 0 or any(end > n for end, n in zip(ends, room, strict=True)):
        raise InputError(f"a piece with extent {extent} along z, y, x lies outside the whole extent {whole}")
    if prod(counts) != piece.sizes[section]:
        raise InputError(f"a piece with extent {extent} has {piece.sizes[section]} values: {DAMAGED}")
    return tuple(slice(start, end) for start, end in zip(starts, ends, strict=True)), counts
