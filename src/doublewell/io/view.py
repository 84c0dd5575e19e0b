"""View: arrays in other axes, or in other numbers, that are read only where they are sliced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Index", "Levelled", "View", "places", "ranges"]

Index = slice | tuple[slice, ...]


def ranges(index: Index, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return a slice or some slices as one plain slice for each axis.

    >>> ranges(slice(2, None), (5, 4))
    (slice(2, 5, 1), slice(0, 4, 1))
    """
    given = index if isinstance(index, tuple) else (index,)
    whole = (*given, *[slice(None)] * (len(shape) - len(given)))
    return tuple(slice(*part.indices(n)) for part, n in zip(whole, shape, strict=True))


def places(ranges: list[range]) -> Iterator[tuple[int, ...]]:
    """Go through a grid one place at a time; itertools.product holds all ranges, and a damaged shape is huge."""
    if not ranges:
        yield ()
        return
    for i in ranges[0]:
        for rest in places(ranges[1:]):
            yield (i, *rest)


class View:
    """A stored array with its axes in another order, some of them left out at one place, the ends perhaps cut.

    `order` names the axes of the stored array in the new order, `fixed` the place of each axis that is left out, and
    `shape` what is kept of the new axes, all of them where it is None.
    """

    def __init__(
        self, values: Any, order: Sequence[int], fixed: dict[int, int], shape: tuple[int, ...] | None = None
    ) -> None:
        self.values, self.order, self.fixed = values, tuple(order), dict(fixed)
        self.shape = tuple(int(values.shape[axis]) for axis in order) if shape is None else shape
        self.dtype, self.ndim = np.dtype(values.dtype), len(self.order)
        chunks = getattr(values, "chunks", None)
        self.chunks: tuple[int, ...] | None = None if chunks is None else tuple(chunks[axis] for axis in order)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        inner = [slice(None)] * len(self.values.shape)
        for axis, part in zip(self.order, ranges(index, self.shape), strict=True):
            inner[axis] = part
        for axis, place in self.fixed.items():
            inner[axis] = slice(place, place + 1)
        block = np.asarray(self.values[tuple(inner)])
        turned: NDArray[Any] = block.transpose([*self.order, *self.fixed])
        return turned.reshape(turned.shape[: self.ndim])  # the axes that are left out have one place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)


class Levelled:
    """Intensities as phase values: `low` becomes -1 and `high` +1, in float64, when they are read."""

    def __init__(self, values: Any, low: float, high: float) -> None:
        self.values, self.low, self.high = values, low, high
        self.shape: tuple[int, ...] = tuple(values.shape)
        self.dtype, self.ndim = np.dtype(np.float64), len(self.shape)
        self.chunks: tuple[int, ...] | None = getattr(values, "chunks", None)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        counts = np.asarray(self.values[index]).astype(np.float64)
        return (2.0 * counts - (self.low + self.high)) / (self.high - self.low)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)
