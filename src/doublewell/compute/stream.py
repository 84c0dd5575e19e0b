"""Stream: a survey and the weak evidence of a record in one pass over it, within a budget of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from doublewell.checks import shown, whole
from doublewell.compute.checkpoint import Ledger
from doublewell.compute.executors import Pool, open_pool
from doublewell.compute.fingerprint import fingerprint
from doublewell.compute.memory import DEFAULT, parse_memory
from doublewell.compute.plan import look_rows, make_plan
from doublewell.compute.tasks import Reading, assemble, look_task, unpacked
from doublewell.errors import InputError
from doublewell.evidence import Evidence
from doublewell.hints import Report
from doublewell.law import LinearFamily
from doublewell.observation import Survey
from doublewell.observation.looks import Look, change_between, look_spans
from doublewell.observation.survey import survey_of
from doublewell.record import Record, lines_checksum
from doublewell.record.mask import missing_share
from doublewell.weak import CPU, Derivative, Fold, Processor, Support

__all__ = ["Clock", "Stream", "Streamed", "check_resources", "open_stream"]


@dataclass(frozen=True, eq=False)
class Streamed:
    """What one pass over a record gave: evidence, the checksum of all values, and the share that is missing."""

    evidence: Evidence
    checksum: str
    missing: float


@dataclass(frozen=True, eq=False)
class Stream:
    """How records are read: on which workers, with how much memory for each, and where partial evidence is kept.

    ``workers`` are those of this machine, 1 where a scheduler has its own.
    """

    pool: Pool
    memory: int
    checkpoint: Path | None = None
    workers: int = 1

    def survey(self, record: Record, *, report: Report | None = None) -> Survey:
        """Look at a record as `survey` does, groups of frames at once on the workers.

        Frames that no look needs are not read here; that all of them are finite is seen when evidence is read. The
        share of missing values of a stored mask is 0 as yet: evidence counts them.
        """
        spans, rows = look_spans(record.frames), look_rows(record, self.memory)
        found: dict[int, Look | None] = {}
        for place, look in self.pool.completed(look_task, [(record, *span, rows) for span in spans]):
            found[place] = look
            if report is not None:
                report("looking at the record", len(found), len(spans))
        shown_spans = [span for k, span in enumerate(spans) if found[k] is not None]
        looks = [look for k in range(len(spans)) if (look := found[k]) is not None]
        moved = 0.0
        if looks:
            ends = [(record, shown_spans[0], shown_spans[-1])]
            [(_, moved)] = list(self.pool.completed(change_between, ends))
        missing = 0.0 if record.mask is None else missing_share(record.mask) or 0.0
        return survey_of(record, looks, moved=moved, missing=missing)

    def evidence(
        self,
        record: Record,
        family: LinearFamily,
        supports: Sequence[Support],
        seen: Survey,
        *,
        derivative: Derivative = "discrete",
        folds: Sequence[Fold] = (),
        processor: Processor = CPU,
        report: Report | None = None,
    ) -> Streamed:
        """Read the weak moments of a record region by region, each value once but for the halos."""
        regions = make_plan(record, family, supports, self.memory, processor)
        threads = max(1, self.workers // len(regions))  # where there are more workers than regions
        reading = Reading(record, family, tuple(supports), derivative, tuple(folds), processor, threads)
        options = (family, reading.supports, reading.derivative, reading.folds)
        prints = {} if self.checkpoint is None else fingerprint(record, seen, options, regions)
        ledger = Ledger(self.checkpoint, prints, partial(unpacked, family))
        size = int(np.prod(record.shape)) * np.dtype(record.values.dtype).itemsize
        say = Clock(size, ledger.pieces.count, len(regions), report)
        left = ledger.left(range(len(regions)))
        for k, piece in self.pool.completed(assemble, [(reading, regions[place]) for place in left]):
            ledger.add(left[k], piece)
            say.done(ledger.pieces.count)
        found = ledger.pieces.merged
        assert found is not None
        checksum = lines_checksum(record.shape, found.lines)
        return Streamed(found.evidence, checksum, 1.0 - found.observed / int(np.prod(record.shape)))


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
    budget, count, path = check_resources(memory, workers, scheduler, checkpoint)
    with open_pool(record, count, scheduler) as pool:
        yield Stream(pool, budget, path, count)


def check_resources(
    memory: Any, workers: int | None, scheduler: Any, checkpoint: str | PathLike[str] | None
) -> tuple[int, int, Path | None]:
    """Return the budget in bytes, the number of workers and the place of the checkpoint."""
    budget = DEFAULT if memory is None else parse_memory(memory)
    count = 1 if workers is None else whole(workers, "workers", least=1)
    if scheduler is not None and workers is not None:
        raise InputError("workers and scheduler are both given: a scheduler has its own workers; give one of them")
    if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
        raise InputError(f"checkpoint is {shown(checkpoint)}: expected the name of a file")
    return budget, count, None if checkpoint is None else Path(checkpoint).expanduser()


class Clock:
    """Says how fast values come and how much time is left; `size` bytes were cut into `total` parts."""

    def __init__(self, size: float, before: int, total: int, report: Report | None, parts: str = "slabs") -> None:
        self._part, self._parts = size / total / 1e6, parts
        self._before, self._total, self._began = before, total, monotonic()
        self._say = None if report is None else partial(self._report, report)
        if self._say is not None and before < total:
            self._say(f"reading {parts}, {before} were there" if before else "compiling and reading", before)

    def done(self, count: int) -> None:
        """Say that so many parts are there."""
        if self._say is None:
            return
        spent = max(monotonic() - self._began, 1e-9)
        rate = (count - self._before) / spent
        left = _span((self._total - count) / rate)
        self._say(f"reading {self._parts}, {rate * self._part:.3g} MB/s, {left} left", count)

    def _report(self, report: Report, words: str, count: int) -> None:
        report(words, count, self._total)


def _span(seconds: float) -> str:
    """Return a time in words.

    >>> _span(75.2), _span(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
