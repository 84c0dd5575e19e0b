"""Batch: records of one kind, their models, and the fits, linearisations and predictions that are made of them.

Records of one shape, mesh, frame interval, q and boundary have one model and are fitted together. A Batch builds each
model (family, steps, mesh, order, boundary) once and keeps it. A Trajectory is what a record says at a point; it refers
to its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics, Grid, step_table, symbols
from doublewell.errors import InputError
from doublewell.evidence import Beside, Block, Evidence, Key, compact, joint_given_law
from doublewell.hints import Array
from doublewell.law import Bernstein, Family
from doublewell.likelihood import model as models
from doublewell.likelihood.iterate import Convergence, Iteration, Rule, Status, Step, Watch, compiled, iterate
from doublewell.likelihood.model import Constants, Observed, RecordModel, check_record, first_substeps, growth, observed
from doublewell.likelihood.segments import UNSTABLE, fit_by_segments
from doublewell.observation.optics import PLAIN, View, check_view, joint_start, mode_grid
from doublewell.record import Boundary, Record
from doublewell.runtime import double_precision, leave_room

_UNFINISHED = 0.05  # relative residual of the solves behind R above which its errors are not to be used
_FOLLOW = Rule(most=8, gain=1e-5)  # the law feels the fields to second order only


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a record says of a law at a point. ``evidence`` is all that estimates need.

    ``theta`` and ``nuisance`` are where the record was linearised: what the view estimates jointly with the law and the
    coefficients (in the evidence's family); the initial field, on a window followed by its border. ``response`` is how
    the best nuisance moves with each entry of theta. ``residual`` is the observed minus the predicted fields, zero
    where nothing was observed, ``noise`` its standard deviation s with s^2 = |r|^2 / (n - n_u0 - p) after whitening.
    ``segments`` counts the pieces into which the record was cut, 1 for an easy record. ``solve`` is the worst
    relative residual of the solves behind the evidence. ``index`` is the record's place in its ``batch``.
    """

    batch: Batch
    index: int
    evidence: Evidence
    theta: Array
    nuisance: Array
    response: Array
    residual: Array
    noise: float
    substeps: int
    steps: tuple[Step, ...]
    status: Status
    segments: int
    solve: float

    @cached_property
    def beside(self) -> Beside:
        """What the record says of the joint parameters once the law is given."""
        return joint_given_law(self.evidence)

    @property
    def record(self) -> Record:
        """The record that was fitted."""
        return self.batch.records[self.index]

    @property
    def view(self) -> View:
        """How the record is observed."""
        return self.batch.view

    @property
    def family(self) -> Family:
        """The family of the evidence."""
        return self.evidence.family

    @property
    def converged(self) -> bool:
        """Whether the iteration ended where it should, with errors that can be used."""
        return self.status.converged

    @property
    def coefficients(self) -> Array:
        """The law at which the record was linearised, in the evidence's family."""
        return self.theta[len(self.view.free) :]

    @property
    def initial(self) -> Array:
        """The fitted initial field."""
        mesh = self.residual.shape[1:]
        return self.nuisance.ravel()[: prod(mesh)].reshape(mesh)


@dataclass(eq=False)
class Batch:
    """Records of one shape, mesh, frame interval, q and boundary, observed in one way.

    Records that miss different values have models of their own weights and are read one by one.
    """

    records: Sequence[Record]
    dynamics: Dynamics = ALLEN_CAHN
    view: View = PLAIN
    labels: Sequence[str] = ()
    _models: dict[Any, tuple[RecordModel, Constants]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.records = list(self.records)
        first = _check_alike(self.records, self.dynamics)
        check_view(first, self.view)
        count = len(self.records)
        self.labels = self.labels or (["record"] if count == 1 else [f"record {k + 1}" for k in range(count)])

    @cached_property
    def parts(self) -> list[Batch]:
        """The batches that can be computed together: this one, or one for each record where their masks differ."""
        if _one_mask(self.records):
            return [self]
        pairs = zip(self.records, self.labels, strict=True)
        return [Batch([record], self.dynamics, self.view, [label], self._models) for record, label in pairs]

    @cached_property
    def observed(self) -> Observed:
        """The values of the first record, and what each value counts in all of them."""
        return observed(self.records[0], self.view)

    @cached_property
    def data(self) -> Array:
        """The values of all records, filled where nothing was observed."""
        later = [observed(record, self.view).values for record in self.records[1:]]
        return np.stack([self.observed.values, *later])

    def model(
        self, family: Family, substeps: int, *, refine: int | None = None, order: int = 8,
        boundary: Boundary | None = None,
    ) -> tuple[RecordModel, Constants]:  # fmt: skip
        """Return a model of the records and its constants, with what each value counts; built once.

        `refine`, `order` and `boundary` make models of their own, for checks.
        """
        key = family, substeps, refine, order, boundary
        if key not in self._models:
            record = self.records[0] if boundary is None else self.records[0].replace(boundary=boundary)
            self._models[key] = models.record_model(
                record, family, substeps, self.view, dynamics=self.dynamics, refine=refine, order=order
            )
        model, constants = self._models[key]
        return model, constants._replace(root=self.observed.root)

    def model_at(self, family: Family, substeps: int, factor: float) -> tuple[RecordModel, Constants]:
        """Return a model with q times a factor near 1: other steps of the same model."""
        model, constants = self.model(family, substeps)
        taus, table = factor * constants.taus, constants.table
        if model.boundary != "open" and table.nodes == 1:
            grid, n, tau = mode_grid(self.records[0]), model.refine, float(taus[0]) / substeps
            fine = Grid([n * cells for cells in grid.cells], [h / n for h in grid.dx], grid.boundary)
            table = step_table(symbols(self.dynamics, fine), tau, tau)
        return model, constants._replace(taus=taus, table=table)

    def fit(
        self, starts: Array, *, family: Family | None = None, fitted: Family | None = None,
        substeps: int | None = None, watch: Watch | None = None,
    ) -> list[Trajectory]:  # fmt: skip
        """Fit the records from the coefficients starts[record, k] and linearise there.

        `starts` set the degree that is fitted, in the family `fitted` (symmetric wells by default); `family` (that
        degree by default) is the degree of the evidence, reached by one more linearisation. Steps are taken together
        until each record has stopped: at a step smaller than 0.05 standard errors. A step that raises the cost is
        halved; where that happens to a record that amplifies its initial field, the record is cut into segments that
        are linked step by step. `watch` is called with every step (of a batch, the largest).
        """
        leave_room()
        starts = np.asarray(starts, dtype=np.float64)
        fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
        family = fitted if family is None else family
        if substeps is None:
            pairs = zip(self.records, starts, strict=True)
            substeps = max(first_substeps(record, start, self.view, self.dynamics) for record, start in pairs)
        if len(self.parts) > 1:
            options: dict[str, Any] = {"family": family, "fitted": fitted, "substeps": substeps, "watch": watch}
            return [part.fit(starts[k : k + 1], **options)[0] for k, part in enumerate(self.parts)]
        model, constants = self.model(fitted, substeps)
        theta = np.hstack([np.tile(joint_start(self.view, self.dynamics), (len(starts), 1)), starts])
        unstable = np.array([self._amplifies(start) for start in starts])
        last = iterate(
            model, constants, self.data, np.stack([model.border_of(values) for values in self.data]), theta,
            freedom=self.observed.rows - theta.shape[1], patient=list(~unstable), watch=watch,
        )  # fmt: skip
        hard = [int(k) for k in np.flatnonzero(unstable) if not last.status[k].converged]
        if hard:
            most = max(growth(self.records[0], start, self.dynamics) for start in starts[hard])
            whole = (model, constants)
            last.put(hard, fit_by_segments(self.records[0], fitted, whole, self.data[hard], starts[hard], most, watch))
        n = len(self.view.free)
        last.theta = np.hstack([last.theta[:, :n], last.theta[:, n:] @ fitted.elevation(family).T])
        return self._linearise(family, substeps, last)

    def _amplifies(self, start: Array) -> bool:
        """Return whether a record may need segments: it amplifies its initial field, and segments can fit it."""
        record = self.records[0]
        known = self.view.plain and record.boundary != "open" and record.uniform and record.mask is None
        return known and growth(record, start, self.dynamics) > UNSTABLE

    def follow(self, theta: Array, *, family: Family, substeps: int) -> list[Trajectory]:
        """Fit the fields alone to one law and linearise there, all at the same point.

        `theta` is what the view estimates, then the coefficients of the family. Parts of one record are read this way:
        they have one law, so a fit of the law to each would be thrown away, and a part with little in it would lead
        such a fit astray. The fields alone are close to a linear problem.
        """
        if len(self.parts) > 1:
            return [part.follow(theta, family=family, substeps=substeps)[0] for part in self.parts]
        model, constants = self.model(family, substeps)
        laws = np.tile(np.asarray(theta, dtype=np.float64), (len(self.records), 1))
        nuisance = np.stack([model.border_of(values) for values in self.data])
        last = iterate(
            model, constants, self.data, nuisance, laws, freedom=self.observed.rows - laws.shape[1], rule=_FOLLOW,
            stage="fields of a given law",
        )  # fmt: skip
        last.theta = laws
        return self._linearise(family, substeps, last)

    def relinearise(self, before: Sequence[Trajectory], coefficients: Array) -> list[Trajectory]:
        """Linearise the records again at other coefficients of the same family, all else moved along."""
        if len(self.parts) > 1:
            each = zip(before, coefficients, strict=True)
            return [fit.batch.relinearise([fit], row[None])[0] for fit, row in each]
        theta = np.stack([np.append(fit.beside.mean(row), row) for row, fit in zip(coefficients, before, strict=True)])
        moves = [row - fit.theta for row, fit in zip(theta, before, strict=True)]
        nuisance = np.stack([moved(fit, move) for fit, move in zip(before, moves, strict=True)])
        steps, status = [list(fit.steps) for fit in before], [fit.status for fit in before]
        at = Iteration(nuisance, theta, steps, status, [fit.segments for fit in before])
        fresh = self._linearise(before[0].family, before[0].substeps, at, [fit.index for fit in before])
        labels = [fit.evidence.blocks[0].key.record for fit in before]
        return [replace(fit, evidence=_labelled(fit.evidence, label)) for fit, label in zip(fresh, labels, strict=True)]

    def predict(self, fits: Sequence[Trajectory], family: Family, substeps: int, **variant: Any) -> Array:
        """Return what a model of the records predicts at their fits."""
        model, constants = self.model(family, substeps, **variant)
        with double_precision():
            return np.array(compiled().predict(model, *points(fits), constants))

    def _linearise(
        self, family: Family, substeps: int, at: Iteration, indices: Sequence[int] | None = None
    ) -> list[Trajectory]:
        """Return what records say at a point: nuisance and theta, one row for each record."""
        indices = range(len(self.records)) if indices is None else indices
        model, constants = self.model(family, substeps)
        data, code = self.data[list(indices)], compiled()
        with double_precision():
            last = code.sensitivity(model, at.nuisance, at.theta, data, constants)
            residual = data - np.asarray(code.predict(model, at.nuisance, at.theta, constants))
            last = type(last)(*(np.asarray(part) for part in last))
        if self.observed.seen is not None:
            residual = np.where(self.observed.seen, residual, 0.0)
        return [
            self._trajectory(family, substeps, index, at, k, type(last)(*(part[k] for part in last)), residual[k])
            for k, index in enumerate(indices)
        ]

    def _trajectory(
        self, family: Family, substeps: int, index: int, at: Iteration, k: int, last: Any, residual: Array
    ) -> Trajectory:
        """Return what a linearisation says: evidence in units of the noise that is left."""
        theta, rows, status = at.theta[k], self.observed.rows, at.status[k]
        remaining = float(last.cost) - float(np.sum((last.triangle @ last.shift) ** 2))
        noise = self.view.whitening.level or float(np.sqrt(remaining / (rows - theta.size)))
        solve = float(np.max(last.residuals))
        if status.converged and not solve <= _UNFINISHED:
            status = Status(Convergence.UNFINISHED, solve, status.steps)
        return Trajectory(
            batch=self,
            index=index,
            evidence=_evidence(
                family,
                self.view.free,
                last.triangle / noise,
                theta + last.shift,
                remaining / noise**2,
                rows,
                self.labels[index],
            ),
            theta=theta,
            nuisance=at.nuisance[k],
            response=last.response,
            residual=residual,
            noise=noise,
            substeps=substeps,
            steps=tuple(at.steps[k]),
            status=status,
            segments=at.segments[k],
            solve=solve,
        )


def points(fits: Sequence[Trajectory]) -> tuple[Array, Array]:
    """Return where fits were linearised: nuisance and theta, one row for each."""
    return np.stack([fit.nuisance for fit in fits]), np.stack([fit.theta for fit in fits])


def moved(fit: Trajectory, move: Array) -> Array:
    """Return the best nuisance where theta has moved from the point of linearisation."""
    return np.asarray(fit.nuisance + np.tensordot(move, fit.response, axes=1))


def _evidence(
    family: Family, joint: tuple[str, ...], triangle: Array, best: Array, cost: float, rows: int, label: str
) -> Evidence:
    """Write |R (theta - best)|^2 + cost as one triangle, in units of the noise, joint parameters first."""
    size = best.size
    stacked = np.zeros((size + 1, size + 1))
    stacked[:size, :size] = triangle
    stacked[:size, -1] = triangle @ best
    stacked[size, -1] = np.sqrt(cost)
    block = Block(Key(label, "trajectory", "all"), compact(stacked), rows)
    return Evidence(family, (block,), True, (*joint, "force", "target"))


def _labelled(evidence: Evidence, label: str) -> Evidence:
    return replace(evidence, blocks=tuple(replace(b, key=b.key._replace(record=label)) for b in evidence.blocks))


def _one_mask(records: Sequence[Record]) -> bool:
    """Return whether records miss the same values, so that they can be read together."""
    first = records[0].mask
    return all(
        record.mask is first
        or (record.mask is not None and first is not None and np.array_equal(record.observed(), records[0].observed()))
        for record in records[1:]
    )


def _check_alike(records: Sequence[Record], dynamics: Dynamics) -> Record:
    """Return the first of records of one shape, mesh, frame interval, q and boundary; others are refused."""
    if not records:
        raise InputError("no records: expected at least one")
    first = records[0]
    check_record(first, dynamics)
    for record in records[1:]:
        same = (record.shape, record.dx, record.q, record.boundary) == (first.shape, first.dx, first.q, first.boundary)
        if not same or not np.allclose(record.times - record.times[0], first.times - first.times[0]):
            raise InputError(f"a batch needs records of one shape, mesh, q and interval: got {first!r} and {record!r}")
    return first
