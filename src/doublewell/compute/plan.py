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

from doublewell.compute.memory import shown_bytes
from doublewell.errors import InputError
from doublewell.law import LinearFamily
from doublewell.observation.bands import BLOCK
from doublewell.record import Cells, Record
from doublewell.weak import CPU, Processor, Region, Support, window_of
from doublewell.weak.reel import READ_BYTES, chunk_frames
from doublewell.weak.weights import MARGIN, half_cells

__all__ = ["LIBRARIES", "look_rows", "make_plan", "slab_bytes"]

LIBRARIES = 350 * 10**6  # bytes that Python and its libraries take before anything is read
_LOOK_FRAMES = 14  # frames, as float64, that a look at the record holds at once
_SCRATCH = 48 * 2**20  # bytes of the kernel
_MASKS = 10  # bytes a value while complete supports are sought
_SLAB_BYTES = 256 * 10**6  # of float64 in a slab, about a second of work
_REGIONS = 20_000  # more than these are not made of a very large record: a scheduler takes about a millisecond for each
_HALOS = 6  # least length of a slab in halos: a third of it is read twice at most


def make_plan(
    record: Record, family: LinearFamily, supports: Sequence[Support], memory: int, processor: Processor = CPU
) -> tuple[Region, ...]:
    """Cut a record into regions, in the order in which their evidence is merged; `memory` is a budget in bytes."""
    tiles = _tiles(record, family, supports, memory, processor)
    points = max(int(np.prod([high - low for low, high in cells])) for cells in tiles)
    halo = max(support.frames for support in supports) + MARGIN
    length = max(_HALOS * halo, _SLAB_BYTES // (8 * points), record.frames * len(tiles) // _REGIONS, 1)
    edges = _edges(record.frames, max(1, round(record.frames / length)), chunk_frames(record.values))
    return tuple(Region(frames, cells) for frames in pairwise(edges) for cells in tiles)


def slab_bytes(
    record: Record, family: LinearFamily, supports: Sequence[Support], region: Region, processor: Processor = CPU
) -> int:
    """Return the memory that reading one region takes, at most, beside the libraries."""
    held, block = window_of(record, family, supports, region, processor)
    cells = int(np.prod([high - low for low, high in block.cells]))
    item = 4 if np.dtype(record.values.dtype).itemsize <= 4 else 8
    halo = max(support.frames for support in supports) + MARGIN
    step = max(held - 2 * halo, 1)
    part = max(READ_BYTES, 8 * cells * chunk_frames(record.values))
    window = cells * (held + step) * item
    mask = 0 if record.mask is None else cells * (held + step + _MASKS * held)
    return window + mask + 4 * part + _SCRATCH


def _tiles(
    record: Record, family: LinearFamily, supports: Sequence[Support], memory: int, processor: Processor
) -> list[Cells]:
    """Cut the mesh into the fewest tiles that fit: the longest side is cut first, never x."""
    counts = [1] * len(record.mesh)
    while True:
        edges = [_edges(n, count, chunk) for n, count, chunk in zip(record.mesh, counts, _chunks(record), strict=True)]
        widest = Region((0, record.frames), _widest(record, supports, edges))
        need = slab_bytes(record, family, supports, widest, processor)
        if LIBRARIES + need <= memory:
            return list(product(*(list(pairwise(one)) for one in edges)))
        sides = [n / count if n > count else 0.0 for n, count in zip(record.mesh[:-1], counts[:-1], strict=True)]
        if not any(sides):
            raise InputError(
                f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(LIBRARIES + need)} for a record of "
                f"{record.mesh} cells with these supports; give more memory, or shorter supports"
            )
        counts[int(np.argmax(sides))] += 1


def _widest(record: Record, supports: Sequence[Support], edges: Sequence[list[int]]) -> Cells:
    """Return along each axis the part that is longest with its halo."""
    length = max(support.length for support in supports)
    halos = [half_cells(length / h) + MARGIN for h in record.dx]
    return tuple(
        max(pairwise(one), key=lambda part: min(n, part[1] + halo) - max(0, part[0] - halo))
        for one, halo, n in zip(edges, halos, record.mesh, strict=True)
    )


def look_rows(record: Record, memory: int) -> int:
    """Return how many rows of the first space axis a look at the record may hold at once, all where they fit."""
    row = _LOOK_FRAMES * 8 * int(np.prod(record.mesh[1:]))
    rows = (memory - LIBRARIES) // row
    if rows >= record.mesh[0]:
        return record.mesh[0]
    least = LIBRARIES + 4 * BLOCK * row
    if memory < least or len(record.mesh) == 1:
        need = LIBRARIES + record.mesh[0] * row if len(record.mesh) == 1 else least
        raise InputError(
            f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(need)} for a first look at a record of "
            f"{record.mesh} cells; give more memory"
        )
    return int(rows) // BLOCK * BLOCK - 2 * BLOCK  # a band has neighbours on both sides


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
