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
from numba import njit
from numpy.typing import NDArray

__all__ = ["BLOCK", "accumulate", "assemble", "fold"]

BLOCK = 512  # rows held before a Householder step
Array = NDArray[np.float64]
_FAST = {"contract", "reassoc", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST, inline="never")
def accumulate(out: Array, source: Array, first: int, stride: int, taps: Array, fresh: bool) -> None:
    """out[i] = (0 if fresh else out[i]) + sum_k taps[k] source[first + i + k stride], eight taps at a time."""
    n, count = out.size, taps.size
    if fresh:
        out[:] = 0.0
    k = 0
    while k + 8 <= count:
        p = first + k * stride
        a0, a1, a2, a3 = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        a4, a5, a6, a7 = taps[k + 4], taps[k + 5], taps[k + 6], taps[k + 7]
        s0, s1 = source[p : p + n], source[p + stride : p + stride + n]
        s2, s3 = source[p + 2 * stride : p + 2 * stride + n], source[p + 3 * stride : p + 3 * stride + n]
        s4, s5 = source[p + 4 * stride : p + 4 * stride + n], source[p + 5 * stride : p + 5 * stride + n]
        s6, s7 = source[p + 6 * stride : p + 6 * stride + n], source[p + 7 * stride : p + 7 * stride + n]
        for i in range(n):
            near = a0 * s0[i] + a1 * s1[i] + a2 * s2[i] + a3 * s3[i]
            out[i] += near + a4 * s4[i] + a5 * s5[i] + a6 * s6[i] + a7 * s7[i]
        k += 8
    while k + 4 <= count:
        p = first + k * stride
        a0, a1, a2, a3 = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        s0, s1 = source[p : p + n], source[p + stride : p + stride + n]
        s2, s3 = source[p + 2 * stride : p + 2 * stride + n], source[p + 3 * stride : p + 3 * stride + n]
        for i in range(n):
            out[i] += a0 * s0[i] + a1 * s1[i] + a2 * s2[i] + a3 * s3[i]
        k += 4
    while k < count:
        p = first + k * stride
        a0, s0 = taps[k], source[p : p + n]
        for i in range(n):
            out[i] += a0 * s0[i]
        k += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def evaluate(
    u: Array, features: Array, x: Array, z: Array, power: Array, table: Array, binomials: Array, slopes: Array
) -> None:
    """Evaluate all features of one row u: prefactor(x) C(m, j) z^j (1 - z)^(m - j), linear outside the wells.

    table = [low, high, z0, z1, z2, c0, c1, c2, c3] with z = z0 + z1 x + z2 x^2 and a cubic prefactor.
    """
    low, high = table[0], table[1]
    count, n = binomials.size, u.size
    for i in range(n):
        x[i] = min(max(u[i], low), high)
        z[i] = table[2] + x[i] * (table[3] + x[i] * table[4])
        power[i] = table[5] + x[i] * (table[6] + x[i] * (table[7] + x[i] * table[8]))
    for j in range(count):
        row, c = features[j], binomials[j]
        for i in range(n):
            row[i] = c * power[i]
            power[i] *= z[i]
    power[:] = 1.0
    for j in range(count - 2, -1, -1):
        row = features[j]
        for i in range(n):
            power[i] *= 1.0 - z[i]
            row[i] *= power[i]
    for j in range(count):
        if slopes[0, j] != 0.0 or slopes[1, j] != 0.0:
            row, below, above = features[j], slopes[0, j], slopes[1, j]
            for i in range(n):
                row[i] += below * min(u[i] - low, 0.0) + above * max(u[i] - high, 0.0)


@njit(cache=True, nogil=True, fastmath=_FAST)
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


@njit(cache=True, nogil=True, fastmath=_FAST)
def assemble(
    u: Array,
    tile: tuple[int, ...],
    halves: tuple[int, ...],
    time_value: Array,
    time_first: Array,
    z_value: Array,
    z_second: Array,
    y_value: Array,
    y_second: Array,
    x_value: Array,
    x_second: Array,
    table: Array,
    binomials: Array,
    slopes: Array,
    cut: float,
    batch: int,
    triangle: Array,
) -> int:
    """Fold the moment rows of all centres of one tile into the triangle; return their number.

    u[t, z, y, x] is a slab. tile = (t0, t1, z0, z1, y0, y1, x0, x1) are the centres, in slab indices; halves =
    half-lengths of (time value, time first, z value, z second, y value, y second, x value, x second) taps. time_value
    and time_first have one row of taps per centre frame. Centres with |weighted temporal mean| >= cut are left out.
    """
    t0, t1, z0, z1, y0, y1, x0, x1 = tile
    tv, tf, zv, zs, yv, ys, xv, xs = halves
    p = binomials.size
    frames, nz, nx = t1 - t0, z1 - z0, x1 - x0
    wz, wx = nz + 2 * zs, nx + 2 * xs  # with halo
    deep = frames + 2 * tf
    plane, wide = nz * nx, wz * wx
    rows_in, layer = y1 - y0 + 2 * ys, frames * plane
    depth = 2 * ys + 1
    room = 2 * depth + batch

    feature = np.empty((p + 1, deep * batch * wide))
    smooth = np.empty((p + 2, batch * wide))  # features | time derivative | mean
    zbuf = np.empty(batch * wide)
    scratch = np.empty((3, nx + 2 * xs))
    queue = np.empty((p + 3, room * layer))  # features | time derivative | S u | Laplacian in x and z
    means = np.empty((room, layer))
    moment = np.empty((p + 2, layer))
    kept = np.empty(layer, np.int64)
    block = np.empty((p + 2, BLOCK))
    filled, total, head, done = 0, 0, 0, 0  # head: rows in the queue; done: input rows taken

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
                    line = u[t0 - tf + f, z0 - zs + c, y0 - ys + done + r, x0 - xs : x1 + xs]
                    at = f * span + r * wide + c * wx
                    evaluate(line, feature[:p, at : at + wx], scratch[0], scratch[1], scratch[2],
                             table, binomials, slopes)  # fmt: skip
                    feature[p, at : at + wx] = line
        for t in range(frames):
            for c in range(p + 2):
                source = feature[min(c, p)]
                if c == p:
                    accumulate(smooth[c, :span], source, t * span, span, time_first[t], True)
                else:
                    accumulate(smooth[c, :span], source, (t + tf - tv) * span, span, time_value[t], True)
            for r in range(count):
                start = (head + r) * layer + t * plane
                for c in range(nz):
                    base = r * wide + (c + zs) * wx
                    means[head + r, t * plane + c * nx : t * plane + (c + 1) * nx] = smooth[
                        p + 1, base + xs : base + xs + nx
                    ]
                for c in range(p + 2):
                    if wz == 1:
                        source = smooth[c, r * wide : (r + 1) * wide]
                    else:
                        n = (nz - 1) * wx + wx
                        accumulate(zbuf[:n], smooth[c], r * wide + (zs - zv) * wx, wx, z_value, True)
                        source = zbuf
                    for k in range(nz):
                        out = queue[c, start + k * nx : start + (k + 1) * nx]
                        accumulate(out, source, k * wx + xs - xv, 1, x_value, True)
                    if c == p + 1:
                        for k in range(nz):
                            out = queue[p + 2, start + k * nx : start + (k + 1) * nx]
                            accumulate(out, source, k * wx, 1, x_second, True)
                        if wz > 1:
                            accumulate(zbuf[: nz * wx], smooth[c], r * wide, wx, z_second, True)
                            for k in range(nz):
                                out = queue[p + 2, start + k * nx : start + (k + 1) * nx]
                                accumulate(out, zbuf, k * wx + xs - xv, 1, x_value, False)
        before = head
        head += count
        done += count
        for last in range(max(before, depth - 1), head):  # rows whose smoothing along y is complete
            centre = last - ys
            n = 0
            for i in range(layer):
                if abs(means[centre, i]) < cut:
                    kept[n] = i
                    n += 1
            if n == 0:
                continue
            total += n
            near, far = (centre - yv) * layer, (centre - ys) * layer
            for c in range(p + 1):
                accumulate(moment[c], queue[c], near, layer, y_value, True)
            accumulate(moment[p + 1], queue[p + 2], near, layer, y_value, True)
            accumulate(moment[p + 1], queue[p + 1], far, layer, y_second, False)
            taken = 0
            while taken < n:
                step = min(BLOCK - filled, n - taken)
                for c in range(p + 2):
                    for i in range(step):
                        block[c, filled + i] = moment[c, kept[taken + i]]
                filled += step
                taken += step
                if filled == BLOCK:
                    fold(triangle, block, filled)
                    filled = 0
    if filled:
        fold(triangle, block, filled)
    return total
