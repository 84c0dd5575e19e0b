"""Result: the law that was found, its scale, and the numbers that defend it. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doublewell.calibrate import WHY_NO_SCALE, Scale
from doublewell.errors import InputError
from doublewell.estimate import RidgeChoice, SupportFit
from doublewell.law import Law, Structure
from doublewell.law.family import Array
from doublewell.survey import Survey

__all__ = ["Diagnostics", "Result", "Settings"]


@dataclass(frozen=True)
class Settings:
    """What was asked, in full: enough to do it again."""

    version: str
    method: str
    degree: int
    constraint: str
    ridge: float | str | None
    supports: tuple[tuple[int, float], ...]
    supports_rule: str
    derivative: str
    shape: tuple[int, ...]
    dx: tuple[float, ...]
    dt: float
    q: float
    boundary: str | None


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """The numbers behind an estimate.

    ``rows`` counts the weak moments; ``scaled_condition`` is the condition number of the design with unit columns;
    ``active`` lists the coefficients at their lower bound ``bound``; ``kkt`` is the relative violation of optimality;
    ``residual`` is |A g - d| / |d|; ``unconstrained`` are the coefficients without bound and ridge; ``supports`` what
    each support alone says and ``support_spread`` their largest relative difference in the force.
    """

    rows: int
    condition: float
    scaled_condition: float
    active: tuple[int, ...]
    bound: float | None
    kkt: float
    residual: float
    unconstrained: Array
    ridge: RidgeChoice | None
    supports: tuple[SupportFit, ...]
    support_spread: float
    survey: Survey
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Result:
    """An identified law: the effective force G, and with a surface tension also epsilon and F.

    ``print(result)`` gives the report. ``refusal`` says why a supplied surface tension could not be used.
    """

    law: Law
    scale: Scale | None
    refusal: str | None
    diagnostics: Diagnostics
    settings: Settings

    @property
    def coefficients(self) -> Array:
        """The coefficients g_j of the effective force, in units of 1/length^2."""
        return self.law.coefficients

    @property
    def degree(self) -> int:
        """Degree of the bracket polynomial."""
        return self.law.family.degree

    @property
    def structure(self) -> Structure:
        """Stationary points and whether the law is a double well."""
        return self.law.structure

    @property
    def epsilon(self) -> float:
        """The interfacial scale; raises when no surface tension fixed it."""
        return self._scale().epsilon

    def force(self, u: Any) -> Any:
        """Evaluate the effective force G(u) = F'(u) / epsilon^2."""
        return self.law.force(u)

    def primitive(self, u: Any) -> Any:
        """Evaluate H(u) = F(u) / epsilon^2, zero at the pure phases."""
        return self.law.primitive(u)

    def potential(self, u: Any) -> Any:
        """Evaluate F(u); raises when no surface tension fixed the scale."""
        return self.law.potential(u, epsilon=self._scale().epsilon)

    def _scale(self) -> Scale:
        if self.scale is None:
            raise InputError(self.refusal or WHY_NO_SCALE)
        return self.scale

    def __str__(self) -> str:
        from doublewell.result.text import render

        return render(self)
