"""Unit words: the units of a result or a record as figures and pages write them; a kind where none is known."""

from __future__ import annotations

import re
from typing import Protocol

from doublewell.facts import scale_units
from doublewell.result import Result
from doublewell.units import unit_text

__all__ = [
    "after", "figure_text", "length_axis", "per_area", "potential_unit", "q_unit", "scale_unit", "time_axis",
    "unit_signs",
]  # fmt: skip

_POWER = re.compile(r"\^(\d+)")
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class Measure(Protocol):
    """What knows its units: a record, or the settings of a result."""

    @property
    def length_unit(self) -> str | None:
        """Name of the unit of lengths."""

    @property
    def time_unit(self) -> str | None:
        """Name of the unit of times."""


def unit_signs(text: str) -> str:
    """Return units with raised powers.

    >>> unit_signs("1/um^2, J^2/m^4")
    '1/um², J²/m⁴'
    """
    return _POWER.sub(lambda found: found[1].translate(_SUPERSCRIPTS), text)


def figure_text(text: str) -> str:
    """Return a text from a file for matplotlib, which would read formulas between dollar signs."""
    return text.replace("$", r"\$")


def after(unit: str | None) -> str:
    r"""Return a unit to stand after a number: a space and its name, or nothing.

    >>> after("um^2/s"), after(None)
    ('\xa0um²/s', '')
    """
    return f"\N{NO-BREAK SPACE}{unit_signs(unit)}" if unit else ""


def length_axis(name: str, measure: Measure) -> str:
    """Return the name of an axis with its unit, such as x (um); x (length) where none is known."""
    return f"{name} ({unit_signs(measure.length_unit or 'length')})"


def time_axis(name: str, measure: Measure) -> str:
    """Return the name of an axis of times with its unit, if one is known."""
    return name if measure.time_unit is None else f"{name} ({unit_signs(measure.time_unit)})"


def q_unit(measure: Measure) -> str | None:
    """Return the unit of q, None unless both length and time are known."""
    if measure.length_unit is None or measure.time_unit is None:
        return None
    return unit_text(((measure.length_unit, 2), (measure.time_unit, -1)))


def per_area(measure: Measure) -> str | None:
    """Return the unit of G and H, None where the length has none."""
    return None if measure.length_unit is None else unit_text(((measure.length_unit, -2),))


def scale_unit(result: Result) -> str | None:
    """Return the unit of epsilon, None where one of those that it follows from is not known."""
    return scale_units(result)[0]


def potential_unit(result: Result) -> str | None:
    """Return the unit of F, None where one of those that it follows from is not known."""
    return scale_units(result)[1]
