"""MATLAB: .mat files of version 4 to 7 (SciPy, read whole) and 7.3 (HDF5, by slabs); objects are never made.

MATLAB has no convention for the time axis: the order is taken from vectors such as t and x where their lengths tell
it, and asked for otherwise. Axes count in MATLAB's order in both versions.
"""

from __future__ import annotations

import struct
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.axes import axes_by_vectors, is_coordinate
from doublewell.io.format import Axis, StoredField
from doublewell.io.formats.hdf5 import is_local, open_hdf5, stored_dataset
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CLASSES = ("double", "single", "logical", *_INTEGERS, "char")
_MATRIX, _COMPRESSED, _CELL = 14, 15, 1  # types of elements, and the class of an array of arrays
_NUMBERS = (1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18)  # types of elements that hold numbers or characters
_PLAIN = (_CELL, 4, *range(6, 16))  # classes of arrays: cells, characters, numbers
_FLAGS, _IMAGINARY = 6, 0x800  # the type of flags, and the flag of an array that has imaginary parts
_SHORT = 2**16  # bytes read at once
_PACKED = 20  # times: what numbers are mostly packed by
_INFLATED = 1100  # times: zlib never packs more closely


def read_mat(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find the field of a MATLAB file, and in small variables what is wanted of its metadata."""
    arrays, cells = _arrays(path)
    shapes = {name: tuple(n for n in shape if n != 1) for name, shape in arrays.items()}
    fields = {name: shape for name, shape in shapes.items() if len(shape) > 1 and not is_coordinate(name)}
    frames = [] if fields else [name for name in cells if name == var or (var is None and len(cells) == 1)]
    if frames or var in cells:
        name = frames[0] if frames else str(var)
        field, order = _cell(path, name), "t"
    else:
        grids = {name for name in shapes if fields and is_coordinate(name) and name != var}
        name = files.choose_array(path, {key: shape for key, shape in shapes.items() if key not in grids}, var)
        field, order = _load(path, name, arrays[name]), ""
    small = {key: arrays[key] for key, shape in shapes.items() if len(shape) < 2 and key != name}
    known = {key: np.asarray(_load(path, key, shape)) for key, shape in small.items() if key in wanted}
    metadata = {key: item.item() if item.size == 1 else item.ravel() for key, item in known.items() if item.size}
    metadata = {
        key: item for key, item in metadata.items() if known[key].dtype.kind not in "US" or isinstance(item, str)
    }
    lines = {key: arrays[key] for key, shape in shapes.items() if shape and is_coordinate(key) and key != name}
    vectors = {key: (np.asarray(_load(path, key, shape)), None) for key, shape in lines.items()}
    vectors = {key: (item.ravel() if len(shapes[key]) == 1 else item, unit) for key, (item, unit) in vectors.items()}
    if np.ndim(metadata.get("times", 0.0)) == 1:
        vectors["t"] = metadata["times"], None
    axes = axes_by_vectors(tuple(field.shape), vectors)
    if axes is None and order:
        axes = (Axis("t"), *(Axis(letter) for letter in "zyx"[-(field.ndim - 1) :]))
    notes = (files.chosen_note("array", name, [*fields, *cells]),)
    return StoredField(field, metadata, axes, any_order=True, notes=notes)


def _arrays(path: Path) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """List numeric arrays and texts that are not empty, and the cells; objects and structs are left out."""
    from scipy.io import whosmat

    if files.content_of(path) != "HDF5":
        if files.content_of(path) is not None:
            _check_elements(path)
        listed = [(name, tuple(shape), kind) for name, shape, kind in whosmat(path)]
    else:
        with open_hdf5(path, first=True) as file:
            local = {name: file[name] for name in file if is_local(file, name)}
            listed = [
                (name, tuple(array.shape[::-1]), _matlab_class(array))
                for name, array in local.items() if getattr(array, "shape", None) is not None
            ]  # fmt: skip
    size = path.stat().st_size
    if any(kind == "cell" and int(np.prod(shape, dtype=object)) > _INFLATED * size for _, shape, kind in listed):
        raise InputError(f"{path} is damaged: it claims more cells than it can hold; copy the file again")
    arrays = {name: shape for name, shape, kind in listed if kind in _CLASSES and 0 not in shape}
    return arrays, [name for name, shape, kind in listed if kind == "cell" and int(np.prod(shape, dtype=object)) > 1]


def _check_elements(path: Path, *, numbers: bool = False) -> None:
    """Refuse a file of version 5 whose elements have types or lengths that cannot be: SciPy crashes on these (1.17).

    With `numbers` cells may hold nothing else: structs and sparse arrays in them are not followed here.
    """
    if numbers:
        damaged = InputError(f"{path} has cells that hold more than numbers: save the pictures as one array")
    else:
        damaged = InputError(f"{path} is damaged (an element of an unknown type, or too long): copy the file again")
    with path.open("rb") as file:
        order = {b"IM": "<", b"MI": ">"}.get(file.read(128)[126:], "<")
        size = path.stat().st_size
        while len(tag := file.read(8)) == 8:
            kind, length = struct.unpack(f"{order}II", tag)
            end = file.tell() + length
            if end > size:
                raise damaged
            source = _Inflated(file, length) if kind == _COMPRESSED else file
            if kind == _COMPRESSED:
                kind, length = struct.unpack(f"{order}II", source.read(8).ljust(8, b"\0"))
            if kind == _MATRIX and not _is_sound(source, order, length, 0, numbers=numbers):
                raise damaged
            file.seek(end)


def _is_sound(source: Any, order: str, left: int, depth: int, *, numbers: bool) -> bool:
    """Follow the parts of an array: flags, shape, name, and numbers or the arrays in its cells; others are skipped."""
    if not left:
        return True  # an empty array
    count, kind, parts = 0, -1, 1
    while left >= 8:
        first, second = struct.unpack(f"{order}II", source.read(8).ljust(8, b"\0"))
        part, small = first & 0xFFFF, bool(first >> 16)  # of at most four bytes, in the tag itself
        size = first >> 16 if small else second
        body = 0 if small else size + -size % 8
        if (size > 4 if small else body > left - 8) or (count == 0 and (part, size, small) != (_FLAGS, 8, False)):
            return False
        if count == 0:
            flags = struct.unpack(f"{order}II", source.read(8).ljust(8, b"\0"))[0]
            kind = flags & 0xFF
            if kind not in _PLAIN:
                source.seek(left - 16, 1)
                return not (numbers and depth)
            parts = 3 + (kind != _CELL) + bool(flags & _IMAGINARY and kind != _CELL)
        elif count > 2 and kind == _CELL:
            if part != _MATRIX or depth > 2 or not _is_sound(source, order, size, depth + 1, numbers=numbers):
                return False
        elif part not in _NUMBERS:
            return False
        else:
            source.seek(body, 1)
        left, count = left - 8 - body, count + 1
    source.seek(left, 1)
    return count >= parts


class _Inflated:
    """The bytes of a compressed element, unpacked as far as they are read."""

    def __init__(self, file: Any, length: int) -> None:
        self.file, self.left, self.inflate, self.rest = file, length, zlib.decompressobj(), b""

    def read(self, count: int) -> bytes:
        while len(self.rest) < count and not self.inflate.eof:
            packed = self.inflate.unconsumed_tail or self.file.read(min(self.left, _SHORT))
            self.left -= 0 if self.inflate.unconsumed_tail else len(packed)
            if not packed:
                break
            self.rest += self.inflate.decompress(packed, _SHORT)
        found, self.rest = self.rest[:count], self.rest[count:]
        return found

    def seek(self, count: int, whence: int) -> None:  # noqa: ARG002  always from here
        while count > 0 and (found := self.read(min(count, _SHORT))):
            count -= len(found)


def _cell(path: Path, name: str) -> Any:
    """Return the pictures in the cells of an array, one for each time, as one array with time first."""
    from scipy.io import loadmat

    wrong = f"{path}: the cells of {name!r} hold no numbers of one shape: expected one picture for each time"
    if files.content_of(path) == "HDF5":
        with open_hdf5(path) as file:
            targets = [file[reference] for reference in np.ravel(file[name][()], order="F")]
            kinds = {(getattr(item, "shape", None), str(getattr(item, "dtype", ""))) for item in targets}
            if len(kinds) != 1 or _matlab_class(targets[0]) not in (*_INTEGERS, "double", "single", "logical"):
                raise InputError(wrong)
            parts = [stored_dataset(path, item) for item in targets]
        order = tuple(range(parts[0].ndim))[::-1]
        turned = [part.transpose(order) for part in parts]
        read = partial(_stacked, tuple(turned))
        return LazyArray(read, (len(turned), *turned[0].shape), turned[0].dtype, files=(path,))
    _check_elements(path, numbers=True)
    files.check_memory(path, _PACKED * path.stat().st_size, "save it in MATLAB with -v7.3")
    loaded = np.ravel(loadmat(path, variable_names=[name], verify_compressed_data_integrity=True)[name], order="F")
    pictures = [np.asarray(item) for item in loaded]
    if len({(item.shape, item.dtype.str) for item in pictures}) != 1 or pictures[0].dtype.kind not in "biufc":
        raise InputError(wrong)
    return np.stack(pictures)


def _stacked(parts: tuple[Any, ...], block: Block) -> Values:
    frames, *cells = block
    return np.stack([np.asarray(part[tuple(cells)]) for part in parts[frames]])


def _matlab_class(array: Any) -> str:
    kind = b"" if array.attrs.get("MATLAB_empty", 0) else array.attrs.get("MATLAB_class", b"")
    return kind.decode("latin1") if isinstance(kind, bytes) else str(kind)


def _load(path: Path, name: str, shape: tuple[int, ...]) -> Any:
    """Return an array; one of version 7.3 with two axes or more is read when it is sliced."""
    from scipy.io import loadmat

    if files.content_of(path) == "HDF5":
        with open_hdf5(path) as file:
            if _matlab_class(file[name]) == "char":  # characters are stored as numbers
                return np.array(bytes(file[name][()].astype("<u2").tobytes("F")).decode("utf-16-le", "replace"))
            stored = stored_dataset(path, file[name])
        turned = stored.transpose(range(stored.ndim)[::-1])
        return turned if sum(n != 1 for n in turned.shape) > 1 else np.asarray(turned)
    size = int(np.prod(shape, dtype=object))
    if size > _INFLATED * path.stat().st_size:  # before memory for a size that a damaged file claims is taken
        raise InputError(f"{path} is damaged: array {name!r} has shape {shape}; copy the file again")
    files.check_memory(path, 8 * size, "save it in MATLAB with -v7.3")
    loaded = loadmat(path, variable_names=[name], mat_dtype=False, verify_compressed_data_integrity=True)
    if np.asarray(loaded[name]).dtype.hasobject:
        raise InputError(f"{path}: {name!r} holds MATLAB objects, which are never made: expected an array of numbers")
    return np.asarray(loaded[name])
