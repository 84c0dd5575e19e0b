"""The trajectory reader: fit whole records by maximum likelihood, one or many of one shape at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.dynamics import double_precision
from doublewell.evidence.likelihood.compiled import compiled
from doublewell.evidence.likelihood.segment_model import SegmentModel, segment_constants
from doublewell.evidence.likelihood.steps import MOST_STEPS, SMALL, Step, Watch, step_of, verdict
from doublewell.evidence.likelihood.trajectory import (
    Trajectory,
    as_trajectory,
    check_alike,
    check_record,
    first_substeps,
    growth,
    record_model,
)
from doublewell.hints import Array
from doublewell.law import Bernstein, LinearFamily
from doublewell.record import Record

__all__ = ["read_trajectories", "read_trajectory", "relinearise"]

_LINKS = (0.3, 1.0, 3.0, 10.0)  # weights of the links, one after the other; then one whole trajectory
_ROUGH = 3.0  # standard errors: a step below this ends a stage of segments
_FIRST_STAGE, _LATER_STAGE = 12, 2  # most steps: the first finds the law, the others follow it
_SEGMENT = 2.0  # q |G'| of a segment's time
_UNSTABLE = 4.0  # q |G'| of a record's time above which a shortened step means segments


def read_trajectory(
    record: Record,
    start: Array,
    *,
    family: LinearFamily | None = None,
    fitted: LinearFamily | None = None,
    substeps: int | None = None,
    label: str = "record",
    watch: Watch | None = None,
) -> Trajectory:
    """Fit one record; see ``read_trajectories``."""
    labels = [label]
    return read_trajectories(
        [record], np.asarray(start)[None], family=family, fitted=fitted, substeps=substeps, labels=labels, watch=watch
    )[0]


def read_trajectories(
    records: Sequence[Record],
    starts: Array,
    *,
    family: LinearFamily | None = None,
    fitted: LinearFamily | None = None,
    substeps: int | None = None,
    labels: Sequence[str] | None = None,
    watch: Watch | None = None,
) -> list[Trajectory]:
    """Fit records of one shape, mesh, frame interval, q and boundary from the coefficients starts[record, k].

    `starts` set the degree that is fitted, in the family `fitted` (symmetric wells by default); `family` (that degree
    by default) the degree of the evidence, reached by one more linearisation. Steps are taken together until each
    record has stopped: at a step smaller than 0.05 standard errors. A step that raises the cost is halved; where that
    happens to a record that amplifies its initial field, the record is cut into segments that are linked step by step.
    `watch` is called with every step (of a batch, the largest).
    """
    records, starts = list(records), np.asarray(starts, dtype=np.float64)
    first = check_alike(records)
    fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
    if substeps is None:
        substeps = max(first_substeps(record, start) for record, start in zip(records, starts, strict=True))
    model, constants = record_model(first, fitted, substeps)
    data = np.stack([record.slab() for record in records])
    unstable = np.array([growth(first, start) > _UNSTABLE for start in starts])
    found = _iterate(model, constants, data, data[:, 0], starts, watch=watch, patient=~unstable)
    segments = np.ones(len(records), dtype=int)
    hard = [k for k in range(len(records)) if unstable[k] and not found.status[k].startswith("converged")]
    if hard:
        again, count = _by_segments(first, fitted, substeps, data[hard], starts[hard], watch)
        segments[hard] = count
        found.replace(hard, again)
    family = fitted if family is None else family
    history = [(tuple(found.steps[k]), found.status[k], int(segments[k])) for k in range(len(records))]
    lifted = found.theta @ fitted.elevation(family).T
    return _linearise(records, family, found.nuisance, lifted, substeps, history, labels or _numbers(records))


def relinearise(
    records: Sequence[Record], before: Sequence[Trajectory], coefficients: Array, *, labels: Sequence[str] | None = None
) -> list[Trajectory]:
    """Linearise records again at other coefficients of the same family, their initial fields moved along."""
    moves = [row - found.coefficients for row, found in zip(coefficients, before, strict=True)]
    initial = np.stack(
        [found.initial + np.tensordot(move, found.response, axes=1) for found, move in zip(before, moves, strict=True)]
    )
    history = [(found.steps, found.status, found.segments) for found in before]
    family, substeps = before[0].evidence.family, before[0].substeps
    labels = labels or [found.evidence.blocks[0].key.record for found in before]
    return _linearise(list(records), family, initial, np.asarray(coefficients), substeps, history, labels)


@dataclass(eq=False)
class _Fits:
    """Where the iterations of a batch ended."""

    nuisance: Array
    theta: Array
    steps: list[list[Step]]
    status: list[str]

    def replace(self, places: list[int], other: _Fits) -> None:
        """Put other fits in the given places; their steps follow what was tried before."""
        self.nuisance, self.theta = self.nuisance.copy(), self.theta.copy()
        self.nuisance[places], self.theta[places] = other.nuisance, other.theta
        for place, steps, status in zip(places, other.steps, other.status, strict=True):
            self.steps[place] += steps
            self.status[place] = status


def _iterate(
    model: Any, constants: Any, data: Array, nuisance: Array, theta: Array, *, watch: Watch | None, patient: Array,
    stage: str = "whole record", small: float = SMALL, least: int = 1, most: int = MOST_STEPS,
    freedom: int | None = None,
) -> _Fits:  # fmt: skip
    """Step until every record has stopped; one that is not patient stops at the first step that must be halved."""
    code = compiled()
    freedom = freedom or data[0].size - data[0, 0].size - theta.shape[1]
    steps: list[list[Step]] = [[] for _ in data]
    status = [""] * len(data)
    with double_precision():
        point = code.begin(model, nuisance, theta, data, constants)
        for number in range(1, most + 1):
            fresh = code.advance(model, point, data, constants)
            running = np.array([not words for words in status])
            point = code.choose(running, fresh, point)
            table = {name: np.asarray(getattr(fresh, name)) for name in fresh._fields[2:]}
            for k in np.flatnonzero(running):
                steps[k].append(step_of(number, {name: column[k] for name, column in table.items()}, freedom, stage))
                status[k] = verdict(steps[k], small=small, least=least, most=most)
                if not patient[k] and steps[k][-1].length < 1.0:
                    status[k] = status[k] or "stopped: a step had to be shortened"
            if watch is not None:
                watch(max((steps[k][-1] for k in np.flatnonzero(running)), key=lambda step: step.size))
            if all(status):
                break
        return _Fits(np.asarray(point.nuisance), np.asarray(point.theta), steps, status)


def _by_segments(
    record: Record, family: LinearFamily, substeps: int, data: Array, starts: Array, watch: Watch | None
) -> tuple[_Fits, int]:
    """Fit segments whose links grow stiffer, then the whole record from there."""
    grid, q = check_record(record), float(record.q or 0.0)
    pieces = max(growth(record, start) for start in starts) / _SEGMENT
    length = max(2, int((record.frames - 1) / pieces))
    model = SegmentModel(family, grid.boundary, record.frames, substeps, length)
    extended = np.stack([model.observations(one) for one in data])
    patient = np.ones(len(data), dtype=bool)
    nuisance, theta = np.stack([model.firsts(one) for one in data]), starts
    steps: list[list[Step]] = [[] for _ in data]
    apart: Array | None = None
    for link in _LINKS:
        constants = segment_constants(model, grid, dt=record.dt, q=q, link=link)
        free = data[0].size - data[0, 0].size * (model.count if apart is None else 1)
        found = _iterate(
            model, constants, extended, nuisance, theta, watch=watch, patient=patient, small=_ROUGH,
            most=_FIRST_STAGE if apart is None else _LATER_STAGE, stage=f"segments, links {link:g}", freedom=free,
        )  # fmt: skip
        nuisance, theta = found.nuisance, found.theta
        steps = [old + new for old, new in zip(steps, found.steps, strict=True)]
        if apart is None:
            apart = np.sqrt([taken[-1].after / free for taken in found.steps])
    whole, constants = record_model(record, family, substeps)
    found = _iterate(whole, constants, data, nuisance[:, 0], theta, watch=watch, patient=patient, least=2)
    found.steps = [old + new for old, new in zip(steps, found.steps, strict=True)]
    for k, words in enumerate(found.status):
        if not words.startswith("converged") and apart is not None:
            found.status[k] = f"{words}; cut into {model.count} segments the record leaves a noise of {apart[k]:.3g}"
    return found, model.count


def _linearise(
    records: list[Record],
    family: LinearFamily,
    initial: Array,
    theta: Array,
    substeps: int,
    history: list[tuple[tuple[Step, ...], str, int]],
    labels: Sequence[str],
) -> list[Trajectory]:
    model, constants = record_model(records[0], family, substeps)
    data = np.stack([record.slab() for record in records])
    with double_precision():
        last = compiled().sensitivity(model, initial, theta, data, constants)
        residual = data - np.asarray(compiled().predict(model, initial, theta, constants))
        last = type(last)(*(np.asarray(part) for part in last))
    return [
        as_trajectory(
            family, type(last)(*(part[k] for part in last)), (initial[k], theta[k]), residual[k], substeps,
            history[k], labels[k],
        )
        for k in range(len(records))
    ]  # fmt: skip


def _numbers(records: Sequence[Record]) -> list[str]:
    return ["record"] if len(records) == 1 else [f"record {k + 1}" for k in range(len(records))]
