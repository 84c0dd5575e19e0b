"""VTK's XML files: images, rectilinear, structured and unstructured meshes, in one file or in parts that it names."""

from __future__ import annotations

import base64
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.formats.vtk_piece import (
    DAMAGED,
    MOST,
    SECTIONS,
    Centres,
    Extent,
    Piece,
    VtkFile,
    cell_counts,
    mid_cells,
)
from doublewell.record.arrays import Values

_TIMES = ("TimeValue", "TIME", "time")
_TYPES = {
    "Float32": "f4", "Float64": "f8", "Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4",
    "UInt32": "u4", "Int64": "i8", "UInt64": "u8",
}  # fmt: skip
_RAW = re.compile(rb"<AppendedData[^>]*encoding\s*=\s*[\"']raw[\"'][^>]*>\s*_")
_BLOCKS = 2**20  # of one packed array, at most
_KINDS = ("ImageData", "RectilinearGrid", "StructuredGrid", "UnstructuredGrid")
_PARTS = 10**4  # files of one frame


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


def read_xml(path: Path) -> VtkFile:
    """Parse a VTK XML file, and the files of its parts where it names such."""
    with files.reading(path, "VTK"):
        document = read_document(path)
        kind = str(document.root.get("type", ""))
        if kind.removeprefix("P") not in _KINDS:
            raise InputError(
                f"holds {kind[:40] or 'nothing known'}: expected {', '.join(_KINDS)}, or one in parts (P...)"
            )
        grid = document.root.find(kind)
        if grid is None or grid.find("Piece") is None:
            raise InputError(f"there is no {kind} with a Piece: expected a VTK file of this type")
        whole = None if "Unstructured" in kind else _extent(grid, "WholeExtent")
        if kind.startswith("P"):
            pieces = [piece for part in _sources(path, grid) for piece in read_xml(part).pieces]
        else:
            pieces = list(_pieces(document, grid, kind))
        rows = [row for row in document.root.iterfind("*/FieldData/DataArray") if row.get("Name") in _TIMES]
        return VtkFile(tuple(pieces), whole, float(document.array(rows[0], 1)[0]) if rows else None)


def _sources(path: Path, grid: Any) -> list[Path]:
    names = [str(piece.get("Source", "")) for piece in grid.findall("Piece")]
    if len(names) > _PARTS or any(Path(name).suffix.lower().startswith(".p") for name in names):
        raise InputError(f"{path} names {len(names)} parts, or parts in parts: {DAMAGED}")
    return [files.inside(path, name) for name in names]


def read_document(path: Path) -> VtkDocument:
    """Parse a VTK XML file; raw bytes at its end, which are not XML, are cut off first."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: it is listed as a frame; copy the files of the series again")
    content = path.read_bytes()
    tail = _RAW.search(content)
    text = content if tail is None else content[: tail.start()] + b"</VTKFile>"
    root = files.parse_xml(path, text)
    if root.tag != "VTKFile":
        raise InputError(f"{path} is XML with the root {root.tag[:40]!r}: expected a VTKFile")
    if tail is not None:
        return VtkDocument(root, content[tail.end() :], raw=True, size=len(content))
    appended = (root.findtext("AppendedData") or "").strip().removeprefix("_")
    return VtkDocument(root, appended.encode("ascii"), raw=False, size=len(content))


def _pieces(document: VtkDocument, grid: Any, kind: str) -> Iterator[Piece]:
    for element in grid.findall("Piece"):
        axes, centres, extent = None, None, None
        points: Callable[[], Values] | None = None
        if kind == "UnstructuredGrid":
            count = _count(element, "NumberOfPoints")
            cells = int(element.get("NumberOfCells", "0"))
            points = partial(_points, document, element, count)
            centres = partial(_centres, document, element, count, cells)
        else:
            extent = _extent(element, "Extent")
            shape = tuple(last - first + 1 for first, last in extent)
            count, cells = prod(shape), prod(cell_counts(extent))
            if kind == "ImageData":
                axes = tuple(_numbers(grid, "Spacing", 3)[::-1])
            else:
                if kind == "RectilinearGrid":
                    points = partial(_rectilinear, document, element, shape)
                else:
                    points = partial(_points, document, element, count)
                centres = partial(_middles, points, shape)
        sizes = {"PointData": count, "CellData": cells}
        arrays: dict[tuple[str, str], tuple[np.dtype[Any], Callable[[], Values]]] = {}
        for section in SECTIONS:
            for item in element.iterfind(f"{section}/DataArray"):
                name, known = item.get("Name", ""), item.get("type") in _TYPES
                if name and known and item.get("NumberOfComponents", "1") in ("0", "1"):
                    dtype = np.dtype(_TYPES[item.get("type")])
                    arrays[section, name] = dtype, partial(document.array, item, sizes[section])
        yield Piece(sizes, arrays, document.size, extent, axes, points, centres)


def _points(document: VtkDocument, piece: Any, count: int) -> Values:
    element = piece.find("Points/DataArray")
    if element is None:
        raise InputError(f"a piece has no points: {DAMAGED}")
    return document.array(element, 3 * count).reshape(-1, 3)


def _rectilinear(document: VtkDocument, piece: Any, shape: tuple[int, ...]) -> Values:
    elements = piece.findall("Coordinates/DataArray")
    if len(elements) != 3 or prod(shape) > MOST:
        raise InputError(f"a piece has no three coordinates: {DAMAGED}")
    lines = [document.array(element, n) for element, n in zip(elements, shape[::-1], strict=True)]
    return np.stack([grid.ravel() for grid in np.meshgrid(*lines[::-1], indexing="ij")][::-1], axis=1)


def _middles(points: Callable[[], Values], shape: tuple[int, ...]) -> Values:
    return mid_cells(points(), shape)


def _centres(document: VtkDocument, piece: Any, count: int, cells: int) -> Values:
    """Return the means of the corners of all cells."""
    arrays = {element.get("Name"): element for element in piece.iterfind("Cells/DataArray")}
    if not 0 < cells <= MOST or not {"offsets", "connectivity"} <= set(arrays):
        raise InputError(f"the mesh has {cells} cells: expected some with offsets and connectivity; {DAMAGED}")
    ends = document.array(arrays["offsets"], cells).astype(np.int64)
    if ends[-1] > MOST or ends[-1] < 0:
        raise InputError(f"the cells of the mesh are damaged: {DAMAGED}")
    corners = document.array(arrays["connectivity"], int(ends[-1])).astype(np.int64)
    return Centres(_points(document, piece, count), corners, ends)()


def _numbers(element: Any, name: str, count: int) -> list[float]:
    numbers = [float(part) for part in element.attrib[name].split()]
    if len(numbers) != count or not np.all(np.isfinite(numbers)):
        raise InputError(f"{name} is {element.attrib[name][:60]!r}: expected {count} numbers")
    return numbers


def _extent(element: Any, name: str) -> Extent:
    """Return first and last point along z, y and x."""
    numbers = [int(number) for number in _numbers(element, name, 6)]
    extent = tuple(zip(numbers[::2], numbers[1::2], strict=True))[::-1]
    if any(last < first for first, last in extent) or prod(last - first + 1 for first, last in extent) > MOST:
        raise InputError(f"{name} is {tuple(numbers)}: expected first and last point along x, y and z")
    return extent


def _count(piece: Any, name: str) -> int:
    count = int(piece.get(name, "-1"))
    if not 0 < count <= MOST:
        raise InputError(f"{name} is {count}: expected a positive number")
    return count
