"""Wording: numbers and units as all texts write them."""

from __future__ import annotations

import re
from textwrap import wrap

WIDTH = 98
_POWER = re.compile(r"\^(-?\d+)")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def after(unit: str | None) -> str:
    """Return a unit to stand after a number: a space and its name, or nothing."""
    return f" {unit}" if unit else ""


def percent(fraction: float) -> str:
    """Return a fraction in percent with two digits, and never with a positive exponent.

    >>> percent(0.0123), percent(0.983), percent(2.5)
    ('1.2 %', '98 %', '250 %')
    """
    value = 100.0 * fraction
    return f"{value:.2g} %" if abs(value) < 9.95 else f"{value:.0f} %"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "step"), count(3, "step")
    ('1 step', '3 steps')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def wrapped(text: str, width: int = WIDTH, *, indent: str = "") -> list[str]:
    """Return a text in lines; all but the first are indented."""
    return wrap(text, width, subsequent_indent=indent) or [""]


def raised(text: str) -> str:
    """Return units with raised powers.

    >>> raised("1/um^2, J^2/m^4")
    '1/um², J²/m⁴'
    """
    return _POWER.sub(lambda found: found[1].translate(_RAISED), text)
