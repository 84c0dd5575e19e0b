"""Ideal mixing: forces of a conserved composition with the entropy of ideal mixing and terms of Redlich and Kister.

With phi in (0, 1) the fraction of the component that the high pure value stands for, and v = 2 phi - 1,

    f = a_1 phi ln phi + a_2 (1 - phi) ln(1 - phi) + sum_k b_k v^k,    G = f'/kappa.

a_1 = a_2 is the regular solution, unequal ones are those of Flory and Huggins with chains of different length. No
polynomial has the logarithms to an error below that of a good record.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.polynomial import Legendre, Polynomial
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law.family import Family, namespace
from doublewell.law.mixture import COEXISTING, INNER, Mixture
from doublewell.law.structure import Entropy, Kind, StationaryPoint, Structure

_CLOSER = 0.25  # of the way from the values of the record to a pure component that is left: the force is linear there
_POINTS = 2001


@dataclass(frozen=True)
class Ideal(Mixture):
    """The features ln phi, -ln(1 - phi) and Legendre polynomials of s / INNER up to the degree m + 1, zero at s = 0.

    ``pure`` are the positions s of the pure components. Beyond the values of the record the force is linear before it
    reaches them.

    >>> family = Ideal(0, pure=(-0.6, 0.6))
    >>> g = family.fitted(lambda u: np.log((0.6 + u) / (0.6 - u)) - 4.0 * u)  # regular, a_1 = a_2
    >>> [round(float(c), 9) for c in g[:2]], family.tangents(g[None]).known.tolist()
    ([1.0, 1.0], [True])
    """

    pure: tuple[float, float] = (-1.0, 1.0)

    name = "ideal"
    mixing = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.pure
        if not (low < -INNER and high > INNER):
            raise InputError(
                f"the values of the record reach beyond a pure component (s = {low:.4g} and {high:.4g}): expected a "
                "composition between the two; give the values of the pure components as phases"
            )

    @property
    def read_with(self) -> Family:
        """Polynomials that have the logarithms nearly."""
        return Mixture(max(self.degree, 6), self.phases)

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points above the common tangent, judged on a grid."""
        g = np.asarray(coefficients)
        line = self.tangents(g[None])
        if not line.known[0]:
            return self._without_phases(g)
        u = np.linspace(float(line.low[0]), float(line.high[0]), _POINTS)[1:-1]
        force = g @ self.features(u) - line.force[0]
        u, signs = u[force != 0.0], np.sign(force[force != 0.0])
        at = np.flatnonzero(np.diff(signs))
        kinds: list[Kind] = ["maximum" if signs[k] > 0 else "minimum" for k in at]
        points = tuple(StationaryPoint(float(0.5 * (u[k] + u[k + 1])), kind) for k, kind in zip(at, kinds, strict=True))
        problems = [f"a local {point.kind} at u = {point.u:.4g}" for point in points] if len(points) != 1 else []
        return Structure(not problems, tuple(problems), points, COEXISTING)

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (w^2 (1 - s^2)^2) at positions between the coexisting phases."""
        g = np.asarray(coefficients)
        low, high = self.ends(g[None])[0]
        return self.heights(g[None], s)[0] / (0.25 * (high - low) ** 2 * ((1.0 - s) * (1.0 + s)) ** 2)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:  # noqa: ARG002
        """Refuse: the law is not a polynomial."""
        raise InputError("a law with the entropy of ideal mixing is not a polynomial: expected one; use its force")

    def entropies(self, coefficients: Array) -> Array:
        """Return (a_1 + a_2) du of laws, one per row."""
        return np.asarray(
            self.half**2 * (self.pure[1] - self.pure[0]) * np.sum(np.atleast_2d(coefficients)[:, :2], axis=1)
        )

    def entropy(self, coefficients: Array) -> Entropy:
        """Return the terms of the force, zero at the coexisting phases where it has some, else at s = 0."""
        g, (low, high) = np.asarray(coefficients), self.pure
        s = Polynomial([0.5 * (low + high), 0.5 * (high - low)])  # of v
        powers = sum((float(c) * P(s / INNER) for c, P in zip(g[2:], self._legendre(), strict=True)), Polynomial([0.0]))
        line = self.tangents(g[None])
        logs = g[0] * np.log(-low / (high - low)) - g[1] * np.log(high / (high - low))
        constant = -logs - sum(float(c) * P(0.0) for c, P in zip(g[2:], self._legendre(), strict=True))
        constant -= float(line.force[0]) / self.half if line.known[0] else 0.0
        terms = tuple(float(c) * self.half for c in (powers + constant).coef)
        ends = [float(self.middle + self.half * end) for end in (low, high, *self._inside(np.array([low, high]))[0])]
        a = float(self.half * g[0]), float(self.half * g[1])
        return Entropy(a, terms, (ends[0], ends[1]), (ends[2], ends[3]))

    def written(self, coefficients: Array, digits: int) -> str:
        """Return the force as an equation in phi and v."""
        (first, second), terms, (low, high), _ = self.entropy(coefficients)
        parts = [f"{first:.{digits}g} ln(phi)", f"{-second:.{digits}g} ln(1 - phi)"]
        parts += [f"{c:.{digits}g}{'' if k == 0 else ' v' if k == 1 else f' v^{k}'}" for k, c in enumerate(terms)]
        text = " + ".join(parts).replace("+ -", "- ")
        scale = f"v = (u - {0.5 * (low + high):.{digits}g}) / {0.5 * (high - low):.{digits}g}"
        return f"G(u) = {text}, phi = (1 + v)/2, {scale}".replace("u - -", "u + ")

    def interaction(self, coefficients: Array) -> Array:
        """Return chi = -4 b_2 / a of laws, one per row, with a the mean of a_1 and a_2."""
        rows, (low, high) = np.atleast_2d(coefficients), self.pure
        half, middle = 0.5 * (high - low), 0.5 * (low + high)
        slope = rows[:, 2:] @ np.array([P.deriv()(middle / INNER) / INNER * half for P in self._legendre()])
        return np.asarray(-2.0 * slope / (rows[:, 0] + rows[:, 1]))

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the features themselves: both entropies and the linear term are free, the others decay."""
        return np.eye(self.size), np.maximum(np.arange(self.size) - self.lowest + 1, 0)

    def _legendre(self) -> list[Legendre]:
        return [Legendre.basis(k) for k in range(1, self.size - 1)]

    def _inside(self, s: Any) -> tuple[Any, Any]:
        """Return where the logarithms are taken, and what is left beyond."""
        (low, high), xp = self.pure, namespace(s)
        x = xp.clip(s, low - _CLOSER * (low + INNER), high - _CLOSER * (high - INNER))
        return x, s - x

    def _force(self, coefficients: Any, s: Any) -> Any:
        return Family._force(self, coefficients, s)

    def _features(self, s: Any) -> Any:
        xp, (low, high) = namespace(s), self.pure
        x, rest = self._inside(s)
        values, _ = _recurrence(x / INNER, self.size - 2)
        values = [value - float(P(0.0)) for value, P in zip(values, self._legendre(), strict=True)]
        return xp.stack([xp.log((x - low) / -low), -xp.log((high - x) / high), *values]) + self._slopes(x) * rest

    def _slopes(self, s: Any) -> Any:
        (low, high), (x, _) = self.pure, self._inside(s)
        _, rises = _recurrence(x / INNER, self.size - 2)
        return namespace(x).stack([1.0 / (x - low), 1.0 / (high - x), *(rise / INNER for rise in rises)])

    def _primitives(self, s: Any) -> Any:
        """Evaluate integrals of the features, from s = 0."""
        xp, (low, high) = namespace(s), self.pure
        x, rest = self._inside(s)
        first = (x - low) * xp.log((x - low) / -low) - x
        second = (high - x) * xp.log((high - x) / high) + x
        wholes = [INNER * (P.integ(lbnd=0.0)(x / INNER)) - float(P(0.0)) * x for P in self._legendre()]
        return xp.stack([first, second, *wholes]) + self._features(x) * rest + 0.5 * self._slopes(x) * rest**2

    def _kernel_table(self) -> tuple[Array, Array, Array]:
        return Family._kernel_table(self)

    def _embed(self, smaller: Family) -> Array | None:
        return np.eye(self.size, smaller.size) if isinstance(smaller, Ideal) and smaller.pure == self.pure else None


def _recurrence(x: Any, degree: int) -> tuple[list[Any], list[Any]]:
    """Return P_1 .. P_degree and their derivatives at x."""
    values, rises = [1.0 + 0.0 * x, x], [0.0 * x, 1.0 + 0.0 * x]
    for k in range(1, degree):
        values.append(((2 * k + 1) * x * values[k] - k * values[k - 1]) / (k + 1))
        rises.append((2 * k + 1) * values[k] + rises[k - 1])
    return values[1 : degree + 1], rises[1 : degree + 1]
