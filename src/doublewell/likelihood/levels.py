"""Levels: theta and camera noise of fluctuating records at given fields, and the links that go with them.

Fisher scoring on the restricted likelihood: theta and s are where the residuals of links and frames are as large as
those of noise. What fields of a uniform rate leave of noise is known, and solves of noise tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from doublewell.dynamics import Grid, border_mask, numpy_transforms, symbols
from doublewell.dynamics.thermal import exposure_weights
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood import model as models
from doublewell.likelihood.batch import Batch, Trajectory, points
from doublewell.likelihood.linked import (
    HERMITE,
    LinkedModel,
    Links,
    mean_variance,
    smooth_force,
    thermal_covariance,
)
from doublewell.likelihood.model import Constants
from doublewell.likelihood.programs import compiled
from doublewell.observation.view import Observed, filled, mode_grid, transfer
from doublewell.runtime import double_precision

_ALIASES = 4  # up to how many zones along an axis short waves are aliased from
_NODES = 4  # of G', between which the thermal covariance is interpolated
_APART = 1e-6  # of 1 / tau: the least distance of these
_POINTS = 4001  # of phase values at which slopes are tabulated
_GROUPS = 64  # of modes with about the same rate
_LARGEST = 1.0  # of a step of log theta and log s
_EXACT = 1e-2  # of thermal noise: frames with less noise are taken with this much, for the solver's sake
_CAMERA = 0.2  # of the size of gaps: camera noise to begin with, at the least
_UNSEEN = 1.0  # relative error of theta above which it is not followed further down
_NONE = 1e-12  # theta that moves no rate
_FAR, _FARTHEST = 0.999, 1.5  # of the values; in s, beyond which no law is read
_WIDER = 0.2  # phase values beyond those of the record at which slopes are known
_MORE, _LEAST = 3, 8  # cells: beyond that, which the covariance reaches, and what has to be left
_REACH = 5.0  # (q dt)^(1/order) that what happens outside reaches into a window within a frame interval
_ROUNDS = 20  # of a regression whose weights follow it


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

    def slowed(self, ahead: Array, pace: Array) -> Levels:
        """Return levels after a fraction of the step of log theta and log s that led here; exact frames stay so."""
        theta, camera = np.array([self.theta, self.camera]) * np.exp((pace - 1.0) * ahead)
        estimate = theta if self.estimate == self.theta else self.estimate
        return replace(
            self, theta=float(theta), camera=self.camera if self.exact else float(camera), estimate=float(estimate)
        )


@dataclass(eq=False)
class FluctuatingRecords(Batch):
    """Records with thermal noise at given fields; the nuisance is the field of every frame, in observed values."""

    @cached_property
    def grid(self) -> Grid:
        """The mesh whose modes serve the records."""
        return mode_grid(self.records[0])

    @property
    def links(self) -> int:
        """Width of the border of a window within which nothing is linked; 0 where the border is known."""
        record = self.records[0]
        if record.boundary != "open":
            return 0
        reach = (float(record.q or 0.0) * float(np.max(np.diff(record.times)))) ** (1.0 / self.dynamics.order)
        width = max(self.border, int(np.ceil(_REACH * reach / min(record.dx))))
        if min(record.mesh) < 2 * (width + _MORE) + _LEAST:
            raise InputError(
                f"the window is {' x '.join(map(str, record.mesh))}, and within a frame interval what happens outside "
                f"reaches {width} cells into it: expected at least {2 * (width + _MORE) + _LEAST} cells along each "
                f"axis; take a larger part or shorter intervals, or declare {option('boundary', 'periodic')} or neumann"
            )
        return width

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
    def _trusted(self) -> Array:
        mesh = self.records[0].mesh
        return np.where(border_mask(mesh, self.links), 0.0, 1.0) if self.links else np.ones(mesh)

    @property
    def _inside(self) -> Array:
        mesh = self.records[0].mesh
        return np.where(border_mask(mesh, self.links + _MORE), 0.0, 1.0) if self.links else np.ones(mesh)

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
    ) -> tuple[Any, Constants]:  # fmt: skip
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
        levels = [fit.levels for fit in fits]
        return self.linked(fits[0].family, fits[0].substeps, *points(fits), levels, constants)

    def linked(
        self, family: Family, substeps: int, fields: Array, theta: Array, levels: Sequence[Levels],
        constants: Constants,
    ) -> Constants:  # fmt: skip
        """Return constants with the links at fields and a law: rates along the paths that lead from each field on."""
        record, count = self.records[0], len(levels)
        model, plain = self.model(family, substeps)
        paces = theta[:, self.view.free.index("q")] if "q" in self.view.free else np.ones(count)
        cameras, thetas = (np.array([getattr(each, name) for each in levels]) for name in ("camera", "theta"))
        volume = np.full(count, np.prod(record.dx))
        inside, trusted = (np.broadcast_to(part, (count, *record.mesh)) for part in (self._inside, self._trusted))
        gain, offset = self.contrast(theta)
        far = [float(np.quantile(np.abs(field), _FAR)) for field in (fields - offset) / gain]
        reach = np.clip(far, 1.0, _FARTHEST)
        shape = count, _NODES, record.frames - 1, *record.mesh
        links = Links(
            cameras, np.sqrt(thetas), np.zeros(count), paces, volume, inside, trusted, reach, np.zeros(shape[:2]),
            np.zeros(shape), np.zeros((count, *shape[2:])),
        )  # fmt: skip
        with double_precision():
            gaps = np.asarray(compiled().predict(model, fields, theta, plain._replace(links=links)))[:, record.frames :]
            here = (fields[:, :-1] - offset[:, :-1]) / gain[:, :-1]
            there = (fields[:, 1:] - gaps - offset[:, 1:]) / gain[:, 1:]
            own = thetas / np.mean(gain.reshape(count, -1), axis=1) ** 2
            each = zip(here, there, theta[:, len(self.view.free) :], reach, paces, own, strict=True)
            rows = [self._rates(smooth_force(family), constants, *row) for row in each]
        usual, rates, shares, variance = (np.stack(part) for part in zip(*rows, strict=True))
        links = links._replace(usual=usual, rates=rates, shares=shares, variance=variance)
        optics, at = self.view.optics, [*zip(usual, paces, strict=True)]
        if optics.pixel or optics.exposure:
            links = links._replace(unseen=np.stack([self._aliased(*each) for each in at])[:, None])
        if optics.exposure:
            left, follows, own = (np.stack(part) for part in zip(*[self._exposed(*each) for each in at], strict=True))
            links = links._replace(unseen=links.unseen + own, left=left, follows=follows)
        return constants._replace(links=links)

    def _exposed(self, slope: float, pace: float) -> tuple[Array, Array, Array]:
        """Return what an exposure leaves of each mode, what it shows of the next gap, and the variance of its own.

        That is of all frames but the last one, after which no gap tells what the exposure shows of it.
        """
        record, grid, optics = self.records[0], self.grid, self.view.optics
        linear, coupling = symbols(self.dynamics, grid.waves, grid.crossed)
        tau, part = pace * float(record.q or 0.0) * record.dt, float(optics.exposure or 0.0) / record.dt
        rate = coupling * max(slope, 0.0) - linear
        weights = exposure_weights(rate, tau, part)
        gap = 2.0 * tau * exposure_weights(2.0 * rate, tau, 1.0).left
        own = np.stack([weights.own] * (record.frames - 1) + [weights.own + weights.follows**2 * gap])
        own = own * coupling * transfer(grid.waves, grid.dx, optics) ** 2 / float(np.prod(grid.dx))
        return weights.left, weights.follows, own

    def _decayed(self, slope: float, pace: float) -> tuple[Array, Array]:
        """Return the rate of each mode times the exposure, and its derivative by G'."""
        linear, coupling = symbols(self.dynamics, self.grid.waves, self.grid.crossed)
        time = pace * float(self.records[0].q or 0.0) * float(self.view.optics.exposure or 0.0)
        return time * (coupling * max(slope, 0.0) - linear), time * coupling

    def _aliased(self, slope: float, pace: float = 1.0) -> Array:
        """Return the variance over theta that waves shorter than two pixels have in the modes which they look like.

        Such a wave decays before the next frame; its spectrum is that of equilibrium, D / (D G' - L), of which an
        exposure leaves a part. A pixel that is the mean of n cells along each axis shows the waves of their mesh.
        """
        time = pace * float(self.records[0].q or 0.0) * float(self.view.optics.exposure or 0.0)
        grid, optics, total = self.grid, self.view.optics, np.zeros(self.grid.laplacian.shape)
        count = 1 if optics.pixel is True else int(optics.pixel or 0)  # of cells in a pixel, 1 for any number of them
        zones = range(count) if count != 1 else range(-_ALIASES, _ALIASES + 1)
        for times in product(zones, repeat=len(grid.dx)):
            if any(times):
                waves = [k + 2.0 * np.pi * n / h for k, n, h in zip(grid.waves, times, grid.dx, strict=True)]
                if count > 1:
                    ends = [2.0 * np.pi * count / h for h in grid.dx]
                    waves = [(k + 0.5 * end) % end - 0.5 * end for k, end in zip(waves, ends, strict=True)]
                linear, coupling = symbols(self.dynamics, waves)
                rate = coupling * max(slope, 0.0) - linear
                short = exposure_weights(rate, time, 1.0).short if time else 1.0
                total += transfer(waves, grid.dx, optics) ** 2 * coupling / rate * short
        return total / float(np.prod(grid.dx))

    def contrast(self, theta: Array) -> tuple[Array, Array]:
        """Return gain and offset of each frame of each record, ready to broadcast; 1 and 0 where they are known."""
        names, record = self.view.free, self.records[0]
        clock = (record.times - record.times[0]) / (record.times[-1] - record.times[0])
        clock = clock.reshape(-1, *[1] * len(record.mesh))

        def of(name: str, usual: float) -> Array:
            both = (name, usual), (f"{name} drift", 0.0)
            known = [theta[:, names.index(key)] if key in names else np.full(len(theta), value) for key, value in both]
            first, drift = (part.reshape(-1, *[1] * clock.ndim) for part in known)
            return np.asarray(first + drift * clock)

        return of("gain", 1.0), of("offset", 0.0)

    def _rates(
        self, force: Any, constants: Constants, here: Array, there: Array, law: Array, reach: float, pace: float,
        theta: float,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the mean of G' along paths, values of G' and the share of each at each cell, and the mean variance.

        The rate is that of the mean force, so it needs the variance, which needs the rate: two rounds.
        """
        counts, volume = self.grid.multiplicity, float(np.prod(self.records[0].dx))
        taus, which = np.unique(np.asarray(constants.taus), return_inverse=True)
        u = np.linspace(min(here.min(), there.min()) - _WIDER, max(here.max(), there.max()) + _WIDER, _POINTS)
        slopes = np.gradient(np.asarray(force(law, u, reach)), u)
        variance, nodes = np.zeros_like(here), np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
        for around in (((0.0, 1.0),), HERMITE):
            away = [(node * np.sqrt(variance), 0.5 * weight) for node, weight in around]
            slope = sum(half * np.interp(end + far, u, slopes) for far, half in away for end in (here, there))
            low, high = float(slope.min()), float(slope.max())
            rates = 0.5 * (low + high) + max(0.5 * (high - low), _APART / float(taus[0])) * nodes
            shares = lagrange(rates, slope)
            means = [[np.vdot(counts, mean_variance(constants, g, pace * t, volume)) for t in taus] for g in rates]
            variance = theta / counts.sum() * np.einsum("kt,kt...->t...", np.array(means)[:, which], shares)
            variance = np.maximum(variance, 0.0)  # the interpolation of steep rates may undershoot
        return slope.mean(), rates, shares, variance

    def first_levels(self, model: Any, constants: Constants, fields: Array, theta: Array) -> list[Levels]:
        """Return theta and s by which the mean power of gaps in each mode, where frames are the fields, is explained.

        theta S |H|^2 + s^2 (1 + exp(-2 r tau)), H what the optics leave of a mode.
        """
        from scipy.optimize import nnls

        grid, frames, n = self.grid, self.records[0].frames, len(self.view.free)
        forward, _ = numpy_transforms(grid.cells, grid.boundary)
        guess = [Levels(_NONE, 1.0)] * len(fields)
        volume, counts = float(np.prod(self.records[0].dx)), np.ravel(grid.multiplicity)
        norm = np.prod(grid.cells) if grid.boundary == "periodic" else 1.0  # of a transform that is not orthonormal
        own, levels = self.linked(model.family, model.substeps, fields, theta, guess, constants), []
        with double_precision():
            gaps = np.asarray(compiled().predict(model, fields, theta, own))[:, frames:] * self._inside
            for k, each in enumerate(gaps):
                joint, _ = model.split(theta[k, : n + model.family.size])
                image, tau = model._image(joint, constants), float(np.mean(constants.taus) * own.links.pace[k])
                left = np.ones(grid.laplacian.shape) if image is None else np.asarray(image) ** 2
                size = np.asarray(thermal_covariance(constants, own.links.usual[k], tau, volume)) * left
                decay = np.exp(2.0 * (constants.linear - constants.coupling * own.links.usual[k]) * tau)
                power = np.ravel(np.mean(np.abs(forward(each)) ** 2, axis=0)) / norm / np.mean(self._inside)
                if own.links.coloured:
                    size = size + (1.0 + decay) * np.mean(own.links.unseen[k], axis=0)
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
                # not too small: fields that are the frames tell nothing of s
                camera = np.sqrt(max(float(both[1]), _CAMERA**2 * float(counts @ power / counts.sum())))
                levels.append(Levels(float(both[0]), least if exact else float(camera), exact=exact))
        return levels

    def weighed(
        self, model: Any, constants: Constants, at: Any, point: tuple[Array, Array], levels: Sequence[Levels], *,
        probes: int,
    ) -> tuple[list[Levels], list[float]]:  # fmt: skip
        """Return theta and s after one step of Fisher scoring, and how far they moved in standard errors.

        `at` are the tangents at a point, fields and what is estimated. Of what the fit leaves of noise in frames and in
        links most is that of a uniform rate, which is known; drawn noise tells the difference.
        """
        frames, code, count = self.records[0].frames, compiled(), len(levels)
        axes, shape = tuple(range(1, self.data.ndim)), (count, *[1] * (self.data.ndim - 1))
        sizes = {name: getattr(constants.links, name).reshape(shape) for name in ("spread", "camera")}
        colour = constants.links._replace(**sizes).colour * np.ones((count, frames, *self.grid.laplacian.shape))

        def squares_of(whitened: Array) -> Array:
            """Return the sums of squares that belong to s and to theta, of each record."""
            camera = np.sum(np.asarray(code.coloured(model, whitened[:, :frames], constants)) ** 2, axis=axes)
            return np.stack([camera, np.sum(whitened**2, axis=axes) - camera], axis=1)

        known = [np.asarray(part) for part in code.uniform(model, point[1], constants)]
        squares, drawn = squares_of(np.asarray(at.residual)), [*self.noises(model, constants, *point, probes)]
        noise = np.stack([noise for noise, _ in drawn], axis=1)
        images = np.asarray(code.project(model, *point, at.basis, noise, constants, crossed=True)[0])
        usual = [np.asarray(code.uniform_rest(model, point[1], even, constants)) for _, even in drawn]
        more = np.stack([squares_of(images[:, k]) - squares_of(each) for k, each in enumerate(usual)])
        found, moves = [], []
        for k, own in enumerate(levels):
            rest, information = self._uniform(*(part[k] for part in (*known, colour**2)))
            wanted, free = rest + np.mean(more[:, k], axis=0), np.array([not own.exact, True])
            information = np.where(np.outer(free, free), information, np.diag(np.where(free, 0.0, 1.0)))
            spread = np.linalg.inv(information)
            step = spread @ (0.5 * (squares[k] / own.camera**2 - wanted) * free)
            if probes > 1:
                spread = spread + spread @ np.cov(0.5 * more[:, k].T * free[:, None]) @ spread / probes
            errors = np.sqrt(np.diag(spread))
            found.append(self._moved(own, step, errors, self._size(constants, k)))
            moves.append(float(np.max(np.abs(step) / errors * free)))
        return found, moves

    def noises(
        self, model: Any, constants: Constants, fields: Array, theta: Array, count: int, seed: int = 0
    ) -> Iterator[tuple[Array, Array]]:
        """Yield whitened noise: of the camera, then that of links, drawn with the law; and the same of a uniform rate.

        How large gaps really are depends on all orders of the force, the covariance they are whitened by on the first
        one: a steep law with strong noise makes them up to 9 % larger.
        """
        frames, records = self.records[0].frames, len(fields)
        for number in range(count):
            rng = np.random.default_rng([seed, number])
            camera = np.broadcast_to(rng.standard_normal((frames, *self.grid.cells)), fields.shape)
            seeds = np.full(records, 1000 * seed + number)
            links, even = map(np.asarray, compiled().drawn(model, fields, theta, seeds, constants))
            first, second = (np.concatenate([camera, each], axis=1) * self.counted for each in (links, even))
            yield first, second

    def _uniform(self, decay: Array, here: Array, later: Array, stiff: Array, camera: Array) -> tuple[Array, Array]:
        """Return the traces of what fields of a uniform rate leave of noise in frames and links, and the information.

        That is of log s^2 and log theta; `camera` is the part of s^2 in the noise of frames. Of each mode a system of
        the size of the frames; modes of about the same rate are taken together.
        """
        frames, counts = self.records[0].frames, self.grid.multiplicity.ravel()
        if not all(np.all(np.isfinite(part)) for part in (decay, here, later, stiff)):
            raise InputError(
                "the fit of thermal noise diverged: expected fluctuations that are small against the distance of the "
                "phases, and waves that are seen to decay; use larger pixels, or frames at another interval"
            )
        order = np.argsort(stiff.ravel(), kind="stable")  # decays of fast modes are all zero
        groups = [group for group in np.array_split(order, _GROUPS) if group.size]
        weights = np.array([counts[group].sum() for group in groups])

        def means(part: Array) -> Array:
            rows = part.reshape(-1, counts.size)
            return np.stack([np.average(rows[:, g], axis=1, weights=counts[g]) for g in groups])

        (e, a), own = (means(part)[..., None] for part in (decay, stiff)), means(camera)
        one, back = np.eye(frames), np.eye(frames, k=1)
        seen = means(here)[..., None] * one + means(later)[..., None] * back
        rows = np.concatenate([seen, np.sqrt(a) * (back - e * one)[:, :-1]], axis=1)
        taken = np.linalg.qr(rows)[0][:, :frames]
        left = one - taken @ np.swapaxes(taken, 1, 2)  # of the noise of frames in frames
        seen, inside = self.counted[:frames].mean(), self._inside.mean()
        kept = np.array([seen * inside, inside])  # fields at the border of a window are as they are seen
        squares, other = left**2, 1.0 - own
        frame = weights[:, None] * np.einsum("gtt->gt", left)
        frame2 = weights[:, None] * np.sum(squares, axis=2)
        link, crossed = counts[stiff.ravel() > 0.0].sum() * (frames - 1) - frame.sum(), frame - frame2

        def product(one: Array, two: Array) -> float:
            return float(np.einsum("g,gs,gst,gt->", weights, one, squares, two))

        mixed = product(own, other) + np.sum(own * crossed)
        last = product(other, other) + np.sum((2.0 * other - 1.0) * crossed) + link
        information = 0.5 * np.array([[product(own, own), mixed], [mixed, last]])
        rest = seen * frame2 + inside * crossed  # in frames; noise that counts nothing is zero
        links = inside * (link - np.sum(crossed)) + seen * np.sum(crossed)
        return np.array([np.sum(own * rest), np.sum(other * rest) + links]), information * np.sqrt(np.outer(kept, kept))

    def _size(self, constants: Constants, k: int) -> float:
        """Return the thermal variance of a value from frame to frame, over theta."""
        links, counts = constants.links, self.grid.multiplicity
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


def lagrange(nodes: Array, values: Array) -> Array:
    """Return Lagrange's polynomials of nodes at some values."""
    others = [np.delete(nodes, k) for k in range(len(nodes))]
    pairs = zip(nodes, others, strict=True)
    return np.stack([np.prod([(values - b) / (a - b) for b in rest], axis=0) for a, rest in pairs])
