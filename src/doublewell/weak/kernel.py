"""The fused weak kernel: features, smoothing, derivatives, mask and QR in one pass over a tile, for two supports.

Everything is written for four axes t, z, y, x; a missing space axis has one cell. What is made of a source is a table
of steps (form.py): arrays, as are the taps, so that a new equation, width or degree compiles nothing. A tile is walked
along y, four rows at a time: they are smoothed along t, z and x, and wait in a ring until the smoothing along y is
complete. Smoothing along t takes four centre frames at a time and lays them side by side, [x, row, frame]. So what lies
side by side is never the axis that is smoothed, and all loads are of whole vectors. Rows of the moment matrix live only
in a block of a few hundred, which Householder steps fold into R.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numba import njit

from doublewell.hints import Array, Bools
from doublewell.weak import loops
from doublewell.weak.loops import (
    ADD,
    BLOCK,
    CELLS,
    CHUNK,
    FAST,
    FOREVER,
    LANES,
    STORE,
    TURN,
    Integers,
    evaluate,
    fold,
    gather,
    jit,
    tile,
)

BATCH = 4  # rows along y taken in together
TILE = BATCH * CHUNK  # centres of a tile along y
_BAND = 16  # least rows smoothed along y together
_LINE = 8  # numbers in a line of the caches
_APART = 8  # numbers between the columns of a block, which must not share their places in the caches
_TILES = 96  # tiles along y whose moments are held together, at least
_NEVER = 1e300  # a mean that leaves a centre out
Box = tuple[int, int, int, int, int, int, int, int]  # first and past the last, along t, z, y, x
Sizes = tuple[int, int, int]  # centres along z and x, and cells along x with halos
Use = tuple[int, int, int]  # first tap, taps from an output to the next, number of taps


class Program(NamedTuple):
    """How one source becomes columns: the derivative of each smoothing along t, then steps along z, x and y.

    A row of steps is (result, what it is made of, first tap, number of taps, half-length of the taps, 1 to store or 0
    to add). The last results are columns, of ``columns`` the first for each; along y the half-length is its number in
    the list of them.
    """

    times: Integers
    z: Integers
    x: Integers
    y: Integers
    columns: Integers


class Ring(NamedTuple):
    """What a support keeps from batch to batch: smoothed rows, means, moments not yet folded, and how far it is.

    state = (first row not yet smoothed along y, moments in the block, all moments).
    """

    queue: Array
    means: Array
    block: Array
    state: Integers

    @classmethod
    def of(cls, entries: int, columns: int, frames: int, planes: int, cells: int, reach: int) -> Ring:
        """Make room for tiles of so many centres, for taps that reach so far along y."""
        size = up(frames, LANES) // LANES * planes * up(cells, BATCH) // BATCH * ring_rows(reach) * CHUNK
        queue, means, block = _aligned(entries, size), _aligned(1, size)[0], _aligned(columns, BLOCK + _APART)
        return cls(queue, means, block, np.zeros(3, np.int64))


class Reading(NamedTuple):
    """One support on one tile: centres (t0, t1, z0, z1, y0, y1, x0, x1) in slab indices, and how far taps reach.

    ``reach`` is the longest half-length of the taps along t, z, y and x; ``halves`` are those along y. Taps along time
    have one row for each centre frame, to whole fours; those along space are one list. Centres where
    complete[y, t, z, x], counted from the tile's first centre, is False are left out; empty, it leaves out none.
    """

    tile: tuple[int, ...]
    reach: tuple[int, ...]
    halves: Integers
    force: Program
    field: Program
    value: Array
    first: Array
    taps: Array
    complete: Bools
    ring: Ring
    triangle: Array


class Scratch(NamedTuple):
    """Memory that holds nothing from one batch to the next.

    It is not cleared, nor that of a ring: what is read without having been written reaches unused places only.
    """

    feature: Array
    powers: Array
    smooth: Array
    across: Array
    moment: Array
    places: Integers
    quads: Integers
    singles: Integers

    @classmethod
    def of(
        cls, columns: int, features: int, nodes: tuple[int, int], frames: int, planes: int, cells: int, reach: int
    ) -> Scratch:
        """Make room for so many frames, planes and cells, halos included, and for taps that reach so far along y."""
        tall, line = _TILES + up(band(reach) + BATCH, BATCH) // BATCH, up(planes * cells, CHUNK)
        beyond = BATCH * (cells + 1)  # what whole fours of planes and cells read past the end, and nobody uses
        smooth, across = (_aligned(count, (line + beyond) * CHUNK) for count in nodes)
        return cls(
            _aligned(features + 1, (frames + LANES) * BATCH * line), _aligned(4, CELLS), smooth, across,
            _aligned(columns, tall * TILE), np.empty((tall, 4), np.int64), np.empty(tall * CHUNK, np.int64),
            np.empty(tall * TILE + LANES, np.int64),
        )  # fmt: skip


def _aligned(rows: int, columns: int) -> Array:
    """Return memory, not cleared, that begins at a line of the caches; rows of whole vectors stay aligned then."""
    memory = np.empty(rows * columns + _LINE)
    first = -(memory.ctypes.data // memory.itemsize) % _LINE
    return memory[first : first + rows * columns].reshape(rows, columns)


@jit
def up(n: int, unit: int) -> int:
    """Round a number up to whole units."""
    return int((n + unit - 1) // unit * unit)


@jit
def band(reach: int) -> int:
    """Return the rows that are smoothed along y together: as many as their taps reach, so that few are loaded twice."""
    return int(max(_BAND, up(2 * reach, BATCH)))


@jit
def ring_rows(reach: int) -> int:
    """Return the rows of a ring: those that the taps of a band reach, and the batches that begin and end it."""
    return int(up(2 * reach + 1 + band(reach) + 2 * BATCH, BATCH))


@jit
def smooth_in_time(out: Array, source: Array, first: int, wide: int, count: int, taps: Array, t: int) -> None:
    """Smooth centre frames t..t+3 of some rows along time: source[frame, row, cell] to out[cell, row, frame]."""
    step, width = BATCH * wide, taps.shape[1]
    for r in range(count):
        for x in range(0, wide, CHUNK):
            to, at = (x * CHUNK + r * LANES, CHUNK, CHUNK * LANES), (first * step + r * wide + x, step, FOREVER, 0)
            tile(out, to, source, at, taps, (t * width, width, width), TURN)


@jit
def smooth_along_z(
    out: Array, source: Array, planes: int, wx: int, taps: Array, use: Use, skip: int, mode: int
) -> None:
    """Smooth along z, all rows and four frames at once: source[z, x, row, frame] to out in the same layout."""
    step = wx * CHUNK
    for z in range(0, planes, BATCH):
        for i in range(0, step, CHUNK):
            at = ((z + skip) * step + i, step, FOREVER, 0)
            tile(out, (z * step + i, step, LANES), source, at, taps, use, mode)


@jit
def smooth_along_x(
    queue: Array, at: int, room: int, source: Array, sizes: Sizes, taps: Array, use: Use, skip: int, mode: int
) -> None:
    """Smooth along x, or add it to what is there: source[z, x, row, frame] to queue[z, four x, row, x, frame]."""
    nz, nx, wx = sizes
    for z in range(nz):
        for x in range(0, nx, BATCH):
            place = ((z * wx + x + skip) * CHUNK, CHUNK, FOREVER, 0)
            tile(queue, (at, LANES, CHUNK), source, place, taps, use, mode)
            at += room * CHUNK


@jit
def mask_means(
    means: Array, slot: int, smooth: Array, frames: int, sizes: Sizes, first: int,
    complete: Bools, row: int, rows: int,
) -> None:  # fmt: skip
    """Lay out the means of four frames and rows as the queue is; what is not a centre gets one that leaves it out.

    The batch begins with centre row `row` of `rows`; complete[y, t, z, x] begins with the first of the frames.
    """
    nz, nx, wx = sizes
    across = up(nx, BATCH) // BATCH
    means[:, slot : slot + BATCH] = _NEVER
    for r in range(max(0, -row), min(BATCH, rows - row)):
        for z in range(nz):
            for x in range(nx):
                mean, k = means[z * across + x // BATCH, slot + r], x % BATCH * LANES
                source = (first + z * wx + x) * CHUNK + r * LANES
                for j in range(min(LANES, frames)):
                    if complete.size == 0 or complete[row + r, j, z, x]:
                        mean[k + j] = smooth[source + j]


@jit
def choose(
    means: Array, ready: int, rows: int, cut: float, at: int, quads: Integers, singles: Integers, kept: tuple[int, int]
) -> tuple[int, int]:
    """Append the places of kept centres of one tile, counted from `at`: fours of frames, and frames that are alone."""
    whole, alone = kept
    for r in range(rows):
        mean = means[(ready + r) % means.shape[0]]
        for k in range(0, CHUNK, LANES):
            n = 0
            for j in range(LANES):
                n += abs(mean[k + j]) < cut
            place = at + r * CHUNK + k
            if n == LANES:
                quads[whole] = place
                whole += 1
            else:  # without a branch for each, which noise would make hard to foresee
                for j in range(LANES):
                    singles[alone] = place + j
                    alone += abs(mean[k + j]) < cut
    return whole, alone


@jit
def smooth_along_y(
    moment: Array, queue: Array, entry: int, column: int, program: Program, taps: Array, places: Integers, back: int
) -> None:
    """Smooth the chosen tiles of one source along y: queue entries to columns of the moments.

    places[k] = (first place for each half-length of taps, end of the ring) of tile k; back is a ring's length. The
    tiles follow each other along y, so that most of what they need is in the nearest cache.
    """
    last = places.shape[1] - 1
    for step in range(program.y.shape[0]):
        result, node, first, width, half, fresh = program.y[step]
        out, source, use = moment[program.columns[result] + column], queue[entry + node], (first, 0, width)
        for k in range(places.shape[0]):
            at, end = places[k, half], places[k, last]
            if width == 1:  # no such axis
                for i in range(CHUNK):
                    out[k * TILE + i] = taps[first] * source[at + i] + (0.0 if fresh else out[k * TILE + i])
            else:
                tile(out, (k * TILE, CHUNK, LANES), source, (at, CHUNK, end, back), taps, use, STORE if fresh else ADD)


@jit
def take_source(
    reading: Reading, scratch: Scratch, box: Box, done: int, count: int, program: Program, c: int, entry: int
) -> None:
    """Smooth the rows of a batch of source c along t, z and x into entries of a support's ring, from `entry` on."""
    t0, t1, z0, z1, _, _, x0, x1 = reading.tile
    taps, queue, smooth, across = reading.taps, reading.ring.queue, scratch.smooth, scratch.across
    wx, room = box[7] - box[6], ring_rows(reading.reach[2])
    sizes, wide = (z1 - z0, x1 - x0, wx), up((box[3] - box[2]) * wx, CHUNK)
    chunks, first_z, first_x = sizes[0] * up(sizes[1], BATCH) // BATCH, z0 - box[2], x0 - box[6]
    for g in range(up(t1 - t0, LANES) // LANES):
        t, place = g * LANES, (g * chunks * room + done % room) * CHUNK
        for node in range(program.times.size):
            weights = reading.first if program.times[node] else reading.value
            frame = t0 - box[0] + t - weights.shape[1] // 2
            smooth_in_time(smooth[node], scratch.feature[c], frame, wide, count, weights, t)
        for step in range(program.z.shape[0]):
            result, node, first, width, half, fresh = program.z[step]
            mode = STORE if fresh else ADD
            smooth_along_z(across[result], smooth[node], sizes[0], wx, taps, (first, 0, width), first_z - half, mode)
        nodes = across if program.z.shape[0] else smooth
        for step in range(program.x.shape[0]):
            result, node, first, width, half, fresh = program.x[step]
            mode, use = STORE if fresh else ADD, (first, 0, width)
            smooth_along_x(queue[entry + result], place, room, nodes[node], sizes, taps, use, first_x - half, mode)
        if c + 1 == scratch.feature.shape[0]:  # the field: its first smoothing is the mean
            means = reading.ring.means[g * chunks * room * CHUNK : (g + 1) * chunks * room * CHUNK]
            row, rows = box[4] + done - reading.tile[4], reading.tile[5] - reading.tile[4]
            laid, centre = means.reshape((chunks, room, CHUNK)), first_z * wx + first_x
            own = reading.complete[:, t:]
            mask_means(laid, done % room, smooth[0], t1 - t0 - t, sizes, centre, own, row, rows)


@jit
def fold_band(reading: Reading, scratch: Scratch, cut: float, stop: int) -> None:
    """Smooth the rows up to `stop`, counted as those taken in, along y and fold their moments."""
    t0, t1, z0, z1, _, _, x0, x1 = reading.tile
    ring, quads, singles, halves = reading.ring, scratch.quads, scratch.singles, reading.halves
    moment, p, force = scratch.moment, scratch.feature.shape[0] - 1, reading.force
    places = scratch.places[:, : halves.size + 1]
    chunks, groups = (z1 - z0) * up(x1 - x0, BATCH) // BATCH, up(t1 - t0, LANES) // LANES
    room = ring_rows(reading.reach[2])
    means = ring.means[: groups * chunks * room * CHUNK].reshape((groups * chunks, room, CHUNK))
    ready, filled, total = ring.state
    tall, each = up(stop - ready, BATCH) // BATCH, entries(force)
    n, whole, alone = 0, 0, 0
    for i in range(groups * chunks):
        for y in range(ready, stop, BATCH):
            before = whole + alone
            whole, alone = choose(means[i], y, min(BATCH, stop - y), cut, n * TILE, quads, singles, (whole, alone))
            if whole + alone > before:
                for k in range(halves.size):
                    places[n, k] = (i * room + (y - halves[k]) % room) * CHUNK
                places[n, halves.size] = (i + 1) * room * CHUNK
                n += 1
        if n + tall > places.shape[0] or i == groups * chunks - 1:
            for c in range(p):
                smooth_along_y(moment, ring.queue, c * each, c, force, reading.taps, places[:n], room * CHUNK)
            smooth_along_y(moment, ring.queue, p * each, 0, reading.field, reading.taps, places[:n], room * CHUNK)
            filled = gather(moment, quads[:whole], singles[:alone], ring.block, filled, reading.triangle)
            total += LANES * whole + alone
            n, whole, alone = 0, 0, 0
    ring.state[0], ring.state[1], ring.state[2] = max(ready, stop), filled, total


@jit
def entries(program: Program) -> int:
    """Return how many entries of a ring a source takes."""
    return int(np.max(program.x[:, 0])) + 1


@jit
def inputs(reading: Reading) -> Box:
    """Return the box of all values that a reading needs."""
    t0, t1, z0, z1, y0, y1, x0, x1 = reading.tile
    t, z, y, x = reading.reach
    return t0 - t, t1 + t, z0 - z, z1 + z, y0 - y, y1 + y, x0 - x, x1 + x


@jit
def union(a: Box, b: Box) -> Box:
    """Return the smallest box that holds two."""
    t0, z0, y0, x0 = min(a[0], b[0]), min(a[2], b[2]), min(a[4], b[4]), min(a[6], b[6])
    return t0, max(a[1], b[1]), z0, max(a[3], b[3]), y0, max(a[5], b[5]), x0, max(a[7], b[7])


@jit
def copy_rows(u: Array, rows: Array, box: Box, done: int, count: int) -> None:
    """Copy some rows of the box, all frames and planes, to [frame, row, cell]."""
    planes, wx = box[3] - box[2], box[7] - box[6]
    wide = up(planes * wx, CHUNK)
    for f in range(box[1] - box[0]):
        for r in range(count):
            for z in range(planes):
                at = (f * BATCH + r) * wide + z * wx
                rows[at : at + wx] = u[box[0] + f, box[2] + z, box[4] + done + r, box[6] : box[7]]


@jit
def advance(reading: Reading, scratch: Scratch, box: Box, done: int, count: int, cut: float) -> None:
    """Let a support take in a batch, if it needs its rows, and fold a band when one is complete."""
    t0, t1, _, _, y0, y1, _, _ = reading.tile
    reach = reading.reach[2]
    begin, end = y0 - reach - box[4], y1 + reach - box[4]
    if t0 == t1 or done >= end or done + count <= begin:
        return
    p, each = scratch.feature.shape[0] - 1, entries(reading.force)
    for c in range(p):
        take_source(reading, scratch, box, done, count, reading.force, c, c * each)
    take_source(reading, scratch, box, done, count, reading.field, p, p * each)
    stop = min(done + count, end) - reach
    if stop - reading.ring.state[0] >= band(reach) or done + count >= end:
        fold_band(reading, scratch, cut, stop)


def _kept(sources: int) -> Any:
    """Return the kernel, kept on disk by numba: in NUMBA_CACHE_DIR, beside the source, or in the home folder.

    numba's index names a kernel by the file it is written in and by the variables it closes over, not by what it calls
    in other files. So this one closes over a checksum of loops.py and of the switch there, and nothing but it is kept:
    parts that were kept on their own would be taken as they are, whatever changed below them. Where no folder can be
    written, as in a container with a read-only disk, it is compiled in each process; NUMBA_CACHE_DIR avoids that.
    """

    def assemble(
        u: Array, one: Reading, two: Reading, means: Array, table: Array, binomials: Array, slopes: Array, cut: float,
        scratch: Scratch,
    ) -> tuple[int, int]:  # fmt: skip
        """Fold the moment rows of all centres of the tiles of two supports into their triangles; return their numbers.

        u[t, z, y, x] is a slab. What both need, rows and their features, is prepared once. A reading whose tile has no
        frames is left out. Centres with |weighted temporal mean| >= cut are left out. means[t, j], where not empty, is
        taken from feature j in frame t.
        """
        if sources < 0:  # never: it makes the kernel close over the checksum
            return 0, 0
        box, p = union(inputs(one), inputs(two)), binomials.size
        if one.tile[0] == one.tile[1] or two.tile[0] == two.tile[1]:
            box = inputs(one) if two.tile[0] == two.tile[1] else inputs(two)
        wide, rows = up((box[3] - box[2]) * (box[7] - box[6]), CHUNK), box[5] - box[4]
        # only the field may reach the outermost frames
        spare = min(one.reach[0] - longest(one.force, one), two.reach[0] - longest(two.force, two))
        for reading in (one, two):
            reading.ring.state[0] = reading.tile[4] - box[4]
            reading.ring.state[1:] = 0
        for done in range(0, rows, BATCH):
            count, step = min(BATCH, rows - done), BATCH * wide
            copy_rows(u, scratch.feature[p], box, done, count)
            start, stop = spare * step, (box[1] - box[0] - spare) * step
            evaluate(scratch.feature, start, stop, table, binomials, slopes, scratch.powers)
            if means.size:
                for c in range(p):
                    for f in range(spare, box[1] - box[0] - spare):
                        scratch.feature[c, f * step : (f + 1) * step] -= means[box[0] + f, c]
            advance(one, scratch, box, done, count, cut)
            advance(two, scratch, box, done, count, cut)
        for reading in (one, two):
            if reading.ring.state[1]:
                fold(reading.triangle, reading.ring.block, reading.ring.state[1])
        return one.ring.state[2], two.ring.state[2]

    try:
        return njit(cache=True, nogil=True, fastmath=FAST)(assemble)
    except RuntimeError:  # numba's "cannot cache function: no locator available"
        return njit(nogil=True, fastmath=FAST)(assemble)


@jit
def longest(program: Program, reading: Reading) -> int:
    """Return the longest half-length of taps along time that a program uses."""
    half = 0
    for kind in program.times:
        half = max(half, (reading.first if kind else reading.value).shape[1] // 2)
    return half


assemble = _kept(crc32(Path(loops.__file__).read_bytes() + bytes([loops.PLAIN])))
