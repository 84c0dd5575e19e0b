"""Facts: every number that a result is quoted with, once, with its symbol, unit and interval, and what it rests on.

All renderers read this table, `findings` and `curves`, so that a barrier is the same in the text, the page, the JSON
and the LaTeX. Only these modules know how a result stores its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import wraps
from math import hypot
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from doublewell.calibrate import SurfaceTension, why_no_scale
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law import CONSTRAINTS, Law, Structure, check_constraint
from doublewell.physical import Physical, physical, width_name
from doublewell.problem import Problem, RecordInfo
from doublewell.result import Result
from doublewell.units import after, count, has_pint, percent, unit_text

T = TypeVar("T")
LEVEL = 0.95  # of all intervals and bands
METHODS = {
    "trajectory": "trajectory fit",
    "weak": "weak-form fit",
    "weak-corrected": "weak-form fit corrected for noise",
}
_DEVIATES = 3.92  # a 95 % interval in standard deviations of a normal distribution


@dataclass(frozen=True)
class Fact:
    """A number with its name, symbol and unit.

    ``interval`` is its 95 % interval, None where there is none, and then ``why`` may tell the reason; ``sd`` is a
    standard deviation where that is what is known; ``note`` tells where the number comes from.
    """

    key: str
    name: str
    symbol: str
    value: float
    unit: str | None = None
    interval: tuple[float, float] | None = None
    sd: float | None = None
    why: str = ""
    note: str = ""


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of the law: its value, sd, the value without constraint and ridge, whether it is at its bound."""

    symbol: str
    value: float
    sd: float | None
    free: float
    at_bound: bool


@dataclass(frozen=True)
class DegreeFact:
    """One degree of the average: chi-square above the best, weight, and what the constraint holds there."""

    degree: int
    chi2: float
    weight: float
    held: str


@dataclass(frozen=True, eq=False)
class Facts:
    """All facts of a result. ``numbers`` holds the quotable ones by key, in the order in which they are listed.

    ``problem`` is what was asked and ``data`` its first record, with the boundary that was used. ``heaviest`` is the
    degree with the largest weight in an average, its weight and its equation. ``banded`` tells whether there are error
    bands, ``tiled`` whether the movie was read in tiles, ``initial`` whether the fitted initial field is known.
    ``verdict`` is that of the tests of the model: "adequate", "check", "not adequate" or "not tested".
    ``assumptions``, ``record``, ``fit`` and ``units`` tell in sentences what is assumed and not measured,
    what the movie is, how the fit went, and which units hold.
    """

    version: str
    problem: Problem
    data: RecordInfo
    law: Law
    numbers: dict[str, Fact]
    coefficients: tuple[Coefficient, ...]
    correlations: Array | None
    degrees: tuple[DegreeFact, ...]
    heaviest: tuple[int, float, str] | None
    law_class: str
    banded: bool
    tiled: bool
    initial: bool
    verdict: str
    tension: SurfaceTension | None
    no_scale: str
    supports: str
    assumptions: tuple[str, ...]
    record: tuple[str, ...]
    fit: tuple[str, ...]
    units: tuple[str, ...]

    def __getitem__(self, key: str) -> Fact:
        return self.numbers[key]

    def get(self, key: str) -> Fact | None:
        """Return a fact, None where the result has none of this key."""
        return self.numbers.get(key)

    @property
    def equation(self) -> str:
        """The force as text."""
        return self.law.equation()

    @property
    def motion(self) -> str:
        """The equation of motion as text."""
        return self.problem.dynamics.equation

    @property
    def structure(self) -> Structure:
        """The stationary points of the law."""
        return self.law.structure

    @property
    def headline(self) -> str:
        """What was identified, in a few words."""
        kind = f"of degree {self.law.family.degree}"
        if self.heaviest is not None:
            kind = f"averaged over degrees (degree {self.heaviest[0]} has the weight {percent(self.heaviest[1])})"
        return f"law {kind} by the {METHODS[self.problem.method.name]}"

    @property
    def held_heading(self) -> str:
        """What the column of a table of degrees lists."""
        return "touches zero at |u|" if self.problem.law.constraint == "admissible" else "at the bound"

    @property
    def title(self) -> str:
        """The name of the movie's file, or what the movie is."""
        source = self.data.source
        if source is not None:
            return source.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or source.path
        return f"{self.data.shape[0]} frames of {' × '.join(str(n) for n in self.data.shape[1:])} pixels"

    def document(self) -> dict[str, Any]:
        """Return the quotable numbers as JSON values, by key; a number that is not finite is left out."""
        return {key: asdict(fact) for key, fact in self.numbers.items() if np.isfinite(fact.value)}


def kept(make: Callable[[Result], T]) -> Callable[[Result], T]:
    """Keep what is made of a result as long as the result lives; once in the words of Python, once of the shell."""
    store: WeakKeyDictionary[Result, dict[str, T]] = WeakKeyDictionary()

    @wraps(make)
    def find(result: Result) -> T:
        words = store.setdefault(result, {})
        if (mode := option("degree")) not in words:
            words[mode] = make(result)
        return words[mode]

    return find


@kept
def facts(result: Result) -> Facts:
    """Return the facts of a result."""
    problem, posterior, law, fit = result.problem, result.posterior, result.law, result.diagnostics.likelihood
    path = () if posterior is None else posterior.path
    correlations = heaviest = None
    if posterior is not None and len(path) == 1:
        size = np.sqrt(np.diag(posterior.covariance))
        correlations = np.asarray(posterior.covariance / np.outer(size, size))
    elif posterior is not None and path:
        best = max(path, key=lambda part: part.weight)
        heaviest = best.degree, best.weight, Law(posterior.family.at(best.degree), best.coefficients).equation()
    listed = [*_scale(result), *_wells(result), *_record_numbers(result)]
    if posterior is not None:
        listed.insert(
            0, Fact("force_band", "95 % band of G, root mean square over that of G", "dG/G", band_size(result))
        )
    units = (result.scale and result.scale.tension.unit, problem.records[0].length_unit, problem.records[0].time_unit)
    if None not in units and has_pint():
        listed += physical_facts(physical(result))
    return Facts(
        version=result.version,
        problem=problem,
        data=replace(problem.records[0], boundary=result.resolved.boundary),
        law=law,
        numbers={fact.key: fact for fact in listed},
        coefficients=_coefficients(result),
        correlations=correlations,
        degrees=tuple(DegreeFact(f.degree, f.chi2, f.weight, _held(f.active, f.contacts)) for f in path),
        heaviest=heaviest,
        law_class=_law_class(result),
        banded=posterior is not None,
        tiled=fit is not None and fit.tiles is not None,
        initial=fit is not None and fit.initial is not None,
        verdict="not tested" if result.adequacy is None else str(result.adequacy.verdict),
        tension=problem.tension if result.scale is None else result.scale.tension,
        no_scale="" if result.scale is not None else (result.refusal or why_no_scale()),
        supports=_supports(result),
        assumptions=tuple(_assumptions(result)),
        record=tuple(_record_lines(result)),
        fit=tuple(_weak_lines(result) if fit is None else _likelihood_lines(result)),
        units=tuple(_unit_lines(result)),
    )


# --- numbers ----------------------------------------------------------------------------------------------------------


def _scale(result: Result) -> Iterator[Fact]:
    """Yield epsilon, kappa, the barrier of F and the surface tension; nothing without a scale."""
    law, scale = result.law, result.scale
    if scale is None:
        return
    of_epsilon, of_barrier, of_kappa = scale_units(result)
    tension, plain = scale.tension, scale.tension.normalisation == "E"
    yield _interval(result, Fact("epsilon", "epsilon", "epsilon", scale.epsilon, of_epsilon, sd=scale.epsilon_sd))
    symbol = f"F({law.maximum:.4g})"
    top = float(result.potential(law.maximum))
    yield _interval(result, Fact("barrier", f"barrier {symbol}", symbol, top, of_barrier))
    yield _interval(result, Fact("kappa", "gradient coefficient kappa", "kappa", scale.kappa, of_kappa))
    kind = "E" if plain else "epsilon E"
    yield Fact("tension", f"surface tension of {kind}", "sigma", tension.value, tension.unit, sd=tension.sd, note=kind)
    integral = _interval(result, Fact("tension_integral", "C_H", "C_H", scale.tension_integral))
    yield integral
    if integral.interval is not None:  # epsilon is sigma/C_H or its root: relative errors add in squares
        relative = (integral.interval[1] - integral.interval[0]) / (_DEVIATES * scale.tension_integral)
        movie, spread = (1.0 if plain else 0.5) * relative * scale.epsilon, scale.epsilon_sd or 0.0
        total = hypot(movie, spread)
        yield Fact("epsilon_sd_movie", "sd of epsilon from the movie", "sd", movie, of_epsilon)
        fraction = (spread / total) ** 2 if total else 0.0
        yield Fact("tension_fraction", "fraction of the variance of epsilon from the surface tension", "", fraction)


def _wells(result: Result) -> Iterator[Fact]:
    """Yield where the wells and the barrier lie, how high it is, the curvatures, and the planar interface."""
    law, area, fit = result.law, per_area(result), result.diagnostics.likelihood
    (low, high), form = law.phases, "by the form of the law: assumed, not measured"
    if law.family.found:
        yield from _coexisting(result)
    else:
        yield Fact("low", "low phase", "u", low, note=form)
        yield Fact("high", "high phase", "u", high, note=form)
    top = Fact("maximum", "phase value of the barrier", "u", law.maximum)
    yield replace(top, note=form) if law.family.symmetric else _interval(result, top)
    (first, second), at = law.barriers, f"{law.maximum:.4g}"
    yield Fact("height", f"barrier H({at})", f"H({at})", law.barrier, area)
    yield Fact("height_low", f"barrier of H over u = {low:g}", "H", first, area)
    yield Fact("height_high", f"barrier of H over u = {high:g}", "H", second, area)
    if result.problem.law.wells == "unequal":
        yield _interval(result, Fact("tilt", f"H({high:g}) - H({low:g})", "H", law.tilt, area))
    for key, u, value in (("low", low, law.well_curvatures[0]), ("high", high, law.well_curvatures[1])):
        yield Fact(f"curvature_{key}", f"curvature H''({u:g})", f"H''({u:g})", value, area)
    yield Fact("curvature_barrier", f"curvature H''({at})", f"H''({at})", law.centre_curvature, area)
    if law.has_interface:
        unit = result.problem.records[0].length_unit
        yield _interval(result, Fact("width", width_name(law), "width", law.interface_width(), unit))
        if result.scale is None:
            yield _interval(result, Fact("tension_integral", "C_H", "C_H", law.tension_integral))
    if fit is not None:
        name = "probability of extra structure, from the data without the constraint"
        yield Fact("extra_structure", name, "P", fit.extra_structure)


def _coexisting(result: Result) -> Iterator[Fact]:
    """Yield the coexisting phases of a conserved field and its spinodal interval, with what is extrapolated."""
    law, survey = result.law, result.diagnostics.survey
    ends = {"low": ("low coexisting phase", law.phases[0]), "high": ("high coexisting phase", law.phases[1])}
    if not law.coexists:
        ends = {}
    ends |= {f"spinodal_{key}": (f"{key} end of the spinodal interval", u) for key, u in zip(("low", "high"), law.spinodal, strict=True)}
    for key, (name, u) in ends.items():
        if np.isfinite(u):
            seen = survey.low <= u <= survey.high
            note = "" if seen else "extrapolated: the record has no such values"
            yield _interval(result, Fact(key, name, "u", u, note=note))


def _record_numbers(result: Result) -> Iterator[Fact]:
    survey, fit = result.diagnostics.survey, result.diagnostics.likelihood
    note, error = "estimated" if result.q_estimated else "", result.diagnostics.q_error
    sd = None if error is None else error * result.q
    q = Fact("q", "diffusion coefficient q", "q", result.q, _q_unit(result), sd=sd, note=note)
    joint = result.posterior is not None and result.posterior.joint is not None
    yield _interval(result, q) if result.q_estimated and joint else q
    values = {} if result.posterior is None else result.posterior.joint_values(result.law)
    for key, value in values.items():
        if key != "q":
            unit = result.problem.records[0].length_unit if key == "blur" else None
            of = "pictures, in pixels" if key.startswith(("drift", "bend")) else "values"
            of = {"blur": "pictures, standard deviation", "response": "camera, an exponent"}.get(key, of)
            yield _interval(result, Fact(key, f"{key} of the {of}", key, value, unit, note="estimated"))
    yield Fact("noise", "noise of one pixel", "noise", survey.noise if fit is None else fit.noise)
    yield Fact("survey_noise", f"noise of one pixel ({survey.noise_method})", "noise", survey.noise)
    yield Fact("coverage", "fraction of the phase range visited", "", survey.coverage)
    if survey.cells is not None:
        yield Fact("cells", "interface width in cells", "", survey.cells)
    if survey.missing:
        yield Fact("missing", "fraction of the values that is missing", "", survey.missing)


def physical_facts(values: Physical) -> Iterator[Fact]:
    """Yield the numbers of a law in physical units."""
    for key, name, symbol, item in values.rows():
        ends = None if item.low is None or item.high is None else (item.low, item.high)
        yield Fact(f"physical_{key}", name, symbol, item.value, item.unit, ends, item.sd)


def _interval(result: Result, fact: Fact) -> Fact:
    """Add the 95 % interval to a fact, or why there is none."""
    if result.posterior is None:
        return fact
    key: Any = fact.key
    try:
        return replace(fact, interval=result.interval(key, level=LEVEL))
    except InputError as error:
        return replace(fact, why=str(error))


def band_size(result: Result) -> float:
    """Return the half-width of the 95 % band of the force relative to the force, both as root mean squares."""
    u = np.linspace(*result.law.phases, 401)
    low, high = result.band("force", u, level=LEVEL)
    return float(0.5 * np.linalg.norm(high - low) / np.linalg.norm(result.force(u)))


def _coefficients(result: Result) -> tuple[Coefficient, ...]:
    numbers, alone = result.diagnostics, result.posterior is not None and len(result.posterior.path) == 1
    spread = np.sqrt(np.diag(result.covariance)) if alone else None
    tiny = 1e-6 * float(np.max(np.abs(numbers.unconstrained)))  # a ridge lifts a coefficient off its bound
    return tuple(
        Coefficient(f"g_{j}", float(g), None if spread is None else float(spread[j]), float(free),
                    j in numbers.active and bool(g <= tiny))
        for j, (g, free) in enumerate(zip(result.coefficients, numbers.unconstrained, strict=True))
    )  # fmt: skip


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


def _q_unit(result: Result) -> str | None:
    """Return the unit of q, None unless both length and time are known."""
    record, order = result.problem.records[0], result.problem.dynamics.order
    if record.length_unit is None or record.time_unit is None:
        return None
    return unit_text(((record.length_unit, order), (record.time_unit, -1)))


def per_area(result: Result) -> str | None:
    """Return the unit of G and H, None where the length has none."""
    length = result.problem.records[0].length_unit
    return None if length is None else unit_text(((length, -2),))


# --- what they rest on, in sentences ----------------------------------------------------------------------------------


def _assumptions(result: Result) -> Iterator[str]:
    """Yield what a result assumes and does not measure."""
    problem, boundary, (low, high) = result.problem, result.resolved.boundary, result.law.phases
    given = "" if result.q_estimated else f" with the given q = {result.q:.6g}{after(_q_unit(result))}"
    yield f"the field obeys {problem.dynamics.equation}{given}"
    kinds = {"symmetric": ", and the wells are symmetric", "equal": ", and the wells are equally deep"}
    if not result.law.family.found:
        yield f"the wells lie at u = {low:g} and u = {high:g}{kinds.get(str(problem.law.wells), '')}"
    else:
        zero = "the coexisting phases" if result.law.coexists else "the middle of its values"
        yield f"a constant of the force has no effect on a conserved field: G is zero at {zero}, by choice"
    if result.contrast is None:
        yield "the values of the record are those of u, its contrast and offset exact"
    if problem.law.constraint != "none":
        yield f"class of laws: {_law_class(result)}"
    if result.posterior is not None:
        yield f"the noise is {result.resolved.noise}"
    if boundary in ("periodic", "neumann"):
        yield f"the border is {'periodic' if boundary == 'periodic' else 'closed (no flux)'}"
    if result.scale is not None:
        yield "the surface tension is that of a planar interface of this law"


def _record_lines(result: Result) -> Iterator[str]:
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
    pace = f"dx = {dx}, dt = {record.dt:.6g}{after(record.time_unit)}, q = {result.q:.6g}{after(_q_unit(result))}"
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


def _weak_lines(result: Result) -> Iterator[str]:
    numbers = result.diagnostics
    yield f"supports {_supports(result)}"
    yield (
        f"{numbers.rows} moments, residual {percent(numbers.residual)}, condition number "
        f"{numbers.scaled_condition:.3g} (columns scaled), optimality {numbers.kkt or 0.0:.1e}"
    )
    bound = _held(numbers.active, numbers.contacts)
    what = "at the bound: " if numbers.active else "the bracket touches zero at |u| = "
    ridge = "" if numbers.ridge is None else f"; ridge alpha = {numbers.ridge.alpha:g}"
    yield f"{_law_class(result)}{f', {what}{bound}' if bound else ''}{ridge}"
    if len(numbers.supports) > 1:
        yield f"a single support changes the force by up to {percent(numbers.support_spread)}"


def _likelihood_lines(result: Result) -> Iterator[str]:
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
    yield (
        f"resolution: half the time step would move the estimate by {fit.time_size:.2g} standard errors, a finer mesh "
        f"by {fit.mesh_size:.2g}"
    )
    line = _law_class(result)
    if result.problem.law.constraint != "none":
        line += f": chi2 rises by {max(fit.constraint_rise, 0.0):.1f}"
        line += f"; at the bound: {_held(numbers.active, ())} of degree {result.degree}" if numbers.active else ""
        line += f"; the bracket touches zero at |u| = {_held((), numbers.contacts)}" if numbers.contacts else ""
        if numbers.active or numbers.contacts:
            line += ", so the intervals show the spread of the constrained estimate"
    yield line
    if result.problem.method.ridge is not None:
        yield f"ridge alpha = {result.problem.method.ridge}; the intervals are those without it"


def _unit_lines(result: Result) -> Iterator[str]:
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
        try:
            physical(result)
        except InputError as error:
            yield str(error)


def _law_class(result: Result) -> str:
    """Return the class of laws that the estimate was held in."""
    constraint = result.problem.law.constraint
    if not result.law.family.symmetric and constraint != "none":
        return "two stable phases and one maximum between, exactly"
    return CONSTRAINTS[check_constraint(constraint)]


def _held(active: tuple[int, ...], contacts: tuple[float, ...]) -> str:
    """Return what a constraint holds: names of coefficients or the |u| of contacts, the same twice once."""
    return ", ".join(f"g_{j}" for j in active) or ", ".join(dict.fromkeys(f"{u:.3g}" for u in contacts))


def _supports(result: Result) -> str:
    """Return the supports of the weak test functions and the rule that chose them."""
    length = after(result.problem.records[0].length_unit)
    supports = ", ".join(f"({n} frames, {x:.4g}{length})" for n, x in result.resolved.supports)
    return ": ".join(filter(None, [supports, result.resolved.supports_rule]))
