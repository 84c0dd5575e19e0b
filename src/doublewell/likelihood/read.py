"""The trajectory reader: fit whole records by maximum likelihood, one or many of one shape at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.jax_runtime import double_precision, leave_room
from doublewell.law import Bernstein, LinearFamily
from doublewell.likelihood.compiled import compiled
from doublewell.likelihood.segment_model import SegmentModel, segment_constants
from doublewell.likelihood.setting import (
    check_view,
    mode_grid,
    observed,
    observed_values,
    one_mask,
    record_model,
)
from doublewell.likelihood.steps import MOST_STEPS, SMALL, Step, Watch, step_of, verdict
from doublewell.likelihood.trajectory import (
    Trajectory,
    as_trajectory,
    check_alike,
    first_substeps,
    growth,
)
from doublewell.likelihood.view import PLAIN, View
from doublewell.record import Record

__all__ = ["beside_start", "linearise", "read_trajectories", "read_trajectory", "relinearise"]

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
    view: View = PLAIN,
) -> Trajectory:
    """Fit one record; see ``read_trajectories``."""
    labels = [label]
    return read_trajectories(
        [record], np.asarray(start)[None], family=family, fitted=fitted, substeps=substeps, labels=labels, watch=watch,
        view=view,
    )[0]  # fmt: skip


def read_trajectories(
    records: Sequence[Record],
    starts: Array,
    *,
    family: LinearFamily | None = None,
    fitted: LinearFamily | None = None,
    substeps: int | None = None,
    labels: Sequence[str] | None = None,
    watch: Watch | None = None,
    view: View = PLAIN,
) -> list[Trajectory]:
    """Fit records of one shape, mesh, frame interval, q and boundary from the coefficients starts[record, k].

    `starts` set the degree that is fitted, in the family `fitted` (symmetric wells by default); `family` (that degree
    by default) the degree of the evidence, reached by one more linearisation. Steps are taken together until each
    record has stopped: at a step smaller than 0.05 standard errors. A step that raises the cost is halved; where that
    happens to a record that amplifies its initial field, the record is cut into segments that are linked step by step.
    `watch` is called with every step (of a batch, the largest). `view` says how the records are seen; records that miss
    different values are read alone.
    """
    leave_room()
    records, starts = list(records), np.asarray(starts, dtype=np.float64)
    first = check_alike(records)
    check_view(first, view)
    fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
    family = fitted if family is None else family
    labels = labels or _numbers(records)
    if substeps is None:
        substeps = max(first_substeps(record, start, view) for record, start in zip(records, starts, strict=True))
    if not one_mask(records):
        return [
            read_trajectory(
                one, start, family=family, fitted=fitted, substeps=substeps, label=label, watch=watch, view=view
            )
            for one, start, label in zip(records, starts, labels, strict=True)
        ]
    model, constants = record_model(first, fitted, substeps, view)
    seen = observed(first, view)
    constants = constants._replace(root=seen.root)
    data = observed_values(records, view, seen)
    theta = np.hstack([np.tile(beside_start(view), (len(records), 1)), starts])
    unstable = np.array([view.plain and _hard(first, start) for start in starts])
    nuisance = np.stack([model.border_of(one) for one in data])
    freedom = seen.rows - theta.shape[1]
    found = _iterate(model, constants, data, nuisance, theta, watch=watch, patient=~unstable, freedom=freedom)
    segments = np.ones(len(records), dtype=int)
    hard = [k for k in range(len(records)) if unstable[k] and not found.status[k].startswith("converged")]
    if hard:
        again, count = _by_segments(first, fitted, substeps, data[hard], starts[hard], watch)
        segments[hard] = count
        found.replace(hard, again)
    history = [(tuple(found.steps[k]), found.status[k], int(segments[k])) for k in range(len(records))]
    n = len(view.free)
    lifted = np.hstack([found.theta[:, :n], found.theta[:, n:] @ fitted.elevation(family).T])
    return linearise(records, family, found.nuisance, lifted, substeps, history, labels, view)


def _hard(record: Record, start: Array) -> bool:
    """Say whether a record may need segments: it amplifies its initial field, and segments know how to read it."""
    return growth(record, start) > _UNSTABLE and record.boundary != "open" and record.uniform and record.mask is None


def beside_start(view: View) -> Array:
    """Return where q and a blur start: at the record's q, and at a blur of half a cell."""
    return np.array([{"q": 1.0, "blur": 0.25}[name] for name in view.free])


def relinearise(
    records: Sequence[Record], before: Sequence[Trajectory], coefficients: Array, *, labels: Sequence[str] | None = None
) -> list[Trajectory]:
    """Linearise records again at other coefficients of the same family, all else moved along."""
    theta = np.stack(
        [np.concatenate([found.beside.mean(row), row]) for row, found in zip(coefficients, before, strict=True)]
    )
    moves = [row - found.theta for row, found in zip(theta, before, strict=True)]
    nuisance = np.stack(
        [one.nuisance + np.tensordot(move, one.response, axes=1) for one, move in zip(before, moves, strict=True)]
    )
    history = [(found.steps, found.status, found.segments) for found in before]
    family, substeps, view = before[0].evidence.family, before[0].substeps, before[0].view
    labels = labels or [found.evidence.blocks[0].key.record for found in before]
    return linearise(list(records), family, nuisance, theta, substeps, history, labels, view)


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
    freedom: int, stage: str = "whole record", small: float = SMALL, least: int = 1, most: int = MOST_STEPS,
) -> _Fits:  # fmt: skip
    """Step until every record has stopped; one that is not patient stops at the first step that must be halved."""
    code = compiled()
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
    grid, q = mode_grid(record), float(record.q or 0.0)
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
    whole, rest = record_model(record, family, substeps)
    free = data[0].size - data[0, 0].size - theta.shape[1]
    found = _iterate(whole, rest, data, nuisance[:, 0], theta, watch=watch, patient=patient, least=2, freedom=free)
    found.steps = [old + new for old, new in zip(steps, found.steps, strict=True)]
    for k, words in enumerate(found.status):
        if not words.startswith("converged") and apart is not None:
            found.status[k] = f"{words}; cut into {model.count} segments the record leaves a noise of {apart[k]:.3g}"
    return found, model.count


def linearise(
    records: list[Record],
    family: LinearFamily,
    nuisance: Array,
    theta: Array,
    substeps: int,
    history: list[tuple[tuple[Step, ...], str, int]],
    labels: Sequence[str],
    view: View,
) -> list[Trajectory]:
    """Return what records say at a point: nuisance and theta, one row a record; `history` is how it was reached."""
    if not one_mask(records):
        each = zip(records, nuisance, theta, history, labels, strict=True)
        return [linearise([r], family, u[None], t[None], substeps, [h], [name], view)[0] for r, u, t, h, name in each]
    model, constants = record_model(records[0], family, substeps, view)
    seen = observed(records[0], view)
    constants = constants._replace(root=seen.root)
    data = observed_values(records, view, seen)
    with double_precision():
        last = compiled().sensitivity(model, nuisance, theta, data, constants)
        residual = data - np.asarray(compiled().predict(model, nuisance, theta, constants))
        last = type(last)(*(np.asarray(part) for part in last))
    if seen.seen is not None:
        residual = np.where(seen.seen, residual, 0.0)
    return [
        as_trajectory(
            family, type(last)(*(part[k] for part in last)), (nuisance[k], theta[k]), residual[k], seen.rows, substeps,
            history[k], labels[k], view,
        )
        for k in range(len(records))
    ]  # fmt: skip


def _numbers(records: Sequence[Record]) -> list[str]:
    return ["record"] if len(records) == 1 else [f"record {k + 1}" for k in range(len(records))]
