"""Statements: what a result rests on, in sentences, and the units of its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from doublewell.law import CONSTRAINTS
from doublewell.result import Result
from doublewell.units import NO_PINT, after, count, has_pint, percent, unit_text


def scale_units(result: Result) -> tuple[str | None, str | None, str | None]:
    """Return the units of epsilon, F and kappa as they follow from those given; None where one is missing."""
    length, scale = result.problem.records[0].length_unit, result.scale
    if length is None or scale is None or scale.tension.unit is None:
        return None, None, None
    unit = scale.tension.unit
    kappa = unit_text(((unit, 1), (length, 1)))
    if scale.tension.normalisation == "E":
        return kappa, unit_text(((unit, 2),)), kappa
    return unit_text(((unit, 0.5), (length, 0.5))), unit_text(((unit, 1), (length, -1))), kappa


def q_unit(result: Result, slope: int = 0) -> str | None:
    """Return the unit of q, with slope = 1 that of q G'; None unless both length and time are known."""
    record, order = result.problem.records[0], result.problem.dynamics.order
    if record.length_unit is None or record.time_unit is None:
        return None
    return unit_text(((record.length_unit, order - 2 * slope), (record.time_unit, -1)))


def per_area(result: Result) -> str | None:
    """Return the unit of G and H, None where the length has none."""
    length = result.problem.records[0].length_unit
    return None if length is None else unit_text(((length, -2),))


def assumptions(result: Result) -> Iterator[str]:
    """Yield what a result assumes and does not measure."""
    problem, boundary, (low, high) = result.problem, result.resolved.boundary, result.law.phases
    given = "" if result.q_estimated else f" with the given q = {result.q:.6g}{after(q_unit(result))}"
    yield f"the field obeys {problem.dynamics.equation}{given}"
    kinds = {"symmetric": ", and the wells are symmetric", "equal": ", and the wells are equally deep"}
    if not result.law.family.found:
        yield f"the wells lie at u = {low:g} and u = {high:g}{kinds.get(problem.law.wells or 'symmetric', '')}"
    else:
        zero = "the coexisting phases" if result.law.coexists else "the middle of its values"
        yield f"a constant of the force has no effect on a conserved field: G is zero at {zero}, by choice"
    if result.contrast is None and not result.law.family.found:
        yield "the values of the record are those of u, its contrast and offset exact"
    if problem.law.constraint != "none":
        yield f"class of laws: {law_class(result)}"
    if result.posterior is not None:
        yield f"the noise is {result.resolved.noise}"
    if boundary in ("periodic", "neumann"):
        yield f"the border is {'periodic' if boundary == 'periodic' else 'closed (no flux)'}"
    mean = ""
    if problem.dynamics.parts.anisotropy is not None:
        yield "lengths along all axes are as declared: pixels of other sides act like an anisotropic gradient energy"
        mean = ", in the geometric mean of the principal directions"
    if result.scale is not None:
        yield {
            "temperature and site volume": "the logarithms of the law are the entropy of ideal mixing, of sites of the "
            "given volume",
            "thermal noise": "the noise is that of the temperature: tied to dissipation, in local equilibrium",
        }.get(result.problem.scale_from, f"the surface tension is that of a planar interface of this law{mean}")


def record_lines(result: Result) -> Iterator[str]:
    """Yield what the movie is."""
    record, survey = result.problem.records[0], result.diagnostics.survey
    mesh = " x ".join(str(n) for n in record.shape[1:])
    boundary = "" if result.resolved.boundary is None else f", {result.resolved.boundary}"
    estimated = ""
    if result.q_estimated:
        joint = result.posterior is not None and result.posterior.joint is not None
        sd = "" if result.diagnostics.q_error is None else f" +- {result.diagnostics.q_error * result.q:.2g}"
        estimated = f" (estimated{'; 95 %: {:.6g} to {:.6g}'.format(*result.interval('q')) if joint else sd})"
    dx = ", ".join(f"{h:.6g}" for h in dict.fromkeys(record.dx)) + after(record.length_unit)
    pace = f"dx = {dx}, dt = {record.dt:.6g}{after(record.time_unit)}, q = {result.q:.6g}{after(q_unit(result))}"
    yield f"{record.shape[0]} frames of {mesh}, {pace}{estimated}{boundary}"
    width = "no interface detected" if survey.cells is None else f"interface {survey.cells:.1f} cells wide"
    visited = f"{100 * survey.coverage:.0f} % of the phase range visited"
    yield f"noise {survey.noise:.2g} ({survey.noise_method}), {width}, {visited}"
    if (contrast := result.contrast) is not None:
        named = "{} = {:.5g} (95 %: {:.5g} to {:.5g})"
        parts = [named.format(name, getattr(contrast, name), *result.interval(name)) for name in ("gain", "offset")]
        yield (
            f"values = gain u + offset, estimated: {', '.join(parts)}; pure phases at "
            f"{contrast.plateaus[0]:.5g} and {contrast.plateaus[1]:.5g}"
        )


def weak_lines(result: Result) -> Iterator[str]:
    """Yield how the weak-form fit went."""
    numbers = result.diagnostics
    yield f"supports {supports(result)}"
    yield (
        f"{numbers.rows} moments, residual {percent(numbers.residual)}, condition number "
        f"{numbers.scaled_condition:.3g} (columns scaled), optimality {numbers.kkt or 0.0:.1e}"
    )
    bound = held(numbers.active, numbers.contacts)
    what = "at the bound: " if numbers.active else "the bracket touches zero at |u| = "
    ridge = "" if numbers.ridge is None else f"; ridge alpha = {numbers.ridge.alpha:g}"
    yield f"{law_class(result)}{f', {what}{bound}' if bound else ''}{ridge}"
    if len(numbers.supports) > 1:
        yield f"a single support changes the force by up to {percent(numbers.support_spread)}"


def likelihood_lines(result: Result) -> Iterator[str]:
    """Yield how the trajectory fit went."""
    numbers, fit = result.diagnostics, result.diagnostics.likelihood
    assert fit is not None
    yield f"noise {fit.noise:.4g} per pixel, {numbers.rows} values, condition number {numbers.condition:.3g}"
    if fit.excess > 1.0:
        yield f"the residual is not noise: errors are {np.sqrt(fit.excess):.3g} times as large as noise would make them"
    passed = f"{count(fit.rounds, 'linearisation')}; {count(fit.substeps, 'solver step')} per frame interval"
    passed += f", a mesh {fit.refine} times finer than the record's" if fit.refine > 1 else ""
    if (tiles := fit.tiles) is None:
        solves = sum(step.iterations for step in fit.steps)
        steps = f"{count(len(fit.steps), 'step')}, {solves} of conjugate gradients"
        yield f"Gauss-Newton {fit.status.text}; {steps}, then {passed}"
    else:
        shape = " x ".join(str(n) for n in tiles.shape)
        reported = [f"read as {count(tiles.read, 'window')} of at most {shape} values, each with a border of its own"]
        if tiles.empty:
            reported.append(f"{tiles.empty} without an interface were left out: they tell nothing about the law")
        if tiles.lost:
            reported.append(f"{len(tiles.lost)} could not be followed")
        reported.append(f"{sum(x.agrees for x in result.agreements)} of {len(result.agreements)} agree with the others")
        if tiles.checked:
            reported.append(f"the model was tested on {tiles.checked} of them")
        yield f"{'; '.join(reported)}; {passed}; {fit.status.text}"
    if fit.segments > 1:
        yield (
            f"the record amplifies its initial field: it was cut into {fit.segments} segments, and these were linked "
            "step by step into one trajectory"
        )
    if np.isfinite(fit.mesh_size):
        yield (
            f"resolution: half the time step would move the estimate by {fit.time_size:.2g} standard errors, a finer "
            f"mesh by {fit.mesh_size:.2g}"
        )
    line = law_class(result)
    if result.problem.law.constraint != "none":
        line += f": chi2 rises by {max(fit.constraint_rise, 0.0):.1f}"
        line += f"; at the bound: {held(numbers.active, ())} of degree {result.degree}" if numbers.active else ""
        line += f"; the bracket touches zero at |u| = {held((), numbers.contacts)}" if numbers.contacts else ""
        if numbers.active or numbers.contacts:
            line += ", so the intervals show the spread of the constrained estimate"
    yield line
    if result.problem.method.ridge is not None:
        yield f"ridge alpha = {result.problem.method.ridge}; the intervals are those without it"


def unit_lines(result: Result) -> Iterator[str]:
    """Yield which units hold; nothing where none is known."""
    record, scale, area = result.problem.records[0], result.scale, per_area(result)
    if record.length_unit is None and record.time_unit is None:
        return
    length, time = record.length_unit or "an unknown unit", record.time_unit or "an unknown unit"
    yield f"lengths in {length}, times in {time}{'' if area is None else f'; G and H in {area}'}"
    if scale is None:
        return
    if scale.tension.unit is None:
        yield "the surface tension has no unit, so energies have none: give it with one, such as '0.3 J/m^2'"
    elif not has_pint():
        yield NO_PINT


def law_class(result: Result) -> str:
    """Return the class of laws that the estimate was held in."""
    constraint = result.problem.law.constraint
    if result.law.family.found and constraint != "none":
        return "one spinodal interval among the values of the record"
    if not result.law.family.symmetric and constraint != "none":
        return "two stable phases and one maximum between, exactly"
    return CONSTRAINTS[constraint]


def held(active: tuple[int, ...], contacts: tuple[float, ...]) -> str:
    """Return what a constraint holds: names of coefficients or the |u| of contacts, the same twice once."""
    return ", ".join(f"g_{j}" for j in active) or ", ".join(dict.fromkeys(f"{u:.3g}" for u in contacts))


def supports(result: Result) -> str:
    """Return the supports of the weak test functions and the rule that chose them."""
    length = after(result.problem.records[0].length_unit)
    supports = ", ".join(f"({n} frames, {x:.4g}{length})" for n, x in result.resolved.supports)
    return ": ".join(filter(None, [supports, result.resolved.supports_rule]))
