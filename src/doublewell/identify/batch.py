"""The road for records of one shape: survey, weak estimate, likelihood, scale, all in one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from doublewell.calibrate import Scale, SurfaceTension, calibrate
from doublewell.errors import InputError
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
from doublewell.identify.together import join
from doublewell.identify.trajectory_numbers import likelihood_warnings, trajectory_diagnostics
from doublewell.identify.trajectory_road import TrajectoryFit, trajectory_fits
from doublewell.identify.warnings import law_warnings, record_warnings, scale_refusal, weak_warnings
from doublewell.identify.weak_road import Supports, WeakFit, check_options, check_plain, weak_diagnostics, weak_fit
from doublewell.inference import Constraint, Posterior
from doublewell.law import Bernstein, Law
from doublewell.likelihood import NOISES, Noise, Optics, View, check_view, check_window, complete
from doublewell.observation import Survey, check_survey, survey
from doublewell.record import Record, checksum
from doublewell.result import Agreement, Diagnostics, Result, Settings, check_units
from doublewell.version import __version__
from doublewell.weak import CPU, Derivative, Processor, Stream, default_supports

__all__ = [
    "Degree",
    "Method",
    "Request",
    "disagreement",
    "identify_batch",
    "identify_together",
    "look",
    "trajectory_result",
    "weak_of",
    "weak_result",
]

Degree = int | Literal["auto"] | None
Reading = Literal["trajectory", "weak", "weak-corrected"]
Method = Reading | None
Diagnose = Callable[[TrajectoryFit, Survey, Sequence[str]], Diagnostics]


@dataclass(frozen=True)
class Request:
    """What is asked of a record, checked and with every default filled in."""

    method: Reading
    degree: int | Literal["auto"]
    constraint: Constraint
    ridge: float | Literal["validated"] | None
    supports: Supports
    derivative: Derivative
    check: bool
    q: float | None
    optics: Optics
    noise: Noise
    wells: WellsKind = "symmetric"
    phases: Phases = (-1.0, 1.0)
    processor: Processor = CPU

    @classmethod
    def of(
        cls, record: Record, *, method: Method, degree: Degree, constraint: Constraint,
        ridge: float | Literal["validated"] | None, supports: Supports, derivative: Derivative, check: bool,
        wells: WellsKind = "symmetric", phases: Phases | None = (-1.0, 1.0), optics: Optics | None = None,
        noise: Noise = "white", processor: Processor = CPU,
    ) -> Request:  # fmt: skip
        """Check what was asked against the record; none of its values is read."""
        reading, m, q = _choices(record, method, degree)
        optics = Optics() if optics is None else optics
        _check_view(record, reading, optics, noise)
        _check_shape(record, reading, supports)
        check_options(record, constraint=constraint, ridge=ridge, supports=supports, derivative=derivative)
        if reading == "trajectory" and isinstance(ridge, str):
            raise InputError("ridge='validated' belongs to the weak reading: give ridge a number, or method='weak'")
        if reading == "trajectory" and ridge is not None and m == "auto":
            raise InputError("ridge is a choice for one degree: give degree= a number, or leave ridge out")
        if reading == "weak-corrected" and isinstance(ridge, str):
            raise InputError(
                "ridge='validated' belongs to the plain weak reading, because a residual on held-out frames holds the "
                "noise that was taken off: give ridge a number, or method='weak'"
            )
        fixed = tuple(supports) if isinstance(supports, Sequence) and not isinstance(supports, str) else supports
        kind, choice = check_wells(wells), check_choice(phases)
        if kind != "symmetric" and reading == "weak-corrected":
            check_plain(record, kind)
        if kind != "symmetric" and constraint != "none":
            constraint = "admissible"  # of unlike wells there is one class only
        if processor.precision == "single" and reading != "weak":
            raise InputError(
                f"precision='single' belongs to the weak reading: expected 'double' with method={reading!r}"
            )
        return cls(
            reading, m, constraint, ridge, fixed, derivative, bool(check), q, optics, noise, kind, choice, processor
        )

    @property
    def alone(self) -> bool:
        """Whether each record has a start or a noise of its own, so that none can be read with another."""
        return self.q is None or self.noise != "white"


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
    weak = [weak_of(record, one, asked, report) for record, one in zip(scaled, seen, strict=True)]
    if asked.method != "trajectory":
        return [weak_result(*parts, asked) for parts in zip(records, phases, tensions, seen, weak, strict=True)]
    groups = [[k] for k in range(len(records))] if asked.alone else [list(range(len(records)))]
    fits = [fit for places in groups for fit in _fits(scaled, weak, asked, places, report)]
    return [
        trajectory_result(record, phases[k], tensions[k], seen[k], weak[k], fits[k], asked)
        for k, record in enumerate(records)
    ]


def identify_together(
    records: Sequence[Record], tension: SurfaceTension | None, asked: Sequence[Request], report: Report | None = None
) -> Result:
    """Identify the one law of several records; each is read by itself, then all at their common law."""
    for record in records:
        check_units(tension, len(record.mesh), record.length_unit, record.time_unit)
    if len({(record.length_unit, record.time_unit) for record in records}) > 1:
        raise InputError("the records have different units: expected one unit of length and one of time for all")
    if any(one.method != "trajectory" for one in asked):
        raise InputError(
            "several records are read together by their likelihood: leave method out, or read them one by one"
        )
    if isinstance(pair := asked[0].phases, str):
        raise InputError(
            "phases='estimated' is for one record: several have one law and one pair of phases; estimate them on one "
            "record, and pass phases=(low, high) for all"
        )
    scaled = [from_minus_one(record, pair) for record in records]
    seen = [look(record) for record in scaled]
    weak = [weak_of(*parts, report) for parts in zip(scaled, seen, asked, strict=True)]
    fits = [_fits([r], [w], one, [0], report)[0] for r, w, one in zip(scaled, weak, asked, strict=True)]
    joint, agreements = join(fits, report)
    result = trajectory_result(records[0], pair, tension, seen[0], weak[0], joint, asked[0])
    said = [f"record {k}: {words}" for k, fit in enumerate(fits[1:], 2) for words in likelihood_warnings(fit)]
    said += [disagreement(one) for one in agreements if not one.agrees]
    numbers = replace(result.diagnostics, warnings=(*result.diagnostics.warnings, *said))
    return replace(result, diagnostics=numbers, agreements=agreements)


def disagreement(one: Agreement, cure: str = "look at its units, q and phase values, or leave it out") -> str:
    """Say that a record, or a tile of one, has another law than the others."""
    return (
        f"{one.record} disagrees with the others (chi2 {one.chi2:.0f} of {one.degrees} degrees, p = {one.adjusted:.1g} "
        f"for all together): {cure}"
    )


def _fits(
    records: Sequence[Record], weak: Sequence[WeakFit], asked: Request, places: list[int], report: Report | None
) -> list[TrajectoryFit]:
    """Fit the likelihood of some of the records, together."""
    return trajectory_fits(
        [_as_read(records[k], weak[k]) for k in places],
        np.stack([weak[k].estimate.coefficients for k in places]),
        degree=asked.degree,
        constraint=asked.constraint,
        ridge=None if isinstance(asked.ridge, str) else asked.ridge,
        check=asked.check,
        wells=asked.wells,
        report=report,
        view=View(optics=asked.optics, q_free=asked.q is None),
        noise=asked.noise,
    )


def _as_read(record: Record, weak: WeakFit) -> Record:
    """Return the record with what the likelihood needs: a q to start from, and a window where nothing is declared."""
    return record.replace(q=weak.q, boundary=record.boundary or "open")


def trajectory_result(
    record: Record, phases: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    fit: TrajectoryFit, asked: Request, diagnose: Diagnose = trajectory_diagnostics,
) -> Result:  # fmt: skip
    """Return the result of a trajectory fit; `diagnose` gives the numbers behind it."""
    law, posterior = fit.law.placed(phases), place_posterior(fit.posterior, phases)
    scale, refusal = _scale(law, tension)
    said = [
        *law_warnings(law, refusal), *record_warnings(record, seen, alike=asked.wells == "symmetric"),
        *determination_warnings(law, posterior, scale, seen), *likelihood_warnings(fit),
    ]  # fmt: skip
    numbers = place_numbers(diagnose(fit, seen, said), phases)
    return _result(record, asked, tension, weak, (law, scale, refusal), numbers, posterior)


def _phases(record: Record, asked: Request, report: Report | None) -> tuple[float, float]:
    """Return the phases of a record; where they are estimated, those that leave the least of the weak moments."""
    if not isinstance(asked.phases, str):
        return asked.phases
    if report is not None:
        report("estimating the phases", 0, 0)
    near = look(from_minus_one(record, plateaus(record)))
    supports = default_supports(record, near.interface_width, long=True) if asked.supports is None else asked.supports
    searched = replace(asked, constraint="none", ridge=None, supports=supports)

    def misfit(scaled: Record) -> float:
        return weak_of(scaled, near, searched, None).estimate.relative_residual

    return find_phases(record, misfit)


def look(record: Record, phases: Phases = (-1.0, 1.0)) -> Survey:
    """Survey a record, and refuse one that no law can be read from."""
    seen = survey(from_minus_one(record, plateaus(record) if isinstance(phases, str) else phases))
    check_survey(seen)
    return seen


def weak_of(
    record: Record, seen: Survey, asked: Request, report: Report | None, stream: Stream | None = None
) -> WeakFit:
    """Fit weak moments: the answer of the weak reading, the start of the other."""
    alone = asked.method != "trajectory"
    words = "compiling and reading" if alone else "reading weak moments for a start"
    return weak_fit(
        record if alone or stream is not None else complete(record), seen, asked.q,
        degree=2 if asked.degree == "auto" else asked.degree, constraint=asked.constraint,
        supports=asked.supports, derivative=asked.derivative, ridge=asked.ridge if alone else None,
        method="weak-corrected" if asked.method == "weak-corrected" else "weak",
        wells=asked.wells, stream=stream, processor=asked.processor, report=report, words=words,
    )  # fmt: skip


def weak_result(
    record: Record, phases: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    asked: Request,
) -> Result:  # fmt: skip
    """Return the result of a weak fit."""
    law = weak.estimate.law.placed(phases)
    scale, refusal = _scale(law, tension, scale_refusal(weak.estimate))
    said = [
        *law_warnings(law, refusal),
        *record_warnings(record, seen, alike=asked.wells == "symmetric"),
        *weak_warnings(weak, seen),
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
    q = weak.q if posterior is None else _q(answer[0], posterior, weak.q)
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
        dt=float(record.times[-1] - record.times[0]) / (record.frames - 1),
        times=None if record.uniform else tuple(float(t) for t in record.times),
        q=q,
        boundary=record.boundary if posterior is None else record.boundary or "open",
        checksum=checksum(record) if weak.moments.streamed is None else weak.moments.streamed.checksum,
        tension=tension,
        length_unit=record.length_unit,
        time_unit=record.time_unit,
        q_estimated=record.q is None,
        optics=None if asked.optics == Optics() else asked.optics,
        noise=asked.noise,
        wells=asked.wells,
        phases=answer[0].phases,
    )
    return Result(*answer, numbers, settings, posterior)


def _q(law: Law, posterior: Posterior, q: float) -> float:
    """Return q given the law, where it was estimated with it."""
    if posterior.beside is None or "q" not in posterior.beside.names:
        return q
    lifted = posterior.family.at(law.family.degree).elevation(posterior.family) @ law.coefficients
    return float(posterior.beside.mean(lifted)[posterior.beside.names.index("q")])


def _check_view(record: Record, reading: str, optics: Optics, noise: Noise) -> None:
    """Refuse optics and noise that the reading does not know."""
    if not isinstance(optics, Optics):
        raise InputError(f"optics is a {type(optics).__name__}: expected Optics(blur=, pixel=, exposure=, refine=)")
    if noise not in NOISES:
        raise InputError(f"noise is {noise!r}: expected one of {', '.join(repr(name) for name in NOISES)}")
    if reading != "trajectory" and (optics != Optics() or noise != "white"):
        raise InputError(
            "optics and noise belong to the trajectory reading: weak moments know neither; leave method out, or use "
            "method='trajectory'"
        )
    if noise == "correlated" and record.mask is not None:
        raise InputError(
            "correlated noise and missing values do not go together: expected complete frames; cut the record to a "
            "part without gaps, or use noise='white'"
        )
    if reading == "trajectory":
        check_view(record, View(optics=optics))


def _check_shape(record: Record, reading: str, supports: Supports) -> None:
    """Refuse a record that is too short or too small before anything is read."""
    if reading == "trajectory" and record.boundary in (None, "open"):
        check_window(record)
    if supports is None:
        default_supports(record, None)


def _choices(record: Record, method: Method, degree: Degree) -> tuple[Reading, int | Literal["auto"], float | None]:
    if not isinstance(record, Record):
        raise InputError(f"expected a Record, got {type(record).__name__}: wrap the field as Record(u, dx=, dt=, q=)")
    if method not in (None, "trajectory", "weak", "weak-corrected"):
        raise InputError(f"method is {method!r}: expected 'trajectory', 'weak', 'weak-corrected' or None")
    if method is None:
        method = "trajectory"
    if degree is None:
        degree = "auto" if method == "trajectory" else 2
    if degree == "auto":
        if method != "trajectory":
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
