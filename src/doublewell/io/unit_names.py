"""Unit names: the spellings of file formats as one short name each, and lengths of different units in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

from doublewell.errors import InputError

__all__ = ["common_length", "to_seconds", "unit_name"]

_METRES = {
    "m": Fraction(1),
    "cm": Fraction(1, 10**2),
    "mm": Fraction(1, 10**3),
    "um": Fraction(1, 10**6),
    "nm": Fraction(1, 10**9),
    "angstrom": Fraction(1, 10**10),
    "pm": Fraction(1, 10**12),
    "inch": Fraction(254, 10**4),
}
_SECONDS = {
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "ps": Fraction(1, 10**12),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_SPELLINGS = {
    "metre": "m", "meter": "m", "centimetre": "cm", "centimeter": "cm", "millimetre": "mm", "millimeter": "mm",
    "micrometre": "um", "micrometer": "um", "micron": "um", "mum": "um", "nanometre": "nm", "nanometer": "nm",
    "picometre": "pm", "picometer": "pm", "å": "angstrom", "in": "inch", "inches": "inch",
    "sec": "s", "second": "s", "msec": "ms", "millisecond": "ms", "usec": "us", "microsecond": "us",
    "nsec": "ns", "nanosecond": "ns", "picosecond": "ps", "minute": "min", "hr": "h", "hour": "h", "day": "d",
}  # fmt: skip
_NONE = {"", "pixel", "px", "voxel", "none", "null", "reference frame", "frame", "1", "-", "unknown", "undefined"}


def unit_name(text: object) -> str | None:
    r"""Return the short name of a unit, None where the text names none (pixel, say); others stay as they are.

    >>> [unit_name(text) for text in ("µm", "micrometer", "\\u00B5m", "msec", "pixel", "furlong")]
    ['um', 'um', 'um', 'ms', None, 'furlong']
    """
    if not isinstance(text, str):
        return None
    # two characters of Unicode look like mu, and ImageJ writes them as escapes
    plain = text.strip().strip("\0").replace("\\u00B5", "u").replace("\\u00b5", "u").replace("µ", "u").replace("μ", "u")
    if plain in _METRES or plain in _SECONDS:  # these as they are: Mm is no mm
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
    names = set(units)
    if len(names) <= 1:
        return list(lengths), (units[-1] if units else None)
    if not names <= set(_METRES):
        said = ", ".join(unit or "none" for unit in units)
        raise InputError(f"the axes have lengths in different units ({said}): pass dx=, in one unit, and length_unit=")
    if not all(isfinite(length) for length in lengths):
        raise InputError("a mesh spacing is not a finite number: pass dx=")
    target = _METRES[str(units[-1])]
    factors = [_METRES[str(unit)] / target for unit in units]
    return [float(Fraction(length) * factor) for length, factor in zip(lengths, factors, strict=True)], units[-1]


def to_seconds(unit: str) -> float | None:
    """Return how many seconds a unit of time has, None for any other unit."""
    return float(_SECONDS[unit]) if unit in _SECONDS else None
