"""Calibrate: one independently measured surface tension fixes epsilon and the potential."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from doublewell.checks import not_negative, positive, shown
from doublewell.errors import InputError
from doublewell.law import Law, check_law

__all__ = ["WHY_NO_SCALE", "Normalisation", "Scale", "SurfaceTension", "calibrate"]

Normalisation = Literal["E", "eE"]
WHY_NO_SCALE = (
    "epsilon and F are not determined: the dynamics contain only G = F'/epsilon^2, and (s epsilon, s^2 F) gives the "
    "same movie for every s; pass surface_tension= (--surface-tension in the shell) to fix the scale"
)


@dataclass(frozen=True)
class SurfaceTension:
    """A measured surface tension, its standard deviation, and the energy it belongs to.

    ``normalisation`` is "E" for the energy with (epsilon/2) |grad u|^2 + F/epsilon, whose planar interface costs
    sigma = epsilon C_H, or "eE" for epsilon times that energy, whose interface costs epsilon^2 C_H.
    """

    value: float
    sd: float | None = None
    normalisation: Normalisation = "E"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive(self.value, "surface tension"))
        if self.sd is not None:
            spread = not_negative(self.sd, "the sd of the surface tension", "None or a standard deviation")
            object.__setattr__(self, "sd", spread)
        if not isinstance(self.normalisation, str) or self.normalisation not in ("E", "eE"):
            raise InputError(f"normalisation is {self.normalisation!r}: expected 'E' or 'eE' (epsilon times E)")

    @classmethod
    def of(cls, tension: float | tuple[float, float] | SurfaceTension) -> SurfaceTension:
        """Return a tension as it is; a bare number, or a pair (value, standard deviation), is of the energy E.

        >>> SurfaceTension.of((0.94, 0.01))
        SurfaceTension(value=0.94, sd=0.01, normalisation='E')
        """
        if isinstance(tension, SurfaceTension):
            return tension
        if isinstance(tension, tuple | list):
            if len(tension) != 2:
                raise InputError(
                    f"surface tension is {shown(tension)}: expected a number, or a pair (value, standard deviation)"
                )
            return cls(*tension)
        return cls(tension)


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


def calibrate(law: Law, tension: float | tuple[float, float] | SurfaceTension) -> Scale:
    """Return the scale of an effective force: epsilon = sigma/C_H for E, sqrt(gamma/C_H) for epsilon E.

    Refused where C_H = 0 or H < 0 somewhere inside. Extra stationary points with H > 0 are no obstacle.

    >>> from doublewell.law import named_law
    >>> law = named_law("quartic").effective(0.03)
    >>> round(calibrate(law, named_law("quartic").surface_tension(epsilon=1.0)).epsilon, 12)
    0.03
    """
    tension = SurfaceTension.of(tension)
    integral = check_law(law).tension_integral
    if integral == 0.0:
        raise InputError("the primitive is zero, so no surface tension can scale it: expected a force that is not zero")
    ratio = tension.value / integral
    epsilon, power = (ratio, 1.0) if tension.normalisation == "E" else (sqrt(ratio), 0.5)
    spread = None if tension.sd is None else power * epsilon * tension.sd / tension.value
    return Scale(epsilon, spread, tension, integral)
