"""The trajectory reader: the likelihood of the whole record, compressed to the same evidence as the weak moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, double_precision
from doublewell.errors import InputError
from doublewell.evidence.evidence import Block, Evidence, Key, compact
from doublewell.evidence.likelihood.field_model import Constants, FieldModel, field_constants
from doublewell.hints import Array
from doublewell.law import Bernstein
from doublewell.record import Record

__all__ = [
    "CG_MOST",
    "CG_TOLERANCE",
    "MOST_STEPS",
    "Step",
    "Trajectory",
    "as_trajectory",
    "check_record",
    "compiled",
    "first_substeps",
    "read_trajectory",
    "record_model",
    "relinearise",
    "step_of",
    "verdict",
]

Progress = Callable[["Step"], None]

MOST_STEPS = 15
SMALL = 0.05  # standard errors: a step in theta below this ends the iteration
CG_TOLERANCE = 1e-2
CG_MOST = 200
_REACTION = 0.5  # largest q |G'| of one internal step to begin with; the resolution is measured after the fit


@dataclass(frozen=True)
class Step:
    """One Gauss-Newton step: cost before and after, its size in standard errors, the share taken, and the solve."""

    number: int
    before: float
    after: float
    size: float
    length: float
    iterations: int
    residual: float


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What the trajectory reader found. ``evidence`` is all that estimates need; the rest only this reader knows.

    ``coefficients`` (in the evidence's family) and ``initial`` are the law and the initial field at which the record
    was linearised last, ``response`` how the best initial field moves with each coefficient, ``residual`` the observed
    minus the predicted fields, ``noise`` its standard deviation s with s^2 = |r|^2 / (n - n_u0 - p), ``status`` why the
    iteration stopped and ``converged`` whether it should have.
    """

    evidence: Evidence
    coefficients: Array
    initial: Array
    response: Array
    residual: Array
    noise: float
    substeps: int
    steps: tuple[Step, ...]
    converged: bool
    status: str


def read_trajectory(
    record: Record,
    start: Array,
    *,
    family: Bernstein | None = None,
    substeps: int | None = None,
    label: str = "record",
    progress: Progress | None = None,
) -> Trajectory:
    """Fit the whole record by maximum likelihood from the coefficients `start` and return its evidence.

    `start` sets the degree that is fitted; `family` (that degree by default) the degree of the evidence, reached by
    one more linearisation. The record must declare its boundary and q. Steps are taken until one is smaller than 0.05
    standard errors; a step that raises the cost is halved.
    """
    fitted = Bernstein(len(start) - 1)
    check_record(record)
    substeps = first_substeps(record, start) if substeps is None else substeps
    model, constants = record_model(record, fitted, substeps)
    data = record.slab()
    with double_precision():
        point, steps = _iterate(model, data, start, constants, progress)
        theta, initial = np.asarray(point.theta), np.asarray(point.nuisance)
    family = fitted if family is None else family
    return _linearise(record, family, initial, fitted.elevation(family) @ theta, substeps, steps, verdict(steps), label)


def relinearise(record: Record, before: Trajectory, coefficients: Array, *, label: str = "record") -> Trajectory:
    """Linearise the record again at other coefficients of the same family, the initial field moved along."""
    move = coefficients - before.coefficients
    initial = before.initial + np.tensordot(move, before.response, axes=1)
    family, steps = before.evidence.family, list(before.steps)
    return _linearise(record, family, initial, coefficients, before.substeps, steps, before.status, label)


def _linearise(
    record: Record,
    family: Bernstein,
    initial: Array,
    theta: Array,
    substeps: int,
    steps: list[Step],
    status: str,
    label: str,
) -> Trajectory:
    model, constants = record_model(record, family, substeps)
    data = record.slab()
    with double_precision():
        last = compiled().sensitivity(model, initial, theta, data, constants, tolerance=CG_TOLERANCE, most=CG_MOST)
        residual = data - np.asarray(compiled().predict(model, initial, theta, constants))
    return as_trajectory(family, last, initial, theta, residual, substeps, tuple(steps), status, label)


def as_trajectory(
    family: Bernstein,
    last: Any,
    initial: Array,
    theta: Array,
    residual: Array,
    substeps: int,
    steps: tuple[Step, ...],
    status: str,
    label: str,
) -> Trajectory:
    """Return what a linearisation says: evidence in units of the noise that is left."""
    shift, triangle = np.asarray(last.shift), np.asarray(last.triangle)
    remaining = float(last.cost) - float(np.sum((triangle @ shift) ** 2))
    rows = residual.size - initial.size
    noise = float(np.sqrt(remaining / (rows - family.size)))
    evidence = _evidence(family, triangle / noise, theta + shift, remaining / noise**2, rows, label)
    response, converged = np.asarray(last.response), status.startswith("converged")
    return Trajectory(evidence, theta, initial, response, residual, noise, substeps, steps, converged, status)


def record_model(record: Record, family: Bernstein, substeps: int) -> tuple[FieldModel, Constants]:
    """Return the model of a record and its constants."""
    grid = check_record(record)
    q = float(record.q or 0.0)
    constants = field_constants(grid, dt=record.dt, frames=record.frames, q=q, substeps=substeps)
    return FieldModel(family, grid.boundary, record.frames, substeps), constants


def _iterate(
    model: FieldModel, data: Array, start: Array, constants: Constants, progress: Progress | None
) -> tuple[Any, list[Step]]:
    code = compiled()
    freedom = data.size - data[0].size - len(start)
    point = code.begin(model, data[0], np.asarray(start, dtype=np.float64), data, constants)
    steps: list[Step] = []
    while not verdict(steps):
        point = code.advance(model, point, data, constants, tolerance=CG_TOLERANCE, most=CG_MOST)
        steps.append(step_of(len(steps) + 1, point._asdict(), freedom))
        if progress is not None:
            progress(steps[-1])
    return point, steps


def step_of(number: int, point: dict[str, Any], freedom: int) -> Step:
    """Return a step in plain numbers, its size in standard errors."""
    scale = float(np.sqrt(point["cost"] / freedom))
    return Step(
        number=number,
        before=float(point["before"]),
        after=float(point["cost"]),
        size=float(point["size"]) / scale,
        length=float(point["length"]),
        iterations=int(point["iterations"]),
        residual=float(point["residual"]),
    )


def verdict(steps: list[Step]) -> str:
    """Return why the iteration ends after these steps, or nothing where it goes on."""
    if not steps:
        return ""
    last = steps[-1]
    if last.length == 0.0:
        return "stopped: no share of the step lowers the cost"
    if last.length == 1.0 and last.size <= SMALL:
        return f"converged: the last step was {last.size:.2g} standard errors"
    if len(steps) == MOST_STEPS:
        return f"stopped: {MOST_STEPS} steps, the last one {last.size:.2g} standard errors"
    return ""


def _evidence(family: Bernstein, triangle: Array, best: Array, cost: float, rows: int, label: str) -> Evidence:
    """Write |R (g - g_best)|^2 + cost as one triangle, in units of the noise; 1/q has no column of its own here."""
    size = family.size
    stacked = np.zeros((size + 1, size + 2))
    stacked[:size, :size] = triangle
    stacked[:size, -1] = triangle @ best
    stacked[size, -1] = np.sqrt(cost)
    return Evidence(family, (Block(Key(label, "trajectory", "all"), compact(stacked), rows),), reading="trajectory")


def check_record(record: Record) -> Grid:
    """Return the grid of a record that declares its boundary and q; others are refused."""
    if record.boundary is None:
        raise InputError(
            "the trajectory reading needs to know what happens at the border: pass boundary='periodic' or 'neumann' to "
            "Record, or use method='weak', which needs none"
        )
    if record.q is None:
        raise InputError(
            "the record has no diffusion coefficient: pass q= to Record (q sets the time scale of the law)"
        )
    return Grid(record.mesh, record.dx, record.boundary)


def first_substeps(record: Record, start: Array) -> int:
    """Return steps from frame to frame such that the reaction changes little in each."""
    steepest = 2.0 * float(np.max(np.abs(start)))  # bounds |G'| at both the wells and the centre
    return max(1, ceil(float(record.q or 0) * steepest * record.dt / _REACTION))


@lru_cache(maxsize=1)
def compiled() -> Any:
    """Return the solver's functions, compiled; one compilation serves all records of a shape."""
    from types import SimpleNamespace

    import jax

    from doublewell.evidence.likelihood import solver

    return SimpleNamespace(
        begin=jax.jit(solver.begin, static_argnames=("model",)),
        advance=jax.jit(solver.advance, static_argnames=("model", "tolerance", "most")),
        sensitivity=jax.jit(solver.sensitivity, static_argnames=("model", "tolerance", "most")),
        predict=jax.jit(lambda model, *rest: model.predict(*rest), static_argnums=0),
        pull=jax.jit(solver.pull_back, static_argnames=("model",)),
    )
