"""VTK: a series of images or of meshes, one file per frame, XML or legacy, or a .pvd list of them.

No small library reads these; the large one, vtk, is some 140 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.io.formats.vtk_legacy import read_legacy
from doublewell.io.formats.vtk_piece import DAMAGED, SECTIONS, Extent, VtkFile, cell_counts, placed
from doublewell.io.formats.vtk_xml import read_document, read_xml
from doublewell.io.mesh import GridNodes, ScatteredNodes, mesh_of
from doublewell.record.arrays import Values

_FRAMES = (".vti", ".vtu", ".vtr", ".vts", ".pvti", ".pvtu", ".pvtr", ".pvts", ".vtk")
_LIST, _LEGACY = ".pvd", ".vtk"
_PACKED = 10**4  # numbers per byte of the file, at most: constant fields pack well


@dataclass(frozen=True)
class Image:
    """The points, or cells, of image data: their counts and axes in the order z, y, x."""

    mesh: tuple[int, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class VtkField:
    """A scalar field of a series: the mesh of all frames, its type, where it lies, and the points or cells."""

    section: str
    name: str
    dtype: np.dtype[Any]
    mesh: Image | GridNodes | ScatteredNodes
    places: NDArray[Any] | None = None

    def read(self, path: Path) -> Values:
        """Read one frame; the nodes of a mesh must be those of the first frame."""
        values = self.values(path)
        return values if isinstance(self.mesh, Image) else np.asarray(self.mesh(values[None])[0])

    def values(self, path: Path) -> Values:
        """Read one frame as it is stored: an image in its shape, or the values on all nodes."""
        file, key = _read(path), (self.section, self.name)
        with files.reading(path, "VTK"):
            if not all(key in piece.arrays for piece in file.pieces):
                raise InputError(f"{path} has no array {self.name!r}, which the first frame has: {DAMAGED}")
            if isinstance(self.mesh, Image):
                counts = _image(file, self.section)
                return _assembled(file, self.section, counts, [piece.arrays[key][1]() for piece in file.pieces])
            if self.places is None or not np.array_equal(_places(file, self.section), self.places):
                raise InputError(
                    f"{path} has another mesh than the first frame: expected one mesh for the whole series"
                )
            return np.concatenate([piece.arrays[key][1]() for piece in file.pieces])


def read_vtk(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find a scalar field in the first file of a series; the others are read when sliced."""
    lists = sorted(item for item in path.iterdir() if item.suffix.lower() == _LIST) if path.is_dir() else [path]
    paths: list[Path] = [path]
    times: list[float] | None = None
    if len(lists) == 1 and lists[0].suffix.lower() == _LIST:
        paths, times = _listed(lists[0])
    elif path.is_dir() or files.is_pattern(path):
        paths = _frames(path)
    first = _read(paths[0])
    known = _fields(first)
    with files.reading(paths[0], "VTK"):
        shapes = {name: (len(paths), *_shape(first, section)) for name, (section, _) in known.items()}
        name = files.choose_array(path, shapes, var)
        section, own = known[name]
        mesh, places = _mesh(first, section)
    field = VtkField(section, own, first.pieces[0].arrays[section, own][0], mesh, places)
    if len(paths) < 2:
        raise InputError(
            f"{path} is one frame: expected a movie; pass the folder of all frames, a pattern such as "
            f"{path.parent / ('*' + path.suffix)}, or a .pvd file"
        )
    if times is None and "times" in wanted and "dt" in wanted:
        times = _times(paths)
    notes = [files.chosen_note("array", name, list(known))]
    dtype = np.dtype(np.float64) if isinstance(mesh, ScatteredNodes) else field.dtype
    if not isinstance(mesh, Image):
        notes += mesh.notes(np.stack([field.values(paths[0]), field.values(paths[-1])]))
    values = files.file_frames(paths, field.read, mesh.mesh, dtype)
    clock = Axis("t", points=None if times is None else np.array(times))
    bordered = section == "PointData" and not isinstance(mesh, Image)
    return StoredField(values, {}, (clock, *mesh.axes), bordered=bordered, notes=tuple(notes))


def _frames(path: Path) -> list[Path]:
    """Return the files of a series; where some of them list the others as their parts, only these."""
    inside = path.parent.glob(path.name) if files.is_pattern(path) else path.iterdir()
    kinds = {item.suffix.lower() for item in inside} & set(_FRAMES)
    return files.members(path, tuple(kind for kind in kinds if kind.startswith(".p")) or _FRAMES)


def _listed(path: Path) -> tuple[list[Path], list[float]]:
    """Return the files of a .pvd list in the order of their times."""
    root = read_document(path).root
    rows = [(float(row.get("timestep", "nan")), str(row.get("file", ""))) for row in root.iter("DataSet")]
    if not rows or any(not name for _, name in rows):
        raise InputError(f"{path} lists no files: expected a .pvd file with a DataSet for each frame")
    rows.sort(key=lambda row: row[0])
    times = [time for time, _ in rows]
    if len(set(times)) < len(times):
        raise InputError(
            f"{path} lists several files for one time: expected one file per frame; join the parts of a frame"
        )
    return [files.inside(path, name) for _, name in rows], times


def _times(paths: Sequence[Path]) -> list[float] | None:
    """Return the times that the files themselves have, None where one has none."""
    times: list[float] = []
    for path in paths:
        time = _read(path).time
        if time is None:
            return None
        times.append(time)
    return times


def _read(path: Path) -> VtkFile:
    if not path.is_file():
        raise InputError(f"{path} does not exist: it is listed as a frame; copy the files of the series again")
    with files.reading(path, "VTK"):
        return read_legacy(path) if path.suffix.lower() == _LEGACY else read_xml(path)


def _fields(file: VtkFile) -> dict[str, tuple[str, str]]:
    """Return section and name of the scalars that all pieces have; one name in both gets the section added."""
    keys = [key for key in file.pieces[0].arrays if all(key in piece.arrays for piece in file.pieces)]
    names = [name for _, name in keys]
    return {
        name if names.count(name) == 1 else f"{name} ({SECTIONS[section]})": (section, name) for section, name in keys
    }


def _counts(whole: Extent, section: str) -> tuple[int, ...]:
    return tuple(last - first + 1 for first, last in whole) if section == "PointData" else cell_counts(whole)


def _shape(file: VtkFile, section: str) -> tuple[int, ...]:
    """Return the shape that a field has as far as it is known before its mesh is read."""
    if file.pieces[0].spacing is not None and file.whole is not None:
        return _counts(file.whole, section)
    return (sum(piece.sizes[section] for piece in file.pieces),)


def _places(file: VtkFile, section: str) -> Values:
    """Return the points of a mesh, or the middles of its cells."""
    functions = [piece.points if section == "PointData" else piece.centres for piece in file.pieces]
    return np.concatenate([np.asarray(function()) for function in functions if function is not None])


def _mesh(file: VtkFile, section: str) -> tuple[Image | GridNodes | ScatteredNodes, NDArray[Any] | None]:
    """Return the mesh of points or of cells, and where these lie where it is no image."""
    if (spacing := file.pieces[0].spacing) is not None:
        return Image(_image(file, section), tuple(map(Axis, "zyx", spacing))), None
    places = _places(file, section)
    return mesh_of(places, centres=section != "PointData"), places


def _image(file: VtkFile, section: str) -> tuple[int, ...]:
    """Return the counts of the whole image along z, y, x, before memory for them is taken."""
    counts = _counts(file.whole or (), section)
    if prod(counts) > _PACKED * sum(piece.size for piece in file.pieces):
        raise InputError(f"WholeExtent is {file.whole}, more than the file can hold: {DAMAGED}")
    return counts


def _assembled(file: VtkFile, section: str, counts: tuple[int, ...], parts: Sequence[Values]) -> Values:
    """Put the pieces of an image together."""
    values = np.zeros(counts, dtype=parts[0].dtype)
    filled = np.zeros(values.shape, dtype=bool)
    for piece, part in zip(file.pieces, parts, strict=True):
        place, own = placed(piece, section, file.whole or ())
        values[place], filled[place] = part.reshape(own), True
    if not filled.all():
        raise InputError(f"the pieces do not fill the whole extent: {DAMAGED}")
    return values
