"""Content: what every exported text is made of: the law as a polynomial and as expressions, the numbers, the notes.

With s = (u - middle)/half and w = 1 - s^2, symmetric wells are written in powers of w,

    G = -half s w (a_0 + a_1 w + ...),    H = half^2 w^2 (b_0 + b_1 w + ...),    b_i = a_i / (2 (i + 2)),

and asymmetric ones in powers of t = (u - low)/(high - low),

    G = -4 half t (1 - t) (a_0 + a_1 t + ...),   H = half^2 t^2 (b_0 + b_1 t + ...),   b_i = -8 (a_i - a_(i-1))/(i + 2).

Both vanish at the low phase without cancellation. A law with the entropy of ideal mixing has logarithms besides
(Form). Beyond the phases G continues linearly with its slope there. The powers of a law whose coexisting phases
are found hold as far as the record has values, and the line begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import atanh, comb
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import numpy as np

from doublewell.curves import Curves, curves
from doublewell.dynamics import Dynamics, Grid, fastest_rate, steps_per_frame
from doublewell.errors import InputError, option
from doublewell.facts import METHODS, Facts, facts
from doublewell.findings import findings
from doublewell.hints import Array
from doublewell.law import Law
from doublewell.law.structure import powers_of_s
from doublewell.record_findings import Finding, Severity
from doublewell.result import Result
from doublewell.units import after, energy_power, factor, has_pint, percent, unit_text

_WIDTH = 100
_CELLS = 4.0  # half-width of a first drop, in cells, where the law has no interface of its own
_SAMPLES = 16  # of a driving force in a frame interval; programs take straight lines between them
_STEP = 0.1  # largest growth of a disturbance in one step: q |G'| dt, q G'^2 dt / 4 where the equation has fourth order
SEEN = 1e-6  # of log m: smaller terms are not written in text
_LOST = 1e-9  # of the largest force: more than this must not be lost by writing a law in powers
_FLOWS = {"allen-cahn": "-L dE/du", "cahn-hilliard": "M Laplacian dE/du", "mass-conserving": "-L (dE/du - its mean)"}


class Notation(NamedTuple):
    """How a language writes powers, products, quotients and numbers."""

    power: str
    times: str
    over: str
    number: Callable[[float], str]
    log: str


PYTHON = Notation("**", " * ", " / ", repr, "np.log")
SYMPY = PYTHON._replace(log="sympy.log")
MOOSE = Notation("^", "*", "/", repr, "log")
WORDS = Notation("^", " ", " / ", "{:g}".format, "ln")


class End(NamedTuple):
    """One end of the values where a polynomial holds: where it is, and H, G and G' there."""

    u: float
    height: float
    force: float
    slope: float


@dataclass(frozen=True, eq=False)
class Form:
    """A law as it is written: ``force`` and ``primitive`` are powers of ``variable``, where they hold ``reach``.

    Symmetric wells have powers of "w" and asymmetric ones of "t", a and b above. A law with the entropy of ideal mixing
    has powers of "v" besides logarithms, where v is -1 and +1 at the pure components, 2 half apart:

    G = a_1 ln((1 + v)/2) - a_2 ln((1 - v)/2) + force[0] + force[1] v + ...
    H = half (a_1 (1 + v) ln((1 + v)/2) + a_2 (1 - v) ln((1 - v)/2) + primitive[0] + primitive[1] v + ...)

    They hold between the phases; a conserved field overshoots these, up to the record's values, and logarithms end
    before the pure components.
    """

    law: Law
    variable: str
    force: tuple[float, ...]
    primitive: tuple[float, ...]
    reach: tuple[float, float]

    @cached_property
    def ends(self) -> tuple[End, ...]:
        """Both ends of the reach, from which G continues linearly; G is zero where they are the phases."""
        law = self.law
        phases = map(End, law.phases, (0.0, law.tilt), (0.0, 0.0), law.well_curvatures)
        return tuple(
            end if end.u == u else End(u, *(float(curve(u)) for curve in (law.primitive, law.force, law.slope)))
            for u, end in zip(self.reach, phases, strict=True)
        )

    def names(self, u: str, notation: Notation) -> dict[str, str]:
        """Return the names that an expression of u is written with, and what each stands for."""
        law, (low, high) = self.law, self.law.phases
        if self.variable == "t":
            return {"t": moved(u, low, high - low, notation)}
        if self.variable == "v":
            low, high = law.family.entropy(law.coefficients).pure
            return {"v": moved(u, 0.5 * (low + high), 0.5 * (high - low), notation)}
        s = u if (low, high) == (-1.0, 1.0) else "s"
        place = {} if s == u else {"s": moved(u, law.middle, law.half, notation)}
        return place | {"w": f"1 - {s}{notation.power}2"}

    def code(
        self, kind: Literal["force", "primitive"], u: str, notation: Notation, *, variable: str = "", powers: str = ""
    ) -> str:
        """Return G or H in the reach; `variable` and `powers` stand for that of the law and its polynomial."""
        half, v, (power, times, _, number, log) = self.law.half, variable or self.variable, notation
        powers = powers or horner(self.force if kind == "force" else self.primitive, v)
        if self.variable == "v":
            (first, second), _, (low, high), _ = self.law.family.entropy(self.law.coefficients)
            rise, fall = (
                f"{number(a)}{times}{part + times if kind == 'primitive' else ''}{log}({part}/2)"
                for a, part in ((first, f"(1 + {v})"), (second, f"(1 - {v})"))
            )
            if kind == "force":
                return f"{rise} - {fall} + {powers}"
            return f"{number(0.5 * (high - low))}{times}({rise} + {fall} + {powers})"
        if kind == "primitive":
            head = "" if half == 1.0 else f"{number(half)}{power}2{times}"
            return f"{head}{v}{power}2{times}({powers})"
        if self.variable == "t":
            return f"-{number(4.0 * half)}{times}{v}{times}(1 - {v}){times}({powers})"
        plain = "s" not in self.names(u, notation)
        return f"-{u if plain else f'{number(half)}{times}s'}{times}{v}{times}({powers})"


def moved(u: str, by: float, over: float, notation: Notation) -> str:
    """Return (u - by)/over.

    >>> moved("u", -1.0, 2.0, PYTHON), moved("u", 0.0, 1.0, PYTHON)
    ('(u + 1.0) / 2.0', 'u')
    """
    top = u if by == 0.0 else f"({u} {'-' if by > 0 else '+'} {notation.number(abs(by))})"
    return top if over == 1.0 else f"{top}{notation.over}{notation.number(over)}"


def logarithms_of(law: Law) -> Form:
    """Return a law with the entropy of ideal mixing; H is zero at the low phase."""
    (first, second), powers, (low, high), reach = law.family.entropy(law.coefficients)
    whole = np.polynomial.Polynomial(powers).integ() + np.polynomial.Polynomial([0.0, second - first])
    v = (2.0 * law.phases[0] - low - high) / (high - low)
    logs = first * (1.0 + v) * np.log(0.5 * (1.0 + v)) + second * (1.0 - v) * np.log(0.5 * (1.0 - v))
    return Form(law, "v", powers, tuple((whole - float(logs + whole(v))).coef.tolist()), reach)


def polynomial_of(law: Law) -> Form:
    """Return a law in powers, converted exactly and then rounded to floats; refused where its powers cancel.

    >>> polynomial_of(Law.bernstein([0.75, 1.5])).force
    (1.5, -0.75)
    """
    exact = list(law.family.exact_factor(law.coefficients))  # r in powers of t
    while len(exact) > 1 and exact[-1] == 0:
        exact.pop()
    if law.family.symmetric:
        exact = _powers_of_w(exact)
        primitive = [a / (2 * (i + 2)) for i, a in enumerate(exact)]
    else:
        steps = zip([*exact, Fraction(0)], [Fraction(0), *exact], strict=True)
        primitive = [-8 * (a - b) / (i + 2) for i, (a, b) in enumerate(steps)]
    family, (low, high), kind = law.family, law.phases, "w" if law.family.symmetric else "t"
    seen = family.inner * family.half if family.found else 0.0
    reach = min(low, family.middle - seen), max(high, family.middle + seen)
    made = Form(law, kind, tuple(map(float, exact)), tuple(map(float, primitive)), reach)
    u = np.linspace(*made.reach, 401)
    force = law.force(u)
    size = float(np.max(np.abs(force)))
    if size > 0.0 and float(np.max(np.abs(evaluate(made, u) - force))) > _LOST * size:
        raise InputError(
            f"a law of degree {len(made.force) - 1} in {kind} cannot be written in powers without losing digits: "
            "identify it with a degree of at most 8"
        )
    return made


def _powers_of_w(factor: list[Fraction]) -> list[Fraction]:
    """Return p(s^2) = r(s)/s in powers of w = 1 - s^2, from r in powers of t = (1 + s)/2."""
    bracket = powers_of_s(factor)[1::2] or [Fraction(0)]
    exact = [Fraction(0)] * len(bracket)
    for k, c in enumerate(bracket):  # s^(2k) = (1 - w)^k
        for i in range(k + 1):
            exact[i] += c * comb(k, i) * (-1) ** i
    return exact


def horner(powers: tuple[float, ...], name: str = "w") -> str:
    """Return a polynomial as code, floats with all their digits.

    >>> horner((1.5, -0.75, 2.0))
    '1.5 + w*(-0.75 + w*2.0)'
    """
    text = repr(powers[-1])
    for a in powers[-2::-1]:
        text = f"{a!r} + {name}*{text if text.replace('.', '').isdigit() else f'({text})'}"
    return text


def evaluate(written: Form, u: Array) -> Array:
    """Return the force of a law in powers, in their reach."""
    law = written.law
    s = (u - law.middle) / law.half
    w, t = (1.0 - s) * (1.0 + s), 0.5 * (1.0 + s)
    even = written.variable == "w"
    powers = np.polynomial.polynomial.polyval(w if even else t, written.force)
    return np.asarray(-law.half * (s if even else 1.0) * w * powers)


@dataclass(frozen=True, eq=False)
class Content:
    """The facts, findings and curves of a result, its law as an expression, and the numbers of the energy.

    ``dynamics`` is the equation with what was estimated of it. The energy is the integral of kappa/2 |grad u|^2 + f(u)
    (|grad u|^2 stands for ``gradient``) with f = kappa H, and ``mobility`` is q / kappa, of
    u_t = -mobility dE/du in the Allen-Cahn equation. ``scaled`` tells whether a surface tension fixed kappa, or whether
    it is 1 by choice; without it ``epsilon`` is None. ``steepest`` is the largest |G'|, which limits a step;
    ``profile`` the length l of the profile tanh(x / l) whose width is that of the law's interface.
    """

    facts: Facts
    dynamics: Dynamics
    findings: tuple[Finding, ...]
    curves: Curves
    law: Law
    form: Form
    q: float
    scaled: bool
    kappa: float
    mobility: float
    epsilon: float | None
    steepest: float
    profile: float

    @property
    def unit(self) -> bool:
        """Whether the phases are -1 and +1."""
        return self.law.phases == (-1.0, 1.0)

    @property
    def phases(self) -> tuple[str, str]:
        """The phases as texts name them."""
        return ("-1", "+1") if self.unit else (f"{self.law.phases[0]:g}", f"{self.law.phases[1]:g}")

    @property
    def wells(self) -> str:
        """What the phases are: assumed to be pure ones, or found to coexist."""
        return "coexisting phases" if self.law.family.found else "pure phases"

    @property
    def gradient(self) -> str:
        """What kappa/2 multiplies in the energy."""
        return "grad u . A grad u" if "A" in self.dynamics.parts.tensors else "|grad u|^2"

    @cached_property
    def driving(self) -> tuple[Array, Array] | None:
        """Times since the first frame and the driving force at these; None where there is none."""
        data = self.facts.data
        times = np.linspace(0.0, data.dt * (data.shape[0] - 1), _SAMPLES * (data.shape[0] - 1) + 1)
        driven = self.dynamics.parts.driven(times + (data.times[0] if data.times else 0.0))
        return None if driven is None else (times, driven[0])

    @property
    def steps(self) -> int:
        """Steps of second order from frame to frame that resolve the law, and where there is one the driving force."""
        data = self.facts.data
        waves = Grid(data.shape[1:], data.dx, "periodic" if data.boundary == "periodic" else "neumann").waves
        steps = steps_per_frame(self.q * fastest_rate(self.dynamics, waves, self.steepest), data.dt, _STEP)
        return steps if self.driving is None else max(steps, _SAMPLES)

    def on_phases(self, times: str) -> str:
        """Return what brings a number from -1 to +1 to the phases of the law."""
        return "" if self.unit else f"{self.law.middle!r} + {self.law.half!r}{times}"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about units, meaning and errors, for the head of a text."""
        return (*_meaning(self), *_energy(self), *_trust(self))

    def comment(self, mark: str) -> str:
        """Return the notes as lines that begin with a mark of comment."""
        lines = [line for note in self.notes for line in wrap(note, _WIDTH, subsequent_indent="  ")]
        return "\n".join(f"{mark} {line}" for line in lines)


def content_of(result: Result) -> Content:
    """Return what the texts need; refused where the law is zero everywhere, or has no phases to be written between."""
    table = facts(result)
    law, width, epsilon, kappa = table.law, table.get("width"), table.get("epsilon"), table.get("kappa")
    if not np.any(law.coefficients):
        raise InputError("the force of this result is zero everywhere: there is no law to export")
    if law.family.found and not law.coexists:
        raise InputError(
            f"the law of this result has no coexisting phases ({law.structure}): expected two, between which a law is "
            f"written; use a record whose values come closer to both phases, or another {option('degree')}"
        )
    form = logarithms_of(law) if law.family.mixing else polynomial_of(law)
    q, size = table["q"].value, 1.0 if kappa is None else kappa.value
    u, ends = np.linspace(*form.reach, 801), [end.slope for end in form.ends]
    slopes = [*np.diff(law.force(u)) / np.diff(u), *law.well_curvatures, *ends, np.nan_to_num(law.centre_curvature)]
    return Content(
        facts=table,
        dynamics=result.dynamics,
        findings=tuple(findings(result, table=table)),
        curves=curves(result),
        law=law,
        form=form,
        q=q,
        scaled=kappa is not None,
        kappa=size,
        mobility=q / size,
        epsilon=None if epsilon is None else epsilon.value,
        steepest=float(np.max(np.abs(slopes))),
        profile=_CELLS * max(table.data.dx) if width is None else width.value / (2.0 * atanh(0.9)),
    )


def template(content: Content, templates: dict[str, Any], format: str) -> Any:
    """Return what a format writes for the dynamics of a result; refused where it has nothing for them."""
    name = content.dynamics.name
    if name not in templates:
        raise InputError(
            f"no {format} text can be written for the dynamics {name!r}: expected one of {', '.join(templates)}; use "
            "the format json, latex, sympy or python"
        )
    return templates[name]


def _meaning(content: Content) -> Iterator[str]:
    table, data, form, (low, high) = content.facts, content.facts.data, content.form, content.phases
    degree = f"degree {table.law.family.degree}{' in u^2' if content.law.family.symmetric else ''}"
    yield f"Law identified by doublewell {table.version}, {METHODS[table.method]}, {degree}."
    yield f"Model: {table.motion}, {content.wells} at u = {low} and u = {high}. {table.equation}"
    length, time = data.length_unit or "the unit of the record's dx", data.time_unit or "the unit of its dt"
    order = content.dynamics.order
    yield f"Units: lengths in {length}, times in {time}; q is length^{order}/time, G and H are 1/length^2."
    yield from _parts(content)
    force = form.code("force", "u", WORDS, powers=f"a_0 + a_1 {form.variable} + ...")
    where = " and ".join(f"{name} = {text}" for name, text in reversed(form.names("u", WORDS).items()))
    place, ends = "between the pure phases", "them"
    if content.law.family.found:
        place = "for u from {:g} to {:g}, over the values of the record and both phases".format(*form.reach)
        ends = "these"
    yield (
        f"G(u) = {force} with {where} {place}; beyond {ends} G continues linearly with its slope there. "
        f"H is the integral of G from {low} to u."
    )
    if content.dynamics.gauge == "constant":
        yield "A constant added to G has no effect on this motion: G is zero at both phases by choice."
    if data.boundary in (None, "open"):
        yield "Nothing is known of the record's border: a closed one (no flux) is used here."


def _parts(content: Content) -> Iterator[str]:
    parts, axes = content.dynamics.parts, "(z, y, x)" if len(content.facts.data.dx) == 3 else "(y, x)"
    for name, tensor in parts.tensors.items():
        rows = ", ".join("({})".format(", ".join(f"{entry:.6g}" for entry in row)) for row in tensor)
        of = "gradient energy" if name == "A" else "mobility"
        yield f"{name}, the tensor of the {of}, has the rows {rows} along {axes}."
    if parts.rate is not None:
        powers = ["", " s", *[f" s^{k}" for k in range(2, len(parts.rate.powers))]]
        terms = [f"{a:.6g}{power}" for a, power in zip(parts.rate.powers, powers, strict=False) if abs(a) > SEEN]
        place, series = moved("u", *parts.rate.centre, WORDS), (" + ".join(terms) or "0").replace("+ -", "- ")
        yield (
            f"q(u) = q m(u) with log m = {series}, s = {place}; q is the mean of q(u) between the phases. "
            "m is constant for u below {:g} and above {:g}.".format(*parts.rate.reach)
        )
    if content.driving is not None:
        yield f"h(t) is a known force in units of G, from t = 0 at the first frame to {content.driving[0][-1]:g}."


def _energy(content: Content) -> Iterator[str]:
    name, flow = content.dynamics.symbol, _FLOWS.get(content.dynamics.name)
    motion = "" if flow is None or content.dynamics.parts.varied else f" and u_t = {flow} with {name} = q/kappa,"
    yield (
        f"Energy: integral of kappa/2 {content.gradient} + f(u) with f = kappa H,{motion} so that q = {name} kappa and "
        "G = f'/kappa."
    )
    if not content.scaled:
        yield (
            "No surface tension fixed the scale of the energy: kappa = 1 is a choice. Every other kappa > 0 gives the "
            "same movie."
        )
        return
    table = content.facts
    tension, epsilon, barrier, length = table["tension"], table["epsilon"], table["barrier"], table.data.length_unit
    spread = "" if tension.sd is None else f" +- {tension.sd:.2g}"
    sigma = f"{tension.value:.6g}{spread}{after(tension.unit)} (of {tension.note})"
    ends = "" if epsilon.interval is None else " (95 %: {:.4g} to {:.4g})".format(*epsilon.interval)
    origin = f"the surface tension {sigma}"
    if source := table.problem.scale_from:
        way = "kappa = kT / theta" if source == "thermal noise" else "through the entropy of ideal mixing"
        origin = f"{source}, {way} (surface tension {sigma}),"
    yield (
        f"kappa = {content.kappa:.6g} comes from {origin} and "
        f"C_H = {table['tension_integral'].value:.6g}; epsilon of the paper is {epsilon.value:.6g}{ends}, "
        f"F = epsilon^2 H, barrier {barrier.symbol} = {barrier.value:.6g}."
    )
    if tension.unit is not None and length is not None and has_pint():  # which energy makes tension and lengths fit
        parts = ((tension.unit, 1), (length, energy_power(tension.unit, "the surface tension") or 0))
        yield (
            f"The unit of energy here is {unit_text(parts)} = {factor(parts, (('J', 1),)):.6g} J: kappa, f and {name} "
            f"are numbers in this unit, in {length} and in the unit of time."
        )


def _trust(content: Content) -> Iterator[str]:
    table = content.facts
    if (band := table.get("force_band")) is None:
        yield "The weak-form fit gives no error band."
    else:
        yield f"95 % band of G: +- {percent(band.value)} of G (root mean squares over the phase range)."
    yield f"{100 * table['coverage'].value:.0f} % of the phase range was visited; elsewhere the law is extrapolated."
    yield f"Structure: {table.structure}."
    if table.banded:
        yield f"Test of the model: {table.verdict}."
    for item in content.findings:
        if item.severity != Severity.OK:
            place = f"{item.where}: " if item.where else ""
            yield f"{item.severity.capitalize()}: {place}{' '.join(item.sentence.split())}."
