"""Geometry: initial fields, drops of the phase +1 in the phase -1, and a random start.

Lengths are in units of the shortest side of the domain, so that 0.5 is the largest radius that fits. The centre is
the middle of the domain, extent/2: mesh point n/2 of an even periodic mesh (points i dx), the corner between the
middle cells of an even Neumann mesh (points (i + 1/2) dx). Fields on a three times finer mesh agree at the points
that both meshes have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

import numpy as np

from doublewell.dynamics import Grid
from doublewell.errors import InputError, positive, shown
from doublewell.errors import seed as generator
from doublewell.hints import Array
from doublewell.record import Boundary

_ROUND_UP = 1.0 + 1e-9  # a mode on the limit counts, whatever the rounding of the extent


def initial_field(
    name: str,
    mesh: Sequence[int],
    dx: float | Sequence[float],
    *,
    epsilon: float,
    boundary: Boundary = "periodic",
    seed: int | np.random.Generator | None = None,
) -> Array:
    """Return the initial field `name`, one of GEOMETRIES, on a mesh; interfaces are tanh(d / (sqrt(2) epsilon)).

    circle, inclusion, spinodal: one to three axes; dumbbell: two or three; nonconvex, wobbled: two. Only spinodal
    needs a seed.

    >>> initial_field("circle", (96, 96), 1/96, epsilon=0.03).shape
    (96, 96)
    """
    grid = Grid(mesh, dx, boundary)
    epsilon = positive(epsilon, "epsilon", "the interface scale")
    if not isinstance(name, str) or name not in GEOMETRIES:
        raise InputError(f"no geometry is named {shown(name)}: expected one of {', '.join(GEOMETRIES)}")
    if name == "spinodal":
        return spinodal(grid, epsilon=epsilon, seed=seed)
    with np.errstate(over="ignore"):  # an interface of no width is a step
        return _DROPS[name](grid, epsilon)


def circle(grid: Grid, epsilon: float, *, radius: float = 0.2) -> Array:
    """Return a disc; an interval on one axis, a ball on three."""
    return _profile(radius * _unit(grid) - _radius(grid), epsilon)


def nonconvex(grid: Grid, epsilon: float, *, radius: float = 0.27, depth: float = 0.4, lobes: int = 6) -> Array:
    """Return a star with outline r(theta) = radius (1 + depth cos(lobes theta)), theta from the x axis to y."""
    _need_axes("nonconvex and wobbled", grid, (2,))
    y, x = _centred(grid)
    outline = radius * _unit(grid) * (1.0 + depth * np.cos(lobes * np.arctan2(y, x)))
    return _profile(outline - _radius(grid), epsilon)


def wobbled(grid: Grid, epsilon: float) -> Array:
    """Return a circle with five shallow waves, r(theta) = 0.27 (1 + 0.15 cos 5 theta)."""
    return nonconvex(grid, epsilon, depth=0.15, lobes=5)


def inclusion(grid: Grid, epsilon: float, *, outer: float = 0.36, inner: float = 0.17) -> Array:
    """Return a disc that holds a disc of the other phase: two interfaces, both of which last for a while."""
    r = _radius(grid)
    return _profile(outer * _unit(grid) - r, epsilon) - _profile(inner * _unit(grid) - r, epsilon) - 1.0


def dumbbell(grid: Grid, epsilon: float, *, radius: float = 0.15, offset: float = 0.2, neck: float = 0.07) -> Array:
    """Return two discs at +-offset on the x axis, joined by a neck of half-width `neck`."""
    _need_axes("dumbbell", grid, (2, 3))
    unit = _unit(grid)
    *across, along = _centred(grid)
    off_axis = sum(c * c for c in across)
    beyond = np.maximum(np.abs(along) - offset * unit, 0.0)
    bar = neck * unit - np.sqrt(off_axis + beyond**2)
    discs = [radius * unit - np.sqrt(off_axis + (along + side * offset * unit) ** 2) for side in (-1.0, 1.0)]
    # a smooth maximum: the union without creases where the neck meets the discs
    return _profile(epsilon * np.logaddexp.reduce([d / epsilon for d in (bar, *discs)]), epsilon)


def spinodal(grid: Grid, *, epsilon: float, seed: int | np.random.Generator | None, amplitude: float = 0.1) -> Array:
    """Return a random mixed state of mean 0 and standard deviation `amplitude`, from a seed.

    It holds the modes 0 < |kappa| <= 1/epsilon, those that grow under the quartic law (and at least the longest
    waves). One seed gives one field on every mesh of a domain.
    """
    rng = generator(seed, "a random start")
    base = (2.0 * pi if grid.boundary == "periodic" else pi) / np.array(grid.extent)
    limit = max(1.0 / epsilon, float(np.max(base)))
    reach = np.floor(limit / base * _ROUND_UP)
    cells = np.array(grid.cells)
    if np.any(reach >= (cells + 1) // 2 if grid.boundary == "periodic" else reach >= cells):
        raise InputError(
            f"the mesh {grid.cells} is too coarse for epsilon = {epsilon:g}: expected dx below {pi * epsilon:.3g}; "
            "use more cells or a larger epsilon"
        )
    return amplitude * _random_field(grid, base, reach.astype(int), limit, rng)


def _random_field(grid: Grid, base: Array, highest: Array, limit: float, rng: np.random.Generator) -> Array:
    """Sum the modes up to `limit` with normal amplitudes, drawn in an order that no mesh size enters."""
    from scipy import fft

    periodic = grid.boundary == "periodic"
    axes = [np.arange(-top if periodic else 0, top + 1) for top in highest]
    numbers = np.meshgrid(*axes, indexing="ij")
    size = sum((number * b) ** 2 for number, b in zip(numbers, base, strict=True))
    kept = (size > 0.0) & (size <= (limit * _ROUND_UP) ** 2)
    draws = rng.normal(size=(2, *size.shape)) * kept
    modes = np.zeros(grid.cells, dtype=np.complex128)
    modes[tuple(numbers)] = draws[0] + 1j * draws[1]
    field = fft.ifftn(modes).real if periodic else fft.idctn(modes.real)
    return np.asarray(field / np.sqrt(np.mean(field**2)))


def _centred(grid: Grid) -> list[Array]:
    """Coordinates from the middle of the domain, shaped for broadcasting."""
    lines = [points - 0.5 * length for points, length in zip(grid.points, grid.extent, strict=True)]
    return list(np.meshgrid(*lines, indexing="ij", sparse=True))


def _radius(grid: Grid) -> Array:
    return np.asarray(np.sqrt(sum(c * c for c in _centred(grid))))


def _unit(grid: Grid) -> float:
    return min(grid.extent)


def _profile(distance: Array, epsilon: float) -> Array:
    return np.asarray(np.tanh(distance / (sqrt(2.0) * epsilon)))


def _need_axes(name: str, grid: Grid, allowed: tuple[int, ...]) -> None:
    if len(grid.cells) not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        raise InputError(
            f"the mesh {grid.cells} has {len(grid.cells)} axes: {name} expected {wanted}; "
            "use circle, inclusion or spinodal"
        )


_DROPS: dict[str, Callable[[Grid, float], Array]] = {
    "circle": circle,
    "nonconvex": nonconvex,
    "inclusion": inclusion,
    "wobbled": wobbled,
    "dumbbell": dumbbell,
}
GEOMETRIES = (*_DROPS, "spinodal")
