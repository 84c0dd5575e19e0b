"""Refinement: a field on a finer mesh, interpolated by its modes."""

from __future__ import annotations

import numpy as np

from doublewell.dynamics.grid import Grid
from doublewell.hints import Array

__all__ = ["refine_field", "refinement"]


def refinement(cells: int, factor: int, boundary: str) -> Array:
    """Return the matrix that interpolates along an axis by its modes to a mesh `factor` times finer."""
    grid = Grid((cells,), 1.0, "periodic" if boundary == "periodic" else "neumann")
    return np.stack([refine_field(one, grid, factor) for one in np.eye(cells)], axis=1)


def refine_field(field: Array, grid: Grid, factor: int) -> Array:
    """Interpolate a field by its modes to a mesh `factor` times finer."""
    from scipy import fft

    wide = tuple((0, (factor - 1) * n) for n in field.shape)
    if grid.boundary == "neumann":
        modes = np.pad(fft.dctn(field, norm="ortho"), wide)
        return np.asarray(fft.idctn(modes, norm="ortho") * np.sqrt(float(factor) ** field.ndim))
    for axis, n in enumerate(field.shape):
        modes = fft.rfft(field, axis=axis)
        fine = fft.irfft(modes, n=factor * n, axis=axis) * factor
        if n % 2 == 0:  # irfft counts the highest mode of an even mesh twice once it is no longer the last
            top = np.take(modes, [n // 2], axis=axis).real / n
            points = np.arange(factor * n) / factor
            shape = [-1 if a == axis else 1 for a in range(field.ndim)]
            fine = fine - top * np.cos(np.pi * points).reshape(shape)
        field = fine
    return np.asarray(field)
