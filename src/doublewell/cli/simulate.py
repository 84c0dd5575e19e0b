"""The command simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from doublewell.checks import not_negative
from doublewell.cli.output import Output
from doublewell.cli.reading import Boundary
from doublewell.cli.values import Whole, parse_mesh, parse_numbers, parse_seed
from doublewell.errors import InputError

__all__ = ["simulate"]


def simulate(
    out: Path,
    /,
    *,
    law: str = "sixth",
    geometry: str = "circle",
    mesh: str = "96x96",
    dx: str | None = None,
    dt: float = 5e-5,
    frames: Whole = 61,
    epsilon: float = 0.03,
    q: float = 1.0,
    boundary: Boundary = "periodic",
    solver: Literal["cnab2", "etdrk4"] = "cnab2",
    substeps: Whole = 12,
    noise: float = 0.0,
    correlation: float = 0.0,
    seed: Whole | None = None,
    force: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Make an artificial movie of a known law.

    Parameters
    ----------
    out
        The file to write, .npz, .zarr or .nc.
    law
        quartic, sixth, bernstein3, exponential, rational or outside_cone.
    geometry
        circle, nonconvex, inclusion, wobbled, dumbbell or spinodal.
    mesh
        Cells along (z, y and) x, such as 96x96.
    dx
        Pixel size; by default the shortest side has length 1.
    dt
        Time from frame to frame.
    frames
        Number of frames, the start included.
    epsilon
        Interfacial scale.
    q
        Diffusion coefficient.
    boundary
        Boundary condition.
    solver
        cnab2 (order 2) or etdrk4 (order 4).
    substeps
        Solver steps from frame to frame.
    noise
        Standard deviation of the noise of one pixel.
    correlation
        Correlation length of the noise in cells, 0 for white noise.
    seed
        Seed of all random numbers; needed with noise and with spinodal.
    force
        Replace a movie that is there already.
    """
    import numpy as np

    from doublewell.cli.documents import simulate_document, simulate_text
    from doublewell.cli.targets import check_record
    from doublewell.io import save
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field
    from doublewell.simulate import simulate as evolve

    check_record(out, force=force)
    true, cells = named_law(law), parse_mesh(mesh)
    step = parse_numbers(dx, "--dx")
    spacing = 1.0 / min(cells) if step is None else step
    _check_random(noise, correlation, seed, geometry)
    rng = None if seed is None else np.random.default_rng(seed)  # one stream: start first, then noise
    start = initial_field(geometry, cells, spacing, epsilon=epsilon, boundary=boundary, seed=rng)
    physics: dict[str, Any] = {"dx": spacing, "dt": dt, "frames": frames, "epsilon": epsilon, "q": q}
    with output.bar() as bar:
        movie = evolve(
            true,
            start,
            **physics,
            boundary=boundary,
            solver=solver,
            substeps=substeps,
            progress=bar.stage("simulating"),
        )
        bar.stage("adding noise and saving")
        record = movie if rng is None else add_noise(movie, noise, seed=rng, correlation=correlation)
        save(record, out)
    output.answer(simulate_text(out, record, true), simulate_document(out, record, true, epsilon))


def _check_random(noise: float, correlation: float, seed: int | None, geometry: str) -> None:
    not_negative(noise, "--noise")
    not_negative(correlation, "--correlation")
    if correlation and not noise:
        raise InputError("--correlation says nothing without noise: pass --noise too")
    if parse_seed(seed) is None and (noise or geometry == "spinodal"):
        raise InputError("random numbers need --seed, an integer, so that the movie can be made again")
