"""Families: which laws a reading looks for."""

from __future__ import annotations

from typing import Literal

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.law import MAX_DEGREE, Bernstein, EqualWells, LinearFamily, Wells

__all__ = ["WellsKind", "check_wells", "family_of", "highest_degree", "read_family"]

WellsKind = Literal["symmetric", "equal", "unequal"]
_KINDS: dict[str, WellsKind] = {"symmetric": "symmetric", "equal": "equal", "unequal": "unequal"}
_HIGHEST = 5  # of unlike wells: twelve coefficients, and the named laws need no more


def check_wells(wells: object) -> WellsKind:
    """Return which wells are looked for; anything else raises."""
    if not isinstance(wells, str) or wells not in _KINDS:
        raise InputError(
            f"wells is {shown(wells)}: expected 'symmetric', 'equal' (equally deep, not alike) or 'unequal' (depths "
            "differ)"
        )
    return _KINDS[wells]


def family_of(wells: WellsKind, degree: int) -> LinearFamily:
    """Return the family of a degree: its laws of one degree lie inside each other, symmetric in equal in unequal."""
    if wells == "symmetric":
        return Bernstein(degree)
    return EqualWells(degree) if wells == "equal" else Wells(degree)


def read_family(wells: WellsKind, degree: int) -> LinearFamily:
    """Return the family that weak moments are read with; equal depths are a restriction of what was read."""
    return Bernstein(degree) if wells == "symmetric" else Wells(degree)


def highest_degree(wells: WellsKind) -> int:
    """Return the degree at which a trajectory is linearised for the average over degrees."""
    return MAX_DEGREE if wells == "symmetric" else _HIGHEST
