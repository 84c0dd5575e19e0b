"""Again: the same question to the same data, to see that the answer holds; and with the grey levels moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from doublewell.errors import InputError, option
from doublewell.hints import Array, Report
from doublewell.identify.identify import identify
from doublewell.problem import RecordInfo
from doublewell.record import Phase, Record, checksum
from doublewell.result import Comparison, LevelErrors, Result, compare, without_levels

_SHOWN = 12  # differences that are printed
_POINTS = 401  # at which the forces of moved levels are compared
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
    whatever the record states. Errors of grey levels that were added to the result are left out of the
    comparison: they need the grey values.
    """
    records = [record] if isinstance(record, Record) else list(record)
    known = result.problem.records
    if len(records) != len(known):
        raise InputError(f"the result is of {len(known)} records, and {len(records)} are given: expected the same ones")
    data: list[Data] = [_check_data(info, each, any_data) for info, each in zip(known, records, strict=True)]
    again = solve_again(result, [_as_then(info, each) for info, each in zip(known, records, strict=True)], progress)
    worst: Data = next((word for word in data if word != "the same"), "the same")
    return Repetition(result, again, worst, compare(without_levels(result), again))


def solve_again(
    result: Result, records: Sequence[Record], progress: Report | None = None, *, check: bool | None = None
) -> Result:
    """Solve the problem of a result for records of the same kind."""
    problem = result.problem
    return identify(
        records, problem.tension, dynamics=problem.dynamics, law=problem.law, method=problem.method,
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


def add_level_errors(result: Result, phase: Phase, *, progress: Report | None = None) -> Result:
    """Fit again with each grey level moved by one standard deviation, and add what that changes to the errors.

    `result` is what ``identify(phase.record, ...)`` gave. The two changes of the law become two more normal directions
    of its posterior, so that all bands and intervals hold them; ``result.levels`` reports how large they are. A
    weak-form fit has no bands: there they are only reported. It takes two more fits.

    >>> import doublewell as dw
    >>> start = dw.initial_field("circle", (48, 48), 1 / 48, epsilon=0.05)
    >>> movie = dw.simulate(dw.named_law("quartic"), start, dx=1 / 48, dt=2e-4, frames=25, epsilon=0.05)
    >>> grey = dw.phase_from_intensity(1000 + 200 * movie.slab(), levels=(800, 1200), levels_sd=(2, 2), dx=1 / 48,
    ...     dt=2e-4, q=1.0)
    >>> result = add_level_errors(dw.identify(grey.record, law=0, method="weak"), grey)
    >>> 0.001 < result.levels.force < 0.1
    True
    """
    if not isinstance(result, Result) or not isinstance(phase, Phase):
        raise InputError(
            f"expected a Result and a Phase, got {type(result).__name__} and {type(phase).__name__}: call "
            "add_level_errors(identify(phase.record), phase)"
        )
    if result.levels is not None:
        raise InputError("the result holds the errors of its levels already: pass the one that identify gave")
    if checksum(phase.record, like=result.problem.records[0].checksum) != result.problem.records[0].checksum:
        raise InputError(
            "the result is not of these phase values, their checksums differ: call identify(phase.record, ...) first"
        )
    variants, moved = phase.variants(), []  # without levels_sd this raises, with what to do
    assert phase.levels_sd is not None
    for name, record in zip(("low", "high"), variants, strict=True):
        say: Report | None = None
        if progress is not None:
            words = f"with the {name} level moved: "
            say = lambda what, done, total, words=words: progress(words + what, done, total)  # noqa: E731
        moved.append(solve_again(result, [record], say, check=False))
    posterior, laws = result.posterior, (result, *moved)
    family = result.law.family if posterior is None else posterior.family
    lifted = np.stack([family.at(each.degree).elevation(family) @ each.coefficients for each in laws])
    shifts, u = lifted[1:] - lifted[0], np.linspace(*result.law.phases, _POINTS)
    force: Array = result.force(u)
    change = [np.linalg.norm(each.force(u) - force) / np.linalg.norm(force) for each in moved]
    scales = [each.scale.epsilon for each in laws if each.scale is not None]
    epsilon = None if len(scales) < len(laws) else float(np.linalg.norm(np.array(scales[1:]) / scales[0] - 1.0))
    if posterior is not None:
        posterior = replace(posterior, drift=np.vstack([posterior.drift, shifts]))
    errors = LevelErrors(phase.levels, phase.levels_sd, shifts, float(np.linalg.norm(change)), epsilon)
    return replace(result, posterior=posterior, levels=errors, grey=phase.quality)
