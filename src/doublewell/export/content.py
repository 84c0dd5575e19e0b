"""Content: what every exported text is made of: the law as a polynomial, the numbers of the equation, the notes.

With s = (u - middle)/half and w = 1 - s^2, symmetric wells are written in powers of w,

    G = -half s w (a_0 + a_1 w + ...),    H = half^2 w^2 (b_0 + b_1 w + ...),    b_i = a_i / (2 (i + 2)),

and asymmetric ones in powers of t = (u - low)/(high - low),

    G = -4 half t (1 - t) (a_0 + a_1 t + ...),   H = half^2 t^2 (b_0 + b_1 t + ...),   b_i = -8 (a_i - a_(i-1))/(i + 2).

Both vanish at the low phase without cancellation. Beyond the phases G continues linearly with its slope there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import atanh, comb
from textwrap import wrap
from typing import Any

import numpy as np

from doublewell.curves import Curves, curves
from doublewell.errors import InputError
from doublewell.facts import METHODS, Facts, facts
from doublewell.findings import findings
from doublewell.hints import Array
from doublewell.law import Law
from doublewell.record_findings import Finding, Severity, pure_phases
from doublewell.result import Result
from doublewell.units import energy_power, factor, has_pint, unit_text
from doublewell.wording import after, percent

_WIDTH = 100
_CELLS = 4.0  # half-width of a first drop, in cells, where the law has no interface of its own
_LOST = 1e-9  # of the largest force: more than this must not be lost by writing a law in powers


@dataclass(frozen=True)
class Polynomial:
    """A law in powers of ``variable``, "w" for symmetric wells and "t" for asymmetric ones: a and b above."""

    variable: str
    force: tuple[float, ...]
    primitive: tuple[float, ...]

    def code(self, name: str, *, variable: str | None = None) -> str:
        """Return a or b ("force" or "primitive") as code that Python, SymPy and MOOSE all read, with all digits."""
        return horner(self.force if name == "force" else self.primitive, variable or self.variable)


def polynomial_of(law: Law) -> Polynomial:
    """Return a law in powers, converted exactly and then rounded to floats.

    >>> polynomial_of(Law.bernstein([0.75, 1.5])).force
    (1.5, -0.75)
    """
    factor = list(law.family.exact_factor(law.coefficients))  # r in powers of t
    while len(factor) > 1 and factor[-1] == 0:
        factor.pop()
    if law.family.symmetric:
        exact = _powers_of_w(factor)
        primitive = [a / (2 * (i + 2)) for i, a in enumerate(exact)]
    else:
        exact = factor
        before = [Fraction(0), *exact]
        primitive = [-8 * (a - b) / (i + 2) for i, (a, b) in enumerate(zip([*exact, Fraction(0)], before, strict=True))]
    kind = "w" if law.family.symmetric else "t"
    found = Polynomial(kind, tuple(map(float, exact)), tuple(map(float, primitive)))
    _check_digits(law, found)
    return found


def _powers_of_w(factor: list[Fraction]) -> list[Fraction]:
    """Return p(s^2) = r(s)/s in powers of w = 1 - s^2, from r in powers of t = (1 + s)/2."""
    powers: list[Fraction] = []  # of r in s, by Horner's scheme
    for c in reversed(factor):
        powers = [(a + b) / 2 for a, b in zip([*powers, Fraction(0)], [Fraction(0), *powers], strict=True)]
        powers = powers or [Fraction(0)]
        powers[0] += c
    bracket = powers[1::2] or [Fraction(0)]
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


def _check_digits(law: Law, written: Polynomial) -> None:
    """Refuse a law of so high a degree that its powers cancel."""
    u = np.linspace(*law.phases, 401)
    exact = law.force(u)
    size = float(np.max(np.abs(exact)))
    if size > 0.0 and float(np.max(np.abs(evaluate(law, written, u) - exact))) > _LOST * size:
        raise InputError(
            f"a law of degree {len(written.force) - 1} in {written.variable} cannot be written in powers without "
            "losing digits: identify it with a degree of at most 8"
        )


def evaluate(law: Law, written: Polynomial, u: Array) -> Array:
    """Return the force of a law in powers, between its phases."""
    half, s = law.family.half, (u - law.family.middle) / law.family.half
    w, t = (1.0 - s) * (1.0 + s), 0.5 * (1.0 + s)
    if written.variable == "w":
        return np.asarray(-half * s * w * np.polynomial.polynomial.polyval(w, written.force))
    return np.asarray(-half * w * np.polynomial.polynomial.polyval(t, written.force))


@dataclass(frozen=True, eq=False)
class Content:
    """The facts, findings and curves of a result, its law as a polynomial, and the numbers of the energy.

    The energy is the integral of kappa/2 |grad u|^2 + f(u) with f = kappa H, and u_t = -mobility dE/du; both follow
    from q and kappa. ``scaled`` tells whether a surface tension fixed kappa, or whether it is 1 by choice.
    """

    facts: Facts
    findings: tuple[Finding, ...]
    curves: Curves
    polynomial: Polynomial

    @property
    def law(self) -> Law:
        """The effective force."""
        return self.facts.law

    @property
    def q(self) -> float:
        """The diffusion coefficient."""
        return self.facts["q"].value

    @property
    def scaled(self) -> bool:
        """Whether a surface tension fixed kappa."""
        return self.facts.get("kappa") is not None

    @property
    def kappa(self) -> float:
        """The gradient coefficient; 1 by choice without a surface tension."""
        return self.facts["kappa"].value if self.scaled else 1.0

    @property
    def mobility(self) -> float:
        """L = q / kappa."""
        return self.q / self.kappa

    @property
    def epsilon(self) -> float | None:
        """The paper's interfacial scale, None without a surface tension."""
        fact = self.facts.get("epsilon")
        return None if fact is None else fact.value

    @property
    def unit(self) -> bool:
        """Whether the phases are -1 and +1."""
        return self.law.phases == (-1.0, 1.0)

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells along (z, y,) x of the record."""
        return self.facts.data.shape[1:]

    @property
    def periodic(self) -> bool:
        """Whether the border is periodic; where nothing is known of it, it is taken as closed."""
        return self.facts.data.boundary == "periodic"

    @cached_property
    def steepest(self) -> float:
        """The largest |G'|, which limits the time step of an explicit reaction."""
        u = np.linspace(*self.law.phases, 801)
        inside = float(np.max(np.abs(np.diff(self.law.force(u)) / np.diff(u))))
        ends = [abs(bend) for bend in self.law.well_curvatures]
        return max(inside, *ends, abs(float(np.nan_to_num(self.law.centre_curvature))))

    @cached_property
    def profile(self) -> float:
        """The length l of the profile tanh(x / l) whose width is that of the law's interface."""
        width = self.facts.get("width")
        return _CELLS * max(self.facts.data.dx) if width is None else width.value / (2.0 * atanh(0.9))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about units, meaning and errors, for the head of a text."""
        return (*_meaning(self), *_energy(self), *_trust(self))

    def comment(self, mark: str) -> str:
        """Return the notes as lines that begin with a mark of comment."""
        lines = [line for note in self.notes for line in wrap(note, _WIDTH, subsequent_indent="  ")]
        return "\n".join(f"{mark} {line}" for line in lines)


def content_of(result: Result) -> Content:
    """Return what the texts need; refused where the law is zero everywhere."""
    table = facts(result)
    if not np.any(table.law.coefficients):
        raise InputError("the force of this result is zero everywhere: there is no law to export")
    return Content(table, tuple(findings(result, table=table)), curves(result), polynomial_of(table.law))


def template(content: Content, templates: dict[str, Any], format: str) -> Any:
    """Return what a format writes for the dynamics of a result; refused where it has nothing for them."""
    if content.facts.dynamics not in templates:
        raise InputError(
            f"no {format} text can be written for the dynamics {content.facts.dynamics!r}: expected one of "
            f"{', '.join(templates)}; use the format json, sympy or python"
        )
    return templates[content.facts.dynamics]


def _meaning(content: Content) -> Iterator[str]:
    table, data, (low, high) = content.facts, content.facts.data, content.law.phases
    yield f"Law identified by doublewell {table.version}, {METHODS[table.method]}, degree {table.law.family.degree}."
    yield f"Model: {table.motion}, pure phases at u = {pure_phases((low, high))}. {table.equation}"
    length = data.length_unit or "the unit of the record's dx"
    time = data.time_unit or "the unit of its dt"
    yield f"Units: lengths in {length}, times in {time}; q is length^2/time, G and H are 1/length^2."
    half, middle = table.law.family.half, table.law.family.middle
    place = "u" if content.unit else "s"
    where = "" if content.unit else f" and s = (u - {middle:g}) / {half:g}"
    size = "" if content.unit else f"{half:g} "
    if content.polynomial.variable == "w":
        form = f"G(u) = -{size}{place} w (a_0 + a_1 w + ...) with w = 1 - {place}^2{where}"
    else:
        form = f"G(u) = -{4 * half:g} t (1 - t) (a_0 + a_1 t + ...) with t = (u - {low:g}) / {high - low:g}"
    yield (
        f"{form} between the pure phases; beyond them G continues linearly with its slope there. H is the integral of "
        f"G from {low:g} to u."
    )
    if data.boundary in (None, "open"):
        yield "Nothing is known of the record's border: a closed one (no flux) is used here."


def _energy(content: Content) -> Iterator[str]:
    yield (
        "Energy: integral of kappa/2 |grad u|^2 + f(u) with f = kappa H, and u_t = -L dE/du with L = q/kappa, so that "
        "q = L kappa and G = f'/kappa."
    )
    if not content.scaled:
        yield (
            "No surface tension fixed the scale of the energy: kappa = 1 is a choice. Every other kappa > 0 gives the "
            "same movie."
        )
        return
    table = content.facts
    tension, epsilon, barrier = table["tension"], table["epsilon"], table["barrier"]
    spread = "" if tension.sd is None else f" +- {tension.sd:.2g}"
    sigma = f"{tension.value:.6g}{spread}{after(tension.unit)} (of {tension.note})"
    ends = "" if epsilon.interval is None else " (95 %: {:.4g} to {:.4g})".format(*epsilon.interval)
    yield (
        f"kappa = {content.kappa:.6g} comes from the surface tension {sigma} and "
        f"C_H = {table['tension_integral'].value:.6g}; epsilon of the paper is {epsilon.value:.6g}{ends}, "
        f"F = epsilon^2 H, barrier {barrier.symbol} = {barrier.value:.6g}."
    )
    if tension.unit is not None and table.data.length_unit is not None and has_pint():
        yield _energy_unit(tension.unit, table.data.length_unit)


def _energy_unit(tension: str, length: str) -> str:
    """Return in which unit of energy kappa, f and L are numbers: that which makes the tension and the lengths fit."""
    power = energy_power(tension, "the surface tension") or 0
    parts = ((tension, 1), (length, power))
    joules = factor(parts, (("J", 1),))
    return (
        f"The unit of energy here is {unit_text(parts)} = {joules:.6g} J: kappa, f and L are numbers in this unit, in "
        f"{length} and in the unit of time."
    )


def _trust(content: Content) -> Iterator[str]:
    table = content.facts
    band = table.get("force_band")
    if band is None:
        yield "The weak-form fit gives no error band."
    else:
        yield f"95 % band of G: +- {percent(band.value)} of G (root mean squares over the phase range)."
    visited = f"{100 * table['coverage'].value:.0f} % of the phase range was visited"
    yield f"{visited}; elsewhere the law is extrapolated."
    yield f"Structure: {table.structure}."
    if table.banded:
        yield f"Test of the model: {table.verdict}."
    for item in content.findings:
        if item.severity != Severity.OK:
            place = f"{item.where}: " if item.where else ""
            yield f"{item.severity.capitalize()}: {place}{' '.join(item.sentence.split())}."
