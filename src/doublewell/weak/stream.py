"""Weak moments of a record larger than memory: one pass over its regions, on one core, many, or a cluster.

Frames are held in a window that moves along time, so memory asks for tiles in space and not for short slabs: where a
window of whole frames is too large, tiles are cut across all axes but x. Slabs along time are as long as keeps the
frames that two of them read small, and short enough that little is lost with one of them. The plan follows from the
record, the supports and the budget alone, and so does the answer, to the last bit; the number of workers has no part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from doublewell.compute.checkpoint import Ledger, fingerprint
from doublewell.compute.partition import Region, shown_bytes
from doublewell.compute.run import Clock, Pool, Serial, open_pool
from doublewell.dynamics import ALLEN_CAHN, WeakForm
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, merge
from doublewell.hints import Array, Bools, Report
from doublewell.law import Family
from doublewell.observation import Survey
from doublewell.observation.look import BLOCK, Look, change_between, look_at, look_spans
from doublewell.observation.survey import survey_of
from doublewell.record import Cells, Record, line_sum, lines_checksum
from doublewell.record.arrays import LazyArray, PhaseScale, lazy, missing_fraction
from doublewell.runtime import CPU, Processor
from doublewell.units import parse_memory
from doublewell.weak.assembly import weak_evidence, window_of
from doublewell.weak.weights import MARGIN, Derivative, Fold, Support, bends, half_cells

READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size
LIBRARIES = 350 * 10**6  # bytes that Python and its libraries take before anything is read
_LOOK_FRAMES = 14  # frames, as float64, that a look at the record holds at once
_SCRATCH = 48 * 2**20  # bytes of the kernel
_MASKS = 10  # bytes a value while complete supports are sought
_SLAB_BYTES = 256 * 10**6  # of float64 in a slab, about a second of work
_REGIONS = 20_000  # more than these are not made of a very large record: a scheduler takes about a millisecond for each
_HALOS = 6  # least length of a slab in halos: a third of it is read twice at most


@dataclass(frozen=True, eq=False)
class Streamed:
    """What one pass over a record gave: evidence, the checksum of all values, and the fraction that is missing."""

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
        fraction of missing values of a stored mask is 0 as yet: evidence counts them.
        """
        spans, rows = look_spans(record), look_rows(record, self.memory)
        tasks, looks, moved = [(record, *span, rows) for span in spans], dict[int, Look](), (0.0, np.empty(0))
        for done, (k, look) in enumerate(self.pool.completed(look_task, tasks), 1):
            looks |= {} if look is None else {k: look}
            if report is not None:
                report("looking at the record", done, len(spans))
        if looks:
            ends = [(record, spans[min(looks)], spans[max(looks)])]
            [(_, moved)] = list(self.pool.completed(change_between, ends))
        missing = 0.0 if record.mask is None else missing_fraction(record.mask) or 0.0
        return survey_of(record, [looks[k] for k in sorted(looks)], *moved, missing)

    def evidence(
        self, record: Record, family: Family, supports: Sequence[Support], survey: Survey, *, derivative: Derivative,
        folds: Sequence[Fold], form: WeakForm, processor: Processor, report: Report | None = None,
    ) -> Streamed:  # fmt: skip
        """Read the weak moments of a record region by region, each value once but for the halos."""
        regions = make_plan(record, family, supports, self.memory, processor, form)
        threads = max(1, self.workers // len(regions))  # where there are more workers than regions
        options = {"derivative": derivative, "folds": folds, "form": form, "processor": processor, "threads": threads}
        asked = (family, tuple(supports), derivative, tuple(folds), form)
        prints = {} if self.checkpoint is None else fingerprint(record, survey.histogram, asked, regions)
        ledger = Ledger(self.checkpoint, prints, partial(unpacked, family))
        size = int(np.prod(record.shape)) * np.dtype(record.values.dtype).itemsize
        say = Clock(size, ledger.count, len(regions), report)
        left = ledger.left(range(len(regions)))
        tasks = [(record, regions[number], family, supports, options) for number in left]
        for k, piece in self.pool.completed(assemble, tasks):
            ledger.add(left[k], piece)
            say.done(ledger.count)
        assert ledger.merged is not None
        evidence, lines, observed = ledger.merged
        return Streamed(evidence, lines_checksum(record.shape, lines), 1.0 - observed / int(np.prod(record.shape)))


@contextmanager
def open_stream(
    record: Record, *, memory: Any = None, workers: int | None = None, scheduler: Any = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Iterator[Stream]:  # fmt: skip
    """Give a stream for one record; what it started ends with the block."""
    path = None if checkpoint is None else Path(checkpoint).expanduser()
    with open_pool(record, workers or 1, scheduler) as pool:
        yield Stream(pool, None if memory is None else parse_memory(memory), path, workers or 1)


class Piece(NamedTuple):
    """What one region yields: evidence, the sum over its lines for the checksum, and how many values were observed."""

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


def assemble(
    record: Record, region: Region, family: Family, supports: Sequence[Support], options: Mapping[str, Any]
) -> Piece:
    """Read one region of a record with its halo and return its evidence."""
    held, block = window_of(record, family, supports, region, options["processor"], options["form"])
    first, last = block.frames
    frames = Rolling(record, held, block.cells, first=first, until=last, region=region)
    try:
        evidence = weak_evidence(record, family, supports, region=region, frames=frames, **options)
    finally:
        frames.close()
    return Piece(evidence, frames.lines, frames.count)


def look_task(record: Record, start: int, stop: int, rows: int) -> Look | None:
    """Look at a group of frames, `rows` of the first space axis at a time; the mean picture stays here."""
    look = look_at(record, start, stop, rows)
    return None if look is None else replace(look, mean=np.empty(0))


class Rolling:
    """The latest frames of a stored record, in single precision where it is stored so; each is read once.

    `length` is the most that is asked for at once. With `until`, frames up to that one are read ahead by a thread while
    the caller is busy, as many as the last step took. With a `region`, ``count`` and ``lines`` are how many of its own
    values were observed and the sum for its checksum: that of the values as they are stored, those of a record with
    other phases are rescaled after.
    """

    def __init__(
        self, record: Record, length: int, cells: Cells, *, first: int = 0, until: int | None = None,
        region: Region | None = None,
    ) -> None:  # fmt: skip
        kind = np.float32 if np.dtype(record.values.dtype).itemsize <= 4 else np.float64
        last = record.values.functions[-1:] if region is not None and isinstance(record.values, LazyArray) else ()
        self.scale = last[0] if last and isinstance(last[0], PhaseScale) else None
        self.record = record if self.scale is None else record.replace(record.values.base)
        self.cells, self.region, self.first, self.last, self.count, self.lines = cells, region, first, first, 0, 0
        self.buffer = np.empty((min(record.frames, length), *[high - low for low, high in cells]), kind)
        self.observed = None if record.mask is None else np.empty(self.buffer.shape, bool)
        self._reader: Executor = Serial() if until is None else ThreadPoolExecutor(1, "reading ahead")
        self._ahead = until is not None
        self._parts = read_parts(record, cells, first, record.frames if until is None else until)
        self._waiting: deque[Future[tuple[int, Array, Bools | None]]] = deque()
        self._asked = first  # past the last frame that is read, being read or waiting to be
        self._rest: tuple[int, Array, Bools | None] = first, self.buffer[:0], None

    def read(self, first: int, last: int) -> tuple[Array, Bools | None]:
        """Return frames first..last-1; frames that were held stay, the others come in."""
        step = last - self.last
        for held in (self.buffer, *(() if self.observed is None else (self.observed,))):
            for k in range(first, self.last):  # one by one: NumPy would copy the whole overlap first
                held[k - first] = held[k - self.first]
        self.first = first
        while self.last < last:
            start, frames, observed = self._rest
            if not len(frames):
                self._request(self.last + 1)
                start, frames, observed = self._waiting.popleft().result()
            count = min(last - start, len(frames))
            to = slice(start - first, start - first + count)
            self.buffer[to] = frames[:count]
            if self.observed is not None and observed is not None:
                self.observed[to] = observed[:count]
            self.last = start + count
            self._rest = self.last, frames[count:], None if observed is None else observed[count:]
        if self._ahead:
            self._request(last + step)
        window = self.buffer[: last - first].view()
        window.flags.writeable = False
        return window, None if self.observed is None else self.observed[: last - first]

    def close(self) -> None:
        """End the thread that reads ahead."""
        self._reader.shutdown(cancel_futures=True)

    def _request(self, until: int) -> None:
        while self._asked < until and (part := next(self._parts, None)):
            self._asked = part[1]
            self._waiting.append(self._reader.submit(self._fetch, *part))

    def _fetch(self, start: int, stop: int) -> tuple[int, Array, Bools | None]:
        values = self.record.slab(start, stop, self.cells)
        mask = None if self.record.mask is None else self.record.observed(start, stop, self.cells)
        if self.region is not None:
            first, last = max(start, self.region.frames[0]), min(stop, self.region.frames[1])
            pairs = zip(self.region.cells, self.cells, strict=True)
            own = slice(first - start, last - start), *[slice(low - at, high - at) for (low, high), (at, _) in pairs]
            if first < last:
                known = None if mask is None else mask[own]
                self.count += values[own].size if known is None else int(np.count_nonzero(known))
                self.lines += line_sum(values[own], known, first, self.region.cells, self.record.mesh)
        if self.scale is not None:
            values = self.scale(values) if mask is None else np.where(mask, self.scale(values), 0.0)
        return start, values.astype(self.buffer.dtype, copy=False), mask


def read_parts(record: Record, cells: Cells, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut frames first..last-1 into parts of about READ_BYTES whose edges are those of stored chunks."""
    chunk = stored_together(record)[0]
    size = max(1, READ_BYTES // (8 * chunk * int(np.prod([high - low for low, high in cells])))) * chunk
    yield from pairwise([first, *range(first // chunk * chunk + size, last, size), last])


def stored_together(record: Record) -> tuple[int, ...]:
    """Return how many frames, and cells along each axis, are stored together; 1 where that is not known."""
    return lazy(record.values).chunks or (1,) * len(record.shape)


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
    halo = max(support.reach for support in supports)
    length = max(_HALOS * halo, _SLAB_BYTES // (8 * points), record.frames * len(tiles) // _REGIONS, 1)
    edges = _edges(record.frames, max(1, round(record.frames / length)), stored_together(record)[0])
    return tuple(Region(frames, cells) for frames in pairwise(edges) for cells in tiles)


def slab_bytes(
    record: Record, family: Family, supports: Sequence[Support], region: Region, processor: Processor = CPU,
    form: WeakForm = ALLEN_CAHN.weak_form,
) -> int:  # fmt: skip
    """Return the memory that reading one region takes, at most, beside the libraries."""
    held, block = window_of(record, family, supports, region, processor, form)
    cells = int(np.prod([high - low for low, high in block.cells]))
    item = 4 if np.dtype(record.values.dtype).itemsize <= 4 else 8
    halo = max(support.reach for support in supports)
    step = max(held - 2 * halo, 1)
    part = max(READ_BYTES, 8 * cells * stored_together(record)[0])
    window = cells * (held + step) * item
    mask = 0 if record.mask is None else cells * (held + step + _MASKS * held)
    return window + mask + 4 * part + _SCRATCH


def _tiles(
    record: Record, family: Family, supports: Sequence[Support], memory: int, processor: Processor, form: WeakForm
) -> list[Cells]:
    """Cut the mesh into the fewest tiles that fit: the longest side is cut first, never x."""
    counts, length = [1] * len(record.mesh), max(support.length for support in supports)
    while True:
        parts, widest = [], []
        for n, count, chunk, h in zip(record.mesh, counts, stored_together(record)[1:], record.dx, strict=True):
            parts.append(list(pairwise(_edges(n, count, chunk))))
            halo = half_cells(length / h) + MARGIN * bends(form)
            sides = [min(n, high + halo) - max(0, low - halo) for low, high in parts[-1]]
            widest.append(parts[-1][sides.index(max(sides))])
        region = Region((0, record.frames), tuple(widest))
        need = LIBRARIES + slab_bytes(record, family, supports, region, processor, form)
        if need <= memory:
            return list(product(*parts))
        lengths = [n / count if n > count else 0.0 for n, count in zip(record.mesh[:-1], counts[:-1], strict=True)]
        if not any(lengths):
            raise InputError(
                f"memory is {shown_bytes(memory)}: expected at least {shown_bytes(need)} for a record of {record.mesh} "
                "cells with these supports; give more memory, or shorter supports"
            )
        counts[int(np.argmax(lengths))] += 1


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


def _edges(size: int, parts: int, multiple: int) -> list[int]:
    """Cut 0..size into nearly equal parts, at multiples where the parts are longer than two of them."""
    step = multiple if size >= 2 * multiple * parts else 1
    inner = {min(step * round(k * size / (parts * step)), size) for k in range(1, parts)}
    return sorted({0, size} | inner)
