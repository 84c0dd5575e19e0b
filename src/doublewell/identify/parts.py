"""Parts: records brought to the phases -1 and +1, surveyed, with the law to start from; and their reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doublewell.adequacy import Adequacy, Verdict, check_adequacies, check_fluctuations
from doublewell.compute.run import Pace
from doublewell.dynamics import Dynamics, in_phases
from doublewell.dynamics.mobility import HIGHEST
from doublewell.errors import InputError, Interrupted, NoStartError, option
from doublewell.evidence import compact, contract, joint_given_law, stacked, weakened
from doublewell.hints import STATED, Array, Report
from doublewell.identify.phases import find_phases, near_plateaus, plateaus, plateaus_or, visited
from doublewell.identify.start import Start, diffusion_start, needs_quartic, quartic_start
from doublewell.identify.weak_fit import WeakFit, fit_weak, steady
from doublewell.inference.joint import Job, PartFit
from doublewell.law import Law
from doublewell.likelihood import (
    Batch,
    FluctuatingBatch,
    Resolution,
    Trajectory,
    first_substeps,
    measure_resolution,
    opened,
)
from doublewell.observation import TOO_FEW_CELLS, Survey, check_survey, complete, survey
from doublewell.observation.view import (
    View,
    camera_noise,
    joint_parameters,
    middle_half,
    noise_in_time,
    noise_view,
    noisy,
    outlier_mask,
)
from doublewell.options import Phases
from doublewell.problem import Problem, RecordInfo
from doublewell.record import Record, checksum
from doublewell.record.arrays import PhaseScale, lazy
from doublewell.record_findings import Severity, layout_findings, survey_findings
from doublewell.runtime import CPU, Processor
from doublewell.stop import current
from doublewell.weak.weights import default_supports

_FITTED, _LINEARISED, _RESOLVED = 0.1, 0.25, 0.35  # of the work on 61 x 96 x 96 values, done before what comes next


@dataclass(frozen=True, eq=False)
class Part:
    """A record as it was given (``source``), and as the likelihood sees it: ``record`` has its phases at -1 and +1.

    ``phases`` are the values of the source that ``record`` has there. ``contrast`` is where gain and offset of the
    record start, if they are estimated. Where q is not known it is that of the ``start``, and where no boundary is
    declared it is a window. The ``dynamics`` are those of the scaled field. The start of a weak-form fit is its answer,
    a WeakFit.
    """

    source: Record
    phases: tuple[float, float]
    survey: Survey
    start: Start
    record: Record
    view: View
    dynamics: Dynamics
    contrast: tuple[float, float] = (1.0, 0.0)

    @classmethod
    def of(
        cls, source: Record, phases: tuple[float, float], plateaus: tuple[float, float], seen: Survey, start: Start,
        problem: Problem, *, copy: bool = True,
    ) -> Part:  # fmt: skip
        """Return the part of a record that was surveyed with its `plateaus` at -1 and +1, with what it starts from."""
        record = from_minus_one(source, phases, copy=copy)
        record = record.replace(q=start.q, boundary=record.boundary or "open") if problem.method.bands else record
        (middle, half), (target, size) = map(middle_half, (plateaus, phases))
        gain, offset = half / size, (middle - target) / size
        view = problem.view(source)
        view = camera_noise(record, view) if problem.method.bands and start.streamed is None else view
        return cls(source, phases, seen.scaled(gain, offset), start, record, view, problem.dynamics, (gain, offset))

    @property
    def joint(self) -> Array:
        """Return where what is estimated jointly with the law starts."""
        starts = dict(zip(("gain", "offset"), self.contrast, strict=True)) | dict(self.start.joint)
        return np.array([starts.get(known.name, known.start) for known in joint_parameters(self.view)])

    @property
    def info(self) -> RecordInfo:
        """The record by reference."""
        streamed = self.start.streamed
        return RecordInfo.of(self.source, checksum(self.source) if streamed is None else streamed.checksum)


def begin(
    record: Record, problem: Problem, report: Report | None, seen: Survey | None = None, processor: Processor = CPU
) -> Part:
    """Survey a record and fit its weak moments: the answer of the weak-form fit, the start of the other.

    A trajectory fit of few frames, or of frames far apart, starts from a quartic law instead.
    """
    declared, bands = problem.observation.phases, problem.method.bands
    if problem.family.found:
        return _begun_in_range(record, problem, report, processor)
    contrast = bands and problem.view(record).contrast
    phases, seen = (declared, seen) if isinstance(declared, tuple) else (plateaus(record), None)
    if isinstance(declared, str) and not contrast:
        phases = _estimated_phases(record, problem, report, processor)

    problem = replace(problem, dynamics=in_phases(problem.dynamics, middle_half(phases)[1]))

    def begun(pair: tuple[float, float], seen: Survey | None) -> Part:
        scaled = from_minus_one(record, pair)
        seen = survey_of(scaled) if seen is None else seen
        return Part.of(record, phases, pair, seen, _start(scaled, seen, problem, processor, report), problem)

    near = near_plateaus(record, phases) if contrast else None
    return begun(phases, seen) if near is None else begun(near, None)


def _begun_in_range(record: Record, problem: Problem, report: Report | None, processor: Processor) -> Part:
    """Begin with a record of a conserved field: its values are the inner half of the range that -1 and +1 stand for."""
    values = problem.values or visited([record])
    phases, pair = problem.range_of(values), plateaus_or(record, values)
    seen, scaled = rescaled(look_at(record, pair), pair, phases), from_minus_one(record, phases)
    start, refused = None, None
    try:
        start = _start(scaled, seen, problem, processor, report)
    except InputError as error:
        refused = error
    if pair == values:
        start = diffusion_start(complete(scaled), seen, problem, start) or start
    if start is None:
        assert refused is not None
        raise refused
    if not (problem.method.bands or isinstance(start, WeakFit)):
        raise InputError(
            "the record shows one phase, whose waves decay by diffusion, and the weak form cannot tell its law from "
            f"noise: use {option('method', 'trajectory')}, which gives q G' with its band"
        )
    if pair != values and isinstance(start, WeakFit) and problem.method.bands:
        start = steady(start, problem.fitted) or quartic_start(complete(scaled), seen, problem)
    return Part.of(record, phases, phases, seen, start, problem)


def rescaled(seen: Survey, before: tuple[float, float], after: tuple[float, float]) -> Survey:
    """Return a survey with one pair of values at -1 and +1 as that with another pair there."""
    (target, size), (centre, half) = middle_half(before), middle_half(after)
    return seen if before == after else seen.scaled(size / half, (target - centre) / half)


def _start(record: Record, seen: Survey, problem: Problem, processor: Processor, report: Report | None) -> Start:
    """Return where a fit of a record with its phases at -1 and +1 begins: weak moments, or a quartic law."""
    if not problem.method.bands:
        return fit_weak(record, seen, problem, processor=processor, report=report)
    filled, free = complete(record), problem.method.start.supports is None
    if free and needs_quartic(record, seen, problem.dynamics):
        return quartic_start(filled, seen, problem)
    try:
        start = fit_weak(filled, seen, problem, processor=processor, report=report, words="weak moments for a start")
        slope = problem.fitted.steepness(start.coefficients)
        first_substeps(filled.replace(q=start.q), slope, problem.dynamics)  # a law that is too steep is refused
        return start
    except InputError as error:  # whole frames show more than moments, which know of no thermal noise
        if not (free and (isinstance(error, NoStartError) or problem.dynamics.parts.thermal)):
            raise
        return quartic_start(filled, seen, problem)


def _estimated_phases(
    record: Record, problem: Problem, report: Report | None, processor: Processor
) -> tuple[float, float]:
    """Return the phases with the smallest weak-form residual."""
    if report is not None:
        report("estimating the phases", 0, 0)
    near, method = survey_of(record, "estimated"), problem.method.start
    if method.supports is None:
        chosen, _ = default_supports(record, near.interface_width, long=True, order=problem.dynamics.order)
        method = replace(method, supports=tuple((support.frames, support.length) for support in chosen))
    law = replace(problem.law, constraint="none", degree=problem.fitted.degree)
    searched = replace(problem, law=law, method=replace(method, ridge=None))

    def misfit(low: float, high: float) -> float:
        scaled = from_minus_one(record, (low, high))
        filled = complete(scaled) if problem.method.bands else scaled
        return fit_weak(filled, near, searched, processor=processor).estimate.relative_residual

    return find_phases(record, misfit)


def from_minus_one(record: Record, phases: tuple[float, float], *, copy: bool = True) -> Record:
    """Return the record with its phases at -1 and +1; one that has them there is returned as it is.

    A field u = middle + half s obeys the equation of s with the force half G(s): a record is fitted as s, and its law
    is moved to the phases of u afterwards. Values that are stored, or without `copy` all, are converted when read.
    """
    if phases == (-1.0, 1.0):
        return record
    scale, values = PhaseScale(*phases), record.values
    return record.replace(scale(values) if copy and isinstance(values, np.ndarray) else lazy(values).map(scale))


def look_at(record: Record, pair: tuple[float, float]) -> Survey:
    """Survey a record of a conserved field with a pair of values at -1 and +1."""
    seen = survey(from_minus_one(record, pair))
    check_seen(seen, conserved=True)
    return seen


def check_seen(seen: Survey, *, conserved: bool) -> None:
    """Refuse a record that determines no law; that of a conserved field may be of one phase."""
    if not conserved or seen.two_valued or (seen.cells is not None and seen.cells < TOO_FEW_CELLS):
        check_survey(seen)


def survey_of(record: Record, phases: Phases = (-1.0, 1.0)) -> Survey:
    """Survey a record, and refuse one that determines no law."""
    seen = survey(from_minus_one(record, plateaus(record) if isinstance(phases, str) else phases))
    check_survey(seen)
    return seen


def state(parts: Sequence[Part], problem: Problem, report: Report | None) -> None:
    """Report what is known before the trajectory fit: the law that it starts from, and what the movie warns of."""
    if report is None:
        return
    for part in parts:
        known = "weak-form fit" if isinstance(part.start, WeakFit) else "start"
        law = Law(problem.fitted, part.start.coefficients).placed(part.phases)
        report(f"{known}: {law.equation()}, q = {part.start.q:.4g}", 0, STATED)
        for item in survey_findings(part.survey):
            if item.severity != Severity.OK:
                report(f"{item.severity}: {item}", 0, STATED)


def check_layout(record: Record) -> Record:
    """Return the record; refuse one whose axes or border make a fit impossible."""
    for item in layout_findings(record):
        if item.severity == Severity.FAIL:
            raise InputError(str(item))
    return record


@dataclass(eq=False)
class Records:
    """Do the jobs of the loop on whole records, here; records of one kind that want the same are one batch."""

    problem: Problem
    parts: list[Part]
    report: Report | None = None
    _pace: Pace = field(init=False)
    _batches: dict[tuple[int, ...], Batch] = field(default_factory=dict)
    _models: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pace = Pace(self.report, 1.0 if self.problem.check else _RESOLVED)

    def __call__(self, jobs: list[Job]) -> list[PartFit | None]:
        """Do jobs, in their order; of those that go on from a fit none where there is no time for them."""
        if any(job.before is None for job in jobs):
            return [*self._done(jobs)]
        parts, replies = list(self.parts), current().attempt(lambda: self._done(jobs))
        if replies is None:
            self.parts = parts
        return [None] * len(jobs) if replies is None else [*replies]

    def _done(self, jobs: list[Job]) -> list[PartFit]:
        for job in jobs:
            if job.weigh or job.finer:
                self._look_again(job)
        groups: dict[Any, list[int]] = {}
        for k, job in enumerate(jobs):
            groups.setdefault(self._kind(job), []).append(k)
        replies: dict[int, PartFit] = {}
        for places in groups.values():
            replies |= zip(places, self._read([jobs[k] for k in places]), strict=True)
        return [replies[k] for k in range(len(jobs))]

    def _kind(self, job: Job) -> Any:
        """Return what jobs of one batch have in common; the last entry is about the record alone."""
        view, record = self.parts[job.part].view, self.parts[job.part].record
        noise = view.whitening
        plain = noise.root is noise.colour is None and view.light is None and not noise.memory
        camera = (view.optics, view.q_free, view.moving, view.equation) if plain else job.part
        like = (record.shape, record.dx, record.q, record.boundary, tuple(record.times - record.times[0]), camera)
        batch = None if job.before is None else id(job.before.fields.batch)
        return job.theta is None, job.substeps, job.resolution, job.adequacy, batch, like

    def _read(self, jobs: list[Job]) -> list[PartFit]:
        first, before = jobs[0], [job.before for job in jobs]
        resolutions: Sequence[Resolution | None] = [None if last is None else last.resolution for last in before]
        answers: Sequence[Adequacy | None] = [None] * len(jobs)
        if first.theta is None and first.before is None:
            with current().finishing():
                fits = self._fit(jobs)
            if not all(fit.steps for fit in fits):
                raise Interrupted
        elif first.theta is None:
            fits = self._fit(jobs)
        else:
            fits = [last.fields for last in before if last is not None]
            if not first.adequacy:
                self._pace.say("linearising again at the common law", _RESOLVED)
                laws = np.stack([np.asarray(job.theta)[-self.problem.family.size :] for job in jobs])
                fits = fits[0].batch.relinearise(fits, laws)
        if first.resolution:
            self._pace.say("checking the resolution", _LINEARISED)
            resolutions = current().attempt(lambda: measure_resolution(fits)) or resolutions
        if first.adequacy:
            self._pace.say("checking the model", _RESOLVED)
            tests = check_adequacies if fits[0].levels is None else check_fluctuations
            answers = current().attempt(lambda: tests(fits)) or answers
        return [*map(part_fit, fits, resolutions, answers)]

    def _fit(self, jobs: list[Job]) -> list[Trajectory]:
        places = tuple(job.part for job in jobs)
        parts = [self.parts[k] for k in places]
        if places not in self._batches:
            models = self._models.setdefault(self._kind(replace(jobs[0], before=None))[-1], {})
            labels = ["record"] if len(self.parts) == 1 else [f"record {k + 1}" for k in places]
            records = [part.record for part in parts]
            kind = FluctuatingBatch if parts[0].dynamics.parts.thermal else Batch
            self._batches[places] = kind(records, parts[0].dynamics, parts[0].view, labels, models)
        starts = np.stack([part.start.coefficients for part in parts])
        watch: Callable[[Any], None] | None = None
        if self.report is not None:
            watch = lambda step: self._pace.say(f"fitting: {step}", _FITTED * step.done, step.number)  # noqa: E731
            self._pace.say("loading or compiling the fit", 0.0)
        return self._batches[places].fit(
            starts,
            joint=np.stack([part.joint for part in parts]),
            family=self.problem.family,
            fitted=self.problem.fitted,
            substeps=jobs[0].substeps,
            before=None if jobs[0].before is None else [job.before.fields for job in jobs if job.before],
            watch=watch,
        )

    def _look_again(self, job: Job) -> None:
        """Let a record be observed with its noise as the fit before shows it, outliers masked; or on a finer mesh."""
        assert job.before is not None
        noise, part, residual = self.problem.observation.noise, self.parts[job.part], job.before.fields.residual
        width = job.before.fields.batch.border
        self._pace.say("fitting again on a finer mesh" if job.finer else f"fitting again with {noise} noise", 0.0)
        if job.finer:
            part = replace(part, view=part.view.finer(part.record.boundary))
        elif noise == "robust":
            part = replace(part, record=part.record.replace(mask=outlier_mask(part.record, residual, width)))
        else:
            part = replace(part, view=noise_view(part.record, residual, part.view, noise, width))
        self.parts[job.part] = part
        self._batches = {places: batch for places, batch in self._batches.items() if job.part not in places}
        self._models.clear()


def choose_mobility(parts: Sequence[Part], problem: Problem, report: Report | None) -> list[Part]:
    """Return parts whose mobility has the degree that the data ask for, by the criterion of Schwarz.

    A fit of the first degree, with a law of a low one, tells all degrees apart where it ends, and a part starts from
    what the best of them leads to. The criterion of Akaike takes too many in a third of the records, and errors near
    the phases are then several times as large.
    """
    low = replace(problem, law=replace(problem.law, degree=problem.fitted.degree))
    fits, chosen = Records(low, list(parts), report)([Job(k) for k in range(len(parts))]), []
    for part, fit in zip(parts, fits, strict=True):
        assert fit is not None
        dynamics = part.dynamics.changed(mobility=HIGHEST)
        names = dynamics.parts.estimated(len(part.record.mesh), part.record.boundary)
        series = [name for name in names if name.startswith("mobility ")]
        total = opened(fit.fields, dynamics, names)
        each = [contract(total, dict.fromkeys(series[degree:], 0.0)) for degree in range(1, HIGHEST + 1)]
        costs = [compact(stacked(held))[-1, -1] ** 2 + np.log(total.rows) * k for k, held in enumerate(each)]
        degree = 1 + int(np.argmin(costs))
        best = joint_given_law(each[degree - 1])
        joint = dict(zip(best.names, best.best.tolist(), strict=True))
        view = replace(part.view, equation=tuple([name for name in names if name not in series[degree:]]))
        start = replace(part.start, coefficients=best.g_best, joint=joint)
        chosen.append(replace(part, start=start, dynamics=dynamics.changed(mobility=degree), view=view))
    return chosen


def part_fit(fit: Trajectory, resolution: Resolution | None, adequacy: Adequacy | None) -> PartFit:
    """Return the evidence and the residual statistics of a fit, with the fit itself.

    A residual that is not noise has fewer independent values than pixels, and its evidence counts less.
    """
    axes, values, kept = tuple(range(1, fit.residual.ndim)), fit.record.slab(), noisy(fit.record, fit.batch.border)
    known = None if fit.record.mask is None else fit.record.observed()
    return PartFit(
        evidence=weakened(fit.evidence, fit.excess),
        theta=fit.theta,
        noise=fit.noise,
        cost=float(fit.evidence.blocks[0].triangle[-1, -1] ** 2) * fit.noise**2,
        power=float(np.vdot(values, values)),
        status=fit.status,
        solve=fit.solve,
        substeps=fit.substeps,
        excess=fit.excess,
        sums=tuple(np.sum(np.where(kept, fit.residual, 0.0) ** 2, axis=axes).tolist()),
        counts=tuple(np.count_nonzero(kept, axis=axes).tolist()),
        resolution=resolution,
        adequacy=adequacy,
        fields=fit,
        surplus=fit.noise / (noise_in_time(values, known) or fit.noise),
        refused=adequacy is not None and adequacy.verdict == Verdict.NOT_ADEQUATE,
    )
