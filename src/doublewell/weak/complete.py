"""Complete supports: the centres of which every pixel and frame under a tap was observed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["complete_centres"]

Flags = NDArray[np.bool_]


def complete_centres(seen: Flags, halves: tuple[int, ...]) -> Flags:
    """Return for each centre [t, z, y, x] whether all values that its moments use were observed.

    halves are the half-lengths of the taps (time value, time first, z value, z second, y value, y second, x value, x
    second). One column of the moments has the long taps along time, one along each space axis; the support is the union
    of their boxes. What lies outside the array counts as observed: no centre reaches it.
    """
    missing = ~seen
    if not missing.any():
        return np.ones(seen.shape, dtype=bool)
    tv, tf, zv, zs, yv, ys, xv, xs = halves
    short = _near(missing, 3, xv)  # short taps along all axes so far
    long = _near(missing, 3, xs)  # long taps along one of them
    for axis, value, second in ((2, yv, ys), (1, zv, zs)):
        long = _near(long, axis, value) | _near(short, axis, second)
        short = _near(short, axis, value)
    return np.asarray(~(_near(long, 0, tv) | _near(short, 0, tf)))


def _near(missing: Flags, axis: int, half: int) -> Flags:
    """Mark the places with a missing value at most `half` away along an axis, in windows that double in length."""
    if half == 0:
        return missing
    margin = [(half, half) if k == axis else (0, 0) for k in range(missing.ndim)]
    window, length = np.moveaxis(np.pad(missing, margin), axis, 0), 1
    while length < 2 * half + 1:
        step = min(length, 2 * half + 1 - length)
        window = window[:-step] | window[step:]
        length += step
    return np.moveaxis(window, 0, axis)
