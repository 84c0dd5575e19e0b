"""Record: a movie of a phase field with its mesh and times, checked; read slab by slab, never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat, starmap
from os import cpu_count
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.errors import InputError, check_spacing, is_whole, numbers, option, positive, shown, whole
from doublewell.hints import Array, Bools
from doublewell.record.arrays import (
    Box,
    Span,
    block_of,
    check_mask,
    lazy,
    masked_too,
    missing_fraction,
    spans,
    unwrapped,
)
from doublewell.record.borders import check_nodes, inside_borders, mask_inside
from doublewell.runtime import map_threads
from doublewell.units import common_length

Boundary = Literal["periodic", "neumann", "open"]
Origin = Literal["simulation", "camera"]
KNOWN = ("dx", "times", "q", "boundary", "length_unit", "time_unit", "origin")  # what is known of the values
Cells = tuple[tuple[int, int], ...]  # along each space axis (first, past the last)
_LARGE = 128 * 2**20  # bytes from which threads are worth starting
_THREADS = 8
_UNEVEN = 1e-3  # of a step: how far a point may lie from a regular axis
_BLURRED = 0.25  # of a step: the most that the round-off of a narrow type may excuse
_UNIT_LENGTH = 40  # characters


@dataclass(frozen=True)
class Note:
    """What was chosen or done when a record was read: a code for programs, a sentence, and whether results suffer."""

    code: str
    sentence: str
    matters: bool = False


@dataclass(frozen=True, init=False, eq=False)
class Record:
    """Hold an observed phase field u[t, (z, y,) x] with what is known of its mesh.

    Parameters
    ----------
    u
        Real phase values, pure phases at -1 and +1. Anything with ``shape``, ``dtype`` and slicing: NumPy,
        dask, zarr, or xarray with coordinates (which then supply ``dx`` and ``times``). One to three space
        axes.
    dx
        Mesh spacing, one number or one per space axis, in the order of the axes of u.
    dt, times
        Frame interval, or the times of all frames; give one of them.
    q
        Diffusion coefficient of u_t = q (Laplacian u - G(u)); None when it is not known.
    boundary
        "periodic", "neumann", "open" for a field of view cut out of something larger (nothing is assumed about the
        outside), or None when it is not declared: it is then treated as open.
    length_unit, time_unit
        Names of the units of dx and of the times, such as "um" and "s"; None when they are not known. They are kept
        and shown, and nothing is converted.
    mask
        True where a value was observed, False where it is missing; what lies there may be NaN and is never used. Of the
        shape of a frame (fixed in time), of the whole record, (frames,) for dropped frames, or any shape with the
        record's axes, each of full length or 1. "finite" marks all values that are finite numbers. A stored mask of the
        whole record is read slab by slab. The mask of a NumPy masked array is taken from it.
    origin
        "simulation": the phase values are exact. "camera": they were grey values, each the mean over a pixel. None
        where it is not known; contrast and offset are then estimated by a trajectory fit, as those of a camera are.
    grey
        How the phase values were made of grey values, as ``phase_from_intensity`` states it; reports show it.
    notes
        What ``open_record`` chose and did to the values; reports show it.
    nodes
        True where the values lie on nodes, of which the first and the last along each axis are on the borders. With
        "periodic" these are one node stored twice, and the last is left out; with "neumann" the values are brought to
        the middles of cells. The record then has one cell less along each axis.

    Metadata is checked here, values when a slab is read, so that a record may be larger than memory.

    >>> record = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1, q=1.0)
    >>> record.shape, record.dx, record.dt
    ((3, 8, 8), (0.125, 0.125), 0.1)
    """

    values: Any
    dx: tuple[float, ...]
    times: Array
    q: float | None
    boundary: Boundary | None
    length_unit: str | None
    time_unit: str | None
    origin: Origin | None
    mask: Any
    grey: Any
    notes: tuple[Note, ...]
    shape: tuple[int, ...]  #: Frames, then cells along each space axis.
    frames: int  #: Number of frames.
    mesh: tuple[int, ...]  #: Cells along each space axis.
    extent: tuple[float, ...]  #: Length of each space axis, cells times spacing.
    uniform: bool  #: Whether all frames are the same interval apart, to a thousandth of it.
    _step: float | None

    def __init__(
        self,
        u: Any,
        *,
        dx: float | Sequence[float] | None = None,
        dt: float | None = None,
        times: ArrayLike | None = None,
        q: float | None = None,
        boundary: Boundary | None = None,
        length_unit: str | None = None,
        time_unit: str | None = None,
        origin: Origin | None = None,
        mask: Any = None,
        grey: Any = None,
        notes: Sequence[Note] = (),
        nodes: bool | None = None,
    ) -> None:
        if hasattr(u, "coords") or isinstance(u, np.ma.MaskedArray):  # of xarray
            u, mask, clock, space = unwrapped(u, mask)
            if dx is None and space:
                steps = [coordinate_step(axis.values, axis.name) for axis in space]
                dx, unit = common_length(steps, [axis.unit for axis in space])
                length_unit = length_unit or unit
            if dt is None and times is None and clock is not None:
                times, time_unit = clock.values, time_unit or clock.unit
        values, boundary = check_values(u), check_boundary(boundary)
        if check_nodes(nodes) and boundary in ("periodic", "neumann"):
            mask = mask_inside(mask, values, boundary)
            values = inside_borders(values, boundary)
        frames, *cells = shape = tuple(map(int, values.shape))
        spacing, stamps = check_spacing(dx, len(cells)), check_times(dt, times, frames)
        step = regular_step(stamps)
        self.__dict__.update(
            values=values,
            dx=spacing,
            times=stamps,
            q=None if q is None else positive(q, "q", "the diffusion coefficient"),
            boundary=boundary,
            length_unit=check_unit(length_unit, "length_unit"),
            time_unit=check_unit(time_unit, "time_unit"),
            origin=check_origin(origin),
            mask=None if mask is None else check_mask(mask, values),
            grey=grey,
            notes=tuple(notes),
            shape=shape,
            frames=frames,
            mesh=shape[1:],
            extent=tuple(np.multiply(cells, spacing).tolist()),
            uniform=step is not None,
            _step=step,
        )

    @property
    def dt(self) -> float:
        """Frame interval of a record with uniform times."""
        if self._step is None:
            raise InputError(
                f"the frames are not evenly spaced (intervals {np.diff(self.times).min():g} to "
                f"{np.diff(self.times).max():g}): expected one frame interval; resample the record, "
                "or cut it where the interval changes"
            )
        return self._step

    def slab(self, start: int = 0, stop: int | None = None, cells: Cells | None = None) -> Array:
        """Read frames start..stop-1 as float64, checked to be finite; a read-only array.

        Values that the mask leaves out are 0. A NumPy float64 record without a mask gives a view, not a copy. `cells`
        are pairs (first, past the last), one per space axis, of a part of the mesh; only that part is read.
        """
        index = self._index(start, stop, cells)
        block = self.values[index if len(index) > 1 else index[0]]
        with np.errstate(over="ignore"):
            if isinstance(block, np.ma.MaskedArray):  # below the mask lie arbitrary numbers
                block = np.ma.filled(block.astype(np.float64), np.nan)
            slab = np.asarray(block).astype(np.float64, order="C", copy=False).view()
        if self.mask is not None:
            slab = np.where(self.observed(start, stop, cells), slab, 0.0)
        slab.flags.writeable = False
        if not np.isfinite(_total(slab)):
            _check_finite(slab, start, cells)
        return slab

    def observed(self, start: int = 0, stop: int | None = None, cells: Cells | None = None) -> Bools:
        """Read which values of frames start..stop-1 were observed; a read-only array, all True without a mask."""
        index = self._index(start, stop, cells)
        shape = (index[0].stop - index[0].start, *(self.mesh if cells is None else np.diff(cells)[:, 0].tolist()))
        if self.mask is None:
            return np.broadcast_to(np.True_, shape)
        part = tuple(slice(None) if n == 1 else part for n, part in zip(self.mask.shape, index, strict=False))
        return np.broadcast_to(np.asarray(self.mask[part if len(part) > 1 else part[0]], dtype=bool), shape)

    def _index(self, start: int, stop: int | None, cells: Cells | None) -> tuple[slice, ...]:
        """Return frames and cells as slices; of whole frames only theirs, which is all that some sources know."""
        stop = self.frames if stop is None else stop
        if not (is_whole(start) and is_whole(stop)):
            raise InputError(f"frames {shown(start)} to {shown(stop)}: expected integers")
        if not 0 <= start < stop <= self.frames:
            raise InputError(f"frames {start} to {stop} lie outside the record, which has {self.frames}")
        if cells is None or cells == tuple(zip(repeat(0), self.mesh)):
            return (slice(start, stop),)
        low, high = np.array(cells).T if np.shape(cells) == (len(self.mesh), 2) else (-1, -1)
        if not np.all((low >= 0) & (low < high) & (high <= np.array(self.mesh))):
            raise InputError(f"cells {shown(cells)} lie outside the mesh {self.mesh}: expected (first, past the last)")
        return (slice(start, stop), *starmap(slice, cells))

    def slabs(self, size: int) -> Iterator[tuple[int, Array]]:
        """Read the record in consecutive slabs of `size` frames: pairs of first frame and slab."""
        size = whole(size, "size", least=1, meaning="the frames of a slab")
        for start in range(0, self.frames, size):
            yield start, self.slab(start, min(start + size, self.frames))

    def clip(self, start: int, stop: int) -> Record:
        """Return the record of frames start..stop-1, without reading it."""
        return self.crop((start, stop))

    def crop(self, frames: Span = (0, None), window: Box | None = None, leave_out: Sequence[Box] = ()) -> Record:
        """Return the record of some frames, of a window of its mesh, or without bad places; nothing is read for it.

        A span is (first, past the last), where None is the end of the axis; `window` and each box of `leave_out` have
        one per space axis, in cells of this record. A window is cut out of something larger: its boundary is open. What
        is left out is missing in every frame.

        >>> Record(np.zeros((3, 8, 8)), dx=0.1, dt=1.0).crop((0, 2), ((2, 6), (0, None)), [((3, 4), (5, 7))])
        Record(2 frames of 4 x 8, dx = 0.1, t = 0 to 1, q = unknown, boundary = open, 6.25 % missing)
        """
        record = self
        if len(leave_out):
            kept = np.ones((1, *self.mesh), dtype=bool)
            for box in leave_out:
                kept[:, *self._index(0, 1, self._cells(box))[1:]] = False
            stored = self.mask is not None and not isinstance(self.mask, np.ndarray)
            both = lazy(self.mask).map_frames(partial(masked_too, kept), self.mesh, bool) if stored else kept
            record = self.replace(mask=both if stored or self.mask is None else self.mask & kept)
        cells = None if window is None else self._cells(window)
        start, stop = spans(frames, self.frames)
        block = (*self._index(start, stop, cells), *[slice(0, n) for n in self.mesh])[: len(self.shape)]
        values, mask = (part if part is None else block_of(part, block) for part in (record.values, record.mask))
        boundary = self.boundary if cells in (None, tuple(zip(repeat(0), self.mesh))) else "open"
        return record.replace(values, times=self.times[start:stop], mask=mask, boundary=boundary)

    def _cells(self, box: Box) -> Cells:
        """Return the cells of a box; _index refuses what lies outside."""
        if len(box) != len(self.mesh):
            raise InputError(f"{shown(box)} has {len(box)} spans: expected one per space axis, {len(self.mesh)} here")
        return tuple(spans(*pair) for pair in zip(box, self.mesh, strict=True))

    def replace(self, u: Any = None, **changes: Any) -> Record:
        """Return a record with other values or metadata (dx, times, q, boundary, units, origin, mask).

        What is not given stays, the mask too. None forgets: ``record.replace(q=None)`` has an unknown q, and
        ``record.replace(mask=None)`` no mask.
        """
        return Record(self.values if u is None else u, **self._known() | changes)

    def _known(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*KNOWN, "mask", "grey", "notes")}

    def __reduce__(self) -> Any:
        return partial(Record, **self._known()), (self.values,)  # a copy is checked and read-only like the original

    def plot(self, frame: int = 0, *, ax: Any = None) -> Any:
        """Draw a frame, counted from the end where negative, and return the Matplotlib axes; of a volume the middle z.

        `ax` are axes to draw in, else there is a new figure.
        """
        from doublewell.report.notebook import plot_record

        return plot_record(self, frame, ax)

    def to_xarray(self) -> Any:
        """Return all values as an xarray DataArray with times, positions and units; NaN where one is missing."""
        from doublewell.export.tables import record_array

        return record_array(self)

    def _repr_html_(self) -> str:
        from doublewell.report.notebook import record_html

        return record_html(self)

    def __repr__(self) -> str:
        mesh = f"{self.mesh[0]} cells (1-D)" if len(self.mesh) == 1 else " x ".join(str(n) for n in self.mesh)
        spacing = ", ".join(f"{h:.6g}" for h in dict.fromkeys(self.dx))
        q = "unknown" if self.q is None else f"{self.q:.6g}"
        length, time = (f" {unit}" if unit else "" for unit in (self.length_unit, self.time_unit))
        fraction = missing_fraction(self.mask)
        stored = "" if self.mask is None else ", with a stored mask"  # is not read for this
        times = f"{self.times[0]:.6g} to {self.times[-1]:.6g}{time}{'' if self.uniform else ' (uneven)'}"
        missing = stored if fraction is None else f", {100.0 * fraction:.3g} % missing"
        return (
            f"Record({self.frames} frames of {mesh}, dx = {spacing}{length}, t = {times}, q = {q}, "
            f"boundary = {self.boundary or 'not declared'}{missing})"
        )


def check_record(value: Any) -> Record:
    """Return a record as it is; anything else raises."""
    if not isinstance(value, Record):
        raise InputError(
            f"record is a {type(value).__name__}: expected a Record; make one with Record(u, dx=, dt=, q=) or "
            "open_record(path)"
        )
    return value


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
    if isinstance(values, np.ndarray):
        values = values.view()
        values.flags.writeable = False
    return values


def check_times(dt: float | None, times: Any, frames: int) -> Array:
    """Return the times of all frames from one interval or from all of them.

    Dates become seconds from the first, durations seconds. Times in a narrow type that are regular up to its round-off
    become the regular ones they stand for.
    """
    if (dt is None) == (times is None):
        got = "neither" if dt is None else "both"
        raise InputError(
            f"expected {option('dt')} (one frame interval) or {option('times')} (one per frame), got {got}"
        )
    if dt is not None:
        times = positive(dt, "dt", "the frame interval") * np.arange(frames)
    try:
        given = np.asarray(times)
    except ValueError:
        raise InputError("times is a ragged list: expected one number for each frame") from None
    if given.dtype.kind == "M" and given.size:
        given = given - given.flat[0]
    if given.dtype.kind == "m":
        given = given / np.timedelta64(1, "s")
    stamps = numbers(given, "times").copy()
    if stamps.shape != (frames,):
        raise InputError(f"times has shape {stamps.shape}: expected one time for each of the {frames} frames")
    if not np.all(np.isfinite(stamps)) or np.any(np.diff(stamps) <= 0):
        raise InputError("times must be finite and increase from frame to frame; sort or drop repeated frames")
    if given.dtype.kind == "f" and given.dtype.itemsize < stamps.dtype.itemsize:
        step = regular_step(stamps, float(np.finfo(given.dtype).eps))
        stamps = stamps if step is None else stamps[0] + step * np.arange(frames)
    stamps.flags.writeable = False
    return stamps


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


def check_boundary(boundary: Any, *, known: bool = False) -> Any:
    """Return the boundary, None where nothing is known of it; with `known` the outside must be."""
    kinds = get_args(Boundary)[: 2 if known else 3]
    if (known or boundary is not None) and not (isinstance(boundary, str) and boundary in kinds):
        others = "'open' (cut out of something larger) or None (not known)"
        expected = "or 'neumann', because the outside must be known here" if known else f"'neumann', {others}"
        raise InputError(f"boundary is {shown(boundary)}: expected 'periodic'{' ' if known else ', '}{expected}")
    return boundary


def check_origin(origin: Any) -> Any:
    """Return where values come from, None where it is not known."""
    if origin is not None and not (isinstance(origin, str) and origin in get_args(Origin)):
        raise InputError(f"origin is {shown(origin)}: expected 'simulation', 'camera' or None (not known)")
    return origin


def check_unit(unit: Any, name: str) -> str | None:
    """Return the name of a unit, None where it is not known; what it means is not looked at here."""
    if unit is None:
        return None
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > _UNIT_LENGTH:
        raise InputError(
            f"{name} is {shown(unit)}: expected the name of a unit, such as 'um' or 's', or None (not known)"
        )
    return str(unit.strip())


def _total(slab: Array) -> float:
    """Return the sum of all values: one pass without a temporary; a sum that overflows is not finite either."""
    with np.errstate(over="ignore", invalid="ignore"):  # holds for one thread
        if slab.nbytes < _LARGE:
            return float(np.sum(slab))
    parts = np.array_split(slab.reshape(-1), 4 * _THREADS * (1 + slab.nbytes // _LARGE))
    return float(sum(map_threads(min(_THREADS, cpu_count() or 1), _total, parts)))


def _check_finite(slab: Array, first: int, cells: Cells | None) -> None:
    """Refuse a slab with values that are not finite, and name the first of them; `first` is its first frame."""
    bad = ~np.isfinite(slab)
    if bad.any():
        frame, *cell = (int(i) for i in np.argwhere(bad)[0])
        cell = cell if cells is None else [i + low for i, (low, _) in zip(cell, cells, strict=True)]
        count = int(bad.sum())
        raise InputError(
            f"{count} {'value' if count == 1 else 'values'} in frames {first} to {first + slab.shape[0] - 1} "
            f"{'is' if count == 1 else 'are'} not finite, the first in frame {first + frame} at cell {tuple(cell)}: "
            f"expected finite phase values; pass {option('mask', 'finite')} where values are missing"
        )
