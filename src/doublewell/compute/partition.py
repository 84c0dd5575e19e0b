"""Tiling: a record cut into tiles whose trajectories are read one by one, each within a budget of memory.

A tile is a range of frames and of cells along every axis; every value is in one of them. Each is read as a window of
its own, with a border of some cells and a first field that are estimated: what these take, the law does not get. So
tiles are as large as the budget allows, and how it is shared between time and space follows from what both cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

import numpy as np

from doublewell.errors import InputError, option
from doublewell.observation.look import GROUP, mean_picture
from doublewell.record import Cells, Record

LIBRARIES = 950 * 10**6  # bytes that Python, its libraries and compiling take; 810 MB were measured, without a check
_SMALLEST = 8  # cells of a window along an axis inside its border
_FEWEST = 5  # frames of a slab
_START = 2.0  # q |G'| t that a first field takes of a slab's time: it carries no information on the law before
_LONGEST = 12.0  # q |G'| t of a slab: fields that grow from a rough start cannot be followed longer
_MORE = 1.35  # times as many parts along an axis, where they are all of one length then
_LOOKS = 3  # times in a slab at which it is looked at
_PURE = 0.9  # of the phase value: beyond it a smoothed field is a pure phase
_AXES = "zyx"
_DECLARED = 60  # times that a record with a declared boundary is held while it is read
_STEPS = 3  # from frame to frame, before the law is known


@dataclass(frozen=True)
class Region:
    """A part of a record: frames and, along each space axis, cells, each as (first, past the last).

    Regions that are a partition of all frames and cells have all centres, each once: a centre belongs to the region
    that its own frame and cell lie in, however far its support reaches beyond.
    """

    frames: tuple[int, int]
    cells: Cells

    @classmethod
    def whole(cls, record: Record) -> Region:
        """Return the region that is all of a record."""
        return cls((0, record.frames), tuple((0, n) for n in record.mesh))


def window_copies(size: int, substeps: int) -> int:
    """Return how many times a window is held, as float64, while it is read with `size` unknowns of the law.

    Solver steps keep their fields for the adjoint, and every unknown has its tangent, twice.
    """
    return 12 * substeps + 3 * size + 10


def whole_bytes(record: Record, size: int) -> int:
    """Return what reading a whole record takes, libraries and all, with `size` unknowns of the law."""
    copies = window_copies(size, _STEPS) if record.boundary in (None, "open") else _DECLARED
    return tile_memory(copies, prod(record.shape))


def tile_memory(copies: int, values: int) -> int:
    """Return what reading a tile of so many values takes, libraries and all."""
    return LIBRARIES + 8 * copies * values


def check_room(memory: int) -> None:
    """Refuse a budget that leaves nothing for a tile, before anything is read."""
    if memory <= LIBRARIES:
        raise InputError(
            f"memory is {shown_bytes(memory)}: expected more than {shown_bytes(LIBRARIES)}, which Python, its "
            "libraries and compiled programs take in the trajectory fit; give more memory, or use "
            f"{option('method', 'weak')}"
        )


def make_tiles(record: Record, *, copies: int, rate: float, memory: int, border: int = 2) -> tuple[Region, ...]:
    """Cut a record into tiles, slab after slab; `copies` is what reading holds of one, `memory` a budget in bytes.

    `rate` is q |G'|, how fast the law acts, `border` the width of a window's border in cells. Of all numbers of slabs
    the one is taken whose tiles, as large as they fit, lose least to borders and first fields. Tiles of an axis have
    one length where that takes few more of them, else two: every shape is compiled.
    """
    room, smallest = (memory - LIBRARIES) // (8 * copies), _SMALLEST + 2 * border
    numbers = range(1, max(record.frames // _FEWEST, 1) + 1)
    plans = [plan for slabs in numbers if (plan := _plan(record, slabs, room, smallest))]
    span = float(record.times[-1] - record.times[0])
    short = [plan for plan in plans if rate * span / len(plan[0]) <= _LONGEST]
    if not plans:
        need = tile_memory(copies, min(_FEWEST, record.frames) * smallest ** len(record.mesh))
        raise InputError(
            f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(need)} to read tiles of a record of "
            f"{record.mesh} cells; give more memory"
        )

    def kept(plan: list[list[tuple[int, int]]]) -> float:
        """Return the fraction of a record's information that its tiles keep, roughly."""
        growth = rate * span / len(plan[0])
        return growth / (growth + _START) * prod(1.0 - 2 * border * len(parts) / parts[-1][1] for parts in plan[1:])

    frames, *cells = max(short or plans[-1:], key=kept)
    return tuple(Region(slab, tile) for slab in frames for tile in product(*cells))


def _plan(record: Record, slabs: int, room: int, smallest: int) -> list[list[tuple[int, int]]] | None:
    """Return the parts of each axis, time first, for a number of slabs; None where no tile fits."""
    counts = [slabs, *([1] * len(record.mesh))]
    while True:
        parts = []
        for size, count, more in zip(record.shape, counts, (1.0, *[_MORE] * len(record.mesh)), strict=True):
            most = min(int(more * count), size // smallest)  # a few more, where they are all of one length then
            even = next((n for n in range(count, most + 1) if size % n == 0), count)
            parts.append(list(pairwise(round(k * size / even) for k in range(even + 1))))
        if prod(max(stop - start for start, stop in axis) for axis in parts) <= room:
            return parts
        pairs = zip(record.mesh, counts[1:], strict=True)
        sides = [n / count if n >= smallest * (count + 1) else 0.0 for n, count in pairs]
        if not any(sides):
            return None
        counts[1 + int(np.argmax(sides))] += 1


def tile_shape(region: Region) -> tuple[int, ...]:
    """Return frames and cells of a tile."""
    return tuple(stop - start for start, stop in (region.frames, *region.cells))


def tile_name(number: int, region: Region) -> str:
    """Return a tile in words, its last frame and cells included.

    >>> tile_name(3, Region((0, 15), ((24, 48), (0, 24))))
    'tile 3 (frames 0 to 14, y 24 to 47, x 0 to 23)'
    """
    axes = _AXES[-len(region.cells) :]
    places = ", ".join(f"{axis} {low} to {high - 1}" for axis, (low, high) in zip(axes, region.cells, strict=True))
    return f"tile {number} (frames {region.frames[0]} to {region.frames[1] - 1}, {places})"


def tile_record(record: Record, region: Region) -> Record:
    """Read one tile: a record of its own, a window of which nothing outside is known."""
    start, stop = region.frames
    mask = None if record.mask is None else record.observed(start, stop, region.cells)
    mask = None if mask is None or mask.all() else mask
    values, times = record.slab(start, stop, region.cells), record.times[start:stop]
    return record.replace(values, times=times, boundary="open", mask=mask, grey=None)


def interface_fraction(record: Record, region: Region) -> float:
    """Return the fraction of a tile's cells that lie between the phases, smoothed over five frames and three cells.

    The first, the middle and the last frames are looked at, and the largest fraction of the three counts. What noise is
    left is a fifteenth or so in two dimensions, so that it neither makes an interface nor hides one.
    """
    from scipy.ndimage import uniform_filter

    start, stop = region.frames
    size, most = min(GROUP, stop - start), 0.0
    for first in sorted({start + round(k * (stop - start - size) / (_LOOKS - 1)) for k in range(_LOOKS)}):
        mean, _ = mean_picture(record, (first, first + size), region.cells)
        known = np.isfinite(mean)
        weight = uniform_filter(known.astype(np.float64), 3, mode="nearest")
        smooth = uniform_filter(np.where(known, mean, 0.0), 3, mode="nearest") / np.maximum(weight, 1e-12)
        most = max(most, float(np.mean(known & (np.abs(smooth) < _PURE))))
    return most


def shown_bytes(size: float) -> str:
    """Return a size in words.

    >>> shown_bytes(2_140_000_000), shown_bytes(350e6), shown_bytes(900)
    ('2.1 GB', '350 MB', '900 bytes')
    """
    if size < 1e6:
        return f"{size:.0f} bytes"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
