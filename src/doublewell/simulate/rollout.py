"""Rollout: a law and an initial field become a record; noise is added to it; its energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.dynamics import Cnab2, Dynamics, Etdrk4, Grid, Stepper, dynamics_of, numpy_transforms
from doublewell.errors import InputError, not_negative, positive, shown, whole
from doublewell.errors import seed as generator
from doublewell.hints import Array, Progress
from doublewell.law import Law, check_law
from doublewell.record import Boundary, Record, check_record

Solver = Literal["cnab2", "etdrk4"]
_SOLVERS: dict[str, type[Cnab2] | type[Etdrk4]] = {"cnab2": Cnab2, "etdrk4": Etdrk4}
_REACH = 4.0  # half-width of the Gaussian filter, in standard deviations
_GROWTH = 10.0  # over the larger of 1 and max |u0|, which bounds the exact solution of a law with stable wells


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
    progress: Progress | None = None,
) -> Record:
    """Solve u_t = q (L u - D F'(u) / epsilon^2) from u0 and return the record of the solution.

    Parameters
    ----------
    law
        The law read as F'. An effective force G, such as a recovered one, goes with epsilon = 1.
    u0
        Initial field u0[(z, y,) x] at the points of ``Grid``: i dx (periodic) or (i + 1/2) dx (neumann).
    dt, frames
        Frame interval, and number of frames, u0 included: the times are 0, dt, ..., (frames - 1) dt.
    solver, substeps
        "cnab2" (NumPy, order 2) or "etdrk4" (JAX, order 4), and its steps from frame to frame.
    dynamics
        The equation: "allen-cahn", L = Laplacian and D = 1, or another Dynamics.
    progress
        Called with (frames done, frames) after each frame.

    A solution that blows up raises, naming the frame.

    >>> from doublewell.law import named_law
    >>> x = (np.arange(32) + 0.5) / 32
    >>> start = np.tanh((x - 0.4) / 0.1)
    >>> simulate(named_law("quartic"), start, dx=1/32, dt=1e-3, frames=5, epsilon=0.1, boundary="neumann")
    Record(5 frames of 32 cells (1-D), dx = 0.03125, t = 0 to 0.004, q = 1, boundary = neumann)
    """
    force = check_law(law).effective(epsilon)
    start = _check_start(u0)
    grid = Grid(start.shape, dx, boundary)
    if not isinstance(solver, str) or solver not in _SOLVERS:
        raise InputError(f"solver is {shown(solver)}: expected one of {', '.join(map(repr, _SOLVERS))}")
    stepper = _SOLVERS[solver](grid, dt, q, substeps, dynamics_of(dynamics))
    values = rollout(stepper, force, start, frames=frames, progress=progress)
    return Record(values, dx=grid.dx, dt=dt, q=q, boundary=grid.boundary)


def rollout(stepper: Stepper, law: Law, u0: Array, *, frames: int, progress: Progress | None = None) -> Array:
    """Return u[t, (z, y,) x] of `frames` frames, u0 the first, for the effective force `law`."""
    frames = whole(frames, "frames", least=2)
    values = np.empty((frames, *u0.shape))
    values[0] = u0
    limit = _GROWTH * max(1.0, float(np.max(np.abs(u0))))
    with np.errstate(over="ignore", invalid="ignore"):  # a blow-up is reported below
        for frame, u in enumerate(stepper.run(law, u0, intervals=frames - 1), start=1):
            _check_growth(u, frame, limit, law, stepper)
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


def _check_growth(u: Array, frame: int, limit: float, law: Law, stepper: Stepper) -> None:
    largest = float(np.max(np.abs(u)))
    if largest <= limit:  # false for NaN
        return
    if law.well_curvature <= 0.0:
        raise InputError(
            f"the solution leaves the pure phases and blows up at frame {frame} (largest |u| {largest:.3g}): the law's "
            "pure phases are not stable; expected G'(1) > 0, use a law with a positive last coefficient"
        )
    raise InputError(
        f"the solution blows up at frame {frame} (largest |u| {largest:.3g}): {stepper.substeps} steps per frame are "
        "too few for this law; use more substeps, or a shorter dt"
    )


def add_noise(record: Record, sd: float, *, seed: int | np.random.Generator, correlation: float = 0.0) -> Record:
    """Return the record plus Gaussian noise of standard deviation `sd` at every pixel, fresh in each frame.

    With ``correlation`` > 0 the noise of a frame is white noise through a Gaussian filter of that many cells, scaled
    back to `sd`; two pixels r cells apart then correlate as exp(-r^2 / (4 correlation^2)). One seed gives one noise,
    and the first frames do not depend on how many follow.

    >>> clean = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1)
    >>> bool(np.array_equal(add_noise(clean, 0.1, seed=1).slab(), add_noise(clean, 0.1, seed=1).slab()))
    True
    """
    check_record(record)
    sd = not_negative(sd, "sd", "the standard deviation of the noise")
    correlation = not_negative(correlation, "correlation", "a length in cells")
    rng = generator(seed, "the noise")
    reach = int(np.ceil(_REACH * correlation))
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / correlation) ** 2) if correlation > 0 else np.ones(1)
    taps /= np.sqrt(np.sum(taps**2))  # white noise keeps its variance
    values = np.empty(record.shape)
    for frame, slab in record.slabs(1):
        values[frame] = slab[0] + sd * _draw(rng, record.mesh, taps)
    return record.replace(values)


def _draw(rng: np.random.Generator, mesh: tuple[int, ...], taps: Array) -> Array:
    """Draw one frame of unit noise; drawn wider than the mesh and cut, so that the border is like the middle."""
    from scipy.ndimage import correlate1d

    margin = taps.size // 2
    noise = rng.normal(size=tuple(n + 2 * margin for n in mesh))
    if margin == 0:
        return noise
    for axis in range(noise.ndim):
        noise = correlate1d(noise, taps, axis=axis, mode="constant")
    return noise[(slice(margin, -margin),) * noise.ndim]


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
    if record.mask is not None and not all(record.observed(k, k + 1).all() for k in range(record.frames)):
        raise InputError("the record has missing values, so its energy is not known: expected a complete record")
    epsilon = positive(epsilon, "epsilon", "the interface scale")
    grid = Grid(record.mesh, record.dx, record.boundary)
    forward, backward = numpy_transforms(grid.cells, grid.boundary)

    def frame_energy(u: Array) -> float:
        laplacian = backward(grid.laplacian * forward(u))  # sum |grad u|^2 = -sum u Laplacian u for either boundary
        gradient = -0.5 * epsilon * float(np.vdot(u, laplacian))
        return grid.cell_volume * (gradient + float(np.sum(law.primitive(u))) / epsilon)

    return np.array([frame_energy(slab[0]) for _, slab in record.slabs(1)])
