"""Fluctuating records: law, theta = kT / kappa and camera noise from a state-space likelihood.

The camera sees the fields of all frames, and from frame to frame they follow the equation up to thermal noise:

    v_t = u_t + s e_t,        u_(t+1) = Phi(u_t) + sqrt(theta) S^(1/2) w_t,        S = D (1 - exp(-2 r tau)) / (r V)

with r = D G' - L the rate of each place, tau = q dt, V the volume of a cell. Phi is the mean path: the force of a field
that fluctuates within an interval is G + G'' v / 2, v the mean variance there. Rates are those of the path that leads
from u_t on: at u_(t+1) they would know of the noise, and the force were wrong by as much as the noise shifts it.

Fields and law are fitted by Gauss-Newton at given theta and s. theta and s are where the residuals of links and frames
are as large as those of noise, which a solve of noise for each of them tells (Fisher scoring on the restricted
likelihood, the same random numbers in all rounds). The law that goes with the best fields is not the most likely one:
how much room the fields have depends on it too. That is the slope of log det(J_u' J_u) / 2, by solves of noise again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import nnls

from doublewell.dynamics import border_mask, numpy_transforms
from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.hints import Array
from doublewell.law import Bernstein, Family
from doublewell.likelihood import model as models
from doublewell.likelihood.batch import UNFINISHED, Batch, Trajectory, excess
from doublewell.likelihood.iterate import Convergence, Iteration, Status, Step, Watch, compiled
from doublewell.likelihood.linked import LinkedModel, Links, mean_variance, smooth_force, thermal_covariance
from doublewell.likelihood.model import Constants, RecordModel, first_substeps
from doublewell.observation.view import Observed, filled, joint_start, mode_grid, rough_noise
from doublewell.runtime import double_precision, leave_room

_NODES = 4  # of G', between which the thermal covariance is interpolated
_POINTS = 4001  # of phase values at which slopes are tabulated
_ROUNDS, _STEPS = 20, 2  # of theta and s, and of Gauss-Newton within each
_GROUPS = 64  # of modes with about the same rate
_PROBES = 4  # solves of noise for theta, s and the room of the fields, at the end
_SMALL = 0.05  # standard errors of a last step
_LARGEST = 1.0  # of a step of log theta and log s
_EXACT = 1e-2  # of thermal noise: frames with less noise are taken with this much, for the solver's sake
_UNSEEN = 1.0  # relative error of theta above which it is not followed further down
_NONE = 1e-12  # theta that moves no rate
_SOME = 20000  # values of the fields that a mean is taken over
_REACH = 3.0  # (q dt)^(1/order) that what happens outside reaches into a window within a frame interval


@dataclass(frozen=True)
class Levels:
    """theta and the camera's noise in observed values, with relative errors; ``exact`` frames have none to be seen.

    ``estimate`` is that of theta: it is ``theta``, at which the record is linearised, unless theta cannot be told from
    zero.
    """

    theta: float
    camera: float
    theta_error: float = np.inf
    camera_error: float = np.inf
    exact: bool = False
    estimate: float = 0.0


@dataclass(eq=False)
class FluctuatingBatch(Batch):
    """Records with thermal noise; the nuisance is the field of every frame."""

    @property
    def links(self) -> int:
        """Width of the border of a window within which nothing is linked; 0 where the border is known."""
        record = self.records[0]
        if record.boundary != "open":
            return 0
        reach = (float(record.q or 0.0) * float(np.max(np.diff(record.times)))) ** (1.0 / self.dynamics.order)
        return max(self.border, int(np.ceil(_REACH * reach / min(record.dx))))

    @cached_property
    def observed(self) -> Observed:
        """The values of all records; a value that is missing counts nothing."""
        first, own = self.records[0], self.view.whitening.root
        values, root, inside = [record.slab() for record in self.records], 1.0 if own is None else own, self._inside
        count = values[0].size
        if first.mask is not None:
            known = np.asarray(first.observed())
            root, count = np.where(known, root, 0.0), int(np.count_nonzero(known))
            values = [filled(each, known) for each in values]
        rows = count + (first.frames - 1) * int(np.count_nonzero(inside)) - values[0].size
        return Observed(np.stack(values), root, None if first.mask is None else first.observed(), rows)

    @property
    def _inside(self) -> Array:
        mesh = self.records[0].mesh
        return np.where(border_mask(mesh, self.links), 0.0, 1.0) if self.links else np.ones(mesh)

    @cached_property
    def data(self) -> Array:
        """The values, then the gaps, which are observed to be zero."""
        values = self.observed.values
        return np.concatenate([values, 0.0 * values[:, 1:]], axis=1)

    @cached_property
    def counted(self) -> Array:
        """1 where a value or a gap counts, else 0."""
        shape = self.observed.values.shape[1:]
        seen, inside = np.asarray(self.observed.root) > 0.0, self._inside > 0.0
        parts = np.broadcast_to(seen, shape), np.broadcast_to(inside, (shape[0] - 1, *shape[1:]))
        return np.concatenate(parts).astype(np.float64)

    def model(
        self, family: Family, substeps: int, *, refine: Any = None, boundary: Any = None, terms: Any = (),
        view: Any = None,
    ) -> tuple[RecordModel, Constants]:  # fmt: skip
        """Return the model and its constants, without the links of a point; the law is that of the record's mesh."""
        del refine, boundary
        key = "linked", family, substeps, terms, None if view is None else view.free
        if key not in self._models:
            record = self.records[0]
            record = record.replace(boundary="neumann") if record.boundary == "open" else record
            whole, constants = models.record_model(
                record, family, substeps, view or self.view, dynamics=self.dynamics, refine=1, terms=terms
            )
            self._models[key] = LinkedModel.of(whole), constants
        model, constants = self._models[key]
        return model, constants._replace(root=self.observed.root)

    def constants_at(self, fits: Sequence[Trajectory], constants: Constants) -> Constants:
        """Return the constants with the links of fits."""
        point = np.stack([fit.nuisance for fit in fits]), np.stack([fit.theta for fit in fits])
        levels = [fit.levels for fit in fits if fit.levels is not None]
        return self._linked(fits[0].family, fits[0].substeps, *point, levels, constants)

    def _linked(
        self, family: Family, substeps: int, fields: Array, theta: Array, levels: Sequence[Levels],
        constants: Constants,
    ) -> Constants:  # fmt: skip
        """Return constants with the links at fields and a law: rates along the paths that lead from each field on."""
        record, count = self.records[0], len(levels)
        model, plain = self.model(family, substeps)
        paces = theta[:, self.view.free.index("q")] if "q" in self.view.free else np.ones(count)
        cameras, thetas = (np.array([getattr(each, name) for each in levels]) for name in ("camera", "theta"))
        volume, inside = np.full(count, np.prod(record.dx)), np.broadcast_to(self._inside, (count, *record.mesh))
        shape = count, _NODES, record.frames - 1, *record.mesh
        links = Links(
            cameras, np.sqrt(thetas), np.zeros(count), paces, volume, inside, np.zeros(shape[:2]), np.zeros(shape),
            np.zeros((count, *shape[2:])),
        )  # fmt: skip
        with double_precision():
            gaps = np.asarray(compiled().predict(model, fields, theta, plain._replace(links=links)))[:, record.frames :]
            gain, offset = self._contrast(theta)
            here, there = (fields - offset)[:, :-1] / gain[:, :-1], (fields[:, 1:] - gaps - offset[:, 1:]) / gain[:, 1:]
            own = thetas / np.mean(gain.reshape(count, -1), axis=1) ** 2
            each = zip(here, there, theta[:, len(self.view.free) :], paces, own, strict=True)
            rows = [self._rates(smooth_force(family), *row, constants) for row in each]
        usual, rates, shares, variance = (np.stack(part) for part in zip(*rows, strict=True))
        return constants._replace(links=links._replace(usual=usual, rates=rates, shares=shares, variance=variance))

    def _contrast(self, theta: Array) -> tuple[Array, Array]:
        """Return gain and offset of each frame of each record, shaped for broadcasting; 1 and 0 where they are known."""
        names, record = self.view.free, self.records[0]
        clock = ((record.times - record.times[0]) / (record.times[-1] - record.times[0])).reshape(
            -1, *[1] * len(record.mesh)
        )

        def of(name: str, usual: float) -> Array:
            known = [theta[:, names.index(key)] if key in names else np.full(len(theta), value)
                     for key, value in ((name, usual), (f"{name} drift", 0.0))]  # fmt: skip
            first, drift = (part.reshape(-1, *[1] * clock.ndim) for part in known)
            return np.asarray(first + drift * clock)

        return of("gain", 1.0), of("offset", 0.0)

    def _rates(
        self, force: Any, here: Array, there: Array, law: Array, pace: float, theta: float, constants: Constants
    ) -> tuple[Any, ...]:
        """Return the mean of G' along paths, values of G' and the share of each at each cell, and the mean variance.

        The rate is that of the mean force, so it needs the variance, which needs the rate: two rounds.
        """
        counts, volume = mode_grid(self.records[0]).multiplicity, float(np.prod(self.records[0].dx))
        taus, which = np.unique(np.asarray(constants.taus), return_inverse=True)
        u = np.linspace(min(here.min(), there.min()), max(here.max(), there.max()), _POINTS)
        slopes = np.gradient(np.asarray(force(law, u)), u)
        bent = np.interp(0.5 * (here + there), u, np.gradient(np.gradient(slopes, u), u))
        first = 0.5 * (np.interp(here, u, slopes) + np.interp(there, u, slopes))
        variance, nodes = np.zeros_like(first), np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
        for _ in range(2):
            slope = first + 0.5 * bent * variance
            low, high = float(slope.min()), float(slope.max())
            rates = 0.5 * (low + high) + max(0.5 * (high - low), 1e-6 * abs(high)) * nodes
            shares = lagrange(rates, slope)
            means = [[np.vdot(counts, mean_variance(constants, g, pace * t, volume)) for t in taus] for g in rates]
            variance = theta / counts.sum() * np.einsum("kt,kt...->t...", np.array(means)[:, which], shares)
        return slope.mean(), rates, shares, variance

    def fit(
        self, starts: Array, *, joint: Array | None = None, family: Family | None = None,
        fitted: Family | None = None, substeps: int | None = None, before: Sequence[Trajectory] | None = None,
        watch: Watch | None = None, most: int | None = None,
    ) -> list[Trajectory]:  # fmt: skip
        """Fit the records from the coefficients starts[record, k] and linearise there; as ``Batch.fit``.

        Rounds of two Gauss-Newton steps and one of theta and s, until all three are smaller than 0.05 standard errors.
        """
        leave_room()
        starts, count = np.asarray(starts, dtype=np.float64), len(starts)
        fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
        family = fitted if family is None else family
        if substeps is None:
            slopes = [fitted.steepness(start) for start in starts]
            substeps = max(first_substeps(self.records[0], slope, self.dynamics) for slope in slopes)
        if self.parts:
            rows = zip(self.parts, starts[:, None], [None] * count if joint is None else joint[:, None], strict=True)
            own = {"family": family, "fitted": fitted, "substeps": substeps, "watch": watch, "most": most}
            lasts = [None] * count if before is None else [[fit] for fit in before]
            each = zip(rows, lasts, strict=True)
            return [part.fit(start, joint=there, before=last, **own)[0] for (part, start, there), last in each]
        if fitted.lowest == 1:  # weak moments of noisy fields may lead to a law whose fields run away
            lift = fitted.at(0).elevation(fitted)
            starts = starts @ np.linalg.pinv(lift).T @ lift.T
        joint = np.tile(joint_start(self.view), (count, 1)) if joint is None else joint
        theta, n = np.hstack([joint, starts]), joint.shape[1]
        model, constants = self.model(fitted, substeps)
        assert isinstance(model, LinkedModel)
        fields = self.observed.values
        if before:
            fields, down = np.stack([fit.nuisance for fit in before]), np.linalg.pinv(fitted.elevation(before[0].family))
            theta = np.stack([np.append(fit.theta[:n], down @ fit.theta[n:]) for fit in before])
            levels = [fit.levels for fit in before if fit.levels is not None]
        else:
            levels = self._first_levels(model, constants, fields, theta)
        steps: list[list[Step]] = [[] for _ in range(count)]
        status: dict[int, Status] = {}
        code, data = compiled(), self.data
        for rounds in range(1, (most or _ROUNDS) + 2):
            last = len(status) == count or rounds > (most or _ROUNDS)
            running = np.array([last or k not in status for k in range(count)])
            held = constants._replace(prior=self._held(range(count), fitted, levels))
            own = self._linked(fitted, substeps, fields, theta, levels, held)
            with double_precision():
                point = code.begin(model, fields, theta, data, own)
                for _ in range(_STEPS):
                    point = code.advance(model, point, data, own)
            fresh = np.asarray(point.nuisance), np.asarray(point.theta)
            fields, theta = (
                np.where(running.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(fresh, (fields, theta), strict=True)
            )
            news, moves = self._weighed(model, own, fields, theta, levels, probes=_PROBES if last else 1)
            numbers = zip(*map(np.asarray, point[2:]), strict=True)
            for k, (cost, was, size, length, iterations, rest) in enumerate(numbers):
                if not running[k]:
                    continue
                moved = max(float(size) / levels[k].camera, moves[k])
                taken = float(was), float(cost), moved, float(length), int(iterations), float(rest)
                steps[k].append(Step(rounds, *taken, "thermal noise"))
                levels[k] = news[k]
                if moved < _SMALL and rounds > 1:
                    status.setdefault(k, Status(Convergence.CONVERGED, moved, rounds))
                elif not np.isfinite(moved):
                    status.setdefault(k, Status(Convergence.NO_DECREASE, moved, rounds))
            if watch is not None:
                watch(max((own[-1] for own in steps), key=lambda step: step.size))
            if last:
                break
        ended = [status.get(k, Status(Convergence.MOST_STEPS, steps[k][-1].size, len(steps[k]))) for k in range(count)]
        theta = np.hstack([theta[:, :n], theta[:, n:] @ fitted.elevation(family).T])
        return self._linearise(family, substeps, Iteration(fields, theta, steps, ended, [1] * count, levels))

    def _held(self, indices: Sequence[int], family: Family, levels: Sequence[Levels]) -> Array | tuple[()]:
        """Return what is known of theta, in units of the camera's noise."""
        rows = self._prior(indices, family)
        if isinstance(rows, tuple):
            return rows
        ratio = [own.camera / rough_noise(self.observed.values[k]) for k, own in zip(indices, levels, strict=True)]
        return rows * np.reshape(ratio, (-1, 1, 1))

    def _first_levels(self, model: LinkedModel, constants: Constants, fields: Array, theta: Array) -> list[Levels]:
        """Return theta and s by which the mean power of gaps in each mode, where frames are the fields, is explained.

        theta S |H|^2 + s^2 (1 + exp(-2 r tau)), H what the optics leave of a mode.
        """
        grid, frames, n = mode_grid(self.records[0]), self.records[0].frames, len(self.view.free)
        forward, _ = numpy_transforms(grid.cells, grid.boundary)
        guess = [Levels(_NONE, 1.0)] * len(fields)
        volume, counts = float(np.prod(self.records[0].dx)), np.ravel(grid.multiplicity)
        norm = np.prod(grid.cells) if grid.boundary == "periodic" else 1.0  # of a transform that is not orthonormal
        own, levels = self._linked(model.family, model.substeps, fields, theta, guess, constants), []
        with double_precision():
            gaps = np.asarray(compiled().predict(model, fields, theta, own))[:, frames:] * self._inside
            for k, each in enumerate(gaps):
                joint, _ = model.split(theta[k, : n + model.family.size])
                image, tau = model._image(joint, constants), float(np.mean(constants.taus) * own.links.pace[k])
                left = np.ones(grid.laplacian.shape) if image is None else np.asarray(image) ** 2
                size = np.asarray(thermal_covariance(constants, own.links.usual[k], tau, volume)) * left
                decay = np.exp(2.0 * (constants.linear - constants.coupling * own.links.usual[k]) * tau)
                power = np.ravel(np.mean(np.abs(forward(each)) ** 2, axis=0)) / norm / np.mean(self._inside)
                columns, weight = np.stack([size.ravel(), (1.0 + decay).ravel()], axis=1), 1.0 / np.mean(power)
                for _ in range(_ROUNDS):
                    root = np.sqrt(counts) * weight
                    both, _ = nnls(root[:, None] * columns / np.mean(columns, axis=0), root * power)
                    both = np.maximum(both, 1e-3 * both.max()) / np.mean(columns, axis=0)
                    weight = 1.0 / (columns @ both)
                if self.view.optics.noise == "none":
                    both = np.array([np.sum(counts * power) / np.sum(counts * size.ravel()), 0.0])
                exact = self.view.optics.noise == "none"
                least = _EXACT * float(np.sqrt(both[0] * counts @ size.ravel() / counts.sum()))
                levels.append(Levels(float(both[0]), least if exact else float(np.sqrt(both[1])), exact=exact))
        return levels

    def _weighed(
        self, model: LinkedModel, constants: Constants, fields: Array, theta: Array, levels: Sequence[Levels], *,
        probes: int, indices: Sequence[int] | None = None,
    ) -> tuple[list[Levels], list[float]]:  # fmt: skip
        """Return theta and s after one step of Fisher scoring, and how far they moved in standard errors.

        Of what the fit leaves of noise in frames and in links most is that of a uniform rate, which is known; noise
        tells the difference.
        """
        frames, code, rng, count = self.records[0].frames, compiled(), np.random.default_rng(0), len(levels)
        axes, both = tuple(range(1, self.data.ndim)), (slice(None, frames), slice(frames, None))
        with double_precision():
            left = self.data if indices is None else self.data[indices]
            left = left - np.asarray(code.predict(model, fields, theta, constants))
            left, basis = np.asarray(code.whiten(model, left, constants)), code.basis(model, fields, theta, constants)
            known = [np.asarray(part) for part in code.uniform(model, theta, constants)]
            more = np.zeros((probes, count, 2))
            for each in more:
                noise = rng.standard_normal(self.data.shape[1:]) * self.counted
                noise = np.broadcast_to(noise, (count, *noise.shape))
                image = np.asarray(code.probe(model, fields, theta, basis, noise, constants)[0])
                image = image - np.asarray(code.uniform_rest(model, theta, noise, constants))
                each[:] = np.stack([np.sum((noise * image)[:, part], axis=axes) for part in both], axis=1)
        found, moves = [], []
        for k, own in enumerate(levels):
            squares = np.array([np.sum(left[k, part] ** 2) for part in both]) / own.camera**2
            rest, information = self._uniform(*(part[k] for part in known))
            wanted, free = rest + np.mean(more[:, k], axis=0), np.array([not own.exact, True])
            information = np.where(np.outer(free, free), information, np.diag(np.where(free, 0.0, 1.0)))
            spread = np.linalg.inv(information)
            step = spread @ (0.5 * (squares - wanted) * free)
            if probes > 1:
                spread = spread + spread @ np.cov(0.5 * more[:, k].T * free[:, None]) @ spread / probes
            errors = np.sqrt(np.diag(spread))
            found.append(self._moved(own, step, errors, self._size(constants, k)))
            moves.append(float(np.max(np.abs(step) / errors * free)))
        return found, moves

    def _uniform(self, decay: Array, seen: Array, stiff: Array) -> tuple[Array, Array]:
        """Return the traces of what fields of a uniform rate leave of noise in frames and links, and the information.

        That is of log s^2 and log theta. Of each mode a system of the size of the frames; modes of about the same rate
        are taken together.
        """
        frames, counts = self.records[0].frames, mode_grid(self.records[0]).multiplicity.ravel()
        decay, seen, stiff = (np.broadcast_to(part, decay.shape).ravel() for part in (decay, seen, stiff))
        order = np.argsort(decay, kind="stable")
        groups = [group for group in np.array_split(order, _GROUPS) if group.size]
        weights = np.array([counts[group].sum() for group in groups])
        means = [np.array([np.average(part[g], weights=counts[g]) for g in groups]) for part in (decay, seen, stiff)]
        e, c, a = (part[:, None, None] for part in means)
        one, beside = np.eye(frames), np.diag(np.ones(frames - 1), 1) + np.diag(np.ones(frames - 1), -1)
        first, last = np.diag(np.arange(frames) > 0).astype(float), np.diag(np.arange(frames) < frames - 1).astype(float)
        values = np.linalg.eigvalsh(c * one + a * (first + e**2 * last - e * beside))
        part = np.squeeze(c, -1) / values  # of the noise of frames that the fields take
        inside = self.counted[frames:].mean(), self.counted[:frames].mean()
        frame, frame2 = weights @ np.sum(1.0 - part, axis=1), weights @ np.sum((1.0 - part) ** 2, axis=1)
        link = weights.sum() * (frames - 1) - frame
        crossed = frame - frame2
        rest = np.array([frame * inside[1], link * inside[0]])
        return rest, 0.5 * np.array([[frame2, crossed], [crossed, link - crossed]]) * np.sqrt(np.outer(inside[::-1], inside[::-1]))

    def _size(self, constants: Constants, k: int) -> float:
        """Return the thermal variance of a value from frame to frame, over theta."""
        links, counts = constants.links, mode_grid(self.records[0]).multiplicity
        tau = float(np.mean(constants.taus) * links.pace[k])
        with double_precision():
            sizes = np.asarray(thermal_covariance(constants, float(links.usual[k]), tau, float(links.volume[k])))
        return float(np.vdot(counts, sizes) / counts.sum())

    def _moved(self, own: Levels, step: Array, errors: Array, size: float) -> Levels:
        """Return levels after a step of log s^2 and log theta; `size` is the thermal variance of a value over theta.

        Where theta is not seen it stays, and what the step leads to is the estimate, which may be negative.
        """
        ahead = np.clip(step, -_LARGEST, _LARGEST)
        unseen = errors[1] > _UNSEEN and step[1] < 0.0
        theta = own.theta if unseen else own.theta * float(np.exp(ahead[1]))
        estimate = own.theta * (1.0 + float(step[1])) if unseen else theta
        least, camera = _EXACT * float(np.sqrt(theta * size)), own.camera * float(np.exp(0.5 * ahead[0]))
        exact = own.exact or camera < least
        sizes = float(errors[1]), 0.5 * float(errors[0])
        return Levels(theta, least if exact else camera, *sizes, exact, estimate)

    def _linearise(
        self, family: Family, substeps: int, at: Iteration, before: Sequence[Trajectory] = ()
    ) -> list[Trajectory]:
        """Return what records say at a point: evidence of theta, of what the view estimates and of the law."""
        indices = [fit.index for fit in before] or list(range(len(self.records)))
        labels = [fit.evidence.blocks[0].key.record for fit in before] or self.labels
        levels = at.levels or [fit.levels for fit in before if fit.levels is not None]
        (model, plain), code, data, frames = self.model(family, substeps), compiled(), self.data, self.records[0].frames
        if before:
            at.nuisance, levels = self._followed(family, substeps, at, levels, indices)
        own = self._linked(family, substeps, at.nuisance, at.theta, levels, plain)
        held, point = own._replace(prior=self._held(indices, family, levels)), (at.nuisance, at.theta)
        with double_precision():
            last = code.sensitivity(model, *point, data[indices], held)
            seen = np.asarray(code.predict(model, *point, own))
            triangles, shifts, responses, costs, _, solves, scores = map(np.asarray, last)
            rooms = self._room(model, own, point, responses, [each.exact for each in levels])
        size, fits = at.theta.shape[1], []
        for k, index in enumerate(indices):
            noise, triangle = levels[k].camera, triangles[k]
            # the room of the fields moves the most likely law by (R'R)^-1 times its slope
            shift = shifts[k] - np.linalg.solve(triangle, np.linalg.solve(triangle.T, rooms[k])) * noise**2
            remaining = float(costs[k]) - float(np.sum((triangle @ shifts[k]) ** 2))
            solve, status = float(np.max(solves[k])), at.status[k]
            if status.converged and not solve <= UNFINISHED:
                status = Status(Convergence.UNFINISHED, solve, status.steps)
            rows = np.zeros((size + 2, size + 2))
            rows[1:-1, 1:-1] = triangle / noise
            rows[1:-1, -1] = rows[1:-1, 1:-1] @ (at.theta[k] + shift)
            rows[-1, -1] = np.sqrt(remaining) / noise
            gain, offset = (part[k] for part in self._contrast(at.theta))
            drag, unit = self._drag(family, own, k, (at.nuisance[k] - offset) / gain, at.theta[k]), np.mean(gain) ** 2
            weight = unit / (levels[k].theta * levels[k].theta_error)
            rows[0, 0], rows[0, 1:-1] = weight, -weight * levels[k].theta / unit * drag
            rows[0, -1] = weight / unit * (levels[k].estimate - levels[k].theta * float(drag @ at.theta[k]))
            block = Block(Key(labels[k], "trajectory", "all"), compact(rows), self.observed.rows)
            residual = self.data[index, :frames] - seen[k, :frames]
            residual[1:] += seen[k, frames:]  # from where the field before leads
            if self.observed.mask is not None:
                residual = np.where(self.observed.mask, residual, 0.0)
            fits.append(
                Trajectory(
                    batch=self,
                    index=index,
                    record=self.records[index],
                    family=family,
                    evidence=Evidence(family, (block,), True, ("theta", *self.view.free, "force", "target")),
                    theta=at.theta[k],
                    nuisance=at.nuisance[k],
                    response=responses[k],
                    residual=residual,
                    noise=noise,
                    substeps=substeps,
                    steps=tuple(at.steps[k]),
                    status=status,
                    segments=1,
                    solve=solve,
                    excess=excess(scores[k] / noise),
                    levels=levels[k],
                )
            )
        return fits

    def _followed(
        self, family: Family, substeps: int, at: Iteration, levels: Sequence[Levels], indices: Sequence[int]
    ) -> tuple[Array, list[Levels]]:
        """Return the fields that follow a given law, with theta and the camera's noise there."""
        (model, plain), fields, code = self.model(family, substeps), at.nuisance, compiled()
        assert isinstance(model, LinkedModel)
        for _ in range(_STEPS):
            held = plain._replace(prior=self._held(indices, family, levels))
            own = self._linked(family, substeps, fields, at.theta, levels, held)
            with double_precision():
                point = code.begin(model, fields, at.theta, self.data[indices], own)
                point = code.follow(model, point, self.data[indices], own)
            fields = np.asarray(point.nuisance)
            levels, _ = self._weighed(model, own, fields, at.theta, levels, probes=_PROBES, indices=indices)
        return fields, list(levels)

    def _room(
        self, model: LinkedModel, constants: Constants, point: tuple[Array, Array], responses: Array,
        exact: Sequence[bool],
    ) -> Array:  # fmt: skip
        """Return the slope of log det(J_u' J_u) / 2 by what is estimated, the fields moved along; 0 of exact frames."""
        total, rng = np.zeros(point[1].shape), np.random.default_rng(1)
        if all(exact):
            return total
        for _ in range(_PROBES):
            probe = np.broadcast_to(rng.standard_normal(self.data.shape[1:]), (len(exact), *self.data.shape[1:]))
            along, slope = map(np.asarray, compiled().room(model, *point, probe, constants))
            moved = [np.tensordot(response, field, axes=field.ndim) for response, field in zip(responses, along, strict=True)]
            total += (slope + np.stack(moved)) / _PROBES
        return np.where(np.array(exact)[:, None], 0.0, total)

    def _drag(self, family: Family, constants: Constants, k: int, fields: Array, theta: Array) -> Array:
        """Return how log theta moves with what is estimated: it makes up for what that does to the covariance S."""
        grid, links, free = mode_grid(self.records[0]), constants.links, self.view.free
        counts, volume = grid.multiplicity, float(links.volume[k])
        tau, usual = float(np.mean(constants.taus) * links.pace[k]), float(links.usual[k])

        def size(slope: float, factor: float = 1.0) -> float:
            with double_precision():
                sizes = np.asarray(thermal_covariance(constants, slope, factor * tau, volume))
            kept = sizes > 0.0
            return float(np.sum((counts * np.log(np.where(kept, sizes, 1.0)))[kept]) / np.sum(counts[kept]))

        step = 1e-3 * float(np.ptp(links.rates[k]) + 1e-300)
        by_slope = (size(usual + step) - size(usual - step)) / (2.0 * step)
        some = fields.ravel()[:: max(1, fields.size // _SOME)]
        drag = np.zeros(theta.size)
        drag[len(free) :] = -by_slope * np.mean(family.slopes(some), axis=1)
        if "gain" in free:  # theta of phase values
            drag[free.index("gain")] = -2.0 / theta[free.index("gain")]
        if "q" in free:
            drag[free.index("q")] = -(size(usual, 1.001) - size(usual, 0.999)) / 0.002 / float(links.pace[k])
        return drag


def lagrange(nodes: Array, values: Array) -> Array:
    """Return Lagrange's polynomials of nodes at some values."""
    others = [np.delete(nodes, k) for k in range(len(nodes))]
    pairs = zip(nodes, others, strict=True)
    return np.stack([np.prod([(values - b) / (a - b) for b in rest], axis=0) for a, rest in pairs])

