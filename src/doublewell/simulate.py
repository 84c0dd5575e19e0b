"""Artificial records: a law and an initial field in, a record out; noise is added to it.

Initial fields are drops of the phase +1 in the phase -1, and a random start. Their lengths are in units of the shortest
side of the domain, so that 0.5 is the largest radius that fits. The centre is the middle of the domain, extent/2: mesh
point n/2 of an even periodic mesh (points i dx), the corner between the middle cells of an even Neumann mesh (points
(i + 1/2) dx). Fields on a three times finer mesh agree at the points that both meshes have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import pi, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.dynamics import Cnab2, Dynamics, Etdrk2, Etdrk4, Grid, Stepper, cnab2_steps, dynamics_of
from doublewell.errors import InputError, not_negative, positive, shown, whole
from doublewell.errors import seed as generator
from doublewell.hints import Array, Progress
from doublewell.law import Law, check_law
from doublewell.progress import reporting
from doublewell.record import Boundary, Record, check_record

Solver = Literal["cnab2", "etdrk4"]
_SOLVERS: dict[str, type[Cnab2] | type[Etdrk4]] = {"cnab2": Cnab2, "etdrk4": Etdrk4}
_REACH = 4.0  # half-width of the Gaussian filter, in standard deviations
_GROWTH = 10.0  # over the larger of 1 and max |u0|, which bounds the exact solution of a law with stable wells
_UNSTABLE = 2.4  # h q D |G'| over that of stable steps, 1.2: from 1 on errors grow, at first slowly
_ROUND_UP = 1.0 + 1e-9  # a mode on the limit counts, whatever the rounding of the extent


def simulate(
    law: Law,
    u0: ArrayLike,
    *,
    dx: float | Sequence[float],
    dt: float,
    frames: int,
    epsilon: float = 1.0,
    q: float = 1.0,
    boundary: Boundary = "periodic",
    solver: Solver = "cnab2",
    substeps: int = 12,
    dynamics: str | Dynamics = "allen-cahn",
    theta: float = 0.0,
    seed: int | np.random.Generator | None = None,
    progress: Progress | bool | None = None,
) -> Record:
    """Solve u_t = q (L u - D F'(u) / epsilon^2) from u0 and return the record of the solution.

    With thermal noise, sqrt(2 q theta D) times white noise is added to the right-hand side.

    Parameters
    ----------
    law
        The law read as F'. An effective force G, such as a recovered one, goes with epsilon = 1.
    u0
        Initial field u0[(z, y,) x] at the points of ``Grid``: i dx (periodic) or (i + 1/2) dx (neumann).
    dt, frames
        Frame interval, and number of frames, u0 included: the times are 0, dt, ..., (frames - 1) dt.
    solver, substeps
        "cnab2" (NumPy, order 2) or "etdrk4" (JAX, order 4), and its steps from frame to frame. Thermal noise has a
        solver of its own, ``Etdrk2``.
    dynamics
        The equation: "allen-cahn", L = Laplacian and D = 1, or another Dynamics. A conserved field overshoots its
        phases, and there the law is its polynomial (``Law.continued``); so does a field with thermal noise. Otherwise
        it is linear beyond them.
    theta, seed
        kT / kappa, the strength of the thermal noise (kappa that of E = integral of kappa/2 |grad u|^2 + f), and the
        seed of its random numbers. In equilibrium a mode of a phase has the variance theta / (k^2 + G'). The noise is
        that of the mesh, so the field is rougher the finer the mesh: the law is that of the scale of a cell.
    progress
        True shows a bar; a function is called with (frames done, frames) after each frame.

    A solution that blows up raises, naming the frame.

    >>> from doublewell.law import named_law
    >>> x = (np.arange(32) + 0.5) / 32
    >>> start = np.tanh((x - 0.4) / 0.1)
    >>> simulate(named_law("quartic"), start, dx=1/32, dt=1e-3, frames=5, epsilon=0.1, boundary="neumann")
    Record(5 frames of 32 cells (1-D), dx = 0.03125, t = 0 to 0.004, q = 1, boundary = neumann)
    """
    equation, force = dynamics_of(dynamics), check_law(law).effective(epsilon)
    curvature = float(np.mean(force.well_curvatures))  # at the wells: a polynomial beyond them may have others
    if equation.gauge == "constant" or theta:
        force = force.continued()
    start = _check_start(u0)
    grid = Grid(start.shape, dx, boundary)
    if not isinstance(solver, str) or solver not in _SOLVERS:
        raise InputError(f"solver is {shown(solver)}: expected one of {', '.join(map(repr, _SOLVERS))}")
    if theta:
        stepper: Stepper = Etdrk2(grid, dt, q, substeps, equation, theta, seed, curvature)
    else:
        stepper = _SOLVERS[solver](grid, dt, q, substeps, equation)
    if solver == "cnab2" and equation.order > 2 and not theta:  # it is unstable for a while before anything blows up
        least = cnab2_steps(equation, grid.waves, max(force.well_curvatures), q * dt, np.inf)
        if _UNSTABLE * substeps < least:
            raise InputError(
                f"{substeps} steps per frame are too few for {equation.name} on this mesh: expected at least "
                f"{least}; use more substeps, or solver='etdrk4'"
            )
    with reporting(progress, "simulating") as report:
        values = rollout(stepper, force, start, frames=frames, progress=report)
    return Record(values, dx=grid.dx, dt=dt, q=q, boundary=grid.boundary, origin="simulation")


def rollout(stepper: Stepper, law: Law, u0: Array, *, frames: int, progress: Progress | None = None) -> Array:
    """Return u[t, (z, y,) x] of `frames` frames, u0 the first, for the effective force `law`."""
    frames = whole(frames, "frames", least=2)
    values = np.empty((frames, *u0.shape))
    values[0] = u0
    limit = _GROWTH * max(1.0, float(np.max(np.abs(u0))))
    with np.errstate(over="ignore", invalid="ignore"):  # a blow-up is reported below
        for frame, u in enumerate(stepper.run(law, u0, intervals=frames - 1), start=1):
            largest = float(np.max(np.abs(u)))
            if not largest <= limit and law.well_curvature <= 0.0:  # also for NaN
                raise InputError(
                    f"the solution leaves the pure phases and blows up at frame {frame} (largest |u| {largest:.3g}): "
                    "the law's pure phases are not stable; expected G'(1) > 0, use a law with a positive last "
                    "coefficient"
                )
            if not largest <= limit:
                raise InputError(
                    f"the solution blows up at frame {frame} (largest |u| {largest:.3g}): {stepper.substeps} steps per "
                    "frame are too few for this law; use more substeps, or a shorter dt"
                )
            values[frame] = u
            if progress is not None:
                progress(frame + 1, frames)
    return values


def _check_start(u0: ArrayLike) -> Array:
    try:
        start = np.asarray(u0)
    except ValueError:
        raise InputError("u0 is a ragged list: expected one field u0[(z, y,) x]") from None
    if start.dtype.kind not in "fiu":
        raise InputError(f"u0 has type {start.dtype}: expected real phase values, pure phases at -1 and +1")
    if not 1 <= start.ndim <= 3 or min(start.shape) < 2:
        raise InputError(
            f"u0 has shape {start.shape}: expected one field u0[(z, y,) x] of at least 2 cells along each axis"
            + ("; for a record pass its first frame" if start.ndim == 4 else "")
        )
    start = start.astype(np.float64)
    if not np.all(np.isfinite(start)):
        cell = tuple(int(i) for i in np.argwhere(~np.isfinite(start))[0])
        raise InputError(f"u0 is not finite at cell {cell}: expected finite phase values; fill the missing part")
    return start


def add_noise(record: Record, sd: float, *, seed: int | np.random.Generator, correlation: float = 0.0) -> Record:
    """Return the record plus Gaussian noise of standard deviation `sd` at every pixel, fresh in each frame.

    With ``correlation`` > 0 the noise of a frame is white noise through a Gaussian filter of that many cells, scaled
    back to `sd`; two pixels r cells apart then correlate as exp(-r^2 / (4 correlation^2)). One seed gives one noise,
    and the first frames do not depend on how many follow.

    >>> clean = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1)
    >>> bool(np.array_equal(add_noise(clean, 0.1, seed=1).slab(), add_noise(clean, 0.1, seed=1).slab()))
    True
    """
    from scipy.ndimage import correlate1d

    check_record(record)
    sd = not_negative(sd, "sd", "the standard deviation of the noise")
    correlation = not_negative(correlation, "correlation", "a length in cells")
    rng = generator(seed, "the noise")
    reach = int(np.ceil(_REACH * correlation))
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / correlation) ** 2) if correlation > 0 else np.ones(1)
    taps /= np.sqrt(np.sum(taps**2))  # white noise keeps its variance
    values = np.empty(record.shape)
    for frame, slab in record.slabs(1):  # noise is drawn wider than the mesh and cut: the border is like the middle
        noise = rng.normal(size=tuple(n + 2 * reach for n in record.mesh))
        for axis in range(noise.ndim if reach else 0):
            noise = correlate1d(noise, taps, axis=axis, mode="constant")
        values[frame] = slab[0] + sd * noise[tuple(slice(reach, reach + n) for n in record.mesh)]
    return record.replace(values)


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
        return spinodal(grid, epsilon, seed)
    with np.errstate(over="ignore"):  # an interface of no width is a step
        return _DROPS[name](grid, epsilon)


def circle(grid: Grid, epsilon: float) -> Array:
    """Return a disc of radius 0.2; an interval on one axis, a ball on three."""
    return _profile(0.2 * min(grid.extent) - _radius(grid), epsilon)


def nonconvex(grid: Grid, epsilon: float, *, depth: float = 0.4, lobes: int = 6) -> Array:
    """Return a star with outline r(theta) = 0.27 (1 + depth cos(lobes theta)), theta from the x axis to y."""
    _need_axes("nonconvex and wobbled", grid, (2,))
    y, x = _centred(grid)
    outline = 0.27 * min(grid.extent) * (1.0 + depth * np.cos(lobes * np.arctan2(y, x)))
    return _profile(outline - _radius(grid), epsilon)


def inclusion(grid: Grid, epsilon: float) -> Array:
    """Return a disc that holds a disc of the other phase: two interfaces, both of which last for a while."""
    r, unit = _radius(grid), min(grid.extent)
    return _profile(0.36 * unit - r, epsilon) - _profile(0.17 * unit - r, epsilon) - 1.0


def dumbbell(grid: Grid, epsilon: float) -> Array:
    """Return two discs of radius 0.15 at +-0.2 on the x axis, joined by a neck of half-width 0.07."""
    _need_axes("dumbbell", grid, (2, 3))
    unit = min(grid.extent)
    *across, along = _centred(grid)
    off_axis = sum(c * c for c in across)
    bar = 0.07 * unit - np.sqrt(off_axis + np.maximum(np.abs(along) - 0.2 * unit, 0.0) ** 2)
    discs = [0.15 * unit - np.sqrt(off_axis + (along + side * unit) ** 2) for side in (-0.2, 0.2)]
    # a smooth maximum: the union without creases where the neck meets the discs
    return _profile(epsilon * np.logaddexp.reduce([d / epsilon for d in (bar, *discs)]), epsilon)


def spinodal(grid: Grid, epsilon: float, seed: int | np.random.Generator | None) -> Array:
    """Return a random mixed state of mean 0 and standard deviation 0.1, from a seed.

    It holds the modes 0 < |kappa| <= 1/epsilon, those that grow under the quartic law (and at least the longest
    waves), with normal amplitudes drawn in an order that no mesh size enters: one seed gives one field on every mesh of
    a domain.
    """
    from scipy import fft

    rng, periodic, cells = generator(seed, "a random start"), grid.boundary == "periodic", np.array(grid.cells)
    base = (2.0 * pi if periodic else pi) / np.array(grid.extent)
    limit = max(1.0 / epsilon, float(np.max(base)))
    highest = np.floor(limit / base * _ROUND_UP)
    if np.any(highest >= ((cells + 1) // 2 if periodic else cells)):
        raise InputError(
            f"the mesh {grid.cells} is too coarse for epsilon = {epsilon:g}: expected dx below {pi * epsilon:.3g}; "
            "use more cells or a larger epsilon"
        )
    numbers = np.meshgrid(*[np.arange(-top if periodic else 0, top + 1) for top in highest.astype(int)], indexing="ij")
    size = sum((number * b) ** 2 for number, b in zip(numbers, base, strict=True))
    kept = (size > 0.0) & (size <= (limit * _ROUND_UP) ** 2)
    draws = rng.normal(size=(2, *size.shape)) * kept
    modes = np.zeros(grid.cells, dtype=np.complex128)
    modes[tuple(numbers)] = draws[0] + 1j * draws[1]
    field = fft.ifftn(modes).real if periodic else fft.idctn(modes.real)
    return np.asarray(0.1 * (field / np.sqrt(np.mean(field**2))))


def _centred(grid: Grid) -> list[Array]:
    """Coordinates from the middle of the domain, shaped for broadcasting."""
    lines = [points - 0.5 * length for points, length in zip(grid.points, grid.extent, strict=True)]
    return list(np.meshgrid(*lines, indexing="ij", sparse=True))


def _radius(grid: Grid) -> Array:
    return np.asarray(np.sqrt(sum(c * c for c in _centred(grid))))


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
    "wobbled": partial(nonconvex, depth=0.15, lobes=5),  # a circle with five shallow waves
    "dumbbell": dumbbell,
}
GEOMETRIES = (*_DROPS, "spinodal")
