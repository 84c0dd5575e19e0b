"""Equilibrium: the planar interface of a known potential on a mesh, and the tension that its energy gives.

A road to the surface tension of its own: a boundary-value problem instead of the integral of sqrt(2 F). Its error is
of second order in the mesh.
"""

from __future__ import annotations

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Law

__all__ = ["FINE", "UNDER_RESOLVED", "equilibrium_tension"]

FINE = 0.01  # mesh in units of epsilon; both give the tension errors that the paper reports
UNDER_RESOLVED = 0.6
_HALF_LENGTH = 12.0  # in units of epsilon: the tails have decayed to round-off
_STEPS = 60
_SLOPE = 1e-6


def equilibrium_tension(law: Law, spacing: float) -> float:
    """Solve u'' = F'(u) from u(0) = 0 to u = 1 and return the energy of the odd profile, in units of epsilon = 1.

    The energy, the sum of h ((u_x)^2 / 2 + F), is what the solution makes stationary on the mesh. Half a profile is
    solved for, because a whole one could be anywhere.
    """
    x = spacing * np.arange(1, round(_HALF_LENGTH / spacing))
    u = np.tanh(x / np.sqrt(2.0))
    for _ in range(_STEPS):
        step = _newton_step(law, u, spacing)
        u = u + step
        if float(np.max(np.abs(step))) < 1e-10:
            return _energy(law, u, spacing)
    raise InputError(
        f"the equilibrium on a mesh of {spacing:g} epsilon did not converge: expected a double well and a mesh that "
        "resolves its interface; use a finer mesh"
    )


def _newton_step(law: Law, u: Array, h: float) -> Array:
    from scipy.linalg import solve_banded

    rest = np.diff(_with_ends(u), 2) / h**2 - law.force(u)
    slope = (law.force(u + _SLOPE) - law.force(u - _SLOPE)) / (2 * _SLOPE)
    bands = np.full((3, u.size), 1.0 / h**2)
    bands[1] = -2.0 / h**2 - slope
    return np.asarray(solve_banded((1, 1), bands, -rest))


def _energy(law: Law, u: Array, h: float) -> float:
    half = np.sum(np.diff(_with_ends(u)) ** 2) / (2 * h) + h * np.sum(law.primitive(u))
    return float(2.0 * half + h * law.barrier)


def _with_ends(u: Array) -> Array:
    return np.concatenate([[0.0], u, [1.0]])
