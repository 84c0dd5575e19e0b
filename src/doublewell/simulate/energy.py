"""Energy of each frame of a record under a law."""

from __future__ import annotations

import numpy as np

from doublewell.checks import positive
from doublewell.dynamics.grid import Grid, Transform, numpy_transforms
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import Law, check_law
from doublewell.record import Record, check_record

__all__ = ["energy"]


def energy(record: Record, law: Law, epsilon: float = 1.0) -> Array:
    """Return E = sum (epsilon/2 |grad u|^2 + F(u)/epsilon) dx^d for each frame, F the primitive of the law.

    The gradient is the spectral one of the record's boundary, so E is what the semi-discrete flow lowers:
    dE/dt = -(epsilon/q) sum u_t^2 dx^d exactly. On a planar interface E is the surface tension times the area.
    """
    check_record(record)
    check_law(law)
    if record.boundary is None:
        raise InputError(
            "the record declares no boundary, so its gradient at the border is unknown: expected 'periodic' or "
            "'neumann'; pass boundary= when making the Record"
        )
    if record.mask is not None and not all(record.seen(k, k + 1).all() for k in range(record.frames)):
        raise InputError("the record has missing values, so its energy is not known: expected a complete record")
    epsilon = positive(epsilon, "epsilon", "the interface scale")
    grid = Grid(record.mesh, record.dx, record.boundary)
    transforms = numpy_transforms(grid.cells, grid.boundary)
    return np.array([_frame_energy(slab[0], law, epsilon, grid, transforms) for _, slab in record.slabs(1)])


def _frame_energy(u: Array, law: Law, epsilon: float, grid: Grid, transforms: tuple[Transform, Transform]) -> float:
    forward, backward = transforms
    laplacian = backward(grid.laplacian * forward(u))  # sum |grad u|^2 = -sum u Laplacian u for either boundary
    gradient = -0.5 * epsilon * float(np.vdot(u, laplacian))
    return grid.cell_volume * (gradient + float(np.sum(law.primitive(u))) / epsilon)
