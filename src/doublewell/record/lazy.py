"""LazyArray: an array that is read only where it is sliced; stored movies, masks and converted values are such."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

Index = slice | tuple[slice, ...]
Block = tuple[slice, ...]  # one plain slice per axis
Values = NDArray[Any]
_GROUP = 32 * 2**20  # bytes of whole frames held at once where a region needs them


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

    def map(self, function: Callable[[Values], Values], dtype: Any = np.float64) -> LazyArray:
        """Convert each value by a function of arrays."""
        return self._converted(partial(_mapped, self, function), function, dtype=np.dtype(dtype))

    def map_frames(
        self, function: Callable[[Values, int], Values], mesh: tuple[int, ...], dtype: Any = np.float64
    ) -> LazyArray:
        """Convert whole frames: ``function(frames, first)`` returns frames of another mesh; `first` is their number."""
        read = partial(_mapped_frames, self, function)
        return self._converted(read, function, shape=(self.shape[0], *mesh), dtype=np.dtype(dtype), chunks=None)

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
        starts = tuple(start for start, _ in spans)
        return replace(
            self, read=partial(_part, self, starts), shape=shape, chunks=self.chunks if aligned else None, base=None
        )

    def _converted(self, read: Callable[[Block], Values], function: Callable[..., Values], **changes: Any) -> LazyArray:
        return replace(self, read=read, functions=(*self.functions, function), base=self, **changes)


@dataclass(frozen=True)
class PhaseScale:
    """Bring the phases `low` and `high` of values to -1 and +1."""

    low: float
    high: float

    def __call__(self, values: Values) -> Array:
        """Convert values; NaN stays NaN."""
        exact = values.astype(np.float64)
        return np.asarray((exact - 0.5 * (self.low + self.high)) / (0.5 * (self.high - self.low)))


@dataclass(frozen=True)
class GreyScale:
    """Bring the grey values `low` and `high` of the pure phases to -1 and +1."""

    low: float
    high: float

    def __call__(self, values: Values) -> Array:
        """Convert grey values."""
        return np.asarray((2.0 * values.astype(np.float64) - (self.low + self.high)) / (self.high - self.low))


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
