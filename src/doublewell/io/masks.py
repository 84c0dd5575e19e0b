"""Masks in files: which values of a field were observed, found beside it."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.io.arrange import Layout, arranged
from doublewell.io.format import Found, as_path, is_own
from doublewell.io.npz import read_npy
from doublewell.io.view import Index

__all__ = ["mask_of"]

_FINITE = "finite"
Read = Callable[[Path, str | None, frozenset[str]], Found]


class Finite:
    """The places of a stored field that hold numbers, looked up when they are read."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape, self.ndim = values, tuple(values.shape), len(values.shape)
        self.dtype = np.dtype(bool)

    def __getitem__(self, index: Index) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(np.asarray(self.values[index])))


class Truth(Finite):
    """A stored mask of 0 and 1 as truth values."""

    def __getitem__(self, index: Index) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(self.values[index]) != 0)


def mask_of(path: Path, mask: Any, field: Found, layout: Layout | None, read: Read) -> Any:
    """Return the mask of a record in its axes: as given, by its name in the file, from an .npy, or "finite"."""
    if mask is None:
        own = field.metadata.get("mask_array")
        return None if own is None or not is_own(field.metadata) else _stored(path, str(own), field, layout, read)
    if not isinstance(mask, str | PathLike):
        return mask
    if mask == _FINITE:
        return Finite(arranged(field.values, layout))
    if str(mask).lower().endswith(".npy"):
        found = read_npy(as_path(mask), None, frozenset())
        return _in_axes(str(mask), found, field, layout)
    return _stored(path, str(mask), field, layout, read)


def _stored(path: Path, name: str, field: Found, layout: Layout | None, read: Read) -> Any:
    try:
        found = read(path, name, frozenset())
    except InputError as error:
        raise InputError(str(error).replace("correct var=", "correct mask=")) from error
    return _in_axes(name, found, field, layout)


def _in_axes(name: str, found: Found, field: Found, layout: Layout | None) -> Any:
    """Bring a mask to the axes of the record: by the names of its axes, or by their number."""
    kind = np.dtype(found.values.dtype).kind
    if kind not in "biu":
        raise InputError(
            f"mask {shown(name)} has type {found.values.dtype}: expected truth values, or 0 (missing) and 1 (observed)"
        )
    values = found.values if kind == "b" else Truth(found.values)
    shape, given = tuple(field.values.shape), tuple(int(n) for n in values.shape)
    if len(given) == len(shape):
        return arranged(values, layout) if given == shape else np.asarray(values[:])
    by_name = _by_name(found, field, given)
    if by_name is not None:
        whole = np.broadcast_to(np.asarray(values[:]).reshape(by_name), shape)
        return _narrow(arranged(whole, layout))
    if layout is not None and len(given) == len(layout.space) > 1:
        order = sorted(layout.space)
        return np.asarray(values[:]).transpose([order.index(axis) for axis in layout.space])
    return np.asarray(values[:])


def _by_name(found: Found, field: Found, given: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of a mask with one axis for each of the field's; None where names do not tell."""
    if not found.axes or not field.axes:
        return None
    mine, names = [axis.name for axis in found.axes], [axis.name for axis in field.axes]
    places = [names.index(name) for name in mine if name and name in names]
    if len(places) != len(mine) or places != sorted(places):
        return None
    return tuple(given[places.index(k)] if k in places else 1 for k in range(len(names)))


def _narrow(whole: NDArray[Any]) -> NDArray[Any]:
    """Return an array with its repeated axes of length 1 again."""
    return whole[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in whole.strides)]
