"""What a reading may use; and the weak road for a record larger than memory, on one core or many machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from doublewell.calibrate import SurfaceTension
from doublewell.compute import check_resources, parse_memory, shown_bytes
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify.batch import Request, weak_of, weak_result
from doublewell.observation import Survey, check_survey
from doublewell.record import Record
from doublewell.record.rescaled import Rescaled
from doublewell.result import Result, check_units
from doublewell.weak import CPU, Processor, Stream, choose_processor, open_stream

__all__ = ["Resources", "check_memory", "given_phases", "identify_streamed", "part_by_part"]

_COPIES = 4  # of the record, as float64, that a reading as a whole holds at least


@dataclass(frozen=True, eq=False)
class Resources:
    """What a reading may use: memory of one worker, workers or a scheduler, a file for partial evidence, a GPU."""

    memory: Any = None
    workers: int | None = None
    scheduler: Any = None
    checkpoint: str | PathLike[str] | None = None
    device: str | None = None
    precision: str = "double"

    def processor(self, record: Any) -> Processor:
        """What weak moments are summed on; several workers share no GPU unless that is asked for."""
        if not isinstance(record, Record):
            return CPU  # refused where records are checked
        alone = self.workers is None and self.scheduler is None
        device = self.device if alone or self.device is not None else "cpu"
        return choose_processor(device, self.precision, int(np.prod(record.shape)))

    @property
    def budget(self) -> int | None:
        """The memory of one worker in bytes, None where none was given; what is not a resource raises."""
        return check_resources(self.memory, self.workers, self.scheduler, self.checkpoint)[0]

    @property
    def given(self) -> list[str]:
        """The names of what was asked for."""
        names = ("memory", "workers", "scheduler", "checkpoint")
        return [name for name in names if getattr(self, name) is not None]


@contextmanager
def part_by_part(
    record: Record, tension: SurfaceTension | None, asked: Request, resources: Resources, report: Report | None
) -> Iterator[tuple[Record, Stream, Survey]]:
    """Give a record on the scale of its phases, what it is read with, and a look at it."""
    check_units(tension, len(record.mesh), record.length_unit, record.time_unit)
    pair = given_phases(asked)
    scaled = record if pair == (-1.0, 1.0) else record.replace(Rescaled(record.values, *pair))
    with open_stream(
        scaled, memory=resources.memory, workers=resources.workers, scheduler=resources.scheduler,
        checkpoint=resources.checkpoint,
    ) as stream:  # fmt: skip
        seen = stream.survey(scaled, report=report)
        check_survey(seen)
        yield scaled, stream, seen


def given_phases(asked: Request) -> tuple[float, float]:
    """Return the phases that were given; to estimate them a record would be read many times."""
    if isinstance(asked.phases, str):
        raise InputError(
            "phases='estimated' reads a record many times, which one read part by part is not made for: estimate them "
            "on a part, identify(record.clip(0, 50), phases='estimated').law.phases, and pass phases=(low, high)"
        )
    return asked.phases


def identify_streamed(
    record: Record, tension: SurfaceTension | None, asked: Request, resources: Resources, report: Report | None = None
) -> Result:
    """Identify a record by its weak moments, read region by region; every value is read once but for the halos."""
    with part_by_part(record, tension, asked, resources, report) as (scaled, stream, seen):
        weak = weak_of(scaled, seen, asked, report, stream)
    assert weak.moments.streamed is not None
    seen = replace(seen, missing=weak.moments.streamed.missing)
    return weak_result(record, given_phases(asked), tension, seen, weak, asked)


def check_memory(record: Record, asked: Request, resources: Resources, count: int) -> None:
    """Refuse what is only for one record that is read part by part, and a record that there is no room for."""
    what = f"method={asked.method!r}" if count == 1 else "reading several records together"
    others = [name for name in resources.given if name != "memory"]
    if others:
        raise InputError(
            f"{others[0]} is for a record that is read part by part, which {what} does not: expected one record and "
            "method='trajectory' or 'weak'; for many records use identify_many(records, workers=)"
        )
    need = _COPIES * 8 * int(np.prod(record.shape))
    if need > parse_memory(resources.memory):
        raise InputError(
            f"{what} holds the whole record in memory, at least {shown_bytes(need)}, and memory is "
            f"{shown_bytes(parse_memory(resources.memory))}: use method='trajectory' or 'weak' for one record, which "
            "go through it part by part; or read a part, record.clip(start, stop); or give more memory"
        )
