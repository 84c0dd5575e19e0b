"""Container: a file of named arrays with attributes; what HDF5 and netCDF share once they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.io.coordinates import Read, axes_with_coordinates
from doublewell.io.format import Axis, Found, choose_array
from doublewell.io.packing import unpacked

__all__ = ["Member", "find_field"]

_NUMBERS = "biufc"


@dataclass(frozen=True)
class Member:
    """One array of a container, not yet read: its attributes, the names of its axes, the attributes of its groups."""

    values: Any
    attributes: Mapping[str, Any]
    names: tuple[str, ...] | None = None
    groups: tuple[Mapping[str, Any], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(int(n) for n in self.values.shape)


def find_field(
    path: Path, members: Mapping[str, Member], attributes: Mapping[str, Any], var: str | None, wanted: frozenset[str]
) -> Found:
    """Choose the field among arrays, with its metadata: of attributes, of small arrays, and of coordinates.

    The attributes of the array come before those of its group and of the file, and these before small arrays.
    """
    numeric = {name: member.shape for name, member in members.items() if member.values.dtype.kind in _NUMBERS}
    name = choose_array(path, numeric, var)
    field, folder = members[name], PurePosixPath(name).parent
    metadata = {key: value for key in sorted(wanted) if (value := _small(members, folder, key)) is not None}
    for source in (attributes, *field.groups, field.attributes):
        metadata |= {key: source[key] for key in wanted if key in source}
    axes = _axes(members, folder, field, wanted)
    return Found(unpacked(field.values, field.attributes), metadata, axes)


def _axes(
    members: Mapping[str, Member], folder: PurePosixPath, field: Member, wanted: frozenset[str]
) -> tuple[Axis, ...] | None:
    if field.names is None:
        return None

    def read(name: str) -> tuple[NDArray[Any], Mapping[str, Any]] | None:
        found = _nearest(members, folder, name)
        if found is None or len(found.shape) != 1 or found.shape[0] not in field.shape:
            return None
        return np.asarray(unpacked(found.values, found.attributes)[:]), found.attributes

    reader: Read = read
    return axes_with_coordinates(field.names, reader, wanted)


def _small(members: Mapping[str, Member], folder: PurePosixPath, name: str) -> Any:
    """Return a number, a list or a text that stands as an array where an attribute would do."""
    found = _nearest(members, folder, name)
    if found is None or len(found.shape) > 1 or found.values.dtype.kind not in "iufUSO":
        return None
    values = np.asarray(found.values[:] if found.shape else found.values[()])
    if values.dtype.kind in "SO":
        texts = [
            item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in values.ravel().tolist()
        ]
        return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else None
    return values.item() if values.ndim == 0 else values


def _nearest(members: Mapping[str, Member], folder: PurePosixPath, name: str) -> Member | None:
    """The array of a name in the group of the field, or in one above it."""
    for place in (folder, *folder.parents):
        found = members.get((place / name).as_posix())
        if found is not None:
            return found
    return None
