"""Rate noise: what white noise does to the time derivative of the smoothed field, from the weights alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.evidence.weights import Derivative, Support, axis_weights
from doublewell.hints import Array
from doublewell.record import Record

__all__ = ["RateNoise", "rate_noise"]


@dataclass(frozen=True)
class RateNoise:
    """The variance of the noise in the rate D S[u] of one row, and how many neighbouring rows share one such noise."""

    variance: float
    overlap: float


def rate_noise(record: Record, support: Support, noise: float, derivative: Derivative = "discrete") -> RateNoise:
    """Return the noise in the rate of one support for pixels with white noise of a standard deviation.

    Rows overlap: as far as their squares are concerned, `overlap` of them count as one.
    """
    time = axis_weights(support.frames, record.dt, derivative)
    space = [axis_weights(support.length / h, h, derivative) for h in record.dx]
    taps = [time.first, *(w.value for w in space)]
    centres = [n - 2 * w.half for n, w in zip(record.shape, [time, *space], strict=True)]
    alike = [min(_alike(t), float(n)) for t, n in zip(taps, centres, strict=True)]
    return RateNoise(noise**2 * float(np.prod([np.sum(t**2) for t in taps])), float(np.prod(alike)))


def _alike(taps: Array) -> float:
    """Return the sum of the squared correlations of all shifts of the taps with themselves."""
    shifts = np.correlate(taps, taps, mode="full")
    return float(np.sum((shifts / shifts.max()) ** 2))
