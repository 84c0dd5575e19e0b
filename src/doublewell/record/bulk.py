"""Bulk: which pixels lie deep inside a phase, far from every interface."""

from __future__ import annotations

from dataclasses import dataclass
from math import atanh

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

__all__ = ["Bulk", "find_bulk", "interface_pixels"]

_SMOOTH = 1.5  # pixels, so that noise makes no specks of the other phase
_DEEP = 1.5  # interface widths from the middle of an interface: a tanh profile is there within 0.03 % of its end
_SHALLOW = 0.9  # quantile of the distance inside a phase that stands in where no pixel lies so deep
_REACH = 2.0 * atanh(0.9)


@dataclass(frozen=True, eq=False)
class Bulk:
    """Pixels of one frame deep inside each phase; a deficit is how far profiles are from their end there, in u."""

    low: NDArray[np.bool_]
    high: NDArray[np.bool_]
    deficit_low: float
    deficit_high: float


def find_bulk(u: Array, width: float) -> Bulk:
    """Return the pixels of a rough phase field that lie deep in a phase; `width` is the interface's, in pixels."""
    above = _smoothed(u) > 0.0
    low, below = _deep(~above, width)
    high, beyond = _deep(above, width)
    return Bulk(low, high, below, beyond)


def interface_pixels(u: Array) -> float | None:
    """Return the width of the interfaces of a rough phase field from -0.9 to 0.9 in pixels, None where there is none.

    It is the width of the tanh profile with the median slope near u = 0.
    """
    smooth = _smoothed(u)
    near = np.abs(smooth) < 0.3
    if np.count_nonzero(near) < 2:
        return None
    slope = float(np.median(np.sqrt(sum(g[near] ** 2 for g in np.atleast_2d(np.gradient(smooth))))))
    return _REACH / slope if slope > 0.0 else None


def _smoothed(u: Array) -> Array:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(u, _SMOOTH, mode="nearest"))


def _deep(inside: NDArray[np.bool_], width: float) -> tuple[NDArray[np.bool_], float]:
    """Return the deep pixels of one phase, and the mean of 1 - tanh of their depth."""
    from scipy.ndimage import distance_transform_edt

    if inside.all() or not inside.any():
        return inside, 0.0
    depth = distance_transform_edt(inside)
    chosen = depth >= min(_DEEP * width, float(np.quantile(depth[inside], _SHALLOW)))
    return np.asarray(chosen), float(np.mean(1.0 - np.tanh(_REACH * depth[chosen] / width)))
