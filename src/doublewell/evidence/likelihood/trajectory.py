"""Trajectory: what the likelihood of a whole record says, compressed to the same evidence as the weak moments."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from doublewell.dynamics import Grid
from doublewell.errors import InputError
from doublewell.evidence.evidence import Block, Evidence, Key, compact
from doublewell.evidence.likelihood.field_model import Constants, FieldModel, field_constants
from doublewell.evidence.likelihood.steps import Step
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.record import Record

__all__ = [
    "MOST_SUBSTEPS",
    "Trajectory",
    "as_trajectory",
    "check_alike",
    "check_record",
    "first_substeps",
    "growth",
    "record_model",
]

_REACTION = 0.5  # largest q |G'| of one internal step to begin with; the resolution is measured after the fit
MOST_SUBSTEPS = 64
_UNFINISHED = 0.05  # relative residual of the solves behind R above which its errors are not to be used


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What the trajectory reader found. ``evidence`` is all that estimates need; the rest only this reader knows.

    ``coefficients`` (in the evidence's family) and ``initial`` are the law and the initial field at which the record
    was linearised last, ``response`` how the best initial field moves with each coefficient, ``residual`` the observed
    minus the predicted fields, ``noise`` its standard deviation s with s^2 = |r|^2 / (n - n_u0 - p), ``status`` why the
    iteration stopped and ``converged`` whether it should have. ``segments`` counts the pieces into which the record was
    cut on the way, 1 for an easy record. ``solve`` is the worst relative residual of the solves behind the evidence.
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
    segments: int
    solve: float


def as_trajectory(
    family: LinearFamily,
    last: Any,
    point: tuple[Array, Array],
    residual: Array,
    substeps: int,
    history: tuple[tuple[Step, ...], str, int],
    label: str,
) -> Trajectory:
    """Return what a linearisation says: evidence in units of the noise that is left."""
    initial, theta = point
    steps, status, segments = history
    shift, triangle = np.asarray(last.shift), np.asarray(last.triangle)
    remaining = float(last.cost) - float(np.sum((triangle @ shift) ** 2))
    rows = residual.size - initial.size
    noise = float(np.sqrt(remaining / (rows - family.size)))
    evidence = _evidence(family, triangle / noise, theta + shift, remaining / noise**2, rows, label)
    solve = float(np.max(last.residuals))
    if status.startswith("converged") and not solve <= _UNFINISHED:
        status = f"stopped: the solves behind the errors reached only {solve:.1g} of their start"
    return Trajectory(
        evidence=evidence,
        coefficients=theta,
        initial=initial,
        response=np.asarray(last.response),
        residual=residual,
        noise=noise,
        substeps=substeps,
        steps=steps,
        converged=status.startswith("converged"),
        status=status,
        segments=segments,
        solve=solve,
    )


def _evidence(family: LinearFamily, triangle: Array, best: Array, cost: float, rows: int, label: str) -> Evidence:
    """Write |R (g - g_best)|^2 + cost as one triangle, in units of the noise; 1/q has no column of its own here."""
    size = family.size
    stacked = np.zeros((size + 1, size + 2))
    stacked[:size, :size] = triangle
    stacked[:size, -1] = triangle @ best
    stacked[size, -1] = np.sqrt(cost)
    return Evidence(family, (Block(Key(label, "trajectory", "all"), compact(stacked), rows),), reading="trajectory")


def record_model(record: Record, family: LinearFamily, substeps: int) -> tuple[FieldModel, Constants]:
    """Return the model of a record and its constants."""
    grid = check_record(record)
    q = float(record.q or 0.0)
    constants = field_constants(grid, dt=record.dt, frames=record.frames, q=q, substeps=substeps)
    return FieldModel(family, grid.boundary, record.frames, substeps), constants


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


def check_alike(records: list[Record]) -> Record:
    """Return the first of records of one shape, mesh, frame interval, q and boundary; others are refused."""
    if not records:
        raise InputError("no records: expected at least one")
    first = records[0]
    check_record(first)
    for record in records[1:]:
        same = (record.shape, record.dx, record.q, record.boundary) == (first.shape, first.dx, first.q, first.boundary)
        if not same or not np.allclose(record.times - record.times[0], first.times - first.times[0]):
            raise InputError(f"a batch needs records of one shape, mesh, q and interval: got {first!r} and {record!r}")
    return first


def growth(record: Record, coefficients: Array) -> float:
    """Return q |G'| T, the logarithm of how much an error of the initial field may grow over a record."""
    span = float(record.times[-1] - record.times[0])
    return float(record.q or 0.0) * float(np.max(np.abs(coefficients))) * span


def first_substeps(record: Record, start: Array) -> int:
    """Return steps from frame to frame such that the reaction changes little in each; frames too far apart raise."""
    # the factor 2 bounds |G'| at both the wells and the centre
    strength = 2.0 * growth(record, start) / (record.frames - 1)
    if strength > _REACTION * MOST_SUBSTEPS:
        raise InputError(
            f"the frames are too far apart: from one to the next the law would act with q |G'| dt = {strength:.3g}, "
            f"expected at most {_REACTION * MOST_SUBSTEPS:g}; check the units of dt, dx and q, or record more often"
        )
    return max(1, ceil(strength / _REACTION))
