"""Rate noise: what white noise does to the time derivative of the smoothed field, from the weights alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.hints import Array
from doublewell.record import Record
from doublewell.weak.uneven import uneven_weights
from doublewell.weak.weights import MARGIN, Derivative, Support, axis_weights

__all__ = ["RateNoise", "rate_noise"]


@dataclass(frozen=True)
class RateNoise:
    """The variance of the noise in the rate D S[u] of one row, and how many neighbouring rows share one such noise."""

    variance: float
    overlap: float


def rate_noise(record: Record, support: Support, noise: float, derivative: Derivative = "discrete") -> RateNoise:
    """Return the noise in the rate of one support for pixels with white noise of a standard deviation.

    Rows overlap: as far as their squares are concerned, `overlap` of them count as one. At uneven times the variance
    is the mean over the centre frames, and the overlap that of frames at their mean interval.
    """
    interval = float(record.times[-1] - record.times[0]) / (record.frames - 1)
    time = axis_weights(support.frames, interval, derivative)
    space = [axis_weights(support.length / h, h, derivative) for h in record.dx]
    taps = [time.first, *(w.value for w in space)]
    centres = [n - 2 * w.half for n, w in zip(record.shape, [time, *space], strict=True)]
    alike = [min(_alike(t), float(n)) for t, n in zip(taps, centres, strict=True)]
    squares = [float(np.sum(t**2)) for t in taps]
    if not record.uniform:
        windows = sliding_window_view(record.times, 2 * (support.frames + MARGIN) + 1)
        _, first = uneven_weights(support.frames, windows, derivative)
        squares[0] = float(np.mean(np.sum(first**2, axis=1)))
    return RateNoise(noise**2 * float(np.prod(squares)), float(np.prod(alike)))


def _alike(taps: Array) -> float:
    """Return the sum of the squared correlations of all shifts of the taps with themselves."""
    shifts = np.correlate(taps, taps, mode="full")
    return float(np.sum((shifts / shifts.max()) ** 2))
