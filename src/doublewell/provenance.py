"""Provenance: what the facts of a result rest on, in sentences: the movie, the fit, the units, the grey levels."""

from __future__ import annotations

from collections.abc import Iterator

from doublewell.errors import InputError
from doublewell.law import CONSTRAINTS, check_constraint
from doublewell.result import Result, physical
from doublewell.units import has_pint, unit_text
from doublewell.wording import after, count, percent


def assumptions(result: Result) -> Iterator[str]:
    """Yield what a result assumes and does not measure."""
    asked, (low, high) = result.settings, result.law.phases
    given = "" if asked.q_estimated else f" with the given q = {asked.q:.6g}{after(q_unit(result))}"
    yield f"the field obeys {result.problem.dynamics.equation}{given}"
    kinds = {"symmetric": ", and the wells are symmetric", "equal": ", and the wells are equally deep", "unequal": ""}
    yield f"the wells lie at u = {low:g} and u = {high:g}{kinds[asked.wells]}"
    if asked.constraint != "none":
        yield f"class of laws: {law_class(result)}"
    if result.posterior is not None:
        yield f"the noise is {asked.noise}"
    if asked.boundary in ("periodic", "neumann"):
        yield f"the border is {'periodic' if asked.boundary == 'periodic' else 'closed (no flux)'}"
    if result.scale is not None:
        yield "the surface tension is that of a planar interface of this law"


def fit_lines(result: Result) -> Iterator[str]:
    """Yield how the fit went."""
    return _weak_lines(result) if result.diagnostics.likelihood is None else _likelihood_lines(result)


def record_lines(result: Result) -> Iterator[str]:
    """Yield what the movie is."""
    asked, seen = result.settings, result.diagnostics.survey
    mesh = " x ".join(str(n) for n in asked.shape[1:])
    boundary = "" if asked.boundary is None else f", {asked.boundary}"
    length, time = after(asked.length_unit), after(asked.time_unit)
    estimated = f" (estimated{_q_interval(result)})" if result.q_estimated else ""
    dx = ", ".join(f"{h:.6g}" for h in dict.fromkeys(asked.dx))
    pace = f"dx = {dx}{length}, dt = {asked.dt:.6g}{time}, q = {asked.q:.6g}{after(q_unit(result))}{estimated}"
    yield f"{asked.shape[0]} frames of {mesh}, {pace}{boundary}"
    width = "no interface detected" if seen.cells is None else f"interface {seen.cells:.1f} cells wide"
    visited = f"{100 * seen.coverage:.0f} % of the phase range visited"
    yield f"noise {seen.noise:.2g} ({seen.noise_method}), {width}, {visited}"


def _q_interval(result: Result) -> str:
    if result.posterior is None or result.posterior.beside is None:
        return ""
    return "; 95 %: {:.6g} to {:.6g}".format(*result.interval("q"))


def _weak_lines(result: Result) -> Iterator[str]:
    numbers = result.diagnostics
    yield f"supports {supports_line(result)}"
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


def _likelihood_lines(result: Result) -> Iterator[str]:
    numbers, fit = result.diagnostics, result.diagnostics.likelihood
    assert fit is not None
    yield f"noise {fit.noise:.4g} per pixel, {numbers.rows} values, condition number {numbers.condition:.3g}"
    passed = f"{count(fit.rounds, 'linearisation')}; {count(fit.substeps, 'solver step')} per frame interval"
    if fit.tiles is None:
        solves = sum(step.iterations for step in fit.steps)
        steps = f"{count(len(fit.steps), 'step')}, {solves} of conjugate gradients"
        yield f"Gauss-Newton {fit.status.text}; {steps}, then {passed}"
    else:
        yield f"{'; '.join(_tile_parts(result))}; {passed}; {fit.status.text}"
    if fit.segments > 1:
        yield (
            f"the record amplifies its initial field: it was cut into {fit.segments} segments, and these were linked "
            "step by step into one trajectory"
        )
    yield (
        f"resolution: half the time step would move the estimate by {fit.time_size:.2g} standard errors, a finer mesh "
        f"by {fit.mesh_size:.2g}"
    )
    yield _constraint_line(result)
    if result.settings.ridge is not None:
        yield f"ridge alpha = {result.settings.ridge}; the intervals are those without it"


def _tile_parts(result: Result) -> Iterator[str]:
    fit = result.diagnostics.likelihood
    assert fit is not None
    assert fit.tiles is not None
    tiles, shape = fit.tiles, " x ".join(str(n) for n in fit.tiles.shape)
    yield f"read as {count(tiles.read, 'window')} of at most {shape} values, each with a border of its own"
    if tiles.empty:
        yield f"{tiles.empty} without an interface were left out, because they tell nothing about the law"
    if tiles.lost:
        yield f"{len(tiles.lost)} could not be followed"
    yield f"{sum(item.agrees for item in result.agreements)} of {len(result.agreements)} agree with the others"
    if tiles.checked:
        yield f"the model was tested on {tiles.checked} of them"


def _constraint_line(result: Result) -> str:
    numbers, fit, words = result.diagnostics, result.diagnostics.likelihood, law_class(result)
    if result.settings.constraint == "none" or fit is None:
        return words
    line = f"{words}: chi2 rises by {max(fit.constraint_rise, 0.0):.1f}"
    if numbers.active:
        line += f"; at the bound: {held(numbers.active, ())} of degree {result.degree}"
    if numbers.contacts:
        line += f"; the bracket touches zero at |u| = {held((), numbers.contacts)}"
    bound = numbers.active or numbers.contacts
    return line + (", so the intervals show the spread of the constrained estimate" if bound else "")


def unit_lines(result: Result) -> Iterator[str]:
    """Yield which units hold; nothing where none is known."""
    asked, scale = result.settings, result.scale
    if asked.length_unit is None and asked.time_unit is None:
        return
    length, time = asked.length_unit or "an unknown unit", asked.time_unit or "an unknown unit"
    area = per_area(result)
    yield f"lengths in {length}, times in {time}{'' if area is None else f'; G and H in {area}'}"
    if scale is None:
        return
    if scale.tension.unit is None:
        yield "the surface tension has no unit, so energies have none: give it with one, such as '0.3 J/m^2'"
    elif not has_pint():
        try:
            physical(result)
        except InputError as error:
            yield str(error)


def level_lines(result: Result) -> Iterator[str]:
    """Yield what the errors of the grey levels do; nothing where they were not added."""
    found, (low, high) = result.levels, result.law.phases
    if found is None:
        return
    first, second = (f"{level:.6g} +- {sd:.2g}" for level, sd in zip(found.levels, found.sd, strict=True))
    plus = "+" if high == 1.0 and low == -1.0 else ""
    yield f"phase {low:g} at {first}, phase {plus}{high:g} at {second} (standard deviations)"
    also = "" if found.epsilon is None else f" and epsilon by {percent(found.epsilon)}"
    held = "the weak-form fit has no bands that could include it"
    yield (
        f"these move G by {percent(found.force)}{also}; "
        + (held if result.posterior is None else "bands and intervals include it")
    )


def law_class(result: Result) -> str:
    """Return the class of laws that the estimate was held in."""
    if not result.law.family.symmetric and result.settings.constraint != "none":
        return "two stable phases and one maximum between, exactly"
    return CONSTRAINTS[check_constraint(result.settings.constraint)]


def held(active: tuple[int, ...], contacts: tuple[float, ...]) -> str:
    """Return what a constraint holds: names of coefficients or the |u| of contacts, the same twice once."""
    return ", ".join(f"g_{j}" for j in active) or ", ".join(dict.fromkeys(f"{u:.3g}" for u in contacts))


def supports_line(result: Result) -> str:
    """Return the supports of the weak test functions and the rule that chose them."""
    length = after(result.settings.length_unit)
    supports = ", ".join(f"({n} frames, {x:.4g}{length})" for n, x in result.settings.supports)
    return f"{supports}: {result.settings.supports_rule}"


def q_unit(result: Result) -> str | None:
    """Return the unit of q, None unless both length and time are known."""
    length, time = result.settings.length_unit, result.settings.time_unit
    return None if length is None or time is None else unit_text(((length, 2), (time, -1)))


def per_area(result: Result) -> str | None:
    """Return the unit of G and H, None where the length has none."""
    length = result.settings.length_unit
    return None if length is None else unit_text(((length, -2),))
