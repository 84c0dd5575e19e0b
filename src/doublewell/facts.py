"""Facts: every number that a result is quoted with, once, with its symbol, unit and interval.

All renderers read this table, `findings` and `curves`, so that a barrier is the same in the text, the page, the JSON
and the LaTeX. Only these modules know how a result stores its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from math import hypot
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from doublewell.calibrate import SurfaceTension, why_no_scale
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law import Law, Structure
from doublewell.problem import Source
from doublewell.provenance import (
    assumptions,
    fit_lines,
    held,
    law_class,
    level_lines,
    per_area,
    q_unit,
    record_lines,
    supports_line,
    unit_lines,
)
from doublewell.result import Measured, Physical, Result, physical
from doublewell.units import has_pint, unit_text
from doublewell.wording import percent

T = TypeVar("T")
LEVEL = 0.95  # of all intervals and bands
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


@dataclass(frozen=True)
class Data:
    """What the movie is: its shape (t, (z, y,) x), mesh, times, units, boundary and file."""

    shape: tuple[int, ...]
    dx: tuple[float, ...]
    dt: float
    boundary: str | None
    length_unit: str | None
    time_unit: str | None
    checksum: str | None
    source: Source | None
    supports: str

    @property
    def title(self) -> str:
        """The name of the file, or what the movie is."""
        if self.source is not None:
            return self.source.path.replace("\\", "/").rstrip("/").rpartition("/")[2] or self.source.path
        return f"{self.shape[0]} frames of {' x '.join(str(n) for n in self.shape[1:])} pixels"


@dataclass(frozen=True, eq=False)
class Facts:
    """All facts of a result. ``numbers`` holds the quotable ones by key, in the order in which they are listed.

    ``motion`` is the equation of motion, ``equation`` that of the force, both as text.
    ``heaviest`` is the degree with the largest weight, its weight and its own equation, where degrees are averaged.
    ``banded`` tells whether there are error bands, ``tiled`` whether the record was read in tiles, ``initial`` whether
    the fitted initial field is known, ``imaged`` whether the picture is not the field itself (optics).
    ``verdict`` is that of the tests of the model: "adequate", "check", "not adequate" or "not tested".
    ``assumptions``, ``record``, ``fit``, ``units`` and ``levels`` tell in sentences what is assumed and not measured,
    what the movie is, how the fit went, which units hold, and what the errors of grey levels do.
    """

    version: str
    dynamics: str
    motion: str
    method: str
    degree_option: str
    law: Law
    symmetric: bool
    equation: str
    numbers: dict[str, Fact]
    coefficients: tuple[Coefficient, ...]
    correlations: Array | None
    degrees: tuple[DegreeFact, ...]
    heaviest: tuple[int, float, str] | None
    law_class: str
    held_heading: str
    banded: bool
    tiled: bool
    initial: bool
    imaged: bool
    verdict: str
    tension: SurfaceTension | None
    no_scale: str
    data: Data
    assumptions: tuple[str, ...]
    record: tuple[str, ...]
    fit: tuple[str, ...]
    units: tuple[str, ...]
    levels: tuple[str, ...]

    def __getitem__(self, key: str) -> Fact:
        return self.numbers[key]

    def get(self, key: str) -> Fact | None:
        """Return a fact, None where the result has none of this key."""
        return self.numbers.get(key)

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


METHODS = {
    "trajectory": "trajectory fit",
    "weak": "weak-form fit",
    "weak-corrected": "weak-form fit corrected for noise",
}


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
    asked, posterior, law, fit = result.settings, result.posterior, result.law, result.diagnostics.likelihood
    path = () if posterior is None else posterior.path
    averaged = len(path) > 1
    listed = [*_force(result), *_scale(result), *_wells(result), *_record_numbers(result), *_physical(result)]
    return Facts(
        version=asked.version,
        dynamics=result.problem.dynamics.name,
        motion=result.problem.dynamics.equation,
        method=asked.method,
        degree_option=str(asked.degree),
        law=law,
        symmetric=law.family.symmetric,
        equation=law.equation(),
        numbers={fact.key: fact for fact in listed},
        coefficients=_coefficients(result),
        correlations=None if averaged or posterior is None else _correlations(posterior.covariance),
        degrees=tuple(DegreeFact(f.degree, f.chi2, f.weight, held(f.active, f.contacts)) for f in path),
        heaviest=_heaviest(result) if averaged else None,
        law_class=law_class(result),
        held_heading="touches zero at |u|" if asked.constraint == "admissible" else "at the bound",
        banded=posterior is not None,
        tiled=fit is not None and fit.tiles is not None,
        initial=fit is not None and fit.initial is not None,
        imaged=asked.optics is not None,
        verdict="not tested" if result.adequacy is None else str(result.adequacy.verdict),
        tension=asked.tension if result.scale is None else result.scale.tension,
        no_scale="" if result.scale is not None else (result.refusal or why_no_scale()),
        data=_data(result),
        assumptions=tuple(assumptions(result)),
        record=tuple(record_lines(result)),
        fit=tuple(fit_lines(result)),
        units=tuple(unit_lines(result)),
        levels=tuple(level_lines(result)),
    )


def _force(result: Result) -> Iterator[Fact]:
    if result.posterior is not None:
        yield Fact("force_band", "95 % band of G, root mean square over that of G", "dG/G", band_size(result))


def _scale(result: Result) -> Iterator[Fact]:
    """Yield epsilon, kappa, the barrier of F and the surface tension; nothing without a scale."""
    law, scale = result.law, result.scale
    if scale is None:
        return
    of_epsilon, of_barrier, of_kappa = scale_units(result)
    power = 1.0 if scale.tension.normalisation == "E" else 0.5
    yield _interval(result, Fact("epsilon", "epsilon", "epsilon", scale.epsilon, of_epsilon, sd=scale.epsilon_sd))
    top = float(result.potential(law.maximum))
    symbol = f"F({law.maximum:.4g})"
    yield _interval(result, Fact("barrier", f"barrier {symbol}", symbol, top, of_barrier))
    yield _interval(result, Fact("kappa", "gradient coefficient kappa", "kappa", scale.kappa, of_kappa))
    kind = "E" if scale.tension.normalisation == "E" else "epsilon E"
    tension = scale.tension
    yield Fact("tension", f"surface tension of {kind}", "sigma", tension.value, tension.unit, sd=tension.sd, note=kind)
    integral = _interval(result, Fact("tension_integral", "C_H", "C_H", scale.tension_integral))
    yield integral
    if integral.interval is not None:  # epsilon is sigma/C_H or its root: relative errors add in squares
        movie = power * (integral.interval[1] - integral.interval[0]) / (_DEVIATES * scale.tension_integral)
        spread = scale.epsilon_sd or 0.0
        total = hypot(movie * scale.epsilon, spread)
        yield Fact("epsilon_sd_movie", "sd of epsilon from the movie", "sd", movie * scale.epsilon, of_epsilon)
        share = (spread / total) ** 2 if total else 0.0
        yield Fact("tension_share", "fraction of the variance of epsilon from the surface tension", "", share)


def _wells(result: Result) -> Iterator[Fact]:
    """Yield where the wells and the barrier lie, how high it is, the curvatures, and the planar interface."""
    law, area, length = result.law, per_area(result), result.settings.length_unit
    (low, high), form = law.phases, "by the form of the law: assumed, not measured"
    yield Fact("low", "low phase", "u", low, note=form)
    yield Fact("high", "high phase", "u", high, note=form)
    top = Fact("maximum", "phase value of the barrier", "u", law.maximum)
    yield replace(top, note=form) if law.family.symmetric else _interval(result, top)
    (first, second), at = law.barriers, f"{law.maximum:.4g}"
    yield Fact("height", f"barrier H({at})", f"H({at})", law.barrier, area)
    yield Fact("height_low", f"barrier of H over u = {low:g}", "H", first, area)
    yield Fact("height_high", f"barrier of H over u = {high:g}", "H", second, area)
    if result.settings.wells == "unequal":
        yield _interval(result, Fact("tilt", f"H({high:g}) - H({low:g})", "H", law.tilt, area))
    for key, u, value in (("low", low, law.well_curvatures[0]), ("high", high, law.well_curvatures[1])):
        yield Fact(f"curvature_{key}", f"curvature H''({u:g})", f"H''({u:g})", value, area)
    yield Fact("curvature_barrier", f"curvature H''({at})", f"H''({at})", law.centre_curvature, area)
    if law.has_interface:
        start, end = width_levels(law)
        name = f"planar interface from u = {start:.4g} to {end:.4g}"
        yield _interval(result, Fact("width", name, "width", law.interface_width(), length))
        if result.scale is None:
            yield _interval(result, Fact("tension_integral", "C_H", "C_H", law.tension_integral))
    fit = result.diagnostics.likelihood
    if fit is not None:
        name = "probability of extra structure, from the data without the constraint"
        yield Fact("extra_structure", name, "P", fit.extra_structure)


def _record_numbers(result: Result) -> Iterator[Fact]:
    asked, seen, fit = result.settings, result.diagnostics.survey, result.diagnostics.likelihood
    q = Fact(
        "q", "diffusion coefficient q", "q", asked.q, q_unit(result), note="estimated" if result.q_estimated else ""
    )
    estimated = result.q_estimated and result.posterior is not None and result.posterior.beside is not None
    yield _interval(result, q) if estimated else q
    yield Fact("noise", "noise of one pixel", "noise", seen.noise if fit is None else fit.noise)
    yield Fact("survey_noise", f"noise of one pixel ({seen.noise_method})", "noise", seen.noise)
    yield Fact("coverage", "fraction of the phase range visited", "", seen.coverage)
    if seen.cells is not None:
        yield Fact("cells", "interface width in cells", "", seen.cells)
    if seen.missing:
        yield Fact("missing", "fraction of the values that is missing", "", seen.missing)


def _physical(result: Result) -> Iterator[Fact]:
    """Yield the numbers in physical units where length, time and tension have one."""
    scale, asked = result.scale, result.settings
    if scale is None or None in (scale.tension.unit, asked.length_unit, asked.time_unit) or not has_pint():
        return
    yield from physical_facts(physical(result))


def physical_facts(found: Physical) -> Iterator[Fact]:
    """Yield the numbers of a law in physical units."""
    at = f"{found.result.law.maximum:.4g}"
    start, end = width_levels(found.result.law)
    symbol = found.result.problem.dynamics.mobility
    rows: list[tuple[str, str, str, Measured | None]] = [
        ("kappa", "gradient coefficient kappa", "kappa", found.kappa),
        ("mobility", f"mobility {symbol} = q/kappa", symbol, found.mobility),
        ("diffusion", "diffusion coefficient q", "q", found.diffusion),
        ("barrier", f"barrier f({at}) of f = kappa H", f"f({at})", found.barrier),
        ("width", f"planar interface from u = {start:.4g} to {end:.4g}", "width", found.width),
        ("epsilon", "epsilon of the paper", "epsilon", found.epsilon),
        ("paper_barrier", f"F({at}) of the paper", f"F({at})", found.paper_barrier),
    ]
    for key, name, symbol, item in rows:
        if item is not None:
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


def width_levels(law: Law) -> tuple[float, float]:
    """Return the phase values between which the width of an interface is measured: 90 % of the way from the middle.

    >>> width_levels(Law.bernstein([1.0]))
    (-0.9, 0.9)
    """
    middle, half = 0.5 * sum(law.phases), 0.5 * (law.phases[1] - law.phases[0])
    return middle - 0.9 * half, middle + 0.9 * half


def _coefficients(result: Result) -> tuple[Coefficient, ...]:
    numbers, alone = result.diagnostics, result.posterior is not None and len(result.posterior.path) == 1
    spread = np.sqrt(np.diag(result.covariance)) if alone else None
    tiny = 1e-6 * float(np.max(np.abs(numbers.unconstrained)))  # a ridge lifts a coefficient off its bound
    return tuple(
        Coefficient(f"g_{j}", float(g), None if spread is None else float(spread[j]), float(free),
                    j in numbers.active and bool(g <= tiny))
        for j, (g, free) in enumerate(zip(result.coefficients, numbers.unconstrained, strict=True))
    )  # fmt: skip


def _correlations(covariance: Array) -> Array:
    size = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(size, size))


def _heaviest(result: Result) -> tuple[int, float, str]:
    """Return the degree with the largest weight, its weight and its equation."""
    assert result.posterior is not None
    best = max(result.posterior.path, key=lambda fit: fit.weight)
    return best.degree, best.weight, Law(result.posterior.family.at(best.degree), best.coefficients).equation()


def _data(result: Result) -> Data:
    asked = result.settings
    return Data(
        asked.shape, asked.dx, asked.dt, asked.boundary, asked.length_unit, asked.time_unit, asked.checksum,
        asked.source, supports_line(result),
    )  # fmt: skip


def scale_units(result: Result) -> tuple[str | None, str | None, str | None]:
    """Return the units of epsilon, F and kappa as they follow from those given; None where one is missing."""
    length, scale = result.settings.length_unit, result.scale
    if length is None or scale is None or scale.tension.unit is None:
        return None, None, None
    unit = scale.tension.unit
    kappa = unit_text(((unit, 1), (length, 1)))
    if scale.tension.normalisation == "E":
        return kappa, unit_text(((unit, 2),)), kappa
    return unit_text(((unit, 0.5), (length, 0.5))), unit_text(((unit, 1), (length, -1))), kappa
