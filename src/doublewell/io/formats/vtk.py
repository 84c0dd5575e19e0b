"""VTK: a series of .vti images or of .vtu meshes that are regular, one file per frame, or a .pvd list of them.

The XML itself is read by the standard library. No small library reads image data (.vti); the large one, vtk, is some
140 MB.
"""

from __future__ import annotations

import base64
import lzma
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.axes import grid_nodes
from doublewell.io.format import Axis, StoredField
from doublewell.record.arrays import Values

_FRAMES = (".vti", ".vtu")
_LIST = ".pvd"
_TIMES = ("TimeValue", "TIME", "time")
_SECTIONS = {"PointData": "points", "CellData": "cells"}
_TYPES = {
    "Float32": "f4", "Float64": "f8", "Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4",
    "UInt32": "u4", "Int64": "i8", "UInt64": "u8",
}  # fmt: skip
_RAW = re.compile(rb"<AppendedData[^>]*encoding\s*=\s*[\"']raw[\"'][^>]*>\s*_")
_BLOCKS = 2**20  # of one packed array, at most
_MOST = 2**40  # points that a header may claim
_PACKED = 10**4  # numbers per byte of the file, at most: constant fields pack well
_DAMAGED = "copy the file again"
Extent = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class VtkField:
    """One scalar field of a frame: its mesh and axes in the order (z, y,) x, and how its values are read."""

    mesh: tuple[int, ...]
    axes: tuple[Axis, ...]
    dtype: np.dtype[Any]
    read: Callable[[], Values]
    points: NDArray[Any] | None = None  # of an unstructured mesh
    bordered: bool = False


@dataclass(frozen=True)
class VtkDocument:
    """A parsed file: its elements, the bytes or the base64 text that stand at its end, and its size in bytes."""

    root: Any
    appended: bytes
    raw: bool
    size: int

    def array(self, element: Any, size: int) -> Values:
        """Read the numbers of a DataArray; anything but `size` of them is refused."""
        dtype, form = self._dtype(element.get("type")), element.get("format")
        if form == "ascii":
            numbers = np.array((element.text or "").split()[: size + 1], dtype=dtype)
        else:
            here, later = (element.text or "").strip().encode("ascii"), form == "appended"
            data = self.appended[int(element.get("offset")) :] if later else here
            content = self._bytes(data, size * dtype.itemsize, text=not (later and self.raw))
            numbers = np.frombuffer(content, dtype=dtype)
        if numbers.size != size:
            raise InputError(f"array {element.get('Name')!r} has {numbers.size} numbers: expected {size}")
        return numbers.astype(dtype.newbyteorder("="))

    def _dtype(self, kind: str) -> np.dtype[Any]:
        return np.dtype(_TYPES[kind]).newbyteorder(">" if self.root.get("byte_order") == "BigEndian" else "<")

    def _bytes(self, data: bytes, size: int, *, text: bool) -> bytes:
        """Return the bytes of an array that begins with its length, or with the lengths of its packed blocks.

        In base64 (`text`) the lengths of packed blocks are a text of their own. At most `size` + 1 bytes are made.
        """

        def first(count: int) -> bytes:
            return base64.b64decode(data[: 4 * -(-count // 3)])[:count] if text else data[:count]

        head = self._dtype(self.root.get("header_type", "UInt32"))
        count = int(np.frombuffer(first(head.itemsize), head, 1)[0])
        if self.root.get("compressor") is None:
            return first(head.itemsize + min(count, size + 1))[head.itemsize :]
        blocks = min(count, _BLOCKS)
        lengths = np.frombuffer(first((3 + blocks) * head.itemsize), head, 3 + blocks)
        data = data[4 * -(-lengths.nbytes // 3) :] if text else data[lengths.nbytes :]
        packed, packer = first(sum(map(int, lengths[3:]))), self.root.get("compressor")
        if packer not in ("vtkZLibDataCompressor", "vtkLZMADataCompressor"):
            raise InputError(f"the arrays are packed by {packer}: write them again with zlib or plain")
        parts, start, left = [], 0, size
        for length in map(int, lengths[3:]):
            inflate = zlib.decompressobj() if packer == "vtkZLibDataCompressor" else lzma.LZMADecompressor()
            parts.append(inflate.decompress(packed[start : start + length], left + 1))
            start, left = start + length, left - len(parts[-1])
            if left < 0:
                break
        return b"".join(parts)


def read_vtk(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find a scalar field in the first file of a series; the others are read when sliced."""
    lists = sorted(item for item in path.iterdir() if item.suffix.lower() == _LIST) if path.is_dir() else [path]
    paths: list[Path] = [path]
    times: list[float] | None = None
    if len(lists) == 1 and lists[0].suffix.lower() == _LIST:
        paths, times = _listed(lists[0])
    elif path.is_dir() or files.is_pattern(path):
        paths = files.members(path, _FRAMES)
    fields = _fields(paths[0])
    name = files.choose_array(path, {name: (len(paths), *item.mesh) for name, item in fields.items()}, var)
    field = fields[name]
    if len(paths) < 2:
        raise InputError(
            f"{path} is one frame: expected a movie; pass the folder of all frames, a pattern such as "
            f"{path.parent / ('*' + path.suffix)}, or a .pvd file"
        )
    if times is None and "times" in wanted and "dt" in wanted:
        times = _times(paths)
    values = files.file_frames(paths, partial(_values, name, field.points), field.mesh, field.dtype)
    clock = Axis("t", points=None if times is None else np.array(times))
    return StoredField(values, {}, (clock, *field.axes), bordered=field.bordered)


def _listed(path: Path) -> tuple[list[Path], list[float]]:
    """Return the files of a .pvd list in the order of their times."""
    root = _read_document(path).root
    rows = [(float(row.get("timestep", "nan")), str(row.get("file", ""))) for row in root.iter("DataSet")]
    if not rows or any(not name or "\0" in name for _, name in rows):
        raise InputError(f"{path} lists no files: expected a .pvd file with a DataSet for each frame")
    rows.sort(key=lambda row: row[0])
    times = [time for time, _ in rows]
    if len(set(times)) < len(times):
        raise InputError(
            f"{path} lists several files for one time: expected one file per frame; join the parts of a frame"
        )
    return [path.parent / name for _, name in rows], times


def _times(paths: Sequence[Path]) -> list[float] | None:
    """Return the times that the files themselves have, None where one has none."""
    times = []
    for path in paths:
        with files.reading(path, "VTK"):
            document = _read_document(path)
            rows = [row for row in document.root.iterfind("*/FieldData/DataArray") if row.get("Name") in _TIMES]
            if not rows:
                return None
            times.append(float(document.array(rows[0], 1)[0]))
    return times


def _values(name: str, points: NDArray[Any] | None, path: Path) -> Values:
    """Read one frame; the nodes of a mesh must be those of the first frame."""
    fields = _fields(path)
    if name not in fields:
        raise InputError(f"{path} has no array {name!r}, which the first frame has: {_DAMAGED}")
    own = fields[name].points
    if points is not None and (own is None or not np.array_equal(points, own)):
        raise InputError(f"{path} has another mesh than the first frame: expected one mesh for the whole series")
    with files.reading(path, "VTK"):
        return fields[name].read()


def _fields(path: Path) -> dict[str, VtkField]:
    """Return the scalar fields of a file; one name on points and in cells gets the section added."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: it is listed as a frame; copy the files of the series again")
    grids = {"ImageData": _image_fields, "UnstructuredGrid": _mesh_fields}
    with files.reading(path, "VTK"):
        document = _read_document(path)
        kind = str(document.root.get("type", ""))
        if kind not in grids:
            raise InputError(f"holds {kind[:40] or 'nothing known'}: expected {' or '.join(grids)}")
        grid = document.root.find(kind)
        if grid is None or grid.find("Piece") is None:
            raise InputError(f"there is no {kind} with a Piece: expected a VTK file of this type")
        fields = grids[kind](document, grid, grid.findall("Piece"))
    names = [name for _, name in fields]
    return {
        name if names.count(name) == 1 else f"{name} ({_SECTIONS[section]})": field
        for (section, name), field in fields.items()
    }


def _read_document(path: Path) -> VtkDocument:
    """Parse a VTK XML file; raw bytes at its end, which are not XML, are cut off first."""
    content = path.read_bytes()
    tail = _RAW.search(content)
    text = content if tail is None else content[: tail.start()] + b"</VTKFile>"
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(f"{path} defines XML entities, which VTK files never do: save it again")
    root = ElementTree.fromstring(text)
    if root.tag != "VTKFile":
        raise InputError(f"{path} is XML with the root {root.tag[:40]!r}: expected a VTKFile")
    if tail is not None:
        return VtkDocument(root, content[tail.end() :], raw=True, size=len(content))
    appended = (root.findtext("AppendedData") or "").strip().removeprefix("_")
    return VtkDocument(root, appended.encode("ascii"), raw=False, size=len(content))


def _image_fields(document: VtkDocument, image: Any, pieces: Sequence[Any]) -> dict[tuple[str, str], VtkField]:
    """Find the fields of image data; the values on points are taken as samples a spacing apart."""
    whole, extents = _extent(image, "WholeExtent"), [_extent(piece, "Extent") for piece in pieces]
    axes, fields = tuple(map(Axis, "zyx", _numbers(image, "Spacing", 3)[::-1])), {}
    for (section, name), arrays in _scalars(pieces).items():
        counts, dtype = _counts(whole, section), np.dtype(_TYPES[arrays[0].get("type")])
        if prod(counts) > _PACKED * document.size:
            raise InputError(f"WholeExtent is {whole}, more than the file can hold: {_DAMAGED}")

        def read(section: str = section, arrays: Any = arrays, dtype: Any = dtype) -> Values:
            values = np.zeros(_counts(whole, section), dtype=dtype)
            filled = np.zeros(values.shape, dtype=bool)
            for element, extent in zip(arrays, extents, strict=True):
                counts = _counts(extent, section)
                starts = [first - origin for (first, _), (origin, _) in zip(extent, whole, strict=True)]
                part = tuple(slice(start, start + n) for start, n in zip(starts, counts, strict=True))
                if min(starts) < 0 or values[part].shape != counts:
                    raise InputError(
                        f"a piece with extent {extent} along z, y, x lies outside the whole extent {whole}"
                    )
                values[part] = document.array(element, prod(counts)).reshape(counts)
                filled[part] = True
            if not filled.all():
                raise InputError(f"the pieces do not fill the whole extent: {_DAMAGED}")
            return values

        fields[section, name] = VtkField(counts, axes, dtype, read)
    return fields


def _mesh_fields(document: VtkDocument, _: Any, pieces: Sequence[Any]) -> dict[tuple[str, str], VtkField]:
    """Find the fields of an unstructured mesh whose points, or cell centres, are those of a regular mesh."""
    parts = []
    for piece in pieces:
        element = piece.find("Points/DataArray")
        if element is None:
            raise InputError(f"a piece has no points: {_DAMAGED}")
        parts.append(document.array(element, 3 * _count(piece, "NumberOfPoints")).reshape(-1, 3))
    points, grids, fields = np.concatenate(parts), {}, {}
    for (section, name), arrays in _scalars(pieces).items():
        on_points = section == "PointData"
        if section not in grids:
            grids[section] = grid_nodes(points if on_points else _centres(document, pieces, parts))
        grid = grids[section]
        sizes = [_count(piece, "NumberOfPoints" if on_points else "NumberOfCells") for piece in pieces]

        def read(arrays: Any = arrays, sizes: Any = sizes, grid: Any = grid) -> Values:
            values = [document.array(element, size) for element, size in zip(arrays, sizes, strict=True)]
            return np.asarray(grid(np.concatenate(values)[None])[0])

        dtype = np.dtype(_TYPES[arrays[0].get("type")])
        fields[section, name] = VtkField(grid.mesh, grid.axes, dtype, read, points, bordered=on_points)
    return fields


def _centres(document: VtkDocument, pieces: Sequence[Any], parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the means of the corners of all cells."""
    centres = []
    for piece, points in zip(pieces, parts, strict=True):
        arrays = {element.get("Name"): element for element in piece.iterfind("Cells/DataArray")}
        ends = document.array(arrays["offsets"], _count(piece, "NumberOfCells")).astype(np.int64)
        sizes = np.diff(ends, prepend=0)
        if not ends.size or np.any(sizes <= 0) or ends[-1] > _MOST:
            raise InputError(f"the cells of the mesh are damaged: {_DAMAGED}")
        corners = document.array(arrays["connectivity"], int(ends[-1])).astype(np.int64)
        if corners.min() < 0 or corners.max() >= len(points):
            raise InputError(f"the cells of the mesh name points that it does not have: {_DAMAGED}")
        centres.append(np.add.reduceat(points[corners].astype(np.float64), ends - sizes, axis=0) / sizes[:, None])
    return np.concatenate(centres)


def _scalars(pieces: Sequence[Any]) -> dict[tuple[str, str], list[Any]]:
    """Return the scalar arrays that every piece has, by section and name."""
    arrays: dict[tuple[str, str], list[Any]] = {}
    for piece in pieces:
        for section in _SECTIONS:
            for element in piece.iterfind(f"{section}/DataArray"):
                if element.get("NumberOfComponents", "1") in ("0", "1") and element.get("type") in _TYPES:
                    arrays.setdefault((section, element.get("Name", "")), []).append(element)
    return {key: elements for key, elements in arrays.items() if key[1] and len(elements) == len(pieces)}


def _numbers(element: Any, name: str, count: int) -> list[float]:
    numbers = [float(part) for part in element.attrib[name].split()]
    if len(numbers) != count or not np.all(np.isfinite(numbers)):
        raise InputError(f"{name} is {element.attrib[name][:60]!r}: expected {count} numbers")
    return numbers


def _extent(element: Any, name: str) -> Extent:
    """Return first and last point along z, y and x."""
    numbers = [int(number) for number in _numbers(element, name, 6)]
    extent = tuple(zip(numbers[::2], numbers[1::2], strict=True))[::-1]
    if any(last < first for first, last in extent) or prod(last - first + 1 for first, last in extent) > _MOST:
        raise InputError(f"{name} is {tuple(numbers)}: expected first and last point along x, y and z")
    return extent


def _counts(extent: Extent, section: str) -> tuple[int, ...]:
    """Points, or cells, along z, y, x; an axis with one point has one layer of cells."""
    return tuple(last - first + 1 if section == "PointData" else max(last - first, 1) for first, last in extent)


def _count(piece: Any, name: str) -> int:
    count = int(piece.get(name, "-1"))
    if not 0 < count <= _MOST:
        raise InputError(f"{name} is {count}: expected a positive number")
    return count
