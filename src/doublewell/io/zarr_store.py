"""zarr: a record in a folder, read and written slab by slab, so that it may be larger than memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.atomic import replace_folder
from doublewell.errors import InputError
from doublewell.io.blosc import is_blosc, is_sound
from doublewell.io.coordinates import axes_with_coordinates, axis_names
from doublewell.io.format import (
    FIELD,
    SEEN,
    Axis,
    Format,
    Found,
    choose_array,
    chunk_shape,
    metadata_of,
    reading,
    slab_frames,
    stored_dtype,
)
from doublewell.io.gaps import mask_blocks, slabs_with_gaps
from doublewell.io.ngff import NgffImage, ngff_image
from doublewell.io.packing import unpacked
from doublewell.io.view import Index, places, ranges
from doublewell.record import Record

__all__ = ["ZARR", "StoredField", "is_store"]

_KIND = "zarr store"
_MARKERS = ("zarr.json", ".zarray", ".zgroup")
_OBJECTS = (
    "{path}: {name} holds pickled Python objects, which can run any code and are never loaded: expected plain "
    "numbers; write the array again as floats, or name another one with var="
)


class StoredField:
    """A zarr array read by ranges that never stands in for values that are not there.

    zarr gives the fill value for a chunk that is missing, so a copy that was cut short or a simulation that stopped
    would read as a field of zeros. Here a missing chunk raises. A finite fill value other than 0 was chosen by the
    writer (a pure phase, say) and is given. The array itself is ``array``.
    """

    def __init__(self, array: Any, path: Path) -> None:
        self.array, self.path = array, path
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype, self.ndim = np.dtype(array.dtype), len(array.shape)
        self.chunks: tuple[int, ...] = tuple(array.chunks)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        parts = ranges(index, self.shape)
        with reading(self.path, _KIND):
            self._check_chunks(parts)
            return np.asarray(self.array[parts])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def _check_chunks(self, parts: tuple[slice, ...]) -> None:
        chosen, blosc = _deliberate(self.array.fill_value), is_blosc(self.array)
        for place in self._places(parts) if blosc or not chosen else ():
            key = self.array.metadata.encode_chunk_key(place)
            file = self.path / self.array.path / key
            if not file.is_file() and not chosen:
                raise InputError(self._missing(key, place[0]))
            if blosc and file.is_file() and not is_sound(file):
                raise InputError(f"{self.path} is damaged: chunk {key} is cut short or changed; copy the store again")

    def _places(self, parts: tuple[slice, ...]) -> Iterator[tuple[int, ...]]:
        """The grid positions of the stored chunks (shards, where chunks are sharded) that a block touches."""
        sizes = self.array.shards or self.array.chunks
        return places([range(p.start // size, -(-p.stop // size)) for p, size in zip(parts, sizes, strict=True)])

    def _missing(self, key: str, row: int) -> str:
        frames = (self.array.shards or self.array.chunks)[0]
        first, last = row * frames, min((row + 1) * frames, self.shape[0]) - 1
        return (
            f"{self.path}: chunk {key} of {_named(self.array)} is missing, frames {first} to {last}; zarr would give "
            f"{self.array.fill_value} there. Copy the store again, cut the record before frame {first}, or, where "
            "the fill value is meant, write the array again with write_empty_chunks=True"
        )


def read_zarr(path: Path, var: str | None, wanted: frozenset[str]) -> Found:
    """Open a zarr array, or the field of a zarr group; only metadata are read."""
    if not path.is_dir():
        raise InputError(f"{path} is a file: expected a {_KIND}, which is a folder")
    if not is_store(path):
        raise InputError(
            f"{path} is a folder without zarr metadata (zarr.json, .zarray or .zgroup): expected a {_KIND}"
        )
    import zarr

    with reading(path, _KIND):
        _refuse_pickles(path, "the array")
        node = zarr.open(str(path), mode="r")
        if isinstance(node, zarr.Array):
            axes = _axes(path, None, node, wanted)
            return Found(_field(path, node, var), _pick(node.attrs, wanted), axes)
        image = ngff_image(path, dict(node.attrs))
        if image is not None:
            return _image(path, node, image, var, wanted)
        return _group(path, node, var, wanted)


def _group(path: Path, node: Any, var: str | None, wanted: frozenset[str]) -> Found:
    """Find the field of a group that is no image, with its metadata as attributes or arrays, and coordinates."""
    arrays = _members(path, node, var)
    name = choose_array(path, {name: tuple(array.shape) for name, array in arrays.items()}, var)
    small = _open(path, node, [name for name in sorted(wanted) if is_store(path / name)])
    found = {name: _small(path, array) for name, array in small.items() if array.ndim < 2}
    metadata = found | _pick(node.attrs, wanted) | _pick(arrays[name].attrs, wanted)
    missing = wanted - set(metadata) - ({"times", "dt"} if {"times", "dt"} & set(metadata) else set())
    return Found(_field(path, arrays[name], None), metadata, _axes(path, node, arrays[name], missing))


def _image(path: Path, node: Any, image: NgffImage, var: str | None, wanted: frozenset[str]) -> Found:
    """Find one channel of an OME-Zarr image."""
    array = _open(path, node, [image.array]).get(image.array) if is_store(path / image.array) else None
    if array is None:
        raise InputError(f"{path}: the array {image.array!r} of the image is missing; copy the store again")
    if array.ndim != len(image.axes):
        raise InputError(
            f"{path} is damaged: its image has shape {array.shape} and {len(image.axes)} axes; copy it again"
        )
    chosen = image.chosen(path, array.shape, var)
    return Found(_field(path, array, None), _pick(node.attrs, wanted), image.axes, chosen)


def write_zarr(record: Record, path: Path) -> None:
    """Write a record as a zarr group: the array u, chunk by chunk, and the metadata as attributes.

    Every chunk is written and the fill value is NaN, so that a lost chunk cannot pass for data; the compressor's
    checksum finds a damaged one.
    """
    import zarr
    from zarr.codecs import ZstdCodec

    dtype = stored_dtype(record)
    chunks = chunk_shape(record.shape, dtype.itemsize)
    with replace_folder(path, replaceable=is_store) as temporary:
        group = zarr.create_group(str(temporary), attributes=_attributes(record))
        field = group.create_array(
            FIELD,
            shape=record.shape,
            dtype=dtype,
            chunks=chunks,
            compressors=ZstdCodec(checksum=True),
            fill_value=np.nan,
            config={"write_empty_chunks": True},
        )
        for start, slab in slabs_with_gaps(record, slab_frames(record, chunks[0])):
            field[start : start + len(slab)] = slab.astype(dtype, copy=False)
        if record.mask is not None:
            _write_mask(record, group, chunks)


def _write_mask(record: Record, group: Any, chunks: tuple[int, ...]) -> None:
    from zarr.codecs import ZstdCodec

    shape = tuple(int(n) for n in record.mask.shape)
    mask = group.create_array(
        SEEN,
        shape=shape,
        dtype=bool,
        chunks=tuple(min(n, size) for n, size in zip(shape, chunks, strict=True)),
        compressors=ZstdCodec(checksum=True),
        config={"write_empty_chunks": True},
    )
    for start, block in mask_blocks(record, slab_frames(record, chunks[0])):
        mask[start : start + len(block)] = block


def is_store(path: Path) -> bool:
    """Tell whether a folder holds zarr metadata."""
    return any((path / name).is_file() for name in _MARKERS)


def _attributes(record: Record) -> dict[str, Any]:
    """Metadata as JSON values; Python writes floats so that they are read back to the last bit."""
    found = metadata_of(record)
    return found | {"dx": list(record.dx), "times": record.times.tolist()}


def _members(path: Path, group: Any, var: str | None) -> dict[str, Any]:
    """Open the arrays that can be the field: the one that is named, or u, or else all."""
    first = _open(path, group, [var or FIELD] if is_store(path / (var or FIELD)) else [])
    if any(var is not None or 2 <= array.ndim <= 4 for array in first.values()):
        return first
    return _open(path, group, sorted(item.name for item in path.iterdir() if is_store(item)))


def _open(path: Path, group: Any, names: list[str]) -> dict[str, Any]:
    """Open arrays by name, leaving out groups; what is not asked for may be damaged without harm."""
    for name in names:
        _refuse_pickles(path, f"array {name!r}", name)
    return {name: group[name] for name in names if hasattr(group[name], "shape")}


def _field(path: Path, array: Any, var: str | None) -> Any:
    if var is not None:
        raise InputError(f"{path} holds one array without a name: leave out var={var!r}")
    if np.dtype(array.dtype).hasobject:
        raise InputError(_OBJECTS.format(path=path, name=_named(array)))
    return unpacked(StoredField(array, path), array.attrs)


def _axes(path: Path, group: Any, field: Any, wanted: frozenset[str]) -> tuple[Axis, ...] | None:
    """Return the axes of an array that names them, with the arrays of the same names as coordinates."""
    names = axis_names(field)

    def read(name: str) -> tuple[NDArray[Any], Any] | None:
        inside = group is not None and Path(name).name == name and is_store(path / name)
        array = _open(path, group, [name]).get(name) if inside else None
        # a chunk that is missing here gives zeros, which are no coordinates and are refused
        fits = array is not None and array.ndim == 1 and array.shape[0] <= max(field.shape)
        return (np.asarray(array[:]), array.attrs) if array is not None and fits else None

    return None if names is None else axes_with_coordinates(names, read, wanted)


def _pick(attributes: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, Any]:
    return {name: attributes[name] for name in wanted if name in attributes}


def _small(path: Path, array: Any) -> Any:
    """Read a number or a list that stands as an array where an attribute would do."""
    return array[()].item() if array.ndim == 0 else StoredField(array, path)[:]


def _refuse_pickles(path: Path, name: str, member: str = "") -> None:
    """Refuse an array whose chunks pass through pickle, before any library looks at it."""
    for file in (path / member / ".zarray", path / member / "zarr.json"):
        metadata = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        steps = [metadata.get(step) for step in ("filters", "compressor", "codecs")]
        if "pickle" in str(steps):
            raise InputError(_OBJECTS.format(path=path, name=name))


def _deliberate(fill: Any) -> bool:
    return fill is not None and isfinite(fill) and fill != 0


def _named(array: Any) -> str:
    return f"array {array.path!r}" if array.path else "the array"


ZARR = Format("zarr store", (".zarr",), read_zarr, write_zarr)
