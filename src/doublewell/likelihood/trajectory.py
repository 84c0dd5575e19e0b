"""Trajectory: what the likelihood of a whole record says, compressed to the same evidence as the weak moments."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.evidence import Beside, Block, Evidence, Key, compact
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.likelihood.setting import check_record, least_substeps
from doublewell.likelihood.steps import Step
from doublewell.likelihood.view import PLAIN, View
from doublewell.record import Record

__all__ = [
    "MOST_SUBSTEPS",
    "Trajectory",
    "as_trajectory",
    "check_alike",
    "first_substeps",
    "growth",
]

_REACTION = 0.5  # largest q |G'| of one internal step to begin with; the resolution is measured after the fit
MOST_SUBSTEPS = 64
_UNFINISHED = 0.05  # relative residual of the solves behind R above which its errors are not to be used


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What the trajectory reader found. ``evidence`` is all that estimates need; the rest only this reader knows.

    ``theta`` and ``nuisance`` are where the record was linearised last: what the ``view`` estimates beside the law and
    the coefficients (in the evidence's family); the initial field, on a window followed by its border. ``response``
    says how the best nuisance moves with each entry of theta, ``beside`` what the record says of what is estimated
    beside the law. ``residual`` is the observed minus the predicted fields, zero where nothing was seen, ``noise`` its
    standard deviation s with s^2 = |r|^2 / (n - n_u0 - p) after whitening, ``status`` why the iteration stopped and
    ``converged`` whether it should have. ``segments`` counts the pieces into which the record was cut on the way, 1
    for an easy record. ``solve`` is the worst relative residual of the solves behind the evidence.
    """

    evidence: Evidence
    theta: Array
    nuisance: Array
    response: Array
    beside: Beside
    residual: Array
    noise: float
    substeps: int
    steps: tuple[Step, ...]
    converged: bool
    status: str
    segments: int
    solve: float
    view: View = PLAIN

    @property
    def coefficients(self) -> Array:
        """The law at which the record was linearised last, in the evidence's family."""
        return self.theta[len(self.view.free) :]

    @property
    def initial(self) -> Array:
        """The fitted initial field."""
        mesh = self.residual.shape[1:]
        return self.nuisance.ravel()[: prod(mesh)].reshape(mesh)


def as_trajectory(
    family: LinearFamily,
    last: Any,
    point: tuple[Array, Array],
    residual: Array,
    rows: int,
    substeps: int,
    history: tuple[tuple[Step, ...], str, int],
    label: str,
    view: View,
) -> Trajectory:
    """Return what a linearisation says: evidence in units of the noise that is left."""
    nuisance, theta = point
    steps, status, segments = history
    shift, triangle = np.asarray(last.shift), np.asarray(last.triangle)
    remaining = float(last.cost) - float(np.sum((triangle @ shift) ** 2))
    noise = view.whitening.level or float(np.sqrt(remaining / (rows - theta.size)))
    first = len(view.free)
    law = triangle[first:, first:] / noise
    evidence = _evidence(family, law, (theta + shift)[first:], remaining / noise**2, rows, label)
    solve = float(np.max(last.residuals))
    if status.startswith("converged") and not solve <= _UNFINISHED:
        status = f"stopped: the solves behind the errors reached only {solve:.1g} of their start"
    return Trajectory(
        evidence=evidence,
        theta=theta,
        nuisance=nuisance,
        response=np.asarray(last.response),
        beside=_beside(view.free, triangle / noise, theta + shift),
        residual=residual,
        noise=noise,
        substeps=substeps,
        steps=steps,
        converged=status.startswith("converged"),
        status=status,
        segments=segments,
        solve=solve,
        view=view,
    )


def _beside(names: tuple[str, ...], triangle: Array, best: Array) -> Beside:
    """Split R of (beside, g): its first rows say what is beside the law once the law is given."""
    n = len(names)
    root = triangle[:n, :n]
    slope = -np.asarray(np.linalg.solve(root, triangle[:n, n:]), dtype=np.float64)
    return Beside(names, best[:n], slope, root, best[n:])


def _evidence(family: LinearFamily, triangle: Array, best: Array, cost: float, rows: int, label: str) -> Evidence:
    """Write |R (g - g_best)|^2 + cost as one triangle, in units of the noise; 1/q has no column of its own here."""
    size = family.size
    stacked = np.zeros((size + 1, size + 2))
    stacked[:size, :size] = triangle
    stacked[:size, -1] = triangle @ best
    stacked[size, -1] = np.sqrt(cost)
    return Evidence(family, (Block(Key(label, "trajectory", "all"), compact(stacked), rows),), kind="trajectory")


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


def first_substeps(record: Record, start: Array, view: View = PLAIN) -> int:
    """Return steps from frame to frame such that the reaction changes little in each; frames too far apart raise."""
    # the factor 2 bounds |G'| at both the wells and the centre
    intervals = np.diff(record.times)
    strength = 2.0 * growth(record, start) * float(np.max(intervals) / np.sum(intervals))
    if strength > _REACTION * MOST_SUBSTEPS:
        raise InputError(
            f"the frames are too far apart: from one to the next the law would act with q |G'| dt = {strength:.3g}, "
            f"expected at most {_REACTION * MOST_SUBSTEPS:g}; check the units of dt, dx and q, or record more often"
        )
    return max(least_substeps(record, view), ceil(strength / _REACTION))
