"""Plan: a record cut into regions, each of which is read within a budget of memory.

Frames are held in a window that moves along time, so memory asks for tiles in space and not for short slabs: where a
window of whole frames is too large, tiles are cut across all axes but x. Slabs along time are as long as keeps the
frames that two of them read small, and short enough that little is lost with one of them. The plan follows from the
record, the supports and the budget alone, and so does the answer, to the last bit; the number of workers has no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Region, Support, window_of
from doublewell.evidence.reel import READ_BYTES, chunk_frames
from doublewell.law import LinearFamily
from doublewell.record import Cells, Record
from doublewell.stream.memory import shown_bytes

__all__ = ["LIBRARIES", "LOOK_FRAMES", "check_look", "make_plan", "slab_bytes"]

LIBRARIES = 350 * 10**6  # bytes that Python and its libraries take before anything is read
LOOK_FRAMES = 10  # frames, as float64, that a look at the record holds at once
_SCRATCH = 48 * 2**20  # bytes of the kernel
_MASKS = 10  # bytes a value while complete supports are sought
_SLAB_BYTES = 256 * 10**6  # of float64 in a slab, a few seconds of work
_HALOS = 6  # least length of a slab in halos: a third of it is read twice at most


def make_plan(
    record: Record, family: LinearFamily, supports: Sequence[Support], memory: int, *, slab: int = _SLAB_BYTES
) -> tuple[Region, ...]:
    """Cut a record into regions, in the order in which their evidence is merged; `slab` is the size of one in bytes."""
    check_look(record, memory)
    tiles = _tiles(record, family, supports, memory)
    points = max(int(np.prod([high - low for low, high in cells])) for cells in tiles)
    halo = max(support.frames for support in supports) + 2
    length = max(_HALOS * halo, slab // (8 * points), 1)
    edges = _edges(record.frames, max(1, round(record.frames / length)), chunk_frames(record.values))
    return tuple(Region(frames, cells) for frames in pairwise(edges) for cells in tiles)


def slab_bytes(record: Record, family: LinearFamily, supports: Sequence[Support], region: Region) -> int:
    """Return the memory that reading one region takes, at most, beside the libraries."""
    held, block = window_of(record, family, supports, region)
    cells = int(np.prod([high - low for low, high in block.cells]))
    item = 4 if np.dtype(record.values.dtype).itemsize <= 4 else 8
    halo = max(support.frames for support in supports) + 2
    step = max(held - 2 * halo, 1)
    part = max(READ_BYTES, 8 * cells * chunk_frames(record.values))
    window = cells * (held + step) * item
    mask = 0 if record.mask is None else cells * (held + step + _MASKS * held)
    return window + mask + 4 * part + _SCRATCH


def _tiles(record: Record, family: LinearFamily, supports: Sequence[Support], memory: int) -> list[Cells]:
    """Cut the mesh into the fewest tiles that fit: the longest side is cut first, never x."""
    counts = [1] * len(record.mesh)
    while True:
        edges = [_edges(n, count, chunk) for n, count, chunk in zip(record.mesh, counts, _chunks(record), strict=True)]
        tiles = list(product(*(list(pairwise(one)) for one in edges)))
        widest = max(tiles, key=lambda cells: np.prod([high - low for low, high in cells]))
        need = slab_bytes(record, family, supports, Region((0, record.frames), widest))
        if LIBRARIES + need <= memory:
            return tiles
        sides = [n / count if n > count else 0.0 for n, count in zip(record.mesh[:-1], counts[:-1], strict=True)]
        if not any(sides):
            raise InputError(
                f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(LIBRARIES + need)} for a record of "
                f"{record.mesh} cells with these supports; give more memory, or shorter supports"
            )
        counts[int(np.argmax(sides))] += 1


def check_look(record: Record, memory: int) -> None:
    """Refuse a budget that the first look at a record does not fit."""
    need = LIBRARIES + LOOK_FRAMES * 8 * int(np.prod(record.mesh))
    if need > memory:
        raise InputError(
            f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(need)}, for the first look at a record "
            f"holds {LOOK_FRAMES} frames of {record.mesh} cells; give more memory"
        )


def _chunks(record: Record) -> tuple[int, ...]:
    """Return how many cells are stored together along each space axis, 1 where that is not known."""
    chunks = getattr(record.values, "chunks", None)
    if isinstance(chunks, tuple) and len(chunks) == len(record.shape) and all(isinstance(n, int) for n in chunks):
        return chunks[1:]
    return (1,) * len(record.mesh)  # dask has tuples there


def _edges(size: int, parts: int, multiple: int) -> list[int]:
    """Cut 0..size into nearly equal parts, at multiples where the parts are longer than two of them."""
    step = multiple if size >= 2 * multiple * parts else 1
    inner = {min(step * round(k * size / (parts * step)), size) for k in range(1, parts)}
    return sorted({0, size} | inner)
