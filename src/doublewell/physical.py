"""Physical: the numbers of a result in physical units, and the paper's pair.

The model is E = integral of kappa/2 |grad u|^2 + f(u), u_t = -L dE/du. So q = L kappa and G = f'/kappa, and a measured
tension sigma gives kappa = sigma/C_H, f = kappa H, L = q/kappa.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.calibrate import Normalisation, check_units, tension_power
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Scalar
from doublewell.law import Law
from doublewell.result import Result
from doublewell.units import Parts, check_dimension, factor, unit_text

_LEVEL = 0.95
Ends = tuple[float, float | None, float | None, float | None]  # value, low, high, sd


@dataclass(frozen=True)
class Measured:
    """A number with its unit; ``low`` and ``high`` are its 95 % interval, None where the fit gives none.

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

    def rows(self) -> Iterator[tuple[str, str, str, Measured]]:
        """Yield (key, name, symbol, number) of each number that is known."""
        law, symbol = self.result.law, self.result.problem.dynamics.symbol
        at = f"{law.maximum:.4g}"
        yield "kappa", "gradient coefficient kappa", "kappa", self.kappa
        yield "barrier", f"barrier f({at}) of f = kappa H", f"f({at})", self.barrier
        yield "mobility", f"mobility {symbol} = q/kappa", symbol, self.mobility
        yield "diffusion", "diffusion coefficient q", "q", self.diffusion
        if self.width is not None:
            yield "width", width_name(law), "width", self.width
        yield "epsilon", "epsilon of the paper", "epsilon", self.epsilon
        yield "paper_barrier", f"F({at}) of the paper", f"F({at})", self.paper_barrier

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
    record, scale = result.problem.records[0], result._scale()
    length, time = length or record.length_unit, time or record.time_unit
    unit = tension or scale.tension.unit
    if length is None or time is None or unit is None:
        given = {"length=": length, "time=": time, "tension=": unit}
        missing = ", ".join(name for name, value in given.items() if value is None)
        raise InputError(
            f"the result does not know all its units: pass {missing}, such as length='um', time='s', tension='J/m^2'"
        )
    check_units(None, len(record.dx), length, time)
    k, order = tension_power(unit, len(record.dx)), result.problem.dynamics.order
    (energy, metre, second), q, half = show, result.q, scale.tension.normalisation == "eE"
    kappa = _ends(result, "kappa", scale.kappa)
    in_space = _measured(kappa, ((unit, 1), (length, 1)), ((energy, 1), (metre, 1 - k)))
    bulk = _ends(result, "bulk_barrier", scale.kappa * result.law.barrier)
    barrier = _measured(bulk, ((unit, 1), (length, -1)), ((energy, 1), (metre, -1 - k)))
    value, low, high, sd = kappa
    inverse = (q / value, high and q / high, low and q / low, sd and q / value * sd / value)  # the ends change places
    paper = barrier
    if not half:  # F = kappa f, of the normalisation E
        ends = _ends(result, "barrier", scale.epsilon**2 * result.law.barrier, power=2.0)
        paper = _measured(ends, ((unit, 2),), ((energy, 2), (metre, -2 * k)))
    width = _ends(result, "width", result.law.interface_width(), power=None) if result.law.has_interface else None
    return Physical(
        kappa=in_space,
        mobility=_measured(
            inverse, ((length, order - 1), (time, -1), (unit, -1)), ((metre, order - 1 + k), (energy, -1), (second, -1))
        ),
        barrier=barrier,
        width=None if width is None else Measured(width[0], length, *width[1:3]),
        diffusion=_measured((q, None, None, None), ((length, order), (time, -1)), ((metre, order), (second, -1))),
        epsilon=_root(in_space, unit_text(((energy, 0.5), (metre, 0.5 * (1 - k))))) if half else in_space,
        paper_barrier=paper,
        normalisation=scale.tension.normalisation,
        result=result,
    )


def _ends(result: Result, name: Scalar, value: float, power: float | None = 1.0) -> Ends:
    """Return a value with its interval; where the fit gives none, with what the tension's error makes of it."""
    tension, mixes = result._scale().tension, result._scale().mixing is not None
    sd = None if tension.sd is None or power is None or mixes else power * value * tension.sd / tension.value
    if result.posterior is None:
        return value, None, None, sd
    try:
        return value, *result.interval(name, level=_LEVEL), None
    except InputError:  # the data allow laws without an interface
        return value, None, None, sd


def width_name(law: Law) -> str:
    """Name the width of an interface by its levels, 90 % of the way from the middle to the phases."""
    return f"planar interface from u = {law.middle - 0.9 * law.half:.4g} to {law.middle + 0.9 * law.half:.4g}"


def _measured(ends: Ends, given: Parts, target: Parts) -> Measured:
    """Convert value, low, high and sd."""
    size = factor(given, target)
    low, high, sd = (None if x is None else size * x for x in ends[1:])
    return Measured(size * ends[0], unit_text(target), low, high, sd)


def _root(kappa: Measured, unit: str) -> Measured:
    """Return epsilon = sqrt(kappa)."""
    low, high = (None if x is None else x**0.5 for x in (kappa.low, kappa.high))
    sd = None if kappa.sd is None else 0.5 * kappa.value**0.5 * kappa.sd / kappa.value
    return Measured(kappa.value**0.5, unit, low, high, sd)
