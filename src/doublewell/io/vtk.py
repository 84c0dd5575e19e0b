"""VTK: a series of .vti images or of .vtu meshes that are regular, one file a frame, or a .pvd list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import Axis, Format, Found, about, choose_array, reading
from doublewell.io.series import FileFrames, is_pattern, members
from doublewell.io.vtk_grids import VtkFrame, image_frame, mesh_frame
from doublewell.io.vtk_xml import VtkDocument, read_document

__all__ = ["VTK", "read_vtk"]

_KIND = "VTK file"
_FRAMES = (".vti", ".vtu")
_LIST = ".pvd"
_GRIDS: dict[str, Callable[[VtkDocument], VtkFrame]] = {"ImageData": image_frame, "UnstructuredGrid": mesh_frame}
_TIMES = ("TimeValue", "TIME", "time")


def read_vtk(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Find a scalar field in the first file of a series; the others are read when sliced."""
    with reading(path, _KIND):
        paths, times = _series(path)
        first = _frame(paths[0])
        shapes = {name: (len(paths), *item.mesh) for name, item in first.fields.items()}
        name = choose_array(path, shapes, var)
        field = first.fields[name]
        if len(paths) < 2:
            raise InputError(
                f"{path} is one frame: expected a movie; pass the folder of all frames, a pattern such as "
                f"{path.parent / ('*' + path.suffix)}, or a .pvd file"
            )
        if times is None and "times" in wanted and "dt" in wanted:
            times = _times(paths)
        values = FileFrames(paths, partial(_values, name, first.points), field.mesh, field.dtype)
        clock = Axis("t", points=None if times is None else np.array(times))
        space = tuple(Axis(axis, step=step) for axis, step in zip(field.names, field.spacing, strict=True))
        return Found(values, {}, (clock, *space), bordered=field.bordered)


def _series(path: Path) -> tuple[list[Path], list[float] | None]:
    """Return the files of a series and, of a .pvd list, their times."""
    if is_pattern(path):
        return members(path, _FRAMES), None
    if path.is_dir():
        lists = sorted(item for item in path.iterdir() if item.suffix.lower() == _LIST)
        return _listed(lists[0]) if len(lists) == 1 else (members(path, _FRAMES), None)
    return _listed(path) if path.suffix.lower() == _LIST else ([path], None)


def _listed(path: Path) -> tuple[list[Path], list[float]]:
    """Return the files of a .pvd list in the order of their times."""
    root = read_document(path).root
    rows = [(float(row.get("timestep", "nan")), str(row.get("file", ""))) for row in root.iter("DataSet")]
    if not rows or any(not name or "\0" in name for _, name in rows):
        raise InputError(f"{path} lists no files: expected a .pvd file with a DataSet for each frame")
    rows.sort(key=lambda row: row[0])
    times = [time for time, _ in rows]
    if len(set(times)) < len(times):
        raise InputError(f"{path} lists several files for one time: expected a file a frame; join the parts of a frame")
    return [path.parent / name for _, name in rows], times


def _frame(path: Path) -> VtkFrame:
    if not path.is_file():
        raise InputError(f"{path} does not exist: it is listed as a frame; copy the files of the series again")
    with reading(path, _KIND), about(path):
        document = read_document(path)
        if document.kind not in _GRIDS:
            raise InputError(f"holds {document.kind[:40] or 'nothing known'}: expected {' or '.join(_GRIDS)}")
        return _GRIDS[document.kind](document)


def _values(name: str, points: NDArray[Any] | None, path: Path) -> NDArray[Any]:
    """Read one frame; the nodes of a mesh must be those of the first frame."""
    frame = _frame(path)
    if name not in frame.fields:
        raise InputError(f"{path} holds no array {name!r}, which the first frame has: copy the file again")
    if points is not None and not np.array_equal(points, frame.points if frame.points is not None else np.empty(0)):
        raise InputError(f"{path} has another mesh than the first frame: expected one mesh for the whole series")
    with reading(path, _KIND), about(path):
        return frame.fields[name].read()


def _times(paths: Sequence[Path]) -> list[float] | None:
    """Return the times that the files themselves say, None where one does not."""
    found = []
    for path in paths:
        with reading(path, _KIND), about(path):
            document = read_document(path)
            rows = [row for row in document.root.iterfind("*/FieldData/DataArray") if row.get("Name") in _TIMES]
            if not rows:
                return None
            found.append(float(document.array(rows[0], 1)[0]))
    return found


VTK = Format("VTK series", (*_FRAMES, _LIST), read_vtk, contents=("XML",), series=True)
