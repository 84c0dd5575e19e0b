"""Tasks: what a worker does. It opens the record itself, reads one region, and returns a few kilobytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublewell.evidence import Block, Evidence, Key, merge
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.observation.bands import look_in_bands
from doublewell.observation.looks import Look, look_at
from doublewell.record import Cells, Record, Seen, line_sum
from doublewell.record.rescaled import Rescaled
from doublewell.weak import CPU, Derivative, Fold, Processor, Region, Support, weak_evidence, window_of
from doublewell.weak.reel import Part, Rolling

__all__ = ["Piece", "Reading", "assemble", "look_task", "unpacked"]


@dataclass(frozen=True, eq=False)
class Reading:
    """What is read of a record: the same for all its regions."""

    record: Record
    family: LinearFamily
    supports: tuple[Support, ...]
    derivative: Derivative
    folds: tuple[Fold, ...]
    processor: Processor = CPU
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Piece:
    """What one region says: evidence, the sum over its lines for the checksum, and how many values were observed."""

    evidence: Evidence
    lines: int
    observed: int

    def joined(self, other: Piece) -> Piece:
        """Return this region and the next one as one."""
        evidence = merge([self.evidence, other.evidence])
        return Piece(evidence, self.lines + other.lines, self.observed + other.observed)

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what a checkpoint holds of it."""
        blocks = self.evidence.blocks
        about = {
            "keys": [list(block.key) for block in blocks],
            "rows": [int(block.rows) for block in blocks],
            "lines": f"{self.lines:x}",
            "observed": self.observed,
        }
        return about, {"triangles": np.stack([block.triangle for block in blocks])}


def unpacked(family: LinearFamily, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Piece:
    """Return the piece that a checkpoint holds."""
    parts = zip(about["keys"], arrays["triangles"], about["rows"], strict=True)
    blocks = tuple(Block(Key(*key), triangle, rows) for key, triangle, rows in parts)
    return Piece(Evidence(family, blocks), int(about["lines"], 16), about["observed"])


def assemble(reading: Reading, region: Region) -> Piece:
    """Read one region of a record with its halo and return its evidence."""
    record = reading.record
    held, block = window_of(record, reading.family, reading.supports, region, reading.processor)
    watch = _Watch(record, region, block.cells)
    first, last = block.frames
    reel = Rolling(record, held, block.cells, first=first, until=last, read_part=watch.read)
    try:
        evidence = weak_evidence(
            record, reading.family, reading.supports, derivative=reading.derivative, folds=reading.folds,
            region=region, reel=reel, threads=reading.threads, processor=reading.processor,
        )  # fmt: skip
    finally:
        reel.close()
    return Piece(evidence, watch.lines, watch.observed)


def look_task(record: Record, start: int, stop: int, rows: int) -> Look | None:
    """Look at a group of frames, `rows` of the first space axis at a time; the mean picture stays here."""
    look = look_at(record, start, stop) if rows >= record.mesh[0] else look_in_bands(record, start, stop, rows)
    return None if look is None else replace(look, mean=np.empty(0))


class _Watch:
    """Reads parts of a region with its halo, and counts and hashes what belongs to the region itself.

    The checksum is of the values as they are stored; those of a record with other phases are rescaled after.
    """

    def __init__(self, record: Record, region: Region, cells: Cells) -> None:
        self.scale = record.values if isinstance(record.values, Rescaled) else None
        self.record = record if self.scale is None else record.replace(self.scale.source)
        self.region, self.cells = region, cells
        self.lines, self.observed = 0, 0

    def read(self, start: int, stop: int) -> Part:
        block = self.record.slab(start, stop, self.cells)
        seen = None if self.record.mask is None else self.record.seen(start, stop, self.cells)
        first, last = max(start, self.region.frames[0]), min(stop, self.region.frames[1])
        if first < last:
            own = self._own(first - start, last - start)
            self._count(block[own], None if seen is None else seen[own], first)
        return start, self._scaled(block, seen), seen

    def _own(self, first: int, last: int) -> tuple[slice, ...]:
        pairs = zip(self.region.cells, self.cells, strict=True)
        return slice(first, last), *(slice(low - origin, high - origin) for (low, high), (origin, _) in pairs)

    def _count(self, block: Array, seen: Seen | None, first: int) -> None:
        self.observed += block.size if seen is None else int(np.count_nonzero(seen))
        self.lines += line_sum(block, seen, first, self.region.cells, self.record.mesh)

    def _scaled(self, block: Array, seen: Seen | None) -> Array:
        if self.scale is None:
            return block
        scaled = self.scale.apply(block)
        return scaled if seen is None else np.where(seen, scaled, 0.0)
