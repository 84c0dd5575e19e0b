"""Arrays that a record takes: read only where they are sliced, with named axes (xarray), and masks."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, numbers, shown
from doublewell.hints import Array
from doublewell.units import unit_name

Index = slice | tuple[slice, ...]
Block = tuple[slice, ...]  # one plain slice per axis
Values = NDArray[Any]
Span = tuple[int | None, int | None]  # (first, past the last), None for the end of the axis
Box = Sequence[Span]  # one for each space axis
FINITE = "finite"  # the mask of all values that are numbers
_GROUP = 32 * 2**20  # bytes of whole frames held at once where a region needs them
_TIME = re.compile(r"t|times?|frames?|steps?|time_?steps?|dates?|datetime", re.IGNORECASE)
_SPACE = re.compile(
    r"[xyz]([^a-z].*)?|[ijk]|rows?|col(umn)?s?|lat(itude)?|lon(gitude)?|width|height|depth", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class LazyArray:
    """An array u[t, ...] that is read where it is sliced, by frames and by region.

    ``read(block)`` returns the values of one plain slice per axis. It must be picklable, because an array travels to
    worker processes without its values. ``chunks`` are the numbers of cells that are stored together, None where that
    is not known, and ``files`` the files or folders that hold the values. ``functions`` are the conversions between
    these and here, and ``base`` is the array before the last of them.
    """

    read: Callable[[Block], Values]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None = None
    files: tuple[Path, ...] = ()
    functions: tuple[Callable[..., Values], ...] = ()
    base: Any = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, index: Index) -> Values:
        return self.read(ranges(index, self.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        return np.array(self[:], dtype=dtype, copy=copy)

    def map(self, function: Callable[..., Values], dtype: Any = np.float64) -> LazyArray:
        """Convert each value by a function of arrays."""
        functions = (*self.functions, function)
        read = partial(_mapped, self, function)
        return replace(self, read=read, dtype=np.dtype(dtype), functions=functions, base=self)

    def map_frames(
        self, function: Callable[[Values, int], Values], mesh: tuple[int, ...], dtype: Any = np.float64
    ) -> LazyArray:
        """Convert whole frames: ``function(frames, first)`` returns frames of another mesh; `first` is their number."""
        changed, read = self.map(function, dtype), partial(_mapped_frames, self, function)
        return replace(changed, read=read, shape=(self.shape[0], *mesh), chunks=None)

    def transpose(self, order: Sequence[int], fixed: Mapping[int, int] | None = None) -> LazyArray:
        """Put the axes in another order; `fixed` has the position on each axis that is left out."""
        shape = tuple(self.shape[axis] for axis in order)
        chunks = None if self.chunks is None else tuple(self.chunks[axis] for axis in order)
        read = partial(_transposed, self, tuple(order), dict(fixed or {}))
        return replace(self, read=read, shape=shape, chunks=chunks, base=None)

    def part(self, *spans: tuple[int, int]) -> LazyArray:
        """Keep (first, past the last) of each of the leading axes."""
        shape = (*(stop - start for start, stop in spans), *self.shape[len(spans) :])
        aligned = self.chunks is not None and not any(a % n for (a, _), n in zip(spans, self.chunks, strict=False))
        read = partial(_part, self, tuple(start for start, _ in spans))
        return replace(self, read=read, shape=shape, chunks=self.chunks if aligned else None, base=None)


@dataclass(frozen=True)
class GreyScale:
    """Bring the grey values `low` and `high` of the pure phases to -1 and +1; integers are exact."""

    low: float
    high: float

    def __call__(self, values: Values) -> Array:
        """Convert grey values."""
        return np.asarray((2.0 * values.astype(np.float64) - (self.low + self.high)) / (self.high - self.low))


class PhaseScale(GreyScale):
    """Bring the phases `low` and `high` of values to -1 and +1; NaN stays NaN."""


def check_levels(levels: Any) -> Array:
    """Return two different intensities (low, high)."""
    pair = numbers(levels, "levels")
    if pair.shape != (2,) or not np.all(np.isfinite(pair)) or pair[0] == pair[1]:
        raise InputError(
            f"levels is {shown(levels)}: expected two different intensities (low, high), those of the phases -1 and +1"
        )
    return pair


def lazy(values: Any) -> LazyArray:
    """Return anything with shape, dtype and slicing as a LazyArray, one as it is; nothing is read."""
    if isinstance(values, LazyArray):
        return values
    chunks = getattr(values, "chunks", None)
    known = isinstance(chunks, tuple) and all(isinstance(n, int) for n in chunks)  # dask has tuples there
    shape = tuple(int(n) for n in values.shape)
    return LazyArray(partial(_sliced, values), shape, np.dtype(values.dtype), chunks if known else None)


def ranges(index: Index, shape: Sequence[int]) -> Block:
    """Return a slice or some slices as one plain slice for each axis.

    >>> ranges(slice(2, None), (5, 4))
    (slice(2, 5, 1), slice(0, 4, 1))
    """
    given = index if isinstance(index, tuple) else (index,)
    whole = (*given, *[slice(None)] * (len(shape) - len(given)))
    return tuple(slice(*part.indices(n)) for part, n in zip(whole, shape, strict=True))


def _sliced(source: Any, block: Block) -> Values:
    """Read of an array of any library; whole frames need no more than a slice, which is all some of them know."""
    whole = all(part == slice(0, n, 1) for part, n in zip(block[1:], source.shape[1:], strict=True))
    values = source[block[0] if whole else block]
    if isinstance(values, np.ma.MaskedArray):  # below the mask lie arbitrary numbers
        values = np.ma.filled(values.astype(np.float64), np.nan)
    return np.asarray(values)


def _mapped(source: LazyArray, function: Callable[[Values], Values], block: Block) -> Values:
    return function(source.read(block))


def _mapped_frames(source: LazyArray, function: Callable[[Values, int], Values], block: Block) -> Values:
    """Convert some frames at a time, so that a region of many frames does not hold them all."""
    frames, *cells = block
    stored = 1 if source.chunks is None else source.chunks[0]
    size = stored * max(1, _GROUP // (stored * 8 * int(np.prod(source.shape[1:], dtype=object))))
    parts, start = [], frames.start
    while start < frames.stop:
        stop = min((start // size + 1) * size, frames.stop)
        values = function(source[start:stop], start)
        parts.append(np.ascontiguousarray(values[(slice(None), *cells)]))
        start = stop
    joined: Values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return joined[:: frames.step]


def _transposed(source: LazyArray, order: tuple[int, ...], fixed: Mapping[int, int], block: Block) -> Values:
    inner = [slice(None)] * source.ndim
    for axis, part in zip(order, block, strict=True):
        inner[axis] = part
    for axis, position in fixed.items():
        inner[axis] = slice(position, position + 1)
    turned = source[tuple(inner)].transpose([*order, *fixed])
    return turned.reshape(turned.shape[: len(order)])  # the axes that are left out have one cell


def _part(source: LazyArray, starts: tuple[int, ...], block: Block) -> Values:
    moved = [slice(a + part.start, a + part.stop, part.step) for a, part in zip(starts, block, strict=False)]
    return source.read((*moved, *block[len(starts) :]))


@dataclass(frozen=True, eq=False)
class Coordinate:
    """The positions, or times, along a named axis and their unit."""

    name: str
    values: Values
    unit: str | None


def unwrapped(u: Any, mask: Any) -> tuple[Any, Any, Coordinate | None, list[Coordinate]]:
    """Return array, mask, times, and coordinates by axis of an xarray or a masked array: time first, then (z, y,) x.

    The times are None, and the list is empty, where coordinates do not state them.
    """
    clock, space = None, []
    if hasattr(u, "data_vars"):
        names = ", ".join(str(name) for name in u.data_vars)
        raise InputError(f"the field is an xarray Dataset ({names}): expected one DataArray; pass dataset[name]")
    if hasattr(u, "coords") and u.ndim > 1:  # another shape is refused next
        dims = record_order(u.dims)
        mask, u = _named_axes(mask, u, dims), u.transpose(*dims)
        clock, *axes = [_coordinate(u, name) for name in dims]
        space = [] if None in axes else [axis for axis in axes if axis is not None]
        u = _unnamed(u)
    if isinstance(u, np.ma.MaskedArray):
        if np.ma.is_masked(u) and mask is not None:
            raise InputError(
                "the field is a masked array and mask= is given too: expected one of them; pass u.data and "
                "mask=~np.ma.getmaskarray(u) & mask"
            )
        u, mask = u.data, ~np.ma.getmaskarray(u) if np.ma.is_masked(u) else mask
    return u, mask, clock, space


def _coordinate(u: Any, name: Hashable) -> Coordinate | None:
    """Return the coordinate of an axis with its unit; dates and durations become seconds later."""
    if name not in u.coords:
        return None
    values, unit = u.coords[name].values, u.coords[name].attrs.get("units")
    return Coordinate(str(name), values, "s" if values.dtype.kind in "mM" else unit_name(unit))


def record_order(dims: Sequence[Hashable]) -> list[Hashable]:
    """Return names of axes in the order of a record: time, then z, y, x; other names of space stay as they are.

    >>> record_order(("x", "y", "time"))
    ['time', 'y', 'x']
    """
    clock = time_axis(dims)
    space = [name for axis, name in enumerate(dims) if axis != clock]
    letters = [str(name).lower() for name in space]
    if set(letters) <= set("xyz") and len(set(letters)) == len(letters):
        space.sort(key=lambda name: str(name).lower(), reverse=True)
    return [dims[clock], *space]


def time_axis(dims: Sequence[Hashable], *, advice: str | None = None) -> int:
    """Return which of the named axes is time: the one with such a name, or the first unless it is one of space.

    `advice` is what the error advises where that is not a new name for an axis.

    >>> time_axis(("y", "x", "frames"))
    2
    """
    names = [str(name) for name in dims]
    clocks = [axis for axis, name in enumerate(names) if _TIME.fullmatch(name)]
    if len(clocks) == 1:
        return clocks[0]
    if clocks or _SPACE.fullmatch(names[0]):
        which = "several axes could be" if clocks else "none of the axes is known to be"
        advice = advice or "rename it, for example u.rename({'" + names[-1] + "': 'time'})"
        raise InputError(
            f"the axes are named {', '.join(names)}, and {which} time: expected one of the names time, t, frame or "
            f"step; {advice}"
        )
    return 0


def check_mask(mask: Any, values: Any) -> Any:
    """Return a mask on the axes of the field, each of full length or 1.

    Taken are the shape of a frame (the same in all frames), (frames,) for dropped frames, as many axes as the field
    has, each of full length or 1, and "finite". Only a mask of the full length in time and space stays where it is
    stored; others are read.
    """
    shape = frames, *mesh = tuple(int(n) for n in values.shape)
    expected = f"{shape[1:]} (fixed in time), {(frames,)} (dropped frames) or {shape} (each value)"
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
    given = tuple(int(n) for n in mask.shape)
    if given == shape[1:] == (frames,):
        raise InputError(
            f"mask has shape {given}, and the record has as many frames as cells: expected the shape {(frames, 1)} for "
            f"dropped frames or {(1, frames)} for missing cells"
        )
    target = {shape[1:]: (1, *mesh), (frames,): (frames, *[1] * len(mesh))}.get(given, given)
    if len(target) != len(shape) or not all(n in (1, m) for n, m in zip(target, shape, strict=True)):
        raise InputError(f"mask has shape {given}: expected {expected}; True where a value was observed")
    if given != shape:
        mask = np.array(mask[:], dtype=bool).reshape(target)
    elif hasattr(mask, "coords"):
        mask = _unnamed(mask)
    if isinstance(mask, np.ndarray) and not mask.any():
        raise InputError(
            "mask is False everywhere: expected True where a value was observed; invert it, or leave it out"
        )
    if isinstance(mask, np.ndarray):
        mask = mask.view()
        mask.flags.writeable = False
    return mask


def spans(span: Span, size: int) -> tuple[int, int]:
    """Return first and past the last of a span along an axis.

    >>> spans((2, None), 8)
    (2, 8)
    """
    if not isinstance(span, Sequence) or len(span) != 2:
        raise InputError(f"{shown(span)}: expected (first, past the last), None for the end of an axis")
    return 0 if span[0] is None else span[0], size if span[1] is None else span[1]


def block_of(part: Any, block: tuple[slice, ...]) -> Any:
    """Return a block of values or of a mask, whose axes of one cell stay."""
    own = tuple(slice(0, 1) if n == 1 else kept for n, kept in zip(part.shape, block, strict=True))
    if all((s.start, s.stop) == (0, n) for s, n in zip(own, part.shape, strict=True)):
        return part
    return part[own] if isinstance(part, np.ndarray) else lazy(part).part(*((s.start, s.stop) for s in own))


def masked_too(kept: Values, mask: Values, first: int) -> Values:  # noqa: ARG001
    """Return a mask of frames without the cells that are left out."""
    return mask & kept


def missing_fraction(mask: Any) -> float | None:
    """Return the fraction of values that are missing; None where that is not known without reading a file."""
    return float(1.0 - np.mean(mask)) if isinstance(mask, np.ndarray) else None


def _named_axes(mask: Any, field: Any, dims: Sequence[Hashable]) -> Any:
    """Bring a mask to the axes `dims` of an xarray field: by name, or in the field's own order.

    Axes that a named mask has not get the length 1.
    """
    if mask is None or not hasattr(mask, "shape"):
        return mask
    if not hasattr(mask, "dims"):
        if len(mask.shape) != field.ndim or tuple(dims) == tuple(field.dims):
            return mask
        mask = type(field)(mask, dims=field.dims)
    unknown = [str(name) for name in mask.dims if name not in field.dims]
    if unknown:
        names = ", ".join(str(name) for name in field.dims)
        raise InputError(f"mask has an axis {unknown[0]!r}: expected axes of the field ({names}); rename it")
    whole = mask.expand_dims([name for name in field.dims if name not in mask.dims])
    return whole.transpose(*dims)


def _unnamed(array: Any) -> Any:
    """Take the stored array of an xarray one; without dask a file would be read whole, so that it is sliced later."""
    return lazy(array) if array.chunks is None else array.data
