"""Cone: many small problems that share their constraint, solved with positive coefficients where it is needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

__all__ = ["Held", "into_cone"]

_BOUND = 1e-10  # lower bound of positive coefficients, relative to a constant bracket of the data's size


class Held(NamedTuple):
    """Coefficients that obey a constraint, one row for each problem, and the rise of the cost that this takes.

    ``active`` marks coefficients at their bound. ``bounds`` are the lower bounds of the brackets that were moved,
    -inf where nothing was or where the bound is one of coefficients.
    """

    coefficients: Array
    rise: Array
    active: NDArray[np.bool_]
    bounds: Array


def into_cone(roots: Array, right: Array, free: Array) -> Held:
    """Solve |root g - right| with positive coefficients where `free` has others.

    The bound's unit is the constant bracket of the same size as the data. The largest unbounded coefficient is no
    unit: where the record does not reach, it may be larger by ten decades.
    """
    from scipy.optimize import nnls

    held, rise, active = free.copy(), np.zeros(len(free)), np.zeros(free.shape, dtype=bool)
    bounds = _BOUND * np.linalg.norm(right, axis=1) / np.linalg.norm(np.sum(roots, axis=2), axis=1)
    for i in np.flatnonzero(np.any(free < bounds[:, None], axis=1)):
        norms = np.linalg.norm(roots[i], axis=0)
        lift, misfit = nnls(roots[i] / norms, right[i] - bounds[i] * np.sum(roots[i], axis=1))
        held[i], rise[i], active[i] = bounds[i] + lift / norms, misfit**2, lift == 0.0
    return Held(held, rise, active, np.full(len(free), -np.inf))
