"""Frames: a range of frames of a stored array, read only when sliced; and the way in from xarray."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.checks import numbers
from doublewell.errors import InputError
from doublewell.record.metadata import regular_step

__all__ = ["Frames", "coordinate_step", "from_xarray", "time_axis"]

_TIME = re.compile(r"t|times?|frames?|steps?|time_?steps?|dates?|datetime", re.IGNORECASE)
_SPACE = re.compile(
    r"[xyz]([^a-z].*)?|[ijk]|rows?|col(umn)?s?|lat(itude)?|lon(gitude)?|width|height|depth", re.IGNORECASE
)


class Frames:
    """A range of frames of a stored array, read only when sliced, along time or along all axes."""

    def __init__(self, values: Any, start: int, stop: int) -> None:
        self.values, self.start = values, start
        self.shape = (stop - start, *values.shape[1:])
        self.dtype, self.ndim = values.dtype, values.ndim

    def __getitem__(self, index: slice | tuple[slice, ...]) -> Any:
        frames, *space = index if isinstance(index, tuple) else (index,)
        first, last, _ = frames.indices(self.shape[0])
        inner = slice(self.start + first, self.start + last)
        return self.values[(inner, *space) if space else inner]


def from_xarray(
    array: Any, dx: float | Sequence[float] | None, dt: float | None, times: ArrayLike | None
) -> tuple[Any, float | Sequence[float] | None, float | None, ArrayLike | None]:
    """Put time first and take what is missing of dx and times from the coordinates."""
    if hasattr(array, "data_vars"):
        found = ", ".join(str(name) for name in array.data_vars)
        raise InputError(f"the field is an xarray Dataset ({found}): expected one DataArray; pass dataset[name]")
    if array.ndim < 2:
        return array, dx, dt, times  # the shape is refused next
    clock = array.dims[time_axis(array.dims)]
    array = array.transpose(clock, ...)
    space = [name for name in array.dims if name != clock]
    if dx is None and all(name in array.coords for name in space):
        dx = [coordinate_step(array.coords[name].values, str(name)) for name in space]
    if dt is None and times is None and clock in array.coords:
        times = array.coords[clock].values
    # only dask is asked for its data: a file opened without it would be read whole here
    values = Frames(array, 0, array.shape[0]) if array.chunks is None else array.data
    return values, dx, dt, times


def time_axis(dims: Sequence[Hashable], *, cure: str | None = None) -> int:
    """Return which of the named axes is time: the one with such a name, or the first unless it is one of space.

    `cure` is what the error advises where that is not a new name for an axis.

    >>> time_axis(("y", "x", "frames"))
    2
    """
    names = [str(name) for name in dims]
    found = [axis for axis, name in enumerate(names) if _TIME.fullmatch(name)]
    if len(found) == 1:
        return found[0]
    if found or _SPACE.fullmatch(names[0]):
        said = "several axes could be" if found else "none of the axes is known to be"
        rename = "rename it, for example u.rename({'" + names[-1] + "': 'time'})"
        raise InputError(
            f"the axes are named {', '.join(names)}, and {said} time: expected one of the names time, t, frame or "
            f"step; {cure or rename}"
        )
    return 0


def coordinate_step(points: NDArray[Any], name: str) -> float:
    """Return the mesh spacing along an axis from its coordinate; falling ones count as rising."""
    places = numbers(points, f"coordinate {name!r}")
    if places.size < 2:
        return 1.0  # a single cell; the shape is refused next
    kind = np.asarray(points).dtype
    step = regular_step(places, float(np.finfo(kind if kind.kind == "f" else np.float64).eps))
    if step is None:
        raise InputError(f"coordinate {name!r} is not evenly spaced: expected a regular mesh; interpolate the field")
    return abs(step)
