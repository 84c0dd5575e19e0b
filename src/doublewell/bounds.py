"""Bounds: how far a recovered law and its scale can be from a reference (paper, Sections 2.3 and 3.3).

All bounds are deterministic. A bound that excludes nothing is infinite, never an error: a poor record is an outcome,
not a mistake. H is the primitive, C_H its tension integral; the supplied surface tension is (1 + tension_change)
times the reference one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from doublewell.errors import InputError, not_negative, positive, real
from doublewell.law import Family, Law, even_family, gauss_legendre
from doublewell.law.law import TENSION_NODES
from doublewell.law.structure import bracket_roots


@dataclass(frozen=True)
class ScaleBound:
    """Where the ratio r of the perturbed to the reference epsilon lies (Eq. 4).

    lower <= r <= upper and |r - 1| <= deviation. ``relative_change`` is rho = 2 sqrt(2 D) / C_H. From
    rho = 1 on the tension integral may vanish: ``lower`` still holds, the other two are infinite.
    """

    relative_change: float
    lower: float
    upper: float
    deviation: float

    @property
    def certified(self) -> bool:
        """Whether the scale error is bounded at all, rho < 1."""
        return self.relative_change < 1.0

    def __str__(self) -> str:
        if self.certified:
            return f"epsilon ratio between {self.lower:.4g} and {self.upper:.4g}"
        return f"no finite bound on epsilon: rho = {self.relative_change:.3g}, needs less than 1"


class Envelope(NamedTuple):
    """Ranges of the ratios of epsilon, and of F at every u in (-1, 1) (Eq. 6).

    ``change`` is eta, the largest relative change of a coefficient; from 1 on, the upper ends are infinite and the
    lower end of F is 0.
    """

    change: float
    epsilon: tuple[float, float]
    potential: tuple[float, float]


class ObservedBound(NamedTuple):
    """What an error bound R on the coefficients means for the primitive, the scale and the potential.

    ``radius`` is R, ``primitive_distance`` is M_P R, ``scale`` and ``envelope`` follow from them.
    """

    radius: float
    primitive_distance: float
    scale: ScaleBound
    envelope: Envelope


class ConditionBound(NamedTuple):
    """The condition number of a design after a change of basis, and the bound kappa(A) kappa(T) on it."""

    value: float
    bound: float


def tension_integral_bound(distance: float) -> float:
    """Return 2 sqrt(2 D), the most that C_H moves when H moves by D in the maximum norm (Theorem 1).

    It needs only H >= 0: the primitives may vanish anywhere, also one where the other does not.

    >>> tension_integral_bound(0.02)
    0.4
    """
    return 2.0 * sqrt(2.0 * _not_negative(distance, "distance"))


def scale_ratio(reference: Law, perturbed: Law, *, tension_change: float = 0.0) -> float:
    """Return the exact ratio of the calibrated epsilons, (1 + delta) C_H / C_H~ (Eq. 3)."""
    ratio = reference.tension_integral / positive(perturbed.tension_integral, "tension_integral")
    return _tension_factor(tension_change) * ratio


def scale_bound(tension_integral: float, distance: float, *, tension_change: float = 0.0) -> ScaleBound:
    """Bound the ratio of the epsilons when H moves by `distance` in the maximum norm (Eq. 4).

    >>> print(scale_bound(1.0, 0.00125))
    epsilon ratio between 0.9091 and 1.111
    >>> scale_bound(1.0, 0.5).upper
    inf
    """
    factor = _tension_factor(tension_change)
    rho = tension_integral_bound(distance) / positive(tension_integral, "tension_integral")
    left = 1.0 / (1.0 - rho) if rho < 1.0 else inf
    return ScaleBound(rho, factor / (1.0 + rho), factor * left, (abs(tension_change) + rho) * left)


def potential_bound(*, epsilon: float, ratio: float, distance: float, height: float) -> float:
    """Bound max |F~ - F| by epsilon^2 [r^2 D + |r^2 - 1| max H] (Eq. 5); holds whatever rho is.

    epsilon and height, the largest value of H, belong to the reference; ratio is r and distance is D.
    """
    r2, moved = positive(ratio, "ratio") ** 2, _not_negative(distance, "distance")
    return positive(epsilon, "epsilon") ** 2 * (r2 * moved + abs(r2 - 1.0) * _not_negative(height, "height"))


def primitive_distance(reference: Law, perturbed: Law) -> float:
    """Return D, the maximum of |H~ - H| on [-1, 1], from the stationary points of the difference.

    The points come from exact root isolation, so no maximum between samples is missed.
    """
    p, q = (even_family(law.family, "a bound").exact_bracket(law.coefficients) for law in (reference, perturbed))
    difference = [a - b for a, b in zip_longest(p, q, fillvalue=Fraction(0))]
    points = np.sqrt([0.0] + [z for z, _ in bracket_roots(difference)])
    return float(np.max(np.abs(perturbed.primitive(points) - reference.primitive(points))))


def coefficient_change(reference: Law, perturbed: Law) -> float:
    """Return eta, the largest relative change of a coefficient.

    It is infinite unless all coefficients of the reference are positive.

    >>> coefficient_change(Law.bernstein([1.0, 2.0]), Law.bernstein([1.0, 1.5]))
    0.25
    """
    if reference.family != perturbed.family:
        raise InputError(
            f"the laws have different families, {reference.family} and {perturbed.family}: expected one; "
            "elevate the lower degree first"
        )
    g = reference.coefficients
    return float(np.max(np.abs(perturbed.coefficients - g) / g)) if np.min(g) > 0.0 else inf


def envelope(change: float, *, tension_change: float = 0.0) -> Envelope:
    """Return the ranges of the ratios of epsilon and F for a largest relative coefficient change eta (Eq. 6).

    >>> envelope(0.0, tension_change=0.5)
    Envelope(change=0.0, epsilon=(1.5, 1.5), potential=(2.25, 2.25))
    """
    eta, factor = _not_negative(change, "change"), _tension_factor(tension_change)
    low = factor / sqrt(1.0 + eta)
    if not eta < 1.0:
        return Envelope(eta, (low, inf), (0.0, inf))
    spread = (1.0 - eta) / (1.0 + eta)
    return Envelope(eta, (low, factor / sqrt(1.0 - eta)), (factor**2 * spread, factor**2 / spread))


def tension_integral_change(law: Law, direction: Law) -> float:
    """Return the first-order change of C_H when H moves along the primitive of `direction` (Eq. 7).

    With H = (1 - u^2)^2 h the integrand dH / sqrt(2 H) is (1 - u^2) dh / sqrt(2 h), regular at the wells.
    """
    if not law.has_interface:
        raise InputError(
            f"the tension integral has no first-order change at this law ({law.structure}): expected H > 0 "
            "between the pure phases and curved wells; use scale_bound, which needs neither"
        )
    # the nodes of the tension integral, so that the change is the exact derivative of the computed value
    nodes, weights = gauss_legendre(TENSION_NODES)
    z = nodes * nodes
    h, moved = (even_family(term.family, "a bound").reduced(term.coefficients, z) for term in (law, direction))
    return float(weights @ ((1.0 - nodes) * (1.0 + nodes) * moved / np.sqrt(2.0 * h)))


def first_order_scale_change(law: Law, direction: Law, *, tension_change: float = 0.0) -> float:
    """Return the first-order relative change of epsilon, dsigma/sigma - dC_H/C_H (Eq. 7)."""
    return tension_change - tension_integral_change(law, direction) / law.tension_integral


def coefficient_radius(
    *, smallest_singular_value: float, reference_norm: float, design_error: float = 0.0, approximation: float = 0.0,
    discretisation: float = 0.0, data_error: float = 0.0,
) -> float:  # fmt: skip
    """Return R, the bound on the 2-norm of the coefficient error from perturbed moments (Eq. 14).

    R = (|r_app| + |r_disc| + |dd| + |dA| |g|) / (s_min - |dA|) with s_min of the unperturbed design; infinite
    where the design error reaches s_min. All rows and their scaling must be common to both designs.

    >>> coefficient_radius(smallest_singular_value=0.5, reference_norm=2.0, design_error=0.1, data_error=0.2)
    1.0
    """
    residuals = {"approximation": approximation, "discretisation": discretisation, "data_error": data_error}
    total = sum(_not_negative(value, name) for name, value in residuals.items())
    total += _not_negative(design_error, "design_error") * _not_negative(reference_norm, "reference_norm")
    margin = _not_negative(smallest_singular_value, "smallest_singular_value") - design_error
    return total / margin if margin > 0.0 else inf


def primitive_supremum(family: Family) -> float:
    """Return M_P, the maximum over u in [-1, 1] of the 2-norm of the primitives (Section 3.3).

    Every Bernstein B_j >= 0 on [-1, 0], so every P_j is even and rises to u = 0: the maximum is there, exactly.
    """
    return float(np.linalg.norm(family.primitives(0.0)))


def observed_bound(reference: Law, radius: float, *, tension_change: float = 0.0) -> ObservedBound:
    """Carry an error bound R on the coefficients of a reference law to H, epsilon and F (Section 3.3).

    max |H^ - H| <= M_P R; the scale is certified where 2 sqrt(2 M_P R) < C_H; eta <= R / min g. A
    radius that is too large, or infinite, gives infinite bounds.

    >>> observed_bound(Law.bernstein([1.0, 1.0]), 0.001).scale.certified
    True
    """
    if not reference.family.cone:
        raise InputError(f"the reference is a {reference.family.name} law: expected Bernstein coefficients")
    distance = primitive_supremum(reference.family) * _not_negative(radius, "radius")
    smallest = float(np.min(reference.coefficients))
    return ObservedBound(
        radius=radius,
        primitive_distance=distance,
        scale=scale_bound(reference.tension_integral, distance, tension_change=tension_change),
        envelope=envelope(radius / smallest if smallest > 0.0 else inf, tension_change=tension_change),
    )


def condition_bound(design: ArrayLike, change_of_basis: ArrayLike) -> ConditionBound:
    """Return kappa(A T) and its bound kappa(A) kappa(T), for full-rank A and nonsingular T (Section 3.3).

    >>> condition_bound([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]])
    ConditionBound(value=1.0, bound=4.0)
    """
    a, t = (np.asarray(matrix, dtype=np.float64) for matrix in (design, change_of_basis))
    if a.ndim != 2 or t.shape != (a.shape[-1], a.shape[-1]):
        raise InputError(
            f"the design has shape {a.shape} and the change of basis {t.shape}: expected (rows, n) and (n, n)"
        )
    return ConditionBound(float(np.linalg.cond(a @ t)), float(np.linalg.cond(a) * np.linalg.cond(t)))


def _tension_factor(tension_change: float) -> float:
    change = real(tension_change, "tension_change", "a relative change")
    if change <= -1.0:
        raise InputError(f"tension_change is {change:g}: expected a relative change above -1")
    return 1.0 + change


def _not_negative(value: float, name: str) -> float:
    """Check a number that may be infinite: a bound that excludes nothing."""
    return inf if isinstance(value, float) and value == inf else not_negative(value, name)
