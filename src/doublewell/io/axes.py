"""Axes: from those of an array or of nodes in a file, in any order and unit, to a record's: time, then (z, y,) x."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option, shown
from doublewell.hints import Array
from doublewell.io.format import Axis
from doublewell.record.arrays import Values, lazy, time_axis
from doublewell.record.record import coordinate_step

Read = Callable[[str], tuple[NDArray[Any], Mapping[str, Any]] | None]  # of a name: values and attributes, or nothing
_FLAT = 1e-9  # of the longest axis: an axis of nodes that is not longer is left out
_SAME = 1e-6  # of the length of an axis: nodes closer than that have the same coordinate
_UNEVEN = 1e-3  # of a step: how far a node may lie from the regular mesh
_IDENTICAL = 1e-6  # of the range of the values: how far a node may differ from its periodic image
_IRREGULAR = (
    "the mesh is not regular, {}: expected the nodes of a box with even spacing along each axis; interpolate the field "
    "onto one"
)
_SINCE = re.compile(r"(\w+) since .*")
_METRES = {
    "m": Fraction(1), "cm": Fraction(1, 10**2), "mm": Fraction(1, 10**3), "um": Fraction(1, 10**6),
    "nm": Fraction(1, 10**9), "angstrom": Fraction(1, 10**10), "pm": Fraction(1, 10**12), "inch": Fraction(254, 10**4),
}  # fmt: skip
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SPELLINGS = {
    "metre": "m", "meter": "m", "centimetre": "cm", "centimeter": "cm", "millimetre": "mm", "millimeter": "mm",
    "micrometre": "um", "micrometer": "um", "micron": "um", "mum": "um", "nanometre": "nm", "nanometer": "nm",
    "picometre": "pm", "picometer": "pm", "å": "angstrom", "in": "inch", "inches": "inch",
    "sec": "s", "second": "s", "msec": "ms", "millisecond": "ms", "usec": "us", "microsecond": "us",
    "nsec": "ns", "nanosecond": "ns", "picosecond": "ps", "minute": "min", "hr": "h", "hour": "h", "day": "d",
}  # fmt: skip
_NONE = {"", "pixel", "px", "voxel", "none", "null", "reference frame", "frame", "1", "-", "unknown", "undefined"}


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
        seconds = _SECONDS.get(unit or "") if since or "timedelta" in str(attributes.get("dtype", "")) else None
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


def unit_name(text: object) -> str | None:
    r"""Return the short name of a unit, None where the text names none (pixel, say); others stay as they are.

    >>> [unit_name(text) for text in ("µm", "micrometer", "\\u00B5m", "msec", "pixel", "furlong")]
    ['um', 'um', 'um', 'ms', None, 'furlong']
    """
    if not isinstance(text, str):
        return None
    # two characters of Unicode look like mu, and ImageJ writes them as escapes
    plain = text.strip().strip("\0").replace("\\u00B5", "u").replace("\\u00b5", "u").replace("µ", "u").replace("μ", "u")
    if plain in _METRES or plain in _SECONDS:  # these as they are: Mm is not mm
        return plain
    for name in (plain.lower(), plain.lower().removesuffix("s")):
        if name in _NONE:
            return None
        if name in _SPELLINGS:
            return _SPELLINGS[name]
    return plain if plain.isprintable() and len(plain) <= 40 else None


def common_length(lengths: Sequence[float], units: Sequence[str | None]) -> tuple[list[float], str | None]:
    """Return lengths in one unit, that of the last axis, and its name; units that cannot be compared are refused.

    >>> common_length([500.0, 0.5], ["nm", "um"])
    ([0.5, 0.5], 'um')
    """
    if len(set(units)) <= 1:
        return list(lengths), (units[-1] if units else None)
    if not set(units) <= set(_METRES):
        names = ", ".join(unit or "none" for unit in units)
        raise InputError(
            f"the axes have lengths in different units ({names}): pass {option('dx')}, in one unit, and "
            f"{option('length_unit')}"
        )
    if not all(isfinite(length) for length in lengths):
        raise InputError(f"a mesh spacing is not a finite number: pass {option('dx')}")
    factors = [_METRES[str(unit)] / _METRES[str(units[-1])] for unit in units]
    return [float(Fraction(length) * factor) for length, factor in zip(lengths, factors, strict=True)], units[-1]


@dataclass(frozen=True, eq=False)
class GridNodes:
    """A regular mesh of nodes: cells and axes in the order (z, y,) x, and the number of the node at each cell."""

    mesh: tuple[int, ...]
    axes: tuple[Axis, ...]
    nodes: NDArray[np.int64]

    def __call__(self, frames: Values, first: int = 0) -> Values:  # noqa: ARG002 (all frames have one mesh)
        """Sort values u[t, node] into u[t, (z, y,) x]."""
        return frames[:, self.nodes].reshape(-1, *self.mesh)


def inside_borders(path: Path, values: Any, boundary: Any) -> Any:
    """Return the field as a record with this boundary has it.

    Nodes on both borders of a periodic domain are one node stored twice: the last is left out. A record with zero slope
    has its values in the middle of cells, so nodes are brought there. Without a boundary nothing changes.
    """
    frames, *mesh = values.shape
    if boundary == "neumann":
        return lazy(values).map_frames(partial(_middles, path), tuple(n - 1 for n in mesh))
    if boundary != "periodic":
        return values
    frame = np.asarray(values[0:1])[0]
    for axis, name in enumerate("zyx"[-frame.ndim :]):
        gap = np.max(np.abs(frame.take(0, axis) - frame.take(-1, axis)))
        if not gap <= _IDENTICAL * float(np.ptp(frame)):
            raise InputError(
                f"{path}: boundary is 'periodic', and the first and the last layer of nodes along {name} are not the "
                f"same: expected border nodes that are one node stored twice; leave out {option('boundary')}"
            )
    return lazy(values).part((0, frames), *((0, n - 1) for n in mesh))


def _middles(path: Path, frames: Values, first: int) -> Array:  # noqa: ARG001 (all frames have one mesh)
    """Return values u[t, (z, y,) x] on nodes as those in the middle of the cells between them.

    The cosine series through the nodes, whose slope is zero on both borders, is evaluated half a step on, where its
    last term is zero: exact for fields that the mesh resolves.
    """
    from scipy.fft import dct

    block = np.asarray(frames, dtype=np.float64)
    if not np.all(np.isfinite(block)):
        raise InputError(
            f"{path} has values on its nodes that are not finite: expected finite phase values, since with "
            f"{option('boundary', 'neumann')} all nodes of a frame are used together; fill them, or leave out "
            f"{option('boundary')}"
        )
    for axis in range(1, block.ndim):
        cells = block.shape[axis] - 1
        series = dct(block, type=1, axis=axis).take(range(cells), axis)
        block = np.asarray(dct(series, type=3, axis=axis) / (2.0 * cells))
    return block


def grid_nodes(points: NDArray[Any]) -> GridNodes:
    """Sort nodes, rows x, y, z, into a regular mesh; any other mesh is refused.

    Axes without extent are left out. Nodes that several parts of a mesh share count once.
    """
    exact = np.asarray(points, dtype=np.float64)
    if exact.ndim != 2 or not exact.size or not np.all(np.isfinite(exact)):
        raise InputError("the coordinates of the nodes are not finite: copy the file again")
    length = np.ptp(exact, axis=0)
    axes = [axis for axis in range(exact.shape[1]) if length[axis] > _FLAT * length.max()][::-1]
    columns, steps = [], []
    for axis in axes:
        points, ordered = exact[:, axis], np.sort(exact[:, axis])
        extent = float(ordered[-1] - ordered[0])
        steps.append(extent / int(np.sum(np.diff(ordered) > _SAME * extent)))
        numbers = (points - ordered[0]) / steps[-1]
        columns.append(np.rint(numbers).astype(np.int64))
        if np.max(np.abs(numbers - columns[-1])) > _UNEVEN:
            raise InputError(_IRREGULAR.format(f"the nodes are not evenly spaced along {'xyz'[axis]}"))
    mesh = tuple(int(column.max()) + 1 for column in columns)
    if not columns or int(np.prod(mesh, dtype=object)) > len(exact):
        filled = f"{len(exact)} nodes do not fill {' x '.join(map(str, mesh)) or 'a mesh'}"
        raise InputError(_IRREGULAR.format(filled))
    nodes = np.full(int(np.prod(mesh)), -1, dtype=np.int64)
    nodes[np.ravel_multi_index(columns, mesh)[::-1]] = np.arange(len(exact))[::-1]  # the first of several nodes stays
    if np.any(nodes < 0):
        raise InputError(_IRREGULAR.format(f"{int(np.sum(nodes < 0))} points of the mesh have no node"))
    space = tuple(Axis("xyz"[axis], step=step) for axis, step in zip(axes, steps, strict=True))
    return GridNodes(mesh, space, nodes)
