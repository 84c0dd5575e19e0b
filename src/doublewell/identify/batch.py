"""The road for records of one shape: survey, weak estimate, likelihood, scale, all in one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from doublewell.calibrate import Scale, SurfaceTension, calibrate, refusal_of
from doublewell.hints import Report
from doublewell.identify.phases import (
    find_phases,
    from_minus_one,
    place_numbers,
    place_posterior,
    plateaus,
)
from doublewell.identify.together import join
from doublewell.identify.trajectory_numbers import fit_quality, trajectory_diagnostics
from doublewell.identify.trajectory_road import TrajectoryFit, trajectory_fits
from doublewell.identify.weak_road import WeakFit, weak_diagnostics, weak_fit
from doublewell.inference import Posterior
from doublewell.law import Law
from doublewell.observation import Optics, Survey, check_survey, complete, survey
from doublewell.options import Phases
from doublewell.problem import Problem
from doublewell.record import Record, checksum
from doublewell.result import Diagnostics, Result, Settings
from doublewell.version import __version__
from doublewell.weak import CPU, Processor, Stream, default_supports

__all__ = [
    "identify_batch",
    "identify_together",
    "look",
    "trajectory_result",
    "weak_of",
    "weak_result",
]

Diagnose = Callable[[TrajectoryFit, Survey], Diagnostics]


def identify_batch(
    records: Sequence[Record],
    tensions: Sequence[SurfaceTension | None],
    asked: Problem,
    report: Report | None = None,
    seen: Sequence[Survey] | None = None,
    processor: Processor = CPU,
) -> list[Result]:
    """Identify records of one problem; for the trajectory fit they have one shape, mesh and interval.

    `seen` are their surveys, where they were made before.
    """
    phases = [_phases(record, asked, report, processor) for record in records]
    scaled = [from_minus_one(record, pair) for record, pair in zip(records, phases, strict=True)]
    if seen is None or asked.observation.phases == "estimated":
        seen = [look(record) for record in scaled]
    weak = [weak_of(record, one, asked, report, processor=processor) for record, one in zip(scaled, seen, strict=True)]
    if not asked.method.bands:
        return [weak_result(*parts, asked) for parts in zip(records, phases, tensions, seen, weak, strict=True)]
    alone = records[0].q is None or asked.observation.noise != "white"  # each has a start or a noise of its own
    groups = [[k] for k in range(len(records))] if alone else [list(range(len(records)))]
    fits = [fit for places in groups for fit in _fits(scaled, weak, asked, places, report)]
    return [
        trajectory_result(record, phases[k], tensions[k], seen[k], weak[k], fits[k], asked)
        for k, record in enumerate(records)
    ]


def identify_together(records: Sequence[Record], asked: Problem, report: Report | None = None) -> Result:
    """Identify the one law of several records; each is fitted by itself, then all at their common law."""
    pair = asked.observation.phases
    assert not isinstance(pair, str)
    scaled = [from_minus_one(record, pair) for record in records]
    seen = [look(record) for record in scaled]
    weak = [weak_of(record, one, asked, report) for record, one in zip(scaled, seen, strict=True)]
    fits = [_fits([r], [w], asked, [0], report)[0] for r, w in zip(scaled, weak, strict=True)]
    joint, agreements = join(fits, report)
    result = trajectory_result(records[0], pair, asked.tension, seen[0], weak[0], joint, asked)
    likelihood = result.diagnostics.likelihood
    assert likelihood is not None
    half = 0.5 * (pair[1] - pair[0])
    others = [fit_quality(fit) for fit in fits[1:]]
    likelihood = replace(likelihood, others=tuple(replace(one, noise=half * one.noise) for one in others))
    return replace(result, diagnostics=replace(result.diagnostics, likelihood=likelihood), agreements=agreements)


def _fits(
    records: Sequence[Record], weak: Sequence[WeakFit], asked: Problem, places: list[int], report: Report | None
) -> list[TrajectoryFit]:
    """Fit the likelihood of some of the records, together."""
    return trajectory_fits(
        [_as_read(records[k], weak[k]) for k in places],
        np.stack([weak[k].estimate.coefficients for k in places]),
        asked,
        report=report,
        view=asked.view(records[places[0]]),
    )


def _as_read(record: Record, weak: WeakFit) -> Record:
    """Return the record with what the likelihood needs: a q to start from, and a window where nothing is declared."""
    return record.replace(q=weak.q, boundary=record.boundary or "open")


def trajectory_result(
    record: Record, phases: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    fit: TrajectoryFit, asked: Problem, diagnose: Diagnose = trajectory_diagnostics,
) -> Result:  # fmt: skip
    """Return the result of a trajectory fit; `diagnose` gives the numbers behind it."""
    law, posterior = fit.law.placed(phases), place_posterior(fit.posterior, phases)
    numbers = place_numbers(diagnose(fit, seen), phases)
    return _result(record, asked, tension, weak, law, numbers, posterior)


def _phases(record: Record, asked: Problem, report: Report | None, processor: Processor) -> tuple[float, float]:
    """Return the phases of a record; where they are estimated, those with the smallest weak-form residual."""
    if not isinstance(asked.observation.phases, str):
        return asked.observation.phases
    if report is not None:
        report("estimating the phases", 0, 0)
    near, method = look(from_minus_one(record, plateaus(record))), asked.method.start
    if method.supports is None:
        method = replace(method, supports=default_supports(record, near.interface_width, long=True))
    searched = replace(asked, law=replace(asked.law, constraint="none"), method=replace(method, ridge=None))
    searched = replace(searched, law=replace(searched.law, degree=asked.fitted.degree))

    def misfit(scaled: Record) -> float:
        whole = complete(scaled) if asked.method.bands else scaled
        return weak_of(whole, near, searched, None, processor=processor).estimate.relative_residual

    return find_phases(record, misfit)


def look(record: Record, phases: Phases = (-1.0, 1.0)) -> Survey:
    """Survey a record, and refuse one that no law can be read from."""
    seen = survey(from_minus_one(record, plateaus(record) if isinstance(phases, str) else phases))
    check_survey(seen)
    return seen


def weak_of(
    record: Record, seen: Survey, asked: Problem, report: Report | None, stream: Stream | None = None,
    processor: Processor = CPU,
) -> WeakFit:  # fmt: skip
    """Fit weak moments: the answer of the weak-form fit, the start of the other."""
    words = "reading weak moments for a start" if asked.method.bands else "compiling and reading"
    whole = record if not asked.method.bands or stream is not None else complete(record)
    return weak_fit(whole, seen, asked, stream=stream, processor=processor, report=report, words=words)


def weak_result(
    record: Record, phases: tuple[float, float], tension: SurfaceTension | None, seen: Survey, weak: WeakFit,
    asked: Problem,
) -> Result:  # fmt: skip
    """Return the result of a weak fit."""
    law = weak.estimate.law.placed(phases)
    numbers = place_numbers(weak_diagnostics(weak, seen), phases)
    return _result(record, asked, tension, weak, law, numbers, None)


def _result(
    record: Record,
    asked: Problem,
    tension: SurfaceTension | None,
    weak: WeakFit,
    law: Law,
    numbers: Diagnostics,
    posterior: Posterior | None,
) -> Result:
    q = weak.q if posterior is None else _q(law, posterior, weak.q)
    settings = Settings(
        version=__version__,
        method="weak-corrected" if asked.method.corrected else asked.method.name,
        degree=asked.degree,
        constraint=asked.law.constraint,
        ridge=asked.method.ridge,
        supports=tuple((support.frames, support.length) for support in weak.supports),
        supports_rule=weak.rule,
        derivative=asked.method.start.derivative,
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
        noise=asked.observation.noise,
        wells=asked.law.wells,
        phases=law.phases,
    )
    return Result(law, _scale(law, tension, numbers.bound), numbers, settings, posterior)


def _q(law: Law, posterior: Posterior, q: float) -> float:
    """Return q given the law, where it was estimated with it."""
    if posterior.beside is None or "q" not in posterior.beside.names:
        return q
    lifted = posterior.family.at(law.family.degree).elevation(posterior.family) @ law.coefficients
    return float(posterior.beside.mean(lifted)[posterior.beside.names.index("q")])


def _scale(law: Law, tension: SurfaceTension | None, bound: float | None) -> Scale | None:
    """Calibrate; a law that cannot be calibrated is an outcome of the data, so that it has no scale."""
    return None if tension is None or refusal_of(law, bound) is not None else calibrate(law, tension)
