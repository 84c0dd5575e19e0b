"""The commands about movies that are not recorded: simulate makes one, plan predicts the errors of one."""

from __future__ import annotations

from dataclasses import dataclass
from math import atanh, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from doublewell.cli.commands import record_document
from doublewell.cli.identify import check_parent
from doublewell.cli.options import (
    Boundary,
    Integer,
    Output,
    Switch,
    check_seed,
    parse_fraction,
    parse_mesh,
    parse_numbers,
)
from doublewell.errors import InputError, not_negative
from doublewell.law import Constraint
from doublewell.options import DoubleWell

if TYPE_CHECKING:
    from doublewell.hints import Array
    from doublewell.law import Law
    from doublewell.plan import Experiment, Plan, Prediction

_EPSILON = 0.03  # of a named law, unless another is given
_TANH_WIDTH = 2.0 * sqrt(2.0) * atanh(0.9)  # from u = -0.9 to 0.9, in units of the quartic law's epsilon


@Parameter(name="*")
@dataclass(frozen=True)
class Scene:
    """What a movie shows, and how it is sampled.

    Parameters
    ----------
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
    q
        Diffusion coefficient.
    boundary
        Boundary condition.
    seed
        Seed of all random numbers; needed with spinodal, and for a movie with noise of either kind.
    """

    geometry: str = "circle"
    mesh: str = "96x96"
    dx: str | None = None
    dt: float = 5e-5
    frames: Integer = 61
    q: float = 1.0
    boundary: Boundary = "periodic"
    seed: Integer | None = None

    def physics(self) -> dict[str, Any]:
        """Return mesh size, times, diffusion coefficient and boundary by name."""
        step = parse_numbers(self.dx, "--dx")
        spacing = 1.0 / min(parse_mesh(self.mesh)) if step is None else step
        return {"dx": spacing, "dt": self.dt, "frames": self.frames, "q": self.q, "boundary": self.boundary}

    def initial(self, epsilon: float, seed: Any) -> Array:
        """Return the initial field."""
        from doublewell.simulate import initial_field

        cells, dx = parse_mesh(self.mesh), self.physics()["dx"]
        return initial_field(self.geometry, cells, dx, epsilon=epsilon, boundary=self.boundary, seed=seed)


def simulate(
    out: Path,
    /,
    *,
    law: str = "sixth",
    epsilon: float = _EPSILON,
    dynamics: str = "allen-cahn",
    scene: Scene = Scene(),  # noqa: B008  frozen
    solver: Literal["cnab2", "etdrk4"] = "cnab2",
    substeps: Integer = 12,
    theta: float = 0.0,
    noise: float = 0.0,
    correlation: float = 0.0,
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
    epsilon
        Interfacial scale.
    dynamics
        allen-cahn, cahn-hilliard or mass-conserving.
    solver
        cnab2 (order 2) or etdrk4 (order 4).
    substeps
        Solver steps from frame to frame.
    theta
        kT / kappa, the strength of thermal noise; 0 for none.
    noise
        Standard deviation of the noise of one pixel.
    correlation
        Correlation length of the noise in cells, 0 for white noise.
    force
        Replace a movie that is there already.
    """
    import numpy as np

    from doublewell.dynamics import ALLEN_CAHN, dynamics_of
    from doublewell.io import save
    from doublewell.io.open import format_to_write
    from doublewell.law import named_law
    from doublewell.simulate import add_noise
    from doublewell.simulate import simulate as evolve

    if format_to_write(out) is None:
        raise InputError(f"{out}: expected a name that ends in .npz, .zarr or .nc for a movie")
    check_parent(out)
    if out.exists() and not force:
        raise InputError(f"{out} exists already: choose another name, or pass --force to replace it")
    true, physics = named_law(law), scene.physics()
    not_negative(noise, "--noise")
    not_negative(correlation, "--correlation")
    if correlation and not noise:
        raise InputError("--correlation has no meaning without noise: pass --noise too")
    if check_seed(scene.seed) is None and (noise or theta or scene.geometry == "spinodal"):
        raise InputError("random numbers need --seed, an integer, so that the movie can be made again")
    rng = None if scene.seed is None else np.random.default_rng(scene.seed)  # one stream: start, motion, noise
    physics |= {"epsilon": epsilon, "solver": solver, "substeps": substeps, "dynamics": dynamics_of(dynamics)}
    physics |= {"theta": theta, "seed": rng}
    start = scene.initial(epsilon, rng)
    with output.bar() as bar:
        record = evolve(true, start, **physics, progress=bar.stage("simulating"))
        bar.stage("adding noise and saving")
        if rng is not None:
            record = add_noise(record, noise, seed=rng, correlation=correlation)
        save(record, out)
    tension = true.surface_tension(epsilon=1.0)
    equation = "" if physics["dynamics"] is ALLEN_CAHN else f" --dynamics {dynamics}"
    text = f"{out}: {record}"
    if not theta:  # movies with thermal noise are not fitted
        text += f"\nrecover it with: doublewell identify {out} --surface-tension {tension:.10g}{equation}"
    document = {"file": str(out), "record": record_document(record), "law": true.name, "epsilon": epsilon}
    output.answer(text, document | {"surface_tension": tension})


def plan(
    *,
    law: str = "sixth",
    epsilon: float | None = None,
    dynamics: str = "allen-cahn",
    scene: Scene = Scene(),  # noqa: B008  frozen
    noise: str = "0.03",
    degree: str = "auto",
    constraint: Constraint = "admissible",
    tension_error: str = "0",
    target: str | None = None,
    target_of: Literal["force", "potential", "epsilon"] = "force",
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Predict the errors of a movie before it is recorded, and report what would lower them most.

    Parameters
    ----------
    law
        quartic, sixth, bernstein3, exponential, rational or outside_cone; or a result, such as result.json, whose law
        is expected again.
    epsilon
        Interfacial scale of a named law (0.03 by default); a result has its own.
    dynamics
        allen-cahn, cahn-hilliard or mass-conserving.
    noise
        Standard deviation of the noise of one pixel, such as 0.03 or 3% (of the phase value 1).
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
    """
    from doublewell.plan import Experiment
    from doublewell.plan import plan as make

    options: dict[str, Any] = {
        "degree": DoubleWell.of(f"degree={degree}").degree,
        "constraint": constraint,
        "target_of": target_of,
        "tension_error": parse_fraction(tension_error, "--tension-error"),
        "target": None if target is None else parse_fraction(target, "--target"),
    }
    physics = scene.physics() | {"noise": parse_fraction(noise, "--noise"), "dynamics": dynamics}
    if check_seed(scene.seed) is None and scene.geometry == "spinodal":
        raise InputError("a spinodal start needs --seed, an integer, so that the plan can be made again")
    true, scale = _law(law, epsilon)
    experiment = Experiment(true, scene.initial(scale, scene.seed), epsilon=scale, **physics)
    with output.bar() as bar:
        planned = make(experiment, **options, progress=output.fitting(bar))
    output.answer(str(planned), _plan_document(planned))


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


def _plan_document(planned: Plan) -> dict[str, Any]:
    """Return the numbers of a plan; errors are fractions."""
    goal, changes = planned.goal, list[dict[str, Any]]()
    target: dict[str, Any] | None = None
    for change in planned.options:
        if change.prediction is None or change.experiment is None:
            changes.append({"name": change.name, "refusal": change.refusal})
        else:
            ratio = change.prediction.force / planned.prediction.force
            numbers = _experiment_document(change.experiment) | _errors(change.prediction)
            changes.append({"name": change.name, "ratio": ratio, **numbers})
    if goal is not None:
        errors = None if goal.prediction is None else _errors(goal.prediction)
        target = {"error": goal.target, "of": goal.quantity, "frames": goal.frames, "prediction": errors}
        target |= {"noise_instead": goal.noise, "tried": [list(pair) for pair in goal.tried], "status": goal.status}
    return {
        "experiment": _experiment_document(planned.experiment),
        "prediction": _errors(planned.prediction),
        "changes": changes,
        "advice": planned.advice,
        "target": target,
        "notes": list(planned.notes),
    }


def _experiment_document(experiment: Experiment) -> dict[str, Any]:
    numbers = {name: getattr(experiment, name) for name in ("dt", "frames", "noise", "epsilon", "q", "boundary")}
    named = {"law": experiment.law.name, "dynamics": experiment.equation.name}
    return named | {"mesh": list(experiment.initial.shape)} | numbers


def _errors(prediction: Prediction) -> dict[str, Any]:
    arrays = {"phases": prediction.phases.tolist(), "pointwise": prediction.pointwise.tolist()}
    return vars(prediction) | arrays
