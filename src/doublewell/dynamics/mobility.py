"""Mobility: a rate that depends on the phase, q(u) = q m(u) with m positive and of mean 1, known or estimated.

log m is a Chebyshev series over the phases. q is then the mean of q(u) between the phases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from doublewell.errors import InputError, shown
from doublewell.hints import Array
from doublewell.law.family import namespace

FIRST, HIGHEST = 2, 6  # degrees of log m where the data choose it: of the first fit, and the highest
_REACH = 1.1  # half-distances from the middle of the phases, beyond which m is constant
_NODES = 24
_MOST, _NEAR = 16, 1e-6  # degree of a known one, and what it may leave


@dataclass(frozen=True)
class Mobility:
    """A known mobility, q(u) = q m(u): ``coefficients`` of T_1, T_2, ... of log m over the ``phases``.

    >>> rate = Mobility.of(lambda u: 1.0 + 0.5 * u)
    >>> round(float(rate(1.0) / rate(-1.0)), 4)
    3.0
    """

    coefficients: tuple[float, ...]
    phases: tuple[float, float] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        values = np.array(self.coefficients, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values)):
            raise InputError(
                f"the mobility has the coefficients {shown(self.coefficients)}: expected those of T_1, T_2, ... of its "
                "logarithm; of a function use Mobility.of(function)"
            )
        object.__setattr__(self, "coefficients", tuple(values.tolist()))

    @classmethod
    def of(cls, function: Callable[[Any], Any], phases: tuple[float, float] = (-1.0, 1.0)) -> Mobility:
        """Return the mobility of a function of u; its mean over the phases is taken out and belongs to q."""
        s = np.cos(np.pi * (np.arange(8 * _MOST) + 0.5) / (8 * _MOST))
        u = 0.5 * (phases[0] + phases[1]) + 0.5 * (phases[1] - phases[0]) * s
        values = np.asarray(function(u), dtype=np.float64) + 0.0 * u
        if not (np.all(np.isfinite(values)) and np.all(values > 0.0)):
            raise InputError("the mobility is not positive between the phases: expected q(u) > 0 there")
        series = np.polynomial.chebyshev.chebfit(s, np.log(values), _MOST)
        left = np.max(np.abs(np.polynomial.chebyshev.chebval(s, series) - np.log(values)))
        if left > _NEAR:
            raise InputError(
                f"the mobility is not smooth between the phases: a series of degree {_MOST} leaves {left:.1e} of its "
                f"logarithm, expected {_NEAR:.0e}"
            )
        return cls(tuple(series[1:].tolist()), phases)

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the phases, and half their distance."""
        return 0.5 * (self.phases[0] + self.phases[1]), 0.5 * (self.phases[1] - self.phases[0])

    @property
    def powers(self) -> tuple[float, ...]:
        """The logarithm of m in powers of s, which is -1 and +1 at the phases."""
        series = np.array((0.0, *self.coefficients))
        series[0] = np.log(self(self.centre[0])) - np.polynomial.chebyshev.chebval(0.0, series)
        return tuple(np.polynomial.chebyshev.cheb2poly(series).tolist())

    @property
    def reach(self) -> tuple[float, float]:
        """The phase values beyond which m is constant."""
        middle, half = self.centre
        return middle - _REACH * half, middle + _REACH * half

    @property
    def largest(self) -> float:
        """The largest m between the phases."""
        return float(np.max(relative_mobility(np.array(self.coefficients), np.linspace(-1.0, 1.0, 41))))

    def __call__(self, u: Any) -> Any:
        """Evaluate m(u)."""
        middle, half = self.centre
        return relative_mobility(np.array(self.coefficients), (np.asarray(u) - middle) / half)


def relative_mobility(coefficients: Any, s: Any) -> Any:
    """Return m at phase values with the phases at -1 and +1; constant beyond these. May be traced by JAX."""
    xp = namespace(s)
    nodes, weights = (xp.asarray(each, s.dtype) for each in _nodes(len(coefficients)))
    mean = 0.5 * xp.sum(weights * xp.exp(sum(c * row for c, row in zip(coefficients, nodes, strict=True))))
    return xp.exp(_series(coefficients, xp.clip(s, -_REACH, _REACH))) / mean


def pace(coefficients: Any) -> tuple[Any, Any]:
    """Return the rate that is stepped exactly, over q, and the mobility of phase values over that; JAX.

    The middle of the smallest and the largest m: so what is left is never more than what is stepped exactly, and steps
    of any length are stable. Every choice has the same solution, so it has no derivative.
    """
    import jax

    m = relative_mobility(coefficients, jax.numpy.linspace(-1.0, 1.0, _NODES + 1))
    middle = jax.lax.stop_gradient(0.5 * (m.max() + m.min()))
    return middle, lambda u: relative_mobility(coefficients, u) / middle


def acted(u: Any, curved: Any, force: Any, driving: Any, speed: Any) -> Any:
    """Return the force that is stepped, such that u_t over the stepped rate is L u (`curved`) less it."""
    force = force if driving is None else force - driving
    return force if speed is None else curved - speed(u) * (curved - force)


def _series(coefficients: Sequence[Any], s: Any) -> Any:
    """Return the sum of c_k T_k(s), k = 1, 2, ..."""
    before, now, total = 1.0 + 0.0 * s, s, 0.0
    for c in coefficients:
        total = total + c * now
        before, now = now, 2.0 * s * now - before
    return total


@lru_cache
def _nodes(count: int) -> tuple[Array, Array]:
    """Return T_1, T_2, ... at Gauss-Legendre nodes, and the weights of these."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(np.polynomial.chebyshev.chebvander(nodes, count)[:, 1:].T, dtype=np.float64), weights
