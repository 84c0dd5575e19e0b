"""What a record is given: the array, its times, boundary, units and mask, checked before any value is read."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.errors import InputError, numbers, option, positive, shown
from doublewell.hints import Array
from doublewell.record.lazy import lazy

Boundary = Literal["periodic", "neumann", "open"]
Cells = tuple[tuple[int, int], ...]  # along each space axis (first, past the last)
FINITE = "finite"  # the mask of all values that are numbers
_BOUNDARIES: dict[str, Boundary] = {"periodic": "periodic", "neumann": "neumann", "open": "open"}
_UNEVEN = 1e-3  # of a step: how far a point may lie from a regular axis
_UNIT_LENGTH = 40  # characters
_BLURRED = 0.25  # of a step: the most that the round-off of a narrow type may excuse
_TIME = re.compile(r"t|times?|frames?|steps?|time_?steps?|dates?|datetime", re.IGNORECASE)
_SPACE = re.compile(
    r"[xyz]([^a-z].*)?|[ijk]|rows?|col(umn)?s?|lat(itude)?|lon(gitude)?|width|height|depth", re.IGNORECASE
)


def check_values(u: Any) -> Any:
    """Return the field as a read-only array, or as the stored array it is; no value is read."""
    try:
        values = u if hasattr(u, "shape") and hasattr(u, "dtype") else np.asarray(u)
        kind = np.dtype(values.dtype).kind
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the field is not an array ({type(u).__name__}: {error}): expected u[t, (z, y,) x] as NumPy, "
            "dask, zarr or xarray; pass numpy.asarray(u)"
        ) from None
    if kind == "c":
        raise InputError(f"the field is complex ({values.dtype}): expected real phase values; pass its real part")
    if kind in "iub":
        raise InputError(
            f"the field holds integers ({values.dtype}): expected phase values as floats with the pure phases at -1 "
            "and +1; convert intensities i first, in floats: u = 2 (i - low)/(high - low) - 1"
        )
    if kind != "f":
        raise InputError(f"the field has type {values.dtype}: expected floating-point phase values")
    if not 2 <= values.ndim <= 4:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected u[t, x], u[t, y, x] or u[t, z, y, x]"
            + ("; a single frame is not a movie" if values.ndim == 1 else "")
        )
    if values.shape[0] < 2 or min(values.shape[1:]) < 2:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected at least 2 frames and 2 cells along each axis"
        )
    return _read_only(values)


def unwrapped(u: Any, mask: Any, mesh: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return array, mask and mesh (dx, dt, times) of what may be an xarray or a masked array; others stay as they are.

    Time comes first, and what is missing of dx and times is taken from the coordinates.
    """
    if hasattr(u, "dims") and hasattr(u, "coords"):
        if hasattr(u, "data_vars"):
            names = ", ".join(str(name) for name in u.data_vars)
            raise InputError(f"the field is an xarray Dataset ({names}): expected one DataArray; pass dataset[name]")
        if u.ndim < 2:
            return u, mask, mesh  # the shape is refused next
        mask, clock = _named_axes(mask, u), u.dims[time_axis(u.dims)]
        u = u.transpose(clock, ...)
        space = [name for name in u.dims if name != clock]
        if mesh["dx"] is None and all(name in u.coords for name in space):
            mesh = mesh | {"dx": [coordinate_step(u.coords[name].values, str(name)) for name in space]}
        if mesh["dt"] is None and mesh["times"] is None and clock in u.coords:
            mesh = mesh | {"times": u.coords[clock].values}
        u = _unnamed(u)
    if not isinstance(u, np.ma.MaskedArray):
        return u, mask, mesh
    if not np.ma.is_masked(u):
        return u.data, mask, mesh
    if mask is not None:
        raise InputError(
            "the field is a masked array and mask= is given too: expected one of them; pass u.data and "
            "mask=~np.ma.getmaskarray(u) & mask"
        )
    return u.data, ~np.ma.getmaskarray(u), mesh


def time_axis(dims: Sequence[Hashable], *, cure: str | None = None) -> int:
    """Return which of the named axes is time: the one with such a name, or the first unless it is one of space.

    `cure` is what the error advises where that is not a new name for an axis.

    >>> time_axis(("y", "x", "frames"))
    2
    """
    names = [str(name) for name in dims]
    clocks = [axis for axis, name in enumerate(names) if _TIME.fullmatch(name)]
    if len(clocks) == 1:
        return clocks[0]
    if clocks or _SPACE.fullmatch(names[0]):
        which = "several axes could be" if clocks else "none of the axes is known to be"
        rename = "rename it, for example u.rename({'" + names[-1] + "': 'time'})"
        raise InputError(
            f"the axes are named {', '.join(names)}, and {which} time: expected one of the names time, t, frame or "
            f"step; {cure or rename}"
        )
    return 0


def coordinate_step(points: NDArray[Any], name: str) -> float:
    """Return the mesh spacing along an axis from its coordinate; falling ones count as rising."""
    exact = numbers(points, f"coordinate {name!r}")
    if exact.size < 2:
        return 1.0  # a single cell; the shape is refused next
    kind = np.asarray(points).dtype
    step = regular_step(exact, float(np.finfo(kind if kind.kind == "f" else np.float64).eps))
    if step is None:
        raise InputError(f"coordinate {name!r} is not evenly spaced: expected a regular mesh; interpolate the field")
    return abs(step)


def regular_step(points: Array, round_off: float = 0.0) -> float | None:
    """Return the step of evenly spaced points, None where they are not.

    Every point must lie within a thousandth of a step of the regular axis between the first and the last, or within
    `round_off`, relative to the largest, of the type that the points were stored in.

    >>> regular_step(np.array([0.0, 0.1, 0.2]))
    0.1
    """
    count = points.size - 1
    step = float((points[-1] - points[0]) / count)
    gap = np.max(np.abs(points - (points[0] + step * np.arange(count + 1))))
    excused = min(round_off * float(np.max(np.abs(points))), _BLURRED * abs(step))
    return step if gap <= max(_UNEVEN * abs(step), excused) else None


def check_times(dt: float | None, times: ArrayLike | None, frames: int) -> Array:
    """Return the times of all frames from one interval or from all of them."""
    if (dt is None) == (times is None):
        got = "neither" if dt is None else "both"
        raise InputError(
            f"expected {option('dt')} (one frame interval) or {option('times')} (one per frame), got {got}"
        )
    if dt is not None:
        stamps = positive(dt, "dt", "the frame interval") * np.arange(frames, dtype=np.float64)
    else:
        stamps = _seconds(times)
    if stamps.shape != (frames,):
        raise InputError(f"times has shape {stamps.shape}: expected one time for each of the {frames} frames")
    if not np.all(np.isfinite(stamps)) or np.any(np.diff(stamps) <= 0):
        raise InputError("times must be finite and increase from frame to frame; sort or drop repeated frames")
    stamps.flags.writeable = False
    return stamps


def check_boundary(boundary: Any) -> Boundary | None:
    """Return the boundary, None where nothing is known of it."""
    if boundary is not None and not (isinstance(boundary, str) and boundary in _BOUNDARIES):
        raise InputError(
            f"boundary is {shown(boundary)}: expected 'periodic', 'neumann', 'open' (cut out of something larger) or "
            "None (not known)"
        )
    return None if boundary is None else _BOUNDARIES[boundary]


def check_declared(boundary: Any) -> Boundary:
    """Return the boundary where the outside must be known."""
    if not isinstance(boundary, str) or boundary not in ("periodic", "neumann"):
        raise InputError(
            f"boundary is {shown(boundary)}: expected 'periodic' or 'neumann', because the outside must be known here"
        )
    return _BOUNDARIES[boundary]


def check_unit(unit: Any, name: str) -> str | None:
    """Return the name of a unit, None where it is not known; what it means is not looked at here."""
    if unit is None:
        return None
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > _UNIT_LENGTH:
        raise InputError(
            f"{name} is {shown(unit)}: expected the name of a unit, such as 'um' or 's', or None (not known)"
        )
    return str(unit.strip())


def check_mask(mask: Any, values: Any) -> Any:
    """Return a mask on the axes of the field, each of full length or 1, or None where there is none.

    Taken are the shape of a frame (the same in all frames), (frames,) for dropped frames, as many axes as the field
    has, each of full length or 1, and "finite". Only a mask of the full length in time and space stays where it is
    stored.
    """
    if mask is None:
        return None
    shape = tuple(int(n) for n in values.shape)
    expected = f"{shape[1:]} (fixed in time), {(shape[0],)} (dropped frames) or {shape} (each value)"
    if isinstance(mask, str) and mask == FINITE:
        mask = np.isfinite(values) if isinstance(values, np.ndarray) else lazy(values).map(np.isfinite, bool)
    if not (hasattr(mask, "shape") and hasattr(mask, "dtype")):
        try:
            mask = np.asarray(mask)
        except ValueError:
            raise InputError(f"mask is a ragged list: expected {expected}") from None
    if np.dtype(mask.dtype).kind != "b":
        raise InputError(
            f"mask has type {mask.dtype}: expected booleans, True where a value was observed; convert it, and invert "
            "it where True marks what is missing"
        )
    on_axes = _on_axes(mask, tuple(int(n) for n in mask.shape), shape, expected)
    if isinstance(on_axes, np.ndarray) and not on_axes.any():
        raise InputError(
            "mask is False everywhere: expected True where a value was observed; invert it, or leave it out"
        )
    return _read_only(on_axes)


def missing_fraction(mask: Any) -> float | None:
    """Return the fraction of values that are missing; None where that is not known without reading a file."""
    return float(1.0 - np.mean(mask)) if isinstance(mask, np.ndarray) else None


def _named_axes(mask: Any, field: Any) -> Any:
    """Bring a mask to the axes of an xarray field with time first: by name, or in the field's own order.

    Axes that a named mask has not get the length 1.
    """
    if mask is None or not hasattr(mask, "shape"):
        return mask
    if not hasattr(mask, "dims"):
        if len(mask.shape) != field.ndim or time_axis(field.dims) == 0:
            return mask
        mask = type(field)(mask, dims=field.dims)
    unknown = [str(name) for name in mask.dims if name not in field.dims]
    if unknown:
        names = ", ".join(str(name) for name in field.dims)
        raise InputError(f"mask has an axis {unknown[0]!r}: expected axes of the field ({names}); rename it")
    whole = mask.expand_dims([name for name in field.dims if name not in mask.dims])
    return whole.transpose(*field.dims).transpose(field.dims[time_axis(field.dims)], ...)


def _on_axes(mask: Any, given: tuple[int, ...], shape: tuple[int, ...], expected: str) -> Any:
    """Return the mask with one axis for each of the field's; small masks are read."""
    frames, mesh = shape[0], shape[1:]
    if given == mesh == (frames,):
        raise InputError(
            f"mask has shape {given}, and the record has as many frames as cells: expected the shape {(frames, 1)} for "
            f"dropped frames or {(1, frames)} for missing cells"
        )
    if given == shape:
        return _unnamed(mask) if hasattr(mask, "dims") else mask
    if given == mesh:
        target = (1, *mesh)
    elif given == (frames,):
        target = (frames, *(1 for _ in mesh))
    elif len(given) == len(shape) and all(n in (1, m) for n, m in zip(given, shape, strict=True)):
        target = given
    else:
        raise InputError(f"mask has shape {given}: expected {expected}; True where a value was observed")
    return np.array(mask[:], dtype=bool).reshape(target)


def _unnamed(array: Any) -> Any:
    """Take the stored array of an xarray one; without dask a file would be read whole, so that it is sliced later."""
    return lazy(array) if array.chunks is None else array.data


def _read_only(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        values = values.view()
        values.flags.writeable = False
    return values


def _seconds(times: Any) -> Array:
    """Return times as a new array of floats; dates become seconds from the first, durations seconds.

    Times in a narrow type that are regular up to its round-off become the regular ones they stand for.
    """
    try:
        stamps = np.asarray(times)
    except ValueError:
        raise InputError("times is a ragged list: expected one number for each frame") from None
    if np.issubdtype(stamps.dtype, np.datetime64) and stamps.size:
        stamps = stamps - stamps.flat[0]
    if np.issubdtype(stamps.dtype, np.timedelta64):
        stamps = stamps / np.timedelta64(1, "s")
    exact = numbers(stamps, "times").copy()
    narrow = stamps.dtype.kind == "f" and stamps.dtype.itemsize < exact.dtype.itemsize
    if narrow and exact.ndim == 1 and exact.size > 1 and np.all(np.diff(exact) > 0):
        step = regular_step(exact, float(np.finfo(stamps.dtype).eps))
        return exact if step is None else exact[0] + step * np.arange(exact.size)
    return exact
