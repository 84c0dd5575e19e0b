"""Family: the span of features that an effective force is a linear combination of.

With s in [-1, 1] the position between the phases, u = (low + high)/2 + w s and w = (high - low)/2, every force is
G(u) = -w (1 - s^2) r(s). Coefficients belong to s: they do not change when the phases are given other values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option, real, shown, whole
from doublewell.hints import Array
from doublewell.law.structure import Entropy, Structure, Tangents, classify, classify_wells, powers_of_s, powers_of_t

Constraint = Literal["admissible", "bernstein", "none"]
CONSTRAINTS: dict[Constraint, str] = {
    "admissible": "double wells with a single barrier",
    "bernstein": "positive coefficients",
    "none": "no constraint",
}
WellsKind = Literal["symmetric", "equal", "unequal", "found", "ideal"]
MAX_DEGREE = 8
UNIT = (-1.0, 1.0)
_GRID = 401  # points between the phases at which draws are compared
_STEP = 1e-5  # in s, of a difference that stands for a slope
_FINE = 1601  # points at which the slope of a force is taken


class Held(NamedTuple):
    """Coefficients that obey a constraint, one row per problem, and the rise of the cost that this takes.

    ``active`` marks coefficients at their bound, ``moved`` the rows that were outside the class, ``bounds`` are the
    lower bounds of the brackets, -inf where the class has none.
    """

    coefficients: Array
    rise: Array
    active: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    bounds: Array

    @classmethod
    def unchanged(cls, free: Array) -> Held:
        """Return free solutions as they are."""
        n = len(free)
        return cls(free, np.zeros(n), np.zeros(free.shape, dtype=bool), np.zeros(n, dtype=bool), np.full(n, -np.inf))


@dataclass(frozen=True)
class Family(ABC):
    """G(u) = sum_j g_j B_j(u), zero at the two pure phases and linear beyond them.

    Methods are pure functions of the coefficients and of NumPy or JAX arrays, and return the same kind; under JAX both
    may be traced. Families are values: compiled code is kept for each. A subclass works in s (methods with a leading
    underscore); this class moves it to the phases. ``degree`` is that of the bracket: in u^2 for symmetric wells, half
    of that in u for others.
    """

    degree: int
    phases: tuple[float, float] = UNIT
    size: int = field(init=False, compare=False, repr=False, default=0)  # number of coefficients

    counts: ClassVar[tuple[int, int]] = (1, 1)  # the size at degree 0, and what a degree adds
    name: ClassVar[str]  # as written to files
    symmetric: ClassVar[bool] = False  # every force is odd in s
    equal_depths: ClassVar[bool] = True  # H vanishes at both phases for every law
    convex: ClassVar[bool] = False  # an average of double wells is a double well
    cone: ClassVar[bool] = False  # positive coefficients are double wells, a class of its own ("bernstein")
    most: ClassVar[int | None] = MAX_DEGREE
    average_degree: ClassVar[int] = MAX_DEGREE  # at which a trajectory is linearised for the average over degrees
    lowest: ClassVar[int] = 1  # first terms of the series that have no prior
    inner: ClassVar[float] = 1.0  # up to where in s the record has values
    mixing: ClassVar[bool] = False  # with the entropy of ideal mixing between two pure components
    found: ClassVar[bool] = False  # the wells follow from the coefficients: ``phases`` are a range of values then

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole(self.degree, "degree", least=0, most=self.most))
        object.__setattr__(self, "size", self.counts[0] + self.counts[1] * self.degree)
        if self.phases is not UNIT:
            object.__setattr__(self, "phases", check_phases(self.phases))

    @property
    def half(self) -> float:
        """Half the distance of the phases, w."""
        return 0.5 * (self.phases[1] - self.phases[0])

    @property
    def middle(self) -> float:
        """The phase value half way between the phases."""
        return 0.5 * (self.phases[0] + self.phases[1])

    @property
    def even(self) -> bool:
        """Whether H is even in u, with its wells at -1 and +1."""
        return self.symmetric and self.phases == UNIT

    @property
    def read_with(self) -> Family:
        """The family that weak moments are read with; where it is a larger one the evidence is restricted after it."""
        return self

    def at(self, degree: int) -> Self:
        """Return the same family at another degree."""
        return replace(self, degree=degree)

    def placed(self, phases: tuple[float, float]) -> Self:
        """Return the same family with its wells at other phase values."""
        return replace(self, phases=check_phases(phases))

    def elevation(self, larger: Family) -> Array:
        """Return E with g_larger = E g: the same law at a higher degree, or in a family that contains this one.

        Symmetric laws lie in EqualWells and in Wells of the same degree, EqualWells in Wells, each degree in higher
        ones.
        """
        if self.phases != larger.phases:
            raise InputError(f"the phases differ ({self.phases} and {larger.phases}): expected families of one pair")
        if larger.degree < self.degree:
            raise InputError(
                f"cannot elevate degree {self.degree} to degree {larger.degree}: expected a degree of at least "
                f"{self.degree}"
            )
        matrix = larger._embed(self)
        if matrix is None:
            raise InputError(f"the family {self.name!r} does not lie in {larger.name!r}: expected a larger one")
        return matrix

    def __str__(self) -> str:
        phases = "" if self.phases == UNIT else f" with phases at {self.phases[0]:g} and {self.phases[1]:g}"
        return f"{self.name} of degree {self.degree}{phases}"

    # Curves

    def force(self, coefficients: Any, u: Any) -> Any:
        """Evaluate G(u)."""
        return self.half * self._force(coefficients, self._s(u))

    def primitive(self, coefficients: Any, u: Any) -> Any:
        """Evaluate H(u), the integral of G from the low phase to u."""
        return self.half**2 * self._primitive(coefficients, self._s(u))

    def features(self, u: Any) -> Any:
        """Evaluate all B_j at u; shape (size, *u.shape)."""
        return self.half * self._features(self._s(u))

    def slopes(self, u: Any) -> Any:
        """Evaluate all B_j' at u, by differences; shape (size, *u.shape)."""
        step = _STEP * self.half
        return (self.features(u + step) - self.features(u - step)) / (2.0 * step)

    def primitives(self, u: Any) -> Any:
        """Evaluate all P_j, the integrals of B_j from the low phase to u; shape (size, *u.shape)."""
        return self.half**2 * self._primitives(self._s(u))

    def kernel_table(self) -> tuple[Array, Array, Array]:
        """Return the family as numbers for the fused kernel: table, binomials, outer slopes.

        table = [low, high, z0, z1, z2, c0, c1, c2, c3]: features are (c0 + c1 x + c2 x^2 + c3 x^3) times Bernstein
        polynomials of z0 + z1 x + z2 x^2, x = u clipped to [low, high]; slopes[0] and slopes[1] continue each
        feature linearly below and above.
        """
        if self.phases != UNIT:
            raise InputError(
                f"a record is read with its phases at -1 and +1: use {option('phases', self.phases)} of identify"
            )
        return self._kernel_table()

    @abstractmethod
    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h(s) = H / (w^2 (1 - s^2)^2), finite and smooth up to the wells; wells of unequal depth raise."""

    def tilt(self, coefficients: Any) -> float:  # noqa: ARG002 - of every law with equal depths
        """Return H(high) - H(low), by how much the high phase lies above the low one."""
        return 0.0

    @abstractmethod
    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return H'' at the low and at the high phase."""

    def curvature(self, coefficients: Any, maximum: float) -> float:
        """Return H'' at the maximum between the phases."""
        return self._curvature(coefficients, float(self._s(maximum)))

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify_wells(self.exact_factor(coefficients), *self.phases)

    @abstractmethod
    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of r in t = (1 + s)/2, constant first, in exact arithmetic."""

    def maximum(self, coefficients: Array) -> float:
        """Return the phase value of the highest maximum between the wells, NaN where there is none."""
        tops = [point.u for point in self.structure(coefficients).stationary if point.kind == "maximum"]
        return max(tops, key=lambda u: float(self.primitive(coefficients, np.float64(u))), default=float("nan"))

    def terms(self, coefficients: Array) -> tuple[str, list[tuple[float, int]]]:
        """Return how the force is written: the factor and the terms (coefficient, power) of G = -w factor [sum], in s.

        >>> from doublewell.law import Wells
        >>> Wells(0).terms(np.array([-1.25, 0.75]))
        ('(1 - s^2)', [(-0.25, 0), (1.0, 1)])
        """
        return "(1 - s^2)", [(float(c), k) for k, c in enumerate(powers_of_s(self.exact_factor(coefficients)))]

    def written(self, coefficients: Array, digits: int) -> str:  # noqa: ARG002
        """Return the force as an equation where it is not that of ``terms``, else nothing."""
        return ""

    # The class of double wells, and draws

    def hold(self, constraint: Constraint, roots: Array, right: Array, free: Array, near: Array | None = None) -> Held:  # noqa: ARG002
        """Return the laws of a class nearest to free solutions of |root g - right|, one per row, in the metric of root.

        Shapes (n, size, size), (n, size), (n, size). A solution inside the class is returned unchanged. With `near`,
        the coefficients of a law close to all of them, an approximate answer that is much faster may be given.
        """
        raise InputError(f"the family {self.name!r} cannot be fitted: expected Bernstein, EqualWells or Wells")

    def contacts(self, coefficients: Array, bound: float) -> tuple[float, ...]:  # noqa: ARG002
        """Return the values of |u| where a law touches the lower bound of its class, increasing."""
        return ()

    def single_barrier(self, coefficients: Array) -> NDArray[np.bool_]:
        """Return which laws, one per row, have one maximum between two stable phases, judged on a grid."""
        s = np.cos(np.linspace(np.pi, 0.0, _GRID))[1:-1]
        signs = np.sign(-(coefficients @ self._features(s)))
        rises = np.count_nonzero(np.diff(signs, axis=1), axis=1) == 1
        curvatures = np.array([self.well_curvatures(g) for g in coefficients]).reshape(len(coefficients), 2)
        return np.asarray(rises & np.all(curvatures > 0.0, axis=1))

    def steepness(self, coefficients: Array) -> float:
        """Return a bound of |G'| in s: at the wells, where it is about twice that at the maximum between them."""
        return 2.0 * float(np.max(np.abs(coefficients)))

    def stable(self, coefficients: Array) -> bool:  # noqa: ARG002 - its phases are assumed
        """Return whether the force rises at both ends of the record's values."""
        return True

    def interaction(self, coefficients: Array) -> Array:  # noqa: ARG002
        """Return chi of laws, one per row, where they have the entropy of ideal mixing."""
        raise InputError(f"chi belongs to the entropy of ideal mixing: use {option('wells', 'ideal')}")

    def entropies(self, coefficients: Array) -> Array:  # noqa: ARG002
        """Return (a_1 + a_2) du of laws, one per row, du the distance of the pure components."""
        raise InputError(f"this law has no entropy of ideal mixing: use {option('wells', 'ideal')}")

    def entropy(self, coefficients: Array) -> Entropy:  # noqa: ARG002
        """Return the terms of a force with the entropy of ideal mixing, zero at the coexisting phases."""
        raise InputError(f"this law has no entropy of ideal mixing: use {option('wells', 'ideal')}")

    def tangents(self, rows: Array) -> Tangents:
        """Return the lines that potentials, one per row, are measured from: zero where the wells are those assumed."""
        (low, high), none = self.phases, np.zeros(len(rows))
        return Tangents(none + low, none + high, none, none)

    def ends(self, rows: Array) -> Array:
        """Return the low and the high phase of each law, of one without wells of its own the ends of the range."""
        line = self.tangents(rows)
        return np.where(line.known[:, None], np.stack([line.low, line.high], axis=1), np.array(self.phases))

    def spinodals(self, rows: Array) -> Array:
        """Return the ends of the interval in which the force of each law falls, a pair a row; NaN where it has none.

        The interval is that of the steepest fall. Slopes are differences on a fine grid.
        """
        s = np.linspace(-1.0, 1.0, _FINE)
        u, row, ends = self.middle + self.half * s, np.arange(len(rows)), []
        slope = np.gradient(rows @ self.features(u), u, axis=1)
        steepest = np.argmin(np.where(np.abs(s) <= self.inner, slope, np.inf), axis=1)
        first, last = run_around(slope < 0.0, steepest)
        for here, beyond in ((first, first - 1), (last, last + 1)):
            known = (beyond >= 0) & (beyond < u.size) & (slope[row, steepest] < 0.0)
            there = np.clip(beyond, 0, u.size - 1)
            inside, outside = slope[row, here], slope[row, there]
            way = np.divide(inside, inside - outside, out=np.zeros_like(inside), where=known)
            ends.append(np.where(known, u[here] + way * (u[there] - u[here]), np.nan))
        return np.stack(ends, axis=1)

    def heights(self, rows: Array, s: Array) -> Array:
        """Return H of laws, one per row, at positions s between their phases; NaN where a law has none."""
        return np.asarray(rows @ self.primitives(self.middle + self.half * s))

    def forces(self, rows: Array, s: Array) -> Array:
        """Return G of laws, one per row, at positions s between their phases; NaN where a law has none."""
        return np.asarray(rows @ self.features(self.middle + self.half * s))

    def barriers(self, coefficients: Array) -> Array:
        """Return the height of the maximum of laws, one per row, over the low phase."""
        return np.asarray(np.max(self.heights(coefficients, np.linspace(-1.0, 1.0, _GRID)), axis=1))

    def maxima(self, coefficients: Array) -> Array:
        """Return the phase value where the force of each law falls through zero, where H is highest."""
        s, (low, high) = np.linspace(-1.0, 1.0, _GRID), self.ends(coefficients).T
        top = np.argmax(np.nan_to_num(self.heights(coefficients, s)[:, 1:-1]), axis=1) + 1
        force, rows = self.forces(coefficients, s), np.arange(len(top))
        left = np.where(force[rows, top] > 0.0, top, top - 1)  # the zero comes after the point with a positive force
        here, there = force[rows, left], force[rows, left + 1]
        fraction = np.clip(here / np.where(here > there, here - there, 1.0), 0.0, 1.0)
        return np.asarray(low + 0.5 * (high - low) * (1.0 + s[left] + fraction * (s[1] - s[0])))

    def series(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the matrix from the series of the prior to the coefficients, and the order k of each of its terms.

        The first term, of order 0, is the quartic law; the prior of the others is in its units and decays with k. Of a
        family with more than one ``lowest`` term the unit is the length of these.
        """
        raise InputError(f"the family {self.name!r} has no prior: expected Bernstein, EqualWells or Wells")

    # In s, for subclasses

    def _force(self, coefficients: Any, s: Any) -> Any:  # this or _features
        return namespace(s).tensordot(namespace(s).asarray(coefficients), self._features(s), axes=1)

    def _primitive(self, coefficients: Any, s: Any) -> Any:  # this or _primitives
        return namespace(s).tensordot(namespace(s).asarray(coefficients), self._primitives(s), axes=1)

    def _features(self, s: Any) -> Any:
        return namespace(s).stack([self._force(row, s) for row in np.eye(self.size)])

    def _primitives(self, s: Any) -> Any:
        return namespace(s).stack([self._primitive(row, s) for row in np.eye(self.size)])

    def _kernel_table(self) -> tuple[Array, Array, Array]:
        raise InputError(
            f"weak moments are not read with {self.name!r}: use family.read_with, then restrict the evidence"
        )

    @abstractmethod
    def _curvature(self, coefficients: Any, s: float) -> float: ...

    def _embed(self, smaller: Family) -> Array | None:
        """Return the matrix from a family of at most the same degree to this one, None where it does not lie inside."""
        return None if type(smaller) is not type(self) else np.eye(self.size, smaller.size)

    def _s(self, u: Any) -> Any:
        return u if self.phases == UNIT else (u - self.middle) / self.half


class EvenFamily(Family):
    """Families with symmetric wells, r(s) = s p(s^2): G = -w s (1 - s^2) p(z) and H = w^2 (1 - s^2)^2 h(z), z = s^2."""

    symmetric = convex = True

    @abstractmethod
    def bracket(self, coefficients: Any, z: Any) -> Any:
        """Evaluate p(z) for z in [0, 1]."""

    @abstractmethod
    def reduced(self, coefficients: Any, z: Any) -> Any:
        """Evaluate h(z)."""

    @abstractmethod
    def exact_bracket(self, coefficients: Array) -> list[Fraction]:
        """Return the monomial coefficients of p, constant first, in exact arithmetic."""

    def height(self, coefficients: Any, s: Any) -> Any:
        """Evaluate h at s."""
        return self.reduced(coefficients, s * s)

    def well_curvatures(self, coefficients: Any) -> tuple[float, float]:
        """Return 2 p(1) for both phases."""
        value = float(2.0 * self.bracket(coefficients, 1.0))
        return value, value

    def structure(self, coefficients: Array) -> Structure:
        """Return the stationary points, decided exactly."""
        return classify(self.exact_bracket(coefficients)) if self.even else super().structure(coefficients)

    def exact_factor(self, coefficients: Array) -> list[Fraction]:
        """Return r(s) = s p(s^2) in powers of t = (1 + s)/2."""
        return powers_of_t([x for c in self.exact_bracket(coefficients) for x in (Fraction(0), c)])

    def maximum(self, coefficients: Array) -> float:
        """Return 0 for wells at -1 and +1."""
        return 0.0 if self.even else super().maximum(coefficients)

    def terms(self, coefficients: Array) -> tuple[str, list[tuple[float, int]]]:
        """Return the bracket in even powers for wells at -1 and +1, all of r otherwise."""
        if not self.even:
            return super().terms(coefficients)
        return "s (1 - s^2)", [(float(c), 2 * k) for k, c in enumerate(self.exact_bracket(coefficients))]

    def barriers(self, coefficients: Array) -> Array:
        """Return the heights half way between the phases."""
        return np.asarray(coefficients @ self.primitives(np.array([self.middle]))[:, 0])

    def maxima(self, coefficients: Array) -> Array:
        """Return the middle of the phases for every law."""
        return np.full(len(coefficients), self.middle)

    def single_barrier(self, coefficients: Array) -> NDArray[np.bool_]:
        """Return which brackets, one per row, are positive on a grid of z."""
        z = np.linspace(0.0, 1.0, _GRID)
        brackets = coefficients @ self.bracket(np.eye(self.size), z[:, None]).T
        return np.asarray(np.min(brackets, axis=1) > 0.0)

    def _force(self, coefficients: Any, s: Any) -> Any:
        x = namespace(s).clip(s, -1.0, 1.0)
        inside = -x * ((1.0 - x) * (1.0 + x)) * self.bracket(coefficients, x * x)  # 1 - s^2 without cancellation
        return inside + 2.0 * self.bracket(coefficients, 1.0) * (s - x)

    def _primitive(self, coefficients: Any, s: Any) -> Any:
        x = namespace(s).clip(s, -1.0, 1.0)
        inside = ((1.0 - x) * (1.0 + x)) ** 2 * self.reduced(coefficients, x * x)
        return inside + self.bracket(coefficients, 1.0) * (s - x) ** 2

    def _curvature(self, coefficients: Any, s: float) -> float:  # noqa: ARG002 - always at 0
        return -float(self.bracket(coefficients, 0.0))


def even_family(family: Family, purpose: str) -> EvenFamily:
    """Return a symmetric family with its phases at -1 and +1; others are refused."""
    if not (isinstance(family, EvenFamily) and family.even):
        raise InputError(
            f"{purpose} needs a symmetric law with its wells at -1 and +1: got {family.name!r} with wells at "
            f"{family.phases[0]:g} and {family.phases[1]:g}; fit with "
            f"{option('wells', 'symmetric')} and the phases at -1 and +1"
        )
    return family


def check_constraint(value: Any) -> Constraint:
    """Return the name of a constraint; anything else raises and lists them."""
    if not isinstance(value, str) or value not in CONSTRAINTS:
        raise InputError(
            f"constraint is {shown(value)}: expected 'admissible' (double wells with a single barrier), "
            "'bernstein' (positive coefficients) or 'none'"
        )
    return value


def check_phases(phases: Any) -> tuple[float, float]:
    """Return the phase values of the two wells as floats, the lower first."""
    try:
        low, high = tuple[Any, ...]() if isinstance(phases, str) else phases
    except (TypeError, ValueError):
        raise InputError(
            f"{option('phases').rstrip('=')} is {shown(phases)}: expected a pair such as (-1, 1) or (0, 1), or "
            "'estimated' for a fit"
        ) from None
    low, high = real(low, "the low phase", "a phase value"), real(high, "the high phase", "a phase value")
    if not low < high:
        raise InputError(f"the phases are {low:g} and {high:g}: expected the lower one first")
    return low, high


def namespace(u: Any) -> Any:
    """Return the array library of u: NumPy, or JAX where u is a JAX array."""
    return u.__array_namespace__() if hasattr(u, "__array_namespace__") else np


def run_around(marked: NDArray[np.bool_], start: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and the last index of the run of marked entries around `start`, in each row."""
    index, count = np.arange(marked.shape[1]), marked.shape[1]
    before = np.where(~marked & (index < start[:, None]), index, -1).max(axis=1) + 1
    after = np.where(~marked & (index > start[:, None]), index, count).min(axis=1) - 1
    return before, after
