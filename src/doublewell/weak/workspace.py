"""Workspace: what the kernel is given for one support, and the memory it works in, as plain tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.weak.compiled import jit
from doublewell.weak.folding import BLOCK
from doublewell.weak.vectors import CHUNK, LANES

__all__ = ["BATCH", "TILE", "Reading", "Ring", "Scratch", "Taps", "band", "ring_rows", "up"]

BATCH = 4  # rows along y taken in together
_BAND = 16  # least rows smoothed along y together
_LINE = 8  # numbers in a line of the caches
_APART = 8  # numbers between the columns of a block, which must not share their places in the caches
_TILES = 96  # tiles along y whose moments are held together, at least
TILE = BATCH * CHUNK  # centres of a tile along y


class Taps(NamedTuple):
    """The weights of a support: along time one row for each centre frame, to whole fours; along space one for all."""

    time_value: Array
    time_first: Array
    z_value: Array
    z_second: Array
    y_value: Array
    y_second: Array
    x_value: Array
    x_second: Array


class Ring(NamedTuple):
    """What a support keeps from batch to batch: smoothed rows, means, moments not yet folded, and how far it is.

    state = (first row not yet smoothed along y, moments in the block, all moments).
    """

    queue: Array
    means: Array
    block: Array
    state: NDArray[np.int64]

    @classmethod
    def of(cls, columns: int, frames: int, planes: int, cells: int, reach: int) -> Ring:
        """Make room for tiles of so many centres, for taps that reach so far along y."""
        size = up(frames, LANES) // LANES * planes * up(cells, BATCH) // BATCH * ring_rows(reach) * CHUNK
        queue, means, block = _aligned(columns + 1, size), _aligned(1, size)[0], _aligned(columns, BLOCK + _APART)
        return cls(queue, means, block, np.zeros(3, np.int64))


class Reading(NamedTuple):
    """One support on one tile: centres (t0, t1, z0, z1, y0, y1, x0, x1) in slab indices, and half-lengths of the taps.

    ``halves`` are those of (time value, time first, z value, z second, y value, y second, x value, x second). Centres
    where complete[y, t, z, x], counted from the tile's first centre, is False are left out; empty, it leaves out none.
    """

    tile: tuple[int, ...]
    halves: tuple[int, ...]
    taps: Taps
    complete: NDArray[np.bool_]
    ring: Ring
    triangle: Array


class Scratch(NamedTuple):
    """Memory that holds nothing from one batch to the next.

    It is not cleared, nor that of a ring: what is read without having been written reaches unused places only.
    """

    feature: Array
    smooth: Array
    across: Array
    moment: Array
    places: NDArray[np.int64]
    quads: NDArray[np.int64]
    singles: NDArray[np.int64]

    @classmethod
    def of(cls, columns: int, frames: int, planes: int, cells: int, reach: int) -> Scratch:
        """Make room for so many frames, planes and cells, halos included, and for taps that reach so far along y."""
        tiles, line = _TILES + up(band(reach) + BATCH, BATCH) // BATCH, up(planes * cells, CHUNK)
        beyond = BATCH * (cells + 1)  # what whole fours of planes and cells read past the end, and nobody uses
        smooth, across = _aligned(2, (line + beyond) * CHUNK)
        return cls(
            _aligned(columns - 1, (frames + LANES) * BATCH * line), smooth, across, _aligned(columns, tiles * TILE),
            np.empty((tiles, 3), np.int64), np.empty(tiles * CHUNK, np.int64), np.empty(tiles * TILE + LANES, np.int64),
        )  # fmt: skip


def _aligned(rows: int, columns: int) -> Array:
    """Return memory, not cleared, that begins at a line of the caches; rows of whole vectors stay aligned then."""
    memory = np.empty(rows * columns + _LINE)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + rows * columns].reshape(rows, columns)


@jit()
def up(n: int, unit: int) -> int:
    """Round a number up to whole units."""
    return int((n + unit - 1) // unit * unit)


@jit()
def band(reach: int) -> int:
    """Return the rows that are smoothed along y together: as many as their taps reach, so that few are loaded twice."""
    return int(max(_BAND, up(2 * reach, BATCH)))


@jit()
def ring_rows(reach: int) -> int:
    """Return the rows of a ring: those that the taps of a band reach, and the batches that begin and end it."""
    return int(up(2 * reach + 1 + band(reach) + 2 * BATCH, BATCH))
