"""Facts: every number that a result is quoted with, once, with its symbol, unit and interval, and what it rests on.

All renderers read this table, `findings` and `curves`, so that a barrier is the same in the text, the page, the JSON
and the LaTeX. Only these modules know how a result stores its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import wraps
from math import hypot, prod
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from doublewell.calibrate import SurfaceTension, Temperature, thermal_scale, why_no_scale
from doublewell.dynamics import Anisotropy
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.inference import Quantity
from doublewell.law import Law, Structure
from doublewell.physical import Physical, physical, width_name
from doublewell.problem import Problem, RecordInfo
from doublewell.result import Result
from doublewell.statements import (
    assumptions,
    held,
    law_class,
    likelihood_lines,
    per_area,
    q_unit,
    record_lines,
    scale_units,
    supports,
    unit_lines,
    weak_lines,
)
from doublewell.units import after, has_pint, percent, unit_text

T = TypeVar("T")
LEVEL = 0.95  # of all intervals and bands
METHODS = {
    "trajectory": "trajectory fit",
    "weak": "weak-form fit",
    "weak-corrected": "weak-form fit corrected for noise",
}
THERMAL = ("theta", "thermal_tension", "capillary", "pixel")  # facts of a movie that was read with thermal noise
DEVIATES = 3.92  # a 95 % interval in standard deviations of a normal distribution


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

    Where physical units are known, those in them come first.
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
    def curve(self) -> str:
        """What the movie determines, the force or of one phase only q G'."""
        return "q G'" if self.law.one_phase else "G"

    @property
    def motion(self) -> str:
        """The equation of motion as text."""
        return self.problem.dynamics.equation

    @property
    def method(self) -> str:
        """The fit that the law is of: that which was asked for, or the one before it where the time was over."""
        asked = self.problem.method
        return asked.name if self.banded else asked.start.name

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
        return f"law {kind} by the {METHODS[self.method]}"

    @property
    def held_heading(self) -> str:
        """What the column of a table of degrees lists."""
        touches = self.problem.law.constraint == "admissible" and not self.law.family.found
        return "touches zero at |u|" if touches else "at the bound"

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
    listed = [*_scale(result), *_thermal(result), *_wells(result), *_record_numbers(result)]
    if posterior is not None:
        of = "q G'" if law.one_phase else "G"
        name = f"95 % band of {of}, root mean square over that of {of}"
        listed.insert(0, Fact("force_band", name, "dG/G", band_size(result)))
    given = problem.tension if isinstance(problem.tension, SurfaceTension) else None
    units = (result.scale and result.scale.tension.unit, problem.records[0].length_unit, problem.records[0].time_unit)
    if None not in units and has_pint():  # quoted first
        listed[:0] = physical_facts(physical(result))
    return Facts(
        version=result.version,
        problem=problem,
        data=replace(problem.records[0], boundary=result.resolved.boundary),
        law=law,
        numbers={fact.key: fact for fact in listed},
        coefficients=_coefficients(result),
        correlations=correlations,
        degrees=tuple(DegreeFact(f.degree, f.chi2, f.weight, held(f.active, f.contacts)) for f in path),
        heaviest=heaviest,
        law_class=law_class(result),
        banded=posterior is not None,
        tiled=fit is not None and fit.tiles is not None,
        initial=fit is not None and fit.initial is not None,
        verdict="not tested" if result.adequacy is None else str(result.adequacy.verdict),
        tension=given if result.scale is None else result.scale.tension,
        no_scale="" if result.scale is not None else (result.refusal or why_no_scale(problem.dynamics.parts.thermal)),
        supports=supports(result),
        assumptions=tuple(assumptions(result)),
        record=(*record_lines(result), *map(_line, _parts(result))),
        fit=tuple(weak_lines(result) if fit is None else likelihood_lines(result)),
        units=tuple(unit_lines(result)),
    )


# --- numbers ----------------------------------------------------------------------------------------------------------


def _scale(result: Result) -> Iterator[Fact]:
    """Yield epsilon, kappa, the barrier of F and the surface tension; nothing without a scale."""
    law, scale = result.law, result.scale
    if scale is None:
        return
    of_epsilon, of_barrier, of_kappa = scale_units(result)
    tension, plain, measured = scale.tension, scale.tension.normalisation == "E", not result.problem.scale_from
    known = (scale.epsilon_sd, tension.sd) if measured else (None, None)
    yield _interval(result, Fact("epsilon", "epsilon", "epsilon", scale.epsilon, of_epsilon, sd=known[0]))
    symbol = f"F({law.maximum:.4g})"
    top = float(result.potential(law.maximum))
    yield _interval(result, Fact("barrier", f"barrier {symbol}", symbol, top, of_barrier))
    yield _interval(result, Fact("kappa", "gradient coefficient kappa", "kappa", scale.kappa, of_kappa))
    kind = "E" if plain else "epsilon E"
    name = "surface tension of the pixel scale, kappa C_H" if scale.thermal else f"surface tension of {kind}"
    sigma = Fact("tension", name, "sigma", tension.value, tension.unit, sd=known[1], note=kind)
    yield sigma if measured else _interval(result, sigma)
    integral = _interval(result, Fact("tension_integral", "C_H", "C_H", scale.tension_integral))
    yield integral
    if integral.interval is not None and measured:  # epsilon is sigma/C_H or its root: relative errors add in squares
        relative = (integral.interval[1] - integral.interval[0]) / (DEVIATES * scale.tension_integral)
        movie, spread = (1.0 if plain else 0.5) * relative * scale.epsilon, scale.epsilon_sd or 0.0
        total = hypot(movie, spread)
        yield Fact("epsilon_sd_movie", "sd of epsilon from the movie", "sd", movie, of_epsilon)
        fraction = (spread / total) ** 2 if total else 0.0
        yield Fact("tension_fraction", "fraction of the variance of epsilon from the surface tension", "", fraction)


def _thermal(result: Result) -> Iterator[Fact]:
    """Yield theta, the tensions of thermal noise and of capillary waves, and the pixel size that the law belongs to."""
    record, theta, waves = result.problem.records[0], result.resolved.theta, result.diagnostics.capillary
    if theta is None:
        return
    axes, length, given = len(record.dx), record.length_unit, result.problem.temperature
    unit = None if length is None or axes == 2 else unit_text(((length, axes - 2),))
    yield _interval(result, Fact("theta", "strength of thermal noise, theta = kT / kappa", "theta", theta, unit))
    warm = given or Temperature(1.0)
    kt, unit = warm.energy(axes, length)
    if given is None:
        unit = "kT" if length is None else unit_text((("kT", 1), (length, 1 - axes)))
    if (result.scale is None or result.scale.thermal is None) and result._unmeasured is None:
        scale = thermal_scale(result.law, warm, theta, axes, length)
        fact = Fact("tension", "surface tension of the pixel scale, kT C_H / theta", "sigma", scale.tension.value, unit)
        yield replace(_interval(replace(result, scale=scale), fact), key="thermal_tension")
    if waves is not None:
        value, *ends = (kt * each for each in waves)
        spread = 0.5 * DEVIATES * value * (warm.sd or 0.0) / warm.value
        low, high = value - hypot(value - ends[0], spread), value + hypot(ends[1] - value, spread)
        yield Fact("capillary", "surface tension of long capillary waves", "sigma", value, unit, (low, high))
    yield Fact("pixel", "pixel size that the law belongs to", "dx", prod(record.dx) ** (1.0 / axes), length)


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
    """Yield the coexisting phases of a conserved field and its spinodal interval, with what is extrapolated.

    Of one phase it is q G' in the middle of the values.
    """
    law, survey = result.law, result.diagnostics.survey
    if law.one_phase:
        u = 0.5 * (survey.low + survey.high)
        name = f"q G' at u = {u:.4g}" + (", the diffusion coefficient" if result.dynamics.order == 4 else "")
        fact = Fact("diffusion", name, "q G'", float(result.diffusion(u)), q_unit(result, slope=1))
        yield fact if result.posterior is None else _of_band(result, fact, "diffusion", u)
    kind = "coexisting phase" if law.coexists else "end of the values that the law is given for"
    pairs = {"": (law.phases, f"{{}} {kind}"), "spinodal_": (law.spinodal, "{} end of the spinodal interval")}
    for prefix, (pair, name) in pairs.items():
        for key, u in zip(("low", "high"), pair, strict=True):
            if np.isfinite(u):
                note = "" if survey.low <= u <= survey.high else "extrapolated: the record has no such values"
                yield _interval(result, Fact(f"{prefix}{key}", name.format(key), "u", u, note=note))
    if law.family.mixing:
        chi = float(law.family.interaction(law.coefficients)[0])
        yield _interval(result, Fact("chi", "interaction chi = -4 b_2 / a", "chi", chi))


def _record_numbers(result: Result) -> Iterator[Fact]:
    survey, fit = result.diagnostics.survey, result.diagnostics.likelihood
    note, error = "estimated" if result.q_estimated else "", result.diagnostics.q_error
    sd = None if error is None else error * result.q
    name = "diffusion coefficient q" if result.dynamics.order == 2 else f"q = {result.dynamics.symbol} kappa"
    q = Fact("q", name, "q", result.q, q_unit(result), sd=sd, note=note)
    joint = result.posterior is not None and result.posterior.joint is not None
    yield _interval(result, q) if result.q_estimated and joint else q
    values = {} if result.posterior is None else result.posterior.joint_values(result.law)
    yield from _parts(result)
    for key, value in values.items():
        if key not in ("q", "theta") and not key.startswith(("anisotropy ", "flux ", "mobility ")):
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


def _parts(result: Result) -> Iterator[Fact]:
    """Yield anisotropies, and how a mobility varies; with intervals where they were estimated."""
    parts, asked, (low, high) = result.dynamics.parts, result.problem.dynamics.parts, result.law.phases
    for prefix, part, of in (("", parts.anisotropy, "gradient energy"), ("flux ", parts.flux, "mobility")):
        if isinstance(part, Anisotropy):
            known = isinstance(asked.flux if prefix else asked.anisotropy, Anisotropy)
            numbers = [Fact(f"{prefix}ratio", f"anisotropy of the {of}, largest over smallest", "ratio", part.ratio)]
            if len(part.tensor) == 2:
                name = f"direction of the largest {of}, degrees from x towards y"
                numbers.append(Fact(f"{prefix}angle", name, "angle", part.angle))
            yield from (replace(fact, note="given") if known else _interval(result, fact) for fact in numbers)
            if result.scale is not None and not prefix:
                roots, tension = np.sqrt(np.linalg.eigvalsh(part.tensor)), result.scale.tension
                for key, word, root in (("least", "smallest", roots[0]), ("most", "largest", roots[-1])):
                    name = f"surface tension of the interface where it is {word}"
                    yield Fact(f"tension_{key}", name, "sigma", tension.value * float(root), tension.unit)
    if parts.rate is not None:
        for key, u in (("rate_low", low), ("rate_high", high)):
            fact = Fact(key, f"mobility q({u:g})", f"q({u:g})", float(result.mobility(u)), q_unit(result))
            estimated = asked.degree and result.posterior is not None
            yield _of_band(result, fact, "mobility", u) if estimated else fact


def _line(fact: Fact) -> str:
    """Return a fact as a line of the report."""
    ends = "" if fact.interval is None else " (95 %: {:.4g} to {:.4g})".format(*fact.interval)
    return f"{fact.name}: {fact.value:.4g}{after(fact.unit)}{ends or (f' ({fact.note})' if fact.note else '')}"


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


def _of_band(result: Result, fact: Fact, quantity: Quantity, u: float) -> Fact:
    """Add the 95 % interval of a curve at u to a fact."""
    low, high = result.band(quantity, u, level=LEVEL)
    return replace(fact, interval=(float(low), float(high)))


def band_size(result: Result) -> float:
    """Return the half-width of the 95 % band of the force relative to the force, both as root mean squares.

    Of one phase it is that of q G' at the values of the record.
    """
    law, survey = result.law, result.diagnostics.survey
    u = np.linspace(*((survey.low, survey.high) if law.one_phase else law.phases), 401)
    low, high = result.band("diffusion" if law.one_phase else "force", u, level=LEVEL)
    curve = result.diffusion(u) if law.one_phase else result.force(u)
    return float(0.5 * np.linalg.norm(high - low) / np.linalg.norm(curve))


def _coefficients(result: Result) -> tuple[Coefficient, ...]:
    numbers, alone = result.diagnostics, result.posterior is not None and len(result.posterior.path) == 1
    spread = np.sqrt(np.diag(result.covariance)) if alone else None
    tiny = 1e-6 * float(np.max(np.abs(numbers.unconstrained)))  # a ridge lifts a coefficient off its bound
    return tuple(
        Coefficient(f"g_{j}", float(g), None if spread is None else float(spread[j]), float(free),
                    j in numbers.active and bool(g <= tiny))
        for j, (g, free) in enumerate(zip(result.coefficients, numbers.unconstrained, strict=True))
    )  # fmt: skip
