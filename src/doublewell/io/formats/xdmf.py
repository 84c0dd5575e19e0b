"""XDMF: XML that describes meshes and fields, whose numbers lie in HDF5 files beside it, as FEniCS writes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, shown
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.io.formats.hdf5 import is_local, open_hdf5, stored_dataset
from doublewell.io.formats.vtk_piece import DAMAGED, Centres
from doublewell.io.mesh import mesh_of
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values

_CORNERS = {
    "polyline": 2, "triangle": 3, "quadrilateral": 4, "tetrahedron": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8,
    "edge_3": 3, "triangle_6": 6, "quadrilateral_8": 8, "quadrilateral_9": 9, "tetrahedron_10": 10, "hexahedron_20": 20,
    "hexahedron_27": 27,
}  # fmt: skip
_WIDTHS = {"xyz": 3, "xy": 2}
_MOST = 2**40  # numbers that a description may claim


def read_xdmf(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (no other metadata)
    """Find a scalar field of a series in an XDMF file, on nodes or in cells; its values are read when sliced."""
    root = files.parse_xml(path, path.read_bytes())
    if root.tag != "Xdmf":
        raise InputError(f"{path} is XML with the root {root.tag[:40]!r}: expected Xdmf")
    frames: dict[str, list[tuple[float, Any]]] = {}
    for order, (time, grid) in enumerate(_grids(root)):
        for item in grid.findall("Attribute"):
            kind, centre = item.get("AttributeType", "Scalar").lower(), item.get("Center", "Node").lower()
            if kind == "scalar" and centre in ("node", "cell"):
                frames.setdefault(str(item.get("Name", "u")), []).append((order if time is None else time, item))
    series = {name: sorted(rows, key=lambda row: row[0]) for name, rows in frames.items() if len(rows) > 1}
    if not series:
        raise InputError(
            f"{path} has no scalar field at two times or more: expected a collection of grids with a Time each; write "
            "one file for all times"
        )
    rows = series[files.choose_array(path, {name: (len(rows), 2) for name, rows in series.items()}, var)]
    name = next(key for key, item in series.items() if item is rows)
    centres, items = rows[0][1].get("Center", "Node").lower() == "cell", [_only(row[1], "DataItem") for row in rows]
    stored = _frames(path, items)
    shaped = _regular(path, root, centres=centres)
    clock = Axis("t", points=np.array([time for time, _ in rows], dtype=np.float64))
    note = files.chosen_note("field", name, list(series))
    if shaped is not None:
        mesh, axes = shaped
        if prod(mesh) != stored.shape[1]:
            raise InputError(f"{path} has {stored.shape[1]} values on a mesh of {mesh}: {DAMAGED}")
        field = stored.map_frames(partial(_reshaped, mesh), mesh, stored.dtype)
        return StoredField(field, {"origin": "simulation"}, (clock, *axes), bordered=not centres, notes=(note,))
    points = _geometry(path, root)
    grid = mesh_of(_cells(path, root, points) if centres else points, centres=centres)
    if not centres and stored.shape[1] != len(points):
        raise InputError(
            f"{path} has {stored.shape[1]} values on {len(points)} nodes: expected one each; write a field of the "
            "first order on the mesh"
        )
    field = stored.map_frames(grid, grid.mesh, np.float64)
    notes = (note, *grid.notes(np.concatenate([stored[0:1], stored[stored.shape[0] - 1 : stored.shape[0]]])))
    return StoredField(field, {"origin": "simulation"}, (clock, *grid.axes), bordered=not centres, notes=notes)


def _reshaped(mesh: tuple[int, ...], frames: Values, first: int) -> Values:  # noqa: ARG001 (all frames have one mesh)
    return frames.reshape(-1, *mesh)


def _grids(root: Any) -> Iterator[tuple[float | None, Any]]:
    """Go through the grids with their times; a collection may state these as a list."""
    for grid in root.iter("Grid"):
        if grid.get("GridType", "Uniform").lower() == "uniform":
            time = grid.find("Time")
            yield (None if time is None else float(time.get("Value", "nan"))), grid


def _only(element: Any, tag: str) -> Any:
    found = element.find(tag)
    if found is None:
        raise InputError(f"a {element.tag} has no {tag}: {DAMAGED}")
    return found


def _unique(path: Path, root: Any, tag: str) -> Any:
    """Return the one description of the mesh; a series whose frames have several is refused."""
    items = list(root.iter(tag))
    texts = {
        (item.get(f"{tag}Type"), tuple((data.text or "").strip() for data in item.iter("DataItem"))) for item in items
    }
    if len(texts) > 1:
        raise InputError(f"{path} has {len(texts)} meshes: expected one for the whole series; write the mesh once")
    if not items:
        raise InputError(f"{path} has no {tag}: expected a mesh")
    return items[0]


def _size(item: Any) -> tuple[int, ...]:
    size = tuple(int(n) for n in item.get("Dimensions", "").split())
    if not size or min(size) < 1 or prod(size) > _MOST:
        raise InputError(f"a DataItem has the Dimensions {item.get('Dimensions', '')[:60]!r}: expected numbers")
    return size


def _source(path: Path, item: Any) -> tuple[Path, str]:
    """Return the HDF5 file of a DataItem and the name of the array in it."""
    place, _, name = (item.text or "").strip().partition(":/")
    if item.get("Format", "XML").upper() != "HDF" or not name:
        raise InputError(f"{path} has numbers of the format {item.get('Format', '')[:20]!r}: expected HDF or XML")
    return files.inside(path, place), f"/{name.lstrip('/')}"


def _stored(path: Path, item: Any) -> LazyArray:
    """Return the numbers of a DataItem flat or as rows, read when sliced."""
    size = _size(item)
    if item.get("Format", "XML").upper() == "XML":
        numbers = np.array((item.text or "").split()[: prod(size) + 1], dtype=np.float64)
        if numbers.size != prod(size):
            raise InputError(f"{path} has {numbers.size} numbers where {prod(size)} are announced: {DAMAGED}")
        return LazyArray(partial(_sliced, numbers.reshape(size)), size, numbers.dtype)
    place, name = _source(path, item)
    if not place.is_file():
        raise InputError(f"{path} names the file {shown(place.name)}, which does not exist: copy it beside it")
    with open_hdf5(place, first=True) as file:
        if not is_local(file, name):
            raise InputError(f"{place} has no array {shown(name)} of its own: {DAMAGED}")
        stored = stored_dataset(place, file[name])
    if prod(stored.shape) != prod(size):
        raise InputError(f"{place} has {stored.shape} numbers in {shown(name)}, and {size} are announced: {DAMAGED}")
    return stored


def _sliced(values: Values, block: Block) -> Values:
    return values[block]


def _frames(path: Path, items: list[Any]) -> LazyArray:
    """Return the values u[t, node] of the DataItems of all times."""
    parts = tuple(_stored(path, item) for item in items)
    sizes = {prod(part.shape) for part in parts}
    if len(sizes) > 1:
        raise InputError(f"{path} has frames of {min(sizes)} to {max(sizes)} values: expected one mesh for all times")
    dtype = np.result_type(*(part.dtype for part in parts))
    known = tuple(place for part in parts[:1] for place in part.files)
    return LazyArray(partial(_joined, parts, dtype), (len(parts), sizes.pop()), dtype, files=(path, *known))


def _joined(parts: tuple[LazyArray, ...], dtype: np.dtype[Any], block: Block) -> Values:
    return np.stack([np.asarray(part[:]).reshape(-1)[block[1]].astype(dtype) for part in parts[block[0]]])


def _geometry(path: Path, root: Any) -> NDArray[Any]:
    """Return the nodes, rows x, y, z."""
    item = _unique(path, root, "Geometry")
    width = _WIDTHS.get(item.get("GeometryType", "XYZ").lower())
    if width is None:
        raise InputError(f"{path} has a geometry {item.get('GeometryType', '')[:20]!r}: expected XY or XYZ")
    return np.asarray(_stored(path, _only(item, "DataItem"))[:], dtype=np.float64).reshape(-1, width)


def _cells(path: Path, root: Any, points: NDArray[Any]) -> NDArray[Any]:
    """Return the middles of the cells."""
    item = _unique(path, root, "Topology")
    kind = (item.get("TopologyType") or item.get("Type") or "").lower()
    if kind not in _CORNERS:
        raise InputError(f"{path} has a topology {kind[:20]!r}: expected one of {', '.join(_CORNERS)}")
    corners = np.asarray(_stored(path, _only(item, "DataItem"))[:]).astype(np.int64).ravel()
    ends = np.arange(_CORNERS[kind], len(corners) + 1, _CORNERS[kind])
    return Centres(points, corners, ends)()


def _regular(path: Path, root: Any, *, centres: bool) -> tuple[tuple[int, ...], tuple[Axis, ...]] | None:
    """Return mesh and axes of a mesh that is stated to be regular, by the spacing along z, y, x."""
    item = _unique(path, root, "Topology")
    if (item.get("TopologyType") or item.get("Type") or "").lower() not in ("2dcorectmesh", "3dcorectmesh"):
        return None
    counts = _size(item) if item.get("Dimensions") else tuple(int(n) for n in item.get("NumberOfElements", "").split())
    data = list(_unique(path, root, "Geometry").iter("DataItem"))
    if len(data) != 2 or len(counts) not in (2, 3):
        raise InputError(f"{path} has a regular mesh without origin and spacing: {DAMAGED}")
    steps = np.asarray(_stored(path, data[1])[:], dtype=np.float64).ravel()
    if steps.shape != (len(counts),) or not np.all(np.isfinite(steps)) or np.any(steps <= 0):
        raise InputError(f"{path} has the spacing {shown(steps.tolist())}: expected {len(counts)} positive numbers")
    known = [
        (n - centres, float(h), name) for n, h, name in zip(counts, steps, "zyx"[-len(counts) :], strict=True) if n > 1
    ]
    return tuple(n for n, *_ in known), tuple(Axis(name, step=h) for _, h, name in known)
