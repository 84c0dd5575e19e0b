"""Structure: the stationary points of a law, decided in exact arithmetic.

The interior stationary points of H are u = 0 and u = +-sqrt(z) for the roots z of the bracket polynomial in
(0, 1). Coefficients are binary fractions, so Sturm's theorem counts and isolates the roots exactly: polynomials are
arrays of Python integers, constant first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd, lcm, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

Kind = Literal["maximum", "minimum", "inflection"]
Integers = NDArray[Any]  # of dtype object
_WIDTH = Fraction(1, 2**55)  # of an isolating interval, relative to the root: below float precision


class Tangents(NamedTuple):
    """The straight lines under potentials, one entry a law: they touch it at ``low`` and ``high``.

    ``force`` is their slope, the constant by which the force is off zero at both, ``level`` the primitive at ``low``.
    """

    low: Array
    high: Array
    force: Array
    level: Array

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which laws have one."""
        return np.isfinite(self.low)

    def under(self, u: Array) -> Array:
        """Return the heights of the lines at u: (n, points), or at points of their own (points,) for all."""
        return np.asarray(self.level[:, None] + self.force[:, None] * (u - self.low[:, None]))


class Entropy(NamedTuple):
    """A force with the entropy of ideal mixing: a_1 ln phi - a_2 ln(1 - phi) + sum_k powers[k] v^k, v = 2 phi - 1.

    ``pure`` are the phase values of the pure components, ``reach`` those between which the force is this; it is linear
    beyond.
    """

    a: tuple[float, float]
    powers: tuple[float, ...]
    pure: tuple[float, float]
    reach: tuple[float, float]


@dataclass(frozen=True)
class StationaryPoint:
    """An interior zero of the force: phase value, and what the potential has there."""

    u: float
    kind: Kind


@dataclass(frozen=True)
class Structure:
    """What kind of double well a law is.

    ``ok`` means two stable pure phases and one central maximum, nothing else; ``problems`` states what is wrong
    otherwise. ``stationary`` lists the interior stationary points in increasing u, ``wells`` names the two phases.
    """

    ok: bool
    problems: tuple[str, ...]
    stationary: tuple[StationaryPoint, ...]
    wells: str = "two stable pure phases"

    def __str__(self) -> str:
        if not self.ok:
            return "; ".join(self.problems)
        u = self.stationary[0].u
        return f"{self.wells} and one " + ("central maximum" if u == 0.0 else f"maximum between, at u = {u:.4g}")


_ZERO = Structure(False, ("the force is zero everywhere",), ())


def powers_of(bernstein: Array) -> list[Fraction]:
    """Return a polynomial on [0, 1], given by its Bernstein coefficients, in powers, constant first and exactly.

    >>> [int(c) for c in powers_of([1.0, 3.0])]
    [1, 2]
    """
    n = len(bernstein) - 1
    out = [Fraction(0)] * (n + 1)
    for j, g in enumerate(bernstein):
        for i in range(n - j + 1):
            out[j + i] += Fraction(float(g)) * comb(n, j) * comb(n - j, i) * (-1) ** i
    return out


def bernstein_of(powers: list[Fraction]) -> list[float]:
    """Return the Bernstein coefficients on [0, 1] of a polynomial in powers, constant first; its own degree is kept.

    >>> bernstein_of([Fraction(1), Fraction(2), Fraction(0)])
    [1.0, 3.0]
    """
    p = np.trim_zeros(np.array(powers, dtype=object), "b")
    return [float(sum(Fraction(comb(j, i), comb(len(p) - 1, i)) * p[i] for i in range(j + 1))) for j in range(len(p))]


def powers_of_s(polynomial: list[Fraction]) -> list[Fraction]:
    """Return a polynomial in t = (1 + s)/2 in powers of s, by Horner's scheme."""
    powers, zero = list[Fraction](), Fraction(0)
    for c in reversed(polynomial):
        powers = [(a + b) / 2 for a, b in zip([*powers, zero], [zero, *powers], strict=True)]
        powers[0] += c
    return powers


def powers_of_t(polynomial: Sequence[Fraction]) -> list[Fraction]:
    """Return a polynomial in s = 2t - 1 in powers of t, by Horner's scheme.

    >>> [int(c) for c in powers_of_t([Fraction(1), Fraction(1)])]
    [0, 2]
    """
    powers, zero = list[Fraction](), Fraction(0)
    for c in reversed(polynomial):
        powers = [2 * b - a for a, b in zip([*powers, zero], [zero, *powers], strict=True)]
        powers[0] += c
    return powers


def classify(polynomial: list[Fraction]) -> Structure:
    """Return the structure of the law whose bracket polynomial (constant first) is given.

    >>> print(classify([Fraction(1)]))
    two stable pure phases and one central maximum
    """
    p = _integers(polynomial)
    if not p.size:
        return _ZERO
    centre = p[np.flatnonzero(p)[0]]
    stationary, problems = [StationaryPoint(0.0, "maximum" if centre > 0 else "minimum")], []
    if centre < 0:
        problems.append("u = 0 is a local minimum: the mixed state is metastable")
    elif p[0] == 0:
        problems.append("the central maximum is flat (zero curvature at u = 0)")
    for z, kind in bracket_roots(polynomial):
        u = sqrt(z)
        stationary = [StationaryPoint(-u, kind), *stationary, StationaryPoint(u, kind)]
        problems.append(f"{_article(kind)} {kind} at u = -{u:.4g} and +{u:.4g}")
    if p.sum() <= 0:
        problems.append("the pure phases are " + ("not stable" if p.sum() else "marginal (zero curvature)"))
    return Structure(not problems, tuple(problems), tuple(stationary))


def classify_wells(factor: list[Fraction], low: float, high: float) -> Structure:
    """Return the structure of a law -w (1 - s^2) r with r in powers of t = (1 + s)/2, and t = (u - low)/(high - low).

    >>> print(classify_wells([Fraction(-1), Fraction(2)], 0.0, 1.0))
    two stable pure phases and one maximum between, at u = 0.5
    """
    r = _integers(factor)
    if not r.size:
        return _ZERO
    points = tuple(StationaryPoint(low + (high - low) * t, kind) for t, kind in bracket_roots(factor))
    problems = [
        f"the phase u = {phase:g} is " + ("not stable" if curvature else "marginal (zero curvature)")
        for phase, curvature in ((low, -r[0]), (high, r.sum()))
        if curvature <= 0
    ]
    maxima = [point for point in points if point.kind == "maximum"]
    if not maxima:
        problems.append("no maximum between the phases")
    problems += [
        f"{_article(point.kind)} {point.kind} at u = {point.u:.4g}"
        for point in points
        if len(maxima) != 1 or point.kind != "maximum"
    ]
    # a multiple root is a root of the last of Sturm's chain
    if not problems and len(r) > 1 and bracket_roots([Fraction(c) for c in _sturm(r)[-1]]):
        problems.append(f"the maximum at u = {maxima[0].u:.4g} is flat (zero curvature)")
    return Structure(not problems, tuple(problems), points)


def _article(kind: Kind) -> str:
    return "an" if kind == "inflection" else "a local"


def bracket_roots(polynomial: list[Fraction]) -> list[tuple[float, Kind]]:
    """Return the distinct roots z in (0, 1), increasing, with what the potential has at u = +-sqrt(z).

    The bracket falling through zero is a minimum of H, rising a maximum, touching an inflection.
    """
    p = np.trim_zeros(_integers(polynomial), "f")  # roots at z = 0 are u = 0 itself
    while len(p) > 1 and p.sum() == 0:  # roots at z = 1 are the pure phases: divide by 1 - z
        p = np.cumsum(p)[:-1]
    if len(p) < 2:
        return []
    roots, chain, todo = list[tuple[float, Kind]](), _sturm(p), [(Fraction(0), Fraction(1))]
    while todo:  # the ends of an interval are never roots; split it until it holds one
        low, high = todo.pop()
        count = _changes(chain, low) - _changes(chain, high)
        if count == 1:
            roots.append(_refine(chain, low, high))
        elif count > 1:
            middle, step = (low + high) / 2, (high - low) / 64
            while _value(p, middle) == 0:
                middle, step = middle + step, step / 2
            todo += [(middle, high), (low, middle)]
    return roots


def _integers(polynomial: list[Fraction]) -> Integers:
    """Scale by a positive number to integers without a common factor; leading zeros are dropped."""
    scale = lcm(*(c.denominator for c in polynomial))
    return _reduced(np.array([int(c * scale) for c in polynomial], dtype=object))


def _reduced(p: Integers) -> Integers:
    p = np.trim_zeros(p, "b")
    return p // gcd(*p) if p.size else p


def _sturm(p: Integers) -> list[Integers]:
    """Return p, p' and the negative remainders of Euclid's algorithm, each up to a positive factor."""
    chain = [p, _reduced(p[1:] * np.arange(1, len(p)))]
    while len(chain[-1]) > 1:
        rest, divisor = chain[-2:]
        while len(rest) >= len(divisor):
            factor = rest[-1] if divisor[-1] > 0 else -rest[-1]
            rest = rest * abs(divisor[-1])
            rest[-len(divisor) :] -= factor * divisor
            rest = np.trim_zeros(rest, "b")
        if not rest.size:
            break
        chain.append(-_reduced(rest))
    return chain


def _value(p: Integers, z: Fraction) -> Any:
    """Return p(z) times a positive integer, by Horner's scheme."""
    total, power = 0, 1
    for c in p[::-1]:
        total, power = total * z.numerator + c * power, power * z.denominator
    return total


def _changes(chain: list[Integers], z: Fraction) -> int:
    """Return how often the sign changes along Sturm's chain at z."""
    count, last = 0, 0
    for p in chain:
        value = _value(p, z)
        count += value * last < 0
        last = value or last
    return count


def _refine(chain: list[Integers], low: Fraction, high: Fraction) -> tuple[float, Kind]:
    before, after = _value(chain[0], low), _value(chain[0], high)
    kind: Kind = "inflection" if before * after > 0 else "minimum" if before > 0 else "maximum"
    while high - low > high * _WIDTH:  # relative, so that a root close to zero keeps its digits
        middle = (low + high) / 2
        if _value(chain[0], middle) == 0:
            return float(middle), kind
        inside = _changes(chain, low) - _changes(chain, middle) == 1
        low, high = (low, middle) if inside else (middle, high)
    return float((low + high) / 2), kind
