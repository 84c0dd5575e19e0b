"""The paper's route to the weak system: FFT convolutions frame by frame, explicit rows, one QR.

Kept as the reference for speed and as a check: it shares the weights with the package and nothing else.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from doublewell.weak.assembly import PHASE_CUT
from doublewell.weak.weights import axis_weights
from doublewell.law import Bernstein
from doublewell.record import Record


def reference_triangles(record: Record, family: Bernstein, supports) -> list[tuple[np.ndarray, int]]:
    """Return (R, rows) for each support of a two-dimensional record."""
    u = record.slab()
    features = family.features(u)
    return [_one_support(record, u, features, support) for support in supports]


def _one_support(record: Record, u, features, support) -> tuple[np.ndarray, int]:
    frames, length = support
    time = axis_weights(frames, record.dt)
    y, x = (axis_weights(length / h, h) for h in record.dx)
    mesh = record.mesh
    value = _symbol(y.value, x.value, mesh)
    laplacian = _symbol(y.second, x.value, mesh) + _symbol(y.value, x.second, mesh)
    inside = (slice(None), slice(y.half, mesh[0] - y.half), slice(x.half, mesh[1] - x.half))

    def smooth(field, symbol):
        return np.stack([fft.irfft2(fft.rfft2(frame) * symbol, s=mesh) for frame in field])[inside]

    columns = [_along_time(smooth(feature, value), time.value, time.half) for feature in features]
    columns.append(_along_time(smooth(u, value), time.first, time.half))
    columns.append(_along_time(smooth(u, laplacian), time.value, time.half))
    keep = np.abs(_along_time(u[inside], time.value, time.half)) < PHASE_CUT
    rows = np.stack([column[keep] for column in columns], axis=1)
    triangle = np.linalg.qr(rows, mode="r")
    return np.where(np.diag(triangle) < 0, -1.0, 1.0)[:, None] * triangle, len(rows)


def _symbol(y_taps, x_taps, mesh):
    """The Fourier multiplier of a correlation with separable centred taps."""
    kernel = np.zeros(mesh)
    j = -np.arange(len(y_taps)) + len(y_taps) // 2
    i = -np.arange(len(x_taps)) + len(x_taps) // 2
    kernel[np.ix_(j % mesh[0], i % mesh[1])] = np.outer(y_taps, x_taps)
    return fft.rfft2(kernel)


def _along_time(field, taps, half):
    reach = len(taps) // 2
    centres = field.shape[0] - 2 * half
    out = np.zeros((centres, *field.shape[1:]))
    for k, tap in enumerate(taps):
        start = half - reach + k
        out += tap * field[start : start + centres]
    return out
