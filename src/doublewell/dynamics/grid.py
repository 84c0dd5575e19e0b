"""Grid: a mesh with its boundary, its points and the symbol of its Laplacian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi, prod
from typing import Any

import numpy as np

from doublewell.checks import check_spacing, is_whole, shown
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record import Boundary
from doublewell.record.metadata import check_declared

__all__ = ["Grid"]


@dataclass(frozen=True)
class Grid:
    """Describe a mesh of one to three axes, in the order (z, y,) x.

    Parameters
    ----------
    cells
        Number of cells along each axis, at least 2.
    dx
        Spacing, one number or one per axis.
    boundary
        "periodic": points i dx, Fourier modes. "neumann": zero slope at the ends, cell centres (i + 1/2) dx,
        cosine modes. Either way the domain is [0, cells dx] along each axis.

    A mesh three times finer holds the points of this one: u[::3] (periodic) or u[1::3] (neumann) along each axis.

    >>> Grid((4,), 0.25, "neumann").points[0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """

    cells: tuple[int, ...]
    dx: tuple[float, ...]
    boundary: Boundary

    def __init__(self, cells: Sequence[int], dx: float | Sequence[float], boundary: Boundary = "periodic") -> None:
        mesh = _check_cells(cells)
        object.__setattr__(self, "cells", mesh)
        object.__setattr__(self, "dx", check_spacing(dx, len(mesh)))
        object.__setattr__(self, "boundary", check_declared(boundary))

    @property
    def extent(self) -> tuple[float, ...]:
        """Length of the domain along each axis, cells times spacing."""
        return tuple(n * h for n, h in zip(self.cells, self.dx, strict=True))

    @property
    def cell_volume(self) -> float:
        """Volume of a cell, the product of the spacings."""
        return prod(self.dx)

    @property
    def points(self) -> tuple[Array, ...]:
        """Coordinates of the mesh points along each axis."""
        shift = 0.0 if self.boundary == "periodic" else 0.5
        return tuple((np.arange(n, dtype=np.float64) + shift) * h for n, h in zip(self.cells, self.dx, strict=True))

    @cached_property
    def symbol(self) -> Array:
        """Eigenvalues -|kappa|^2 of the spectral Laplacian, in the layout of the transforms.

        Periodic: shape of ``rfftn``, kappa = 2 pi k / extent. Neumann: shape of the mesh, kappa = pi k / extent.
        """
        total = np.zeros(())
        for kappa in self.waves:
            total = total - kappa**2
        total.flags.writeable = False
        return total

    @property
    def waves(self) -> tuple[Array, ...]:
        """Wave numbers kappa along each axis, shaped for broadcasting over the modes."""
        return tuple(
            kappa.reshape([-1 if a == axis else 1 for a in range(len(self.cells))])
            for axis, kappa in enumerate(self._wavenumbers())
        )

    def _wavenumbers(self) -> list[Array]:
        if self.boundary == "neumann":
            steps = [pi / length for length in self.extent]
            return [step * np.arange(n, dtype=np.float64) for n, step in zip(self.cells, steps, strict=True)]
        full = [np.fft.fftfreq(n, h) for n, h in zip(self.cells[:-1], self.dx[:-1], strict=True)]
        halved = np.fft.rfftfreq(self.cells[-1], self.dx[-1])  # a real field needs half of the last axis
        return [np.asarray(2.0 * pi * k) for k in (*full, halved)]


def _check_cells(cells: Any) -> tuple[int, ...]:
    mesh = tuple(cells) if isinstance(cells, Sequence | np.ndarray) and not isinstance(cells, str) else ()
    if not 1 <= len(mesh) <= 3 or not all(is_whole(n) and n >= 2 for n in mesh):
        way = f"; for one axis pass ({cells},)" if is_whole(cells) else ""
        raise InputError(
            f"the mesh is {shown(mesh or cells)}: expected one to three axes in the order (z, y,) x, each of at least "
            f"2 cells{way}"
        )
    return tuple(int(n) for n in mesh)
