"""MATLAB: .mat files of version 4 to 7 (SciPy, read whole) and 7.3 (HDF5, by slabs); objects are never made.

MATLAB has no convention for the time axis: the order is taken from vectors such as t and x where their lengths tell
it, and asked for otherwise. Axes count in MATLAB's order in both versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.io.formats.hdf5 import open_hdf5, stored_dataset

_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CLASSES = ("double", "single", "logical", *_INTEGERS, "char")
_VECTOR = re.compile(r"(t|x|y|z)\1?|(time|t|x|y|z)(s|_?(vec|span|grid|axis|values?))?", re.IGNORECASE)
_INFLATED = 1100  # times: zlib never packs more closely


def read_mat(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Find the field of a MATLAB file, and in small variables what is wanted of its metadata."""
    arrays = _arrays(path)
    shapes = {name: tuple(n for n in shape if n != 1) for name, shape in arrays.items()}
    name = files.choose_array(path, shapes, var)
    field = _load(path, name, arrays[name])
    small = {key: arrays[key] for key, shape in shapes.items() if len(shape) < 2 and key != name}
    known = {key: np.asarray(_load(path, key, shape)) for key, shape in small.items() if key in wanted}
    metadata = {key: item.item() if item.size == 1 else item.ravel() for key, item in known.items() if item.size}
    metadata = {
        key: item for key, item in metadata.items() if known[key].dtype.kind not in "US" or isinstance(item, str)
    }
    vectors = {key: _load(path, key, small[key]) for key in small if len(shapes[key]) == 1 and _VECTOR.fullmatch(key)}
    return StoredField(field, metadata, _axes(field.shape, metadata, vectors), any_order=True)


def _arrays(path: Path) -> dict[str, tuple[int, ...]]:
    """List the numeric arrays and the texts of a file; objects, cells and structs are left out."""
    from scipy.io import whosmat

    if files.content_of(path) != "HDF5":
        return {name: tuple(shape) for name, shape, kind in whosmat(path) if kind in _CLASSES}
    with open_hdf5(path, first=True) as file:
        arrays = {name: file[name] for name in file if hasattr(file[name], "shape")}
        return {name: tuple(array.shape[::-1]) for name, array in arrays.items() if _matlab_class(array) in _CLASSES}


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


def _axes(
    shape: tuple[int, ...], metadata: Mapping[str, Any], vectors: Mapping[str, NDArray[Any]]
) -> tuple[Axis, ...] | None:
    """Name axes by vectors whose lengths fit only one axis each; None where that does not name time."""
    lines = {key[0].lower(): np.ravel(values) for key, values in vectors.items()}
    if np.ndim(metadata.get("times", 0.0)) == 1:
        lines["t"] = metadata["times"]
    names = []
    for n in shape:
        fits = [name for name, points in lines.items() if len(points) == n]
        names.append(fits[0] if len(fits) == 1 and shape.count(n) == 1 and n > 1 else "")
    if "t" not in names or len(set(names) - {""}) < sum(name != "" for name in names):
        return None
    rest = [name or ("c" if n == 1 else f"axis {i}") for i, (n, name) in enumerate(zip(shape, names, strict=True))]
    return tuple(Axis(name, points=lines.get(name)) for name in rest)
