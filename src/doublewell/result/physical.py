"""Physical: the numbers of a result in physical units, and the paper's pair beside them.

The model is E = integral of kappa/2 |grad u|^2 + f(u), u_t = -L dE/du. So q = L kappa and G = f'/kappa, and a measured
tension sigma gives kappa = sigma/C_H, f = kappa H, L = q/kappa.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.calibrate import Normalisation, Scale, check_tension_unit
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Scalar
from doublewell.result.result import Result
from doublewell.units import Parts, check_dimension, factor, unit_text

_LEVEL = 0.95


@dataclass(frozen=True)
class Measured:
    """A number with its unit; ``low`` and ``high`` are its 95 % interval, None where the reading gives none.

    ``sd`` is what the surface tension's error alone makes of it, where that is known.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    sd: float | None = None

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.value:.5g} {self.unit} (95 %: {self.low:.5g} to {self.high:.5g})"
        alone = "" if self.sd is None else f" +- {self.sd:.2g} (from the surface tension alone)"
        return f"{self.value:.5g} {self.unit}{alone}"


@dataclass(frozen=True, eq=False)
class Physical:
    """A law in physical units.

    ``kappa`` and ``mobility`` (L) are the coefficients of E and of the flow, ``barrier`` is that of f, ``width`` the
    length of a planar interface over 90 % of the step between the phases, ``diffusion`` q. The paper's pair: with the
    normalisation E epsilon is kappa and F is kappa f; with epsilon E epsilon is sqrt(kappa) and F is f.
    ``paper_barrier`` is the barrier of F.
    """

    kappa: Measured
    mobility: Measured
    barrier: Measured
    width: Measured | None
    diffusion: Measured
    epsilon: Measured
    paper_barrier: Measured
    normalisation: Normalisation
    result: Result

    def bulk_energy(self, u: Any) -> Array:
        """Return f(u) in the unit of the barrier."""
        factor = self.barrier.value / float(self.result.primitive(self.result.law.maximum))
        return np.asarray(factor * self.result.primitive(u))

    def band(self, u: ArrayLike, *, level: float = _LEVEL) -> tuple[Array, Array]:
        """Return the pointwise band of f(u) in the unit of the barrier, of a trajectory fit."""
        factor = self.barrier.value / (self.result.kappa * float(self.result.primitive(self.result.law.maximum)))
        low, high = self.result.band("bulk_energy", u, level=level)
        return factor * low, factor * high

    def __str__(self) -> str:
        from doublewell.report.text import physical_text

        return physical_text(self)


def physical(
    result: Result,
    *,
    length: str | None = None,
    time: str | None = None,
    tension: str | None = None,
    show: tuple[str, str, str] = ("J", "m", "s"),
) -> Physical:
    """Return kappa, L, f and the width of a result in physical units, with intervals.

    Parameters
    ----------
    length, time, tension
        Names of the units of dx, of dt and of the surface tension, where the result does not know them; they go
        before what it knows.
    show
        Units of energy, length and time for the answer. The width stays in the record's unit of length.

    The intervals hold what those of the result hold; q, dx and dt count as exact. Units that do not fit are refused.
    """
    for name, like in zip(show, ("J", "m", "s"), strict=True):
        check_dimension(name, like, "show")
    asked, scale = result.settings, result._scale()
    length, time = length or asked.length_unit, time or asked.time_unit
    unit = tension or scale.tension.unit
    if length is None or time is None or unit is None:
        given = {"length=": length, "time=": time, "tension=": unit}
        missing = ", ".join(name for name, value in given.items() if value is None)
        raise InputError(
            f"the result does not know all its units: pass {missing}, such as length='um', time='s', tension='J/m^2'"
        )
    power = check_tension_unit(unit, len(asked.dx), length, time)
    return _measured(result, scale, _Frame(length, time, unit, power, show))


Ends = tuple[float, float | None, float | None, float | None]  # value, low, high, sd


@dataclass(frozen=True)
class _Frame:
    """The units of a result's numbers, and those to show."""

    length: str
    time: str
    tension: str
    power: int
    show: tuple[str, str, str]

    def measured(self, ends: Ends, given: Parts, target: Parts) -> Measured:
        """Convert value, low and high, and sd."""
        size, unit = factor(given, target), unit_text(target)
        value, low, high, sd = (None if x is None else size * x for x in ends)
        assert value is not None
        return Measured(value, unit, low, high, sd)


def _measured(result: Result, scale: Scale, frame: _Frame) -> Physical:
    energy, metre, second = frame.show
    q, k, order = result.settings.q, frame.power, result.problem.dynamics.order
    share = None if scale.tension.sd is None else scale.tension.sd / scale.tension.value
    ends = _ends(result, "kappa", scale.kappa, share)
    kappa = frame.measured(ends, ((frame.tension, 1), (frame.length, 1)), ((energy, 1), (metre, 1 - k)))
    barrier = frame.measured(
        _ends(result, "bulk_barrier", scale.kappa * result.law.barrier, share),
        ((frame.tension, 1), (frame.length, -1)),
        ((energy, 1), (metre, -1 - k)),
    )
    mobility = frame.measured(
        _inverse(q, ends),
        ((frame.length, order - 1), (frame.time, -1), (frame.tension, -1)),
        ((metre, order - 1 + k), (energy, -1), (second, -1)),
    )
    given, target = ((frame.length, order), (frame.time, -1)), ((metre, order), (second, -1))
    flow = frame.measured((q, None, None, None), given, target)
    half = scale.tension.normalisation == "eE"
    return Physical(
        kappa=kappa,
        mobility=mobility,
        barrier=barrier,
        width=_width(result, frame.length),
        diffusion=flow,
        epsilon=_root(kappa, ((energy, 0.5), (metre, 0.5 * (1 - k)))) if half else kappa,
        paper_barrier=barrier if half else _paper_barrier(result, scale, frame),
        normalisation=scale.tension.normalisation,
        result=result,
    )


def _ends(result: Result, name: Scalar, value: float, share: float | None) -> Ends:
    """Return a value with its interval; where the reading gives none, with what the tension's error makes of it."""
    sd = None if share is None else value * share
    if result.posterior is None:
        return value, None, None, sd
    try:
        return value, *result.interval(name, level=_LEVEL), None
    except InputError:  # the data allow laws without an interface
        return value, None, None, sd


def _inverse(q: float, ends: Ends) -> Ends:
    """Return L = q / kappa: the ends change places."""
    value, low, high, sd = ends
    spread = None if sd is None else q / value * sd / value
    return q / value, None if high is None else q / high, None if low is None else q / low, spread


def _width(result: Result, length: str) -> Measured | None:
    law = result.law
    if not law.has_interface:
        return None
    value, low, high, _ = _ends(result, "width", law.interface_width(), None)
    return Measured(value, length, low, high)


def _root(kappa: Measured, unit: Parts) -> Measured:
    """Return epsilon = sqrt(kappa)."""
    low, high = (None if x is None else x**0.5 for x in (kappa.low, kappa.high))
    sd = None if kappa.sd is None else 0.5 * kappa.value**0.5 * kappa.sd / kappa.value
    return Measured(kappa.value**0.5, unit_text(unit), low, high, sd)


def _paper_barrier(result: Result, scale: Scale, frame: _Frame) -> Measured:
    """Return F(0) = kappa f(0) of the normalisation E."""
    energy, metre, _ = frame.show
    share = None if scale.tension.sd is None else 2.0 * scale.tension.sd / scale.tension.value
    ends = _ends(result, "barrier", scale.epsilon**2 * result.law.barrier, share)
    return frame.measured(ends, ((frame.tension, 2),), ((energy, 2), (metre, -2 * frame.power)))
