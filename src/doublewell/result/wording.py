"""Wording: numbers and sentences that the sections of a report share."""

from __future__ import annotations

from textwrap import wrap

import numpy as np

from doublewell.errors import InputError
from doublewell.inference import CONSTRAINTS, DegreeFit, Scalar, check_constraint
from doublewell.result.result import Diagnostics, Result

__all__ = [
    "WIDTH",
    "band_size",
    "bound_heading",
    "class_words",
    "count",
    "heaviest",
    "held_at",
    "interval_words",
    "intervals",
    "names",
    "percent",
    "phase_list",
    "wrapped",
]

WIDTH = 98
_SCALED: tuple[Scalar, ...] = ("epsilon", "barrier")
_FREE: tuple[Scalar, ...] = ("width", "tension_integral")


def percent(share: float) -> str:
    """Return a share in percent with two digits, and never with a positive exponent.

    >>> percent(0.0123), percent(0.983), percent(2.5)
    ('1.2 %', '98 %', '250 %')
    """
    value = 100.0 * share
    return f"{value:.2g} %" if abs(value) < 9.95 else f"{value:.0f} %"


def intervals(result: Result, *, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Return the intervals that a result can give, by name; none for a weak result."""
    found: dict[str, tuple[float, float]] = {}
    for name in (*_FREE, *(_SCALED if result.scale is not None else ())):
        try:
            found[name] = result.interval(name, level=level)
        except InputError:  # a weak result, or data that allow laws without an interface
            continue
    return found


def band_size(result: Result) -> float:
    """Return the half-width of the 95 % band of the force relative to the force, both as root mean squares."""
    u = np.linspace(*result.law.phases, 401)
    low, high = result.band("force", u)
    return float(0.5 * np.linalg.norm(high - low) / np.linalg.norm(result.force(u)))


def interval_words(found: dict[str, tuple[float, float]], name: str) -> str:
    """Return an interval in brackets, or that none can be given; nothing for a reading without intervals.

    >>> interval_words({"width": (1.0, 2.0)}, "width"), interval_words({"width": (1.0, 2.0)}, "epsilon")
    (' (95 %: 1 to 2)', ' (no interval: the data allow laws without one)')
    """
    if not found:
        return ""
    if name not in found:
        return " (no interval: the data allow laws without one)"
    return f" (95 %: {found[name][0]:.6g} to {found[name][1]:.6g})"


def heaviest(result: Result) -> DegreeFit:
    """Return the degree with the largest weight of a trajectory result."""
    assert result.posterior is not None
    return max(result.posterior.path, key=lambda fit: fit.weight)


def names(active: tuple[int, ...]) -> str:
    """Return the names of coefficients."""
    return ", ".join(f"g_{j}" for j in active)


def phase_list(contacts: tuple[float, ...]) -> str:
    """Return values of |u|, the same twice once.

    >>> phase_list((0.7071, 0.7072, 1.0))
    '0.707, 1'
    """
    return ", ".join(dict.fromkeys(f"{u:.3g}" for u in contacts))


def class_words(result: Result) -> str:
    """Return the class of laws that the estimate was held in, as it was asked."""
    if result.settings.wells != "symmetric" and result.settings.constraint != "none":
        return "two stable phases and one maximum between, exactly"
    return CONSTRAINTS[check_constraint(result.settings.constraint)]


def bound_heading(result: Result) -> str:
    """Return the heading of what the constraint holds at each degree."""
    return "touches zero at |u|" if result.settings.constraint == "admissible" else "at the bound"


def held_at(fit: DegreeFit | Diagnostics) -> str:
    """Return what a constraint holds: the names of coefficients, or the |u| of contacts; empty for nothing."""
    return names(fit.active) or phase_list(fit.contacts)


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "step"), count(3, "step")
    ('1 step', '3 steps')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def wrapped(text: str, width: int = WIDTH, *, indent: str = "") -> list[str]:
    """Return a text in lines; all but the first are indented."""
    return wrap(text, width, subsequent_indent=indent) or [""]
