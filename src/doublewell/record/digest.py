"""Digest: the checksum of a record's values, the same from every file, of the whole or added up from parts."""

from __future__ import annotations

from hashlib import sha256
from itertools import product, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array, Bools
from doublewell.record.record import Cells, Record

_PART = 8 * 2**20  # bytes held at once
_LINES = "sha256-lines:"
_SUMS = 2**256


def checksum(record: Record, *, like: str | None = None) -> str:
    """Return "sha256:" and the digest of shape and values as float64 of low byte first; read part by part.

    The same values give the same digest from every file format and number type. dx, times, q and the boundary do not
    enter: they are settings. What a mask leaves out enters as 0, and the mask where it leaves out something. Where
    `like`, a checksum to compare with, begins with "sha256-lines:", it is a sum over lines along x, each hashed with
    its position: parts of a record can be hashed anywhere, in any order, and added.

    >>> checksum(Record(np.zeros((3, 8)), dx=0.1, dt=0.1))[:23]
    'sha256:e0c945fcb820d4aa'
    """
    lines, total = like is not None and like.startswith(_LINES), 0
    digest, mask, complete = sha256(repr(record.shape).encode()), sha256(b"mask"), True
    for start, slab in record.slabs(max(1, _PART // (8 * int(np.prod(record.mesh))))):
        observed = None if record.mask is None else np.ascontiguousarray(record.observed(start, start + len(slab)))
        if lines:
            total += line_sum(slab, observed, start, tuple(zip(repeat(0), record.mesh)), record.mesh)
            continue
        digest.update(np.ascontiguousarray(slab, dtype="<f8").data)
        if observed is not None:
            mask.update(observed.data)
            complete = complete and bool(observed.all())
    if lines:
        return lines_checksum(record.shape, total)
    if not complete:
        digest.update(mask.digest())
    return "sha256:" + digest.hexdigest()


def lines_checksum(shape: tuple[int, ...], total: int) -> str:
    """Return "sha256-lines:" and the digest of a shape and the sum over all its lines."""
    return _LINES + sha256(repr(shape).encode() + (total % _SUMS).to_bytes(32, "little")).hexdigest()


def line_sum(block: Array, observed: Bools | None, first: int, cells: Cells, mesh: tuple[int, ...]) -> int:
    """Return the sum over the lines along x of a block that begins at frame `first` and has whole lines of the mesh.

    Each line adds the SHA-256 of its position and its values as float64 of low byte first, as a number modulo 2^256;
    where the mask leaves out something, that of its position and what is observed as well.
    """
    lines = np.ascontiguousarray(block, dtype="<f8").reshape(-1, mesh[-1])
    flags = None if observed is None or observed.all() else np.ascontiguousarray(observed).reshape(-1, mesh[-1])
    spans = [range(first, first + len(block)), *(range(*pair) for pair in cells[:-1])]
    steps = [int(np.prod(mesh[k:-1])) for k in range(len(mesh))]
    total = 0
    for k, position in enumerate(product(*spans)):
        key = sum(i * step for i, step in zip(position, steps, strict=True)).to_bytes(8, "little")
        total += _number(key, lines[k])
        if flags is not None and not flags[k].all():
            total += _number(b"mask" + key, flags[k])
    return total % _SUMS


def _number(key: bytes, line: NDArray[Any]) -> int:
    digest = sha256(key)
    digest.update(line.data)
    return int.from_bytes(digest.digest(), "little")
