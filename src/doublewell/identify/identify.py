"""identify: from records to a calibrated law, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from doublewell.calibrate import Mixing, SurfaceTension, Temperature, calibrate, refusal_of, thermal_scale
from doublewell.capillary import capillary
from doublewell.compute.partition import tile_memory
from doublewell.dynamics import ALLEN_CAHN, Dynamics, settled
from doublewell.errors import InputError, Interrupted, option
from doublewell.hints import Report
from doublewell.identify.choose import choose_dynamics
from doublewell.identify.conclude import Answer, conclude
from doublewell.identify.parts import Part, Records, begin, check_layout, choose_mobility, state
from doublewell.identify.phases import visited
from doublewell.identify.tiles import fit_tiles, needs_tiles, streamed
from doublewell.identify.weak_fit import WeakFit, moment_tests, weak_diagnostics
from doublewell.inference.joint import Plan, fit_parts, run_loops
from doublewell.options import Compute, DoubleWell, Method, Observation
from doublewell.problem import Problem, Resolved, ask, compute_of, observed_as
from doublewell.progress import reporting
from doublewell.record import Record
from doublewell.result import Result, Rival, thermal_refusal
from doublewell.runtime import choose_processor, computing_on
from doublewell.stop import current, stopping
from doublewell.units import parse_memory

_WEIGHINGS = {"robust": 2, "correlated": 1, "shot": 1}  # how often the noise is measured on a fit, and that made again
_LARGEST, _COPIES = 2e7, 60  # values of a finer mesh that is taken by itself, and how often they are held


def identify(
    record: Record | Sequence[Record],
    surface_tension: float | str | tuple[float, float] | SurfaceTension | Mixing | None = None,
    *,
    dynamics: Dynamics | str = "allen-cahn",
    law: DoubleWell | str | int | dict[str, Any] | None = None,
    method: Method | str | None = None,
    observation: Observation | str | dict[str, Any] | None = None,
    compute: Compute | str | dict[str, Any] | None = None,
    check: bool = True,
    temperature: float | str | Temperature | None = None,
    progress: Report | bool | None = None,
) -> Result:
    """Identify the force G = F'/epsilon^2 of u_t = q (Laplacian u - G(u)), and with a tension epsilon and F.

    Parameters
    ----------
    record
        The observed phase field. Where its q is None it is estimated jointly with the law (``result.q``). Where its
        boundary is not declared it is a window, cut out of something larger, and nothing is assumed about the outside.
        Several records of one material, in a list, are fitted together: meshes, frame intervals, noise and geometries
        may differ, and ``result.agreements`` states which record disagrees with the others.
    surface_tension
        An independently measured tension: a number or a pair (value, standard deviation) in the normalisation E, a
        text such as "0.3 J/m^2 +- 5 %", or a SurfaceTension. A tension with a unit needs a record with units. Where
        the law has the entropy of ideal mixing, Mixing(temperature, volume) fixes the same, as does the text "300 K,
        0.02 nm^3". Without a
        tension the result holds G and H but neither epsilon nor F, which the movie does not determine.
    dynamics
        The equation of motion, by its name or as a value: "allen-cahn", "cahn-hilliard" (a conserved field),
        "mass-conserving" (Allen-Cahn with a uniform multiplier), or "auto": the one that explains the records best,
        which thermal noise may mislead.
        Its parts are known or estimated: ``AllenCahn(anisotropy="estimated")``, "allen-cahn(mobility=2)".
        ``result.dynamics`` is the one that was used, and ``result.rivals`` tells how clearly.
    law
        The laws that are looked for: ``DoubleWell(degree=, constraint=, wells=)``; a number is a degree.
    method
        "trajectory" (the default): the likelihood of the whole record, with error bands, ``Trajectory(ridge=,
        memory=)``. "weak": the paper's space-time moments, ``Weak(supports=, derivative=, ridge=, corrected=, memory=,
        precision=)``. "weak-corrected": the same without the bias of white noise.
    observation
        How the field was observed: ``Observation(phases=, contrast=, noise=, blur=, pixel=, drift=, exposure=,
        refine=, missing=)``.
    compute
        What may be used: ``Compute(workers=, scheduler=, checkpoint=, device=, time_limit=, cancel=)``. It does not
        change the answer, but a time limit may end the fit before it is complete: then the result is the best answer
        by then, and its findings state what is missing. Ctrl-C and ``cancel`` raise Interrupted with that result.
    check
        Whether the residual is tested for model misspecification (``result.adequacy``); of a trajectory it takes about
        as long as the fit, of weak moments 0.1 to 0.3 s.
    temperature
        Reads the movie as one that fluctuates by thermal noise, whose size gives kappa = kT / theta, and with it the
        potential and the tension: a text such as "300 K", of a film "300 K, 50 nm" with its thickness, or kT as a
        number, 1.0 for energies in kT. ``AllenCahn(thermal=True)`` reads the same movie without a scale.
    progress
        True shows a bar, in a terminal or a notebook. A function is called with (what is being done, steps done,
        steps), steps 0 where their number is not known. Of a trajectory
        fit the words give stage, cost and an estimate of the time left; before it, with steps -1, they state the law of
        the weak-form fit and what the movie warns of.

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
    auto = isinstance(dynamics, str) and dynamics == "auto"
    if auto and temperature is not None:
        raise InputError(
            f"{option('dynamics', 'auto')} compares mean paths, and thermal noise drives fields away from these: "
            f"expected an equation by its name with {option('temperature')}; the mean of a conserved field is constant"
        )
    options: dict[str, Any] = {"law": law, "observation": observation}
    rest = options | {"method": method, "check": check, "temperature": temperature}
    problem = ask(records, surface_tension, dynamics=ALLEN_CAHN if auto else dynamics, **rest)
    records, chosen = [observed_as(record, problem) for record in records], compute_of(compute, records, problem)
    records = [check_layout(record) for record in records]
    with computing_on(chosen.device), stopping(chosen.stop()) as stop, reporting(progress) as report:
        rivals: tuple[Rival, ...] = ()
        if auto:
            try:
                found, rivals = choose_dynamics(records, options, report)
            except Interrupted:
                raise _no_time("an equation was chosen", f"name it with {option('dynamics')}") from None
            problem = ask(records, surface_tension, dynamics=found, **rest)
        result = replace(solve(records, problem, chosen, report), rivals=rivals)
    if stop.by_hand:
        raise Interrupted(f"interrupted before step {stop.at} of the fit", result)
    return result


def _no_time(event: str, advice: str) -> KeyboardInterrupt | InputError:
    """Return what is raised where the time is over before there is any answer."""
    if current().by_hand:
        return Interrupted()
    return InputError(f"the time was over before {event}: expected a longer {option('time_limit')}; or {advice}")


def solve(records: list[Record], problem: Problem, compute: Compute, report: Report | None) -> Result:
    """Answer a problem by its method: weak moments, or the likelihood of whole records or tiles."""
    record, method = records[0], problem.method
    if problem.family.found:
        problem = replace(problem, values=visited(records))
    parted = {method.memory, compute.workers, compute.scheduler, compute.checkpoint} != {None}
    alone = compute.workers is None and compute.scheduler is None  # several workers share no GPU unless asked to
    device = compute.device if alone or compute.device is not None else "cpu"
    processor = choose_processor(device, method.precision, int(np.prod(record.shape)))
    large = method.memory is not None and any(needs_tiles(each, problem) for each in records)
    if method.bands and not large:
        parts = [begin(each, problem, report, processor=processor) for each in records]
        state(parts, problem, report)
        (answer,) = fit_whole(parts, [range(len(parts))], problem, report)
    elif method.bands:
        if len(records) > 1:
            raise InputError(
                f"several records are fitted together as a whole, and one takes more than {option('memory')} allows: "
                "give more memory, or fit them one by one"
            )
        part, answer = fit_tiles(record, problem, compute, report)
        parts = [part]
    elif parted:
        if method.corrected:
            raise InputError(
                "the corrected weak-form fit holds the whole record: leave out memory, workers, scheduler and "
                f"checkpoint, or use {option('method', 'weak')}"
            )
        with streamed(record, problem, compute, report, processor) as (part, _):
            parts, answer = [part], weak_answer(part, problem)
    else:
        parts = [begin(record, problem, report, processor=processor)]
        answer = weak_answer(parts[0], problem)
    return result_of(parts, problem, answer)


def weak_answer(part: Part, problem: Problem) -> Answer:
    """Return the answer of the weak-form fit alone, with the tests of its moments."""
    assert isinstance(part.start, WeakFit)
    tested = problem.check and problem.dynamics == ALLEN_CAHN
    tests = moment_tests(part.record, part.start, part.survey) if tested else None
    return Answer(part.start.estimate.law, weak_diagnostics(part.start, part.survey, tests), part.phases)


def fit_whole(
    parts: Sequence[Part], groups: Sequence[Sequence[int]], problem: Problem, report: Report | None = None
) -> list[Answer]:
    """Fit records by their likelihood, a law for each group; what the groups want next is done together.

    Where the time is over before every record was fitted once, the answer is that of the weak-form fit.
    """
    try:
        if problem.dynamics.parts.mobility == "estimated":
            parts = choose_mobility(parts, problem, report)
        reader, weighings = Records(problem, list(parts), report), _WEIGHINGS.get(problem.observation.noise, 0)
        refines = problem.observation.refine == "auto" and all(_room_for_more(part, problem) for part in parts)
        loops = []
        for group in groups:
            plan = Plan(
                (tuple(group),), problem.averaged, tuple(group), problem.check, weighings=weighings,
                refines=refines,
            )  # fmt: skip
            loops.append(fit_parts(plan))
        joints = run_loops(loops, reader)
    except KeyboardInterrupt as reason:
        current().end(1, reason)
        if len(parts) > 1 or not isinstance(parts[0].start, WeakFit):
            raise _no_time("every record was fitted once", "fit fewer values") from None
        return [weak_answer(parts[0], replace(problem, check=False))]
    pairs = zip(groups, joints, strict=True)
    return [conclude(problem, [reader.parts[k] for k in group], joint) for group, joint in pairs]


def _room_for_more(part: Part, problem: Problem) -> bool:
    """Whether a fit on a finer mesh stays within the budget; without one it is the same on all machines."""
    record = part.record
    values = prod(record.shape) * part.view.finer(record.boundary).refine ** len(record.mesh)
    budget = problem.method.memory
    return values <= _LARGEST if budget is None else tile_memory(_COPIES, values) <= parse_memory(budget)


def result_of(parts: Sequence[Part], problem: Problem, answer: Answer) -> Result:
    """Return a result with its scale; a law that cannot be calibrated is an outcome of the data and has none."""
    part, tension = parts[0], problem.tension
    answer = answer.placed(part.phases)
    law, numbers, posterior = answer.law, answer.diagnostics, answer.posterior
    joint = dict(part.start.joint) if posterior is None else posterior.joint_values(law)
    resolved = Resolved(
        q=joint.get("q", part.start.q),
        phases=law.phases,
        boundary=part.record.boundary,
        supports=tuple((support.frames, support.length) for support in part.start.supports),
        supports_rule=part.start.rule,
        noise="shot" if part.view.whitening.root is not None else problem.observation.noise.replace("auto", "white"),
        tiled=numbers.likelihood is not None and numbers.likelihood.tiles is not None,
        settled=settled(problem.dynamics, joint, len(part.record.mesh), law.phases),
        theta=None if "theta" not in joint else max(joint["theta"], 0.0),
        stopped=current().at,
    )
    if resolved.theta is not None and (fit := numbers.likelihood) is not None:
        plateaus = law.phases if fit.contrast is None else fit.contrast.plateaus
        numbers = replace(numbers, capillary=_waves(part.source, plateaus))
    scale, problem = None, replace(problem, records=tuple(each.info for each in parts))
    if tension is not None and refusal_of(law, numbers.bound, tension) is None:
        scale = calibrate(law, tension, length_unit=part.source.length_unit)
    elif tension is None and (warm := problem.temperature) and not thermal_refusal(law, numbers, problem, posterior):
        scale = thermal_scale(law, warm, joint["theta"], len(part.record.mesh), part.source.length_unit)
    return Result(
        law, scale, numbers, problem, resolved, posterior=posterior, agreements=answer.agreements,
        grey=parts[0].source.grey, notes=tuple(dict.fromkeys(note for each in parts for note in each.source.notes)),
    )  # fmt: skip


def _waves(record: Record, phases: tuple[float, float]) -> tuple[float, float, float] | None:
    """Return the tension over kT from capillary waves and its interval; None without flat interfaces."""
    try:
        found = capillary(record, phases=phases)
    except InputError:
        return None
    return found.tension, *found.interval()
