"""identify: from records to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from doublewell.calibrate import SurfaceTension, calibrate, refusal_of
from doublewell.compute.checkpoint import Ledger, fingerprint
from doublewell.compute.partition import (
    check_room,
    interface_share,
    make_tiles,
    parse_memory,
    whole_bytes,
    window_copies,
)
from doublewell.dynamics import Dynamics
from doublewell.errors import InputError, option
from doublewell.evidence import system
from doublewell.hints import Report
from doublewell.identify.conclude import Answer, TilePlan, agreements, conclude
from doublewell.identify.phases import find_phases, from_minus_one, place_numbers, place_posterior, plateaus
from doublewell.identify.readers import (
    Part,
    Records,
    TileModel,
    Tiles,
    batch_width,
    choose_stages,
    run_loops,
    unpacked,
)  # fmt: skip
from doublewell.identify.weak_fit import WeakFit, fit_weak, weak_diagnostics
from doublewell.inference import Posterior
from doublewell.inference.joint import Plan, fit_parts
from doublewell.law import Law
from doublewell.likelihood import first_substeps, growth
from doublewell.observation import Survey, check_survey, complete, joint_start, survey
from doublewell.options import Compute, DoubleWell, Method, Observation, Phases
from doublewell.problem import Problem, RecordInfo, Resolved, ask, compute_of, observed_as
from doublewell.record import Record, checksum
from doublewell.result import Diagnostics, Result
from doublewell.runtime import CPU, Processor, choose_processor, computing_on
from doublewell.weak.stream import Stream, open_stream
from doublewell.weak.weights import default_supports

_BATCH = 20  # records of 61 x 96 x 96 take about 2 GB of a GPU's memory
_SHOWN = 3  # entries that a message names with their reason
_WEIGHINGS = {"white": 0, "robust": 2}  # how often the noise is measured and the fit made again; 1 for the others
GUARD = 'put the call of identify_many under if __name__ == "__main__": in the script, or use one worker'

Tension = float | str | tuple[float, float] | SurfaceTension | None
Outcome = Result | str  # or what went wrong
In = TypeVar("In")
Out = TypeVar("Out")


def identify(
    record: Record | Sequence[Record],
    surface_tension: float | str | tuple[float, float] | SurfaceTension | None = None,
    *,
    dynamics: Dynamics | str = "allen-cahn",
    law: DoubleWell | str | int | dict[str, Any] | None = None,
    method: Method | str | None = None,
    observation: Observation | str | dict[str, Any] | None = None,
    compute: Compute | str | dict[str, Any] | None = None,
    check: bool = True,
    progress: Report | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field. Where its q is None it is estimated jointly with the law (``result.q``). Where its
        boundary is not declared it is a window, cut out of something larger, and nothing is assumed about the outside.
        Several records of one material, in a list, are fitted together: meshes, frame intervals, noise and geometries
        may differ, and ``result.agreements`` says which record disagrees with the others.
    surface_tension
        An independently measured tension: a number or a pair (value, standard deviation) in the normalisation E, a
        text such as "0.3 J/m^2 +- 5 %", or a SurfaceTension. A tension with a unit needs a record with units. Without a
        tension the result holds G and H but neither epsilon nor F, which the movie does not determine.
    dynamics
        The equation of motion, by its name or as a value: "allen-cahn".
    law
        The laws that are looked for: ``DoubleWell(degree=, constraint=, wells=)``; a number is a degree.
    method
        "trajectory" (the default): the likelihood of the whole record, with error bands, ``Trajectory(ridge=,
        memory=)``. "weak": the paper's space-time moments, ``Weak(supports=, derivative=, ridge=, corrected=, memory=,
        precision=)``. "weak-corrected": the same without the bias of white noise.
    observation
        How the field was observed: ``Observation(phases=, noise=, blur=, pixel=, exposure=, refine=, missing=)``.
    compute
        What may be used: ``Compute(workers=, scheduler=, checkpoint=, device=)``. It does not change the answer.
    check
        Whether a trajectory fit tests its residual for model misspecification (``result.adequacy``); it takes about as
        long as the fit.
    progress
        Called with (what is being done, steps done, steps), steps 0 where their number is not known.

    >>> from doublewell.simulate import initial_field, simulate
    >>> from doublewell.law import named_law
    >>> start = initial_field("circle", (64, 64), 1 / 64, epsilon=0.05)
    >>> movie = simulate(named_law("quartic"), start, dx=1 / 64, dt=1e-4, frames=25, epsilon=0.05)
    >>> sigma = named_law("quartic").surface_tension(epsilon=1.0)
    >>> result = identify(movie, surface_tension=sigma, method="weak", law=0)
    >>> round(result.epsilon, 4)
    0.05
    """
    records = [record] if isinstance(record, Record) or not isinstance(record, Sequence) else list(record)
    if not records:
        raise InputError("no records: expected a Record, or several of one material")
    problem = ask(
        records, surface_tension, dynamics=dynamics, law=law, method=method, observation=observation, check=check
    )
    records, chosen = [observed_as(record, problem) for record in records], compute_of(compute, records)
    with computing_on(chosen.device):
        return solve(records, problem, chosen, progress)


def solve(records: list[Record], problem: Problem, compute: Compute, report: Report | None) -> Result:
    """Answer a problem by its method: weak moments, or the likelihood of whole records or tiles."""
    (record, *others), method = records, problem.method
    processor = _processor(record, problem, compute)
    parted = any(x is not None for x in (method.memory, compute.workers, compute.scheduler, compute.checkpoint))
    if method.bands:
        large = [needs_tiles(one, problem) for one in records]
        if others and any(large):
            raise InputError(
                f"several records are fitted together as a whole, and one takes more than {option('memory')} allows: "
                "give more memory, or fit them one by one"
            )
        if large[0]:
            return _in_tiles(record, problem, compute, report)
        return _together(records, problem, report, processor)
    if parted and method.corrected:
        raise InputError(
            "the corrected weak-form fit holds the whole record: leave out memory, workers, scheduler and checkpoint, "
            f"or use {option('method', 'weak')}"
        )
    if parted:
        with _part_by_part(record, problem, compute, report) as (begun, _):
            return _weak_result(begun(processor), problem)
    return _weak_result(begin(record, problem, report, processor=processor), problem)


def _processor(record: Record, problem: Problem, compute: Compute) -> Processor:
    """Return what weak moments are summed on; several workers share no GPU unless that is asked for."""
    alone = compute.workers is None and compute.scheduler is None
    device = compute.device if alone or compute.device is not None else "cpu"
    return choose_processor(device, problem.method.precision, int(np.prod(record.shape)))


# ---- the start: phases, survey, weak-form fit


@dataclass(frozen=True, eq=False)
class Begun:
    """A record with its phases, on the scale on which these are -1 and +1, its survey and its weak-form fit."""

    record: Record
    phases: tuple[float, float]
    scaled: Record
    survey: Survey
    weak: WeakFit

    @property
    def info(self) -> RecordInfo:
        """The record by reference."""
        streamed = self.weak.streamed
        return RecordInfo.of(self.record, checksum(self.record) if streamed is None else streamed.checksum)

    def part(self, name: str, problem: Problem) -> Part:
        """Return what the likelihood needs: a q to start from, and a window where no boundary is declared."""
        record = self.scaled.replace(q=self.weak.q, boundary=self.scaled.boundary or "open")
        return Part(record, name, self.weak.estimate.coefficients, problem.view(self.record))


def begin(
    record: Record, problem: Problem, report: Report | None, seen: Survey | None = None, processor: Processor = CPU
) -> Begun:
    """Survey a record and fit its weak moments: the answer of the weak-form fit, the start of the other."""
    phases = problem.observation.phases
    if isinstance(phases, str):
        phases, seen = _estimated_phases(record, problem, report, processor), None
    scaled = from_minus_one(record, phases)
    seen = look(scaled) if seen is None else seen
    words = "reading weak moments for a start" if problem.method.bands else "compiling and reading"
    filled = complete(scaled) if problem.method.bands else scaled
    return Begun(
        record, phases, scaled, seen, fit_weak(filled, seen, problem, processor=processor, report=report, words=words)
    )


def _estimated_phases(
    record: Record, problem: Problem, report: Report | None, processor: Processor
) -> tuple[float, float]:
    """Return the phases with the smallest weak-form residual."""
    if report is not None:
        report("estimating the phases", 0, 0)
    near, method = look(from_minus_one(record, plateaus(record))), problem.method.start
    if method.supports is None:
        chosen, _ = default_supports(record, near.interface_width, long=True)
        method = replace(method, supports=tuple((support.frames, support.length) for support in chosen))
    law = replace(problem.law, constraint="none", degree=problem.fitted.degree)
    searched = replace(problem, law=law, method=replace(method, ridge=None))

    def misfit(scaled: Record) -> float:
        filled = complete(scaled) if problem.method.bands else scaled
        return fit_weak(filled, near, searched, processor=processor).estimate.relative_residual

    return find_phases(record, misfit)


def look(record: Record, phases: Phases = (-1.0, 1.0)) -> Survey:
    """Survey a record, and refuse one that no law can be read from."""
    seen = survey(from_minus_one(record, plateaus(record) if isinstance(phases, str) else phases))
    check_survey(seen)
    return seen


# ---- whole records


def _plan(problem: Problem, parts: Sequence[int]) -> Plan:
    return Plan(
        stages=(tuple(parts),),
        averaged=problem.averaged,
        checked=tuple(parts),
        check=problem.check,
        weighings=_WEIGHINGS.get(problem.observation.noise, 1),
    )


def _reader(parts: list[Part], problem: Problem, report: Report | None) -> Records:
    return Records(parts, problem.family, problem.fitted, problem.dynamics, problem.observation.noise, report)


def _together(records: Sequence[Record], problem: Problem, report: Report | None, processor: Processor) -> Result:
    """Fit the law that records share by their likelihood; one record is fitted the same way."""
    begun = [begin(record, problem, report, processor=processor) for record in records]
    names = ["record"] if len(begun) == 1 else [f"record {k + 1}" for k in range(len(begun))]
    parts = [one.part(name, problem) for one, name in zip(begun, names, strict=True)]
    reader = _reader(parts, problem, report)
    (joint,) = run_loops([fit_parts(_plan(problem, range(len(parts))))], reader)
    answer = conclude(problem, [part.record for part in reader.parts], begun[0].survey, joint)
    result = _trajectory_result(begun[0], problem, answer)
    if len(parts) == 1:
        return result
    return replace(
        result, agreements=agreements([system(joint.readings[k].evidence) for k in sorted(joint.readings)], names)
    )


# ---- a record larger than memory


@contextmanager
def _part_by_part(
    record: Record, problem: Problem, compute: Compute, report: Report | None
) -> Iterator[tuple[Callable[[Processor], Begun], Stream]]:
    """Give what begins a record that is read part by part, and the stream that reads it."""
    phases = problem.observation.phases
    if isinstance(phases, str):
        raise InputError(
            f"{option('phases', 'estimated')} reads a record many times, which one read part by part is not made for: "
            f"estimate them on a part of the record, and give {option('phases')} for the whole"
        )
    scaled = from_minus_one(record, phases, copy=False)
    with open_stream(
        scaled, memory=problem.method.memory, workers=compute.workers, scheduler=compute.scheduler,
        checkpoint=compute.checkpoint,
    ) as stream:  # fmt: skip
        seen = stream.survey(scaled, report=report)
        check_survey(seen)

        def begun(processor: Processor) -> Begun:
            own = replace(stream, checkpoint=None) if problem.method.bands else stream
            weak = fit_weak(scaled, seen, problem, stream=own, processor=processor, report=report)
            assert weak.streamed is not None
            return Begun(record, phases, scaled, replace(seen, missing=weak.streamed.missing), weak)

        yield begun, stream


def needs_tiles(record: Record, problem: Problem) -> bool:
    """Whether the trajectory fit of a record as a whole takes more than the budget; without one it is fitted whole."""
    if problem.method.memory is None:
        return False
    unknowns = problem.family.size + len(problem.view(record).free)
    return whole_bytes(record, unknowns, problem.dynamics) > parse_memory(problem.method.memory)


def _in_tiles(record: Record, problem: Problem, compute: Compute, report: Report | None) -> Result:
    """Fit the law by the likelihood of disjoint tiles, each a window of its own; each value belongs to one of them."""
    _check_tiles(problem)
    check_room(parse_memory(problem.method.memory))
    with _part_by_part(record, problem, compute, report) as (begin_parts, stream):
        begun = begin_parts(CPU)
        part = begun.part("record", problem)
        window, view = part.record.replace(boundary="open"), part.view
        substeps = first_substeps(window, part.start, view, problem.dynamics)
        start = problem.fitted.elevation(problem.family) @ part.start
        theta = np.concatenate([joint_start(view, problem.dynamics), start])
        copies = window_copies(theta.size, substeps)
        rate = growth(window, part.start, problem.dynamics) / float(window.times[-1] - window.times[0])
        regions = make_tiles(window, copies=copies, rate=rate, memory=stream.memory)
        interface = [0.0] * len(regions)
        for done, (k, fraction) in enumerate(
            stream.pool.completed(interface_share, [(window, region) for region in regions]), 1
        ):
            interface[k] = fraction
            if report is not None:
                report("looking for interfaces", done, len(regions))
        width = batch_width(regions, copies)
        stages, pilot = choose_stages(regions, interface, width)
        model = TileModel(window, problem.family, problem.dynamics, substeps, view, problem.check, width)
        options = ("tiles", problem.family, substeps, problem.optics, window.q, problem.check, width, theta.tolist())
        prints = {} if stream.checkpoint is None else fingerprint(window, begun.survey.histogram, options, regions)
        ledger = Ledger(stream.checkpoint, prints, partial(unpacked, problem.family, view.free))
        plan = Plan(stages, problem.averaged, pilot, problem.check, start=tuple(theta.tolist()))
        (joint,) = run_loops([fit_parts(plan)], Tiles(model, regions, stream.pool, ledger, report))
    tiles = TilePlan(regions)
    answer = conclude(problem, [part.record], begun.survey, joint, tiles)
    systems = [system(joint.readings[k].evidence) for k in sorted(joint.readings)]
    agreed = agreements(systems, tiles.names(joint)) if len(systems) > 1 else ()
    return replace(_trajectory_result(begun, problem, answer), agreements=agreed)


def _check_tiles(problem: Problem) -> None:
    """Refuse what tiles do not know."""
    if problem.observation.noise != "white":
        raise InputError(
            f"{option('noise', problem.observation.noise)} is measured on a first fit of the whole record, which is "
            f"larger than the memory: expected {option('noise', 'white')}; fit a part, or give more memory"
        )
    if problem.method.ridge is not None:
        raise InputError("a ridge is for a record that is fitted as a whole: leave it out, or give more memory")
    if problem.observation.refine > 1:
        raise InputError(
            f"{option('refine')} is for whole domains, and a record larger than the memory is fitted in windows: leave "
            "it out, or give more memory"
        )


# ---- results


def _trajectory_result(begun: Begun, problem: Problem, answer: Answer) -> Result:
    law, posterior = answer.law.placed(begun.phases), place_posterior(answer.posterior, begun.phases)
    return _result(begun, problem, law, place_numbers(answer.diagnostics, begun.phases), posterior)


def _weak_result(begun: Begun, problem: Problem) -> Result:
    law = begun.weak.estimate.law.placed(begun.phases)
    numbers = place_numbers(weak_diagnostics(begun.weak, begun.survey), begun.phases)
    return _result(begun, problem, law, numbers, None)


def _result(begun: Begun, problem: Problem, law: Law, numbers: Diagnostics, posterior: Posterior | None) -> Result:
    """Return a result with its scale; a law that cannot be calibrated is an outcome of the data and has none."""
    record, weak, tension = begun.record, begun.weak, problem.tension
    resolved = Resolved(
        q=weak.q if posterior is None else _q(law, posterior, weak.q),
        phases=law.phases,
        boundary=record.boundary if posterior is None else record.boundary or "open",
        supports=tuple((support.frames, support.length) for support in weak.supports),
        supports_rule=weak.rule,
        tiled=numbers.likelihood is not None and numbers.likelihood.tiles is not None,
    )
    scale = None if tension is None or refusal_of(law, numbers.bound) is not None else calibrate(law, tension)
    asked = replace(problem, records=(begun.info,))
    return Result(law, scale, numbers, asked, resolved, posterior=posterior)


def _q(law: Law, posterior: Posterior, q: float) -> float:
    """Return q given the law, where it was estimated with it."""
    if posterior.beside is None or "q" not in posterior.beside.names:
        return q
    lifted = posterior.family.at(law.family.degree).elevation(posterior.family) @ law.coefficients
    return float(posterior.beside.mean(lifted)[posterior.beside.names.index("q")])
