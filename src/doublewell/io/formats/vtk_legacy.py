"""VTK's legacy files (.vtk), ASCII and binary: structured points, rectilinear, structured and unstructured grids."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io.formats.vtk_piece import DAMAGED, MOST, Centres, Extent, Piece, VtkFile, cell_counts, mid_cells
from doublewell.record.arrays import Values

_TYPES = {
    "float": "f4", "double": "f8", "char": "i1", "unsigned_char": "u1", "short": "i2", "unsigned_short": "u2",
    "int": "i4", "unsigned_int": "u4", "long": "i8", "unsigned_long": "u8", "vtktypeint64": "i8", "vtkidtype": "i4",
}  # fmt: skip
_KINDS = ("STRUCTURED_POINTS", "RECTILINEAR_GRID", "STRUCTURED_GRID", "UNSTRUCTURED_GRID")
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6}
_SECTIONS = {"POINT_DATA": "PointData", "CELL_DATA": "CellData"}
_TIMES = ("TIME", "TimeValue", "time")
_LINE = 1000  # characters, at most


class _Reader:
    """The content of a file and the place in it."""

    def __init__(self, path: Path) -> None:
        self.content, self.at = path.read_bytes(), 0
        self.line()
        self.line(blank=True)  # the title
        self.binary = self.words()[:1] == ["BINARY"]

    def line(self, *, blank: bool = False) -> str:
        """Return the next line, past empty ones; an empty text at the end."""
        while self.at < len(self.content):
            end = self.content.find(b"\n", self.at)
            end = len(self.content) if end < 0 else end
            text = self.content[self.at : min(end, self.at + _LINE)].decode("latin1").strip()
            self.at = end + 1
            if text or blank:
                return text
        return ""

    def words(self) -> list[str]:
        """Return the words of the next line; the first, a keyword, in capitals."""
        words = self.line().split()
        return [words[0].upper(), *words[1:]] if words else []

    def numbers(self, kind: str, count: int) -> Values:
        """Read numbers of a type, big-endian ones of a binary file."""
        if kind.lower() not in _TYPES:
            raise InputError(f"there are numbers of the type {kind[:40]!r}: expected one of {', '.join(_TYPES)}")
        dtype = np.dtype(_TYPES[kind.lower()])
        if not 0 <= count * (dtype.itemsize if self.binary else 2) <= len(self.content) - self.at + 1:
            raise InputError(f"{count} numbers are announced, more than the file holds: {DAMAGED}")
        if self.binary:
            values = np.frombuffer(self.content, dtype.newbyteorder(">"), count, self.at)
            self.at += values.nbytes
            return values.astype(dtype)
        # as many bytes as the numbers may take, and all of the file only where they take more
        for room in (32 * count + 64, len(self.content)):
            rest = self.content[self.at : self.at + room]
            parts = rest.split(None, count)
            if len(parts) > count or (len(parts) == count and len(rest) < room):
                break
        if len(parts) < count:
            raise InputError(f"{len(parts)} numbers of {count} are there: {DAMAGED}")
        tail = parts[count] if len(parts) > count else b""
        self.at += len(rest) - len(tail)
        return np.array(parts[:count], dtype=dtype)


def read_legacy(path: Path) -> VtkFile:
    """Parse a legacy file: its mesh, its scalars, and the time among its field data."""
    reader = _Reader(path)
    words = reader.words()
    fields: dict[str, Values] = {}
    while words[:1] == ["FIELD"]:  # before the mesh: of the whole data set
        fields |= _fields(reader, words)
        words = reader.words()
    kind = words[1].upper() if words[:1] == ["DATASET"] and len(words) > 1 else ""
    if kind not in _KINDS:
        raise InputError(f"the data set is {kind[:40] or 'of no kind'}: expected one of {', '.join(_KINDS)}")
    mesh: dict[str, Any] = {}
    section, size, arrays = "", 0, {}
    while words := reader.words():
        name = words[0]
        if name in _SECTIONS:
            section, size = _SECTIONS[name], _whole(words[1])
        elif name == "METADATA":
            while reader.line(blank=True):
                pass
        elif name == "FIELD" and not section:
            fields |= _fields(reader, words)
        elif not section:
            _mesh_part(reader, words, mesh)
        else:
            for key, values in _data_part(reader, words, size).items():
                arrays[section, key] = values.dtype, partial(np.asarray, values)
    time = next((float(fields[key][0]) for key in _TIMES if key in fields and fields[key].size == 1), None)
    return _file(path, kind, mesh, arrays, time)


def _mesh_part(reader: _Reader, words: list[str], mesh: dict[str, Any]) -> None:
    """Read one part of the description of a mesh."""
    name = words[0]
    if name in ("DIMENSIONS", "ORIGIN", "SPACING", "ASPECT_RATIO"):
        numbers = [float(word) for word in words[1:4]]
        if len(numbers) != 3 or not all(map(isfinite, numbers)):
            raise InputError(f"{name} is {' '.join(words[1:4])[:60]!r}: expected 3 numbers")
        mesh["SPACING" if name == "ASPECT_RATIO" else name] = numbers[::-1]
    elif name in ("X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"):
        mesh[name] = reader.numbers(words[2], _whole(words[1]))
    elif name == "POINTS":
        mesh[name] = reader.numbers(words[2], 3 * _whole(words[1])).reshape(-1, 3)
    elif name == "CELLS":
        place, following = reader.at, reader.words()
        if following[:1] == ["OFFSETS"]:  # since version 5.1
            mesh["ends"] = reader.numbers(following[1], _whole(words[1])).astype(np.int64)[1:]
            following = reader.words()
            mesh["corners"] = reader.numbers(following[1], _whole(words[2])).astype(np.int64)
            return
        reader.at = place
        listed = reader.numbers("int", _whole(words[2])).astype(np.int64)
        starts: list[int] = []
        at = 0
        while at < len(listed) and len(starts) < _whole(words[1]):  # each cell begins with the number of its points
            starts.append(at)
            at += 1 + max(int(listed[at]), 0)
        inner = np.ones(len(listed), dtype=bool)
        inner[starts] = False
        mesh["corners"], mesh["ends"] = listed[inner], np.cumsum(listed[starts])
    elif name == "CELL_TYPES":
        reader.numbers("int", _whole(words[1]))
    else:
        raise InputError(f"the mesh has a part {name[:40]!r}, which is not known: {DAMAGED}")


def _data_part(reader: _Reader, words: list[str], size: int) -> dict[str, Values]:
    """Read one array of points or cells, or several; only scalars are kept."""
    name = words[0]
    if name == "SCALARS":
        width = _whole(words[3]) if len(words) > 3 else 1
        place = reader.at
        if reader.words()[:1] != ["LOOKUP_TABLE"]:
            reader.at = place
        values = reader.numbers(words[2], size * width)
        return {words[1]: values} if width == 1 else {}
    if name == "FIELD":
        return {key: values for key, values in _fields(reader, words).items() if values.shape == (size,)}
    if name in _WIDTHS:
        reader.numbers(words[2], size * _WIDTHS[name])
    elif name == "TEXTURE_COORDINATES":
        reader.numbers(words[3], size * _whole(words[2]))
    elif name in ("COLOR_SCALARS", "LOOKUP_TABLE"):
        count = size * _whole(words[2]) if name == "COLOR_SCALARS" else 4 * _whole(words[2])
        reader.numbers("unsigned_char" if reader.binary else "float", count)
    else:
        raise InputError(f"there is an array of the kind {name[:40]!r}, which is not known: {DAMAGED}")
    return {}


def _fields(reader: _Reader, words: list[str]) -> dict[str, Values]:
    """Read the arrays of a FIELD, those of one component flat."""
    arrays = {}
    for _ in range(_whole(words[2])):
        row = reader.line().split()
        if len(row) == 1 and row[0] == "METADATA":
            while reader.line(blank=True):
                pass
            row = reader.line().split()
        if len(row) < 4:
            raise InputError(f"an array of a FIELD has no name, size and type: {DAMAGED}")
        width, count = _whole(row[-3]), _whole(row[-2])
        if row[-1].lower() == "string":
            raise InputError("a FIELD holds texts: write the file without them")
        values = reader.numbers(row[-1], width * count)
        arrays[row[0]] = values if width == 1 else values.reshape(count, width)
    return arrays


def _file(path: Path, kind: str, mesh: dict[str, Any], arrays: dict[Any, Any], time: float | None) -> VtkFile:
    counts = [int(n) for n in mesh.get("DIMENSIONS", [])]
    extent: Extent = tuple((0, n - 1) for n in counts)
    if kind != "UNSTRUCTURED_GRID" and (len(counts) != 3 or min(counts) < 1 or prod(counts) > MOST):
        raise InputError(f"DIMENSIONS is {counts}: expected the points along x, y and z")
    spacing, points = None, None
    centres: Callable[[], Values] | None = None
    if kind == "STRUCTURED_POINTS":
        spacing = tuple(mesh["SPACING"])
    elif kind == "RECTILINEAR_GRID":
        lines = [mesh[f"{letter}_COORDINATES"] for letter in "ZYX"]
        if [len(line) for line in lines] != counts:
            raise InputError(f"the coordinates do not have the DIMENSIONS {counts}: {DAMAGED}")
        points = np.stack([grid.ravel() for grid in np.meshgrid(*lines, indexing="ij")][::-1], axis=1)
    else:
        points = mesh["POINTS"]
    cells = prod(cell_counts(extent)) if counts else len(mesh.get("ends", ()))
    size = prod(counts) if counts else len(mesh["POINTS"])
    if points is not None and len(points) != size:
        raise InputError(f"there are {len(points)} points for the DIMENSIONS {counts}: {DAMAGED}")
    sizes = {"PointData": size, "CellData": cells}
    for (section, name), (_, read) in arrays.items():
        if read().size != sizes[section]:
            raise InputError(f"array {name!r} has {read().size} values: expected {sizes[section]}; {DAMAGED}")
    if points is not None and counts:
        centres = partial(mid_cells, points, tuple(counts))
    elif points is not None and "ends" in mesh:
        centres = Centres(points, mesh["corners"], mesh["ends"])
    made: Callable[[], Values] | None = None if points is None else partial(np.asarray, points)
    piece = Piece(sizes, arrays, path.stat().st_size, extent or None, spacing, made, centres)
    return VtkFile((piece,), extent or None, time)


def _whole(text: str) -> int:
    number = int(text)
    if not 0 <= number <= MOST:
        raise InputError(f"there is a count of {number}: {DAMAGED}")
    return number
