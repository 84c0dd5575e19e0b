"""Dynamics: an equation of motion as a value. Everything that steps, fits or checks a field takes one.

    u_t = q (L u - D G(u))

L and D are diagonal on the modes of a mesh, G is the effective force of a law and q the one number that sets the
time scale. Only the files of this package write an equation; simulate, survey, weak, likelihood, adequacy, validate,
plan and export ask a Dynamics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from doublewell.dynamics.anisotropy import check_axes, direction_products, stretch
from doublewell.dynamics.driving import Driving
from doublewell.dynamics.parts import Parts
from doublewell.errors import InputError, positive, shown, whole
from doublewell.hints import Array
from doublewell.law import Law

Gauge = Literal["nothing", "constant"]


@runtime_checkable
class Dynamics(Protocol):
    """What a new equation has to write: a frozen dataclass, hashable, so that compiled code is kept for it.

    Methods are pure functions of NumPy arrays. Numbers in the symbols are run-time arrays of compiled code: a new value
    compiles nothing.
    """

    def __hash__(self) -> int:
        """Dynamics are values: compiled code is kept for each."""

    @property
    def name(self) -> str:
        """Short name, as written to files and given to ``dynamics_of``."""

    @property
    def equation(self) -> str:
        """The equation as text, with q and G."""

    @property
    def gauge(self) -> Gauge:
        """What of the force the equation leaves open: "nothing", or "constant" where D vanishes at k = 0."""

    @property
    def order(self) -> int:
        """The highest derivative in space: q has the unit length^order / time."""

    @property
    def symbol(self) -> str:
        """The symbol of q / kappa, the kinetic coefficient that a surface tension makes known (kappa = sigma / C_H)."""

    @property
    def weak_form(self) -> WeakForm:
        """The columns of its weak moments."""

    @property
    def parts(self) -> Parts:
        """What may be added to it, known or estimated."""

    def changed(self, **parts: Any) -> Dynamics:
        """Return the equation with other parts."""

    def linear(self, waves: Sequence[Array]) -> Array:
        """Return L(k) <= 0 of each mode from the wave numbers along each axis, shaped for broadcasting."""

    def coupling(self, waves: Sequence[Array]) -> Any:
        """Return D(k) >= 0 of each mode, or one number where it is the same for all."""

    @property
    def border(self) -> int | None:
        """Cells of an open window's border: 2 where D is 1, 6 where L = -D^2, D = |k|^2; None: windows are refused."""


DYNAMICS: dict[str, Dynamics] = {}  # by name; each file of a dynamics enters its own


def dynamics_of(name: str | Dynamics) -> Dynamics:
    """Return the dynamics of a name, with or without its parts; a Dynamics as it is.

    >>> dynamics_of("allen-cahn").equation
    'u_t = q (Laplacian u - G(u))'
    >>> dynamics_of("allen-cahn(anisotropy=1.2:30)").parts.anisotropy
    Anisotropy(ratio=1.2, angle=30)
    """
    if isinstance(name, str):
        base, bracket, rest = name.strip().partition("(")
        if base.strip() in DYNAMICS and (not bracket or rest.endswith(")")):
            return _with_parts(DYNAMICS[base.strip()], rest[:-1])
    if isinstance(name, Dynamics) and not isinstance(name, type):
        return name
    raise InputError(
        f"dynamics is {shown(name)}: expected one of {', '.join(map(repr, DYNAMICS))}, 'auto' for a fit, or a value "
        "with the methods of doublewell.dynamics.Dynamics"
    )


def _with_parts(base: Dynamics, words: str) -> Dynamics:
    """Return an equation with the parts that a text names: "anisotropy=1.2:30, mobility=estimated"."""
    given: dict[str, Any] = {}
    for word in filter(None, map(str.strip, words.split(","))):
        key, equals, value = (part.strip() for part in word.partition("="))
        known = [part.name for part in fields(Parts) if hasattr(base, part.name)]
        if key not in known or not equals:
            raise InputError(
                f"dynamics has {word!r}: {base.name} takes {', '.join(known)}, such as {known[0]}=estimated"
            )
        given[key] = value
    return base.changed(**given) if given else base


class Symbols(NamedTuple):
    """L and D on the modes of a mesh; a pytree of run-time arrays."""

    linear: Any
    coupling: Any


def symbols(dynamics: Dynamics, waves: Sequence[Array], crossed: Sequence[Array] | None = None) -> Symbols:
    """Return the symbols of a dynamics on modes with these wave numbers along each axis.

    `crossed` are those of ``Grid``, for anisotropy along other axes than those of the mesh.
    """
    of = Symbols(np.asarray(dynamics.linear(waves)), np.asarray(dynamics.coupling(waves), dtype=np.float64))
    for name, tensor in dynamics.parts.tensors.items():
        check_axes(tensor, len(waves), crossed=crossed is not None)
        of = stretched(of, tensor, direction_products(waves, crossed), drives=name == "B")
    return of


def stretched(of: Symbols, tensor: Any, products: Any, *, drives: bool) -> Symbols:
    """Return symbols with the tensor of a gradient energy, or of a mobility, which `drives` the force too."""
    ratio = stretch(tensor, products)
    return Symbols(of.linear * ratio, of.coupling * ratio if drives else of.coupling)


def fastest_rate(dynamics: Dynamics, waves: Sequence[Array], slope: float) -> float:
    """Return the largest L + D |G'| of all modes: how fast, in units of q, a force of this slope changes a field.

    The one bound behind every choice of a step: it bounds the growth of a disturbance where G' = -slope, and the step
    that resolves the force, for modes whose L outweighs the force are damped exactly.
    """
    rate = max(float(np.max(dynamics.linear(waves) + dynamics.coupling(waves) * slope)), 0.0)
    return rate * dynamics.parts.fastest(dynamics.order)


def steps_per_frame(rate: float, interval: float, largest: float) -> int:
    """Return the steps in a frame interval such that rate times step is at most `largest`."""
    return max(1, ceil(rate * interval / largest))


class HasForce(Protocol):
    """What the reaction of a step needs of a law: the force alone."""

    def force(self, u: Any) -> Any:
        """Evaluate G(u)."""


class Stepper(Protocol):
    """Advance a dynamics on a grid by frames of a fixed interval.

    A stepper knows the grid, q, the interval and the number of steps in it; the law comes with each run, read as
    the effective force G.
    """

    @property
    def order(self) -> int:
        """Order of the error in the step length."""

    @property
    def substeps(self) -> int:
        """Steps from one frame to the next."""

    def run(self, law: Law, u0: Array, *, intervals: int) -> Iterator[Array]:
        """Yield the fields after 1, 2, ..., intervals frame intervals, a new array each; u0 is not among them."""


def check_steps(*, dt: float, q: float, substeps: int) -> None:
    """Raise where the interval, the diffusion coefficient or the number of steps cannot be used."""
    positive(dt, "dt", "the frame interval")
    positive(q, "q", "the diffusion coefficient")
    whole(substeps, "substeps", least=1, meaning="the steps from frame to frame")


def settled(dynamics: Dynamics, values: Mapping[str, float], axes: int, phases: tuple[float, float]) -> Dynamics | None:
    """Return an equation with the estimated values of its parts; None where none was estimated."""
    found = dynamics.parts.settled(values, axes, phases)
    return dynamics.changed(**found) if found else None


def in_phases(dynamics: Dynamics, half: float) -> Dynamics:
    """Return the equation of a field in units of half the distance of its phases: a driving force is measured so."""
    driving = dynamics.parts.driving
    if half == 1.0 or not isinstance(driving, Driving):
        return dynamics
    scaled = replace(driving, values=tuple([value / half for value in driving.values]))
    return dynamics.changed(driving=scaled)


def since(dynamics: Dynamics, time: float) -> Dynamics:
    """Return the equation with its clock at zero at some time."""
    driving = dynamics.parts.driving
    if time == 0.0 or not isinstance(driving, Driving):
        return dynamics
    later = replace(driving, times=tuple([each - time for each in driving.times]))
    return dynamics.changed(driving=later)


def roughly(dynamics: Dynamics) -> Dynamics:
    """Return the equation as a first prediction takes it: without noise and what is to be estimated."""
    parts, known = dynamics.parts, dict[str, Any]()
    for name in ("anisotropy", "flux"):
        if isinstance(getattr(parts, name), str):
            known[name] = None
    if parts.mobility is not None:
        known["mobility"] = None
    if parts.thermal:
        known["thermal"] = False
    return dynamics.changed(**known) if known else dynamics


def check_known(dynamics: Dynamics) -> None:
    """Refuse an equation to be solved of which a part is to be estimated."""
    parts = dynamics.parts
    if "estimated" in (parts.anisotropy, parts.flux) or parts.degree:
        raise InputError(
            f"{dynamics!r} has a part that is to be estimated: expected known ones, such as Anisotropy(1.2, 30) or "
            "Mobility.of(function)"
        )


@dataclass(frozen=True)
class Column:
    """One column of the weak form, or with the source "features" one column for each feature of the force.

    ``time`` is the order of the time derivative (0 or 1), ``space`` the power of the Laplacian (0, 1 or 2).
    ``centred`` subtracts from the source its mean over the domain in each frame: a uniform multiplier.
    """

    name: str
    source: Literal["features", "field"]
    time: int = 0
    space: int = 0
    factor: float = 1.0
    centred: bool = False


WeakForm = tuple[Column, ...]
