"""Drift: how far the picture moves from frame to frame, and how to move it back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from doublewell.hints import Array

__all__ = ["measure_drift", "shift_frame"]

_SMOOTH = 1.5  # pixels
_ROUNDS = 8
_SMALL = 1e-4  # pixels


def measure_drift(frame: Callable[[int], Array], frames: int, *, periodic: bool) -> Array:
    """Return the way of the picture since frame 0, in pixels along each axis; shape (frames, axes).

    Each frame is laid over the one before: the shift of least squares, by Gauss-Newton steps. Growth and shrinking
    change both sides of a drop alike and leave no shift; a pattern that moves by itself is taken for drift.
    """
    before = _smoothed(frame(0), periodic)
    way = np.zeros((frames, before.ndim))
    step = np.zeros(before.ndim)
    for k in range(1, frames):
        now = _smoothed(frame(k), periodic)
        step = _step(before, now, step, periodic)
        way[k] = way[k - 1] + step
        before = now
    return way


def shift_frame(frame: Array, shift: Array, *, periodic: bool) -> Array:
    """Return a frame moved by a shift in pixels: by Fourier modes on a periodic domain, else by cubic splines."""
    from scipy import ndimage

    if not np.any(shift):
        return frame
    if not periodic:
        return np.asarray(ndimage.shift(frame, shift, order=3, mode="nearest"))
    modes = np.fft.fftn(frame)
    for axis, (n, d) in enumerate(zip(frame.shape, shift, strict=True)):
        turn = np.exp(-2j * np.pi * np.fft.fftfreq(n) * d)
        if n % 2 == 0:
            turn[n // 2] = np.cos(np.pi * d)  # the highest mode has no direction
        modes *= turn.reshape([-1 if k == axis else 1 for k in range(frame.ndim)])
    return np.asarray(np.fft.ifftn(modes).real)


def _smoothed(frame: Array, periodic: bool) -> Array:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(frame, _SMOOTH, mode="wrap" if periodic else "nearest"))


def _step(before: Array, now: Array, start: Array, periodic: bool) -> Array:
    """Return the shift d for which now(x) is before(x - d)."""
    margin = (slice(None),) if periodic else tuple(slice(3, -3) for _ in before.shape)
    slopes = np.array([g[margin].ravel() for g in _gradients(before, periodic)])
    shift = start.copy()
    for _ in range(_ROUNDS):
        rest = (shift_frame(now, -shift, periodic=periodic) - before)[margin].ravel()
        change = np.linalg.lstsq(slopes.T, -rest, rcond=None)[0]
        shift = shift + change
        if float(np.max(np.abs(change))) < _SMALL:
            break
    return shift


def _gradients(u: Array, periodic: bool) -> list[Array]:
    if not periodic:
        found = np.gradient(u)
        return list(found) if u.ndim > 1 else [np.asarray(found)]
    return [0.5 * (np.roll(u, -1, axis) - np.roll(u, 1, axis)) for axis in range(u.ndim)]
