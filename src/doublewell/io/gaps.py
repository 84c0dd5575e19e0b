"""Gaps: a record with missing values as it is written, slab by slab."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.record import Record

__all__ = ["mask_blocks", "slabs_with_gaps"]


def slabs_with_gaps(record: Record, size: int) -> Iterator[tuple[int, Array]]:
    """Read a record as it is written: NaN where a value is missing, so that no other program takes it for one."""
    for start, slab in record.slabs(size):
        seen = record.seen(start, start + len(slab))
        yield start, slab if record.mask is None else np.where(seen, slab, np.nan)


def mask_blocks(record: Record, size: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Read the mask of a record as it is written: parts of `size` frames, or one where it is fixed in time."""
    frames = record.mask.shape[0]
    for start in range(0, frames, size):
        yield start, np.ascontiguousarray(record.mask[start : min(start + size, frames)], dtype=bool)
