"""What a reading may use; and the weak road for a record larger than memory, on one core or many machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from doublewell.errors import InputError, option
from doublewell.hints import Report
from doublewell.identify.batch import weak_of, weak_result
from doublewell.observation import Survey, check_survey
from doublewell.options import Compute
from doublewell.problem import Problem
from doublewell.record import Record
from doublewell.record.lazy import PhaseScale, lazy
from doublewell.result import Result
from doublewell.weak import CPU, Processor, Stream, open_stream

__all__ = ["given_phases", "identify_streamed", "part_by_part"]


@contextmanager
def part_by_part(
    record: Record, asked: Problem, compute: Compute, report: Report | None
) -> Iterator[tuple[Record, Stream, Survey]]:
    """Give a record on the scale of its phases, what it is read with, and a look at it."""
    pair = given_phases(asked)
    scaled = record if pair == (-1.0, 1.0) else record.replace(lazy(record.values).map(PhaseScale(*pair)))
    with open_stream(
        scaled, memory=asked.method.memory, workers=compute.workers, scheduler=compute.scheduler,
        checkpoint=compute.checkpoint,
    ) as stream:  # fmt: skip
        seen = stream.survey(scaled, report=report)
        check_survey(seen)
        yield scaled, stream, seen


def given_phases(asked: Problem) -> tuple[float, float]:
    """Return the phases that were given; to estimate them a record would be read many times."""
    if isinstance(asked.observation.phases, str):
        raise InputError(
            f"{option('phases', 'estimated')} reads a record many times, which one read part by part is not made for: "
            f"estimate them on a part of the record, and give {option('phases')} for the whole"
        )
    return asked.observation.phases


def identify_streamed(
    record: Record, asked: Problem, compute: Compute, report: Report | None = None, processor: Processor = CPU
) -> Result:
    """Identify a record by its weak moments, read region by region; every value is read once but for the halos."""
    with part_by_part(record, asked, compute, report) as (scaled, stream, seen):
        weak = weak_of(scaled, seen, asked, report, stream, processor)
    assert weak.moments.streamed is not None
    seen = replace(seen, missing=weak.moments.streamed.missing)
    return weak_result(record, given_phases(asked), asked.tension, seen, weak, asked)
