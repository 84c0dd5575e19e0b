"""Calibrate: an independently measured surface tension fixes epsilon and the potential, or a mixture's temperature."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from math import hypot
from typing import Any, Literal, NamedTuple

import numpy as np

from doublewell.errors import InputError, not_negative, option, positive, shown
from doublewell.law import Law, check_law
from doublewell.units import check_dimension, convert, energy_power, has_pint, parse_quantity

Normalisation = Literal["E", "eE"]

_NAME = "the surface tension"
_EXAMPLE = "0.3 J/m^2 +- 5 %"
_BOLTZMANN = 1.380649e-23  # J/K
_FLAT = 10.0  # bounds; coefficients below are zero
_PER_LENGTH = ("J", "J/m", "J/m^2")
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
        if self.unit and has_pint() and energy_power(self.unit, _NAME) is None:  # pint is not needed to load
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
        if isinstance(tension, str):  # "0.3 J/m^2 +- 5 %", "0.3 +- 0.01 J/m^2" or "0.3 J/m^2 +- 15 mJ/m^2"
            value, sd, unit = _with_error(tension, _NAME, _EXAMPLE)
            return cls(value, sd, unit=unit)
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


def _with_error(text: str, name: str, example: str) -> tuple[float, float | None, str | None]:
    """Return value, standard deviation and unit of a text such as "0.3 J/m^2 +- 5 %"."""
    first, *rest = _PLUS_MINUS.split(text)
    if len(rest) > 1:
        raise InputError(f"{name} is {shown(text)}: expected one value and one error, such as {example!r}")
    value, unit = parse_quantity(first, name)
    if not rest:
        return value, None, unit
    if (percent := _PERCENT.fullmatch(rest[0])) is not None:
        return value, abs(value) * parse_quantity(percent[1], name)[0] / 100.0, unit
    sd, of = parse_quantity(rest[0], f"the error of {name}")
    if unit is not None and of is not None:
        sd = convert(sd, of, unit, f"the error of {name}")
    return value, sd, unit or of


@dataclass(frozen=True)
class Mixing:
    """Temperature (K) and site volume (m^3) of a mixture: with the entropy of ideal mixing they fix kappa.

    The force has a_1 ln phi - a_2 ln(1 - phi), and kappa times these is k T / (v du) with du the distance of the pure
    values. ``volume`` are the volumes of a molecule of either component; one number is that of both. ``sd`` is the
    relative standard deviation of T / v.

    >>> f"{Mixing.of('300 K', '0.02 nm^3 +- 3 %').density:.4g} J/m^3"
    '4.142e+08 J/m^3'
    """

    temperature: float
    volume: tuple[float, float]
    sd: float | None = None

    def __post_init__(self) -> None:
        pair = self.volume if isinstance(self.volume, tuple | list) else (self.volume,) * 2
        if len(pair) != 2:
            raise InputError(f"the site volume is {shown(self.volume)}: expected one, or one for each component")
        object.__setattr__(self, "temperature", positive(self.temperature, "temperature", "in K"))
        object.__setattr__(self, "volume", tuple(positive(v, "site volume", "in m^3") for v in pair))
        if self.sd is not None:
            object.__setattr__(self, "sd", not_negative(self.sd, "the sd of T/v", "a fraction of it"))

    @classmethod
    def of(cls, temperature: float | str, volume: float | str) -> Mixing:
        """Read both as numbers in K and m^3 or as texts with units, each perhaps with an error."""
        values, errors = [], []
        for name, given, unit in (("the temperature", temperature, "K"), ("the site volume", volume, "m^3")):
            value, sd, own = _with_error(given, name, f"1 {unit}") if isinstance(given, str) else (given, None, None)
            errors += [] if sd is None else [sd / value]
            values.append(value if own is None else convert(value, own, unit, name))
        return cls(values[0], (values[1], values[1]), hypot(*errors) if errors else None)

    @property
    def density(self) -> float:
        """The energy density k T (1/v_1 + 1/v_2) in J/m^3."""
        return _BOLTZMANN * self.temperature * (1.0 / self.volume[0] + 1.0 / self.volume[1])


@dataclass(frozen=True)
class Temperature:
    """The temperature of a movie with thermal noise: kappa is kT / theta. ``value`` is in K, or kT itself.

    ``unit`` is "K", or None where the value is kT in units of one's own. ``sd`` is the standard deviation of the value.
    ``thickness``, in m, is that of the film of which a movie of two axes is: energies are then per volume and area.

    >>> Temperature.of("300 K +- 1 K")
    Temperature(value=300.0, unit='K', sd=1.0, thickness=None)
    """

    value: float
    unit: str | None = None
    sd: float | None = None
    thickness: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive(self.value, "temperature", "in K as text, or kT as a number"))
        if self.unit not in (None, "K"):
            raise InputError(f"the unit of the temperature is {shown(self.unit)}: expected 'K', or None for kT")
        if self.sd is not None:
            object.__setattr__(self, "sd", not_negative(self.sd, "the sd of the temperature"))
        if self.thickness is not None:
            object.__setattr__(self, "thickness", positive(self.thickness, "thickness", "of the film, in m"))
            if self.unit is None:
                raise InputError("a thickness goes with a temperature in K: expected a text such as '300 K, 50 nm'")

    @classmethod
    def of(cls, value: Any) -> Temperature:
        """Return a temperature as it is; read kT as a number, or a text such as "300 K", "300 K +- 1 K, 50 nm"."""
        if isinstance(value, Temperature):
            return value
        if hasattr(value, "magnitude") and hasattr(value, "units"):
            value = f"{float(value.magnitude)!r} {value.units!s}"
        if not isinstance(value, str):
            return cls(value)
        first, comma, film = value.partition(",")
        number, sd, unit = _with_error(first, "the temperature", "300 K +- 1 K")
        if unit is None:
            return cls(number, None, sd)
        thick, own = parse_quantity(film, "the thickness") if comma else (None, None)
        if comma and own is None:
            raise InputError(f"the thickness is {shown(film.strip())}: expected a length with its unit, as in '50 nm'")
        kelvin = number if unit in ("K", "kelvin") else convert(number, unit, "K", "the temperature")
        metres = None if thick is None or own is None else convert(thick, own, "m", "the thickness")
        return cls(kelvin, "K", sd, metres)

    def check(
        self, axes: int, length_unit: str | None, time_unit: str | None, tension: SurfaceTension | Mixing | None = None
    ) -> None:  # fmt: skip
        """Refuse a temperature that a record or a tension has no units for, and a thickness of what is not a film."""
        if self.unit is not None:
            like = SurfaceTension(1.0, unit=_PER_LENGTH[axes - 1])
            check_units(like, axes, length_unit, time_unit, "the temperature is in K")
        if self.thickness is not None and axes != 2:
            raise InputError(f"a thickness is that of a film of two axes, and the record has {axes}: leave it out")
        if not isinstance(tension, SurfaceTension):
            return
        own, given = self.energy(axes, length_unit)[1], tension.unit
        kinds = [None if unit is None else energy_power(unit, _NAME) for unit in (own, given)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{_NAME} is {f'in {given}' if given else 'a plain number'} and that of thermal noise "
                f"{f'in {own}' if own else 'a multiple of kT'}, so that they cannot be compared: expected both with "
                "units, of a film with its thickness too ('300 K, 50 nm'), or both without"
            )

    def energy(self, axes: int, length_unit: str | None) -> tuple[float, str | None]:
        """Return kT such that its ratio to theta is kappa where a tension is in the second value, a unit."""
        if self.unit is None:
            return self.value, None
        assert length_unit is not None
        metre, power = convert(1.0, length_unit, "m", "length_unit"), axes - 1
        kt = _BOLTZMANN * self.value / metre**power
        if self.thickness is not None:
            kt, power = kt / self.thickness, power + 1
        return kt, _PER_LENGTH[power]


def scaling_of(value: Any) -> SurfaceTension | Mixing:
    """Return what fixes the scale; a text of two quantities, "300 K, 0.02 nm^3", is a Mixing."""
    if isinstance(value, Mixing):
        return value
    if isinstance(value, str) and value.count(",") == 1:
        return Mixing.of(*value.split(","))
    return SurfaceTension.of(value)


@dataclass(frozen=True)
class Scale:
    """The physical member of the scale class: epsilon, and what it came from.

    ``epsilon_sd`` is the part of epsilon's standard deviation that comes from the tension, None when the tension
    has none. With ``mixing`` it came from the entropy of ideal mixing: kappa is this number over (a_1 + a_2) du, and
    the tension follows. With ``thermal`` it came from thermal noise: kappa is this number, kT, over theta.
    """

    epsilon: float
    epsilon_sd: float | None
    tension: SurfaceTension
    tension_integral: float
    mixing: float | None = None
    thermal: float | None = None

    @property
    def kappa(self) -> float:
        """The coefficient sigma / C_H of the energy kappa/2 |grad u|^2 + f(u), in either normalisation."""
        return self.tension.value / self.tension_integral


def calibrate(
    law: Law, tension: float | str | tuple[float, float] | SurfaceTension | Mixing, *, length_unit: str | None = None
) -> Scale:
    """Return the scale of an effective force: epsilon = sigma/C_H for E, sqrt(gamma/C_H) for epsilon E.

    Refused where C_H = 0 or H < 0 somewhere inside. Extra stationary points with H > 0 are not an obstacle. A Mixing
    needs the unit of the lengths that the law is given in.

    >>> from doublewell.law import named_law
    >>> law = named_law("quartic").effective(0.03)
    >>> round(calibrate(law, named_law("quartic").surface_tension(epsilon=1.0)).epsilon, 12)
    0.03
    """
    tension = scaling_of(tension)
    refused, mixing = refusal_of(check_law(law), scaling=tension), None
    if refused is not None:
        raise InputError(refused.reason)
    if isinstance(tension, Mixing):
        check_units(tension, 1, length_unit, "s")
        assert length_unit is not None
        mixing, sd = tension.density * convert(1.0, length_unit, "m", "length_unit"), tension.sd
        value = law.tension_integral * mixing / float(law.family.entropies(law.coefficients)[0])
        tension = SurfaceTension(value, None if sd is None else sd * value, unit="J/m^2")
    integral, power = law.tension_integral, epsilon_power(tension.normalisation)
    epsilon = (tension.value / integral) ** power
    spread = None if tension.sd is None else power * epsilon * tension.sd / tension.value
    return Scale(epsilon, spread, tension, integral, mixing)


def thermal_scale(law: Law, temperature: Temperature, theta: float, axes: int, length_unit: str | None) -> Scale:
    """Return the scale that thermal noise gives: kappa = kT / theta, and so the tension kappa C_H."""
    kt, unit = temperature.energy(axes, length_unit)
    integral, kappa, sd = law.tension_integral, kt / theta, temperature.sd
    spread = None if sd is None else sd / temperature.value * kappa
    tension = SurfaceTension(kappa * integral, None if spread is None else spread * integral, unit=unit)
    return Scale(kappa, spread, tension, integral, thermal=kt)


def epsilon_power(normalisation: Normalisation) -> float:
    """Return the power of kappa = sigma / C_H that epsilon is: how a tension scales the energies of this equation."""
    return 1.0 if normalisation == "E" else 0.5


class NoScale(StrEnum):
    """Why a law carries no scale."""

    FLAT_LAW = "flat-law"
    UNEQUAL_DEPTHS = "unequal-depths"
    NO_INTERFACE = "no-interface"
    ZERO_LAW = "zero-law"
    NO_ENTROPY = "no-entropy"
    UNSEEN_NOISE = "unseen-noise"
    UNKNOWN_OPTICS = "unknown-optics"
    UNBALANCED = "unbalanced-noise"
    NOT_CONVERGED = "not-converged"


class Refusal(NamedTuple):
    """Why a law carries no scale, the number behind it, and a sentence.

    The number is the lower bound of a flat law, H(high) - H(low) of unequal depths, the lowest H without an interface.
    """

    kind: NoScale
    number: float
    reason: str


def refusal_of(law: Law, bound: float | None = None, scaling: SurfaceTension | Mixing | None = None) -> Refusal | None:
    """Return why a law carries no scale, None where it does; `bound` is the lower bound of its coefficients."""
    if isinstance(scaling, Mixing) and not (size := float(law.family.entropies(law.coefficients)[0])) > 0.0:
        reason = (
            f"the entropy of ideal mixing is not positive (a_1 + a_2 = {size:.3g}), so that it does not fix kappa: the "
            "values of the record do not come near a pure component, or u is not a composition"
        )
        return Refusal(NoScale.NO_ENTROPY, size, reason)
    if bound is not None and np.all(law.coefficients <= _FLAT * bound):
        reason = (
            "the law is flat at its lower bound, so the data show no double well and the force is not a measurement; "
            f"check the scale of the field, q, dx and dt, or compare with {option('constraint', 'none')}"
        )
        return Refusal(NoScale.FLAT_LAW, bound, reason)
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


def why_no_scale(thermal: bool = False) -> str:
    """Return why epsilon and F are not determined without a surface tension, or of a field with noise a temperature."""
    if thermal:
        return f"kappa, F and the tension are known in units of kT only: pass {option('temperature')} to fix the scale"
    return (
        "epsilon and F are not determined: the dynamics contain only G = F'/epsilon^2, and (s epsilon, s^2 F) gives "
        f"the same movie for every s; pass {option('surface_tension')} to fix the scale"
    )


def check_units(
    tension: SurfaceTension | Mixing | None, axes: int, length: str | None, time: str | None, words: str = ""
) -> None:  # fmt: skip
    """Refuse units that do not belong together, before anything is fitted; `words` name what else is in a unit."""
    for unit, like, name in ((length, "m", "length_unit"), (time, "s", "time_unit")):
        if unit is not None:
            check_dimension(unit, like, name)
    unit = "J/m^2" if isinstance(tension, Mixing) else None if tension is None else tension.unit
    if unit is None:
        return
    if length is None or time is None:
        lacks = "lengths" if length is None else "times"
        raise InputError(
            f"{words or f'{_NAME} is in {unit}'}, but the record's {lacks} have no unit: pass "
            f"{option('length_unit', 'um')} and {option('time_unit', 's')}, or whatever they are, with the record, or "
            "give it as a plain number in the record's own units"
        )
    tension_power(unit, axes)


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
