"""HDF5: arrays in groups, with or without the dimension scales of netCDF, and py-pde's storage; read by slabs."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isfinite, prod
from mmap import ACCESS_READ, mmap
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.axes import axes_by_vectors, axes_with_coordinates, is_coordinate
from doublewell.io.format import Axis, StoredField
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values
from doublewell.units import unit_name

_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
_NETCDF_FILL = 9.969209968386869e36  # what netCDF puts where nothing was written
_PY_PDE = "field_attributes"
_HEAP, _OBJECT = b"GCOL\1\0\0\0", struct.Struct("<HHIQ")
_ALIGNED, _SMALLEST = 8, 4096
_LOOKED_AT = 64 * 2**20  # bytes at the start and the end: heaps lie beside the metadata, not in the middle of a movie


@dataclass(frozen=True)
class Member:
    """One array of a container, not yet read: its attributes, the names of its axes, the attributes of its groups."""

    values: Any
    attributes: Mapping[str, Any]
    names: tuple[str, ...] | None = None
    groups: tuple[Mapping[str, Any], ...] = ()


def read_hdf5(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find the field of an HDF5 file; only metadata are read."""
    with open_hdf5(path, first=True) as file:
        if _PY_PDE in file.attrs and is_local(file, "data") and is_local(file, "times"):
            return _py_pde_field(path, file, var, wanted)
        return find_field(path, hdf5_members(path, file), shown_attributes(file), var, wanted)


@contextmanager
def open_hdf5(path: Path, *, first: bool = False) -> Iterator[Any]:
    """Open an HDF5 file for reading; for the `first` time after a look at what the library does not check.

    Texts of any length lie in heaps, and the HDF5 library never returns from a damaged one (2.0.0). A heap begins with
    GCOL and holds objects, each with its number and its length; number 0 is the free space at the end. Here the
    lengths are followed before the library does it.
    """
    import h5py

    with files.reading(path, "HDF5"):
        if first:
            size = path.stat().st_size
            parts = {(0, min(size, _LOOKED_AT)), (max(0, size - _LOOKED_AT), size)}
            with path.open("rb") as raw, mmap(raw.fileno(), 0, access=ACCESS_READ) as content:
                if not all(_heaps_are_sound(content, *part) for part in parts):
                    raise InputError(f"{path} is damaged or cut short (a heap of texts is broken): copy the file again")
        sys.audit("open", str(path), "r", 0)  # as for any file that Python opens, for whoever watches
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file


def _heaps_are_sound(content: mmap, start: int, stop: int) -> bool:
    heap = content.find(_HEAP, start, stop - _OBJECT.size)
    while heap >= 0:
        (length,) = struct.unpack_from("<Q", content, heap + 8)
        item, end = heap + 16, heap + length
        whole = length >= _SMALLEST and end <= len(content)  # bytes with any other length only look like a heap
        while whole and item + _OBJECT.size <= end:
            number, _, _, size = _OBJECT.unpack_from(content, item)
            step = size if number == 0 else _OBJECT.size + -(-size // _ALIGNED) * _ALIGNED
            if step < _OBJECT.size or item + step > end:
                return False
            item += step
        heap = content.find(_HEAP, heap + 1, stop - _OBJECT.size)
    return True


def stored_dataset(path: Path, dataset: Any, frames: int | None = None) -> LazyArray:
    """Return an HDF5 array that is read by ranges, perhaps only its first frames.

    The file is open only while something is read, so that the array can go to another process.
    """
    shape = tuple(dataset.shape) if frames is None else (frames, *dataset.shape[1:])
    read = partial(_read_dataset, path, dataset.name.lstrip("/"))
    return LazyArray(read, shape, np.dtype(dataset.dtype), chunks=dataset.chunks, files=(path,))


def is_local(file: Any, name: str, links: int = 8) -> bool:
    """Tell whether a name leads to something that lies in this file, and not through a link to another one."""
    import h5py

    at = PurePosixPath("/")
    for part in PurePosixPath(name.lstrip("/")).parts:
        link = file.get(str(at / part), getlink=True) if str(at / part) in file else None
        if link is None or isinstance(link, h5py.ExternalLink):
            return False
        if isinstance(link, h5py.SoftLink) and (not links or not is_local(file, str(at / link.path), links - 1)):
            return False
        at = at / part
    node = file[str(at)]
    return not (getattr(node, "is_virtual", False) or getattr(node, "external", None))


def _read_dataset(path: Path, name: str, block: Block) -> Values:
    """Read a block, and refuse to stand in for values that were not written.

    HDF5 gives the fill value for a chunk that was never written, so that a simulation that stopped would read as a
    field of zeros; here it raises. A finite fill value other than 0 was chosen by the writer and is given.
    """
    with open_hdf5(path) as file:
        dataset = file[name]
        if dataset.is_virtual or dataset.external:
            raise InputError(
                f"{path}: array {name!r} lies in other files, and a part that is missing there would read as a fill "
                "value: copy it into one file first, with h5repack"
            )
        sizes = dataset.chunks
        if sizes is None:
            if dataset.id.get_storage_size() == 0 and dataset.size and not _chosen_fill(dataset):
                raise InputError(f"{path}: array {name!r} was never written: run what wrote the file again")
        elif dataset.id.get_num_chunks() < prod(-(-n // size) for n, size in zip(dataset.shape, sizes, strict=True)):
            for position in () if _chosen_fill(dataset) else files.touched_chunks(block, sizes):
                offset = tuple(i * size for i, size in zip(position, sizes, strict=True))
                if dataset.id.get_chunk_info_by_coord(offset).byte_offset is None:
                    spans = ", ".join(f"{a} to {a + size - 1}" for a, size in zip(offset, sizes, strict=True))
                    raise InputError(
                        f"{path}: a part of array {name!r} was never written, within {spans} along its axes; HDF5 "
                        "would give its fill value there. Copy the file again, or cut the movie before that part"
                    )
        return np.asarray(dataset[block])


def _chosen_fill(dataset: Any) -> bool:
    """Whether the fill value was chosen by the writer; it is only looked at where something is missing.

    The library crashes on a damaged fill value, so that it is left alone otherwise.
    """
    import h5py

    if dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return False
    fill = dataset.fillvalue
    return isinstance(fill, np.number) and isfinite(fill) and fill != 0 and not np.isclose(fill, _NETCDF_FILL)


def hdf5_members(path: Path, file: Any) -> dict[str, Member]:
    """Return the numeric arrays of all groups; links to other files are not followed."""
    members: dict[str, Member] = {}

    def visit(name: str, node: Any) -> None:
        if not hasattr(node, "shape") or node.shape is None:
            return
        label = node.attrs.get("NAME")
        if isinstance(label, bytes | str) and _text(label).startswith(_NO_VARIABLE):
            return
        names = [PurePosixPath(dim[0].name).name if len(dim) else dim.label for dim in node.dims]
        groups = (shown_attributes(node.parent),) if PurePosixPath(name).parent.name else ()
        known = tuple(names) if names and all(names) else None  # of dimension scales, or labels
        members[name] = Member(stored_dataset(path, node), shown_attributes(node), known, groups)

    file.visititems(visit)
    return members


def shown_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes as plain values: texts as str, single numbers as numbers; others are left out."""
    shown: dict[str, Any] = {}
    for name in node.attrs:
        try:
            value = node.attrs[name]
        except (OSError, TypeError, ValueError):  # a type that NumPy has no name for
            continue
        if isinstance(value, bytes | str):
            shown[name] = _text(value)
        elif isinstance(value, np.ndarray | np.generic):
            array: Any = np.asarray(value)
            array = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
            shown[name] = array.item() if array.size == 1 else array
    return shown


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def find_field(
    path: Path, members: Mapping[str, Member], attributes: Mapping[str, Any], var: str | None, wanted: frozenset[str]
) -> StoredField:
    """Choose the field among arrays, with its metadata: of attributes, of small arrays, and of coordinates.

    The attributes of the array come before those of its group and of the file, and these before small arrays.
    """
    numeric = {name: member.values.shape for name, member in members.items() if member.values.dtype.kind in "biufc"}
    several = sum(2 <= len(shape) <= 4 for shape in numeric.values()) > 1
    grids = {name for name, shape in numeric.items() if several and len(shape) > 1 and is_coordinate(_last(name))}
    name = files.choose_array(path, {key: shape for key, shape in numeric.items() if key not in grids - {var}}, var)
    field, folder = members[name], PurePosixPath(name).parent

    def nearest(name: str) -> Member | None:
        """The array of a name in the group of the field, or in one above it."""
        names = ((group / name).as_posix() for group in (folder, *folder.parents))
        return next((members[name] for name in names if name in members), None)

    def coordinate(name: str) -> tuple[NDArray[Any], Mapping[str, Any]] | None:
        member = nearest(name)
        if member is None or len(member.values.shape) != 1 or member.values.shape[0] not in field.values.shape:
            return None
        return np.asarray(files.unpacked(member.values, member.attributes)[:]), member.attributes

    metadata = {key: value for key in sorted(wanted) if (value := _small(nearest(key))) is not None}
    for source in (attributes, *field.groups, field.attributes):
        metadata |= {key: source[key] for key in wanted if key in source}
    if field.names is None:
        beside = {_last(key): members[key] for key in numeric if is_coordinate(_last(key)) and key != name}
        near = {key: member for key in beside if (member := nearest(key)) is not None and 0 not in member.values.shape}
        most = 8 * int(np.prod(field.values.shape, dtype=object)) + 8
        vectors = {
            key: (np.asarray(member.values[:]), unit_name(member.attributes.get("units")))
            for key, member in near.items()
            if 0 < len(member.values.shape) <= len(field.values.shape) and member.values.dtype.kind in "iuf"
            and 8 * int(np.prod(member.values.shape, dtype=object)) <= most
        }  # fmt: skip
        axes = axes_by_vectors(tuple(field.values.shape), vectors) if vectors else None
    else:
        axes = axes_with_coordinates(field.names, coordinate, wanted)
    fields = [key for key, shape in numeric.items() if 2 <= len(shape) <= 4 and key not in grids]
    notes = (files.chosen_note("array", name, fields),) if len(fields) > 1 else ()
    return StoredField(files.unpacked(field.values, field.attributes), metadata, axes, notes=notes)


def _last(name: str) -> str:
    return PurePosixPath(name).name


def _small(member: Member | None) -> Any:
    """Return a number, a list or a text that stands as an array where an attribute would do."""
    if member is None or len(member.values.shape) > 1 or member.values.dtype.kind not in "iufUSO":
        return None
    values = np.asarray(member.values[:] if member.values.shape else member.values[()])
    if values.dtype.kind in "SO":
        text = values.item() if values.size == 1 else None
        return _text(text) if isinstance(text, bytes | str) else None
    return values.item() if values.ndim == 0 else values


def _py_pde_field(path: Path, file: Any, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find a scalar field of py-pde's FileStorage: cells in the order x, y, z of its grid, times, and periodicity."""
    description, data = _decoded(file.attrs[_PY_PDE]), file["data"]
    several = "fields" in description
    fields = [_decoded(item) for item in _decoded(description["fields"])] if several else [description]
    grid = _decoded(fields[0]["grid"])
    kind, shape = grid.get("class"), [int(n) for n in grid.get("shape", [])]
    if kind not in ("CartesianGrid", "UnitGrid") or not 1 <= len(shape) <= 3 or min(shape) < 1:
        raise InputError(f"{path} has a {kind} of py-pde: expected a CartesianGrid or a UnitGrid of one to three axes")
    bounds = grid["bounds"] if kind == "CartesianGrid" else [[0, n] for n in shape]
    steps = [(float(high) - float(low)) / n for (low, high), n in zip(bounds, shape, strict=True)]
    position, scalars = 0, {}  # of scalar fields among the components of all
    for number, item in enumerate(fields):
        rank = {"ScalarField": 0, "VectorField": 1, "Tensor2Field": 2}[_decoded(item["class"])]
        if rank == 0:
            scalars[str(_decoded(item.get("label", "null")) or number)] = position
        position += len(shape) ** rank
    if not scalars:
        raise InputError(f"{path} holds vectors or tensors only: expected a scalar field of py-pde")
    chosen = list(scalars.values())[files.choose_named(path, "scalar field", list(scalars), var)]
    length = min(int(_decoded(file.attrs.get("data_length", data.shape[0]))), *data.shape[:1], *file["times"].shape)
    if data.shape[1 + several :] != tuple(shape):
        raise InputError(f"{path} is damaged: its data have shape {data.shape}, its grid {shape}; copy it again")
    clock, space = Axis("t", points=file["times"][:length]), [Axis(*pair) for pair in zip("xyz", steps, strict=False)]
    periodic = grid.get("periodic", False)
    whole = "boundary" in wanted and all(periodic if isinstance(periodic, list) else [periodic])
    metadata = {"origin": "simulation"} | ({"boundary": "periodic"} if whole else {})
    axes = (clock, *[Axis("c")] * several, *space)
    return StoredField(stored_dataset(path, data, length), metadata, axes, {1: chosen} if several else {})


def _decoded(value: Any) -> Any:
    """Decode JSON text; py-pde writes texts of texts."""
    return json.loads(value) if isinstance(value, str | bytes) else value
