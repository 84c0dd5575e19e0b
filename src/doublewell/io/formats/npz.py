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
from doublewell.io import format as files
from doublewell.io.format import FIELD, MARKS, SEEN, Outgoing, StoredField
from doublewell.record import Record

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAPPED = 256 * 2**20  # bytes: an array larger than that is mapped, without a look at its checksum
Header = tuple[tuple[int, ...], np.dtype[Any], bool]  # shape, type, whether in Fortran's order


def read_npz(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Load the field of an npz file and its metadata; other arrays are not read."""
    with zipfile.ZipFile(path) as archive:
        headers = {}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    headers[name.removesuffix(".npy")] = _header(member)
        if not headers:
            raise InputError(f"{path} is a zip archive without arrays: expected an npz file of numpy.savez")
        field = files.choose_array(path, {name: header[0] for name, header in headers.items()}, var)
        small = {name: dtype for name, (shape, dtype, _) in headers.items() if name in wanted and len(shape) < 2}
        names = [name for name, dtype in small.items() if not (name in MARKS and dtype.hasobject)]
        arrays = {name: _load(path, archive, name, headers) for name in names}
        metadata = {name: array.item() if array.ndim == 0 else array for name, array in arrays.items()}
        return StoredField(_load(path, archive, field, headers), metadata)


def read_npy(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (has no metadata)
    """Map the one array of an npy file, which carries no metadata."""
    files.refuse_name(path, var)
    with path.open("rb") as file:
        if _header(file)[1].hasobject:
            raise files.pickled(path, "the array")
    return StoredField(np.load(path, mmap_mode="r", allow_pickle=False), {})


def write_npz(record: Record, path: Path) -> None:
    """Write a record as an npz file without compression, slab by slab: arrays u, dx, times, q, boundary."""
    out = Outgoing(record)
    with replace_file(path) as temporary, zipfile.ZipFile(temporary, "x", zipfile.ZIP_STORED) as archive:
        for name, value in out.metadata.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
        fields: list[Any] = [(FIELD, np.lib.format.dtype_to_descr(out.dtype), record.shape, out.slabs)]
        fields += [] if record.mask is None else [(SEEN, "|b1", tuple(record.mask.shape), out.mask_blocks)]
        for name, kind, shape, blocks in fields:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
                for _, block in blocks():
                    member.write(block.data)


def _header(file: Any) -> Header:
    shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
    return shape, dtype, fortran


def _load(path: Path, archive: zipfile.ZipFile, name: str, headers: Mapping[str, Header]) -> Any:
    shape, dtype, fortran = headers[name]
    if dtype.hasobject:
        raise files.pickled(path, f"array {name!r}")
    size, info = int(np.prod(shape, dtype=object)) * dtype.itemsize, archive.getinfo(f"{name}.npy")
    if size > info.file_size:  # before memory for a size that a damaged header claims is taken
        raise InputError(
            f"{path} is damaged: array {name!r} of shape {shape} needs {size} bytes, the file has "
            f"{info.file_size}; copy the file again"
        )
    if info.compress_type == zipfile.ZIP_STORED and size > _MAPPED:
        with path.open("rb") as file:
            file.seek(info.header_offset + 26)  # the lengths of the name and of the extra field end the local header
            lengths = np.frombuffer(file.read(4), "<u2")
        with archive.open(info) as member:
            _header(member)
            start = info.header_offset + 30 + int(lengths.sum()) + member.tell()
        return files.mapped_array(path, start, shape, dtype, "F" if fortran else "C")
    files.check_memory(path, size, "save it with numpy.savez, without compression, or as .zarr")
    with archive.open(info) as member:  # reading to the end checks the checksum
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise InputError(f"{path} is damaged: array {name!r} is longer than its shape {shape}; copy the file again")
    return array
