"""Batch: records of one kind, their models, and the fits, linearisations and predictions that are made of them.

Records of one shape, mesh, frame interval, q and boundary have one model and are fitted together. A Batch builds each
model (family, steps, mesh, order, boundary) once and keeps it. A Trajectory is a record linearised at a point; it
refers to its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from doublewell.dynamics import ALLEN_CAHN, Dynamics
from doublewell.dynamics.open_boundary import BORDER
from doublewell.dynamics.terms import Term
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, joint_given_law, system
from doublewell.hints import Array
from doublewell.law import Bernstein, Family
from doublewell.likelihood import model as models
from doublewell.likelihood.iterate import (
    RULE,
    Convergence,
    Iteration,
    Rule,
    Status,
    Step,
    Watch,
    iterate,
    next_size,
)
from doublewell.likelihood.linked import UNSTABLE, fit_by_segments
from doublewell.likelihood.model import Constants, RecordModel, first_substeps, growth
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import (
    PLAIN,
    Observed,
    View,
    check_view,
    joint_parameters,
    joint_start,
    observed,
    rough_noise,
)
from doublewell.record import Boundary, Record
from doublewell.runtime import leave_room, on_gpu
from doublewell.stop import current

_UNFINISHED = 0.05  # relative residual of the solves behind R above which its errors are not to be used
_CHANCE = 1e-4  # at which scores of frames may scatter more than those of noise
LOW = 1  # degree at which a fit of contrast begins
STIFF = 10.0  # times as much as all data: how firmly the law is held there
_ROUGHLY = Rule(most=12, small=3.0)
_CORRECTIONS = 5  # rounds of a fit with shorter steps; each is nearer by as much as steps change a linearisation
_FOLLOW = Rule(most=8, gain=1e-5)  # the law feels the fields to second order only


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A record linearised at a point. ``evidence`` is all that estimates need.

    ``theta`` and ``nuisance`` are where the record was linearised: what the view estimates jointly with the law and the
    coefficients (of ``family``); the initial field, on a window followed by its border. ``response`` is how the best
    nuisance moves with each entry of theta. ``residual`` is the observed minus the predicted fields, zero where nothing
    was observed, ``noise`` its standard deviation s with s^2 = |r|^2 / (n - n_u0 - p) after whitening. ``segments``
    counts the pieces into which the record was cut, 1 for an easy record. ``solve`` is the worst relative residual of
    the solves behind the evidence. ``excess`` is how much more the scores for theta scatter than those of noise would.
    ``index`` is the number of the record in its ``batch``, ``levels`` theta and camera noise of a fluctuating one.
    ``change`` is what ``substeps`` from frame to frame change of the prediction with ``inner`` ones, which is
    linearised.
    """

    batch: Batch
    index: int
    record: Record
    family: Family
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
    excess: float
    inner: int
    levels: Any = None
    change: Array | None = None

    @property
    def coefficients(self) -> Array:
        """The law at which the record was linearised."""
        return self.theta[len(self.batch.view.free) :]

    def size(self, shift: Array) -> float:
        """Return the size of a shift of the coefficients in standard errors: |R shift|, R in units of the noise."""
        return float(np.linalg.norm(system(self.evidence)[0] @ shift))

    def theta_at(self, coefficients: Array) -> Array:
        """Return a law of the family after the most likely values of what the view estimates with it."""
        given = joint_given_law(self.evidence)
        values = dict(zip(given.names, given.mean(coefficients).tolist(), strict=True))
        return np.append([values[name] for name in self.batch.view.free], coefficients)

    def moved(self, theta: Array) -> Array:
        """Return the best nuisance at another theta, to first order."""
        return np.asarray(self.nuisance + np.tensordot(theta - self.theta, self.response, axes=1))


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
    _last: _Last | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.records = records = list(self.records)
        if not records:
            raise InputError("no records: expected at least one")
        first = records[0]
        models.check_record(first, self.dynamics)
        for record in records[1:]:
            same = all(getattr(record, name) == getattr(first, name) for name in ("shape", "dx", "q", "boundary"))
            if not same or not np.allclose(record.times - record.times[0], first.times - first.times[0]):
                raise InputError(
                    f"a batch needs records of one shape, mesh, q and interval: got {first!r} and {record!r}"
                )
        check_view(first, self.view)
        numbered = [f"record {k + 1}" for k in range(len(records))]
        self.labels = self.labels or (numbered if len(records) > 1 else ["record"])

    @property
    def border(self) -> int:
        """Width of the border, of windows."""
        return self.dynamics.border or BORDER

    @cached_property
    def parts(self) -> list[Batch]:
        """One batch for each record where their masks differ; none where all are computed together."""
        first = self.records[0]
        for record in self.records[1:]:
            both = record.mask is not None and first.mask is not None
            if record.mask is not first.mask and not (both and np.array_equal(record.observed(), first.observed())):
                pairs, kind = zip(self.records, self.labels, strict=True), type(self)
                return [kind([record], self.dynamics, self.view, [label], self._models) for record, label in pairs]
        return []

    @cached_property
    def observed(self) -> Observed:
        """The values of all records, filled where nothing was observed, and what each value counts in all of them."""
        first, *others = [observed(record, self.view, self.border) for record in self.records]
        return replace(first, values=np.stack([first.values, *[other.values for other in others]]))

    def model(
        self, family: Family, substeps: int, *, refine: int | None = None,
        boundary: Boundary | None = None, terms: tuple[Term, ...] = (), view: View | None = None,
    ) -> tuple[RecordModel, Constants]:  # fmt: skip
        """Return a model of the records and its constants, with what each value counts; built once.

        `refine`, `boundary`, `terms` and `view` make models of their own, for checks.
        """
        key = family, substeps, refine, boundary, terms, None if view is None else view.free
        if key not in self._models:
            record = self.records[0] if boundary is None else self.records[0].replace(boundary=boundary)
            self._models[key] = models.record_model(
                record, family, substeps, view or self.view, dynamics=self.dynamics, refine=refine, terms=terms
            )
        model, constants = self._models[key]
        return model, constants._replace(root=self.observed.root)

    def predict(
        self, fits: Sequence[Trajectory], family: Any = None, substeps: int | None = None, *,
        theta: Array | None = None, **variant: Any,
    ) -> Array:  # fmt: skip
        """Return what a model of the records, by default the one that was fitted, predicts from their nuisance.

        What shorter steps change at the fits is added, where `substeps` are not given.
        """
        model, constants = self.model(family or fits[0].family, substeps or fits[0].inner, **variant)
        (nuisance, fitted), constants = points(fits), self.constants_at(fits, constants)
        values = np.array(compiled().predict(model, nuisance, fitted if theta is None else theta, constants))
        change = changes_of(fits)
        return values if substeps or change is None else values + change

    def constants_at(self, fits: Sequence[Trajectory], constants: Constants) -> Constants:  # noqa: ARG002
        """Return the constants of a model at fits; of fluctuating records they depend on these."""
        return constants

    def _prior(self, indices: Sequence[int], family: Family, stiff: float | None = None) -> Array | tuple[()]:
        """Return what is known of theta for some records, rows [W, t] of W theta = t; nothing where nothing is.

        With `stiff` there are rows that hold the law at a low degree, this much for a unit of the coefficients.
        """
        known = joint_parameters(self.view)
        sizes = np.array([parameter.prior for parameter in known]) * np.sqrt(self.view.parts)
        if not np.isfinite(sizes).any():
            return ()
        n, values, rows = len(known), self.observed.values, []
        for k in indices:
            weights = rough_noise(values[k], self.observed.mask) / sizes
            centres = weights * [parameter.start for parameter in known]
            rows.append(np.hstack([np.diag(weights), np.zeros((n, family.size)), centres[:, None]]))
        if stiff is None:
            return np.stack(rows)
        lift = family.at(min(LOW, family.degree)).elevation(family)
        outside = np.linalg.qr(lift, mode="complete")[0][:, lift.shape[1] :].T
        return np.stack([np.vstack([row, np.pad(stiff * outside, ((0, 0), (n, 1)))]) for row in rows])

    def fit(
        self, starts: Array, *, joint: Array | None = None, family: Family | None = None,
        fitted: Family | None = None, substeps: int | None = None, before: Sequence[Trajectory] | None = None,
        watch: Watch | None = None, most: int | None = None,
    ) -> list[Trajectory]:  # fmt: skip
        """Fit the records from the coefficients starts[record, k] and linearise there.

        `starts` set the degree that is fitted, in the family `fitted` (symmetric wells by default); `family` (that
        degree by default) is the degree of the evidence, reached by one more linearisation. `joint` is where what the
        view estimates starts, joint[record, k], by default that of the view. Steps are taken together
        until each record has stopped: at a step smaller than 0.05 standard errors. A step that raises the cost is
        halved; where that happens to a record that amplifies its initial field, the record is cut into segments that
        are linked step by step. Where there are fits `before`, with longer steps or on a coarser mesh, they are the
        start, and the linearisation of longer steps may serve (``_corrected``). `watch` is called with every step (of a
        batch, the largest). A fit of `most` steps is a rough one, of the whole record without segments.
        """
        leave_room()
        starts, record = np.asarray(starts, dtype=np.float64), self.records[0]
        fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
        family = fitted if family is None else family
        if substeps is None:
            substeps = max([first_substeps(record, fitted.steepness(start), self.dynamics) for start in starts])
        if self.parts:
            options: dict[str, Any] = {"family": family, "fitted": fitted, "substeps": substeps}
            options |= {"watch": watch, "most": most}
            nothing = [None] * len(starts)
            joints = nothing if joint is None else joint[:, None]
            fits = nothing if before is None else [[fit] for fit in before]
            each = zip(self.parts, starts[:, None], joints, fits, strict=True)
            return [part.fit(start, joint=own, before=last, **options)[0] for part, start, own, last in each]
        inner = before[0].inner if before and self._serves(before, family, substeps) else substeps
        model, constants = self.model(family, inner)  # of which the fit takes a part: one program for both
        every, data = range(len(starts)), self.observed.values
        if joint is None:
            joint = np.tile(joint_start(self.view), (len(starts), 1))
        n, lift = joint.shape[1], fitted.elevation(family)
        theta, lines = np.hstack([joint, starts @ lift.T]), lines_of(n, lift)
        rates = np.array([growth(record, fitted.steepness(start), self.dynamics) for start in starts])
        unstable = self._simple & (rates > UNSTABLE) & (most is None)
        nuisance, free = model.nuisance_of(data, constants), constants._replace(prior=self._prior(every, family, 0.0))
        begin, tried = (nuisance, theta), None
        if before:
            begin = points(before)
            down = np.linalg.pinv(fitted.elevation(before[0].family))
            begin = begin[0], np.hstack([begin[1][:, :n], begin[1][:, n:] @ down.T @ lift.T])
        elif self.view.contrast and fitted.degree > LOW:  # a flexible law could bend itself to a wrong contrast
            stiff = STIFF * float(np.sqrt(data[0].size) / np.max(np.abs(starts)))
            low = fitted.at(LOW).elevation(fitted)
            begin = nuisance, np.hstack([joint, starts @ np.linalg.pinv(low).T @ low.T @ lift.T])
            tried = iterate(
                model, constants._replace(prior=self._prior(every, family, stiff)), data, *begin, lines=lines,
                freedom=self.observed.rows - len(lines), rule=_ROUGHLY, stage="law of a low degree", watch=watch,
            )  # fmt: skip
            begin = tried.nuisance, tried.theta
        how: dict[str, Any] = {"freedom": self.observed.rows - len(lines), "lines": lines, "patient": ~unstable}
        how |= {"watch": watch, "rule": RULE if most is None else Rule(most)}
        last = self._corrected(family, substeps, model, free, begin, how) if inner < substeps else None
        if last is None or not (current().at is not None or all(status.converged for status in last.status)):
            model, constants = self.model(family, substeps)
            free = constants._replace(prior=free.prior)
            last = iterate(model, free, data, *begin, **how)
        earlier = [list(fit.steps) for fit in before] if before else None if tried is None else tried.steps
        if earlier is not None:
            last.steps = [first + then for first, then in zip(earlier, last.steps, strict=True)]
        hard = [int(k) for k in np.flatnonzero(unstable) if not last.status[k].converged]
        if hard and current().at is None:
            fastest, whole = float(np.max(rates[hard])), (model, free._replace(prior=self._prior(hard, family, 0.0)))
            last.put(hard, fit_by_segments(record, whole, data[hard], theta[hard], lines, fastest, watch))
        return self._linearise(family, substeps, last)

    @property
    def _simple(self) -> bool:
        """Whether segments can fit records that amplify their initial field."""
        record = self.records[0]
        simple = self.view.plain and record.boundary != "open" and record.uniform and record.mask is None
        return simple and self.view.optics.contrast != "drifting" and not self.dynamics.parts.acts

    def _serves(self, before: Sequence[Trajectory], family: Family, substeps: int) -> bool:
        """Return whether the linearisation of fits serves for shorter steps too."""
        same = before[0].family == family and before[0].batch.view.refine == self.view.refine
        return same and before[0].substeps < substeps and all(f.status.converged and f.segments == 1 for f in before)

    def _corrected(
        self, family: Family, substeps: int, model: RecordModel, constants: Constants, begin: tuple[Array, Array],
        how: dict[str, Any],
    ) -> Iteration:  # fmt: skip
        """Fit with the linearisation of longer steps: what shorter ones change of the prediction is taken off the data.

        That changes in turn where the fit moves, by as little as the steps change the linearisation.
        """
        (shorter, fine), data, code = self.model(family, substeps), self.observed.values, compiled()
        steps: list[list[Step]] = [[] for _ in data]
        firsts, point = steps, None  # the first steps of all rounds
        for _ in range(_CORRECTIONS):
            pair = code.predict(shorter, *begin, fine), code.predict(model, *begin, constants)
            with np.errstate(invalid="ignore"):  # of fields that run away
                change = np.asarray(pair[0]) - np.asarray(pair[1])
            last = iterate(model, constants, data - change, *begin, point=point, **how)
            steps = [first + then for first, then in zip(steps, last.steps, strict=True)]
            begin, point = (last.nuisance, last.theta), last.point
            firsts = [[*earlier, *own[:1]] for earlier, own in zip(firsts, last.steps, strict=True)]
            if current().at is not None or all(min(own[-1].size, next_size(own)) <= RULE.small for own in firsts):
                break
        else:
            last.status = [Status(Convergence.MOST_STEPS, own[-1].size, len(own)) for own in steps]
        last.steps, last.change, last.inner = steps, change, model.substeps
        return last

    def follow(self, theta: Array, *, family: Family, substeps: int) -> list[Trajectory]:
        """Fit the fields alone to one law and linearise there, all at the same point.

        `theta` is what the view estimates, then the coefficients of the family. Parts of one record are read this way:
        they have one law, so a fit of the law to each would be thrown away, and a part with little in it would lead
        such a fit astray. The fields alone are close to a linear problem.
        """
        if self.parts:
            return [part.follow(theta, family=family, substeps=substeps)[0] for part in self.parts]
        model, constants = self.model(family, substeps)
        constants = constants._replace(prior=self._prior(range(len(self.records)), family))
        laws, data = np.tile(np.asarray(theta, dtype=np.float64), (len(self.records), 1)), self.observed.values
        last = iterate(
            model, constants, data, model.nuisance_of(data, constants), laws, rule=_FOLLOW,
            freedom=self.observed.rows - laws.shape[1], stage="fields of a given law",
        )  # fmt: skip
        last.theta = laws
        return self._linearise(family, substeps, last)

    def relinearise(self, before: Sequence[Trajectory], coefficients: Array) -> list[Trajectory]:
        """Linearise the records again at other coefficients of the same family, all else moved along."""
        if self.parts:
            each = zip(before, coefficients, strict=True)
            return [fit.batch.relinearise([fit], row[None])[0] for fit, row in each]
        count, theta, nuisance = len(before), [], []
        if on_gpu():  # where programs are for one width: fewer fits are filled up with the last of them
            before = [*before, *[before[-1]] * (len(self.records) - count)]
            coefficients = coefficients[np.minimum(np.arange(len(before)), count - 1)]
        for fit, row in zip(before, coefficients, strict=True):
            theta.append(fit.theta_at(row))
            nuisance.append(fit.moved(theta[-1]))
        at = Iteration(
            np.stack(nuisance), np.stack(theta), [list(fit.steps) for fit in before], [fit.status for fit in before],
            [fit.segments for fit in before], change=changes_of(before), inner=before[0].inner,
        )  # fmt: skip
        return self._linearise(before[0].family, before[0].substeps, at, before)[:count]

    def _linearise(
        self, family: Family, substeps: int, at: Iteration, before: Sequence[Trajectory] = ()
    ) -> list[Trajectory]:
        """Return what records say at a point, nuisance and theta: evidence in units of the noise that is left."""
        indices = [fit.index for fit in before] or list(range(len(self.records)))
        labels = [fit.evidence.blocks[0].key.record for fit in before] or self.labels
        model, constants = self.model(family, at.inner or substeps)
        known, code, size = self.observed, compiled(), at.theta.shape[1]
        data = known.values[indices] if at.change is None else known.values[indices] - at.change
        known_before = constants._replace(prior=self._prior(indices, family))
        last = code.sensitivity(model, at.nuisance, at.theta, data, known_before)
        residual = data - np.asarray(last.prediction)
        triangles, shifts, responses, costs, _, solves, scores = map(np.asarray, last[:7])
        if known.mask is not None:
            residual = np.where(known.mask, residual, 0.0)
        fits = []
        for k, index in enumerate(indices):
            remaining = float(costs[k]) - float(np.sum((triangles[k] @ shifts[k]) ** 2))
            noise = self.view.whitening.level or float(np.sqrt(remaining / (known.rows - size)))
            # |R (theta - best)|^2 + cost as one triangle, joint parameters first
            rows = np.zeros((size + 1, size + 1))
            rows[:size, :size] = triangles[k] / noise
            rows[:size, -1] = rows[:size, :size] @ (at.theta[k] + shifts[k])
            rows[size, -1] = np.sqrt(remaining) / noise
            block = Block(Key(labels[k], "trajectory", "all"), compact(rows), known.rows)
            evidence = Evidence(family, (block,), True, (*self.view.free, "force", "target"))
            about = {"evidence": evidence, "response": responses[k], "residual": residual[k], "noise": noise}
            fits.append(self._trajectory(k, index, at, family, substeps, solves[k], scores[k], **about))
        prediction = np.asarray(last.prediction)
        prediction = prediction if at.change is None else prediction + at.change
        self._last = _Last([fit.response for fit in fits], last.basis, prediction)
        return fits

    def basis(self, fits: Sequence[Trajectory]) -> Any:
        """Return the basis of C at fits: that of the last linearisation is kept, another is computed again."""
        if self._last is not None and self._last.of(fits):
            return self._last.basis
        model, constants = self.model(fits[0].family, fits[0].inner)
        constants, responses = self.constants_at(fits, constants), np.stack([fit.response for fit in fits])
        return compiled().projected_basis(model, *points(fits), responses, constants)

    def predicted(self, fits: Sequence[Trajectory]) -> Array:
        """Return what fits predict, which is kept of the last linearisation."""
        return self._last.prediction if self._last is not None and self._last.of(fits) else self.predict(fits)

    def _trajectory(
        self, k: int, index: int, at: Iteration, family: Family, substeps: int, solves: Array, scores: Array,
        **about: Any,
    ) -> Trajectory:  # fmt: skip
        """Return one record of an iteration as a trajectory; it says so where solves behind its errors did not end."""
        solve, status = float(np.max(solves)), at.status[k]
        if status.converged and not solve <= _UNFINISHED:
            status = Status(Convergence.UNFINISHED, solve, status.steps)
        return Trajectory(
            batch=self, index=index, record=self.records[index], family=family, theta=at.theta[k],
            nuisance=at.nuisance[k], substeps=substeps, steps=tuple(at.steps[k]), status=status,
            segments=at.segments[k], solve=solve, excess=excess(scores / about["noise"]), inner=at.inner or substeps,
            change=None if at.change is None else at.change[k], **about,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Last:
    """What tests need of the last linearisation and fits do not keep, as it is as large as some movies."""

    responses: list[Array]
    basis: Any
    prediction: Array

    def of(self, fits: Sequence[Trajectory]) -> bool:
        """Return whether it is that of these fits."""
        pairs = zip(fits, self.responses, strict=False)
        return len(fits) == len(self.responses) and all(fit.response is own for fit, own in pairs)


def opened(fit: Trajectory, dynamics: Dynamics, names: tuple[str, ...]) -> Evidence:
    """Return what a record says at its fit with more of the equation estimated, which was zero there: these `names`."""
    batch = Batch([fit.record], dynamics, replace(fit.batch.view, equation=names))
    values = dict(zip(fit.batch.view.free, fit.theta.tolist(), strict=False))
    theta = np.array([[*[values.get(name, 0.0) for name in batch.view.free], *fit.coefficients]])
    at = Iteration(
        fit.nuisance[None], theta, [list(fit.steps)], [fit.status], [fit.segments], change=changes_of([fit]),
        inner=fit.inner,
    )  # fmt: skip
    return batch._linearise(fit.family, fit.substeps, at)[0].evidence


def excess(scores: Array) -> float:
    """Return how much more the scores of frames, in units of the noise, scatter than those of independent noise.

    1 where that may be accidental, at a level of 1e-4. Frames up to a quarter of the record apart may agree (weights of
    Bartlett, as Newey and West have it).
    """
    from scipy.special import chdtri

    frames, count = scores.shape
    reach = max(frames // 4, 1)
    total = np.vdot(scores, scores)
    for lag in range(1, reach):
        total += 2.0 * (1.0 - lag / reach) * np.vdot(scores[lag:], scores[:-lag])
    ratio, freedom = float(total) / count, 1.5 * count * frames / reach
    return ratio if ratio * freedom > chdtri(freedom, _CHANCE) else 1.0


def lines_of(joint: int, lift: Array) -> Array:
    """Return the lines along which theta moves in a fit: what is estimated jointly, and the laws of a lower degree."""
    return np.vstack([np.eye(joint, joint + len(lift)), np.pad(lift.T, ((0, 0), (joint, 0)))])


def changes_of(fits: Sequence[Trajectory]) -> Array | None:
    """Return what shorter steps change of the predictions of fits; None where they were not taken."""
    changes = [fit.change for fit in fits if fit.change is not None]
    return np.stack(changes) if changes else None


def points(fits: Sequence[Trajectory]) -> tuple[Array, Array]:
    """Return where fits were linearised: nuisance and theta, one row for each."""
    return np.stack([fit.nuisance for fit in fits]), np.stack([fit.theta for fit in fits])
