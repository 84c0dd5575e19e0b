"""netCDF: version 4 is HDF5 and read by h5py, version 3 by SciPy; both by slabs. Written as version 4."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.io.container import Member, find_field
from doublewell.io.content import content_of
from doublewell.io.format import (
    FIELD,
    SEEN,
    Format,
    Found,
    chunk_shape,
    metadata_of,
    reading,
    slab_frames,
    stored_dtype,
)
from doublewell.io.gaps import mask_blocks, slabs_with_gaps
from doublewell.io.hdf5 import hdf5_members, open_first, read_hdf5, shown_attributes
from doublewell.io.missing import library
from doublewell.io.view import Index, ranges
from doublewell.record import Record

__all__ = ["NETCDF", "netcdf_members", "read_netcdf"]

_KIND = "netCDF file"
_TIME = "time"


class StoredVariable:
    """A variable of a netCDF 3 file, read by ranges through a map of the file; the file is open only meanwhile."""

    def __init__(self, path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.name = path, name
        self.shape, self.dtype, self.ndim = tuple(shape), np.dtype(dtype).newbyteorder("="), len(shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        with _open_classic(self.path) as file:
            return np.array(file.variables[self.name].data[ranges(index, self.shape)], dtype=self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)


def read_netcdf(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Find the field of a netCDF file, with the coordinates of its axes; only metadata are read."""
    if _is_hdf5(path):
        return read_hdf5(path, var, wanted)
    members, attributes = netcdf_members(path)
    with reading(path, _KIND):
        return find_field(path, members, attributes, var, wanted)


def netcdf_members(path: Path) -> tuple[dict[str, Member], dict[str, Any]]:
    """Return the arrays of a netCDF file of either version, and the attributes of the file."""
    if _is_hdf5(path):
        with open_first(path) as file:
            return hdf5_members(path, file), shown_attributes(file)
    with _open_classic(path) as file:
        members = {name: _member(path, name, item) for name, item in file.variables.items()}
        return members, _attributes(file)


def write_netcdf(record: Record, path: Path) -> None:
    """Write a record as netCDF 4: u(time, (z, y,) x) with coordinates, slab by slab, chunks with checksums.

    The coordinates are for other programs; the attribute dx and the times say the mesh to the last bit.
    """
    h5netcdf = library("h5netcdf", "netcdf", "writing netCDF files")
    names = (_TIME, *"zyx"[3 - len(record.mesh) :])
    dtype = max(stored_dtype(record), np.dtype(np.float32))  # netCDF has no narrower floats
    chunks = chunk_shape(record.shape, dtype.itemsize)
    with replace_file(path) as temporary, h5netcdf.File(temporary, "w") as file:
        file.dimensions = dict(zip(names, record.shape, strict=True))
        file.attrs.update(_saved(record))
        _write_coordinates(file, record, names)
        field = file.create_variable(
            FIELD, names, dtype, chunks=chunks, compression="gzip", compression_opts=1, shuffle=True, fletcher32=True
        )
        for start, slab in slabs_with_gaps(record, slab_frames(record, chunks[0])):
            field[start : start + len(slab)] = slab.astype(dtype, copy=False)
        if record.mask is not None:
            _write_mask(file, record, names)


def _write_mask(file: Any, record: Record, names: tuple[str, ...]) -> None:
    """Write the mask as 0 and 1, for netCDF has no truth values, without the axes along which it does not change."""
    kept = tuple(name for name, n in zip(names, record.mask.shape, strict=True) if n > 1)
    sizes = tuple(n for n in record.mask.shape if n > 1)
    mask = file.create_variable(SEEN, kept, np.uint8, chunks=sizes and chunk_shape(sizes, 1), fletcher32=True)
    mask.attrs["long_name"] = "1 where a value was observed, 0 where it is missing"
    if record.mask.shape[0] == 1:
        mask[...] = np.asarray(record.mask).reshape(sizes).astype(np.uint8)
        return
    for start, block in mask_blocks(record, slab_frames(record)):
        mask[start : start + len(block)] = block.reshape(len(block), *sizes[1:]).astype(np.uint8)


def _saved(record: Record) -> dict[str, Any]:
    """The metadata without the times, which are a coordinate; texts and numbers that netCDF can hold."""
    found = {name: value for name, value in metadata_of(record).items() if name != "times"}
    return found | {"dx": np.array(record.dx, dtype=np.float64)}


def _write_coordinates(file: Any, record: Record, names: tuple[str, ...]) -> None:
    units = (record.time_unit, *[record.length_unit] * len(record.mesh))
    places = [step * np.arange(n) for n, step in zip(record.mesh, record.dx, strict=True)]
    for name, points, unit in zip(names, (record.times, *places), units, strict=True):
        axis = file.create_variable(name, (name,), np.float64)
        axis[:] = points
        if unit is not None:
            axis.attrs["units"] = unit


@contextmanager
def _open_classic(path: Path) -> Iterator[Any]:
    """Open a netCDF 3 file; it is closed before the values leave, which SciPy warns of where an error is under way."""
    from scipy.io import netcdf_file

    with reading(path, _KIND):
        if content_of(path) != "netCDF 3":
            raise InputError(f"{path} is no {_KIND}: expected HDF5 or netCDF 3 by its first bytes; copy the file again")
        with path.open("rb") as raw:
            if raw.read(4)[3:] == b"\x05":
                raise InputError(
                    f"{path} is netCDF of the kind CDF-5: convert it with nccopy -k nc4 {path.name} new.nc"
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with netcdf_file(path, "r", mmap=True, maskandscale=False) as file:
                yield file


def _member(path: Path, name: str, item: Any) -> Member:
    names = tuple(str(name) for name in item.dimensions)
    stored = StoredVariable(path, name, tuple(item.shape), np.dtype(item.data.dtype))
    return Member(stored, _attributes(item), names if len(names) == stored.ndim else None)


def _attributes(item: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in getattr(item, "_attributes", {}).items():
        if isinstance(value, bytes):
            found[name] = value.decode("utf-8", "replace")
        else:
            found[name] = value.item() if np.size(value) == 1 else np.array(value)
    return found


def _is_hdf5(path: Path) -> bool:
    with reading(path, _KIND):
        if path.is_dir():
            raise InputError(f"{path} is a folder: expected a {_KIND}")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes): expected a {_KIND}; copy the file again")
        return content_of(path) == "HDF5"


NETCDF = Format("netCDF file", (".nc", ".nc4", ".cdf", ".netcdf"), read_netcdf, write_netcdf, ("HDF5", "netCDF 3"))
