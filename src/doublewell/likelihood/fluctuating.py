"""Fluctuating records: law, theta = kT / kappa and camera noise from a state-space likelihood.

The camera sees the fields of all frames, and from frame to frame they follow the equation up to thermal noise:

    v_t = u_t + s e_t,        u_(t+1) = Phi(u_t) + sqrt(theta) S^(1/2) w_t,        S = D (1 - exp(-2 r tau)) / (r V)

with r = D G' - L the rate of each place, tau = q dt, V the volume of a cell. Phi is the mean path: the force of a field
that fluctuates within an interval is its mean over a normal distribution of the mean variance there. Rates are those of
the path that leads from u_t on: at u_(t+1) they would know of the noise, and the force would be off by as much as that.

Fields and law are fitted by Gauss-Newton at given theta and s. theta and s are where the residuals of links and frames
are as large as those of noise, which a solve of noise for each of them tells (Fisher scoring on the restricted
likelihood, the same random numbers in all rounds). The law that goes with the best fields is not the most likely one:
how much room the fields have depends on it too. That is the slope of log det(J_u' J_u) / 2, by solves of noise again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.dynamics import numpy_transforms
from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.hints import Array
from doublewell.law import Bernstein, Family
from doublewell.likelihood.batch import LOW, STIFF, Trajectory, lines_of, points
from doublewell.likelihood.iterate import Convergence, Iteration, Status, Step, Watch
from doublewell.likelihood.levels import FluctuatingRecords, Levels
from doublewell.likelihood.linked import thermal_covariance
from doublewell.likelihood.model import Constants, first_substeps
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import joint_start, rough_noise
from doublewell.runtime import double_precision, leave_room
from doublewell.stop import current

_HELD = 4  # rounds with a law of a low degree, where gain and offset are estimated
_ROUNDS = 30  # of theta and s
_STEPS, _FAST = 2, 2  # of Gauss-Newton within each of the first rounds; then one
_PROBES, _ROOMS = 4, 2  # solves of noise for theta and s at the end, and for the room of the fields
_WINDOW = 4  # times as many of a window, whose border is unlike a uniform field
_SMALL = 0.05  # standard errors of a last step
_SOME = 20000  # values of the fields that a mean is taken over


@dataclass(eq=False)
class FluctuatingBatch(FluctuatingRecords):
    """Records with thermal noise; the nuisance is the field of every frame."""

    def fit(
        self, starts: Array, *, joint: Array | None = None, family: Family | None = None,
        fitted: Family | None = None, substeps: int | None = None, before: Sequence[Trajectory] | None = None,
        watch: Watch | None = None, most: int | None = None,
    ) -> list[Trajectory]:  # fmt: skip
        """Fit the records from the coefficients starts[record, k] and linearise there; as ``Batch.fit``.

        Rounds of two Gauss-Newton steps, later one, and one of theta and s, until all are below 0.05 standard errors.
        """
        leave_room()
        starts, count = np.asarray(starts, dtype=np.float64), len(starts)
        fitted = Bernstein(starts.shape[1] - 1) if fitted is None else fitted
        family = fitted if family is None else family
        if substeps is None:
            slopes = [fitted.steepness(start) for start in starts]
            substeps = max(first_substeps(self.records[0], slope, self.dynamics) for slope in slopes)
        if self.parts:
            options: dict[str, Any] = {"family": family, "fitted": fitted, "substeps": substeps}
            nothing = [None] * count
            joints = nothing if joint is None else joint[:, None]
            each = zip(self.parts, starts[:, None], joints, nothing if before is None else before, strict=True)
            options |= {"watch": watch, "most": most}
            return [
                part.fit(start, joint=own, before=None if last is None else [last], **options)[0]
                for part, start, own, last in each
            ]
        if fitted.lowest == 1:  # weak moments of noisy fields may lead to a law whose fields run away
            lift = fitted.at(0).elevation(fitted)
            starts = starts @ np.linalg.pinv(lift).T @ lift.T
        joint = np.tile(joint_start(self.view), (count, 1)) if joint is None else joint
        n, lift, fields, levels = joint.shape[1], fitted.elevation(family), self.observed.values, []
        theta = np.hstack([joint, starts @ lift.T])
        if before:
            (fields, theta), down = points(before), np.linalg.pinv(fitted.elevation(before[0].family))
            theta = np.hstack([theta[:, :n], theta[:, n:] @ down.T @ lift.T])
            levels = [fit.levels for fit in before]
        at = Iteration(fields, theta, [[] for _ in starts], [], [1] * count, levels)
        # a flexible law could bend itself to a wrong contrast
        bends = self.view.contrast and not before and fitted.degree > LOW
        stiff = STIFF * float(np.sqrt(self.data[0].size) / np.max(np.abs(starts))) if bends else 0.0
        self._rounds(family, lines_of(n, lift), substeps, at, most or _ROUNDS, watch, stiff)
        return self._linearise(family, substeps, at)

    def _rounds(
        self, family: Family, lines: Array, substeps: int, at: Iteration, most: int, watch: Watch | None, stiff: float
    ) -> None:
        """Step until every record has ended; one that has ended stays where it is until the last round, with probes.

        theta moves along `lines`. With `stiff` the first rounds hold the law at a low degree, and the next ones less
        and less.
        """
        model, plain = self.model(family, substeps)
        count, code, ended = len(at.theta), compiled(), dict[int, Status]()
        turns, pace = np.zeros((count, 2)), np.ones((count, 2))
        at.levels = at.levels or self.first_levels(model, plain, at.nuisance, at.theta)
        for rounds in range(1, most + 2):
            last = len(ended) == count or rounds > most or (rounds > 1 and current().over())
            running = np.array([last or k not in ended for k in range(count)])
            own = stiff * 10.0 ** -max(0, rounds - _HELD) if rounds < 2 * _HELD else 0.0
            held = plain._replace(prior=self._held(range(count), family, at.levels, own))
            if rounds == 2 * _HELD:  # a law that is held bends the levels
                turns, pace = np.zeros((count, 2)), np.ones((count, 2))
            constants = self.linked(family, substeps, at.nuisance, at.theta, at.levels, held)
            point = code.begin(model, at.nuisance, at.theta, self.data, constants, lines)
            for _ in range(_STEPS if rounds <= _FAST else 1):
                point = code.advance(model, point, self.data, constants, running)
            at.nuisance, at.theta = point.nuisance, point.theta
            probes = (_PROBES if last else 1) * (_WINDOW if self.links else 1)
            levels, moves = self.weighed(model, constants, point.at, (at.nuisance, at.theta), at.levels, probes=probes)
            numbers = zip(*[part.tolist() for part in point[2:8]], strict=True)
            for k, (cost, was, size, length, iterations, rest) in enumerate(numbers):
                if not running[k]:
                    continue
                moved = max(size / at.levels[k].camera, moves[k])
                at.steps[k].append(Step(rounds, was, cost, moved, length, iterations, rest, "thermal noise"))
                # law and levels may follow each other to and fro: a level that turns back is slowed down
                ahead = np.log([levels[k].theta / at.levels[k].theta, levels[k].camera / at.levels[k].camera])
                pace[k] = np.where(ahead * turns[k] < 0.0, 0.5 * pace[k], np.minimum(1.0, 2.0 * pace[k]))
                at.levels[k], turns[k] = levels[k].slowed(ahead, np.ones(2) if last else pace[k]), ahead
                if moved < _SMALL and rounds > 1 and not own:
                    ended.setdefault(k, Status(Convergence.CONVERGED, moved, rounds))
                elif not np.isfinite(moved):
                    ended.setdefault(k, Status(Convergence.NO_DECREASE, moved, rounds))
            if watch is not None:
                watch(max((own[-1] for own in at.steps), key=lambda step: step.size))
            if last:
                break
        why = Convergence.MOST_STEPS if current().at is None else Convergence.TIME_LIMIT
        unfinished = [Status(why, own[-1].size, len(own)) for own in at.steps]
        at.status = [ended.get(k, unfinished[k]) for k in range(count)]

    def _held(
        self, indices: Sequence[int], family: Family, levels: Sequence[Levels], stiff: float | None = None
    ) -> Array | tuple[()]:
        """Return what is known of theta, in units of the camera's noise; with `stiff` as ``_prior``."""
        rows = self._prior(indices, family, stiff)
        if isinstance(rows, tuple):
            return rows
        ratio = [own.camera / rough_noise(self.observed.values[k]) for k, own in zip(indices, levels, strict=True)]
        rows[:, : len(self.view.free)] *= np.reshape(ratio, (-1, 1, 1))
        return rows

    def _linearise(
        self, family: Family, substeps: int, at: Iteration, before: Sequence[Trajectory] = ()
    ) -> list[Trajectory]:
        """Return what records say at a point: evidence of theta, of what the view estimates and of the law."""
        indices = [fit.index for fit in before] or list(range(len(self.records)))
        labels = [fit.evidence.blocks[0].key.record for fit in before] or self.labels
        levels = at.levels or [fit.levels for fit in before if fit.levels is not None]
        (model, plain), code, data = self.model(family, substeps), compiled(), self.data
        frames = self.records[0].frames
        if before:
            at.nuisance, levels = self._followed(family, substeps, at, levels, indices)
        own = self.linked(family, substeps, at.nuisance, at.theta, levels, plain)
        held, point = own._replace(prior=self._held(indices, family, levels)), (at.nuisance, at.theta)
        last = code.sensitivity(model, *point, data[indices], held)
        seen = np.asarray(last.prediction)
        triangles, shifts, responses, costs, _, solves, scores = map(np.asarray, last[:7])
        exact = np.array([each.exact and not own.links.coloured for each in levels])
        along, rooms = (0.0 * part for part in point) if all(exact) else self.room(model, own, point)
        rooms = rooms + [np.tensordot(*pair, axes=along.ndim - 1) for pair in zip(responses, along, strict=True)]
        rooms[exact] = 0.0
        if own.links.exposed:
            rooms -= self._first(family, own, *point)
        size, fits = at.theta.shape[1], []
        for k, index in enumerate(indices):
            noise, triangle = levels[k].camera, triangles[k]
            # the room of the fields moves the most likely law by (R'R)^-1 times its slope
            shift = shifts[k] - np.linalg.solve(triangle, np.linalg.solve(triangle.T, rooms[k])) * noise**2
            remaining = float(costs[k]) - float(np.sum((triangle @ shifts[k]) ** 2))
            rows = np.zeros((size + 2, size + 2))
            rows[1:-1, 1:-1] = triangle / noise
            rows[1:-1, -1] = rows[1:-1, 1:-1] @ (at.theta[k] + shift)
            rows[-1, -1] = np.sqrt(remaining) / noise
            gain, offset = (part[k] for part in self.contrast(at.theta))
            drag = self._drag(family, own, k, (at.nuisance[k] - offset) / gain, at.theta[k])
            unit = float(np.mean(gain)) ** 2
            weight = unit / (levels[k].theta * levels[k].theta_error)
            rows[0, 0], rows[0, 1:-1] = weight, -weight * levels[k].theta / unit * drag
            rows[0, -1] = weight / unit * (levels[k].estimate - levels[k].theta * float(drag @ at.theta[k]))
            block = Block(Key(labels[k], "trajectory", "all"), compact(rows), self.observed.rows)
            residual = self.data[index, :frames] - seen[k, :frames]
            residual[1:] += seen[k, frames:]  # from where the field before leads
            if self.observed.mask is not None:
                residual = np.where(self.observed.mask, residual, 0.0)
            evidence = Evidence(family, (block,), True, ("theta", *self.view.free, "force", "target"))
            about = {"evidence": evidence, "response": responses[k], "residual": residual, "noise": noise}
            about["levels"] = levels[k]
            fits.append(self._trajectory(k, index, at, family, substeps, solves[k], scores[k], **about))
        return fits

    def _followed(
        self, family: Family, substeps: int, at: Iteration, levels: Sequence[Levels], indices: Sequence[int]
    ) -> tuple[Array, list[Levels]]:
        """Return the fields that follow a given law, with theta and the camera's noise there."""
        (model, plain), fields, code = self.model(family, substeps), at.nuisance, compiled()
        for probes in (1, _PROBES):
            held = plain._replace(prior=self._held(indices, family, levels))
            own = self.linked(family, substeps, fields, at.theta, levels, held)
            point = code.follow(
                model, code.begin(model, fields, at.theta, self.data[indices], own), self.data[indices], own
            )
            fields = point.nuisance
            levels, _ = self.weighed(model, own, point.at, (fields, at.theta), levels, probes=probes)
        return fields, list(levels)

    def imitated(self, fits: Sequence[Trajectory], seed: int) -> Array:
        """Return what fits of the fields leave of movies that are made with the laws and levels of fits, whitened.

        A residual is not linear in the noise: in pure phases the rate G' changes with the field, by as much as a
        fluctuation. So the fields of these movies are fitted as those of the records were.
        """
        first, code, grid, rng = fits[0], compiled(), self.grid, np.random.default_rng([seed, len(fits)])
        family, substeps, frames, levels = first.family, first.substeps, first.record.frames, [f.levels for f in fits]
        (model, plain), (fields, theta) = self.model(family, substeps), points(fits)
        own = self.linked(family, substeps, fields, theta, levels, plain)
        forward, backward = numpy_transforms(grid.cells, grid.boundary)
        fields = np.asarray(code.path(model, fields, theta, np.full(len(fits), seed), own))
        own = self.linked(family, substeps, fields, theta, levels, plain)
        data = np.array(code.predict(model, fields, theta, own))
        data[:, frames:] = 0.0
        for k, each in enumerate(levels):
            noise = each.camera * rng.standard_normal(data[k, :frames].shape)
            if own.links.coloured:
                links = own.links._replace(
                    spread=own.links.spread[k], camera=own.links.camera[k], unseen=own.links.unseen[k]
                )
                noise = backward(forward(noise) / links.colour)
            data[k, :frames] += noise
        for _ in range(_STEPS):
            held = own._replace(prior=self._held([fit.index for fit in fits], family, levels))
            fields = code.follow(model, code.begin(model, fields, theta, data, held), data, held).nuisance
            own = self.linked(family, substeps, fields, theta, levels, plain)
        at = code.tangents(model, fields, theta, data, own)
        return code.project(model, fields, theta, at.basis, at.residual[:, None], own, crossed=True)[0][:, 0]

    def room(self, model: Any, constants: Constants, point: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the slope of log det(J_u' J_u) / 2 by the fields and by what is estimated."""
        rng, shape = np.random.default_rng(1), self.data.shape[1:]
        along, slope = np.zeros(point[0].shape), np.zeros(point[1].shape)
        for _ in range(_ROOMS):
            probe = np.broadcast_to(rng.standard_normal(shape), (len(slope), *shape))
            own = compiled().room(model, *point, probe, constants)
            along, slope = along + np.asarray(own[0]) / _ROOMS, slope + np.asarray(own[1]) / _ROOMS
        return along, slope

    def _first(self, family: Family, constants: Constants, fields: Array, theta: Array) -> Array:
        """Return the slope of log det of what the first exposure leaves of its field, by what is estimated.

        Of that field nothing is known, whatever the law: it is its exposure that may have any value.
        """
        links, n = constants.links, len(self.view.free)
        gain, offset = self.contrast(theta)
        first, total = ((fields - offset) / gain)[:, 0].reshape(len(theta), -1), np.zeros(theta.shape)
        for k, (slope, pace) in enumerate(zip(links.usual, links.pace, strict=True)):
            x, by_slope = self._decayed(slope, pace)
            x = np.maximum(x, 1e-6)
            change = float(np.sum(self.grid.multiplicity * by_slope * (1.0 / np.expm1(x) - 1.0 / x)))
            total[k, n:] = change * np.mean(family.slopes(first[k]), axis=1)
        return total

    def _drag(self, family: Family, constants: Constants, k: int, fields: Array, theta: Array) -> Array:
        """Return how log theta moves with what is estimated: it makes up for what that does to the covariance S."""
        links, free = constants.links, self.view.free
        counts, volume = self.grid.multiplicity, float(links.volume[k])
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
