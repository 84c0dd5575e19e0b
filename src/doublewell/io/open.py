"""open_record and save: a file on disk as a Record; what the file does not state is asked for by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import entry_points
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.atomic import replace_file
from doublewell.errors import InputError, option, shown
from doublewell.io import format as files
from doublewell.io.axes import Layout, arranged, check_axes, layout_of, mesh_metadata
from doublewell.io.format import MARKS, METADATA, USUAL_SUFFIX, Format, StoredField
from doublewell.io.formats import FORMATS
from doublewell.io.formats.zarr import is_store
from doublewell.io.result_file import RESULT_SUFFIX, result_bytes
from doublewell.record import Boundary, Note, Record, phase_from_intensity
from doublewell.record.arrays import FINITE, Box, GreyScale, Span, check_levels, lazy
from doublewell.record.borders import check_nodes, stored_twice, without_last
from doublewell.record.levels import Flatten
from doublewell.record.phase import Drift
from doublewell.result import Result
from doublewell.units import check_dimension, factor, parse_quantity

_ROUNDING = 1e-6  # of the largest real part: the imaginary parts of a real field after a Fourier transform
_LONGEST = 10**8  # frames, or cells along an axis
_CLOCK = {"dt", "times", "time_unit"}
_LOSSY = "record PNG or TIFF instead, or convert it to PNG where there is nothing else"
_GROUP = "doublewell.formats"  # of entry points
_OWN = {item.name: item for item in FORMATS}


def open_record(
    path: str | PathLike[str],
    *,
    var: str | None = None,
    axes: str | None = None,
    dx: float | Sequence[float] | None = None,
    dt: float | None = None,
    times: ArrayLike | None = None,
    q: float | str | None = None,
    boundary: Boundary | None = None,
    levels: tuple[float, float] | Literal["auto"] | None = None,
    length_unit: str | None = None,
    time_unit: str | None = None,
    mask: Any = None,
    flatten: Flatten | None = "auto",
    bleaching: bool | None = None,
    drift: Drift | None = "auto",
    dark: Any = None,
    nodes: bool | None = None,
    frames: Span = (0, None),
    window: Box | None = None,
    leave_out: Sequence[Box] = (),
) -> Record:
    """Open a movie on disk, of one of the formats that docs/files.md lists, or a folder with one file per frame.

    What the file states of mesh, times, units, q and boundary is used, and an argument takes its place. A mesh spacing
    or frame interval that is missing is asked for by name; q and boundary may stay unknown. Only what a slab needs is
    read, where the format allows it.

    Parameters
    ----------
    var
        The name of the field, where the file holds several; u, or the only array with 2 to 4 axes, needs none.
    axes
        One letter for each axis of the array in the file: t, z, y, x, or c for a channel; "yxt" is time last.
    dx, dt, times, q, boundary
        As in Record; several dx are in the order (z, y,) x. q may have a unit where those of the mesh and the times are
        known: "1e-12 m^2/s".
    levels
        The intensities of the pure phases -1 and +1. "auto", the default for a file of integers, finds them in the
        values, with all faults of a camera, as ``phase_from_intensity`` does; ``record.grey`` states what was found.
    length_unit, time_unit
        Names of the units of dx and of the times. An own dx (or dt) without one is taken as a number without unit.
    mask
        Where values are missing: the name of an array in the file that is True (or 1) where a value was observed, the
        name of an .npy file, "finite" for all values that are neither NaN nor a fill value, or a mask as in Record.
    flatten, bleaching, drift, dark
        Of grey values whose levels are found, as in ``phase_from_intensity``; `dark` may also be a file of dark frames.
    nodes
        True where values lie on nodes, the first and the last on the borders, as in Record; known of meshes of finite
        elements. Without it a periodic field that repeats its first layer as its last has that left out, and
        ``record.notes`` states so; with False all is taken as it is.
    frames, window, leave_out
        The frames (first, past the last) and the window of the mesh that are used, and boxes of it that hold nothing
        of the field, such as a scale bar, as in ``Record.crop``: ((10, 50), (0, None)) are rows 10 to 49. Grey levels
        are found in what is left.

    A file that cannot be used raises InputError, at once where its metadata are wrong, and when a slab is read where
    its values are.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/movie.npy", np.zeros((3, 8, 8)))
    ...     open_record(f"{folder}/movie.npy", dx=0.125, dt=0.1)
    Record(3 frames of 8 x 8, dx = 0.125, t = 0 to 0.2, q = unknown, boundary = not declared)
    """
    place, letters = files.as_path(path), check_axes(axes)
    known = {"dx": dx, "dt": dt, "times": times, "q": q, "boundary": boundary}
    known |= {"length_unit": length_unit, "time_unit": time_unit}
    given = {name: value for name, value in known.items() if value is not None}
    wanted = frozenset(METADATA) - _settled(given)
    form, absolute = format_to_read(place), place.absolute()  # a worker elsewhere has another current folder
    field = form.open(absolute, var, wanted)
    files.check_version(place, field.metadata)
    if max(field.values.shape, default=0) > _LONGEST:  # before memory for the times of so many frames is taken
        raise InputError(f"{place} is damaged: its field has shape {tuple(field.values.shape)}; copy the file again")
    with files.reading(place):
        names = [axis.name for axis in field.axes or ()]
        layout = layout_of(place, tuple(field.values.shape), names if all(names) else [], letters, field.chosen)
        metadata = {name: item for name, item in field.metadata.items() if name not in (*MARKS, "mask_array")}
        if "times" in metadata:
            metadata.pop("dt", None)  # a file with both: the times tell more
        if layout is not None and field.axes is not None:
            metadata = mesh_metadata(field.axes, layout, wanted - _settled(metadata)) | metadata
        metadata |= given
        if isinstance(q, str):
            metadata["q"] = _diffusion(q, metadata)
        grey = np.dtype(field.values.dtype).kind in "iu"
        levels = "auto" if grey and levels is None else levels
        _ask_for_missing(place, field, layout, metadata)
        metadata["mask"] = _mask(absolute, mask, field, layout, form)
        values = _real(arranged(field.values, layout))
        if levels is not None and np.dtype(values.dtype).kind in "iuf":  # other types are refused next
            low, high = (-1.0, 1.0) if isinstance(levels, str) else map(float, check_levels(levels))
            values = lazy(values).map(GreyScale(low, high))
            metadata.setdefault("origin", "camera")
        count, *mesh = values.shape or (0,)
        if mesh and count != _count(metadata) == mesh[-1] > 1:
            raise InputError(
                f"there are {mesh[-1]} times, and the axes of the field have {', '.join(map(str, values.shape))} cells:"
                f" where time is the last axis, pass {option('axes', 'zyx'[3 - len(mesh) :] + 't')}"
            )
        bordered, notes = check_nodes(field.bordered if nodes is None else nodes), field.notes
        try:
            record = Record(values, **metadata, notes=notes, nodes=bordered)
            if nodes is None and not bordered and record.boundary == "periodic" and not files.is_own(field.metadata):
                record = _period_once(record)
            record = _cropped(record, boundary, frames, window, leave_out)
        except (ValueError, TypeError, OverflowError) as error:  # of metadata in the file that are not numbers
            raise InputError(str(error)) from error
        if not isinstance(levels, str):
            return record
        if levels != "auto":
            raise InputError(f"levels is {shown(levels)}: expected 'auto', or two intensities (low, high)")
        background = _frames(dark) if isinstance(dark, str | PathLike) else dark
        return phase_from_intensity(record, flatten=flatten, bleaching=bleaching, drift=drift, dark=background).record


def _real(values: Any) -> Any:
    """Return complex numbers as their real parts; imaginary parts beyond rounding are refused."""
    if np.dtype(values.dtype).kind != "c":
        return values
    part = np.empty(0, values.dtype).real.dtype
    return _real_part(values) if isinstance(values, np.ndarray) else lazy(values).map(_real_part, part)


def _real_part(block: NDArray[Any]) -> NDArray[Any]:
    largest = float(np.max(np.abs(block.imag), initial=0.0))
    if not largest <= _ROUNDING * float(np.max(np.abs(block.real), initial=0.0)):
        raise InputError(
            f"the field is complex ({block.dtype}), with imaginary parts up to {largest:.3g}: expected real phase "
            "values; save its real part, or its absolute value"
        )
    return block.real


def _period_once(record: Record) -> Record:
    """Return a periodic record without the layers that repeat the first along an axis, with a note of it."""
    if not (twice := stored_twice(record.values)):
        return record
    names = " and ".join("zyx"[-len(record.mesh) :][axis] for axis in twice)
    words = f"the first and the last layer along {names} are the same, as both ends of a period: the last is left out"
    mask = None if record.mask is None else without_last(record.mask, twice)[:]
    notes = (*record.notes, Note("period-stored-twice", words))
    return record.replace(without_last(record.values, twice), mask=mask, notes=notes)


def _diffusion(text: str, metadata: dict[str, Any]) -> float:
    """Return q of a text such as "1e-12 m^2/s" in the units of the record."""
    number, unit = parse_quantity(text, option("q"))
    if unit is None:
        return number
    length, time = metadata.get("length_unit"), metadata.get("time_unit")
    if length is None or time is None:
        raise InputError(
            f"{option('q')} is in {unit}: pass {option('length_unit')} and {option('time_unit')} too, or "
            f"{option('q')} as a plain number"
        )
    check_dimension(unit, "m^2/s", option("q"))
    return number * factor(((unit, 1),), ((length, 2), (time, -1)))


def _cropped(
    record: Record, boundary: Boundary | None, frames: Span, window: Box | None, leave_out: Sequence[Box]
) -> Record:
    if window is not None and boundary in ("periodic", "neumann"):
        raise InputError(f"{option('window')} is cut out of something larger: leave out {option('boundary', boundary)}")
    return record.crop(frames, window, leave_out)


def _frames(path: str | PathLike[str]) -> Any:
    """Return the picture or the frames of a file without a camera's corrections."""
    place = files.as_path(path)
    stored = format_to_read(place).open(place.absolute(), None, frozenset())
    with files.reading(place):
        return np.asarray(stored.values[:])


def _settled(known: dict[str, Any]) -> set[str]:
    """Return the metadata that need not be looked for: dt and times replace each other, and a number its unit."""
    clock = _CLOCK if {"dt", "times"} & set(known) else set()
    return set(known) | clock | ({"length_unit"} if "dx" in known else set())


def _ask_for_missing(path: Path, field: StoredField, layout: Layout | None, metadata: dict[str, Any]) -> None:
    shape = tuple(field.values.shape)
    *first, last = shape or (0,)
    # an array without names that looks like squares or cubes with time last
    squares = len(first) > 1 and len(set(first)) == 1 and first[0] != last
    unsure = squares and not files.is_own(field.metadata) and _count(metadata) != shape[0]
    letters = ("xt", "yxt", "zyxt")[min(max(len(shape), 2), 4) - 2]
    missing = []  # what it is, and how to give it
    if layout is None and 2 <= len(shape) <= 4 and (field.any_order or unsure):
        such = option("axes", letters)
        missing.append(("order of its axes", f"{option('axes')}, one letter per axis, such as {such}"))
    if "dx" not in metadata:
        missing.append(("mesh spacing", f"{option('dx')}, one number or one per space axis"))
    if not {"dt", "times"} & set(metadata):
        missing.append(("frame interval", f"{option('dt')}, one number, or {option('times')}, one per frame"))
    if missing:
        what, how = " and no ".join(name for name, _ in missing), "; ".join(advice for _, advice in missing)
        raise InputError(f"{path} has no {what}: pass {how}")


def _count(metadata: dict[str, Any]) -> int:
    """Return how many times are known; 0 for what is not a list of them, which Record refuses."""
    try:
        return len(metadata.get("times", ()))
    except TypeError:
        return 0


def _mask(path: Path, mask: Any, field: StoredField, layout: Layout | None, form: Format) -> Any:
    """Return the mask of a record in its axes: as given, by its name in the file, or from an .npy file."""
    if mask is None and files.is_own(field.metadata):
        mask = field.metadata.get("mask_array")
    if not isinstance(mask, str | PathLike) or mask == FINITE:
        return mask
    npy = str(mask).lower().endswith(".npy")
    form, path = (_OWN["npy"], files.as_path(mask)) if npy else (form, path)
    stored = form.open(path, None if npy else str(mask), frozenset())
    kind = np.dtype(stored.values.dtype).kind
    if kind not in "biu":
        raise InputError(
            f"mask {shown(str(mask))} has type {stored.values.dtype}: expected booleans, or 0 (missing) and 1 "
            "(observed)"
        )
    values = stored.values if kind == "b" else lazy(stored.values).map(partial(np.not_equal, 0), bool)
    shape, given = tuple(field.values.shape), tuple(int(n) for n in values.shape)
    if len(given) == len(shape):
        return arranged(values, layout) if given == shape else np.asarray(values[:])
    own, names = ([axis.name for axis in item.axes or ()] for item in (stored, field))
    positions = [names.index(name) for name in own if name and name in names]
    if own and len(positions) == len(own) and positions == sorted(positions):  # by name
        lengths = [given[positions.index(k)] if k in positions else 1 for k in range(len(names))]
        whole: NDArray[Any] = arranged(np.broadcast_to(np.asarray(values[:]).reshape(lengths), shape), layout)
        return whole[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in whole.strides)]
    if layout is not None and len(given) == len(layout.space) > 1:
        order = sorted(layout.space)
        return np.asarray(values[:]).transpose([order.index(axis) for axis in layout.space])
    return np.asarray(values[:])


def save(value: Record | Result, path: str | PathLike[str]) -> None:
    """Save a record as .npz, .zarr or .nc, or a result as .json; what was there before is replaced.

    Loading gives the same values to the last bit (of a trajectory result on more than a million cells all but the
    fitted initial field, which only a page needs). The new file is written beside the old one and takes its place when
    it is complete, so that an interruption leaves the old file. Records are written slab by slab.

    >>> import tempfile, numpy as np
    >>> from doublewell.io import open_record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1, q=1.0), f"{folder}/movie.npz")
    ...     open_record(f"{folder}/movie.npz").q
    1.0
    """
    place = files.as_path(path)
    if isinstance(value, Record):
        form = format_to_write(place)
        if form is None or form.write is None:
            written = _suffixes(item for item in FORMATS if item.write is not None)
            raise InputError(f"{place}: expected a name that ends in {written} for a Record (a Result goes to .json)")
        form.save(value, place)
    elif isinstance(value, Result):
        if place.suffix.lower() != RESULT_SUFFIX:
            raise InputError(f"{place}: expected a name that ends in {RESULT_SUFFIX} for a Result")
        content = result_bytes(value)
        with replace_file(place) as temporary:
            temporary.write_bytes(content)
    else:
        raise InputError(f"a {type(value).__name__} cannot be saved: expected a Record or a Result")


def format_to_read(path: Path) -> Format:
    """Return the format of an existing file by its suffix, of a folder by what is in it, of a pattern by its end."""
    known = _by_suffix(path)
    with files.reading(path, "expected"):
        if files.is_pattern(path):
            if known is None or not known.series:
                raise InputError(
                    f"{path} is a pattern for several files: expected one that ends in "
                    f"{_suffixes(item for item in FORMATS if item.series)}, with one file per frame"
                )
            return known
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a file or a zarr folder; check the name and the folder")
        if known is None and path.is_dir():
            known = _OWN["zarr"] if is_store(path) else _series_in(path)
        content = files.content_of(path) if path.is_file() else None
        if content == files.LFS:
            raise InputError(f"{path} is {content}, a few lines that stand for the file: get it with git lfs pull")
    suffix = USUAL_SUFFIX.get(content)
    if known is None:
        advice = f"give it the suffix {suffix}" if suffix else "convert the file"
        hint = f"by its first bytes it is {content}: {advice}" if content else advice
        hint = f"it is a picture packed with loss ({content}): {_LOSSY}" if content == "JPEG" else hint
        hint = "a .json file is a saved result, not a movie" if path.suffix.lower() == RESULT_SUFFIX else hint
        raise InputError(f"{path} has no suffix of a record: expected {_suffixes(FORMATS)}; {hint}")
    if content is not None and known.contents and content not in known.contents:
        advice = f"give it the suffix {suffix}, or save it again" if suffix else "convert the file"
        raise InputError(f"{path} holds {content} by its first bytes, not {known.name}: {advice}")
    return known


def _series_in(path: Path) -> Format:
    """Return the format of the frames in a folder; a folder without any is named as what it is."""
    found = Counter(item.suffix.lower() for item in path.iterdir() if item.is_file() and item.name[0] != ".")
    for item in FORMATS:
        if item.series and any(suffix in found for suffix in item.suffixes):
            return item
    listed = ", ".join(f"{count} {suffix or 'without a suffix'}" for suffix, count in found.most_common(6)) or "none"
    lossy = f"; pictures packed with loss: {_LOSSY}" if {".jpg", ".jpeg"} & set(found) else ""
    raise InputError(
        f"{path} is a folder without zarr metadata and without frames (its files: {listed}): expected one file per "
        f"frame, of {_suffixes(item for item in FORMATS if item.series)}, or a zarr store{lossy}"
    )


def format_to_write(path: Path) -> Format | None:
    """Return the format in which a record is written under this name, None when there is none."""
    known = _by_suffix(path)
    return known if known is not None and known.write is not None else None


def _suffixes(formats: Iterable[Format]) -> str:
    return ", ".join(suffix for item in formats for suffix in item.suffixes)


def _by_suffix(path: Path) -> Format | None:
    """Return the format of a suffix; those of other packages are imported only for a suffix that is not our own.

    MOOSE counts the files of a run whose mesh changes: run.e, run.e-s002.
    """
    suffix = re.sub(r"-s[0-9]+$", "", path.suffix.lower())
    for known in FORMATS:
        if suffix in known.suffixes:
            return known
    for point in entry_points(group=_GROUP) if suffix else ():
        origin = f"the format {point.name!r} of another package ({point.value})"
        advice = "update that package, or remove it"
        try:
            added = point.load()
        except Exception as error:
            raise InputError(f"{origin} cannot be loaded ({type(error).__name__}: {error}): {advice}") from error
        if not isinstance(added, Format):
            raise InputError(
                f"{origin} is a {type(added).__name__}: expected a doublewell.io.format.Format; {advice}"
            )  # fmt: skip
        if suffix in added.suffixes:
            return added
    return None
