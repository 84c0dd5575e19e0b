"""open_record: a file on disk as a Record; what the file does not say is asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import numbers, shown
from doublewell.errors import InputError
from doublewell.io.arrange import Layout, arranged, check_axes, layout_of
from doublewell.io.borders import inside_borders
from doublewell.io.coordinates import mesh_metadata
from doublewell.io.format import MARKS, METADATA, Found, as_path, check_version, is_own
from doublewell.io.formats import format_to_read
from doublewell.io.masks import mask_of
from doublewell.io.view import Levelled
from doublewell.record import Boundary, Record, phase_from_intensity

__all__ = ["open_record"]

_LONGEST = 10**8  # frames, or cells along an axis
_ASKED = {  # what is missing: what it is, how to give it, the option of the command line
    "dx": ("mesh spacing", "dx=, one number or one per space axis", "--dx"),
    "dt": ("frame interval", "dt=, one number, or times=, one per frame", "--dt"),
    "axes": ("order of its axes", "axes=, one letter an axis, such as axes='{axes}'", "--axes"),
    "levels": (
        "phase values (the field holds whole numbers, {dtype})",
        "levels='auto', or levels=(low, high), the intensities of the pure phases -1 and +1",
        "--levels",
    ),
}


def open_record(
    path: str | PathLike[str],
    *,
    var: str | None = None,
    axes: str | None = None,
    dx: float | Sequence[float] | None = None,
    dt: float | None = None,
    times: ArrayLike | None = None,
    q: float | None = None,
    boundary: Boundary | None = None,
    levels: tuple[float, float] | Literal["auto"] | None = None,
    length_unit: str | None = None,
    time_unit: str | None = None,
    mask: Any = None,
) -> Record:
    """Open a movie on disk: NumPy, zarr, HDF5, netCDF, MATLAB, TIFF, VTK or Exodus (docs/files.md has the list).

    What the file says of mesh, times, units, q and boundary is used, and an argument takes its place. What is missing
    is asked for by name. Only what a slab needs is read, where the format allows it.

    Parameters
    ----------
    var
        The name of the field, where the file holds several; u, or the only array with 2 to 4 axes, needs none.
    axes
        One letter for each axis of the array in the file: t, z, y, x, or c for a channel; "yxt" is time last.
    dx, dt, times, q, boundary
        As in Record; several dx are in the order (z, y,) x.
    levels
        The intensities of the pure phases -1 and +1. A file of whole numbers needs them. "auto" finds them in the
        values, as ``phase_from_intensity`` does, which can do more.
    length_unit, time_unit
        Names of the units of dx and of the times. An own dx (or dt) without one is taken as a number without unit.
    mask
        Where values are missing: the name of an array in the file that is True (or 1) where a value was observed, the
        name of an .npy file, "finite" for all values that are no NaN and no fill value, or a mask as in Record.

    A file that cannot be used raises InputError, at once where its metadata are wrong, and when a slab is read where
    its values are.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/movie.npy", np.zeros((3, 8, 8)))
    ...     open_record(f"{folder}/movie.npy", dx=0.125, dt=0.1)
    Record(3 frames of 8 x 8, dx = 0.125, t = 0 to 0.2, q = unknown, boundary = not declared)
    """
    place, letters = as_path(path), check_axes(axes)
    known = {"dx": dx, "dt": dt, "times": times, "q": q, "boundary": boundary}
    known |= {"length_unit": length_unit, "time_unit": time_unit}
    given = {name: value for name, value in known.items() if value is not None}
    wanted = _wanted(given)
    form = format_to_read(place)
    found = form.read(place.absolute(), var, wanted)  # a worker elsewhere has another current folder
    check_version(place, found.metadata)
    _check_size(place, found)
    layout = layout_of(place, tuple(found.values.shape), _names(found), letters, found.chosen)
    metadata = _metadata(place, found, layout, wanted) | given
    metadata["mask"] = mask_of(place.absolute(), mask, found, layout, form.read)
    _ask_for_missing(place, found, layout, metadata, levels)
    found_out = isinstance(levels, str)
    values = _levelled(arranged(found.values, layout), (-1.0, 1.0) if found_out else levels)
    if found.bordered:
        values = inside_borders(place, values, metadata.get("boundary"))
    record = _record(place, values, metadata)
    return _with_found_levels(place, record, levels) if found_out else record


def _wanted(given: dict[str, Any]) -> frozenset[str]:
    """The metadata to look for: what no argument replaces. dt and times replace each other, and a number its unit."""
    clock = {"dt", "times", "time_unit"} if {"dt", "times"} & set(given) else set()
    mesh = {"length_unit"} if "dx" in given else set()
    return frozenset(METADATA) - set(given) - clock - mesh


def _check_size(path: Path, found: Found) -> None:
    if max(found.values.shape, default=0) > _LONGEST:  # before memory for the times of so many frames is taken
        raise InputError(f"{path} is damaged: its field has shape {tuple(found.values.shape)}; copy the file again")


def _names(found: Found) -> list[str] | None:
    """The names of the axes; None unless each has one."""
    return [axis.name for axis in found.axes] if found.axes and all(axis.name for axis in found.axes) else None


def _metadata(path: Path, found: Found, layout: Layout | None, wanted: frozenset[str]) -> dict[str, Any]:
    """Return what the file says: its metadata in our words first, then what its axes tell."""
    own = {name: value for name, value in found.metadata.items() if name not in (*MARKS, "mask_array")}
    if "times" in own:
        own.pop("dt", None)  # a file with both: the times say more
    if layout is None or found.axes is None:
        return own
    settled = set(own) | ({"length_unit"} if "dx" in own else set())
    settled |= {"dt", "times", "time_unit"} if {"dt", "times"} & set(own) else set()
    return mesh_metadata(path, found.axes, layout, wanted - settled) | own


def _ask_for_missing(path: Path, found: Found, layout: Layout | None, metadata: dict[str, Any], levels: Any) -> None:
    shape, dtype = tuple(found.values.shape), np.dtype(found.values.dtype)
    unknown = layout is None and 2 <= len(shape) <= 4
    missing = {
        "axes": unknown and (found.any_order or _time_last(shape, metadata, found)),
        "dx": "dx" not in metadata,
        "dt": not {"dt", "times"} & set(metadata),
        "levels": dtype.kind in "iu" and levels is None,
    }
    asked = [_ASKED[name] for name, lacks in missing.items() if lacks]
    if asked:
        what = " and no ".join(name for name, _, _ in asked).format(dtype=dtype)
        how = "; ".join(cure for _, cure, _ in asked).format(axes=("xt", "yxt", "zyxt")[min(len(shape), 4) - 2])
        options = ", ".join(option for _, _, option in asked)
        fit = {"q": "q=", "boundary": "boundary= (for error bands)"}
        later = " and ".join(words for name, words in fit.items() if name not in metadata)
        beside = f"; a fit will also ask for {later}" if later else ""
        raise InputError(f"{path} has no {what}: pass {how} (on the command line {options}){beside}")


def _time_last(shape: tuple[int, ...], metadata: dict[str, Any], found: Found) -> bool:
    """Whether an array without names looks like squares or cubes with time last: then the order is asked for."""
    *first, last = shape
    alike = len(first) > 1 and len(set(first)) == 1 and first[0] != last
    return alike and not is_own(found.metadata) and _count(metadata) != shape[0]


def _count(metadata: dict[str, Any]) -> int:
    """How many times are known; 0 for what is no list of them, which Record refuses."""
    try:
        return len(metadata.get("times", ()))
    except TypeError:
        return 0


def _levelled(values: Any, levels: Any) -> Any:
    if levels is None:
        return values
    pair = numbers(levels, "levels")
    if pair.shape != (2,) or not np.all(np.isfinite(pair)) or pair[0] == pair[1]:
        raise InputError(
            f"levels is {shown(levels)}: expected two different intensities (low, high), those of the phases -1 and +1"
        )
    if np.dtype(values.dtype).kind not in "iuf":
        return values  # complex numbers, masks and texts are refused next
    return Levelled(values, float(pair[0]), float(pair[1]))


def _with_found_levels(path: Path, record: Record, levels: Any) -> Record:
    """Convert intensities by the levels that are found in them."""
    if levels != "auto":
        raise InputError(f"levels is {shown(levels)}: expected 'auto', or two intensities (low, high)")
    try:
        return phase_from_intensity(record).record
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _record(path: Path, values: Any, metadata: dict[str, Any]) -> Record:
    frames, *mesh = values.shape or (0,)
    count = _count(metadata)
    if count > 1 and count != frames and mesh and count == mesh[-1]:
        raise InputError(
            f"{path} has {count} times, and the axes of the field have {', '.join(map(str, values.shape))} places: "
            f"where time is the last axis, pass axes='{'zyx'[3 - len(mesh) :]}t' (on the command line --axes)"
        )
    try:
        return Record(values, **metadata)
    except (ValueError, TypeError, OverflowError) as error:  # InputError is a ValueError
        raise InputError(f"{path}: {error}") from error
