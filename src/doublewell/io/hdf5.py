"""HDF5: arrays in groups, with or without the dimension scales of netCDF; read by slabs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io import py_pde
from doublewell.io.container import Member, find_field
from doublewell.io.format import Format, Found, reading
from doublewell.io.hdf5_heaps import check_heaps
from doublewell.io.view import Index, places, ranges

__all__ = ["HDF5", "StoredDataset", "hdf5_members", "open_first", "open_hdf5", "read_hdf5", "shown_attributes"]

_KIND = "HDF5 file"
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
_NETCDF_FILL = 9.969209968386869e36  # what netCDF puts where nothing was written


class StoredDataset:
    """An HDF5 array read by ranges that never stands in for values that were not written.

    The file is open only while something is read, so that the array can go to another process. HDF5 gives the fill
    value for a chunk that was never written, so that a simulation that stopped would read as a field of zeros; here it
    raises. A finite fill value other than 0 was chosen by the writer and is given. `shape` may be shorter than what is
    stored.
    """

    def __init__(
        self, path: Path, name: str, shape: tuple[int, ...], dtype: Any, chunks: tuple[int, ...] | None = None
    ) -> None:
        self.path, self.name, self.chunks = path, name, chunks
        self.shape, self.dtype, self.ndim = tuple(shape), np.dtype(dtype), len(shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        parts = ranges(index, self.shape)
        with open_hdf5(self.path) as file:
            dataset = file[self.name]
            self._check_written(dataset, parts)
            return np.asarray(dataset[parts])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def _check_written(self, dataset: Any, parts: tuple[slice, ...]) -> None:
        if dataset.is_virtual or dataset.external:
            raise InputError(
                f"{self.path}: array {self.name!r} lies in other files, and a part that is missing there would read "
                "as a fill value: copy it into one file first, with h5repack"
            )
        if dataset.chunks is None:
            if dataset.id.get_storage_size() == 0 and dataset.size and not _deliberate(dataset):
                raise InputError(f"{self.path}: array {self.name!r} was never written: run what wrote the file again")
            return
        all_chunks = prod(-(-n // size) for n, size in zip(dataset.shape, dataset.chunks, strict=True))
        if dataset.id.get_num_chunks() < all_chunks and not _deliberate(dataset):
            self._check_chunks(dataset, parts)

    def _check_chunks(self, dataset: Any, parts: tuple[slice, ...]) -> None:
        sizes = dataset.chunks
        rows = [range(p.start // size, -(-p.stop // size)) for p, size in zip(parts, sizes, strict=True)]
        for place in places(rows):
            offset = tuple(i * size for i, size in zip(place, sizes, strict=True))
            if dataset.id.get_chunk_info_by_coord(offset).byte_offset is None:
                raise InputError(self._missing(offset, sizes))

    def _missing(self, offset: tuple[int, ...], sizes: tuple[int, ...]) -> str:
        spans = ", ".join(f"{start} to {start + size - 1}" for start, size in zip(offset, sizes, strict=True))
        return (
            f"{self.path}: a part of array {self.name!r} was never written, within the places {spans} of its axes; "
            "HDF5 would give its fill value there. Copy the file again, or cut the movie before that part"
        )


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading; whatever the library raises on its bytes becomes an InputError."""
    import h5py

    with reading(path, _KIND), h5py.File(path, "r", locking="best-effort") as file:
        yield file


@contextmanager
def open_first(path: Path) -> Iterator[Any]:
    """Open an HDF5 file that has not been opened before, after a look at what the library does not check."""
    with reading(path, _KIND):
        check_heaps(path)
    with open_hdf5(path) as file:
        yield file


def read_hdf5(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Find the field of an HDF5 file; only metadata are read."""
    with open_first(path) as file:
        if py_pde.is_storage(file):
            return py_pde.found_in(path, file, var, wanted, StoredDataset)
        return find_field(path, hdf5_members(path, file), shown_attributes(file), var, wanted)


def hdf5_members(path: Path, file: Any) -> dict[str, Member]:
    """Return the numeric arrays of all groups; links to other files are not followed."""
    found: dict[str, Member] = {}

    def visit(name: str, node: Any) -> None:
        if hasattr(node, "shape") and node.shape is not None and not _is_placeholder(node):
            found[name] = _member(path, name, node)

    file.visititems(visit)
    return found


def shown_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes as plain values: texts as str, single numbers as numbers."""
    return {name: value for name in node.attrs if (value := _plain(node.attrs, name)) is not None}


def _member(path: Path, name: str, dataset: Any) -> Member:
    stored = StoredDataset(path, name, dataset.shape, dataset.dtype, dataset.chunks)
    parents = [shown_attributes(dataset.parent)] if PurePosixPath(name).parent.name else []
    return Member(stored, shown_attributes(dataset), _axis_names(dataset), tuple(parents))


def _axis_names(dataset: Any) -> tuple[str, ...] | None:
    """The names of the axes: of their dimension scales, or their labels; None where one has none."""
    names = [PurePosixPath(dim[0].name).name if len(dim) else dim.label for dim in dataset.dims]
    return tuple(names) if names and all(names) else None


def _deliberate(dataset: Any) -> bool:
    """Whether the fill value was chosen by the writer; it is only looked at where something is missing.

    The library crashes on a damaged fill value, so that it is left alone otherwise.
    """
    import h5py

    if dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_USER_DEFINED:
        return False
    fill = dataset.fillvalue
    return isinstance(fill, np.number) and isfinite(fill) and fill != 0 and not np.isclose(fill, _NETCDF_FILL)


def _is_placeholder(dataset: Any) -> bool:
    name = dataset.attrs.get("NAME")
    return isinstance(name, bytes | str) and (name if isinstance(name, str) else name.decode("latin1")).startswith(
        _NO_VARIABLE
    )


def _plain(attributes: Mapping[str, Any], name: str) -> Any:
    try:
        value = attributes[name]
    except (OSError, TypeError, ValueError):  # a type that NumPy has no name for
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "S":
            value = np.char.decode(value, "utf-8", "replace")
        return value.item() if value.size == 1 else value
    return value.item() if isinstance(value, np.generic) else value if isinstance(value, str) else None


HDF5 = Format("HDF5 file", (".h5", ".hdf5", ".hdf", ".he5"), read_hdf5, contents=("HDF5",))
