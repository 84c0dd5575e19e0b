"""Again: the same question to the same data, to see that the answer holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from doublewell.difference import Comparison, compare
from doublewell.errors import InputError, option
from doublewell.hints import Report
from doublewell.identify.identify import identify
from doublewell.options import Compute
from doublewell.problem import RecordInfo
from doublewell.record import Record, checksum
from doublewell.result import Result

_SHOWN = 12  # differences that are printed
Data = Literal["the same", "other data", "not known to be the same"]


@dataclass(frozen=True, eq=False)
class Repetition:
    """A result, the result of doing it again, and how they compare; ``data`` states whether the values are the same."""

    before: Result
    again: Result
    data: Data
    comparison: Comparison

    def __str__(self) -> str:
        versions = [item.version for item in (self.before, self.again)]
        made = (
            f"doublewell {versions[0]}" if len(set(versions)) == 1 else f"doublewell {versions[0]}, now {versions[1]}"
        )
        checksums = ", ".join(str(record.checksum) for record in self.again.problem.records)
        lines = [f"data: {self.data} ({checksums})", made, f"numbers: {self.comparison}"]
        apart = self.comparison.differences
        lines += [f"  {item}" for item in apart[:_SHOWN]]
        return "\n".join([*lines, *([f"  and {len(apart) - _SHOWN} more"] if len(apart) > _SHOWN else [])])


def repeat(
    result: Result, record: Record | Sequence[Record], *, any_data: bool = False, progress: Report | None = None
) -> Repetition:
    """Solve the problem of a result again and compare the two, field by field.

    The record (of several, all of them in their order) must hold the values that the result came from, by their
    checksum, unless `any_data`. Its mesh spacing, frame interval, q, boundary and units are those of the result,
    whatever the record states. How grey values were converted is not compared.
    """
    records = [record] if isinstance(record, Record) else list(record)
    known = result.problem.records
    if len(records) != len(known):
        raise InputError(f"the result is of {len(known)} records, and {len(records)} are given: expected the same ones")
    data: list[Data] = [_check_data(info, each, any_data) for info, each in zip(known, records, strict=True)]
    again = solve_again(result, [_as_then(info, each) for info, each in zip(known, records, strict=True)], progress)
    worst: Data = next((word for word in data if word != "the same"), "the same")
    return Repetition(result, again, worst, compare(replace(result, grey=None), replace(again, grey=None)))


def solve_again(
    result: Result, records: Sequence[Record], progress: Report | None = None, *, check: bool | None = None
) -> Result:
    """Solve the problem of a result for records of the same kind."""
    problem, stopped = result.problem, result.resolved.stopped
    compute = None if stopped is None else Compute(time_limit=f"{stopped} steps")
    return identify(
        records, problem.tension, dynamics=problem.dynamics, law=problem.law, method=problem.method,
        observation=problem.observation, check=problem.check if check is None else check,
        temperature=problem.temperature, compute=compute, progress=progress,
    )  # fmt: skip


def _check_data(known: RecordInfo, record: Record, any_data: bool) -> Data:
    if known.checksum is None:
        if not any_data:
            raise InputError(
                "the result holds no checksum of its data, so nothing tells whether these are the same: pass "
                f"{option('any_data', True)} to use them all the same"
            )
        return "not known to be the same"
    if (own := checksum(record, like=known.checksum)) == known.checksum:
        return "the same"
    if not any_data:
        raise InputError(
            f"these are not the data of the result: shape {record.shape} with checksum {own}, expected "
            f"{known.shape} with {known.checksum}; give the file that was used, or pass {option('any_data', True)} to "
            "see what other data give"
        )
    return "other data"


def _as_then(known: RecordInfo, record: Record) -> Record:
    """Return the record with the metadata of the result; times that agree are kept to the last bit."""
    if len(record.mesh) != len(known.dx):
        raise InputError(
            f"the record has {len(record.mesh)} space axes and the result is of {len(known.dx)}: expected a record of "
            "the same kind"
        )
    same = known.times is None and record.uniform and np.isclose(record.dt, known.dt, rtol=1e-12, atol=0.0)
    then = {"dt": known.dt} if known.times is None else {"times": known.times}
    clock: dict[str, Any] = {"times": record.times} if same else then
    return Record(
        record.values, dx=known.dx, **clock, q=known.q, boundary=known.boundary, length_unit=known.length_unit,
        time_unit=known.time_unit, origin=known.origin, mask=record.mask,
    )  # fmt: skip
