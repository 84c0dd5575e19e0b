"""Content: what every exported text is made of, from one result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import atanh
from textwrap import wrap

import numpy as np

from doublewell.errors import InputError
from doublewell.export.polynomial import powers_of_w
from doublewell.facts import band_size
from doublewell.findings import findings
from doublewell.law import Law
from doublewell.legacy import intervals
from doublewell.result import Result
from doublewell.units import energy_power, factor, has_pint, unit_text
from doublewell.wording import percent

__all__ = ["Content", "content_of"]

_WIDTH = 100
_CELLS = 4.0  # half-width of a first drop, in cells, where the law has no interface of its own


@dataclass(frozen=True, eq=False)
class Content:
    """The law in powers of w = 1 - u^2, the numbers of the equation and of the energy, and what a reader must know.

    The energy is the integral of kappa/2 |grad u|^2 + f(u) with f = kappa H, and u_t = -mobility dE/du; both follow
    from q and kappa. ``scaled`` says whether a surface tension fixed kappa, or whether it is 1 by choice.
    """

    result: Result
    powers: tuple[float, ...]
    kappa: float
    scaled: bool

    @property
    def law(self) -> Law:
        """The effective force."""
        return self.result.law

    @property
    def q(self) -> float:
        """The diffusion coefficient."""
        return self.result.settings.q

    @property
    def mobility(self) -> float:
        """L = q / kappa."""
        return self.q / self.kappa

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells along (z, y,) x of the record."""
        return self.result.settings.shape[1:]

    @property
    def periodic(self) -> bool:
        """Whether the border is periodic; where nothing is known of it, it is taken as closed."""
        return self.result.settings.boundary == "periodic"

    @cached_property
    def steepest(self) -> float:
        """The largest |G'|, which limits the time step of an explicit reaction."""
        u = np.linspace(-1.0, 1.0, 801)
        inside = float(np.max(np.abs(np.diff(self.law.force(u)) / np.diff(u))))
        return max(inside, abs(self.law.well_curvature), abs(self.law.centre_curvature))

    @cached_property
    def profile(self) -> float:
        """The length l of the profile tanh(x / l) whose width is that of the law's interface."""
        if self.law.has_interface:
            return self.law.interface_width() / (2.0 * atanh(0.9))
        return _CELLS * max(self.result.settings.dx)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about units, meaning and errors, for the head of a text."""
        return (*_meaning(self), *_energy(self), *_trust(self.result))

    def comment(self, mark: str) -> str:
        """Return the notes as lines that begin with a mark of comment."""
        lines = [line for note in self.notes for line in wrap(note, _WIDTH, subsequent_indent="  ")]
        return "\n".join(f"{mark} {line}" for line in lines)


def content_of(result: Result) -> Content:
    """Return what the texts need; refused where the law is zero everywhere."""
    if not np.any(result.coefficients):
        raise InputError("the force of this result is zero everywhere: there is no law to export")
    scale = result.scale
    kappa = 1.0 if scale is None else scale.kappa
    return Content(result, powers_of_w(result.law), kappa, scale is not None)


def _meaning(content: Content) -> Iterator[str]:
    asked = content.result.settings
    yield f"Law found by doublewell {asked.version}, {asked.method} reading, degree {content.result.degree} in u^2."
    yield "Model: u_t = q (Laplacian u - G(u)), pure phases at u = -1 and u = +1."
    length = asked.length_unit or "the unit of the record's dx"
    time = asked.time_unit or "the unit of its dt"
    yield f"Units: lengths in {length}, times in {time}; q is length^2/time, G and H are 1/length^2."
    yield (
        "G(u) = -u w (a_0 + a_1 w + ...) with w = 1 - u^2 between the pure phases; beyond them G goes on linearly with "
        "its slope there. H is the integral of G from -1 to u."
    )
    if asked.boundary in (None, "open"):
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
    scale = content.result.scale
    assert scale is not None
    kind = "E" if scale.tension.normalisation == "E" else "epsilon E"
    spread = "" if scale.tension.sd is None else f" +- {scale.tension.sd:.2g}"
    unit = "" if scale.tension.unit is None else f" {scale.tension.unit}"
    found = intervals(content.result)
    ends = "" if "epsilon" not in found else " (95 %: {:.4g} to {:.4g})".format(*found["epsilon"])
    sigma = f"{scale.tension.value:.6g}{spread}{unit} (of {kind})"
    yield (
        f"kappa = {content.kappa:.6g} comes from the surface tension {sigma} and "
        f"C_H = {scale.tension_integral:.6g}; epsilon of the paper is {scale.epsilon:.6g}{ends}, F = epsilon^2 H."
    )
    if scale.tension.unit is not None and content.result.settings.length_unit is not None and has_pint():
        yield _energy_unit(scale.tension.unit, content.result.settings.length_unit)


def _energy_unit(tension: str, length: str) -> str:
    """Say in which unit of energy kappa, f and L are numbers: that which makes the tension and the lengths fit."""
    power = energy_power(tension, "the surface tension") or 0
    parts = ((tension, 1), (length, power))
    joules = factor(parts, (("J", 1),))
    return (
        f"The unit of energy here is {unit_text(parts)} = {joules:.6g} J: kappa, f and L are numbers in this unit, in "
        f"{length} and in the unit of time."
    )


def _trust(result: Result) -> Iterator[str]:
    if result.posterior is None:
        yield "The weak reading gives no error band."
    else:
        yield f"95 % band of G: +- {percent(band_size(result))} of G (root mean squares over the phase range)."
    seen = result.diagnostics.survey
    yield f"{100 * seen.coverage:.0f} % of the phase range was visited; elsewhere the law is extrapolated."
    yield f"Structure: {result.structure}."
    if result.adequacy is not None:
        yield f"Model check: {result.adequacy.verdict}."
    for item in findings(result):
        if item.severity != "ok":
            yield f"{item.severity.capitalize()}: {' '.join(str(item).split())}"
