"""Terms: what an equation may lack, as functions of the state of a field; what each adds to u_t / q.

A term is a plain function of module level or one that is made once, so that compiled code is kept for it. The linear
response to any of them comes from the one solver (RecordModel), as the derivative by its amplitude at zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """A field at one time: u, L u of the equation, the force G(u), the fraction of the record that has passed.

    On whole domains ``second(field, a, b)`` differentiates along two axes, ``sloped(field)`` multiplies by G'(u).
    """

    u: Any
    curved: Any
    force: Any
    time: Any
    second: Any = None
    sloped: Any = None

    @property
    def rate(self) -> Any:
        """u_t / q of the equation."""
        return self.curved - self.force

    def laplacian(self, field: Any) -> Any:
        """Return the Laplacian of a field."""
        return sum(self.second(field, axis, axis) for axis in range(self.u.ndim))


Term = Callable[[State], Any]


def constant(state: State) -> Any:
    """A constant force, as it is added to G."""
    return -1.0 + 0.0 * state.u


def later(state: State) -> Any:
    """A force that grows with time."""
    return -state.time * state.force


def mean_force(state: State) -> Any:
    """A multiplier that conserves the mean."""
    return state.force.mean() + 0.0 * state.u


def conserved(state: State) -> Any:
    """The rate of a conserved field."""
    return -state.laplacian(state.rate)


def damped(state: State) -> Any:
    """What backward Euler adds: with steps h it follows u_t / q = r + (q h / 2) r', r' = Laplacian r - G'(u) r."""
    return state.laplacian(state.rate) - state.sloped(state.rate)


@lru_cache
def mobility(power: int) -> Term:
    """Return a mobility that depends on the phase."""
    return lambda state: state.u**power * state.rate


@lru_cache
def uneven(axis: int, number: int) -> Term:
    """Return a mobility that varies along an axis as a low mode: cosine and sine of once around, or of half of it."""

    def term(state: State) -> Any:
        n = state.u.shape[axis]
        x = (np.arange(n) + 0.5) / n
        mode = (np.cos(2 * np.pi * x), np.sin(2 * np.pi * x), np.cos(np.pi * x))[number]
        return mode.reshape([-1 if k == axis else 1 for k in range(state.u.ndim)]) * state.rate

    return term


@lru_cache
def curvature(one: int, other: int) -> Term:
    """Return another gradient energy along an axis, or along two."""
    return lambda state: state.second(state.u, one, other)
