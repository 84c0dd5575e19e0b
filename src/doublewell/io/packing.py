"""Packing: numbers that netCDF and xarray store as value = scale_factor * number + add_offset, with a fill value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.io.view import Index

__all__ = ["unpacked"]


class Unpacked:
    """A stored array whose numbers are scaled when they are read; fill values become NaN, which a slab refuses."""

    def __init__(self, values: Any, scale: float, offset: float, fills: tuple[float, ...]) -> None:
        self.values, self.scale, self.offset, self.fills = values, scale, offset, fills
        self.shape: tuple[int, ...] = tuple(values.shape)
        self.dtype, self.ndim = np.dtype(np.float64), len(self.shape)
        self.chunks: tuple[int, ...] | None = getattr(values, "chunks", None)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        stored = np.asarray(self.values[index])
        block = stored.astype(np.float64)
        lost = np.isin(stored, np.array(self.fills).astype(stored.dtype)) if self.fills else None
        if (self.scale, self.offset) != (1.0, 0.0):
            block = block * self.scale + self.offset
        if lost is not None:
            block[lost] = np.nan
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)


def unpacked(values: Any, attributes: Mapping[str, Any]) -> Any:
    """Return the array as it is meant by its attributes, the array itself where they say nothing.

    A fill value alone does not make whole numbers into others: they are still intensities.
    """
    scale, offset = (_number(attributes.get(name)) for name in ("scale_factor", "add_offset"))
    kind = np.dtype(values.dtype).kind
    found = [_number(attributes.get(name)) for name in ("_FillValue", "missing_value")]
    fills = tuple(number for number in found if number is not None and np.isfinite(number))
    if kind not in "iuf" or (scale is None and offset is None and (kind != "f" or not fills)):
        return values
    return Unpacked(values, 1.0 if scale is None else scale, 0.0 if offset is None else offset, fills)


def _number(value: Any) -> float | None:
    try:
        return float(np.asarray(value).item()) if np.asarray(value).dtype.kind in "iuf" else None
    except (TypeError, ValueError, OverflowError):
        return None
