"""Structure: the stationary points of a law, decided in exact rational arithmetic.

The interior stationary points of H are u = 0 and u = +-sqrt(z) for the roots z of the bracket polynomial in
(0, 1). Coefficients are binary fractions, so Sturm's theorem counts and isolates the roots exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb, gcd, lcm, sqrt
from typing import Literal

from doublewell.hints import Array

Kind = Literal["maximum", "minimum", "inflection"]
_WIDTH = Fraction(1, 2**55)  # of an isolating interval, relative to the root: below float precision


@dataclass(frozen=True)
class StationaryPoint:
    """An interior zero of the force: phase value, and what the potential has there."""

    u: float
    kind: Kind


@dataclass(frozen=True)
class Structure:
    """What kind of double well a law is.

    ``ok`` means two stable pure phases and one central maximum, nothing else; ``problems`` states what is wrong
    otherwise. ``stationary`` lists the interior stationary points in increasing u.
    """

    ok: bool
    problems: tuple[str, ...]
    stationary: tuple[StationaryPoint, ...]

    def __str__(self) -> str:
        if not self.ok:
            return "; ".join(self.problems)
        u = self.stationary[0].u
        return "two stable pure phases and one " + (
            "central maximum" if u == 0.0 else f"maximum between, at u = {u:.4g}"
        )


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


def classify(polynomial: list[Fraction]) -> Structure:
    """Return the structure of the law whose bracket polynomial (constant first) is given.

    >>> print(classify([Fraction(1)]))
    two stable pure phases and one central maximum
    """
    ints = _to_integers(polynomial)
    if not ints:
        return Structure(False, ("the force is zero everywhere",), ())
    at_zero, at_one = ints[0], sum(ints)
    roots = bracket_roots(polynomial)
    centre = _sign(next(c for c in ints if c))
    points = [StationaryPoint(0.0, "maximum" if centre > 0 else "minimum")]
    for z, kind in roots:
        points += [StationaryPoint(-sqrt(z), kind), StationaryPoint(sqrt(z), kind)]
    problems = []
    if centre < 0:
        problems.append("u = 0 is a local minimum: the mixed state is metastable")
    elif at_zero == 0:
        problems.append("the central maximum is flat (zero curvature at u = 0)")
    problems += [_describe(z, kind) for z, kind in roots]
    if at_one <= 0:
        problems.append("the pure phases are " + ("marginal (zero curvature)" if at_one == 0 else "not stable"))
    return Structure(not problems, tuple(problems), tuple(sorted(points, key=lambda point: point.u)))


def classify_wells(factor: list[Fraction], low: float, high: float) -> Structure:
    """Return the structure of a law -w (1 - s^2) r with r in powers of t = (1 + s)/2, and t = (u - low)/(high - low).

    >>> print(classify_wells([Fraction(-1), Fraction(2)], 0.0, 1.0))
    two stable pure phases and one maximum between, at u = 0.5
    """
    ints = _to_integers(factor)
    if not ints:
        return Structure(False, ("the force is zero everywhere",), ())
    points = tuple(StationaryPoint(low + (high - low) * t, kind) for t, kind in bracket_roots(factor))
    problems = []
    for name, value in ((low, -ints[0]), (high, sum(ints))):
        if value <= 0:
            problems.append(
                f"the phase u = {name:g} is " + ("marginal (zero curvature)" if value == 0 else "not stable")
            )
    maxima = [point for point in points if point.kind == "maximum"]
    if not maxima:
        problems.append("no maximum between the phases")
    others = points if len(maxima) != 1 else [point for point in points if point.kind != "maximum"]
    problems += [f"{'an' if p.kind == 'inflection' else 'a local'} {p.kind} at u = {p.u:.4g}" for p in others]
    if not problems and _repeated(ints):
        problems.append(f"the maximum at u = {maxima[0].u:.4g} is flat (zero curvature)")
    return Structure(not problems, tuple(problems), points)


def _repeated(ints: list[int]) -> bool:
    """Whether a root in (0, 1) is a multiple one: it is a root of the last of Sturm's chain."""
    return len(ints) > 1 and bool(bracket_roots([Fraction(c) for c in _sturm(ints)[-1]]))


def bracket_roots(polynomial: list[Fraction]) -> list[tuple[float, Kind]]:
    """Return the distinct roots z in (0, 1), increasing, with what the potential has at u = +-sqrt(z).

    The bracket falling through zero is a minimum of H, rising a maximum, touching an inflection.
    """
    ints = _to_integers(polynomial)
    while ints and ints[0] == 0:  # roots at z = 0 are u = 0 itself
        ints = ints[1:]
    while len(ints) > 1 and sum(ints) == 0:  # roots at z = 1 are the pure phases
        ints = _divide_by_one_minus_z(ints)
    if len(ints) < 2:
        return []
    chain = _sturm(ints)
    return [_refine(ints, chain, low, high) for low, high in _isolate(chain, Fraction(0), Fraction(1))]


def _describe(z: float, kind: Kind) -> str:
    article = "an" if kind == "inflection" else "a local"
    return f"{article} {kind} at u = -{sqrt(z):.4g} and +{sqrt(z):.4g}"


def _sign(value: int | Fraction) -> int:
    return (value > 0) - (value < 0)


def _to_integers(polynomial: list[Fraction]) -> list[int]:
    """Scale by a positive number to integers without a common factor; drop leading zeros."""
    scale = lcm(*(c.denominator for c in polynomial)) if polynomial else 1
    return _primitive([int(c * scale) for c in polynomial])


def _primitive(ints: list[int]) -> list[int]:
    while ints and ints[-1] == 0:
        ints = ints[:-1]
    content = gcd(*ints) if ints else 1
    return [c // content for c in ints]


def _divide_by_one_minus_z(ints: list[int]) -> list[int]:
    out, carry = [], 0
    for c in ints[:-1]:
        carry += c
        out.append(carry)
    return out


def _sturm(ints: list[int]) -> list[list[int]]:
    chain = [ints, _primitive([k * c for k, c in enumerate(ints)][1:])]
    while len(chain[-1]) > 1:
        rest = _remainder(chain[-2], chain[-1])
        if not rest:
            break
        chain.append([-c for c in rest])
    return chain


def _remainder(a: list[int], b: list[int]) -> list[int]:
    """A positive multiple of the remainder of a by b."""
    lead, sign = abs(b[-1]), _sign(b[-1])
    a = list(a)
    while len(a) >= len(b):
        factor, shift = a[-1] * sign, len(a) - len(b)
        a = [c * lead for c in a]
        for i, c in enumerate(b):
            a[i + shift] -= factor * c
        a.pop()
        while a and a[-1] == 0:
            a.pop()
    return _primitive(a)


def _value_sign(ints: list[int], z: Fraction) -> int:
    top, bottom, total, power = z.numerator, z.denominator, 0, 1
    for c in reversed(ints):  # Horner on the numerator; the denominator is positive
        total = total * top + c * power
        power *= bottom
    return _sign(total)


def _changes(chain: list[list[int]], z: Fraction) -> int:
    signs = [s for s in (_value_sign(poly, z) for poly in chain) if s]
    return sum(a != b for a, b in pairwise(signs))


def _isolate(chain: list[list[int]], low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Split [low, high], whose ends are not roots, until each part holds one distinct root."""
    count = _changes(chain, low) - _changes(chain, high)
    if count <= 1:
        return [(low, high)] * count
    middle = _no_root_near(chain[0], (low + high) / 2, (high - low) / 64)
    return _isolate(chain, low, middle) + _isolate(chain, middle, high)


def _no_root_near(ints: list[int], z: Fraction, step: Fraction) -> Fraction:
    while _value_sign(ints, z) == 0:
        z, step = z + step, step / 2
    return z


def _refine(ints: list[int], chain: list[list[int]], low: Fraction, high: Fraction) -> tuple[float, Kind]:
    before, after = _value_sign(ints, low), _value_sign(ints, high)
    kind: Kind = "inflection" if before == after else "minimum" if before > 0 else "maximum"
    while high - low > high * _WIDTH:  # relative, so that a root close to zero keeps its digits
        middle = (low + high) / 2
        if _value_sign(ints, middle) == 0:
            return float(middle), kind
        if _changes(chain, low) - _changes(chain, middle) == 1:
            high = middle
        else:
            low = middle
    return float((low + high) / 2), kind
