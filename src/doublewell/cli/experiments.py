"""The commands about movies that are not recorded: simulate makes one, plan predicts the errors of one."""

from __future__ import annotations

from math import atanh, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublewell.cli.commands import record_document
from doublewell.cli.identify import check_parent
from doublewell.cli.movie import Boundary
from doublewell.cli.options import Integer, Switch, check_seed, parse_fraction, parse_mesh, parse_numbers
from doublewell.cli.output import Output
from doublewell.errors import InputError, not_negative
from doublewell.options import Constraint, DoubleWell

if TYPE_CHECKING:
    from doublewell.law import Law
    from doublewell.plan import Experiment, Option, Plan, Prediction

_EPSILON = 0.03  # of a named law, unless another is given
_TANH_WIDTH = 2.0 * sqrt(2.0) * atanh(0.9)  # from u = -0.9 to 0.9, in units of the quartic law's epsilon


def simulate(
    out: Path,
    /,
    *,
    law: str = "sixth",
    geometry: str = "circle",
    mesh: str = "96x96",
    dx: str | None = None,
    dt: float = 5e-5,
    frames: Integer = 61,
    epsilon: float = 0.03,
    q: float = 1.0,
    boundary: Boundary = "periodic",
    solver: Literal["cnab2", "etdrk4"] = "cnab2",
    substeps: Integer = 12,
    noise: float = 0.0,
    correlation: float = 0.0,
    seed: Integer | None = None,
    force: Switch = False,
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

    from doublewell.io import save
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field
    from doublewell.simulate import simulate as evolve

    _check_target(out, force=force)
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
    tension = true.surface_tension(epsilon=1.0)
    text = f"{out}: {record}\nrecover it with: doublewell identify {out} --surface-tension {tension:.10g}"
    document = {"file": str(out), "record": record_document(record), "law": true.name, "epsilon": epsilon}
    output.answer(text, document | {"surface_tension": tension})


def _check_target(path: Path, *, force: bool) -> None:
    """Refuse a name that no record can be saved under, and one that is taken unless `force` gives it up."""
    from doublewell.io.open import format_to_write

    if format_to_write(path) is None:
        raise InputError(f"{path}: expected a name that ends in .npz, .zarr or .nc for a movie")
    check_parent(path)
    if path.exists() and not force:
        raise InputError(f"{path} exists already: choose another name, or pass --force to replace it")


def _check_random(noise: float, correlation: float, seed: int | None, geometry: str) -> None:
    not_negative(noise, "--noise")
    not_negative(correlation, "--correlation")
    if correlation and not noise:
        raise InputError("--correlation has no meaning without noise: pass --noise too")
    if check_seed(seed) is None and (noise or geometry == "spinodal"):
        raise InputError("random numbers need --seed, an integer, so that the movie can be made again")


def plan(
    *,
    law: str = "sixth",
    geometry: str = "circle",
    mesh: str = "96x96",
    dx: str | None = None,
    dt: float = 5e-5,
    frames: Integer = 61,
    noise: str = "0.03",
    epsilon: float | None = None,
    q: float = 1.0,
    boundary: Boundary = "periodic",
    degree: str = "auto",
    constraint: Constraint = "admissible",
    tension_error: str = "0",
    target: str | None = None,
    target_of: Literal["force", "potential", "epsilon"] = "force",
    seed: Integer | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Predict the errors of a movie before it is recorded, and report what would lower them most.

    Parameters
    ----------
    law
        quartic, sixth, bernstein3, exponential, rational or outside_cone; or a result, such as result.json, whose law
        is expected again.
    geometry
        circle, nonconvex, inclusion, wobbled, dumbbell or spinodal.
    mesh
        Cells along (z, y and) x, such as 96x96.
    dx
        Pixel size; by default the shortest side has length 1.
    dt
        Time from frame to frame.
    frames
        Number of frames, the first included.
    noise
        Standard deviation of the noise of one pixel, such as 0.03 or 3% (of the phase value 1).
    epsilon
        Interfacial scale of a named law (0.03 by default); a result has its own.
    q
        Diffusion coefficient.
    boundary
        Boundary condition.
    degree
        How the movie will be fitted: a degree from 0 to 8, or auto.
    constraint
        How the movie will be fitted: admissible, bernstein or none, as for identify.
    tension_error
        Relative standard deviation of the surface tension, such as 1% or 0.01.
    target
        Search for the number of frames with this error, such as 1% or 0.01.
    target_of
        What the target is the error of.
    seed
        Seed of a spinodal start.
    """
    from doublewell.plan import plan as make

    options: dict[str, Any] = {
        "degree": DoubleWell.of(f"degree={degree}").degree, "constraint": constraint, "target_of": target_of,
    }  # fmt: skip
    options["tension_error"] = parse_fraction(tension_error, "--tension-error")
    options["target"] = None if target is None else parse_fraction(target, "--target")
    cells, step = parse_mesh(mesh), parse_numbers(dx, "--dx")
    _check_seed(seed, geometry)
    film: dict[str, Any] = {"dx": 1.0 / min(cells) if step is None else step, "dt": dt, "frames": frames, "q": q}
    film |= {"noise": parse_fraction(noise, "--noise"), "boundary": boundary}
    experiment = _experiment(law, geometry, cells, epsilon, seed, film)
    with output.bar() as bar:
        show = output.fitting(bar)
        planned = make(experiment, **options, progress=lambda words: show(f"predicting: {words}", 0, 0))
    output.answer(str(planned), _plan_document(planned))


def _plan_document(planned: Plan) -> dict[str, Any]:
    """Return the numbers of a plan; errors are fractions."""
    goal = planned.goal
    return {
        "experiment": _experiment_document(planned.experiment),
        "prediction": _errors(planned.prediction),
        "changes": [_change(option, planned.prediction.force) for option in planned.options],
        "advice": planned.advice,
        "target": None
        if goal is None
        else {
            "error": goal.target,
            "of": goal.quantity,
            "frames": goal.frames,
            "prediction": None if goal.prediction is None else _errors(goal.prediction),
            "noise_instead": goal.noise,
            "tried": [list(pair) for pair in goal.tried],
            "status": goal.status,
        },
        "notes": list(planned.notes),
    }


def _experiment(
    law: str, geometry: str, cells: tuple[int, ...], epsilon: float | None, seed: int | None, film: dict[str, Any]
) -> Experiment:
    from doublewell.plan import Experiment
    from doublewell.simulate import initial_field

    true, scale = _law(law, epsilon)
    start = initial_field(geometry, cells, film["dx"], epsilon=scale, boundary=film["boundary"], seed=seed)
    return Experiment(true, start, epsilon=scale, **film)


def _law(name: str, epsilon: float | None) -> tuple[Law, float]:
    """Return the law read as F' with its epsilon; without a scale, that of a quartic interface of the same width."""
    from doublewell.io import load_result
    from doublewell.law import named_law

    if Path(name).suffix.lower() != ".json":
        return named_law(name), _EPSILON if epsilon is None else epsilon
    if epsilon is not None:
        raise InputError(f"--epsilon belongs to a named law: the result {name} has its own; leave --epsilon out")
    result = load_result(name)
    scale = result.law.interface_width() / _TANH_WIDTH if result.scale is None else result.scale.epsilon
    return result.law.scaled(scale**2), scale


def _check_seed(seed: int | None, geometry: str) -> None:
    if check_seed(seed) is None and geometry == "spinodal":
        raise InputError("a spinodal start needs --seed, an integer, so that the plan can be made again")


def _experiment_document(experiment: Experiment) -> dict[str, Any]:
    return {
        "law": experiment.law.name,
        "mesh": list(experiment.initial.shape),
        "dt": experiment.dt,
        "frames": experiment.frames,
        "noise": experiment.noise,
        "epsilon": experiment.epsilon,
        "q": experiment.q,
        "boundary": experiment.boundary,
    }


def _errors(prediction: Prediction) -> dict[str, Any]:
    return {
        "force": prediction.force,
        "potential": prediction.potential,
        "epsilon": prediction.epsilon,
        "bias": prediction.bias,
        "refused": prediction.refused,
        "bound": prediction.bound,
        "phases": prediction.phases.tolist(),
        "pointwise": prediction.pointwise.tolist(),
    }


def _change(option: Option, base: float) -> dict[str, Any]:
    if option.prediction is None or option.experiment is None:
        return {"name": option.name, "refusal": option.refusal}
    ratio = option.prediction.force / base
    return {
        "name": option.name,
        "ratio": ratio,
        **_experiment_document(option.experiment),
        **_errors(option.prediction),
    }
