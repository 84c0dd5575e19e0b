"""Smoother: weak moments of whole fields, formed one by one, for what the compacting kernel does not offer.

Moments of polynomials that are not clipped, rows that another rule chooses, and the difference between two designs on
one mask need rows as such. The weights are the kernel's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.record import Record
from doublewell.weak.weights import AxisWeights, Derivative, axis_weights

__all__ = ["Smoother", "correlate"]


class Smoother:
    """The test weights of one support on the mesh of one record, for fields u[t, (z, y,) x]."""

    def __init__(self, record: Record, support: tuple[int, float], derivative: Derivative = "discrete") -> None:
        frames, length = support
        time = axis_weights(frames, record.dt, derivative)
        self._set(record, time, [axis_weights(length / h, h, derivative) for h in record.dx])

    @classmethod
    def of_weights(cls, record: Record, time: AxisWeights, space: Sequence[AxisWeights]) -> Smoother:
        """Return the smoother of any test weights, one for each axis."""
        found = cls.__new__(cls)
        found._set(record, time, space)
        return found

    def _set(self, record: Record, time: AxisWeights, space: Sequence[AxisWeights]) -> None:
        self.time, self.space = time, list(space)
        self.inside = tuple(slice(w.half, n - w.half) for w, n in zip(self.axes, record.shape, strict=True))

    @property
    def axes(self) -> list[AxisWeights]:
        """The weights along every axis, time first."""
        return [self.time, *self.space]

    def value(self, field: Array) -> Array:
        """Return S[field] at all centres, as field[t, y, x] without the margins."""
        return self._apply(field, [w.value for w in self.axes])

    def rate(self, u: Array) -> Array:
        """Return D S[u], the time derivative of the smoothed field."""
        return self._apply(u, [self.time.first, *(w.value for w in self.space)])

    def laplacian(self, u: Array) -> Array:
        """Return Lap S[u]."""
        return np.asarray(sum(self._apply(u, taps) for taps in self.laplacian_taps()))

    def temporal_mean(self, u: Array) -> Array:
        """Return the weighted mean in time of u at the centres, which the mask is made of."""
        return self._apply(u, [self.time.value, *(np.ones(1) for _ in self.space)])

    def laplacian_taps(self) -> list[list[Array]]:
        """Return the taps along each axis of the terms of Lap S, one term for each axis of space."""
        return [
            [self.time.value, *(w.second if k == axis else w.value for k, w in enumerate(self.space))]
            for axis in range(len(self.space))
        ]

    def columns(self, fields: Sequence[Array], keep: NDArray[np.bool_] | None = None) -> Array:
        """Return S of several fields as columns, one row a centre, of the kept centres or all."""
        smoothed = [self.value(field) for field in fields]
        return np.stack([s.reshape(-1) if keep is None else s[keep] for s in smoothed], axis=1)

    def _apply(self, field: Array, taps: Sequence[Array]) -> Array:
        return np.asarray(correlate(field, taps)[self._centres(field)])

    def _centres(self, field: Array) -> tuple[slice, ...]:
        """Return where the centres lie in a field that may hold fewer frames than the record."""
        frames = slice(self.time.half, len(field) - self.time.half)
        return (frames, *self.inside[1:])


def correlate(field: Array, taps: Sequence[Array]) -> Array:
    """Return sum_k taps[k] field[. + k] along every axis, the taps centred; zero outside the field."""
    from scipy.ndimage import correlate1d

    for axis in reversed(range(field.ndim)):
        if taps[axis].size > 1:
            field = correlate1d(field, taps[axis], axis=axis, mode="constant")
        elif taps[axis][0] != 1.0:
            field = taps[axis][0] * field
    return np.asarray(field)
