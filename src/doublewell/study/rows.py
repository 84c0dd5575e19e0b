"""Rows: weak moments of given columns, formed one by one, for what the compacting reader does not offer.

Unmasked moments, moments of polynomials that are not clipped, and the difference between two designs on one mask need
rows as such. The weights are the reader's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from doublewell.evidence import Block, Fold, Key, axis_weights, compact
from doublewell.evidence.weights import AxisWeights
from doublewell.hints import Array
from doublewell.record import Record

__all__ = ["Smoother", "unmasked_blocks"]


class Smoother:
    """The test weights of one support on the mesh of one record of two space axes."""

    def __init__(self, record: Record, support: tuple[int, float]) -> None:
        frames, length = support
        self.time = axis_weights(frames, record.dt)
        self.space = [axis_weights(length / h, h) for h in record.dx]
        self.inside = tuple(slice(w.half, n - w.half) for w, n in zip(self._axes, record.shape, strict=True))

    @property
    def _axes(self) -> list[AxisWeights]:
        return [self.time, *self.space]

    def value(self, field: Array) -> Array:
        """Return S[field] at all centres, as field[t, y, x] without the margins."""
        return self._apply(field, [w.value for w in self._axes])

    def rate(self, u: Array) -> Array:
        """Return D S[u], the time derivative of the smoothed field."""
        return self._apply(u, [self.time.first, *(w.value for w in self.space)])

    def laplacian(self, u: Array) -> Array:
        """Return Lap S[u]."""
        y, x = self.space
        along_y = self._apply(u, [self.time.value, y.second, x.value])
        return along_y + self._apply(u, [self.time.value, y.value, x.second])

    def temporal_mean(self, u: Array) -> Array:
        """Return the weighted mean in time of u at the centres, which the mask is made of."""
        return self._apply(u, [self.time.value, np.ones(1), np.ones(1)])

    def columns(self, fields: Sequence[Array], keep: NDArray[np.bool_] | None = None) -> Array:
        """Return S of several fields as columns, one row a centre, of the kept centres or all."""
        smoothed = [self.value(field) for field in fields]
        return np.stack([s.reshape(-1) if keep is None else s[keep] for s in smoothed], axis=1)

    def _apply(self, field: Array, taps: Sequence[Array]) -> Array:
        from scipy.ndimage import correlate1d

        for axis in (2, 1, 0):
            if taps[axis].size > 1:
                field = correlate1d(field, taps[axis], axis=axis, mode="constant")
        return np.asarray(field[self.inside])


def unmasked_blocks(
    record: Record, powers: Sequence[int], supports: Sequence[tuple[int, float]], folds: Sequence[Fold]
) -> tuple[Block, ...]:
    """Return blocks of [powers of u | rate | Laplacian] over every centre, for each support and fold.

    Rows that lie in no fold form the block "straddle".
    """
    u = record.slab()
    fields = [u**k for k in powers]
    blocks = []
    for support in supports:
        smoother = Smoother(record, support)
        columns = [*(smoother.value(field) for field in fields), smoother.rate(u), smoother.laplacian(u)]
        stack = np.stack(columns, axis=-1)
        parts = {fold.name: _centres(fold, smoother.time.half) for fold in folds}
        inside = np.zeros(len(stack), dtype=bool)
        for part in parts.values():
            inside[part] = True
        blocks += [_block(stack[part], support, name) for name, part in parts.items()]
        blocks.append(_block(stack[~inside], support, "straddle"))
    return tuple(blocks)


def _block(rows: Array, support: tuple[int, float], fold: str) -> Block:
    flat = rows.reshape(-1, rows.shape[-1])
    return Block(Key("record", str(support), fold), compact(flat), len(flat))


def _centres(fold: Fold, half: int) -> slice:
    """Return which centre frames have their whole support inside a fold, counted from the first centre."""
    return slice(fold.start, max(fold.start, fold.stop - 2 * half))
