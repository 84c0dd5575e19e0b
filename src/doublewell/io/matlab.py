"""MATLAB: .mat files of version 5 (SciPy, read whole) and 7.3 (HDF5, by slabs); objects and functions are never made.

MATLAB has no custom for the place of time among the axes: the order is taken from vectors such as t and x where their
lengths tell it, and asked for otherwise. Axes count in MATLAB's order in both versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.content import content_of
from doublewell.io.format import Axis, Format, Found, choose_array, reading
from doublewell.io.hdf5 import StoredDataset, open_first, open_hdf5
from doublewell.io.memory import check_memory
from doublewell.io.view import View

__all__ = ["MATLAB", "read_mat"]

_KIND = "MATLAB file"
_WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_NUMERIC = ("double", "single", "logical", *_WHOLE)
_VECTOR = re.compile(r"(t|x|y|z)\1?|(time|t|x|y|z)(s|_?(vec|span|grid|axis|values?))?", re.IGNORECASE)
_INFLATED = 1100  # times: zlib never packs more closely


def read_mat(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Find the field of a MATLAB file, and in small variables what is wanted of its metadata."""
    with reading(path, _KIND):
        if path.is_dir():
            raise InputError(f"{path} is a folder: expected a {_KIND}")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty (0 bytes): expected a {_KIND}; copy the file again")
        arrays = _hdf5_arrays(path) if content_of(path) == "HDF5" else _arrays(path)
        shapes = {name: tuple(n for n in shape if n != 1) for name, shape in arrays.items()}
        name = choose_array(path, shapes, var)
        field = _load(path, name, arrays)
        small = [key for key, shape in shapes.items() if len(shape) < 2 and key != name]
        texts = {key: _value(_load(path, key, arrays)) for key in small if key in wanted}
        metadata = {key: value for key, value in texts.items() if value is not None}
        vectors = {key: _load(path, key, arrays) for key in small if len(shapes[key]) == 1 and _VECTOR.fullmatch(key)}
        return Found(field, metadata, _axes(field.shape, metadata, vectors), any_order=True)


def _arrays(path: Path) -> dict[str, tuple[int, ...]]:
    """List the numeric arrays and the texts of a version 4 or 5 file; objects, cells and structs are left out."""
    from scipy.io import whosmat

    return {name: tuple(shape) for name, shape, kind in whosmat(path) if kind in (*_NUMERIC, "char")}


def _hdf5_arrays(path: Path) -> dict[str, tuple[int, ...]]:
    with open_first(path) as file:
        kinds = {name: _matlab_class(file, name) for name in file if hasattr(file[name], "shape")}
        return {name: tuple(file[name].shape[::-1]) for name, kind in kinds.items() if kind in (*_NUMERIC, "char")}


def _matlab_class(file: Any, name: str) -> str:
    kind = file[name].attrs.get("MATLAB_class", b"")
    empty = file[name].attrs.get("MATLAB_empty", 0)
    return "" if empty else kind.decode("latin1") if isinstance(kind, bytes) else str(kind)


def _load(path: Path, name: str, arrays: Mapping[str, tuple[int, ...]]) -> Any:
    """Return an array: read of version 5, to be read of version 7.3 where it is no vector."""
    if content_of(path) != "HDF5":
        return _load_whole(path, name, arrays[name])
    with open_hdf5(path) as file:
        dataset = file[name]
        if _matlab_class(file, name) == "char":  # characters are stored as numbers
            return np.array(bytes(dataset[()].astype("<u2").tobytes("F")).decode("utf-16-le", "replace"))
        stored = StoredDataset(path, name, dataset.shape, dataset.dtype)
    turned = View(stored, range(stored.ndim)[::-1], {})
    return turned if sum(n != 1 for n in turned.shape) > 1 else np.asarray(turned)


def _load_whole(path: Path, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    from scipy.io import loadmat

    size = int(np.prod(shape, dtype=object))
    if size > _INFLATED * path.stat().st_size:  # before memory for a size that a damaged file claims is taken
        raise InputError(f"{path} is damaged: array {name!r} has shape {shape}; copy the file again")
    check_memory(path, 8 * size, "save it in MATLAB with -v7.3")
    loaded = loadmat(path, variable_names=[name], mat_dtype=False, verify_compressed_data_integrity=True)
    array: NDArray[Any] = np.asarray(loaded[name])
    if array.dtype.hasobject:
        raise InputError(f"{path}: {name!r} holds MATLAB objects, which are never made: expected an array of numbers")
    return array


def _value(array: Any) -> Any:
    """A text, a number or a vector as metadata have them."""
    values = np.asarray(array)
    if values.dtype.kind in "US":
        return str(values.ravel()[0]) if values.size == 1 else None
    return values.item() if values.size == 1 else values.ravel() if values.size else None


def _axes(
    shape: tuple[int, ...], metadata: Mapping[str, Any], vectors: Mapping[str, NDArray[Any]]
) -> tuple[Axis, ...] | None:
    """Name axes by vectors whose lengths fit only one axis each; None where that does not name time."""
    lines = {key[0].lower(): np.ravel(values) for key, values in vectors.items()}
    if np.ndim(metadata.get("times", 0.0)) == 1:
        lines["t"] = metadata["times"]
    names = [_fitting(n, shape, lines) for n in shape]
    if "t" not in names or len(set(names) - {""}) < sum(name != "" for name in names):
        return None
    rest = [name or ("c" if n == 1 else f"axis {i}") for i, (n, name) in enumerate(zip(shape, names, strict=True))]
    return tuple(Axis(name, points=lines.get(name)) for name in rest)


def _fitting(length: int, shape: tuple[int, ...], lines: Mapping[str, NDArray[Any]]) -> str:
    fits = [name for name, points in lines.items() if len(points) == length]
    return fits[0] if len(fits) == 1 and shape.count(length) == 1 and length > 1 else ""


MATLAB = Format("MATLAB file", (".mat",), read_mat, contents=("MATLAB 5", "HDF5"))
