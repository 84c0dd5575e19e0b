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

from doublewell.hints import Array, Bools, Integers
from doublewell.weak import loops
from doublewell.weak.loops import ADD, BLOCK, CHUNK, FOREVER, LANES, STORE, TURN, evaluate, fold, gather, jit, tile

BATCH = 4  # rows along y taken in together
TILE = BATCH * CHUNK  # centres of a tile along y
_BAND = 16  # least rows smoothed along y together
_LINE = 8  # numbers in a line of the caches
_APART = 8  # numbers between the columns of a block, which must not share their places in the caches
_TILES = 96  # tiles along y whose moments are held together, at least
_NEVER = 1e300  # a mean that leaves a centre out
Box = tuple[int, int, int, int, int, int, int, int]  # first and past the last, along t, z, y, x
Sizes = tuple[int, int, int]  # centres along z and x, and cells along x with halos


class Program(NamedTuple):
    """How one source becomes columns: the derivative of each smoothing along t, then steps along z, x and y.

    A row of steps is (result, what it is made of, first tap, number of taps, half-length of the taps, 1 to store or 0
    to add). The last results are columns, of ``columns`` the first for each; along y the half-length is its number in
    the list of them. A source takes ``entries`` entries of a ring.
    """

    times: Integers
    z: Integers
    x: Integers
    y: Integers
    columns: Integers
    entries: int


class Ring(NamedTuple):
    """What a support keeps from batch to batch: smoothed rows, means, moments not yet folded, and how far it is.

    state = (first row not yet smoothed along y, moments in the block, all moments). The ring has `rows` rows: those
    that the taps of a band reach, and the batches that begin and end it. The rows of a band are smoothed along y
    together: as many as their taps reach, so that few are loaded twice.
    """

    queue: Array
    means: Array
    block: Array
    state: Integers
    rows: int
    band: int


class Reading(NamedTuple):
    """One support on one tile: centres (t0, t1, z0, z1, y0, y1, x0, x1) in slab indices, programs and taps.

    ``halves`` are the half-lengths of taps along y, ``reach`` is the longest of them. Taps along time have one row for
    each centre frame, to whole fours; those along space are one list. Centres where
    complete[y, t, z, x], counted from the tile's first centre, is False are left out; empty, it leaves out none.
    """

    tile: tuple[int, ...]
    reach: int
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


def make_memory(
    columns: int, features: int, used: Integers, extent: tuple[int, int, int], reaches: Integers
) -> tuple[list[Ring], Scratch]:
    """Make room for tiles of so many centre frames, planes and cells: a ring for each support, and scratch for all.

    used[source, k] counts the results of features and field along t, z and x; reaches[support, axis] are of the taps.
    """
    rings, tall, size = [], 0, -(-extent[0] // LANES) * extent[1] * -(-extent[2] // BATCH) * CHUNK
    entries = features * int(used[0, 2]) + int(used[1, 2])
    for reach in reaches[:, 2].tolist():
        band = max(_BAND, -(-2 * reach // BATCH) * BATCH)
        rows = -(-(2 * reach + 1 + band + 2 * BATCH) // BATCH) * BATCH
        queue, means = _aligned(entries, size * rows), _aligned(1, size * rows)[0]
        rings.append(Ring(queue, means, _aligned(columns, BLOCK + _APART), np.zeros(3, np.int64), rows, band))
        tall = max(tall, _TILES + band // BATCH + 1)
    frames, planes, cells = (np.array(extent) + 2 * reaches[:, [0, 1, 3]].max(axis=0)).tolist()
    line, along = -(-planes * cells // CHUNK) * CHUNK, used.max(axis=0).tolist()
    room = (line + BATCH * (cells + 1)) * CHUNK  # whole fours of planes and cells read past the end, and nobody uses it
    return rings, Scratch(
        _aligned(features + 1, (frames + LANES) * BATCH * line), _aligned(4, loops.CELLS), _aligned(along[0], room),
        _aligned(max(along[1], 1), room), _aligned(columns, tall * TILE), np.empty((tall, 4), np.int64),
        np.empty(tall * CHUNK, np.int64), np.empty(tall * TILE + LANES, np.int64),
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
    taps, smooth, across, feature = reading.taps, scratch.smooth, scratch.across, scratch.feature[c]
    nz, nx, wx, room = z1 - z0, x1 - x0, box[7] - box[6], reading.ring.rows
    sizes, wide, line = (nz, nx, wx), up((box[3] - box[2]) * wx, CHUNK), wx * CHUNK
    chunks, first_z, first_x = nz * up(nx, BATCH) // BATCH, z0 - box[2], x0 - box[6]
    for g in range(up(t1 - t0, LANES) // LANES):
        t, place = g * LANES, (g * chunks * room + done % room) * CHUNK
        for node in range(program.times.size):  # feature[frame, row, cell] to smooth[cell, row, frame], four frames
            weights, out = reading.first if program.times[node] else reading.value, smooth[node]
            width, step = weights.shape[1], BATCH * wide
            start = (t0 - box[0] + t - width // 2) * step
            for r in range(count):
                for x in range(0, wide, CHUNK):
                    to, at = (x * CHUNK + r * LANES, CHUNK, CHUNK * LANES), (start + r * wide + x, step, FOREVER, 0)
                    tile(out, to, feature, at, weights, (t * width, width, width), TURN)
        for step in range(program.z.shape[0]):  # smooth[z, x, row, frame] to across in the same layout
            result, node, first, width, half, fresh = program.z[step]
            out, source, mode = across[result], smooth[node], STORE if fresh else ADD
            for z in range(0, nz, BATCH):
                for i in range(0, line, CHUNK):
                    at = ((z + first_z - half) * line + i, line, FOREVER, 0)
                    tile(out, (z * line + i, line, LANES), source, at, taps, (first, 0, width), mode)
        nodes = across if program.z.shape[0] else smooth
        for step in range(program.x.shape[0]):  # the same to queue[z, four x, row, x, frame]
            result, node, first, width, half, fresh = program.x[step]
            out, source, mode, end = reading.ring.queue[entry + result], nodes[node], STORE if fresh else ADD, place
            for z in range(nz):
                for x in range(0, nx, BATCH):
                    at = ((z * wx + x + first_x - half) * CHUNK, CHUNK, FOREVER, 0)
                    tile(out, (end, LANES, CHUNK), source, at, taps, (first, 0, width), mode)
                    end += room * CHUNK
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
    chunks, groups, room = (z1 - z0) * up(x1 - x0, BATCH) // BATCH, up(t1 - t0, LANES) // LANES, ring.rows
    means = ring.means[: groups * chunks * room * CHUNK].reshape((groups * chunks, room, CHUNK))
    ready, filled, total = ring.state
    tall, each = up(stop - ready, BATCH) // BATCH, force.entries
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
def advance(reading: Reading, scratch: Scratch, box: Box, done: int, count: int, cut: float) -> None:
    """Let a support take in a batch, if it needs its rows, and fold a band when one is complete."""
    t0, t1, _, _, y0, y1, _, _ = reading.tile
    reach = reading.reach
    begin, end = y0 - reach - box[4], y1 + reach - box[4]
    if t0 == t1 or done >= end or done + count <= begin:
        return
    p, each = scratch.feature.shape[0] - 1, reading.force.entries
    for c in range(p):
        take_source(reading, scratch, box, done, count, reading.force, c, c * each)
    take_source(reading, scratch, box, done, count, reading.field, p, p * each)
    stop = min(done + count, end) - reach
    if stop - reading.ring.state[0] >= reading.ring.band or done + count >= end:
        fold_band(reading, scratch, cut, stop)


def _kept(sources: int) -> Any:
    """Return the kernel, kept on disk by numba: in NUMBA_CACHE_DIR, beside the source, or in the home folder.

    numba's index names a kernel by the file it is written in and by the variables it closes over, not by what it calls
    in other files. So this one closes over a checksum of loops.py and of the switch there, and nothing but it is kept:
    parts that were kept on their own would be taken as they are, whatever changed below them. Where no folder can be
    written, as in a container with a read-only disk, it is compiled in each process; NUMBA_CACHE_DIR avoids that.
    """

    def assemble(
        u: Array, one: Reading, two: Reading, box: Box, spare: int, means: Array, table: Array, binomials: Array,
        slopes: Array, cut: float, scratch: Scratch,
    ) -> tuple[int, int]:  # fmt: skip
        """Fold the moment rows of all centres of the tiles of two supports into their triangles; return their numbers.

        u[t, z, y, x] is a slab, and the box holds all values that both need; rows and features are prepared once. Only
        the field reaches the `spare` outermost frames. A reading whose tile has no frames is left out. Centres with
        |weighted temporal mean| >= cut are left out. means[t, j], where not empty, is taken from feature j in frame t.
        """
        if sources < 0:  # never: it makes the kernel close over the checksum
            return 0, 0
        planes, rows, wx, p = box[3] - box[2], box[5] - box[4], box[7] - box[6], binomials.size
        wide = up(planes * wx, CHUNK)
        for reading in (one, two):
            reading.ring.state[0] = reading.tile[4] - box[4]
            reading.ring.state[1:] = 0
        for done in range(0, rows, BATCH):
            count, step = min(BATCH, rows - done), BATCH * wide
            for f in range(box[1] - box[0]):  # the values, as [frame, row, cell]
                for r in range(count):
                    for z in range(planes):
                        at = (f * BATCH + r) * wide + z * wx
                        row, out = u[box[0] + f, box[2] + z, box[4] + done + r, box[6] : box[7]], scratch.feature[p]
                        for x in range(wx):  # arrays that are assigned whole take numba a second to compile
                            out[at + x] = row[x]
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
        return jit(assemble, cache=True)
    except RuntimeError:  # numba's "cannot cache function: no locator available"
        return jit(assemble)


assemble = _kept(crc32(Path(loops.__file__).read_bytes() + bytes([loops.PLAIN])))
