"""What a record is given: the array, its times and boundary, checked before any value is read."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import numbers, positive, shown
from doublewell.errors import InputError
from doublewell.hints import Array

__all__ = [
    "Boundary",
    "check_boundary",
    "check_declared",
    "check_times",
    "check_unit",
    "check_values",
    "regular_step",
]

Boundary = Literal["periodic", "neumann", "open"]
_BOUNDARIES: dict[str, Boundary] = {"periodic": "periodic", "neumann": "neumann", "open": "open"}
_UNEVEN = 1e-3  # of a step: how far a point may lie from a regular axis
_UNIT_LENGTH = 40  # characters
_BLURRED = 0.25  # of a step: the most that the round-off of a narrow type may excuse


def check_values(u: Any) -> Any:
    """Return the field as a read-only array, or as the stored array it is; no value is read."""
    values, kind = _as_array(u)
    if kind == "c":
        raise InputError(
            f"the field is complex ({values.dtype}): expected real phase values; pass its real part u.real"
        )
    if kind in "iub":
        raise InputError(
            f"the field holds whole numbers ({values.dtype}): expected phase values as floats with the pure "
            "phases at -1 and +1; convert intensities first, for example "
            "u = 2*(i.astype(float) - low)/(high - low) - 1"
        )
    if kind != "f":
        raise InputError(f"the field has type {values.dtype}: expected floating-point phase values")
    if not 2 <= values.ndim <= 4:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected u[t, x], u[t, y, x] or u[t, z, y, x]"
            + ("; for one frame pass u[None]" if values.ndim == 1 else "")
        )
    if values.shape[0] < 2 or min(values.shape[1:]) < 2:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected at least 2 frames and 2 cells along each axis"
        )
    if isinstance(values, np.ndarray):
        values = values.view()
        values.flags.writeable = False
    return values


def _as_array(u: Any) -> tuple[Any, str]:
    """Return u, or its NumPy array where it is no array, and the kind of its numbers."""
    try:
        values = u if hasattr(u, "shape") and hasattr(u, "dtype") else np.asarray(u)
        return values, np.dtype(values.dtype).kind
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the field is not an array ({type(u).__name__}: {error}): expected u[t, (z, y,) x] as NumPy, "
            "dask, zarr or xarray; pass numpy.asarray(u)"
        ) from None


def check_times(dt: float | None, times: ArrayLike | None, frames: int) -> Array:
    """Return the times of all frames from one interval or from all of them."""
    if (dt is None) == (times is None):
        got = "neither" if dt is None else "both"
        raise InputError(f"expected dt= (one frame interval) or times= (one per frame), got {got}")
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
    if boundary is None:
        return None
    return _known_boundary(boundary, "'periodic', 'neumann', 'open' (cut out of something larger) or None (not known)")


def check_declared(boundary: Any) -> Boundary:
    """Return the boundary where the outside must be known."""
    known = _known_boundary(boundary, "'periodic' or 'neumann'")
    if known == "open":
        raise InputError(
            "boundary is 'open': expected 'periodic' or 'neumann', because the outside must be known here; declare "
            "periodic or neumann"
        )
    return known


def check_unit(unit: Any, name: str) -> str | None:
    """Return the name of a unit, None where it is not known; what it means is not looked at here."""
    if unit is None:
        return None
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > _UNIT_LENGTH:
        raise InputError(
            f"{name} is {shown(unit)}: expected the name of a unit, such as 'um' or 's', or None (not known)"
        )
    return str(unit.strip())


def _known_boundary(boundary: Any, expected: str) -> Boundary:
    if not (isinstance(boundary, str) and boundary in _BOUNDARIES):
        raise InputError(f"boundary is {shown(boundary)}: expected {expected}")
    return _BOUNDARIES[boundary]


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
