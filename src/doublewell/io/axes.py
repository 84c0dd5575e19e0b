"""Axes: from those of an array in a file, in any order and unit, to a record's: time, then (z, y,) x."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option, shown
from doublewell.io.format import Axis
from doublewell.record.arrays import lazy, time_axis
from doublewell.record.record import coordinate_step
from doublewell.units import common_length, seconds_in, unit_name

Read = Callable[[str], tuple[NDArray[Any], Mapping[str, Any]] | None]  # of a name: values and attributes, or nothing
_SINCE = re.compile(r"(\w+) since .*")


@dataclass(frozen=True)
class Layout:
    """Which axis of the file is time, which are space in the order of the record, and which are left out, and where."""

    time: int
    space: tuple[int, ...]
    fixed: tuple[tuple[int, int], ...] = ()


def check_axes(axes: Any) -> str | None:
    """Return the letters of the axes, None where none are given.

    >>> check_axes("YXT")
    'yxt'
    """
    if axes is None:
        return None
    letters = axes.lower() if isinstance(axes, str) else ""
    movie = "t" in letters and bool(set(letters) & set("xyz"))
    if not movie or set(letters) - set("tzyxc") or len(set(letters)) < len(letters):
        raise InputError(
            f"axes is {shown(axes)}: expected one letter for each axis in the order of the file, t once, and of "
            f"z, y, x and c each at most once, such as {option('axes', 'tyx')}, or {option('axes', 'yxt')} where time "
            "is last"
        )
    return letters


def layout_of(
    path: Path, shape: tuple[int, ...], names: Sequence[str], axes: str | None, chosen: dict[int, int]
) -> Layout | None:
    """Return how the axes go into a record: by `axes`, or by their names in the file; None where neither is known.

    `chosen` are axes that are left out, such as that of the channels, with the position on them.
    """
    if axes is not None:
        letters = iter(axes)
        if len(axes) == len(shape) - len(chosen):  # the axis of a channel that was chosen by name may be left out
            names = ["c" if axis in chosen else next(letters) for axis in range(len(shape))]
        elif len(axes) == len(shape):
            names = list(axes)
        else:
            raise InputError(
                f"{path}: axes is {axes!r}, {len(axes)} letters, and the field has shape {shape}: expected one letter "
                f"per axis, such as {option('axes', 'tyx')}"
            )
    free = [axis for axis in range(len(shape)) if axis not in chosen]
    if not names or len(free) < 2:
        return None
    usual = "tyx" if len(free) == 3 else "tzyx"[-len(free) :]
    advice = f"pass {option('axes')}, one letter per axis in the order of the file, such as {option('axes', usual)}"
    time = free[time_axis([names[axis] for axis in free], advice=advice)]
    single = {axis: 0 for axis in free if axis != time and shape[axis] == 1 and len(free) > 2}
    space = [axis for axis in free if axis != time and axis not in single]
    letters_of = {axis: names[axis].lower() for axis in space}
    for axis, name in letters_of.items():
        if name in ("c", "channel", "channels"):
            raise InputError(
                f"{path} has {shape[axis]} channels (shape {shape}): expected one field; save one channel as a file of "
                "its own"
            )
    if set(letters_of.values()) <= set("xyz") and len(set(letters_of.values())) == len(space):
        space.sort(key=lambda axis: letters_of[axis], reverse=True)  # z, y, x; others stay as they are
    return Layout(time, tuple(space), tuple(sorted((chosen | single).items())))


def arranged(values: Any, layout: Layout | None) -> Any:
    """Return the array with its axes in the order of a record; nothing is read."""
    if layout is None or layout == Layout(0, tuple(range(1, len(values.shape)))):
        return values
    turned = lazy(values).transpose((layout.time, *layout.space), dict(layout.fixed))
    return turned[:] if isinstance(values, np.ndarray) else turned  # a view


def axes_with_coordinates(names: Sequence[str], read: Read, wanted: frozenset[str]) -> tuple[Axis, ...]:
    """Return named axes with the coordinates of the same names; these are read where something of them is wanted.

    Dates and durations that xarray wrote as numbers become seconds.
    """
    if not {"dx", "times", "dt"} & wanted:
        return tuple(Axis(name) for name in names)
    axes = []
    for name in names:
        points, attributes = read(name) or (None, {})
        text = attributes.get("units")
        since = _SINCE.fullmatch(text) if isinstance(text, str) else None
        unit = unit_name(since[1] if since else text)
        seconds = seconds_in(unit) if since or "timedelta" in str(attributes.get("dtype", "")) else None
        if points is not None and seconds is not None:
            points, unit = np.asarray(points, dtype=np.float64) * seconds, "s"
        axes.append(Axis(name, points=points, unit=unit))
    return tuple(axes)


def mesh_metadata(axes: Sequence[Axis], layout: Layout, wanted: frozenset[str]) -> dict[str, Any]:
    """Return those of dx, dt or times and their units that are wanted and that the axes give."""
    known: dict[str, Any] = {}
    space, clock = [axes[axis] for axis in layout.space], axes[layout.time]
    stated = [axis.step is not None or axis.points is not None for axis in axes]
    if "dx" in wanted and all(stated[k] and axes[k].name.lower() != "t" for k in layout.space):
        known["dx"] = [
            coordinate_step(np.asarray(axis.points), axis.name) if axis.step is None else axis.step for axis in space
        ]
        if "length_unit" in wanted:
            known["dx"], unit = common_length(known["dx"], [axis.unit for axis in space])
            known |= {"length_unit": unit} if unit else {}
    # an axis of space that the caller declares to be time has a step that is not a time
    if {"dt", "times"} <= wanted and stated[layout.time] and clock.name.lower() not in ("x", "y", "z"):
        known |= {"dt": clock.step} if clock.points is None else {"times": clock.points}
        known |= {"time_unit": clock.unit} if clock.unit and "time_unit" in wanted else {}
    return known
