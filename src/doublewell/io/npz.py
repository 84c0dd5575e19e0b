"""npz and npy: NumPy's own files. An npy, and a large npz without compression, are mapped and read by slabs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.io.format import (
    FIELD,
    MARKS,
    SEEN,
    Format,
    Found,
    choose_array,
    metadata_of,
    reading,
    slab_frames,
    stored_dtype,
)
from doublewell.io.gaps import mask_blocks, slabs_with_gaps
from doublewell.io.mapped import MappedArray
from doublewell.io.memory import check_memory
from doublewell.record import Record

__all__ = ["NPY", "NPZ"]

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAPPED = 256 * 2**20  # bytes: an array larger than that is mapped, without a look at its checksum
Header = tuple[tuple[int, ...], np.dtype[Any], bool]


def read_npz(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Load the field of an npz file and its metadata; other arrays are not read."""
    _check_file(path, "npz file")
    with reading(path, "npz file"), zipfile.ZipFile(path) as archive:
        headers = _headers(archive)
        if not headers:
            raise InputError(f"{path} is a zip archive without arrays: expected an npz file of numpy.savez")
        small = {name: header for name, header in headers.items() if name in wanted and len(header[0]) < 2}
        field = choose_array(path, {name: header[0] for name, header in headers.items()}, var)
        names = [name for name, (_, dtype, _) in small.items() if not (name in MARKS and dtype.hasobject)]
        metadata = {name: _plain(_load(path, archive, name, headers)) for name in names}
        return Found(_load(path, archive, field, headers), metadata)


def read_npy(path: Path, var: str | None, wanted: frozenset[str]) -> Found:  # noqa: ARG001 (an npy has no metadata)
    """Map the one array of an npy file, which carries no metadata."""
    _check_file(path, "npy file")
    if var is not None:
        raise InputError(f"{path} holds one array without a name: leave out var={var!r}")
    with reading(path, "npy file"):
        with path.open("rb") as file:
            _refuse_objects(path, "the array", _header(file)[1])
        return Found(np.load(path, mmap_mode="r", allow_pickle=False), {})


def write_npz(record: Record, path: Path) -> None:
    """Write a record as an npz file without compression, slab by slab: arrays u, dx, times, q, boundary."""
    with replace_file(path) as temporary, zipfile.ZipFile(temporary, "x", zipfile.ZIP_STORED) as archive:
        for name, value in metadata_of(record).items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
        with archive.open(f"{FIELD}.npy", "w", force_zip64=True) as member:
            _write_field(record, member)
        if record.mask is not None:
            with archive.open(f"{SEEN}.npy", "w", force_zip64=True) as member:
                _write_mask(record, member)


def _write_field(record: Record, member: Any) -> None:
    dtype = stored_dtype(record)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": record.shape}
    np.lib.format.write_array_header_1_0(member, header)
    for _, slab in slabs_with_gaps(record, slab_frames(record)):
        member.write(np.ascontiguousarray(slab, dtype=dtype).data)


def _write_mask(record: Record, member: Any) -> None:
    header = {"descr": "|b1", "fortran_order": False, "shape": tuple(record.mask.shape)}
    np.lib.format.write_array_header_1_0(member, header)
    for _, block in mask_blocks(record, slab_frames(record)):
        member.write(block.data)


def _headers(archive: zipfile.ZipFile) -> dict[str, Header]:
    """Read name, shape and type of every array, not the arrays."""
    found = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as member:
                found[name.removesuffix(".npy")] = _header(member)
    return found


def _header(file: Any) -> Header:
    shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    return shape, dtype, fortran


def _load(path: Path, archive: zipfile.ZipFile, name: str, headers: Mapping[str, Header]) -> Any:
    shape, dtype, _ = headers[name]
    _refuse_objects(path, f"array {name!r}", dtype)
    size, info = int(np.prod(shape, dtype=object)) * dtype.itemsize, archive.getinfo(f"{name}.npy")
    if size > info.file_size:  # before memory for a size that a damaged header claims is taken
        raise InputError(
            f"{path} is damaged: array {name!r} of shape {shape} needs {size} bytes, the file has "
            f"{info.file_size}; copy the file again"
        )
    if info.compress_type == zipfile.ZIP_STORED and size > _MAPPED:
        return _mapped(path, archive, info, headers[name])
    check_memory(path, size, "save it with numpy.savez, without compression, or as .zarr")
    with archive.open(info) as member:  # reading to the end checks the checksum
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise InputError(f"{path} is damaged: array {name!r} is longer than its shape {shape}; copy the file again")
    return array


def _mapped(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, header: Header) -> MappedArray:
    """Map an array that lies in the archive without compression."""
    shape, dtype, fortran = header
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)  # the lengths of the name and of the extra field end the local header
        lengths = np.frombuffer(file.read(4), "<u2")
    with archive.open(info) as member:
        _header(member)
        start = info.header_offset + 30 + int(lengths.sum()) + member.tell()
    return MappedArray(path, start, shape, dtype, "F" if fortran else "C")


def _refuse_objects(path: Path, name: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise InputError(
            f"{path}: {name} holds pickled Python objects, which can run any code and are never loaded: "
            "expected plain numbers; save it again as numpy.asarray(values, dtype=float), or leave it out"
        )


def _plain(array: NDArray[Any]) -> Any:
    return array.item() if array.ndim == 0 else array


def _check_file(path: Path, kind: str) -> None:
    with reading(path, kind):
        if path.is_dir():
            raise InputError(f"{path} is a folder: expected an {kind}")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes): expected an {kind}; copy the file again")


NPZ = Format("npz file", (".npz",), read_npz, write_npz, ("zip",))
NPY = Format("npy file", (".npy",), read_npy, contents=("npy",))
