"""Repeat: the same question to the same data, and whether the answer is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doublewell.errors import InputError, option
from doublewell.hints import Report
from doublewell.identify.identify import identify
from doublewell.problem import RecordInfo
from doublewell.record import Record, checksum
from doublewell.result import Comparison, Result, compare, without_levels

_SHOWN = 12  # differences that are printed
Data = Literal["the same", "other data", "not known to be the same"]


@dataclass(frozen=True, eq=False)
class Repetition:
    """A result, the result of doing it again, and how they compare; ``data`` says whether the values are the same."""

    before: Result
    again: Result
    data: Data
    comparison: Comparison

    def __str__(self) -> str:
        versions = [item.version for item in (self.before, self.again)]
        made = (
            f"doublewell {versions[0]}" if len(set(versions)) == 1 else f"doublewell {versions[0]}, now {versions[1]}"
        )
        lines = [f"data: {self.data} ({self.again.problem.records[0].checksum})", made, f"numbers: {self.comparison}"]
        apart = self.comparison.differences
        lines += [f"  {item}" for item in apart[:_SHOWN]]
        return "\n".join([*lines, *([f"  and {len(apart) - _SHOWN} more"] if len(apart) > _SHOWN else [])])


def repeat(result: Result, record: Record, *, any_data: bool = False, progress: Report | None = None) -> Repetition:
    """Solve the problem of a result again and compare the two, field by field.

    The record must hold the values that the result came from, by their checksum, unless `any_data`. Its mesh spacing,
    frame interval, q, boundary and units are those of the result, whatever the record says of them. Errors of grey
    levels that were added to the result are left out of the comparison: they need the grey values.
    """
    if len(result.problem.records) > 1:
        raise InputError("the result is of several records: fit them together again with identify(records, ...)")
    known = result.problem.records[0]
    data = _check_data(known, record, any_data)
    again = solve_again(result, _as_then(known, record), progress)
    return Repetition(result, again, data, compare(without_levels(result), again))


def solve_again(result: Result, record: Record, progress: Report | None = None, *, check: bool | None = None) -> Result:
    """Solve the problem of a result for a record of the same kind."""
    problem = result.problem
    return identify(
        record, problem.tension, dynamics=problem.dynamics, law=problem.law, method=problem.method,
        observation=problem.observation, check=problem.check if check is None else check, progress=progress,
    )  # fmt: skip


def _check_data(known: RecordInfo, record: Record, any_data: bool) -> Data:
    if known.checksum is None:
        if not any_data:
            raise InputError(
                "the result holds no checksum of its data, so nothing tells whether these are the same: pass "
                f"{option('any_data', True)} to use them all the same"
            )
        return "not known to be the same"
    if (found := checksum(record, like=known.checksum)) == known.checksum:
        return "the same"
    if not any_data:
        raise InputError(
            f"these are not the data of the result: shape {record.shape} with checksum {found}, expected "
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
        time_unit=known.time_unit, mask=record.mask,
    )  # fmt: skip
