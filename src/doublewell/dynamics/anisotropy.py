"""Anisotropy: a gradient energy kappa/2 grad u . A grad u, A a tensor of determinant 1, known or estimated.

On the modes, L u becomes L u times n . A n, n the direction of the wave: of every equation, for each is linear in the
gradient energy. A is (1 + S) / det(1 + S)^(1/d), S symmetric without trace, whose entries are what a fit estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.errors import InputError, positive, shown
from doublewell.hints import Array

_SYMMETRIC = 1e-9


@dataclass(frozen=True, init=False)
class Anisotropy:
    """A tensor A of determinant 1, of the gradient energy or of a mobility.

    Parameters
    ----------
    ratio
        Largest over smallest principal value, in two dimensions.
    angle
        Direction of the largest, in degrees from x towards y.
    tensor
        The whole tensor instead, rows in the order (z, y,) x; its size is divided out.

    An interface that is normal to n is as if isotropic with its width and tension times sqrt(n . A n), so A is equal to
    pixels whose sides are not what was declared: a ratio of 1.21 along x is a pixel 10 % too wide there.

    >>> Anisotropy(1.21, 0.0).tensor
    ((0.9090909090909091, 0.0), (0.0, 1.1))
    """

    tensor: tuple[tuple[float, ...], ...]

    def __init__(self, ratio: float = 1.0, angle: float = 0.0, *, tensor: Any = None) -> None:
        if tensor is None:
            largest = np.sqrt(positive(ratio, "ratio", "largest over smallest principal value"))
            if not np.isfinite(angle):
                raise InputError(f"angle is {shown(angle)}: expected degrees from x towards y")
            x, y = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            x, y = (0.0 if abs(part) < 1e-15 else part for part in (x, y))
            along = np.outer([y, x], [y, x])
            matrix = largest * along + (np.eye(2) - along) / largest
        else:
            matrix = np.array(tensor, dtype=np.float64)
            square = matrix.ndim == 2 and matrix.shape in ((2, 2), (3, 3)) and np.all(np.isfinite(matrix))
            if not (square and np.allclose(matrix, matrix.T, rtol=_SYMMETRIC) and np.linalg.eigvalsh(matrix)[0] > 0.0):
                raise InputError(
                    f"tensor is {shown(tensor)}: expected a symmetric positive matrix of 2 x 2 or 3 x 3, rows in the "
                    "order (z, y,) x"
                )
            if abs(np.linalg.det(matrix) - 1.0) > _SYMMETRIC:
                matrix = matrix / np.linalg.det(matrix) ** (1.0 / len(matrix))
        object.__setattr__(self, "tensor", tuple(map(tuple, matrix.tolist())))

    @property
    def ratio(self) -> float:
        """Largest over smallest principal value."""
        values = np.linalg.eigvalsh(self.tensor)
        return float(values[-1] / values[0])

    @property
    def angle(self) -> float:
        """Direction of the largest principal value, in degrees from x towards y, 0 to 180."""
        along = np.linalg.eigh(self.tensor)[1][:, -1]
        return float(np.rad2deg(np.arctan2(along[-2], along[-1]))) % 180.0

    def __repr__(self) -> str:
        if len(self.tensor) == 3:
            return f"Anisotropy(tensor={self.tensor})"
        return f"Anisotropy(ratio={self.ratio:.6g}, angle={self.angle:.6g})"


def entry_names(axes: int, *, crossed: bool) -> tuple[str, ...]:
    """Return the free entries of S: of one axis fewer the diagonal, and where waves may be oblique the pairs."""
    letters = "zyx"[-axes:]
    pairs = [a + b for k, a in enumerate(letters) for b in letters[k + 1 :]] if crossed else []
    return tuple([2 * letter for letter in letters[1:]] + ["".join(sorted(pair)) for pair in pairs])


def tensor_of(entries: Mapping[str, Any], axes: int) -> list[list[Any]]:
    """Return A from the entries of S by name, "xx", "xy"; those that are not named are zero. May be traced by JAX."""
    letters = "zyx"[-axes:]
    diagonal = {letter: entries.get(2 * letter, 0.0) for letter in letters[1:]}
    diagonal[letters[0]] = -sum(diagonal.values())
    matrix = [
        [1.0 + diagonal[a] if a == b else entries.get("".join(sorted(a + b)), 0.0) for b in letters] for a in letters
    ]
    size = _determinant(matrix) ** (1.0 / axes)
    return [[entry / size for entry in row] for row in matrix]


def entries_of(tensor: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the entries of S by name."""
    matrix = np.array(tensor) * len(tensor) / np.trace(tensor) - np.eye(len(tensor))
    letters, place = "zyx"[-len(tensor) :], {letter: k for k, letter in enumerate("zyx"[-len(tensor) :])}
    return {name: float(matrix[place[name[0]], place[name[1]]]) for name in entry_names(len(letters), crossed=True)}


def _determinant(m: list[list[Any]]) -> Any:
    if len(m) == 1:
        return m[0][0]
    if len(m) == 2:
        return m[0][0] * m[1][1] - m[0][1] * m[1][0]
    minors = [[row[:k] + row[k + 1 :] for row in m[1:]] for k in range(3)]
    return sum((-1.0) ** k * m[0][k] * _determinant(minor) for k, minor in enumerate(minors))


def direction_products(waves: Sequence[Array], crossed: Sequence[Array] | None) -> tuple[tuple[Array, ...], ...]:
    """Return n_i n_j of each mode, n = k / |k|, zero of the mean.

    `crossed` are the wave numbers whose products of two axes are those of a real field: the highest of an even mesh is
    zero there. None where waves do not run obliquely, and pairs of axes are zero.
    """
    squares = np.asarray(sum(map(np.square, waves)))
    inverse = 1.0 / np.where(squares > 0.0, squares, np.inf)
    axes, none = range(len(waves)), np.zeros_like(squares)
    return tuple(
        tuple(
            np.square(waves[a]) * inverse if a == b else none if crossed is None else crossed[a] * crossed[b] * inverse
            for b in axes
        )
        for a in axes
    )


def stretch(tensor: Sequence[Sequence[Any]], products: Sequence[Sequence[Any]]) -> Any:
    """Return n . A n of each mode; may be traced by JAX."""
    axes = range(len(products))
    return sum(tensor[a][b] * products[a][b] for a in axes for b in axes)


def check_axes(tensor: Sequence[Sequence[float]], axes: int, *, crossed: bool) -> None:
    """Refuse a tensor of other axes, or oblique ones where waves cannot run so."""
    if len(tensor) != axes:
        raise InputError(f"the anisotropy has {len(tensor)} axes: expected {axes}, those of the field")
    if not crossed and np.count_nonzero(np.array(tensor) - np.diag(np.diag(tensor))):
        raise InputError(
            "the anisotropy is oblique: with no-flux walls and on open windows its axes must be those of the mesh "
            "(angle 0 or 90); rotate the field, or declare a periodic boundary where it is one"
        )
