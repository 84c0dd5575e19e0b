"""Frames: a range of frames of a stored array, read only when sliced; and the way in from xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.checks import numbers
from doublewell.errors import InputError
from doublewell.record.metadata import UNIFORM

__all__ = ["Frames", "from_xarray"]

_TIME_NAMES = ("t", "time", "frame")


class Frames:
    """A range of frames of a stored array, read only when sliced along time."""

    def __init__(self, values: Any, start: int, stop: int) -> None:
        self.values, self.start = values, start
        self.shape = (stop - start, *values.shape[1:])
        self.dtype, self.ndim = values.dtype, values.ndim

    def __getitem__(self, frames: slice) -> Any:
        first, last, _ = frames.indices(self.shape[0])
        return self.values[self.start + first : self.start + last]


def from_xarray(
    array: Any, dx: float | Sequence[float] | None, dt: float | None, times: ArrayLike | None
) -> tuple[Any, float | Sequence[float] | None, float | None, ArrayLike | None]:
    """Put time first and take what is missing of dx and times from the coordinates."""
    if hasattr(array, "data_vars"):
        found = ", ".join(str(name) for name in array.data_vars)
        raise InputError(f"the field is an xarray Dataset ({found}): expected one DataArray; pass dataset[name]")
    if array.ndim < 2:
        return array, dx, dt, times  # the shape is refused next
    names = [str(name) for name in array.dims]
    clock = next((name for name in names if name.lower() in _TIME_NAMES), names[0])
    array = array.transpose(clock, ...)
    space = [name for name in array.dims if name != clock]
    if dx is None and all(name in array.coords for name in space):
        dx = [_coordinate_step(array.coords[name].values, str(name)) for name in space]
    if dt is None and times is None and clock in array.coords:
        times = array.coords[clock].values
    # only dask is asked for its data: a file opened without it would be read whole here
    values = Frames(array, 0, array.shape[0]) if array.chunks is None else array.data
    return values, dx, dt, times


def _coordinate_step(points: NDArray[Any], name: str) -> float:
    places = numbers(points, f"coordinate {name!r}")
    steps = np.diff(places)
    if steps.size == 0:
        return 1.0  # a single cell; the shape is refused next
    if np.ptp(steps) > UNIFORM * abs(steps.mean()) + 1e-14 * np.abs(places).max():
        raise InputError(f"coordinate {name!r} is not evenly spaced: expected a regular mesh; interpolate the field")
    return float(abs(steps.mean()))
