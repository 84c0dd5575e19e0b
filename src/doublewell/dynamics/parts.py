"""Parts of an equation, known or estimated with the law: anisotropy, a mobility q(u), a driving force h(t)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np

from doublewell.dynamics.anisotropy import Anisotropy, entry_names, tensor_of
from doublewell.dynamics.driving import Driving
from doublewell.dynamics.mobility import FIRST, HIGHEST, Mobility
from doublewell.errors import InputError, is_whole, shown
from doublewell.hints import Array
from doublewell.record import Record

Estimated = Literal["estimated"]


@dataclass(frozen=True)
class JointParameter:
    """A number that can be estimated jointly with the law.

    Inside a fit it is measured in ``unit`` ("q": the record's q; "dx^2": the squared spacing of the last axis; "u": a
    phase value or a pure number), and starts at ``start``. ``prior`` is the standard deviation of what is known of it
    before, around the start; infinite where nothing is.
    """

    name: str
    start: float
    unit: Literal["q", "dx^2", "u"]
    prior: float = np.inf

    def scale(self, record: Record) -> float:
        """Return the unit of a record as a number."""
        return {"q": float(record.q or 0.0), "dx^2": record.dx[-1] ** 2}.get(self.unit, 1.0)


JOINT = {
    "q": JointParameter("q", start=1.0, unit="q"),
    "anisotropy": JointParameter("anisotropy", start=0.0, unit="u", prior=0.5),
    "flux": JointParameter("flux", start=0.0, unit="u", prior=0.5),
    "mobility": JointParameter("mobility", start=0.0, unit="u", prior=2.0),
}


def joint_parameter(name: str) -> JointParameter:
    """Return a parameter of an equation, such as "q", "anisotropy xx" or "mobility 2"."""
    return replace(JOINT[name.partition(" ")[0]], name=name)


@dataclass(frozen=True)
class Parts:
    """What is added to an equation; None: nothing.

    ``anisotropy`` is that of the gradient energy, ``flux`` that of the mobility of a conserved field, ``mobility`` the
    rate of each phase, where it is estimated by its degree or at one that the data choose, ``driving`` a known force in
    time, ``thermal`` noise that is tied to dissipation.
    """

    anisotropy: Anisotropy | Estimated | None = None
    flux: Anisotropy | Estimated | None = None
    mobility: Mobility | int | Estimated | None = None
    driving: Driving | Callable[[Any], Any] | None = None
    thermal: bool = False

    def estimated(self, axes: int, boundary: str | None) -> tuple[str, ...]:
        """Return the names of what is estimated beside q."""
        names: list[str] = []
        for name, part in (("anisotropy", self.anisotropy), ("flux", self.flux)):
            if isinstance(part, str):
                if axes == 1:
                    raise InputError(f"{name} is 'estimated': expected a field of two or three axes, and this has one")
                names += [f"{name} {entry}" for entry in entry_names(axes, crossed=boundary == "periodic")]
        return (*names, *[f"mobility {k + 1}" for k in range(self.degree)])

    @property
    def degree(self) -> int:
        """The degree of a mobility that is estimated, of the first fit where the data choose; 0 where none is."""
        return self.mobility if isinstance(self.mobility, int) else FIRST if self.mobility == "estimated" else 0

    def settled(self, values: Mapping[str, float], axes: int, phases: tuple[float, float]) -> dict[str, Any]:
        """Return what was estimated as known parts, by the name of the part."""
        found: dict[str, Any] = {}
        for name in ("anisotropy", "flux"):
            own = {key.split(" ")[1]: value for key, value in values.items() if key.startswith(f"{name} ")}
            if own:
                found[name] = Anisotropy(tensor=tensor_of(own, axes))
        rates = [value for key, value in values.items() if key.startswith("mobility ")]
        return found | ({"mobility": Mobility(tuple(rates), phases)} if rates else {})

    def driven(self, times: Array) -> Array | None:
        """Return the driving force at some times, one row each; None where there is none."""
        if self.driving is None:
            return None
        values = self.driving.at(times) if isinstance(self.driving, Driving) else np.asarray(self.driving(times))
        return np.asarray(values + 0.0 * times)[None]

    @property
    def tensors(self) -> dict[str, tuple[tuple[float, ...], ...]]:
        """The known tensors by their symbols in an equation: A of the gradient energy, B of the mobility."""
        parts = {"A": self.anisotropy, "B": self.flux}
        return {name: part.tensor for name, part in parts.items() if isinstance(part, Anisotropy)}

    @property
    def rate(self) -> Mobility | None:
        """The mobility where it is known."""
        return self.mobility if isinstance(self.mobility, Mobility) else None

    @property
    def bend(self) -> str:
        """The Laplacian of the gradient energy as text."""
        return "Laplacian u" if self.anisotropy is None else "div(A grad u)"

    @property
    def noise(self) -> str:
        """Thermal noise as text, an end of the equation."""
        return " + thermal noise" if self.thermal else ""

    @property
    def varied(self) -> bool:
        """Whether there are any that change the mean of a rate."""
        return replace(self, thermal=False) != Parts()

    @property
    def oblique(self) -> bool:
        """Whether a known anisotropy has other axes than the mesh."""
        return any(
            np.count_nonzero(tensor - np.diag(np.diag(tensor))) for tensor in map(np.array, self.tensors.values())
        )

    @property
    def acts(self) -> bool:
        """Whether the force is not that of the law alone."""
        return self.mobility is not None or self.driving is not None

    def fastest(self, order: int) -> float:
        """Return by how much an equation may be faster with what is known of its parts."""
        factor = 1.0 if self.rate is None else self.rate.largest
        if "A" in self.tensors and order > 2:  # a smaller gradient energy lets shorter waves grow
            factor /= float(np.linalg.eigvalsh(self.tensors["A"])[0])
        return factor * (float(np.linalg.eigvalsh(self.tensors["B"])[-1]) if "B" in self.tensors else 1.0)

    @property
    def stiffest(self) -> float:
        """By how much the shortest waves may decay faster with what is known of the parts."""
        largest = [float(np.linalg.eigvalsh(tensor)[-1]) for tensor in self.tensors.values()]
        return float(np.prod(largest)) * (1.0 if self.rate is None else self.rate.largest)


def check_anisotropy(value: Any, name: str = "anisotropy") -> Anisotropy | Estimated | None:
    """Return an anisotropy from itself, "estimated", or "ratio:angle"."""
    if value is None or isinstance(value, Anisotropy):
        return value
    if isinstance(value, str) and value == "estimated":
        return "estimated"
    try:
        ratio, _, angle = str(value).partition(":")
        return Anisotropy(float(ratio), float(angle or 0.0))
    except InputError:
        raise
    except ValueError:
        raise InputError(
            f"{name} is {shown(value)}: expected Anisotropy(ratio, angle), 'estimated', or ratio:angle in words"
        ) from None


def check_mobility(value: Any) -> Mobility | int | Estimated | None:
    """Return a mobility from itself, "estimated", or the degree of its logarithm where it is estimated."""
    if value is None or isinstance(value, Mobility):
        return value
    if isinstance(value, str) and value == "estimated":
        return "estimated"
    number = int(value) if isinstance(value, str) and value.isdigit() else value
    if is_whole(number) and 1 <= number <= HIGHEST:
        return int(number)
    raise InputError(
        f"mobility is {shown(value)}: expected Mobility.of(function), 'estimated', or the degree of its logarithm, 1 "
        f"to {HIGHEST}"
    )


def check_driving(value: Any) -> Driving | Callable[[Any], Any] | None:
    """Return a driving force from itself, a function of the time, or the name of a file."""
    if value is None or isinstance(value, Driving):
        return value
    if callable(value):
        function: Callable[[Any], Any] = value
        return function
    if isinstance(value, str):
        return Driving.read(value)
    raise InputError(f"driving is {shown(value)}: expected Driving(times, values), a function of the time, or a file")


def check_thermal(value: Any) -> bool:
    """Return whether there is thermal noise, from a boolean or from its word."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    raise InputError(f"thermal is {shown(value)}: expected True or False; its size is theta of simulate, or estimated")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "anisotropy": check_anisotropy,
    "flux": lambda value: check_anisotropy(value, "flux"),
    "mobility": check_mobility,
    "driving": check_driving,
    "thermal": check_thermal,
}


@dataclass(frozen=True)
class WithParts:
    """An equation whose fields are its parts: each is checked, and may be given in words."""

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, _CHECKS[item.name](getattr(self, item.name)))
        if self.parts.thermal and (self.parts.mobility is not None or "estimated" in vars(self).values()):
            raise InputError(
                "thermal noise of a mobility that depends on the phase has a drift of its own, which is not included, "
                "and an anisotropy has to be known: expected a constant mobility and known parts"
            )

    @property
    def parts(self) -> Parts:
        """What is added to the equation."""
        return Parts(**{item.name: getattr(self, item.name) for item in fields(self)})

    def changed(self, **parts: Any) -> Self:
        """Return the equation with other parts."""
        return replace(self, **parts)
