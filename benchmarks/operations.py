"""The operations of the weak reading: the least that its separable algorithm needs, nothing read twice, no padding.

For a support with w value taps and v taps of the derivative along each axis, n centres along each axis, E = n + w - 1
and D = n + v - 1 the lengths that its value taps and its derivative taps reach, p = m + 1 features, multiply-adds are

    along t   n_t ((p w_t + v_t) E_y E_x + w_t (D_y E_x + E_y D_x - E_y E_x))
    along x   n_t n_x ((p + 1) w_x E_y + w_x D_y + v_x E_y)
    along y   n_t n_y n_x ((p + 2) w_y + v_y)

(features and time derivative have value taps along x and y; S[u] has value taps along x, then derivative taps along y;
the other part of the Laplacian has derivative taps along x, then value taps along y). A multiply-add is two operations.
Further operations: 4 m + 20 for the features of each value that any support needs, 1 for the mask of each centre, and
2 c^2 for the Householder step of each kept row of c = m + 3 numbers.
"""

from __future__ import annotations

import numpy as np

from doublewell.weak.weights import axis_weights

__all__ = ["multiply_adds", "operations"]


def multiply_adds(shape: tuple[int, int, int], dx: tuple[float, float], dt: float, support, degree: int) -> dict:
    """Multiply-adds of the smoothing along t, x and y of one support."""
    frames, length = support
    axes = [axis_weights(frames, dt), *(axis_weights(length / h, h) for h in dx)]
    n_t, n_y, n_x = (size - 2 * axis.half for size, axis in zip(shape, axes, strict=True))
    (w_t, v_t), (w_y, v_y), (w_x, v_x) = (
        (axis.value.size, (axis.first if k == 0 else axis.second).size) for k, axis in enumerate(axes)
    )
    e_y, e_x, d_y, d_x = n_y + w_y - 1, n_x + w_x - 1, n_y + v_y - 1, n_x + v_x - 1
    p = degree + 1
    return {
        "t": n_t * ((p * w_t + v_t) * e_y * e_x + w_t * (d_y * e_x + e_y * d_x - e_y * e_x)),
        "x": n_t * n_x * ((p + 1) * w_x * e_y + w_x * d_y + v_x * e_y),
        "y": n_t * n_y * n_x * ((p + 2) * w_y + v_y),
        "centres": n_t * n_y * n_x,
        "values": (n_t + w_t - 1) * e_y * e_x,
    }


def operations(record, supports, degree: int, kept: list[int]) -> dict:
    """Operations of all supports; `kept` are the rows of each. Smoothing along y of kept centres alone as well."""
    counts = [multiply_adds(record.shape, record.dx, record.dt, support, degree) for support in supports]
    smoothing = sum(2 * (one["t"] + one["x"] + one["y"]) for one in counts)
    features = (4 * degree + 20) * max(one["values"] for one in counts)
    folding = 2 * (degree + 3) ** 2 * sum(kept)
    total = smoothing + features + folding + sum(one["centres"] for one in counts)
    left_out = sum(2 * one["y"] * (1 - rows / one["centres"]) for one, rows in zip(counts, kept, strict=True))
    return {
        "all centres": float(total),
        "kept centres": float(total - np.round(left_out)),
        "smoothing": float(smoothing),
    }
