"""Arrange: from the axes of an array in a file, in any order, to those of a record: time first, then (z, y,) x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.io.view import View
from doublewell.record.frames import time_axis

__all__ = ["LETTERS", "Layout", "arranged", "check_axes", "layout_of"]

LETTERS = "tzyxc"
_CURE = "pass axes=, one letter an axis in the order of the file, such as axes='{}'"


@dataclass(frozen=True)
class Layout:
    """Which axis of the file is time, which are space in the order of the record, and which stand still."""

    time: int
    space: tuple[int, ...]
    fixed: tuple[tuple[int, int], ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the file in the order of the record."""
        return (self.time, *self.space)


def check_axes(axes: Any) -> str | None:
    """Return the letters of the axes, None where none are given.

    >>> check_axes("YXT")
    'yxt'
    """
    if axes is None:
        return None
    letters = axes.lower() if isinstance(axes, str) else ""
    if not letters or set(letters) - set(LETTERS) or len(set(letters)) < len(letters) or not _has_time(letters):
        raise InputError(
            f"axes is {shown(axes)}: expected one letter for each axis in the order of the file, t once, and of "
            "z, y, x and c each at most once, such as axes='tyx', or axes='yxt' where time is last"
        )
    return letters


def layout_of(
    path: Path, shape: tuple[int, ...], names: Sequence[str] | None, axes: str | None, chosen: dict[int, int]
) -> Layout | None:
    """Return how the axes go into a record: by `axes`, or by their names in the file; None where neither is known.

    `chosen` are axes that stand still, such as that of the channels.
    """
    if axes is not None:
        names = list(_fit(path, axes, shape, chosen))
    if names is None or len(shape) < 2:
        return None
    free = [axis for axis in range(len(shape)) if axis not in chosen]
    if len(free) < 2:
        return None
    time = free[_time(path, [names[axis] for axis in free])]
    single = {axis: 0 for axis in free if axis != time and shape[axis] == 1 and len(free) > 2}
    space = [axis for axis in free if axis != time and axis not in single]
    _check_channels(path, shape, names, space)
    fixed = tuple(sorted((chosen | single).items()))
    return Layout(time, tuple(_sorted(space, names)), fixed)


def arranged(values: Any, layout: Layout | None) -> Any:
    """Return the array with its axes in the order of a record; nothing is read."""
    if layout is None or layout == Layout(0, tuple(range(1, len(values.shape)))):
        return values
    if isinstance(values, np.ndarray):
        index: list[Any] = [slice(None)] * values.ndim
        for axis, place in layout.fixed:
            index[axis] = place
        kept = [axis for axis in range(values.ndim) if axis not in dict(layout.fixed)]
        turned: NDArray[Any] = values[tuple(index)].transpose([kept.index(axis) for axis in layout.order])
        return turned
    return View(values, layout.order, dict(layout.fixed))


def _has_time(letters: str) -> bool:
    return "t" in letters and len(set(letters) & set("xyz")) > 0


def _fit(path: Path, axes: str, shape: tuple[int, ...], chosen: dict[int, int]) -> str:
    """Return one letter an axis; the axis of a channel that var= chose may be left out."""
    if len(axes) == len(shape) - len(chosen):
        letters = iter(axes)
        return "".join("c" if axis in chosen else next(letters) for axis in range(len(shape)))
    if len(axes) != len(shape):
        raise InputError(
            f"{path}: axes is {axes!r}, {len(axes)} letters, and the field has shape {shape}: expected one letter an "
            "axis, such as axes='tyx'"
        )
    return axes


def _time(path: Path, names: Sequence[str]) -> int:
    try:
        return time_axis(names, cure=_CURE.format("tyx" if len(names) == 3 else "tzyx"[-len(names) :]))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _check_channels(path: Path, shape: tuple[int, ...], names: Sequence[str], space: Sequence[int]) -> None:
    several = [axis for axis in space if names[axis].lower() in ("c", "channel", "channels")]
    if several:
        raise InputError(
            f"{path} has {shape[several[0]]} channels (shape {shape}): expected one field; save one channel as a file "
            "of its own"
        )


def _sorted(space: Sequence[int], names: Sequence[str]) -> list[int]:
    """Axes named x, y, z in the order z, y, x; any others as they come."""
    letters = [names[axis].lower() for axis in space]
    known = set(letters) <= set("xyz") and len(set(letters)) == len(letters)
    return sorted(space, key=lambda axis: names[axis].lower(), reverse=True) if known else list(space)
