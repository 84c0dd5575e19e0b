"""The road for records of one shape: survey, weak estimate, likelihood, scale, all in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from doublewell.calibrate import Scale, SurfaceTension, calibrate
from doublewell.errors import InputError
from doublewell.estimate import Constraint, Posterior
from doublewell.evidence import Derivative, default_supports
from doublewell.evidence.likelihood.trajectory import check_record
from doublewell.hints import Report
from doublewell.identify.determined import determination_warnings
from doublewell.identify.families import WellsKind, check_wells
from doublewell.identify.phases import (
    Phases,
    check_choice,
    find_phases,
    from_minus_one,
    place_numbers,
    place_posterior,
    plateaus,
)
from doublewell.identify.trajectory_road import likelihood_warnings, trajectory_diagnostics, trajectory_fits
from doublewell.identify.warnings import law_warnings, record_warnings, scale_refusal, weak_warnings
from doublewell.identify.weak_road import Supports, WeakFit, check_options, weak_diagnostics, weak_fit
from doublewell.law import Bernstein, Law
from doublewell.record import Record, checksum
from doublewell.result import Diagnostics, Result, Settings, check_units
from doublewell.survey import Survey, check_survey, survey
from doublewell.version import __version__

__all__ = ["Degree", "Method", "Request", "identify_batch", "look"]

Degree = int | Literal["auto"] | None
Method = Literal["trajectory", "weak"] | None


@dataclass(frozen=True)
class Request:
    """What is asked of a record, checked and with every default filled in."""

    method: Literal["trajectory", "weak"]
    degree: int | Literal["auto"]
    constraint: Constraint
    ridge: float | Literal["validated"] | None
    supports: Supports
    derivative: Derivative
    check: bool
    q: float
    wells: WellsKind = "symmetric"
    phases: Phases = (-1.0, 1.0)

    @classmethod
    def of(
        cls, record: Record, *, method: Method, degree: Degree, constraint: Constraint,
        ridge: float | Literal["validated"] | None, supports: Supports, derivative: Derivative, check: bool,
        wells: WellsKind = "symmetric", phases: Phases | None = (-1.0, 1.0),
    ) -> Request:  # fmt: skip
        """Check what was asked against the record; none of its values is read."""
        reading, m, q = _choices(record, method, degree)
        _check_shape(record, reading, supports)
        check_options(record, constraint=constraint, ridge=ridge, supports=supports, derivative=derivative)
        if reading == "trajectory" and isinstance(ridge, str):
            raise InputError("ridge='validated' belongs to the weak reading: give ridge a number, or method='weak'")
        if reading == "trajectory" and ridge is not None and m == "auto":
            raise InputError("ridge is a choice for one degree: give degree= a number, or leave ridge out")
        fixed = tuple(supports) if isinstance(supports, Sequence) and not isinstance(supports, str) else supports
        choice = check_choice(phases)
        return cls(reading, m, constraint, ridge, fixed, derivative, bool(check), q, check_wells(wells), choice)


def identify_batch(
    records: Sequence[Record],
    tensions: Sequence[SurfaceTension | None],
    asked: Request,
    report: Report | None = None,
    seen: Sequence[Survey] | None = None,
) -> list[Result]:
    """Identify records that one request fits; for the trajectory reading they have one shape, mesh and interval.

    `seen` are their surveys, where they were made before.
    """
    for record, tension in zip(records, tensions, strict=True):
        check_units(tension, len(record.mesh), record.length_unit, record.time_unit)
    phases = [_phases(record, asked, report) for record in records]
    scaled = [from_minus_one(record, pair) for record, pair in zip(records, phases, strict=True)]
    if seen is None or asked.phases == "estimated":
        seen = [look(record) for record in scaled]
    weak = [_weak(record, one, asked, report) for record, one in zip(scaled, seen, strict=True)]
    if asked.method == "weak":
        return [_weak_result(*parts, asked) for parts in zip(records, phases, tensions, seen, weak, strict=True)]
    fits = trajectory_fits(
        scaled,
        np.stack([one.estimate.coefficients for one in weak]),
        degree=asked.degree,
        constraint=asked.constraint,
        ridge=None if isinstance(asked.ridge, str) else asked.ridge,
        check=asked.check,
        wells=asked.wells,
        report=report,
    )
    results = []
    for record, pair, tension, one, rough, fit in zip(records, phases, tensions, seen, weak, fits, strict=True):
        law, posterior = fit.law.placed(pair), place_posterior(fit.posterior, pair)
        scale, refusal = _scale(law, tension)
        said = [
            *law_warnings(law, refusal), *record_warnings(record, one, alike=asked.wells == "symmetric"),
            *determination_warnings(law, posterior, scale, one), *likelihood_warnings(fit),
        ]  # fmt: skip
        numbers = place_numbers(trajectory_diagnostics(fit, one, said), pair)
        results.append(_result(record, asked, tension, rough, (law, scale, refusal), numbers, posterior))
    return results


def _phases(record: Record, asked: Request, report: Report | None) -> tuple[float, float]:
    """Return the phases of a record; where they are estimated, those that leave the least of the weak moments."""
    if not isinstance(asked.phases, str):
        return asked.phases
    if report is not None:
        report("estimating the phases", 0, 0)
    near = look(from_minus_one(record, plateaus(record)))

    def misfit(scaled: Record) -> float:
        return _weak(scaled, near, replace(asked, constraint="none", ridge=None), None).estimate.relative_residual

    return find_phases(record, misfit)


def look(record: Record, phases: Phases = (-1.0, 1.0)) -> Survey:
    """Survey a record, and refuse one that no law can be read from."""
    seen = survey(from_minus_one(record, plateaus(record) if isinstance(phases, str) else phases))
    check_survey(seen)
    return seen


def _weak(record: Record, seen: Survey, asked: Request, report: Report | None) -> WeakFit:
    """Fit weak moments: the answer of the weak reading, the start of the other."""
    alone = asked.method == "weak"
    words = "compiling and reading" if alone else "reading weak moments for a start"
    return weak_fit(
        record, seen, asked.q, degree=2 if asked.degree == "auto" else asked.degree, constraint=asked.constraint,
        supports=asked.supports, derivative=asked.derivative, ridge=asked.ridge if alone else None,
        wells=asked.wells, progress=None if report is None else partial(report, words),
    )  # fmt: skip


def _weak_result(
    record: Record, phases: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    asked: Request,
) -> Result:  # fmt: skip
    law = weak.estimate.law.placed(phases)
    scale, refusal = _scale(law, tension, scale_refusal(weak.estimate))
    said = [
        *law_warnings(law, refusal),
        *record_warnings(record, seen, alike=asked.wells == "symmetric"),
        *weak_warnings(weak.estimate, seen),
    ]
    numbers = place_numbers(weak_diagnostics(weak.estimate, seen, said), phases)
    return _result(record, asked, tension, weak, (law, scale, refusal), numbers, None)


def _result(
    record: Record,
    asked: Request,
    tension: SurfaceTension | None,
    weak: WeakFit,
    answer: tuple[Law, Scale | None, str | None],
    numbers: Diagnostics,
    posterior: Posterior | None,
) -> Result:
    settings = Settings(
        version=__version__,
        method=asked.method,
        degree=asked.degree,
        constraint=asked.constraint,
        ridge=asked.ridge,
        supports=tuple((support.frames, support.length) for support in weak.supports),
        supports_rule=weak.rule,
        derivative=asked.derivative,
        shape=record.shape,
        dx=record.dx,
        dt=record.dt,
        q=asked.q,
        boundary=record.boundary,
        checksum=checksum(record),
        tension=tension,
        length_unit=record.length_unit,
        time_unit=record.time_unit,
        wells=asked.wells,
        phases=answer[0].phases,
    )
    return Result(*answer, numbers, settings, posterior)


def _check_shape(record: Record, reading: str, supports: Supports) -> None:
    """Refuse a record that is too short, too small or uneven before anything is read."""
    if reading == "trajectory":
        check_record(record)
    _ = record.dt  # uneven times raise
    if supports is None:
        default_supports(record, None)


def _choices(
    record: Record, method: Method, degree: Degree
) -> tuple[Literal["trajectory", "weak"], int | Literal["auto"], float]:
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=, q=)")
    if method not in (None, "trajectory", "weak"):
        raise InputError(f"method is {method!r}: expected 'trajectory', 'weak' or None")
    if record.q is None:
        raise InputError(
            "the record has no diffusion coefficient: pass q= to Record (q sets the time scale of the law)"
        )
    if method is None:
        method = "weak" if record.boundary is None else "trajectory"
    if degree is None:
        degree = "auto" if method == "trajectory" else 2
    if degree == "auto":
        if method == "weak":
            raise InputError(
                "degree='auto' needs the trajectory reading, because weak moments have no noise model: declare a "
                "boundary and use method='trajectory', or give a degree from 0 to 8"
            )
    else:
        degree = Bernstein(degree).degree
    return method, degree, record.q


def _scale(law: Law, tension: SurfaceTension | None, refusal: str | None = None) -> tuple[Scale | None, str | None]:
    """Calibrate; a law that cannot be calibrated is an outcome of the data, so it is said and not raised."""
    if tension is None:
        return None, None
    if refusal is not None:
        return None, refusal
    try:
        return calibrate(law, tension), None
    except InputError as error:
        return None, f"calibration refused: {error}"
