"""Bracket: the lowest points of many brackets at once, and which of them are positive on [0, 1]."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array
from doublewell.law import Bernstein, Law

__all__ = ["Dips", "basis", "contacts", "dips", "lowest", "mesh", "positive_rows"]

_POINTS = 257  # two dips of a degree-8 bracket that no point separates differ by less than 1e-7 of its size
_NEWTON = 4
_ROUNDING = 1e-13  # of the largest coefficient: a bracket closer to zero is left to the exact test
_TOUCHING = 3.0  # bounds; what a bracket at its bound may have


class Dips(NamedTuple):
    """Local minima of brackets on [0, 1]: the row each belongs to, its place z and the value there."""

    rows: NDArray[np.intp]
    places: Array
    values: Array


def basis(degree: int, z: Array) -> Array:
    """Return the Bernstein polynomials of a degree at z; shape (*z.shape, degree + 1)."""
    j, columns = np.arange(degree + 1), z[..., None]
    return np.asarray(Bernstein(degree).binomials * columns**j * (1.0 - columns) ** (degree - j))


@cache
def mesh(degree: int) -> tuple[Array, Array]:
    """Return points of [0, 1], dense at its ends, and the Bernstein polynomials there."""
    z = np.sin(np.linspace(0.0, 0.5 * np.pi, _POINTS)) ** 2
    return z, basis(degree, z)


def dips(coefficients: Array, below: Array) -> Dips:
    """Return the local minima of the brackets, one a row, that lie below a value for each row.

    They are found on the mesh and refined by Newton's method between its points.
    """
    z, polynomials = mesh(coefficients.shape[1] - 1)
    values = coefficients @ polynomials.T
    # A minimum between two points may be lower than both, so the mesh is asked with room for the curvature there.
    room = np.max(np.abs(coefficients), axis=1) * coefficients.shape[1] ** 2 * (np.pi / _POINTS) ** 2
    left, right = values[:, :-1], values[:, 1:]
    edge = np.ones((len(values), 1), dtype=bool)
    low = np.hstack([edge, right < left]) & np.hstack([left <= right, edge]) & (values < (below + room)[:, None])
    rows, at = np.nonzero(low)
    places = _refined(coefficients[rows], z[at], z[np.maximum(at - 1, 0)], z[np.minimum(at + 1, z.size - 1)])
    found = np.sum(coefficients[rows] * basis(coefficients.shape[1] - 1, places), axis=1)
    better = found < values[rows, at]
    places, found = np.where(better, places, z[at]), np.where(better, found, values[rows, at])
    kept = found < below[rows]
    return Dips(rows[kept], places[kept], found[kept])


def _refined(coefficients: Array, start: Array, low: Array, high: Array) -> Array:
    """Return the minimum of each row near its start, by Newton steps that stay between low and high."""
    degree, z = coefficients.shape[1] - 1, start
    if degree < 2:
        return z
    slopes = degree * np.diff(coefficients, axis=1)
    bends = (degree - 1) * np.diff(slopes, axis=1)
    for _ in range(_NEWTON):
        slope = np.sum(slopes * basis(degree - 1, z), axis=1)
        bend = np.sum(bends * basis(degree - 2, z), axis=1)
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > 0.0)
        z = np.clip(z - step, low, high)
    return z


def lowest(coefficients: Array) -> Array:
    """Return the minimum of each bracket on [0, 1]."""
    found = dips(coefficients, np.full(len(coefficients), np.inf))
    least = np.full(len(coefficients), np.inf)
    np.minimum.at(least, found.rows, found.values)
    return least


def positive_rows(coefficients: Array) -> NDArray[np.bool_]:
    """Say of each bracket whether it is positive on [0, 1].

    Positive coefficients are enough. Otherwise the minimum decides, and where it is zero but for rounding, the exact
    test of the law.
    """
    inside: NDArray[np.bool_] = np.all(coefficients > 0.0, axis=1)
    rest = np.flatnonzero(~inside)
    least = lowest(coefficients[rest])
    room = _ROUNDING * np.max(np.abs(coefficients[rest]), axis=1, initial=0.0)
    inside[rest] = least > room
    family = Bernstein(coefficients.shape[1] - 1)
    for i in rest[np.abs(least) <= room]:
        inside[i] = Law(family, coefficients[i]).structure.ok
    return inside


def contacts(coefficients: Array, bound: float) -> tuple[float, ...]:
    """Return the values of |u| = sqrt(z) where one bracket touches its lower bound, increasing.

    A law that is flat at its bound touches it everywhere; of that the ends are returned.
    """
    if not bound > 0.0:
        return ()
    if np.max(coefficients) <= _TOUCHING * bound:
        return (0.0, 1.0)
    found = dips(coefficients[None], np.array([_TOUCHING * bound]))
    return tuple(sorted(float(np.sqrt(z)) for z in found.places))
