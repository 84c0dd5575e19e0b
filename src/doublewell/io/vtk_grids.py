"""VTK grids: the scalar fields of an image or of a regular mesh, on its points or in its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.grid_points import GridNodes, grid_nodes
from doublewell.io.vtk_xml import TYPES, VtkDocument, numbers_of

__all__ = ["VtkField", "VtkFrame", "image_frame", "mesh_frame"]

_MOST = 2**40  # points that a header may claim
_PACKED = 10**4  # numbers in a byte of the file, at most: constant fields pack well
_PLACES = {"PointData": "points", "CellData": "cells"}
Extent = tuple[int, ...]


@dataclass(frozen=True)
class VtkField:
    """One scalar field of a frame: its mesh in the order (z, y,) x, and how its values are read."""

    mesh: tuple[int, ...]
    spacing: tuple[float, ...]
    names: tuple[str, ...]
    dtype: np.dtype[Any]
    read: Callable[[], NDArray[Any]]
    bordered: bool = False


@dataclass(frozen=True)
class VtkFrame:
    """The fields of one file by name, and the points of an unstructured mesh."""

    fields: dict[str, VtkField]
    points: NDArray[Any] | None = None


def image_frame(document: VtkDocument) -> VtkFrame:
    """Find the fields of image data; the values on points are taken as samples a spacing apart."""
    image = _only(document, "ImageData")
    whole = _extent(image.attrib, "WholeExtent")
    spacing = tuple(numbers_of(image.attrib, "Spacing", 3)[::-1])
    pieces = image.findall("Piece")
    fields = {}
    for (section, name), arrays in _scalars(pieces).items():
        counts = _counts(whole, section)
        if int(np.prod(counts, dtype=object)) > _PACKED * document.size:
            raise InputError(f"WholeExtent is {whole}, more than the file can hold: copy the file again")
        extents = [_extent(piece.attrib, "Extent") for piece in pieces]
        read = _image_reader(document, arrays, section, whole, extents)
        fields[section, name] = VtkField(counts, spacing, ("z", "y", "x"), _dtype(arrays[0]), read)
    return VtkFrame(_named(fields))


def mesh_frame(document: VtkDocument) -> VtkFrame:
    """Find the fields of an unstructured mesh whose points, or cell centres, are those of a regular mesh."""
    pieces = _only(document, "UnstructuredGrid").findall("Piece")
    parts = [_points(document, piece) for piece in pieces]
    points = np.concatenate(parts) if parts else np.empty((0, 3))
    fields, grids = {}, {}
    for (section, name), arrays in _scalars(pieces).items():
        if section not in grids:
            places = points if section == "PointData" else _centres(document, pieces, parts)
            grids[section] = grid_nodes(places)
        sizes = [_count(piece, "NumberOfPoints" if section == "PointData" else "NumberOfCells") for piece in pieces]
        grid = grids[section]
        read = _mesh_reader(document, arrays, sizes, grid)
        border = section == "PointData"
        fields[section, name] = VtkField(grid.mesh, grid.spacing, grid.names, _dtype(arrays[0]), read, bordered=border)
    return VtkFrame(_named(fields), points)


def _image_reader(
    document: VtkDocument, arrays: Sequence[Any], section: str, whole: Extent, extents: Sequence[Extent]
) -> Callable[[], NDArray[Any]]:
    def read() -> NDArray[Any]:
        values = np.full(
            _counts(whole, section), np.nan if _dtype(arrays[0]).kind == "f" else 0, dtype=_dtype(arrays[0])
        )
        filled = np.zeros(values.shape, dtype=bool)
        for element, extent in zip(arrays, extents, strict=True):
            counts = _counts(extent, section)
            starts = [extent[2 * axis] - whole[2 * axis] for axis in (2, 1, 0)]
            place = tuple(slice(start, start + n) for start, n in zip(starts, counts, strict=True))
            if min(starts) < 0 or values[place].shape != counts:
                raise InputError(f"a piece with extent {extent} lies outside the whole extent {whole}")
            values[place] = document.array(element, int(np.prod(counts))).reshape(counts)
            filled[place] = True
        if not filled.all():
            raise InputError("the pieces do not fill the whole extent: copy the file again")
        return values

    return read


def _mesh_reader(
    document: VtkDocument, arrays: Sequence[Any], sizes: Sequence[int], grid: GridNodes
) -> Callable[[], NDArray[Any]]:
    def read() -> NDArray[Any]:
        parts = [document.array(element, size) for element, size in zip(arrays, sizes, strict=True)]
        values: NDArray[Any] = np.concatenate(parts)[grid.nodes].reshape(grid.mesh)
        return values

    return read


def _scalars(pieces: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    """Return the scalar arrays that every piece has, by section and name."""
    found: dict[tuple[str, str], list[Any]] = {}
    for piece in pieces:
        for section in _PLACES:
            for element in piece.iterfind(f"{section}/DataArray"):
                if element.get("NumberOfComponents", "1") in ("0", "1") and element.get("type") in TYPES:
                    found.setdefault((section, element.get("Name", "")), []).append(element)
    return {key: elements for key, elements in found.items() if key[1] and len(elements) == len(pieces)}


def _named(fields: dict[tuple[str, str], VtkField]) -> dict[str, VtkField]:
    """Name fields; one name on points and in cells gets the place added."""
    names = [name for _, name in fields]
    return {
        name if names.count(name) == 1 else f"{name} ({_PLACES[section]})": field
        for (section, name), field in fields.items()
    }


def _points(document: VtkDocument, piece: Any) -> NDArray[Any]:
    element = piece.find("Points/DataArray")
    if element is None:
        raise InputError("a piece has no points: copy the file again")
    return document.array(element, 3 * _count(piece, "NumberOfPoints")).reshape(-1, 3)


def _centres(document: VtkDocument, pieces: Sequence[Any], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the means of the corners of all cells."""
    found = []
    for piece, points in zip(pieces, parts, strict=True):
        arrays = {element.get("Name"): element for element in piece.iterfind("Cells/DataArray")}
        ends = document.array(arrays["offsets"], _count(piece, "NumberOfCells")).astype(np.int64)
        sizes = np.diff(ends, prepend=0)
        if not ends.size or np.any(sizes <= 0) or ends[-1] > _MOST:
            raise InputError("the cells of the mesh are damaged: copy the file again")
        corners = document.array(arrays["connectivity"], int(ends[-1])).astype(np.int64)
        if corners.min() < 0 or corners.max() >= len(points):
            raise InputError("the cells of the mesh name points that it does not have: copy the file again")
        found.append(np.add.reduceat(points[corners].astype(np.float64), ends - sizes, axis=0) / sizes[:, None])
    return np.concatenate(found)


def _only(document: VtkDocument, name: str) -> Any:
    element = document.root.find(name)
    if element is None or element.find("Piece") is None:
        raise InputError(f"there is no {name} with a Piece: expected a VTK file of this type")
    return element


def _extent(attributes: Any, name: str) -> Extent:
    found = tuple(int(number) for number in numbers_of(attributes, name, 6))
    sizes = [found[2 * axis + 1] - found[2 * axis] for axis in range(3)]
    if min(sizes) < 0 or int(np.prod([size + 1 for size in sizes], dtype=object)) > _MOST:
        raise InputError(f"{name} is {found}: expected first and last point along x, y and z")
    return found


def _counts(extent: Extent, section: str) -> tuple[int, ...]:
    """Points, or cells, along z, y, x; an axis with one point has one layer of cells."""
    sizes = [extent[2 * axis + 1] - extent[2 * axis] for axis in (2, 1, 0)]
    return tuple(size + 1 if section == "PointData" else max(size, 1) for size in sizes)


def _count(piece: Any, name: str) -> int:
    count = int(piece.get(name, "-1"))
    if not 0 < count <= _MOST:
        raise InputError(f"{name} is {count}: expected a positive number")
    return count


def _dtype(element: Any) -> np.dtype[Any]:
    return np.dtype(TYPES[element.get("type")])
