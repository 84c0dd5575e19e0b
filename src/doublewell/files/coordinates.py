"""Coordinates: the mesh and the times of a field from arrays named like its axes, as xarray writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.record.frames import coordinate_step, time_axis

__all__ = ["axis_names", "coordinate_metadata"]

_SECONDS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6,
            "nanosecond": 1e-9}  # fmt: skip
_UNITS = re.compile(rf"({'|'.join(_SECONDS)})s?( since .*)?")


def axis_names(array: Any) -> tuple[str, ...] | None:
    """Return the names of the axes of a zarr array, of version 2 or 3; None where an axis has none."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    whole = (
        isinstance(names, list | tuple) and len(names) == array.ndim and all(isinstance(name, str) for name in names)
    )
    return tuple(names) if whole else None


def coordinate_metadata(
    path: Path, names: tuple[str, ...], read: Callable[[str], tuple[NDArray[Any], Any] | None], wanted: frozenset[str]
) -> dict[str, Any]:
    """Return those of dx and times that are wanted and that coordinates give.

    `read(name)` returns the values and the attributes of the array of that name, None where there is none.
    """
    if len(names) < 2:
        return {}  # the shape is refused next
    with _about(path):
        _check_time_first(names)
    found: dict[str, Any] = {}
    clock = read(names[0]) if "times" in wanted else None
    if clock is not None:
        found["times"] = _times(*clock)
    space = [read(name) for name in names[1:]] if "dx" in wanted else [None]
    if all(axis is not None for axis in space):
        with _about(path):
            found["dx"] = [coordinate_step(axis[0], name) for axis, name in zip(space, names[1:], strict=True) if axis]
    return found


@contextmanager
def _about(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _check_time_first(names: tuple[str, ...]) -> None:
    axis = time_axis(names)
    if axis != 0:
        raise InputError(
            f"the axes of the field are {', '.join(names)}: expected time first; write it again as "
            f"u.transpose({names[axis]!r}, ...), or pass xarray.open_zarr(path)[name] to Record"
        )


def _times(values: NDArray[Any], attributes: Any) -> NDArray[Any]:
    """Return times, in seconds where they are dates or durations that xarray wrote as numbers with a unit."""
    unit = _UNITS.fullmatch(str(attributes.get("units", "")))
    dates = unit is not None and (unit[2] is not None or "timedelta" in str(attributes.get("dtype", "")))
    return np.asarray(values, dtype=np.float64) * _SECONDS[unit[1]] if unit is not None and dates else values
