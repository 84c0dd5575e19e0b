"""Law: one effective force G = F'/epsilon^2 and everything that follows from it by algebra; the paper's named laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.errors import InputError, numbers, option, positive, real, shown
from doublewell.hints import Array
from doublewell.law.asymmetric import EqualWells, Wells
from doublewell.law.bernstein import Bernstein
from doublewell.law.chebyshev import proxy_of_force, proxy_of_potential
from doublewell.law.family import MAX_DEGREE, UNIT, Family, WellsKind
from doublewell.law.ideal import Ideal
from doublewell.law.mixture import Mixture
from doublewell.law.structure import Structure

TENSION_NODES = 64  # the paper's quadrature for C_H
_WIDTH_NODES = 200
_WIDTH_LEVEL = 0.9  # of the way from the middle to a pure phase


@dataclass(frozen=True, eq=False)
class Law:
    """A law with two wells: symmetric, G(u) = -u (1 - u^2) p(u^2) with wells at u = -1 and +1, or asymmetric.

    A law is an effective force. Read as F' it has epsilon = 1; ``law.effective(epsilon)`` divides it by
    epsilon^2.

    >>> quartic = Law.from_potential(lambda u: (1 - u**2)**2 / 4)
    >>> round(quartic.surface_tension(epsilon=1.0), 12)  # 2 sqrt(2) / 3
    0.942809041582
    """

    family: Family
    coefficients: Array
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        g = numbers(self.coefficients, "coefficients").copy()
        if g.shape != (self.family.size,):
            raise InputError(f"coefficients have shape {g.shape}: expected ({self.family.size},)")
        if not np.all(np.isfinite(g)):
            raise InputError("coefficients are not finite: expected finite numbers")
        g.flags.writeable = False
        object.__setattr__(self, "coefficients", g)

    @classmethod
    def bernstein(cls, coefficients: ArrayLike, *, name: str = "") -> Law:
        """Return the law with these Bernstein coefficients; their number gives the degree."""
        g = np.atleast_1d(numbers(coefficients, "coefficients"))
        if g.ndim != 1 or g.size == 0:
            raise InputError(f"coefficients have shape {g.shape}: expected a list of 1 to {MAX_DEGREE + 1} numbers")
        return cls(Bernstein(g.size - 1), g, name=name)

    @classmethod
    def wells(cls, coefficients: ArrayLike, *, phases: tuple[float, float] = (-1.0, 1.0), name: str = "") -> Law:
        """Return the law -w (1 - s^2) r(s) with these Bernstein coefficients of r: 2 m + 2 of them for the degree m.

        >>> law = Law.wells([-1.2, 0.8])  # r = s - 0.2: the quartic law, tilted
        >>> round(law.maximum, 12), law.tilt > 0.0
        (0.2, True)
        """
        g = np.atleast_1d(numbers(coefficients, "coefficients"))
        if g.ndim != 1 or g.size == 0 or g.size % 2 or g.size > 2 * MAX_DEGREE + 2:
            raise InputError(
                f"coefficients have shape {g.shape}: expected a list of 2, 4, ... {2 * MAX_DEGREE + 2} numbers"
            )
        return cls(Wells(g.size // 2 - 1), g, name=name).placed(phases)

    @classmethod
    def from_force(cls, force: Callable[[Array], Array], *, name: str = "") -> Law:
        """Return the law with F' = force, an odd function with zeros at -1, 0 and 1, to 1e-13 of its size."""
        return cls(*proxy_of_force(force), name=name)

    @classmethod
    def from_potential(cls, potential: Callable[[Array], Array], *, name: str = "") -> Law:
        """Return the law with F = potential, even with wells at -1 and 1, to 1e-13 of its size.

        F' comes from the derivative of the proxy and is accurate to about 1e-12 of its own size; where F' is known,
        `from_force` gives it ten times better.
        """
        return cls(*proxy_of_potential(potential), name=name)

    def force(self, u: Any) -> Any:
        """Evaluate G(u); NumPy or JAX. Beyond the pure phases it continues linearly with its slope there.

        Of a law of a conserved field G is zero at the coexisting phases, by choice of its constant.
        """
        force = self.family.force(self.coefficients, _as_array(u))
        return force - self._line[2] if self.coexists else force

    def primitive(self, u: Any) -> Any:
        """Evaluate H(u), the integral of G from the low phase to u: H(-1) = H(1) = 0 for symmetric wells."""
        u = _as_array(u)
        above = self.family.primitive(self.coefficients, u)
        if not self.coexists:
            return above
        low, _, force, level = self._line
        return above - level - force * (u - low)

    @cached_property
    def _line(self) -> tuple[float, float, float, float]:
        """The common tangent of a law whose wells are found: where it touches, its slope, its height at the first."""
        low, high, force, level = (float(part[0]) for part in self.family.tangents(self.coefficients[None]))
        return low, high, force, level

    @cached_property
    def coexists(self) -> bool:
        """Whether this is a law of a conserved field with two phases that coexist, found by the common tangent."""
        return self.family.found and bool(np.isfinite(self._line[0]))

    @property
    def one_phase(self) -> bool:
        """Whether this is a law of a conserved field whose force rises at all values of the record."""
        rises = self.family.found and self.family.stable(self.coefficients)
        return rises and not self.coexists and not np.isfinite(self.spinodal).any()

    @cached_property
    def spinodal(self) -> tuple[float, float]:
        """Where H'' is zero around the maximum: a mixture between these values is unstable; NaN where there is none."""
        low, high = self.family.spinodals(self.coefficients[None])[0].tolist()
        return low, high

    def slope(self, u: Any) -> Any:
        """Evaluate G'(u); of a conserved field q G' is the coefficient of diffusion within a phase."""
        return np.tensordot(self.coefficients, self.family.slopes(_as_array(u)), axes=1)

    def potential(self, u: Any, *, epsilon: float) -> Any:
        """Evaluate F(u) = epsilon^2 H(u)."""
        return positive(epsilon, "epsilon", "the interface scale") ** 2 * self.primitive(u)

    @property
    def phases(self) -> tuple[float, float]:
        """The phase values of the two wells; of a law of a conserved field the coexisting phases.

        Where such a law has none they are the ends of the range of its values.
        """
        return self._line[:2] if self.coexists else self.family.phases

    @property
    def middle(self) -> float:
        """The phase value half way between the phases."""
        return 0.5 * (self.phases[0] + self.phases[1])

    @property
    def half(self) -> float:
        """Half the distance of the phases."""
        return 0.5 * (self.phases[1] - self.phases[0])

    @cached_property
    def well_curvatures(self) -> tuple[float, float]:
        """H'' = G' at the low and at the high phase."""
        return self.family.well_curvatures(self.coefficients)

    @property
    def well_curvature(self) -> float:
        """The smaller of H'' at the two phases; for symmetric wells both are 2 p(1)."""
        return min(self.well_curvatures)

    @cached_property
    def maximum(self) -> float:
        """The phase value of the maximum between the wells: 0 for symmetric wells, NaN where there is none."""
        return self.family.maximum(self.coefficients)

    @cached_property
    def centre_curvature(self) -> float:
        """H'' at the maximum, -p(0) for symmetric wells; negative for a double well."""
        return self.family.curvature(self.coefficients, self.maximum)

    @cached_property
    def tilt(self) -> float:
        """By how much the high phase lies above the low one, H(high) - H(low); 0 for symmetric wells."""
        return self.family.tilt(self.coefficients)

    @cached_property
    def barriers(self) -> tuple[float, float]:
        """The height of the maximum over the low and over the high phase."""
        top = float(self.primitive(self.maximum))
        return top, top - self.tilt

    @property
    def barrier(self) -> float:
        """The height of the maximum over the higher of the pure phases."""
        return min(self.barriers)

    @cached_property
    def structure(self) -> Structure:
        """Stationary points and whether the law is a double well, decided exactly."""
        return self.family.structure(self.coefficients)

    @cached_property
    def lowest(self) -> float:
        """The smallest value of H at an interior stationary point; negative when H dips below the wells."""
        heights = self.primitive([point.u for point in self.structure.stationary])
        return float(np.min(heights)) if heights.size else 0.0

    @property
    def has_interface(self) -> bool:
        """Whether a planar interface at rest joins the phases: stable, equally deep, and H above them in between."""
        return self.tilt == 0.0 and self.lowest > 0.0 and self.well_curvature > 0.0

    @cached_property
    def tension_integral(self) -> float:
        """C_H, the integral of sqrt(2 H) between the phases, by 64-point Gauss-Legendre quadrature."""
        self._check_depths()
        if self.lowest < 0.0:
            raise InputError(
                f"the potential falls below the pure phases (lowest H = {self.lowest:.3g}), so no planar interface "
                f"joins them and no surface tension exists; use {option('constraint', 'admissible')}, or more data"
            )
        nodes, weights = gauss_legendre(TENSION_NODES)
        middle, half = self.middle, self.half
        return float(half * (weights @ np.sqrt(2.0 * np.maximum(self.primitive(middle + half * nodes), 0.0))))

    def _check_depths(self) -> None:
        if self.tilt != 0.0:
            fraction = 100.0 * abs(self.tilt) / max(self.barriers)
            raise InputError(
                f"the wells are not equally deep (they differ by {fraction:.2g} % of the higher barrier): a planar "
                "interface travels and none is at rest, so no planar tension and no interface width exist; G and H are "
                f"given. Where the depths are known to be equal, use {option('wells', 'equal')}"
            )

    def surface_tension(self, *, epsilon: float) -> float:
        """Return sigma = epsilon C_H, the planar interfacial energy in the normalisation E.

        `epsilon` goes with this law as its effective force. A law read as F' has epsilon = 1, whatever epsilon its
        movie was made with: sigma depends on F alone.
        """
        return positive(epsilon, "epsilon", "the interface scale") * self.tension_integral

    def interface_width(self, low: float | None = None, high: float | None = None) -> float:
        """Return the distance over which a planar interface goes from phase value low to high (-0.9 and 0.9).

        W = int du / sqrt(2 H). With s = tanh(sigma) the integrand is smooth up to the wells. For other phases the
        levels are at 90 % of the way from the middle.
        """
        self._check_depths()
        middle, half = self.middle, self.half
        low, high = (
            middle + sign * _WIDTH_LEVEL * half if level is None else real(level, "a width level", "a phase value")
            for sign, level in ((-1.0, low), (1.0, high))
        )
        if not self.phases[0] < low < high < self.phases[1]:
            first, last = self.phases
            raise InputError(f"width levels are {low:g} and {high:g}: expected {first:g} < low < high < {last:g}")
        nodes, weights = gauss_legendre(_WIDTH_NODES)
        a, b = np.arctanh((low - middle) / half), np.arctanh((high - middle) / half)
        s = np.tanh(0.5 * (b - a) * nodes + 0.5 * (a + b))
        h = self.family.height(self.coefficients, s)
        if np.min(h) <= 0.0:
            raise InputError(
                f"H is not positive between the levels {low:g} and {high:g}, so no planar interface joins them"
            )
        return float(0.5 * (b - a) * weights @ (1.0 / np.sqrt(2.0 * h)))

    def placed(self, phases: tuple[float, float]) -> Law:
        """Return the same law with its wells at other phase values: G(u) becomes w G(s), u = middle + w s."""
        return Law(self.family.placed(phases), self.coefficients, name=self.name)

    def continued(self) -> Law:
        """Return the law with its polynomial also beyond the phases, up to half of their half distance further.

        A conserved field leaves the interval of its phases, by the curvature of its drops. The constant of the force is
        that of the common tangent.
        """
        return self if self.family.found else Law(*Mixture.continuing(self.family, self.coefficients), name=self.name)

    def tilted(self, fraction: float) -> Law:
        """Return the law with a constant taken from r, so that the high phase lies above the low one.

        Then H(high) - H(low) is `fraction` of the barrier over the higher phase; a negative one lifts the low phase.

        >>> law = Law.bernstein([0.75, 1.5]).tilted(0.2)
        >>> round(law.tilt / law.barrier, 10), law.structure.ok
        (0.2, True)
        """
        fraction = real(fraction, "fraction", "a fraction of the barrier")
        family = Wells(self.family.degree)
        g = self.family.placed(UNIT).elevation(family) @ self.coefficients
        low, high = 0.0, float(min(-g[0], g[-1]))
        for _ in range(100):  # the fraction of the barrier grows with the constant, to infinity where the barrier ends
            constant = 0.5 * (low + high)
            law = Law(family, g - np.sign(fraction) * constant)
            grown = not law.structure.ok or abs(law.tilt) > abs(fraction) * law.barrier
            low, high = (low, constant) if grown else (constant, high)
        return Law(family, g - np.sign(fraction) * low, name=self.name).placed(self.phases)

    def scaled(self, factor: float) -> Law:
        """Return the law times a factor."""
        return Law(self.family, factor * self.coefficients, name=self.name)

    def effective(self, epsilon: float) -> Law:
        """Return G = F'/epsilon^2 for this law read as F'."""
        scale = positive(epsilon, "epsilon", "the interface scale")
        with np.errstate(all="ignore"):
            factor = float(1.0 / np.float64(scale) ** 2)
        largest = float(np.max(np.abs(self.coefficients)))
        if not (factor > 0.0 and isfinite(factor * largest)):
            raise InputError(
                f"epsilon is {scale:g}, and F'/epsilon^2 is beyond the range of numbers: expected the interface scale "
                "in the units of dx, a few cells"
            )
        return self.scaled(factor)

    def equation(self, digits: int = 5) -> str:
        """Return the force as an equation in u; round-off of its terms is left out.

        >>> Law.bernstein([0.75, 1.5]).equation()
        'G(u) = -u (1 - u^2) [0.75 + 0.75 u^2]'
        >>> Law.wells([-1.2, 0.8]).equation(), Law.wells([-1.2, 0.8], phases=(0, 1)).equation(3)[:33]
        ('G(u) = -(1 - u^2) [-0.2 + 1 u]', 'G(u) = -0.5 (1 - s^2) [-0.2 + 1 s')
        """
        if text := self.family.written(self.coefficients, digits):
            return text
        factor, terms = self.family.terms(self.coefficients)
        largest = max(abs(c) for c, _ in terms)
        kept = [(c, k) for c, k in terms if abs(c) > 1e-12 * largest] or terms[:1]
        parts = (f"{c:.{digits}g}{'' if k == 0 else ' s' if k == 1 else f' s^{k}'}" for c, k in kept)
        text = " + ".join(parts).replace("+ -", "- ")
        if self.phases == UNIT:
            return f"G(u) = -{factor} [{text}]".replace("s", "u")
        half, middle = f"{self.half:.{digits}g}", f"{self.middle:.{digits}g}"
        return f"G(u) = -{half} {factor} [{text}], s = (u - {middle}) / {half}".replace("u - -", "u + ")

    def projected(self, family: Family) -> Array:
        """Return the coefficients of a family closest to this law in L2; exact where the law lies in it."""
        try:
            return np.asarray(self.family.elevation(family) @ self.coefficients)
        except InputError:
            nodes, weights = gauss_legendre(TENSION_NODES)
            u, root = family.middle + family.half * nodes, np.sqrt(weights)
            return np.asarray(np.linalg.lstsq((root * family.features(u)).T, root * self.force(u), rcond=None)[0])

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Law({name}{self.family.name} degree {self.family.degree}: {self.structure})"


_KINDS: dict[WellsKind, type[Bernstein | EqualWells | Wells | Mixture]] = {
    "symmetric": Bernstein,
    "equal": EqualWells,
    "unequal": Wells,
    "found": Mixture,
    "ideal": Ideal,
}


def family_of(wells: WellsKind | None, degree: int | Literal["auto"], **options: Any) -> Family:
    """Return the family of a degree, of the highest in the average over degrees for "auto".

    Laws of one degree lie inside each other, symmetric in equal in unequal; None is "symmetric". `options` are further
    fields of the family, ``pure`` of "ideal".
    """
    kind = _KINDS[wells or "symmetric"]
    return kind(kind.average_degree if degree == "auto" else degree, **options)


def check_law(value: Any) -> Law:
    """Return a law as it is; anything else raises an error that states how to make one."""
    if isinstance(value, Law):
        return value
    way = "Law.bernstein(coefficients), Law.from_force(function) or named_law(name)"
    if isinstance(value, str):
        way = f"named_law({value!r})"
    elif callable(value):
        way = "Law.from_force(function), or Law.from_potential(function)"
    raise InputError(f"law is {shown(value)}: expected a Law; pass {way}")


def _as_array(u: Any) -> Any:
    return u if hasattr(u, "__array_namespace__") else np.asarray(u, dtype=np.float64)


@cache
def gauss_legendre(count: int) -> tuple[Array, Array]:
    """Return nodes and weights on [-1, 1], read-only; kept, because finding them costs more than a law does."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def _outside_cone() -> Law:
    """Return the law with bracket c ((z - 1/2)^2 + 0.01), admissible but outside the positive cone (paper, Eq. 10).

    c gives it the interface width of the sixth law between the phase values -0.9 and 0.9.
    """
    shape = Law.bernstein([0.26, -0.24, 0.26], name="outside_cone")
    return shape.scaled((shape.interface_width() / named_law("sixth").interface_width()) ** 2)


_LAWS: dict[str, Callable[[], Law]] = {  # the paper's laws and its controls, as potentials F with epsilon = 1
    "quartic": lambda: Law.bernstein([1.0], name="quartic"),  # (1 - u^2)^2 / 4
    "sixth": lambda: Law.bernstein([0.75, 1.5], name="sixth"),  # (1 - u^2)^2 (1 + u^2/2) / 4
    "bernstein3": lambda: Law.bernstein([0.8, 3.0, 0.3, 1.8], name="bernstein3"),
    "exponential": lambda: Law.from_force(  # (1 - u^2)^2 exp(u^2) / 4
        lambda u: np.asarray(-u * (1 - u**2) * np.exp(u**2) * (1 + u**2) / 2), name="exponential"
    ),
    "rational": lambda: Law.from_force(  # (1 - u^2)^2 / (4 (1 + 0.7 u^2))
        lambda u: np.asarray(-u * (1 - u**2) * (2.7 + 0.7 * u**2) / (2 * (1 + 0.7 * u**2) ** 2)), name="rational"
    ),
    "outside_cone": _outside_cone,
}
LAW_NAMES = tuple(_LAWS)


def named_law(name: str) -> Law:
    """Return one of the laws quartic, sixth, bernstein3, exponential, rational, outside_cone.

    >>> named_law("sixth").coefficients.tolist()
    [0.75, 1.5]
    """
    if not isinstance(name, str) or name not in _LAWS:
        raise InputError(f"no law is named {shown(name)}: expected one of {', '.join(_LAWS)}")
    return _made(name)


@cache
def _made(name: str) -> Law:
    return _LAWS[name]()
