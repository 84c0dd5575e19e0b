"""Folding: rows of the moment matrix, a few hundred at a time, into a triangle R by Householder steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.weak.compiled import FAST, jit
from doublewell.weak.vectors import LANES, move

__all__ = ["BLOCK", "fold", "gather"]

BLOCK = 512  # rows held before a Householder step


@jit(fastmath=FAST)
def fold(triangle: Array, block: Array, n: int) -> None:
    """Fold the first n rows of a block, stored column by column, into the triangle R by Householder steps.

    Column k + 1 is reflected first; then one walk over each later column reflects it and takes its product with that
    one, which the next step needs.
    """
    columns = triangle.shape[0]
    dots = np.empty(columns)
    for j in range(columns):
        dots[j] = product(block[0, :n], block[j, :n])
    for k in range(columns):
        x, below = block[k, :n], dots[k]
        pivot = triangle[k, k]
        norm = math.sqrt(pivot * pivot + below)
        target = -norm if pivot > 0.0 else norm
        head = pivot - target
        scale = 2.0 / (head * head + below) if below > 0.0 else 0.0
        if below > 0.0:
            triangle[k, k] = target
        for j in range(k + 1, columns):
            dots[j] = scale * (dots[j] + head * triangle[k, j])
            triangle[k, j] -= dots[j] * head
        if k + 1 < columns:
            y = block[k + 1, :n]
            dots[k + 1] = reflect_first(x, y, dots[k + 1])
            odd = (columns - k) % 2
            if odd:
                dots[k + 2] = reflect(x, y, block[k + 2, :n], dots[k + 2])
            for j in range(k + 2 + odd, columns, 2):
                pair = block[j, :n], block[j + 1, :n]
                dots[j], dots[j + 1] = reflect_two(x, y, *pair, dots[j], dots[j + 1])


@jit(fastmath=FAST)
def product(x: Array, y: Array) -> float:
    """Return x . y."""
    dot = 0.0
    for i in range(x.size):
        dot += x[i] * y[i]
    return dot


@jit(fastmath=FAST)
def reflect_first(x: Array, y: Array, factor: float) -> float:
    """Take factor times x from y; return the new y . y."""
    dot = 0.0
    for i in range(x.size):
        y[i] -= factor * x[i]
        dot += y[i] * y[i]
    return dot


@jit(fastmath=FAST)
def reflect(x: Array, y: Array, z: Array, factor: float) -> float:
    """Take factor times x from z; return y . z of the new z."""
    dot = 0.0
    for i in range(x.size):
        z[i] -= factor * x[i]
        dot += y[i] * z[i]
    return dot


@jit(fastmath=FAST)
def reflect_two(x: Array, y: Array, z: Array, w: Array, factor: float, other: float) -> tuple[float, float]:
    """Do the work of reflect for two columns, which share the loads of x and y."""
    dot, second = 0.0, 0.0
    for i in range(x.size):
        z[i] -= factor * x[i]
        w[i] -= other * x[i]
        dot += y[i] * z[i]
        second += y[i] * w[i]
    return dot, second


@jit(fastmath=FAST)
def gather(
    moment: Array, quads: NDArray[np.int64], singles: NDArray[np.int64], block: Array, filled: int, triangle: Array
) -> int:
    """Copy kept centres, fours and single ones, into the block; fold it when full; return how many rows it holds."""
    taken = 0
    while taken < quads.size:
        if filled > BLOCK - LANES:
            fold(triangle, block, filled)
            filled = 0
        step = min((BLOCK - filled) // LANES, quads.size - taken)
        for c in range(block.shape[0]):
            row, source = block[c], moment[c]
            for i in range(step):
                move(row, filled + LANES * i, source, quads[taken + i])
        filled += LANES * step
        taken += step
    for place in singles:
        if filled == BLOCK:
            fold(triangle, block, filled)
            filled = 0
        for c in range(block.shape[0]):
            block[c, filled] = moment[c, place]
        filled += 1
    return filled
