"""Temporal weights at uneven frame times: one row of taps for each centre frame.

Around a centre frame c the test function is the paper's (1 - xi^2)^5 over the time from frame c - n to frame c + n.
Each of its samples has the quadrature weight of its frame, from cubics through four neighbouring frames, so that sums
are integrals to fourth order in the interval. On even times all of this is what `axis_weights` gives.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.hints import Array
from doublewell.weak.weights import MARGIN, POWER, Derivative

__all__ = ["uneven_weights"]

_EXACT = 4  # highest power of time whose derivative is exact, as on even times
_BEYOND = 2  # frames that a difference or a cubic needs beyond the frames with a tap
_LEAST = 0.2  # of the trapezium weight: a smaller weight of the cubics, next to a wide gap, is not used


def uneven_weights(half: int, windows: Array, derivative: Derivative = "discrete") -> tuple[Array, Array]:
    """Return the taps of value and first derivative, one row for each row of `windows`.

    A window holds the times of the frames c - half - 2 to c + half + 2. "discrete": summation by parts with five-point
    differences of the sampled test function, and then the smallest smooth change that makes derivatives of polynomials
    up to the fourth degree exact, first @ t^k = k value @ t^(k-1), as they are on even times. "analytic": samples of
    the derivative of the test function.

    >>> value, first = uneven_weights(5, np.array([[0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10.5, 11, 12, 13, 14]]))
    >>> value.shape, first.shape, bool(abs(first.sum()) < 1e-12)
    ((1, 9), (1, 13), True)
    """
    middle, reach = _bump(windows, half)
    wide = _extended(windows)
    xi = (wide - middle) / reach
    test = np.zeros_like(xi)
    inner = slice(MARGIN + _BEYOND + 1, -MARGIN - _BEYOND - 1)
    test[:, inner] = (1.0 - xi[:, inner] ** 2) ** POWER
    weight = _quadrature(xi)
    value = weight[:, inner] * test[:, inner]
    mass = value.sum(axis=1, keepdims=True)
    if derivative == "analytic":
        slope = 2 * POWER * xi[:, inner] * (1.0 - xi[:, inner] ** 2) ** (POWER - 1)
        return value / mass, weight[:, inner] * slope / (mass * reach)
    outer = slice(_BEYOND + 1, -_BEYOND - 1)
    rough = -weight[:, outer] * _slope(xi, test)[:, 1:-1]
    first = rough + _correction(xi[:, outer], weight[:, outer], rough, value)
    return value / mass, first / (mass * reach)


def _bump(windows: Array, half: int) -> tuple[Array, Array]:
    """Return middle and half-length of the time that a test function covers, as columns."""
    start, end = windows[:, MARGIN, None], windows[:, MARGIN + 2 * half, None]
    return 0.5 * (start + end), 0.5 * (end - start)


def _extended(windows: Array) -> Array:
    """Go on beyond both ends with the intervals mirrored: no time outside a support's own frames is asked for."""
    before = 2.0 * windows[:, :1] - windows[:, _BEYOND:0:-1]
    after = 2.0 * windows[:, -1:] - windows[:, -2 : -2 - _BEYOND : -1]
    return np.concatenate([before, windows, after], axis=1)


def _quadrature(xi: Array) -> Array:
    """Return the weights of all points: the integral over each interval of the cubic through the four points around it.

    Next to a gap these may be small or negative. There the trapezium rule takes their place for the whole row.
    """
    points = sliding_window_view(xi, 4, axis=1)
    centre = 0.5 * (points[..., 1:2] + points[..., 2:3])
    half = 0.5 * (points[..., 2:3] - points[..., 1:2])
    powers = ((points - centre) / half)[..., None, :] ** np.arange(4)[:, None]
    moments = np.broadcast_to(np.array([2.0, 0.0, 2.0 / 3.0, 0.0])[:, None], (*powers.shape[:-1], 1))
    shares = half * np.linalg.solve(powers, moments)[..., 0]
    weights, plain = np.zeros_like(xi), np.zeros_like(xi)
    for k in range(4):
        weights[:, k : k + shares.shape[1]] += shares[..., k]
    plain[:, 1:-1] = 0.5 * (xi[:, 2:] - xi[:, :-2])
    used = slice(_BEYOND + 1, -_BEYOND - 1)
    poor = np.any(weights[:, used] < _LEAST * plain[:, used], axis=1, keepdims=True)
    return np.where(poor, plain, weights)


def _slope(xi: Array, test: Array) -> Array:
    """Return five-point differences of the test function at all points but two at each end."""
    points = sliding_window_view(xi, 5, axis=1)
    offsets = points - points[..., 2:3]
    size = np.max(np.abs(offsets), axis=-1, keepdims=True)
    powers = (offsets / size)[..., None, :] ** np.arange(5)[:, None]
    unit = np.broadcast_to(np.eye(5)[:, 1:2], (*powers.shape[:-1], 1))
    taps = np.linalg.solve(powers, unit)[..., 0] / size
    return np.asarray(np.sum(taps * sliding_window_view(test, 5, axis=1), axis=-1))


def _correction(xi: Array, weight: Array, rough: Array, value: Array) -> Array:
    """Return the change of the taps, smooth and small, that makes derivatives exact up to the fourth power."""
    places = xi / np.max(np.abs(xi), axis=1, keepdims=True)
    bell = weight * (1.1 - places**2)
    powers = places[:, None, :] ** np.arange(_EXACT + 1)[:, None]
    size = np.max(np.abs(xi), axis=1)[:, None]
    inner = powers[:, :-1, 2:-2]
    wanted = np.zeros((len(xi), _EXACT + 1))
    wanted[:, 1:] = np.arange(1, _EXACT + 1) * np.einsum("rkj,rj->rk", inner, value) / size
    defect = wanted - np.einsum("rkj,rj->rk", powers, rough)
    gram = np.einsum("rkj,rj,rlj->rkl", powers, bell, powers)
    factors = np.linalg.solve(gram, defect[..., None])[..., 0]
    return np.asarray(bell * np.einsum("rk,rkj->rj", factors, powers))
