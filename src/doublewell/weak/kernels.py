"""The fused weak kernel: features, smoothing, derivatives, mask and QR in one pass over a tile, for two supports.

Everything is written for four axes t, z, y, x; a missing space axis has one cell, the value tap [1] and the
second-derivative tap [0]. Taps are run-time arrays, so a new width does not compile anew. A tile is walked along
y, four rows at a time: they are smoothed along t, z and x, and wait in a ring until the smoothing along y is complete.
Smoothing along t takes four centre frames at a time and lays them side by side, [x, row, frame]. So what lies side by
side is never the axis that is smoothed, and all loads are of whole vectors.
Rows of the moment matrix live only in a block of a few hundred, which a Householder step folds into R.

Columns of the moment matrix: features 0..m | time derivative of S[u] | Laplacian of S[u].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.weak.compiled import FAST, jit
from doublewell.weak.features import evaluate
from doublewell.weak.folding import fold, gather
from doublewell.weak.tiles import add_tile, ring_add_tile, ring_tile, tile, turned_tile
from doublewell.weak.vectors import CHUNK, LANES, prefetch
from doublewell.weak.workspace import BATCH, TILE, Reading, Scratch, band, ring_rows, up

__all__ = ["assemble"]

_LINE = 8  # numbers in a line of the caches
_NEVER = 1e300  # a mean that leaves a centre out
Box = tuple[int, int, int, int, int, int, int, int]  # first and past the last, along t, z, y, x


@jit(inline="always")
def fetch(array: Array, at: int, n: int) -> None:
    """Ask for memory that is needed soon, for rings are larger than the near caches; harmless past an array's end."""
    for line in range(at, at + n, _LINE):
        prefetch(array, line)


@jit(fastmath=FAST)
def smooth_in_time(out: Array, source: Array, first: int, wide: int, count: int, taps: Array, t: int) -> None:
    """Smooth centre frames t..t+3 of some rows along time: source[frame, row, cell] to out[cell, row, frame]."""
    step, width = BATCH * wide, taps.shape[1]
    for r in range(count):
        for x in range(0, wide, CHUNK):
            to = (x * CHUNK + r * LANES, CHUNK, CHUNK * LANES)
            turned_tile(out, to, source, (first * step + r * wide + x, step), taps, (t * width, width, width))


@jit(fastmath=FAST)
def smooth_along_z(out: Array, source: Array, planes: int, wx: int, taps: Array, skip: int) -> None:
    """Smooth along z, all rows and four frames at once: source[z, x, row, frame] to out in the same layout."""
    step = wx * CHUNK
    for z in range(0, planes, BATCH):
        for i in range(0, step, CHUNK):
            tile(out, (z * step + i, step, LANES), source, ((z + skip) * step + i, step), taps, (0, 0, taps.size))


@jit(fastmath=FAST)
def smooth_along_x(
    queue: Array, at: int, room: int, source: Array, sizes: tuple[int, int, int], taps: Array, skip: int, fresh: bool
) -> None:
    """Smooth along x, or add it to what is there: source[z, x, row, frame] to queue[z, four x, row, x, frame]."""
    nz, nx, wx = sizes
    for z in range(nz):
        for x in range(0, nx, BATCH):
            to, place, use = (at, LANES, CHUNK), ((z * wx + x + skip) * CHUNK, CHUNK), (0, 0, taps.size)
            fetch(queue, at + 2 * room * CHUNK, TILE)
            if fresh:
                tile(queue, to, source, place, taps, use)
            else:
                add_tile(queue, to, source, place, taps, use)
            at += room * CHUNK


@jit()
def mask_means(
    means: Array, slot: int, smooth: Array, frames: int, sizes: tuple[int, int, int], first: int,
    complete: NDArray[np.bool_], row: int, rows: int,
) -> None:  # fmt: skip
    """Lay out the means of four frames and rows as the queue is; what is no centre gets one that leaves it out.

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


@jit()
def choose(
    means: Array, ready: int, rows: int, cut: float, at: int, quads: NDArray[np.int64], singles: NDArray[np.int64],
    found: tuple[int, int],
) -> tuple[int, int]:  # fmt: skip
    """Append the places of kept centres of one tile, counted from `at`: fours of frames, and frames that are alone."""
    whole, alone = found
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


@jit(fastmath=FAST)
def smooth_along_y(
    moment: Array, queue: Array, places: NDArray[np.int64], back: int, value: Array, second: Array
) -> None:
    """Smooth the chosen tiles along y: queue columns to moment columns.

    places[k] = (first value tap, first second-derivative tap, end of the ring) of tile k; back is a ring's length. The
    tiles follow each other along y, so that most of what they need is in the nearest cache.
    """
    p = queue.shape[0] - 3
    for c in range(p + 2):
        out, source = moment[c], queue[c if c <= p else p + 2]
        for k in range(places.shape[0]):
            at, _, end = places[k]
            if k == 0 or end != places[k - 1, 2]:
                fetch(source, end, back)  # of the next column of tiles
            if value.size == 1:  # no such axis
                out[k * TILE : k * TILE + CHUNK] = source[at : at + CHUNK]
            else:
                use = (0, 0, value.size)
                ring_tile(out, (k * TILE, CHUNK, LANES), source, (at, CHUNK, end, back), value, use)
    if second.size > 1:
        for k in range(places.shape[0]):
            _, at, end = places[k]
            to, use = (k * TILE, CHUNK, LANES), (0, 0, second.size)
            ring_add_tile(moment[p + 1], to, queue[p + 1], (at, CHUNK, end, back), second, use)


@jit(fastmath=FAST)
def take_batch(reading: Reading, scratch: Scratch, box: Box, done: int, count: int) -> None:
    """Smooth the rows of a batch along t, z and x into a support's ring, with their means."""
    t0, t1, z0, z1, y0, y1, x0, x1 = reading.tile
    tv, tf, zv, zs, _, ys, xv, xs = reading.halves
    taps, queue, smooth, across = reading.taps, reading.ring.queue, scratch.smooth, scratch.across
    p, frames, wx = queue.shape[0] - 3, t1 - t0, box[7] - box[6]
    sizes, wide = (z1 - z0, x1 - x0, wx), up((box[3] - box[2]) * wx, CHUNK)
    room, chunks, groups = ring_rows(ys), sizes[0] * up(sizes[1], BATCH) // BATCH, up(frames, LANES) // LANES
    slot, row = done % room, box[4] + done - y0
    first_z, first_x = z0 - zs - box[2], x0 - xs - box[6]  # where the widest taps begin
    means = reading.ring.means[: groups * chunks * room * CHUNK].reshape((groups, chunks, room, CHUNK))
    for c in range(p + 2):
        for g in range(groups):
            t, place = g * LANES, (g * chunks * room + slot) * CHUNK
            f = t0 - tf - box[0] + t
            if c == p:
                smooth_in_time(smooth, scratch.feature[p], f, wide, count, taps.time_first, t)
            else:
                smooth_in_time(smooth, scratch.feature[min(c, p)], f + tf - tv, wide, count, taps.time_value, t)
            source = smooth
            if zs:
                smooth_along_z(across, smooth, sizes[0], wx, taps.z_value, first_z + zs - zv)
                source = across
            smooth_along_x(queue[c], place, room, source, sizes, taps.x_value, first_x + xs - xv, True)
            if c <= p:
                continue
            smooth_along_x(queue[p + 2], place, room, source, sizes, taps.x_second, first_x, True)
            if zs:
                smooth_along_z(across, smooth, sizes[0], wx, taps.z_second, first_z)
                smooth_along_x(queue[p + 2], place, room, across, sizes, taps.x_value, first_x + xs - xv, False)
            centre = (first_z + zs) * wx + first_x + xs
            mask_means(means[g], slot, smooth, frames - t, sizes, centre, reading.complete[:, t:], row, y1 - y0)


@jit(fastmath=FAST)
def fold_band(reading: Reading, scratch: Scratch, cut: float, stop: int) -> None:
    """Smooth the rows up to `stop`, counted as those taken in, along y and fold their moments."""
    t0, t1, z0, z1, _, _, x0, x1 = reading.tile
    _, _, _, _, yv, ys, _, _ = reading.halves
    ring, quads, singles, places = reading.ring, scratch.quads, scratch.singles, scratch.places
    taps, moment, columns = reading.taps, scratch.moment, reading.ring.block
    room, chunks, groups = ring_rows(ys), (z1 - z0) * up(x1 - x0, BATCH) // BATCH, up(t1 - t0, LANES) // LANES
    means = ring.means[: groups * chunks * room * CHUNK].reshape((groups * chunks, room, CHUNK))
    ready, filled, total = ring.state
    tiles = up(stop - ready, BATCH) // BATCH
    n, whole, alone = 0, 0, 0
    for i in range(groups * chunks):
        for y in range(ready, stop, BATCH):
            before = whole + alone
            whole, alone = choose(means[i], y, min(BATCH, stop - y), cut, n * TILE, quads, singles, (whole, alone))
            if whole + alone > before:
                places[n, 0] = (i * room + (y - yv) % room) * CHUNK
                places[n, 1] = (i * room + (y - ys) % room) * CHUNK
                places[n, 2] = (i + 1) * room * CHUNK
                n += 1
        if n + tiles > places.shape[0] or i == groups * chunks - 1:
            smooth_along_y(moment, ring.queue, places[:n], room * CHUNK, taps.y_value, taps.y_second)
            filled = gather(moment, quads[:whole], singles[:alone], columns, filled, reading.triangle)
            total += LANES * whole + alone
            n, whole, alone = 0, 0, 0
    ring.state[0], ring.state[1], ring.state[2] = max(ready, stop), filled, total


@jit()
def inputs(reading: Reading) -> Box:
    """Return the box of all values that a reading needs."""
    t0, t1, z0, z1, y0, y1, x0, x1 = reading.tile
    _, tf, _, zs, _, ys, _, xs = reading.halves
    return t0 - tf, t1 + tf, z0 - zs, z1 + zs, y0 - ys, y1 + ys, x0 - xs, x1 + xs


@jit()
def union(a: Box, b: Box) -> Box:
    """Return the smallest box that holds two."""
    t0, z0, y0, x0 = min(a[0], b[0]), min(a[2], b[2]), min(a[4], b[4]), min(a[6], b[6])
    return t0, max(a[1], b[1]), z0, max(a[3], b[3]), y0, max(a[5], b[5]), x0, max(a[7], b[7])


@jit(fastmath=FAST)
def copy_rows(u: Array, rows: Array, box: Box, done: int, count: int) -> None:
    """Copy some rows of the box, all frames and planes, to [frame, row, cell]."""
    planes, wx = box[3] - box[2], box[7] - box[6]
    wide = up(planes * wx, CHUNK)
    for f in range(box[1] - box[0]):
        for r in range(count):
            for z in range(planes):
                at = (f * BATCH + r) * wide + z * wx
                rows[at : at + wx] = u[box[0] + f, box[2] + z, box[4] + done + r, box[6] : box[7]]


@jit(fastmath=FAST)
def advance(reading: Reading, scratch: Scratch, box: Box, done: int, count: int, cut: float) -> None:
    """Let a support take in a batch, if it needs its rows, and fold a band when one is complete."""
    t0, t1, _, _, y0, y1, _, _ = reading.tile
    ys = reading.halves[5]
    begin, end = y0 - ys - box[4], y1 + ys - box[4]
    if t0 == t1 or done >= end or done + count <= begin:
        return
    take_batch(reading, scratch, box, done, count)
    stop = min(done + count, end) - ys
    if stop - reading.ring.state[0] >= band(ys) or done + count >= end:
        fold_band(reading, scratch, cut, stop)


@jit(fastmath=FAST)
def assemble(
    u: Array, one: Reading, two: Reading, table: Array, binomials: Array, slopes: Array, cut: float, scratch: Scratch
) -> tuple[int, int]:
    """Fold the moment rows of all centres of the tiles of two supports into their triangles; return their numbers.

    u[t, z, y, x] is a slab. What both need, rows and their features, is prepared once. A reading whose tile has no
    frames is left out. Centres with |weighted temporal mean| >= cut are left out.
    """
    box, p = union(inputs(one), inputs(two)), binomials.size
    if one.tile[0] == one.tile[1] or two.tile[0] == two.tile[1]:
        box = inputs(one) if two.tile[0] == two.tile[1] else inputs(two)
    wide, rows = up((box[3] - box[2]) * (box[7] - box[6]), CHUNK), box[5] - box[4]
    # the derivative alone reaches the outermost frames
    spare = min(one.halves[1] - one.halves[0], two.halves[1] - two.halves[0])
    for reading in (one, two):
        reading.ring.state[0] = reading.tile[4] - box[4]
        reading.ring.state[1:] = 0
    for done in range(0, rows, BATCH):
        count = min(BATCH, rows - done)
        copy_rows(u, scratch.feature[p], box, done, count)
        step = BATCH * wide
        evaluate(scratch.feature, spare * step, (box[1] - box[0] - spare) * step, table, binomials, slopes)
        advance(one, scratch, box, done, count, cut)
        advance(two, scratch, box, done, count, cut)
    for reading in (one, two):
        if reading.ring.state[1]:
            fold(reading.triangle, reading.ring.block, reading.ring.state[1])
    return one.ring.state[2], two.ring.state[2]
