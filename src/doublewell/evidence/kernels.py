"""The fused weak kernel: features, smoothing, derivatives, mask and QR in one pass over a tile.

Everything is written for four axes t, z, y, x; a missing space axis has one cell, the value tap [1] and the
second-derivative tap [0]. Taps are run-time arrays, so a new width does not compile anew. A tile is walked along
y: rows come in, are smoothed along t, z and x, and wait in a buffer until the smoothing along y is complete.
Rows of the moment matrix live only in a block of a few hundred, which a Householder step folds into R.

Columns of the moment matrix: features 0..m | time derivative of S[u] | Laplacian of S[u].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from doublewell.evidence.compiled import jit
from doublewell.hints import Array

__all__ = ["BLOCK", "accumulate", "assemble", "fold"]

BLOCK = 512  # rows held before a Householder step
_FAST = {"contract", "reassoc", "nsz", "arcp"}


@jit(inline="always")
def tap(taps: Array, k: int) -> float:
    """The k-th tap, zero past the end."""
    return taps[k] if k < taps.size else 0.0


@jit(inline="always")
def shifted(source: Array, first: int, stride: int, k: int, last: int, n: int) -> Array:
    """The source under the k-th tap; past the end, where the tap is zero, any place that exists."""
    p = first + min(k, last) * stride
    return source[p : p + n]


@jit(fastmath=_FAST)
def accumulate(out: Array, source: Array, first: int, stride: int, taps: Array, fresh: bool) -> None:
    """out[i] = (0 if fresh else out[i]) + sum_k taps[k] source[first + i + k stride], up to eight taps a pass.

    A fresh output is multiplied by zero rather than written first, so it must hold finite numbers.
    """
    n, last, k = out.size, taps.size - 1, 0
    keep = 0.0 if fresh else 1.0
    while k <= last:
        s0, s1 = shifted(source, first, stride, k, last, n), shifted(source, first, stride, k + 1, last, n)
        a0, a1 = taps[k], tap(taps, k + 1)
        if k + 2 > last:
            for i in range(n):
                out[i] = keep * out[i] + a0 * s0[i] + a1 * s1[i]
            k += 2
        elif k + 4 > last:
            a2, a3 = tap(taps, k + 2), tap(taps, k + 3)
            s2, s3 = shifted(source, first, stride, k + 2, last, n), shifted(source, first, stride, k + 3, last, n)
            for i in range(n):
                out[i] = keep * out[i] + a0 * s0[i] + a1 * s1[i] + a2 * s2[i] + a3 * s3[i]
            k += 4
        else:
            a2, a3, a4, a5 = tap(taps, k + 2), tap(taps, k + 3), tap(taps, k + 4), tap(taps, k + 5)
            a6, a7 = tap(taps, k + 6), tap(taps, k + 7)
            s2, s3 = shifted(source, first, stride, k + 2, last, n), shifted(source, first, stride, k + 3, last, n)
            s4, s5 = shifted(source, first, stride, k + 4, last, n), shifted(source, first, stride, k + 5, last, n)
            s6, s7 = shifted(source, first, stride, k + 6, last, n), shifted(source, first, stride, k + 7, last, n)
            for i in range(n):
                near = keep * out[i] + a0 * s0[i] + a1 * s1[i] + a2 * s2[i] + a3 * s3[i]
                out[i] = near + a4 * s4[i] + a5 * s5[i] + a6 * s6[i] + a7 * s7[i]
            k += 8
        keep = 1.0


@jit(fastmath=_FAST)
def accumulate_pair(
    one: Array, two: Array, source: Array, first: int, stride: int, taps: Array, others: Array, fresh: bool
) -> None:
    """Do the work of accumulate for two outputs one stride apart, which share all but one of their loads."""
    n, last, k = one.size, taps.size - 1, 0
    keep = 0.0 if fresh else 1.0
    end = last + 1  # the second output reaches one stride further
    while k <= last:
        a0, a1, a2 = taps[k], tap(taps, k + 1), tap(taps, k + 2)
        c0, c1, c2 = others[k], tap(others, k + 1), tap(others, k + 2)
        s0, s1 = shifted(source, first, stride, k, end, n), shifted(source, first, stride, k + 1, end, n)
        s2, s3 = shifted(source, first, stride, k + 2, end, n), shifted(source, first, stride, k + 3, end, n)
        if k + 3 > last:
            for i in range(n):
                b1, b2 = s1[i], s2[i]
                one[i] = keep * one[i] + a0 * s0[i] + a1 * b1 + a2 * b2
                two[i] = keep * two[i] + c0 * b1 + c1 * b2 + c2 * s3[i]
            k += 3
        else:
            a3, a4, a5 = tap(taps, k + 3), tap(taps, k + 4), tap(taps, k + 5)
            c3, c4, c5 = tap(others, k + 3), tap(others, k + 4), tap(others, k + 5)
            s4, s5 = shifted(source, first, stride, k + 4, end, n), shifted(source, first, stride, k + 5, end, n)
            s6 = shifted(source, first, stride, k + 6, end, n)
            for i in range(n):
                b1, b2, b3, b4, b5 = s1[i], s2[i], s3[i], s4[i], s5[i]
                one[i] = keep * one[i] + a0 * s0[i] + a1 * b1 + a2 * b2 + a3 * b3 + a4 * b4 + a5 * b5
                two[i] = keep * two[i] + c0 * b1 + c1 * b2 + c2 * b3 + c3 * b4 + c4 * b5 + c5 * s6[i]
            k += 6
        keep = 1.0


@jit(fastmath=_FAST)
def evaluate(u: Array, features: Array, at: int, scratch: Array, table: Array, binomials: Array, slopes: Array) -> None:
    """Evaluate all features of one row u: prefactor(x) C(m, j) z^j (1 - z)^(m - j), linear outside the wells.

    table = [low, high, z0, z1, z2, c0, c1, c2, c3] with z = z0 + z1 x + z2 x^2 and a cubic prefactor. The row of
    feature j goes to features[j, at:]; whole rows are passed so that their memory is known to be contiguous.
    """
    low, high, z0, z1, z2 = table[0], table[1], table[2], table[3], table[4]
    c0, c1, c2, c3 = table[5], table[6], table[7], table[8]
    count, n = binomials.size, u.size
    rest, z, power = scratch[0, :n], scratch[1, :n], scratch[2, :n]
    for i in range(n):
        x = min(max(u[i], low), high)
        rest[i] = u[i] - x
        z[i] = z0 + x * (z1 + x * z2)
        power[i] = c0 + x * (c1 + x * (c2 + x * c3))
    for j in range(count):
        row, c = features[j, at : at + n], binomials[j]
        for i in range(n):
            row[i] = c * power[i]
            power[i] *= z[i]
    for i in range(n):
        z[i] = 1.0 - z[i]
        power[i] = z[i]
    for j in range(count - 2, -1, -1):
        row = features[j, at : at + n]
        for i in range(n):
            row[i] *= power[i]
            power[i] *= z[i]
    for j in range(count):
        below, above = slopes[0, j], slopes[1, j]
        if below != 0.0 or above != 0.0:
            row = features[j, at : at + n]
            for i in range(n):
                row[i] += below * min(rest[i], 0.0) + above * max(rest[i], 0.0)


@jit(fastmath=_FAST)
def fold(triangle: Array, block: Array, n: int) -> None:
    """Fold the first n rows of a block, stored column by column, into the triangle R by Householder steps."""
    columns = triangle.shape[0]
    for k in range(columns):
        x = block[k, :n]
        below = 0.0
        for i in range(n):
            below += x[i] * x[i]
        if below == 0.0:
            continue
        pivot = triangle[k, k]
        norm = math.sqrt(pivot * pivot + below)
        target = -norm if pivot > 0.0 else norm
        head = pivot - target
        scale = 2.0 / (head * head + below)
        triangle[k, k] = target
        for j in range(k + 1, columns):
            y = block[j, :n]
            dot = 0.0
            for i in range(n):
                dot += x[i] * y[i]
            dot = scale * (dot + head * triangle[k, j])
            triangle[k, j] -= dot * head
            for i in range(n):
                y[i] -= dot * x[i]


@jit(fastmath=_FAST)
def gather(moment: Array, kept: NDArray[np.int64], block: Array, filled: int, triangle: Array) -> int:
    """Copy the kept centres into the block, folding it whenever it is full; return how many rows it holds then."""
    taken = 0
    while taken < kept.size:
        step = min(BLOCK - filled, kept.size - taken)
        for c in range(block.shape[0]):
            row, source = block[c, filled : filled + step], moment[c]
            for i in range(step):
                row[i] = source[kept[taken + i]]
        filled += step
        taken += step
        if filled == BLOCK:
            fold(triangle, block, filled)
            filled = 0
    return filled


@jit()
def leave_out(kept: NDArray[np.int64], n: int, complete: NDArray[np.bool_]) -> int:
    """Drop from the first n kept centres of a row those without a complete support; return how many stay."""
    _, nz, nx = complete.shape
    stay = 0
    for k in range(n):
        i = kept[k]
        if complete[i // (nz * nx), i // nx % nz, i % nx]:
            kept[stay] = i
            stay += 1
    return stay


@jit(fastmath=_FAST)
def smooth_in_time(smooth: Array, feature: Array, t: int, span: int, skip: int, value: Array, first: Array) -> None:
    """Smooth centre frames t and t + 1 along time: features | u to features | time derivative | mean."""
    p = feature.shape[0] - 1
    at = (t + skip) * span
    if t + 1 < value.shape[0]:
        one, two = smooth[0], smooth[1]
        for c in range(p):
            accumulate_pair(one[c, :span], two[c, :span], feature[c], at, span, value[t], value[t + 1], True)
        accumulate_pair(one[p, :span], two[p, :span], feature[p], t * span, span, first[t], first[t + 1], True)
        accumulate_pair(one[p + 1, :span], two[p + 1, :span], feature[p], at, span, value[t], value[t + 1], True)
    else:
        for c in range(p):
            accumulate(smooth[0, c, :span], feature[c], at, span, value[t], True)
        accumulate(smooth[0, p, :span], feature[p], t * span, span, first[t], True)
        accumulate(smooth[0, p + 1, :span], feature[p], at, span, value[t], True)


@jit(fastmath=_FAST)
def spread(line: Array, queue: Array, c: int, start: int, layer: int, sizes: tuple[int, ...]) -> None:
    """Copy the valid part of smoothed rows, which lie in the layout with halo, to their places in the queue."""
    count, nz, nx, wz, wx = sizes
    for r in range(count):
        for k in range(nz):
            at, base = start + r * layer + k * nx, (r * wz + k) * wx
            queue[c, at : at + nx] = line[base : base + nx]


@jit(fastmath=_FAST)
def smooth_across(
    smooth: Array, queue: Array, start: int, layer: int, line: Array, zbuf: Array, sizes: tuple[int, ...],
    halves: tuple[int, ...], z_value: Array, z_second: Array, x_value: Array, x_second: Array,
) -> None:  # fmt: skip
    """Smooth rows of one frame along z and x into the queue: features | time derivative | S u | its Laplacian.

    All rows are one long vector with halo; what runs over a row's end is garbage and is not copied.
    """
    count, _, _, wz, wx = sizes
    _, _, zv, zs, _, _, xv, xs = halves
    last = smooth.shape[0] - 1
    span = count * wz * wx
    inner = span - 2 * zs * wx  # where all taps along z lie inside
    size = inner - 2 * xs
    for c in range(last + 1):
        source = smooth[c]
        if wz > 1:
            accumulate(zbuf[:inner], smooth[c], (zs - zv) * wx, wx, z_value, True)
            source = zbuf
        accumulate(line[:size], source, xs - xv, 1, x_value, True)
        spread(line, queue, c, start, layer, sizes)
        if c == last:
            accumulate(line[:size], source, 0, 1, x_second, True)
    if wz > 1:
        accumulate(zbuf[:inner], smooth[last], 0, wx, z_second, True)
        accumulate(line[:size], zbuf, xs - xv, 1, x_value, False)
    spread(line, queue, last + 1, start, layer, sizes)


@jit(fastmath=_FAST)
def smooth_along(moment: Array, queue: Array, near: int, far: int, layer: int, value: Array, second: Array) -> None:
    """Smooth one row, or two neighbouring rows, along y: queue columns to moment columns."""
    p = queue.shape[0] - 3
    if moment.shape[0] == 2:
        for c in range(p + 1):
            accumulate_pair(moment[0, c], moment[1, c], queue[c], near, layer, value, value, True)
        accumulate_pair(moment[0, p + 1], moment[1, p + 1], queue[p + 2], near, layer, value, value, True)
        accumulate_pair(moment[0, p + 1], moment[1, p + 1], queue[p + 1], far, layer, second, second, False)
    else:
        for c in range(p + 1):
            accumulate(moment[0, c], queue[c], near, layer, value, True)
        accumulate(moment[0, p + 1], queue[p + 2], near, layer, value, True)
        accumulate(moment[0, p + 1], queue[p + 1], far, layer, second, False)


@jit(fastmath=_FAST)
def assemble(
    u: Array, tile: tuple[int, ...], halves: tuple[int, ...], time_value: Array, time_first: Array,
    z_value: Array, z_second: Array, y_value: Array, y_second: Array, x_value: Array, x_second: Array,
    table: Array, binomials: Array, slopes: Array, cut: float, batch: int, complete: NDArray[np.bool_], triangle: Array,
) -> int:  # fmt: skip
    """Fold the moment rows of all centres of one tile into the triangle; return their number.

    u[t, z, y, x] is a slab. tile = (t0, t1, z0, z1, y0, y1, x0, x1) are the centres, in slab indices; halves =
    half-lengths of (time value, time first, z value, z second, y value, y second, x value, x second) taps. time_value
    and time_first have one row of taps per centre frame. Centres with |weighted temporal mean| >= cut are left out,
    and those where complete[y, t, z, x], counted from the tile's first centre, is False; empty, it leaves out none.
    """
    t0, t1, z0, z1, y0, y1, x0, x1 = tile
    tv, tf, _, zs, yv, ys, _, xs = halves
    p = binomials.size
    frames, nz, nx = t1 - t0, z1 - z0, x1 - x0
    wz, wx = nz + 2 * zs, nx + 2 * xs  # with halo
    deep, plane, wide = frames + 2 * tf, nz * nx, wz * wx
    rows_in, layer, depth = y1 - y0 + 2 * ys, frames * plane, 2 * ys + 1
    room = 2 * depth + batch

    feature = np.zeros((p + 1, deep * batch * wide))
    smooth_pair = np.zeros((2, p + 2, batch * wide))  # two frames of features | time derivative | mean
    zbuf, line = np.zeros(batch * wide), np.zeros(batch * wide)
    scratch = np.empty((3, wx))
    queue = np.zeros((p + 3, room * layer))  # features | time derivative | S u | Laplacian in x and z
    means = np.empty((room, layer))
    moment = np.zeros((2, p + 2, layer))
    kept = np.empty(layer, np.int64)
    block = np.zeros((p + 2, BLOCK))
    filled, total, row = 0, 0, 0  # row: of centres along y
    head, done = 0, 0  # rows in the queue; input rows taken

    while done < rows_in:
        if head + batch > room:  # keep the rows that are still needed, at the front
            keep = depth - 1
            for c in range(p + 3):
                queue[c, : keep * layer] = queue[c, (head - keep) * layer : head * layer].copy()
            means[:keep] = means[head - keep : head].copy()
            head = keep
        count = min(batch, rows_in - done)
        span = count * wide
        for f in range(deep):
            for r in range(count):
                for c in range(wz):
                    cells = u[t0 - tf + f, z0 - zs + c, y0 - ys + done + r, x0 - xs : x1 + xs]
                    at = f * span + r * wide + c * wx
                    if tf - tv <= f < deep - tf + tv:  # the derivative alone reaches the outermost frames
                        evaluate(cells, feature, at, scratch, table, binomials, slopes)
                    feature[p, at : at + wx] = cells
        for t in range(frames):
            if t % 2 == 0:
                smooth_in_time(smooth_pair, feature, t, span, tf - tv, time_value, time_first)
            smooth = smooth_pair[t % 2]
            for r in range(count):
                for c in range(nz):
                    at, base = t * plane + c * nx, r * wide + (c + zs) * wx + xs
                    means[head + r, at : at + nx] = smooth[p + 1, base : base + nx]
            smooth_across(
                smooth, queue, head * layer + t * plane, layer, line, zbuf, (count, nz, nx, wz, wx), halves,
                z_value, z_second, x_value, x_second,
            )  # fmt: skip
        ready = max(head, depth - 1) - ys  # first row whose smoothing along y is complete now
        head += count
        done += count
        while ready < head - ys:
            pair = 2 if ready + 1 < head - ys else 1
            near, far = (ready - yv) * layer, (ready - ys) * layer
            smooth_along(moment[:pair], queue, near, far, layer, y_value, y_second)
            for r in range(pair):
                n = 0
                for i in range(layer):
                    if abs(means[ready + r, i]) < cut:
                        kept[n] = i
                        n += 1
                if complete.size:
                    n = leave_out(kept, n, complete[row])
                row += 1
                filled = gather(moment[r], kept[:n], block, filled, triangle)
                total += n
            ready += pair
    if filled:
        fold(triangle, block, filled)
    return total
