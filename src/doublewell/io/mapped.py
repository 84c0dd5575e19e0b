"""Mapped: numbers that lie in a file as they are, from a known byte on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import reading
from doublewell.io.view import Index, ranges

__all__ = ["MappedArray"]


class MappedArray:
    """An array in a part of a file, of which only what is sliced is read; the file is open only meanwhile."""

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C"
    ) -> None:
        self.path, self.offset, self.order = path, offset, order
        self.shape, self.dtype, self.ndim = tuple(shape), np.dtype(dtype), len(shape)
        end = offset + int(np.prod(shape, dtype=object)) * self.dtype.itemsize
        if end > path.stat().st_size:
            raise InputError(
                f"{path} is cut short: its field ends at byte {end}, the file at {path.stat().st_size}; "
                "copy the file again"
            )

    def __getitem__(self, index: Index) -> NDArray[Any]:
        with reading(self.path, "file"):
            mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)
            return np.array(mapped[ranges(index, self.shape)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)
