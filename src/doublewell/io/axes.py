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
_VECTOR = re.compile(r"(t|x|y|z)\1?|(time|t|x|y|z)(s|_?(vec|span|grid|mesh|axis|values?))?", re.IGNORECASE)
_ALIKE = 1e-6  # of a step, or of a range: what rounding may make of one number
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


def is_coordinate(name: str) -> bool:
    """Tell whether an array is named like the positions or the times along an axis.

    >>> [is_coordinate(name) for name in ("t", "X", "tt", "x_grid", "u")]
    [True, True, True, True, False]
    """
    return _VECTOR.fullmatch(name) is not None


def axes_by_vectors(
    shape: tuple[int, ...], vectors: Mapping[str, tuple[NDArray[Any], str | None]]
) -> tuple[Axis, ...] | None:
    """Name axes by arrays of positions and times, with units: by meshgrids, or by vectors whose lengths fit one axis.

    Axes of one length have one step where all vectors of that length have it. None where time is not known by that.
    """
    names, axes = [""] * len(shape), [Axis("c" if n == 1 else f"axis {k}") for k, n in enumerate(shape)]
    lines: dict[str, tuple[NDArray[Any], str | None]] = {}
    for name, (values, unit) in vectors.items():
        letter, along = name[0].lower(), _varies(values) if values.shape == shape and values.ndim > 1 else None
        if along is not None:
            names[along], axes[along] = letter, Axis(letter, points=_line(values, along), unit=unit)
        elif values.ndim == 1 or (along := _varies(values)) is not None:
            lines[letter] = (_line(values, along or 0), unit)
    for n in set(shape) - {1}:
        alike = [axis for axis, m in enumerate(shape) if m == n and not names[axis]]
        fits = {name: line for name, line in lines.items() if len(line[0]) == n and name not in names}
        if len(alike) == len(fits) == 1:
            names[alike[0]], (points, unit) = next(iter(fits.items()))
            axes[alike[0]] = Axis(names[alike[0]], points=points, unit=unit)
        elif fits and "t" not in fits and len(alike) > 1 and len(shape) - len(alike) - shape.count(1) == 1:
            steps = [coordinate_step(points, name) for name, (points, _) in fits.items()]
            if np.ptp(steps) <= _ALIKE * max(steps) and len({unit for _, unit in fits.values()}) == 1:
                for axis, letter in zip(alike, "zyx"[-len(alike) :], strict=True):
                    names[axis], axes[axis] = letter, Axis(letter, step=steps[0], unit=next(iter(fits.values()))[1])
    left = [axis for axis, n in enumerate(shape) if n > 1 and not names[axis]]
    if "t" not in names and len(left) == 1:
        names[left[0]], axes[left[0]] = "t", Axis("t")
    return tuple(axes) if "t" in names and names.count("t") == 1 else None


def _varies(values: NDArray[Any]) -> int | None:
    """Return the only axis along which an array varies."""
    if not values.size or values.dtype.kind not in "iuf":
        return None
    least = _ALIKE * float(np.ptp(values))
    along = [k for k in range(values.ndim) if float(np.max(np.ptp(values, axis=k))) > least]
    return along[0] if len(along) == 1 else None


def _line(values: NDArray[Any], along: int) -> NDArray[Any]:
    return np.moveaxis(values, along, 0).reshape(values.shape[along], -1)[:, 0]


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
