"""Weak moments of a record larger than memory: one pass over its regions, on one core, many, or a cluster.

Frames are held in a window that moves along time, so memory asks for tiles in space and not for short slabs: where a
window of whole frames is too large, tiles are cut across all axes but x. Slabs along time are as long as keeps the
frames that two of them read small, and short enough that little is lost with one of them. The plan follows from the
record, the supports and the budget alone, and so does the answer, to the last bit; the number of workers has no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.compute.checkpoint import Ledger, fingerprint
from doublewell.compute.partition import Region, parse_memory, shown_bytes
from doublewell.compute.run import Clock, Pool, open_pool
from doublewell.dynamics import ALLEN_CAHN, WeakForm
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, merge
from doublewell.hints import Array, Bools, Report
from doublewell.law import Family
from doublewell.observation import Survey
from doublewell.observation.looks import BLOCK, Look, change_between, look_at, look_in_bands, look_spans
from doublewell.observation.survey import survey_of
from doublewell.record import Cells, Record, line_sum, lines_checksum
from doublewell.record.arrays import LazyArray, PhaseScale, missing_fraction
from doublewell.runtime import CPU, Processor
from doublewell.weak.assembly import weak_evidence, window_of
from doublewell.weak.form import bends
from doublewell.weak.frame_buffer import READ_BYTES, Part, Rolling, chunk_frames
from doublewell.weak.weights import MARGIN, Derivative, Fold, Support, half_cells

LIBRARIES = 350 * 10**6  # bytes that Python and its libraries take before anything is read
_LOOK_FRAMES = 14  # frames, as float64, that a look at the record holds at once
_SCRATCH = 48 * 2**20  # bytes of the kernel
_MASKS = 10  # bytes a value while complete supports are sought
_SLAB_BYTES = 256 * 10**6  # of float64 in a slab, about a second of work
_REGIONS = 20_000  # more than these are not made of a very large record: a scheduler takes about a millisecond for each
_HALOS = 6  # least length of a slab in halos: a third of it is read twice at most


@dataclass(frozen=True, eq=False)
class Streamed:
    """What one pass over a record gave: evidence, the checksum of all values, and the share that is missing."""

    evidence: Evidence
    checksum: str
    missing: float


@dataclass(frozen=True, eq=False)
class Stream:
    """How records are read: on which workers, with how much memory for each, and where partial evidence is kept.

    Without ``memory`` nothing is cut in space. ``workers`` are those of this machine, 1 where a scheduler has its own.
    """

    pool: Pool
    memory: int | None
    checkpoint: Path | None = None
    workers: int = 1

    def survey(self, record: Record, *, report: Report | None = None) -> Survey:
        """Look at a record as `survey` does, groups of frames at once on the workers.

        Frames that no look needs are not read here; that all of them are finite is seen when evidence is read. The
        share of missing values of a stored mask is 0 as yet: evidence counts them.
        """
        spans, rows = look_spans(record.frames), look_rows(record, self.memory)
        by_span: dict[int, Look | None] = {}
        for k, look in self.pool.completed(look_task, [(record, *span, rows) for span in spans]):
            by_span[k] = look
            if report is not None:
                report("looking at the record", len(by_span), len(spans))
        shown_spans = [span for k, span in enumerate(spans) if by_span[k] is not None]
        looks = [look for k in range(len(spans)) if (look := by_span[k]) is not None]
        moved = 0.0
        if looks:
            ends = [(record, shown_spans[0], shown_spans[-1])]
            [(_, moved)] = list(self.pool.completed(change_between, ends))
        missing = 0.0 if record.mask is None else missing_fraction(record.mask) or 0.0
        return survey_of(record, looks, moved=moved, missing=missing)

    def evidence(
        self,
        record: Record,
        family: Family,
        supports: Sequence[Support],
        survey: Survey,
        *,
        derivative: Derivative = "discrete",
        folds: Sequence[Fold] = (),
        form: WeakForm = ALLEN_CAHN.weak_form,
        processor: Processor = CPU,
        report: Report | None = None,
    ) -> Streamed:
        """Read the weak moments of a record region by region, each value once but for the halos."""
        regions = make_plan(record, family, supports, self.memory, processor, form)
        threads = max(1, self.workers // len(regions))  # where there are more workers than regions
        reading = Reading(record, family, tuple(supports), derivative, tuple(folds), processor, threads, form)
        options = (family, reading.supports, reading.derivative, reading.folds, form)
        prints = {} if self.checkpoint is None else fingerprint(record, survey.histogram, options, regions)
        ledger = Ledger(self.checkpoint, prints, partial(unpacked, family))
        size = int(np.prod(record.shape)) * np.dtype(record.values.dtype).itemsize
        say = Clock(size, ledger.count, len(regions), report)
        left = ledger.left(range(len(regions)))
        for k, piece in self.pool.completed(assemble, [(reading, regions[number]) for number in left]):
            ledger.add(left[k], piece)
            say.done(ledger.count)
        whole = ledger.merged
        assert whole is not None
        checksum = lines_checksum(record.shape, whole.lines)
        return Streamed(whole.evidence, checksum, 1.0 - whole.observed / int(np.prod(record.shape)))


@contextmanager
def open_stream(
    record: Record,
    *,
    memory: Any = None,
    workers: int | None = None,
    scheduler: Any = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Iterator[Stream]:
    """Give a stream for one record; what it started ends with the block."""
    path = None if checkpoint is None else Path(checkpoint).expanduser()
    with open_pool(record, workers or 1, scheduler) as pool:
        yield Stream(pool, None if memory is None else parse_memory(memory), path, workers or 1)


@dataclass(frozen=True, eq=False)
class Reading:
    """What is read of a record: the same for all its regions."""

    record: Record
    family: Family
    supports: tuple[Support, ...]
    derivative: Derivative
    folds: tuple[Fold, ...]
    processor: Processor = CPU
    threads: int = 1
    form: WeakForm = ALLEN_CAHN.weak_form


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


def unpacked(family: Family, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Piece:
    """Return the piece that a checkpoint holds."""
    parts = zip(about["keys"], arrays["triangles"], about["rows"], strict=True)
    blocks = tuple(Block(Key(*key), triangle, rows) for key, triangle, rows in parts)
    return Piece(Evidence(family, blocks), int(about["lines"], 16), about["observed"])


def assemble(reading: Reading, region: Region) -> Piece:
    """Read one region of a record with its halo and return its evidence."""
    record = reading.record
    held, block = window_of(record, reading.family, reading.supports, region, reading.processor, reading.form)
    watch = _Watch(record, region, block.cells)
    first, last = block.frames
    frames = Rolling(record, held, block.cells, first=first, until=last, read_part=watch.read)
    try:
        evidence = weak_evidence(
            record, reading.family, reading.supports, derivative=reading.derivative, folds=reading.folds,
            form=reading.form, region=region, frames=frames, threads=reading.threads, processor=reading.processor,
        )  # fmt: skip
    finally:
        frames.close()
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
        last = record.values.functions[-1:] if isinstance(record.values, LazyArray) else ()
        self.scale = last[0] if last and isinstance(last[0], PhaseScale) else None
        self.record = record if self.scale is None else record.replace(record.values.base)
        self.region, self.cells = region, cells
        self.lines, self.observed = 0, 0

    def read(self, start: int, stop: int) -> Part:
        block = self.record.slab(start, stop, self.cells)
        mask = None if self.record.mask is None else self.record.observed(start, stop, self.cells)
        first, last = max(start, self.region.frames[0]), min(stop, self.region.frames[1])
        if first < last:
            own = self._own(first - start, last - start)
            self._count(block[own], None if mask is None else mask[own], first)
        return start, self._scaled(block, mask), mask

    def _own(self, first: int, last: int) -> tuple[slice, ...]:
        pairs = zip(self.region.cells, self.cells, strict=True)
        return slice(first, last), *(slice(low - origin, high - origin) for (low, high), (origin, _) in pairs)

    def _count(self, block: Array, mask: Bools | None, first: int) -> None:
        self.observed += block.size if mask is None else int(np.count_nonzero(mask))
        self.lines += line_sum(block, mask, first, self.region.cells, self.record.mesh)

    def _scaled(self, block: Array, mask: Bools | None) -> Array:
        if self.scale is None:
            return block
        scaled = self.scale(block)
        return scaled if mask is None else np.where(mask, scaled, 0.0)


def make_plan(
    record: Record, family: Family, supports: Sequence[Support], memory: int | None, processor: Processor = CPU,
    form: WeakForm = ALLEN_CAHN.weak_form,
) -> tuple[Region, ...]:  # fmt: skip
    """Cut a record into regions, in the order in which their evidence is merged; `memory` is a budget in bytes.

    Slabs along time are made without a budget too, for workers and checkpoints: the answer does not depend on them.
    """
    whole = [Region.whole(record).cells]
    tiles = whole if memory is None else _tiles(record, family, supports, memory, processor, form)
    points = max(int(np.prod([high - low for low, high in cells])) for cells in tiles)
    halo = max(support.frames for support in supports) + MARGIN
    length = max(_HALOS * halo, _SLAB_BYTES // (8 * points), record.frames * len(tiles) // _REGIONS, 1)
    edges = _edges(record.frames, max(1, round(record.frames / length)), chunk_frames(record.values))
    return tuple(Region(frames, cells) for frames in pairwise(edges) for cells in tiles)


def slab_bytes(
    record: Record, family: Family, supports: Sequence[Support], region: Region, processor: Processor = CPU,
    form: WeakForm = ALLEN_CAHN.weak_form,
) -> int:  # fmt: skip
    """Return the memory that reading one region takes, at most, beside the libraries."""
    held, block = window_of(record, family, supports, region, processor, form)
    cells = int(np.prod([high - low for low, high in block.cells]))
    item = 4 if np.dtype(record.values.dtype).itemsize <= 4 else 8
    halo = max(support.frames for support in supports) + MARGIN
    step = max(held - 2 * halo, 1)
    part = max(READ_BYTES, 8 * cells * chunk_frames(record.values))
    window = cells * (held + step) * item
    mask = 0 if record.mask is None else cells * (held + step + _MASKS * held)
    return window + mask + 4 * part + _SCRATCH


def _tiles(
    record: Record, family: Family, supports: Sequence[Support], memory: int, processor: Processor, form: WeakForm
) -> list[Cells]:
    """Cut the mesh into the fewest tiles that fit: the longest side is cut first, never x."""
    counts = [1] * len(record.mesh)
    while True:
        edges = [_edges(n, count, chunk) for n, count, chunk in zip(record.mesh, counts, _chunks(record), strict=True)]
        widest = Region((0, record.frames), _widest(record, supports, edges, MARGIN * bends(form)))
        need = slab_bytes(record, family, supports, widest, processor, form)
        if LIBRARIES + need <= memory:
            return list(product(*(list(pairwise(one)) for one in edges)))
        sides = [n / count if n > count else 0.0 for n, count in zip(record.mesh[:-1], counts[:-1], strict=True)]
        if not any(sides):
            raise InputError(
                f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(LIBRARIES + need)} for a record of "
                f"{record.mesh} cells with these supports; give more memory, or shorter supports"
            )
        counts[int(np.argmax(sides))] += 1


def _widest(record: Record, supports: Sequence[Support], edges: Sequence[list[int]], margin: int) -> Cells:
    """Return along each axis the part that is longest with its halo."""
    length = max(support.length for support in supports)
    halos = [half_cells(length / h) + margin for h in record.dx]
    return tuple(
        max(pairwise(one), key=lambda part: min(n, part[1] + halo) - max(0, part[0] - halo))
        for one, halo, n in zip(edges, halos, record.mesh, strict=True)
    )


def look_rows(record: Record, memory: int | None) -> int:
    """Return how many rows of the first space axis a look at the record may hold at once, all where they fit."""
    if memory is None:
        return record.mesh[0]
    row = _LOOK_FRAMES * 8 * int(np.prod(record.mesh[1:]))
    rows = (memory - LIBRARIES) // row
    if rows >= record.mesh[0]:
        return record.mesh[0]
    least = LIBRARIES + 4 * BLOCK * row
    if memory < least or len(record.mesh) == 1:
        need = LIBRARIES + record.mesh[0] * row if len(record.mesh) == 1 else least
        raise InputError(
            f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(need)} for a first look at a record of "
            f"{record.mesh} cells; give more memory"
        )
    return int(rows) // BLOCK * BLOCK - 2 * BLOCK  # a band has neighbours on both sides


def _chunks(record: Record) -> tuple[int, ...]:
    """Return how many cells are stored together along each space axis, 1 where that is not known."""
    chunks = getattr(record.values, "chunks", None)
    if isinstance(chunks, tuple) and len(chunks) == len(record.shape) and all(isinstance(n, int) for n in chunks):
        return chunks[1:]
    return (1,) * len(record.mesh)  # dask has tuples there


def _edges(size: int, parts: int, multiple: int) -> list[int]:
    """Cut 0..size into nearly equal parts, at multiples where the parts are longer than two of them."""
    step = multiple if size >= 2 * multiple * parts else 1
    inner = {min(step * round(k * size / (parts * step)), size) for k in range(1, parts)}
    return sorted({0, size} | inner)
