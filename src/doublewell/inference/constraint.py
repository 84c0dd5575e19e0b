"""Constraint: the classes of laws that an estimate may be held in, and the one way into each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference.admissible import into_class
from doublewell.inference.cone import Held, into_cone

__all__ = ["CONSTRAINTS", "Constraint", "LawClass", "check_constraint", "hold"]

Constraint = Literal["admissible", "bernstein", "none"]


@dataclass(frozen=True)
class LawClass:
    """A class of laws: its name in words, and how free solutions of |root g - right| are moved into it."""

    words: str
    into: Callable[[Array, Array, Array], Held]


def check_constraint(value: Any) -> Constraint:
    """Return the name of a constraint, or say which there are."""
    if not isinstance(value, str) or value not in CONSTRAINTS:
        raise InputError(
            f"constraint is {shown(value)}: expected 'admissible' (every plain double well), 'bernstein' (positive "
            "coefficients) or 'none'"
        )
    return value


def hold(constraint: Constraint, roots: Array, right: Array, free: Array) -> Held:
    """Return the laws of a class nearest to free solutions, one a row, in the metric of their roots.

    A free solution that is in the class is returned unchanged.
    """
    return CONSTRAINTS[constraint].into(roots, right, free)


def _as_they_are(_: Array, __: Array, free: Array) -> Held:
    return Held(free, np.zeros(len(free)), np.zeros(free.shape, dtype=bool), np.full(len(free), -np.inf))


CONSTRAINTS: dict[Constraint, LawClass] = {
    "admissible": LawClass("plain double wells", into_class),
    "bernstein": LawClass("positive coefficients", into_cone),
    "none": LawClass("no constraint", _as_they_are),
}
