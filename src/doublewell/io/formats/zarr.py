"""zarr: a record in a folder, read and written slab by slab, so that it may be larger than memory; OME-Zarr too."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.atomic import replace_folder
from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.axes import axes_with_coordinates
from doublewell.io.format import FIELD, SEEN, Axis, Outgoing, StoredField
from doublewell.record import LazyArray, Record
from doublewell.record.arrays import Block, Values
from doublewell.units import unit_name

_MARKERS = ("zarr.json", ".zarray", ".zgroup")
_BLOSC = struct.Struct("<BBBBIII")  # versions, flags, bytes per number; bytes unpacked, in a block, packed


def read_zarr(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
    """Open a zarr array, or the field of a zarr group, with metadata as attributes or arrays; only these are read."""
    if not path.is_dir():
        raise InputError(f"{path} is a file: expected a zarr store, which is a folder")
    if not is_store(path):
        raise InputError(
            f"{path} is a folder without zarr metadata (zarr.json, .zarray or .zgroup): expected a zarr store"
        )
    import zarr

    _refuse_pickles(path, "the array")
    node = zarr.open(str(path), mode="r")
    if isinstance(node, zarr.Array):
        files.refuse_name(path, var)
        return StoredField(_field(path, node), _pick(node.attrs, wanted), _axes(path, None, node, wanted))
    attributes = dict(node.attrs)
    description = attributes.get("ome", attributes)  # version 0.5 has the description of an image below "ome"
    if isinstance(description, dict) and isinstance(description.get("multiscales"), list):
        return _image(path, node, description, var, wanted)
    arrays = _members(path, node, var)
    name = files.choose_array(path, {name: tuple(array.shape) for name, array in arrays.items()}, var)
    small = {key: array for key, array in _open(path, node, sorted(wanted)).items() if array.ndim < 2}
    metadata = {key: array[()].item() if array.ndim == 0 else _stored(path, array)[:] for key, array in small.items()}
    metadata |= _pick(node.attrs, wanted) | _pick(arrays[name].attrs, wanted)
    missing = wanted - set(metadata) - ({"times", "dt"} if {"times", "dt"} & set(metadata) else set())
    return StoredField(_field(path, arrays[name]), metadata, _axes(path, node, arrays[name], missing))


def write_zarr(record: Record, path: Path) -> None:
    """Write a record as a zarr group: the array u, chunk by chunk, and the metadata as attributes.

    Every chunk is written and the fill value is NaN, so that a lost chunk cannot pass for data; the compressor's
    checksum finds a damaged one. Python writes the floats of attributes so that they are read back to the last bit.
    """
    import zarr
    from zarr.codecs import ZstdCodec

    out, kept = Outgoing(record), {"compressors": ZstdCodec(checksum=True), "config": {"write_empty_chunks": True}}
    attributes = out.metadata | {"dx": list(record.dx), "times": record.times.tolist()}
    with replace_folder(path, replaceable=is_store) as temporary:
        group = zarr.create_group(str(temporary), attributes=attributes)
        shapes = {"shape": record.shape, "chunks": out.chunks}
        field = group.create_array(FIELD, dtype=out.dtype, fill_value=np.nan, **shapes, **kept)
        for start, slab in out.slabs():
            field[start : start + len(slab)] = slab
        if record.mask is not None:
            shape = tuple(int(n) for n in record.mask.shape)
            parts = tuple(min(n, chunk) for n, chunk in zip(shape, out.chunks, strict=True))
            mask = group.create_array(SEEN, dtype=bool, shape=shape, chunks=parts, **kept)
            for start, block in out.mask_blocks():
                mask[start : start + len(block)] = block


def is_store(path: Path) -> bool:
    """Tell whether a folder holds zarr metadata."""
    return any((path / name).is_file() for name in _MARKERS)


def _read_chunks(array: Any, path: Path, block: Block) -> Values:
    """Read a block, and refuse to stand in for values that are not there.

    zarr gives the fill value for a chunk that is missing, so a copy that was cut short or a simulation that stopped
    would read as a field of zeros. Here a missing chunk raises. A finite fill value other than 0 was chosen by the
    writer (a pure phase, say) and is given. The library trusts the header of a chunk packed by Blosc, and crashes.
    """
    fill, sizes = array.fill_value, array.shards or array.chunks
    chosen = fill is not None and np.isfinite(fill) and fill != 0
    blosc = array.shards is None and any("blosc" in type(codec).__name__.lower() for codec in array.compressors)
    with files.reading(path, "zarr"):
        for position in files.touched_chunks(block, sizes) if blosc or not chosen else ():
            key = array.metadata.encode_chunk_key(position)
            file = path / array.path / key
            if not file.is_file() and not chosen:
                first = position[0] * sizes[0]
                last = min(first + sizes[0], array.shape[0]) - 1
                raise InputError(
                    f"{path}: chunk {key} of {_named(array)} is missing, frames {first} to {last}; zarr would give "
                    f"{fill} there. Copy the store again, cut the record before frame {first}, or, where the fill "
                    "value is meant, write the array again with write_empty_chunks=True"
                )
            if blosc and file.is_file() and not _is_sound(file):
                raise InputError(f"{path} is damaged: chunk {key} is cut short or changed; copy the store again")
        return np.asarray(array[block])


def _is_sound(file: Path) -> bool:
    """Tell whether the header of a chunk packed by Blosc fits the file."""
    with file.open("rb") as content:
        head = content.read(_BLOSC.size)
    _, _, _, size, whole, block, packed = _BLOSC.unpack(head.ljust(_BLOSC.size, b"\0"))
    return bool(packed == file.stat().st_size and size > 0 and 0 < block <= max(whole, 1))


def _stored(path: Path, array: Any) -> LazyArray:
    shape, chunks = tuple(array.shape), tuple(array.chunks)
    return LazyArray(partial(_read_chunks, array, path), shape, np.dtype(array.dtype), chunks=chunks, files=(path,))


def _field(path: Path, array: Any) -> Any:
    if np.dtype(array.dtype).hasobject:
        raise files.pickled(path, _named(array))
    return files.unpacked(_stored(path, array), array.attrs)


def _members(path: Path, group: Any, var: str | None) -> dict[str, Any]:
    """Open the arrays that can be the field: the one that is named, or u, or else all."""
    first = _open(path, group, [var or FIELD])
    if any(var is not None or 2 <= array.ndim <= 4 for array in first.values()):
        return first
    return _open(path, group, sorted(item.name for item in path.iterdir()))


def _open(path: Path, group: Any, names: list[str]) -> dict[str, Any]:
    """Open those of the names that are arrays; what is not asked for may be damaged without harm."""
    stores = [name for name in names if is_store(path / name)]
    for name in stores:
        _refuse_pickles(path, f"array {name!r}", name)
    return {name: group[name] for name in stores if hasattr(group[name], "shape")}


def _axes(path: Path, group: Any, field: Any, wanted: frozenset[str]) -> tuple[Axis, ...] | None:
    """Return the axes of an array that names them (version 2 or 3), with the arrays of these names as coordinates."""
    names = getattr(field.metadata, "dimension_names", None) or field.attrs.get("_ARRAY_DIMENSIONS")
    if not isinstance(names, list | tuple) or len(names) != field.ndim or not all(isinstance(n, str) for n in names):
        return None

    def read(name: str) -> tuple[NDArray[Any], Any] | None:
        inside = group is not None and Path(name).name == name
        array = _open(path, group, [name]).get(name) if inside else None
        # a chunk that is missing here gives zeros, which are not coordinates and are refused
        fits = array is not None and array.ndim == 1 and array.shape[0] <= max(field.shape)
        return (np.asarray(array[:]), array.attrs) if array is not None and fits else None

    return axes_with_coordinates(names, read, wanted)


def _image(
    path: Path, node: Any, description: Mapping[str, Any], var: str | None, wanted: frozenset[str]
) -> StoredField:
    """Find one channel of an OME-Zarr image (NGFF 0.3 to 0.5): its finest array, with axes, scales and units.

    An axis without a unit and with scale 1 is taken as not calibrated.
    """
    if not description["multiscales"]:
        raise InputError(f"{path} is damaged: its list of images (multiscales) is empty; copy the store again")
    image = description["multiscales"][0]
    finest = image["datasets"][0]
    name, count = str(finest["path"]), len(image["axes"])
    if not name or not set(name.split("/")).isdisjoint({"", ".", ".."}) or "\0" in name:
        raise InputError(f"{path} is damaged: its image lies at {name[:40]!r}; copy the store again")
    array = _open(path, node, [name]).get(name)
    if array is None:
        raise InputError(f"{path}: the array {name!r} of the image is missing; copy the store again")
    if array.ndim != count:
        raise InputError(f"{path} is damaged: its image has shape {array.shape} and {count} axes; copy it again")
    scale = np.ones(count)
    for step in (*finest.get("coordinateTransformations", []), *image.get("coordinateTransformations", [])):
        if step.get("type") == "scale" and "scale" in step:
            scale = np.multiply(scale, [float(n) for n in step["scale"]])
    axes = tuple(_image_axis(item, float(step)) for item, step in zip(image["axes"], scale, strict=True))
    omero = description.get("omero", {})
    listed = omero.get("channels", []) if isinstance(omero, dict) else []
    labels = [str(item.get("label", number)) for number, item in enumerate(listed) if isinstance(item, dict)]
    channel = next((number for number, axis in enumerate(axes) if axis.name == "c"), -1)
    chosen = files.choose_channel(path, channel, array.shape, labels, var)
    return StoredField(_field(path, array), _pick(node.attrs, wanted), axes, chosen)


def _image_axis(item: Any, step: float) -> Axis:
    description = item if isinstance(item, dict) else {"name": item}  # version 0.3 has names alone
    name, unit = str(description["name"]), unit_name(description.get("unit"))
    kind = {"time": "t", "channel": "c"}.get(str(description.get("type")), name)
    known = isfinite(step) and step > 0 and (unit is not None or step != 1.0)
    return Axis(kind, step=step if known and kind != "c" else None, unit=unit if known else None)


def _pick(attributes: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, Any]:
    return {name: attributes[name] for name in wanted if name in attributes}


def _refuse_pickles(path: Path, name: str, member: str = "") -> None:
    """Refuse an array whose chunks pass through pickle, before any library looks at it."""
    for file in (path / member / ".zarray", path / member / "zarr.json"):
        metadata = json.loads(file.read_text("utf-8")) if file.is_file() else {}
        if "pickle" in str([metadata.get(step) for step in ("filters", "compressor", "codecs")]):
            raise files.pickled(path, name)


def _named(array: Any) -> str:
    return f"array {array.path!r}" if array.path else "the array"
