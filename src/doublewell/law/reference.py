"""The named laws of the paper and of its controls, as potentials F with epsilon = 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.law.law import Law

__all__ = ["LAW_NAMES", "named_law"]


def _quartic() -> Law:
    """F = (1 - u^2)^2 / 4."""
    return Law.bernstein([1.0], name="quartic")


def _sixth() -> Law:
    """F = (1 - u^2)^2 (1 + u^2/2) / 4, whose bracket is 3 (1 + z) / 4."""
    return Law.bernstein([0.75, 1.5], name="sixth")


def _bernstein3() -> Law:
    """F with the degree-three coefficients (0.8, 3.0, 0.3, 1.8)."""
    return Law.bernstein([0.8, 3.0, 0.3, 1.8], name="bernstein3")


def _exponential() -> Law:
    """F = (1 - u^2)^2 exp(u^2) / 4, outside every polynomial space."""
    return Law.from_force(lambda u: -u * (1 - u**2) * np.exp(u**2) * (1 + u**2) / 2, name="exponential")


def _rational() -> Law:
    """F = (1 - u^2)^2 / (4 (1 + 0.7 u^2)), outside every polynomial space."""
    return Law.from_force(lambda u: -u * (1 - u**2) * (2.7 + 0.7 * u**2) / (2 * (1 + 0.7 * u**2) ** 2), name="rational")


def _outside_cone() -> Law:
    """The admissible law with bracket c ((z - 1/2)^2 + 0.01), outside the positive cone (paper, Eq. 10).

    c gives it the interface width of the sixth law between the phase values -0.9 and 0.9.
    """
    shape = Law.bernstein([0.26, -0.24, 0.26], name="outside_cone")
    return shape.scaled((shape.interface_width() / _sixth().interface_width()) ** 2)


_LAWS: dict[str, Callable[[], Law]] = {
    "quartic": _quartic,
    "sixth": _sixth,
    "bernstein3": _bernstein3,
    "exponential": _exponential,
    "rational": _rational,
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
