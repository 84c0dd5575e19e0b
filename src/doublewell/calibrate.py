"""Calibrate: one independently measured surface tension fixes epsilon and the potential."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from doublewell.errors import InputError, not_negative, option, positive, shown
from doublewell.law import Law, check_law
from doublewell.units import check_dimension, convert, energy_power, has_pint, parse_quantity

Normalisation = Literal["E", "eE"]

_NAME = "the surface tension"
_EXAMPLE = "0.3 J/m^2 +- 5 %"
_FLAT = 10.0  # bounds; coefficients below are zero
_PLUS_MINUS = re.compile(r"\+/-|\+-|±")
_PERCENT = re.compile(r"\s*(.*?)\s*%\s*", re.DOTALL)


@dataclass(frozen=True)
class SurfaceTension:
    """A measured surface tension, its standard deviation, and the energy it belongs to.

    ``normalisation`` is "E" for the energy with (epsilon/2) |grad u|^2 + F/epsilon, whose planar interface costs
    sigma = epsilon C_H, or "eE" for epsilon times that energy, whose interface costs epsilon^2 C_H. ``unit`` is an
    energy per area such as "J/m^2" or "mN/m", or an energy per length for a film; None for a plain number.
    """

    value: float
    sd: float | None = None
    normalisation: Normalisation = "E"
    unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive(self.value, "surface tension"))
        if self.sd is not None:
            spread = not_negative(self.sd, "the sd of the surface tension", "None or a standard deviation")
            object.__setattr__(self, "sd", spread)
        if not isinstance(self.normalisation, str) or self.normalisation not in ("E", "eE"):
            raise InputError(f"normalisation is {self.normalisation!r}: expected 'E' or 'eE' (epsilon times E)")
        if self.unit is not None and not isinstance(self.unit, str):
            raise InputError(f"the unit of {_NAME} is {shown(self.unit)}: expected a name such as 'J/m^2', or None")
        if (
            self.unit is not None and has_pint() and energy_power(self.unit, _NAME) is None
        ):  # pint is not needed to load
            raise InputError(
                f"{_NAME} is in {self.unit}: expected an energy per area such as J/m^2 or mN/m (for a film an energy "
                "per length such as J/m)"
            )

    @classmethod
    def of(cls, tension: float | str | tuple[float, float] | SurfaceTension) -> SurfaceTension:
        """Return a tension as it is; read a number, a pair (value, standard deviation), a text, or a quantity of pint.

        >>> SurfaceTension.of("0.3 J/m^2 +- 5 %")
        SurfaceTension(value=0.3, sd=0.015, normalisation='E', unit='J/m^2')
        """
        if isinstance(tension, SurfaceTension):
            return tension
        if isinstance(tension, str):
            return cls._from_text(tension)
        if hasattr(tension, "magnitude") and hasattr(tension, "units"):
            value, unit = parse_quantity(tension, _NAME)
            return cls(value, unit=unit)
        if isinstance(tension, tuple | list):
            if len(tension) != 2:
                raise InputError(
                    f"surface tension is {shown(tension)}: expected a number, or a pair (value, standard deviation)"
                )
            return cls(*tension)
        return cls(tension)

    @classmethod
    def _from_text(cls, text: str) -> SurfaceTension:
        """Read "0.3 J/m^2 +- 5 %", "0.3 +- 0.01 J/m^2" or "0.3 J/m^2 +- 15 mJ/m^2"."""
        first, *rest = _PLUS_MINUS.split(text)
        if len(rest) > 1:
            raise InputError(f"{_NAME} is {shown(text)}: expected one value and one error, such as {_EXAMPLE!r}")
        value, unit = parse_quantity(first, _NAME)
        if not rest:
            return cls(value, unit=unit)
        if (percent := _PERCENT.fullmatch(rest[0])) is not None:
            return cls(value, abs(value) * parse_quantity(percent[1], _NAME)[0] / 100.0, unit=unit)
        sd, of = parse_quantity(rest[0], f"the error of {_NAME}")
        if unit is not None and of is not None:
            sd = convert(sd, of, unit, f"the error of {_NAME}")
        return cls(value, sd, unit=unit or of)


@dataclass(frozen=True)
class Scale:
    """The physical member of the scale class: epsilon, and what it came from.

    ``epsilon_sd`` is the part of epsilon's standard deviation that comes from the tension, None when the tension
    has none.
    """

    epsilon: float
    epsilon_sd: float | None
    tension: SurfaceTension
    tension_integral: float

    @property
    def kappa(self) -> float:
        """The coefficient sigma / C_H of the energy kappa/2 |grad u|^2 + f(u), in either normalisation."""
        return self.tension.value / self.tension_integral


def calibrate(law: Law, tension: float | str | tuple[float, float] | SurfaceTension) -> Scale:
    """Return the scale of an effective force: epsilon = sigma/C_H for E, sqrt(gamma/C_H) for epsilon E.

    Refused where C_H = 0 or H < 0 somewhere inside. Extra stationary points with H > 0 are not an obstacle.

    >>> from doublewell.law import named_law
    >>> law = named_law("quartic").effective(0.03)
    >>> round(calibrate(law, named_law("quartic").surface_tension(epsilon=1.0)).epsilon, 12)
    0.03
    """
    tension, refused = SurfaceTension.of(tension), refusal_of(check_law(law))
    if refused is not None:
        raise InputError(refused.reason)
    integral, power = law.tension_integral, epsilon_power(tension.normalisation)
    epsilon = (tension.value / integral) ** power
    spread = None if tension.sd is None else power * epsilon * tension.sd / tension.value
    return Scale(epsilon, spread, tension, integral)


def epsilon_power(normalisation: Normalisation) -> float:
    """Return the power of kappa = sigma / C_H that epsilon is: how a tension scales the energies of this equation."""
    return 1.0 if normalisation == "E" else 0.5


class NoScale(StrEnum):
    """Why a law carries no scale."""

    FLAT_LAW = "flat-law"
    UNEQUAL_DEPTHS = "unequal-depths"
    NO_INTERFACE = "no-interface"
    ZERO_LAW = "zero-law"


class Refusal(NamedTuple):
    """Why a law carries no scale, the number behind it, and a sentence.

    The number is the lower bound of a flat law, H(high) - H(low) of unequal depths, the lowest H without an interface.
    """

    kind: NoScale
    number: float
    reason: str


def refusal_of(law: Law, bound: float | None = None) -> Refusal | None:
    """Return why a law carries no scale, None where it does; `bound` is the lower bound of its coefficients."""
    if bound is not None and np.all(law.coefficients <= _FLAT * bound):
        return Refusal(
            NoScale.FLAT_LAW,
            bound,
            "the law is flat at its lower bound, so the data show no double well and the force is not a measurement; "
            f"check the scale of the field, q, dx and dt, or compare with {option('constraint', 'none')}",
        )
    try:
        integral = law.tension_integral
    except InputError as error:
        tilted = law.tilt != 0.0
        kind, number = (NoScale.UNEQUAL_DEPTHS, law.tilt) if tilted else (NoScale.NO_INTERFACE, law.lowest)
        return Refusal(kind, number, str(error))
    if integral == 0.0:
        reason = "the primitive is zero, so no surface tension can scale it: expected a force that is not zero"
        return Refusal(NoScale.ZERO_LAW, 0.0, reason)
    return None


def why_no_scale() -> str:
    """Return why epsilon and F are not determined without a surface tension."""
    return (
        "epsilon and F are not determined: the dynamics contain only G = F'/epsilon^2, and (s epsilon, s^2 F) gives "
        f"the same movie for every s; pass {option('surface_tension')} to fix the scale"
    )


def check_units(tension: SurfaceTension | None, axes: int, length: str | None, time: str | None) -> None:
    """Refuse units that do not belong together, before anything is fitted."""
    for unit, like, name in ((length, "m", "length_unit"), (time, "s", "time_unit")):
        if unit is not None:
            check_dimension(unit, like, name)
    if tension is None or tension.unit is None:
        return
    if length is None or time is None:
        lacks = "lengths" if length is None else "times"
        raise InputError(
            f"the surface tension is in {tension.unit}, but the record's {lacks} have no unit: pass "
            f"{option('length_unit', 'um')} and {option('time_unit', 's')}, or whatever they are, with the record, or "
            "give the tension as a plain number in the record's own units"
        )
    tension_power(tension.unit, axes)


def tension_power(unit: str, axes: int) -> int:
    """Return k of a tension in energy per length^k; refuse one that a record of so many axes cannot have."""
    power = energy_power(unit, "the surface tension")
    if power is None or power < axes - 1:
        words = {3: "an energy per area such as J/m^2", 2: "an energy per area (J/m^2) or per length (J/m)"}
        wanted = words.get(axes, "an energy per area (J/m^2), per length (J/m) or an energy (J)")
        raise InputError(
            f"the surface tension is in {unit}, which does not fit a record of {axes} space axes: expected {wanted}"
        )
    return power
