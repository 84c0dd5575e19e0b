"""Repeat: the same question to the same data, and whether the answer is the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from doublewell.calibrate import SurfaceTension
from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.identify.identify import identify
from doublewell.observation import Optics
from doublewell.options import DoubleWell, Observation, Trajectory, Weak
from doublewell.record import Record, checksum
from doublewell.result import Comparison, Result, Settings, compare, without_levels

__all__ = ["Repetition", "options_of", "repeat", "tension_of"]

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
        versions = [item.settings.version for item in (self.before, self.again)]
        made = (
            f"doublewell {versions[0]}" if len(set(versions)) == 1 else f"doublewell {versions[0]}, now {versions[1]}"
        )
        lines = [f"data: {self.data} ({self.again.settings.checksum})", made, f"numbers: {self.comparison}"]
        apart = self.comparison.differences
        lines += [f"  {item}" for item in apart[:_SHOWN]]
        return "\n".join([*lines, *([f"  and {len(apart) - _SHOWN} more"] if len(apart) > _SHOWN else [])])


def repeat(result: Result, record: Record, *, any_data: bool = False, progress: Report | None = None) -> Repetition:
    """Identify again with the settings of a result and compare the two, field by field.

    The record must hold the values that the result came from, by their checksum, unless `any_data`. Its mesh spacing,
    frame interval, q, boundary and units are those of the result, whatever the record says of them. Errors of grey
    levels that were added to the result are left out of the comparison: they need the grey values.
    """
    data = _check_data(result.settings, record, any_data)
    again = identify(_as_then(result.settings, record), tension_of(result), **options_of(result), progress=progress)
    if data == "the same":  # whichever of the two kinds of checksum said so
        again = replace(again, settings=replace(again.settings, checksum=result.settings.checksum))
    return Repetition(result, again, data, compare(without_levels(result), again))


def _check_data(asked: Settings, record: Record, any_data: bool) -> Data:
    if asked.checksum is None:
        if not any_data:
            raise InputError(
                "the result holds no checksum of its data, so nothing says whether these are the same: pass "
                "any_data=True (--any-data in the shell) to use them all the same"
            )
        return "not known to be the same"
    if (found := checksum(record, like=asked.checksum)) == asked.checksum:
        return "the same"
    if not any_data:
        raise InputError(
            f"these are not the data of the result: shape {record.shape} with checksum {found}, expected "
            f"{asked.shape} with {asked.checksum}; give the file that was used, or pass any_data=True (--any-data in "
            "the shell) to see what other data give"
        )
    return "other data"


def _as_then(asked: Settings, record: Record) -> Record:
    """Return the record with the metadata of the result; times that agree are kept to the last bit."""
    if len(record.mesh) != len(asked.dx):
        raise InputError(
            f"the record has {len(record.mesh)} space axes and the result is of {len(asked.dx)}: expected a record of "
            "the same kind"
        )
    same = asked.times is None and record.uniform and np.isclose(record.dt, asked.dt, rtol=1e-12, atol=0.0)
    then = {"dt": asked.dt} if asked.times is None else {"times": asked.times}
    clock: dict[str, Any] = {"times": record.times} if same else then
    boundary: Any = asked.boundary  # checked by Record
    return Record(
        record.values, dx=asked.dx, **clock, q=None if asked.q_estimated else asked.q, boundary=boundary,
        length_unit=asked.length_unit, time_unit=asked.time_unit, mask=record.mask,
    )  # fmt: skip


def tension_of(result: Result) -> SurfaceTension | None:
    """Return the tension that was given; a result of an older version knows only one that could be used."""
    return result.settings.tension or (None if result.scale is None else result.scale.tension)


def options_of(result: Result) -> dict[str, Any]:
    """Return the options of identify that gave a result."""
    asked = result.settings
    optics = asked.optics or Optics()
    ridge, supports = asked.ridge, list(asked.supports)
    weak: dict[str, Any] = {"supports": supports, "derivative": asked.derivative, "ridge": ridge}
    method: Any = Trajectory(ridge=None if isinstance(ridge, str) else ridge, memory=asked.memory)
    if asked.method != "trajectory":
        method = Weak(corrected=asked.method == "weak-corrected", **weak)
    law: dict[str, Any] = {"degree": asked.degree, "constraint": asked.constraint, "wells": asked.wells}
    noise: Any = asked.noise
    return {
        "method": method,
        "law": DoubleWell(**law),
        "check": result.adequacy is not None,
        "observation": Observation(asked.phases, noise, optics.blur, optics.pixel, optics.exposure, optics.refine),
    }
