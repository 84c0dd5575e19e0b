"""Rows: weak moments of given columns at every centre, without a mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublewell.evidence import Block, Key, compact
from doublewell.hints import Array
from doublewell.record import Record
from doublewell.weak import Fold
from doublewell.weak.smoother import Smoother

__all__ = ["unmasked_blocks"]


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
