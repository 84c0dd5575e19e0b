"""Units: names of units understood by pint, which is imported only where one is met."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from doublewell.errors import InputError, shown

__all__ = ["Parts", "check_dimension", "convert", "energy_power", "factor", "has_pint", "parse_quantity", "unit_text"]

Parts = tuple[tuple[str, float], ...]  # a product of powers of units

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*(\S.*)?", re.DOTALL)
_UNIT = re.compile(r"[A-Za-zµμÅ_][A-Za-zµμÅ_0-9/*^.()\s²³⁻¹-]{0,59}")
_POWER = re.compile(r"\^\(?-?\d{1,2}(?:\.\d{1,3})?\)?(?![\d^.])")  # a short number, and no power of a power


def parse_quantity(value: Any, name: str) -> tuple[float, str | None]:
    """Return a number and its unit: from a plain number, a text such as "0.3 J/m^2", or a quantity of pint.

    >>> parse_quantity("0.3 J/m^2", "the tension"), parse_quantity(2, "q")
    ((0.3, 'J/m^2'), (2.0, None))
    """
    if hasattr(value, "magnitude") and hasattr(value, "units"):
        value = f"{float(value.magnitude)!r} {value.units!s}"
    if not isinstance(value, str):
        return float(value), None
    found = _QUANTITY.fullmatch(value)
    if found is None:
        raise InputError(f"{name} is {shown(value)}: expected a number, or a number with its unit such as '0.3 J/m^2'")
    unit = (found[2] or "").strip() or None
    if unit is not None:
        _unit(unit, name)
    return float(found[1]), unit


def convert(value: float, unit: str, target: str, name: str) -> float:
    """Return a number in another unit of the same kind.

    >>> convert(0.3, "J/m^2", "mN/m", "the tension")
    300.0
    """
    registry, given = _registry(), _unit(unit, name)
    wanted = _unit(target, name)
    if given.dimensionality != wanted.dimensionality:
        raise InputError(f"{name} is in {unit}, which is {_kind(given)}: expected {_kind(wanted)}, such as {target}")
    factor = float((registry.Quantity(1.0, given)).to(wanted).magnitude)
    return value * factor


def factor(given: Parts, target: Parts) -> float:
    """Return how many of one product of units another is.

    >>> round(factor((("J/m^2", 1), ("um", -1)), (("J", 1), ("m", -3))))
    1000000
    """
    registry = _registry()
    first, second = (_product(parts) for parts in (given, target))
    return float(registry.Quantity(1.0, first).to(second).magnitude)


def _product(parts: Parts) -> Any:
    whole = _registry().Unit("")
    for name, power in parts:
        whole = whole * _unit(name, "a number") ** power
    return whole


def check_dimension(unit: str, like: str, name: str) -> None:
    """Refuse a unit of another kind than `like`."""
    convert(1.0, unit, like, name)


def energy_power(unit: str, name: str) -> int | None:
    """Return k where a unit is an energy per length^k with k = 0, 1 or 2; None where it is none of these.

    >>> energy_power("mN/m", "the tension"), energy_power("J/m", "the tension"), energy_power("Pa", "it")
    (2, 1, None)
    """
    given = _unit(unit, name)
    for power in (0, 1, 2):
        if given.dimensionality == _product((("J", 1), ("m", -power))).dimensionality:
            return power
    return None


def has_pint() -> bool:
    """Whether pint is installed."""
    return find_spec("pint") is not None


def unit_text(parts: Parts) -> str:
    """Return the name of a product of powers of units; powers of 0 are left out.

    >>> unit_text((("J", 1), ("m", -3))), unit_text((("m", 3), ("J", -1), ("s", -1))), unit_text((("J/m^2", -1),))
    ('J/m^3', 'm^3/(J s)', '1/(J/m^2)')
    """
    above = [_power(name, power) for name, power in parts if power > 0]
    below = [_power(name, -power) for name, power in parts if power < 0]
    bottom = " ".join(below)
    top = " ".join(above) or "1"
    return top if not below else f"{top}/{bottom}" if len(below) == 1 else f"{top}/({bottom})"


def _power(name: str, power: float) -> str:
    simple = re.fullmatch(r"[A-Za-zµμÅ_]+", name) is not None
    base = name if simple else f"({name})"
    return base if power == 1 else f"{base}^{power:g}"


def _unit(text: str, name: str) -> Any:
    """Return pint's unit; a text that is none is refused. No text is evaluated."""
    registry = _registry()
    plain = re.sub(r"\s+", "", text).replace("**", "^")
    if _UNIT.fullmatch(text) is None or plain.count("^") != len(_POWER.findall(plain)):
        raise InputError(f"{name} has the unit {shown(text)}: expected the name of a unit, such as um, s or J/m^2")
    try:
        return registry.Unit(re.sub(r"(?<=[A-Za-z0-9)])\s+(?=[A-Za-z(])", "*", text.strip()))
    except Exception as error:  # pint raises its own errors, and those of its tokenizer
        raise InputError(
            f"{name} has the unit {shown(text)}, which is not known: expected the name of one, such as um, s or J/m^2"
        ) from error


def _kind(unit: Any) -> str:
    """Return a dimension in words, for an error."""
    kinds = {"m": "a length", "s": "a time", "J/m**2": "an energy per area (a surface tension)", "J": "an energy"}
    kinds |= {"J/m": "an energy per length (a line tension)", "m**2/s": "a length^2 per time", "": "no dimension"}
    registry = _registry()
    for example, words in kinds.items():
        if registry.Unit(example).dimensionality == unit.dimensionality:
            return words
    return str(unit.dimensionality)


def _registry() -> Any:
    try:
        import pint
    except ImportError:
        raise InputError(
            "units need the library pint: install it with pip install 'doublewell[units]', or give plain numbers"
        ) from None
    return pint.get_application_registry()
