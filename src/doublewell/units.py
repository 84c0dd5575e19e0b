"""Units: names understood by pint, imported only where one is met; names in files; numbers and units in texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from importlib.util import find_spec
from math import isfinite, prod
from textwrap import wrap
from typing import Any

from doublewell.errors import InputError, option, shown

NO_PINT = "units need the library pint: install it with pip install 'doublewell[units]', or give plain numbers"
WIDTH = 98  # characters of a line of text
Parts = tuple[tuple[str, float], ...]  # a product of powers of units

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*(\S.*)?", re.DOTALL)
_UNIT = re.compile(r"[A-Za-zµμÅ_][A-Za-zµμÅ_0-9/*^.()\s²³⁻¹-]{0,59}")
_POWER = re.compile(r"\^\(?-?\d{1,2}(?:\.\d{1,3})?\)?(?![\d^.])")  # a short number, and no power of a power
_RAISED = re.compile(r"\^(-?\d+)")
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LIMIT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|sec|min|h|steps?)?\s*")
_SECONDS = {None: 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_METRES = {
    "m": Fraction(1), "cm": Fraction(1, 10**2), "mm": Fraction(1, 10**3), "um": Fraction(1, 10**6),
    "nm": Fraction(1, 10**9), "angstrom": Fraction(1, 10**10), "pm": Fraction(1, 10**12), "inch": Fraction(254, 10**4),
}  # fmt: skip
_CLOCKS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SPELLINGS = {
    "metre": "m", "meter": "m", "centimetre": "cm", "centimeter": "cm", "millimetre": "mm", "millimeter": "mm",
    "micrometre": "um", "micrometer": "um", "micron": "um", "mum": "um", "nanometre": "nm", "nanometer": "nm",
    "picometre": "pm", "picometer": "pm", "å": "angstrom", "in": "inch", "inches": "inch",
    "sec": "s", "second": "s", "msec": "ms", "millisecond": "ms", "usec": "us", "microsecond": "us",
    "nsec": "ns", "nanosecond": "ns", "picosecond": "ps", "minute": "min", "hr": "h", "hour": "h", "day": "d",
}  # fmt: skip
_NONE = {"", "pixel", "px", "voxel", "none", "null", "reference frame", "frame", "1", "-", "unknown", "undefined"}


def parse_quantity(value: Any, name: str) -> tuple[float, str | None]:
    """Return a number and its unit: from a plain number, a text such as "0.3 J/m^2", or a quantity of pint.

    >>> parse_quantity("0.3 J/m^2", "the tension"), parse_quantity(2, "q")
    ((0.3, 'J/m^2'), (2.0, None))
    """
    if hasattr(value, "magnitude") and hasattr(value, "units"):
        value = f"{float(value.magnitude)!r} {value.units!s}"
    if not isinstance(value, str):
        return float(value), None
    parts = _QUANTITY.fullmatch(value)
    if parts is None:
        raise InputError(f"{name} is {shown(value)}: expected a number, or a number with its unit such as '0.3 J/m^2'")
    unit = (parts[2] or "").strip() or None
    if unit is not None:
        _unit(unit, name)
    return float(parts[1]), unit


def convert(value: float, unit: str, target: str, name: str) -> float:
    """Return a number in another unit of the same kind.

    >>> convert(0.3, "J/m^2", "mN/m", "the tension")
    300.0
    """
    given, wanted = _unit(unit, name), _unit(target, name)
    if given.dimensionality != wanted.dimensionality:
        raise InputError(f"{name} is in {unit}, which is {_kind(given)}: expected {_kind(wanted)}, such as {target}")
    return value * factor(((unit, 1),), ((target, 1),))


def factor(given: Parts, target: Parts) -> float:
    """Return how many of one product of units another is.

    >>> round(factor((("J/m^2", 1), ("um", -1)), (("J", 1), ("m", -3))))
    1000000
    """
    return float(_registry().Quantity(1.0, _product(given)).to(_product(target)).magnitude)


def _product(parts: Parts) -> Any:
    return prod((_unit(name, "a number") ** power for name, power in parts), start=_registry().Unit(""))


def check_dimension(unit: str, like: str, name: str) -> None:
    """Refuse a unit of another kind than `like`."""
    convert(1.0, unit, like, name)


def energy_power(unit: str, name: str) -> int | None:
    """Return k where a unit is an energy per length^k with k = 0, 1 or 2; None where it is none of these.

    >>> energy_power("mN/m", "the tension"), energy_power("J/m", "the tension"), energy_power("Pa", "it")
    (2, 1, None)
    """
    given, joule, metre = (_unit(text, name) for text in (unit, "J", "m"))
    kinds = [(joule / metre**power).dimensionality for power in (0, 1, 2)]
    return kinds.index(given.dimensionality) if given.dimensionality in kinds else None


def has_pint() -> bool:
    """Whether pint is installed."""
    return find_spec("pint") is not None


def unit_text(parts: Parts) -> str:
    """Return the name of a product of powers of units; powers of 0 are left out.

    >>> unit_text((("J", 1), ("m", -3))), unit_text((("m", 3), ("J", -1), ("s", -1))), unit_text((("J/m^2", -1),))
    ('J/m^3', 'm^3/(J s)', '1/(J/m^2)')
    """
    above: list[str] = []
    below: list[str] = []
    for name, power in parts:
        base = name if re.fullmatch(r"[A-Za-zµμÅ_]+", name) else f"({name})"
        if power:
            (above if power > 0 else below).append(base if abs(power) == 1 else f"{base}^{abs(power):g}")
    top, bottom = " ".join(above) or "1", " ".join(below)
    return top if not below else f"{top}/{bottom}" if len(below) == 1 else f"{top}/({bottom})"


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
    names = (words for text, words in kinds.items() if _registry().Unit(text).dimensionality == unit.dimensionality)
    return next(names, str(unit.dimensionality))


def _registry() -> Any:
    try:
        import pint
    except ImportError:
        raise InputError(NO_PINT) from None
    return pint.get_application_registry()


# --- in texts --------------------------------------------------------------------------------------------------------


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
    return _RAISED.sub(lambda power: power[1].translate(_SUPERSCRIPTS), text)


def parse_memory(memory: Any) -> int:
    """Return a budget in bytes: a number of them, or a text such as "2GB", "500 MB" or "1.5 GiB".

    >>> parse_memory("2GB"), parse_memory("1.5 GiB"), parse_memory(10**9)
    (2000000000, 1610612736, 1000000000)
    """
    size = -1.0
    if isinstance(memory, str) and (found := _SIZE.fullmatch(memory)):
        number, power, binary = found.groups()
        size = float(number) * (1024 if binary else 1000) ** _PREFIXES[power.lower()]
    elif isinstance(memory, int | float) and not isinstance(memory, bool):
        size = float(memory)
    if not 1.0 <= size < 2**63:
        raise InputError(f'memory is {shown(memory)}: expected a size such as "2GB" or "500 MB", or a number of bytes')
    return int(size)


def parse_limit(limit: Any) -> tuple[float | None, int | None]:
    """Return a time limit in seconds, or the number of the step before which the work ends.

    >>> parse_limit("60 s"), parse_limit("1.5 min"), parse_limit(20), parse_limit("7 steps")
    ((60.0, None), (90.0, None), (20.0, None), (None, 7))
    """
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if match := _LIMIT.fullmatch(str(limit) if number else limit if isinstance(limit, str) else ""):
        size, unit = float(match[1]), match[2]
        if unit in _SECONDS and size > 0.0:
            return size * _SECONDS[unit], None
        if unit not in _SECONDS and size >= 1.0 and size.is_integer():
            return None, int(size)
    raise InputError(
        f"{option('time_limit').rstrip('=')} is {shown(limit)}: expected a time such as '60 s' or '5 min', a number of "
        "seconds, or a number of steps such as '7 steps'"
    )


def unit_name(text: object) -> str | None:
    r"""Return the short name of a unit, None where the text names none (pixel, say); others stay as they are.

    >>> [unit_name(text) for text in ("µm", "micrometer", "\\u00B5m", "msec", "pixel", "furlong")]
    ['um', 'um', 'um', 'ms', None, 'furlong']
    """
    if not isinstance(text, str):
        return None
    # two characters of Unicode look like mu, and ImageJ writes them as escapes
    plain = text.strip().strip("\0").replace("\\u00B5", "u").replace("\\u00b5", "u").replace("µ", "u").replace("μ", "u")
    if plain in _METRES or plain in _CLOCKS:  # these as they are: Mm is not mm
        return plain
    for name in (plain.lower(), plain.lower().removesuffix("s")):
        if name in _NONE:
            return None
        if name in _SPELLINGS:
            return _SPELLINGS[name]
    return plain if plain.isprintable() and len(plain) <= 40 else None


def common_length(lengths: Sequence[float], units: Sequence[str | None]) -> tuple[list[float], str | None]:
    """Return lengths in one unit, that of the last axis, and its name; units that cannot be compared are refused.

    >>> common_length([500.0, 0.5], ["nm", "um"])
    ([0.5, 0.5], 'um')
    """
    if len(set(units)) <= 1:
        return list(lengths), (units[-1] if units else None)
    if not set(units) <= set(_METRES):
        names = ", ".join(unit or "none" for unit in units)
        raise InputError(
            f"the axes have lengths in different units ({names}): pass {option('dx')}, in one unit, and "
            f"{option('length_unit')}"
        )
    if not all(isfinite(length) for length in lengths):
        raise InputError(f"a mesh spacing is not a finite number: pass {option('dx')}")
    factors = [_METRES[str(unit)] / _METRES[str(units[-1])] for unit in units]
    return [float(Fraction(length) * factor) for length, factor in zip(lengths, factors, strict=True)], units[-1]


def seconds_in(unit: str | None) -> float | None:
    """Return how many seconds a unit of time has, by its short name; None where it is no such name."""
    return _CLOCKS.get(unit or "")
