"""The command plan."""

from __future__ import annotations

from math import atanh, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublewell.cli.output import Output
from doublewell.cli.reading import Boundary
from doublewell.cli.values import Constraint, Whole, parse_degree, parse_mesh, parse_numbers, parse_seed
from doublewell.errors import InputError

if TYPE_CHECKING:
    from doublewell.law import Law
    from doublewell.plan import Experiment, Option, Plan, Prediction

__all__ = ["parse_share", "plan", "plan_document"]

_EPSILON = 0.03  # of a named law, unless another is given
_TANH_WIDTH = 2.0 * sqrt(2.0) * atanh(0.9)  # from u = -0.9 to 0.9, in units of the quartic law's epsilon


def plan(
    *,
    law: str = "sixth",
    geometry: str = "circle",
    mesh: str = "96x96",
    dx: str | None = None,
    dt: float = 5e-5,
    frames: Whole = 61,
    noise: str = "0.03",
    epsilon: float | None = None,
    q: float = 1.0,
    boundary: Boundary = "periodic",
    degree: str = "auto",
    constraint: Constraint = "admissible",
    tension_error: str = "0",
    target: str | None = None,
    target_of: Literal["force", "potential", "epsilon"] = "force",
    seed: Whole | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Predict the errors of a movie before it is recorded, and say what would lower them most.

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
        How the movie will be read: a degree from 0 to 8, or auto.
    constraint
        How the movie will be read: admissible, bernstein or none, as for identify.
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

    options: dict[str, Any] = {"degree": parse_degree(degree), "constraint": constraint, "target_of": target_of}
    options["tension_error"] = parse_share(tension_error, "--tension-error")
    options["target"] = None if target is None else parse_share(target, "--target")
    cells, step = parse_mesh(mesh), parse_numbers(dx, "--dx")
    _check_seed(seed, geometry)
    film: dict[str, Any] = {"dx": 1.0 / min(cells) if step is None else step, "dt": dt, "frames": frames, "q": q}
    film |= {"noise": parse_share(noise, "--noise"), "boundary": boundary}
    experiment = _experiment(law, geometry, cells, epsilon, seed, film)
    with output.bar() as bar:
        show = output.fitting(bar)
        found = make(experiment, **options, progress=lambda words: show(f"predicting: {words}", 0, 0))
    output.answer(str(found), plan_document(found))


def parse_share(text: str, option: str) -> float:
    """Read a share, as a number below 1 or in percent.

    >>> parse_share("1%", "--target"), parse_share("0.01", "--target")
    (0.01, 0.01)
    """
    number = text.strip().removesuffix("%").strip()
    try:
        share = float(number) / (100.0 if "%" in text else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 <= share < 1.0:
        raise InputError(f"{option} is {text!r}: expected a share below 1, such as 1% or 0.01")
    return share


def plan_document(found: Plan) -> dict[str, Any]:
    """Return the numbers of a plan; errors are shares."""
    goal = found.goal
    return {
        "experiment": _planned(found.experiment),
        "prediction": _errors(found.prediction),
        "changes": [_change(option, found.prediction.force) for option in found.options],
        "advice": found.advice,
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
        "notes": list(found.notes),
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
    if parse_seed(seed) is None and geometry == "spinodal":
        raise InputError("a spinodal start needs --seed, an integer, so that the plan can be made again")


def _planned(experiment: Experiment) -> dict[str, Any]:
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


def _errors(found: Prediction) -> dict[str, Any]:
    return {
        "force": found.force,
        "potential": found.potential,
        "epsilon": found.epsilon,
        "bias": found.bias,
        "refused": found.refused,
        "bound": found.bound,
        "phases": found.phases.tolist(),
        "pointwise": found.pointwise.tolist(),
    }


def _change(option: Option, base: float) -> dict[str, Any]:
    if option.prediction is None or option.experiment is None:
        return {"name": option.name, "refusal": option.refusal}
    ratio = option.prediction.force / base
    return {"name": option.name, "ratio": ratio, **_planned(option.experiment), **_errors(option.prediction)}
