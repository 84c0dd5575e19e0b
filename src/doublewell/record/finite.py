"""Finite: a slab is checked in one pass over its values, a large one by several threads."""

from __future__ import annotations

from os import cpu_count

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record.mask import Cells
from doublewell.threads import map_threads

__all__ = ["check_finite"]

_LARGE = 128 * 2**20  # bytes from which threads are worth starting
_THREADS = 8


def check_finite(slab: Array, first: int, cells: Cells | None) -> None:
    """Refuse a slab with values that are not finite, and name the first of them; `first` is its first frame."""
    if np.isfinite(_total(slab)):
        return
    bad = ~np.isfinite(slab)
    if bad.any():
        frame, *cell = (int(i) for i in np.argwhere(bad)[0])
        cell = cell if cells is None else [i + low for i, (low, _) in zip(cell, cells, strict=True)]
        count = int(bad.sum())
        number = "1 value" if count == 1 else f"{count} values"
        raise InputError(
            f"{number} in frames {first} to {first + slab.shape[0] - 1} {'is' if count == 1 else 'are'} not finite, "
            f"the first in frame {first + frame} at cell {tuple(cell)}: expected finite phase values; "
            "pass mask=np.isfinite(u) where values are missing"
        )


def _total(slab: Array) -> float:
    """Return the sum of all values: one pass without a temporary; a sum that overflows is not finite either."""
    if slab.nbytes < _LARGE:
        return _sum(slab)
    return sum(map_threads(min(_THREADS, cpu_count() or 1), _sum, np.array_split(slab, 4 * _THREADS)))


def _sum(part: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sum(part))
