"""netCDF: version 4 is HDF5 and read by h5py, version 3 by SciPy; both by slabs. Written as version 4."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import FIELD, SEEN, Outgoing, StoredField
from doublewell.io.formats.hdf5 import Member, find_field, hdf5_members, open_hdf5, read_hdf5, shown_attributes
from doublewell.record import LazyArray, Record
from doublewell.record.arrays import Block, Values


def read_netcdf(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find the field of a netCDF file, with the coordinates of its axes; only metadata are read."""
    if files.content_of(path) == "HDF5":
        return read_hdf5(path, var, wanted)
    return find_field(path, *netcdf_members(path), var, wanted)


def netcdf_members(path: Path) -> tuple[dict[str, Member], dict[str, Any]]:
    """Return the arrays of a netCDF file of either version, and the attributes of the file."""
    if files.content_of(path) == "HDF5":
        with open_hdf5(path, first=True) as file:
            return hdf5_members(path, file), shown_attributes(file)
    with _open_classic(path) as file:
        members = {}
        for name, item in file.variables.items():
            names, dtype = tuple(str(name) for name in item.dimensions), np.dtype(item.data.dtype).newbyteorder("=")
            shape = tuple(int(n) for n in item.shape)
            stored = LazyArray(partial(_read_variable, path, name, dtype), shape, dtype, files=(path,))
            members[name] = Member(stored, _attributes(item), names if len(names) == stored.ndim else None)
        return members, _attributes(file)


def write_netcdf(record: Record, path: Path) -> None:
    """Write a record as netCDF 4: u(time, (z, y,) x) with coordinates, slab by slab, chunks with checksums.

    The coordinates are for other programs; the attribute dx and the times state the mesh to the last bit.
    """
    h5netcdf = files.library("h5netcdf", "netcdf", "writing netCDF files")
    names = ("time", *"zyx"[3 - len(record.mesh) :])
    out = Outgoing(record, narrowest="f4")  # netCDF has no narrower floats
    metadata = {name: value for name, value in out.metadata.items() if name != "times"}
    with replace_file(path) as temporary, h5netcdf.File(temporary, "w") as file:
        file.dimensions = dict(zip(names, record.shape, strict=True))
        file.attrs.update(metadata | {"dx": np.array(record.dx, dtype=np.float64)})
        units = (record.time_unit, *[record.length_unit] * len(record.mesh))
        positions = [step * np.arange(n) for n, step in zip(record.mesh, record.dx, strict=True)]
        for name, points, unit in zip(names, (record.times, *positions), units, strict=True):
            axis = file.create_variable(name, (name,), np.float64)
            axis[:] = points
            if unit is not None:
                axis.attrs["units"] = unit
        field = file.create_variable(
            FIELD, names, out.dtype, chunks=out.chunks, compression="gzip", compression_opts=1, shuffle=True,
            fletcher32=True,
        )  # fmt: skip
        for start, slab in out.slabs():
            field[start : start + len(slab)] = slab
        if record.mask is None:
            return
        # as 0 and 1, for netCDF has no booleans, without the axes along which the mask does not change
        kept = {name: n for name, n in zip(names, record.mask.shape, strict=True) if n > 1}
        sizes = tuple(kept.values())
        chunks = files.chunk_shape(sizes, 1) if sizes else ()
        mask = file.create_variable(SEEN, tuple(kept), np.uint8, chunks=chunks, fletcher32=True)
        mask.attrs["long_name"] = "1 where a value was observed, 0 where it is missing"
        for start, block in out.mask_blocks():
            part = slice(start, start + len(block)) if "time" in kept else ...
            mask[part] = block.reshape(
                [n for n in block.shape if n > 1] if "time" not in kept else [len(block), *sizes[1:]]
            )


@contextmanager
def _open_classic(path: Path) -> Iterator[Any]:
    """Open a netCDF 3 file; it is closed before the values leave, of which SciPy warns where an error is under way."""
    from scipy.io import netcdf_file

    with files.reading(path, "netCDF"):
        if files.content_of(path) != "netCDF 3":
            raise InputError(
                f"{path} is not a netCDF file: expected HDF5 or netCDF 3 by its first bytes; copy the file again"
            )
        with path.open("rb") as raw:
            if raw.read(4)[3:] == b"\x05":
                raise InputError(
                    f"{path} is netCDF of the kind CDF-5: convert it with nccopy -k nc4 {path.name} new.nc"
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with netcdf_file(path, "r", mmap=True, maskandscale=False) as file:
                yield file


def _read_variable(path: Path, name: str, dtype: np.dtype[Any], block: Block) -> Values:
    """Read a block of a netCDF 3 variable through a map of the file; the file is open only meanwhile."""
    with _open_classic(path) as file:
        return np.array(file.variables[name].data[block], dtype=dtype)


def _attributes(item: Any) -> dict[str, Any]:
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes)
        else value.item() if np.size(value) == 1 else np.array(value)
        for name, value in getattr(item, "_attributes", {}).items()
    }  # fmt: skip
