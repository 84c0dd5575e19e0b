"""Coordinates: mesh spacing, times and units from what a file says of the axes of its field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.io.arrange import Layout
from doublewell.io.format import Axis, about
from doublewell.io.unit_names import common_length, to_seconds, unit_name
from doublewell.record.frames import coordinate_step

__all__ = ["Read", "axes_with_coordinates", "axis_names", "axis_of", "mesh_metadata"]

Read = Callable[[str], tuple[NDArray[Any], Mapping[str, Any]] | None]  # of a name: values and attributes, or nothing
_SINCE = re.compile(r"(\w+) since .*")


def axis_names(array: Any) -> tuple[str, ...] | None:
    """Return the names of the axes of a zarr array, of version 2 or 3; None where an axis has none."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    whole = (
        isinstance(names, list | tuple) and len(names) == array.ndim and all(isinstance(name, str) for name in names)
    )
    return tuple(names) if whole else None


def axes_with_coordinates(names: Sequence[str], read: Read, wanted: frozenset[str]) -> tuple[Axis, ...]:
    """Return named axes with the coordinates of the same names; these are read where something of them is wanted."""
    if not {"dx", "times", "dt"} & wanted:
        return tuple(Axis(name) for name in names)
    found = [read(name) for name in names]
    return tuple(Axis(name) if item is None else axis_of(name, *item) for name, item in zip(names, found, strict=True))


def axis_of(name: str, points: NDArray[Any], attributes: Mapping[str, Any]) -> Axis:
    """Return an axis from its coordinate; dates and durations that xarray wrote as numbers become seconds."""
    text = attributes.get("units")
    since = _SINCE.fullmatch(text) if isinstance(text, str) else None
    unit = unit_name(since[1] if since else text)
    seconds = to_seconds(unit) if unit else None
    if seconds is not None and (since or "timedelta" in str(attributes.get("dtype", ""))):
        return Axis(name, points=np.asarray(points, dtype=np.float64) * seconds, unit="s")
    return Axis(name, points=points, unit=unit)


def mesh_metadata(path: Path, axes: Sequence[Axis], layout: Layout, wanted: frozenset[str]) -> dict[str, Any]:
    """Return those of dx, dt or times and their units that are wanted and that the axes give."""
    found: dict[str, Any] = {}
    with about(path):
        if "dx" in wanted:
            found |= _spacing([axes[axis] for axis in layout.space], found_unit="length_unit" in wanted)
        if {"dt", "times"} <= wanted:
            found |= _clock(axes[layout.time], found_unit="time_unit" in wanted)
    return found


def _spacing(axes: Sequence[Axis], *, found_unit: bool) -> dict[str, Any]:
    if any((axis.step is None and axis.points is None) or axis.name.lower() == "t" for axis in axes):
        return {}
    steps = [_step(axis) for axis in axes]
    if not found_unit:
        return {"dx": steps}
    lengths, unit = common_length(steps, [axis.unit for axis in axes])
    return {"dx": lengths} | ({"length_unit": unit} if unit else {})


def _step(axis: Axis) -> float:
    if axis.step is not None:
        return axis.step
    return coordinate_step(np.asarray(axis.points), axis.name)


def _clock(axis: Axis, *, found_unit: bool) -> dict[str, Any]:
    if axis.name.lower() in ("x", "y", "z"):  # an axis of space that the caller says is time: its step is no time
        return {}
    unit = {"time_unit": axis.unit} if axis.unit and found_unit else {}
    if axis.points is not None:
        return {"times": axis.points} | unit
    return {"dt": axis.step} | unit if axis.step is not None else {}
