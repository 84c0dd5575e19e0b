"""Linked fields: a record cut into pieces, each with a field of its own to start from, held together by links.

Two kinds of records are read this way. One with thermal noise has a field for every frame; from one to the next the
links allow for what the noise of the interval does. And an unstable start (spinodal decomposition, drops that merge)
multiplies an error of the initial field by exp(q |G'(0)| T): a whole trajectory from a rough start then lies nowhere
near the record, and Gauss-Newton has nothing to go by. Segments follow the record from the first step on, whatever the
law; links that grow stiffer turn them into one trajectory.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from doublewell.dynamics.etdrk4 import differentiable_force
from doublewell.dynamics.grid import jax_transforms
from doublewell.dynamics.thermal import kick_weights, kicked
from doublewell.hints import Array
from doublewell.law import Family
from doublewell.likelihood.iterate import RULE, Iteration, Rule, Step, Watch, iterate
from doublewell.likelihood.model import Constants, RecordModel
from doublewell.record import Record

UNSTABLE = 4.0  # growth of a record above which a shortened step means segments
_SEGMENT = 2.0  # growth in the time of a segment
_LINKS = (0.3, 1.0, 3.0, 10.0)  # weights of the links, one after the other; then one whole trajectory
_FIRST_STAGE, _LATER_STAGE = Rule(most=12, small=3.0), Rule(most=2, small=3.0)  # the first finds the law
_WHOLE = replace(RULE, least=2)
_FAINT = 1e-6  # of the largest: what the preconditioner makes of a mode that nothing holds
_SLOW = 1e-6  # 2 r tau below which a mode has not relaxed at all
_SHORT = 1e-2  # the same, below which a series serves
HERMITE = ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6))  # a mean over a normal distribution
_DRAWN = 4  # steps of drawn noise for each of a prediction
_SERIES, _ROUND_OFF = 28, 1e-12  # Chebyshev polynomials that hold every feature, and what counts as none


class Links(NamedTuple):
    """What is particular to the links of each record.

    Frames are observed with the noise ``camera``. Links hold with the standard deviation ``spread``, where there are
    ``rates`` times the root of the thermal covariance: of each mode D (1 - exp(-2 r tau)) / (r V), r = D G' - L the
    rate, of which it is interpolated between some values of G', the ``rates``, with the ``shares`` of each at each
    cell. ``usual`` is the mean of G', ``pace`` the ratio of q to the record's, ``variance`` the mean thermal variance
    within an interval, ``volume`` that of a cell, ``reach`` up to where in s the force is the law's polynomial. Gaps
    next to the border of a window are not ``trusted``, and links count ``inside``, a little farther from it.
    ``unseen`` is the variance over theta, (frames or 1, modes), of what no field tells of a frame: waves that are too
    short for the pixels, fluctuations within an exposure. It is noise of each frame for itself, beside the camera's.
    ``follows`` is what an exposure shows of the gap after its frame, ``left`` what it leaves of a mode that decays.
    """

    camera: Any
    spread: Any
    usual: Any
    pace: Any
    volume: Any
    inside: Any
    trusted: Any
    reach: Any
    rates: Any = ()
    shares: Any = ()
    variance: Any = ()
    unseen: Any = ()
    left: Any = ()
    follows: Any = ()

    @property
    def coloured(self) -> bool:
        """Whether frames have noise beside the camera's."""
        return not isinstance(self.unseen, tuple)

    @property
    def colour(self) -> Any:
        """The root of the camera's part of the noise of frames, at each mode; 1 where frames have no other."""
        return 1.0 / (1.0 + (self.spread / self.camera) ** 2 * self.unseen) ** 0.5 if self.coloured else 1.0

    @property
    def exposed(self) -> bool:
        """Whether frames are means over an exposure."""
        return not isinstance(self.follows, tuple)

    @classmethod
    def even(cls, records: int, weight: float) -> Links:
        """Return links of segments that count `weight` times as much as an observation, without thermal noise."""
        one = np.ones(records)
        return cls(one, one / weight, 0.0 * one, one, one, one, one, one)


def thermal_covariance(constants: Constants, slope: Any, taus: Any, volume: Any) -> Any:
    """Return the thermal variance of each mode after a time, over theta, where G' is a `slope`."""
    import jax.numpy as jnp

    x = 2.0 * (constants.coupling * slope - constants.linear) * taus
    x = jnp.where(jnp.abs(x) < _SLOW, _SLOW, x)
    return 2.0 * taus * constants.coupling * -jnp.expm1(-x) / x / volume


def mean_variance(constants: Constants, slope: Any, taus: Any, volume: Any) -> Any:
    """Return the same on average over that time."""
    import jax.numpy as jnp

    rate = constants.coupling * slope - constants.linear
    x = 2.0 * rate * taus
    near, safe = jnp.abs(x) < _SHORT, jnp.where(jnp.abs(x) < _SHORT, 1.0, x)
    part = jnp.where(near, 0.5 - x / 6.0 + x**2 / 24.0, (1.0 + jnp.expm1(-safe) / safe) / safe)
    return 2.0 * taus * constants.coupling * part / volume


@lru_cache(maxsize=64)
def _powers(family: Family) -> Array | None:
    """Return each feature between the phases as a polynomial of s, (power, feature); None where it is none."""
    from numpy.polynomial import chebyshev

    nodes = np.cos(np.pi * (np.arange(_SERIES) + 0.5) / _SERIES)
    values = family.features(family.middle + family.half * nodes)
    series = chebyshev.chebfit(nodes, values.T, _SERIES - 1)
    kept = np.flatnonzero(np.max(np.abs(series), axis=1) > _ROUND_OFF * np.max(np.abs(series)))
    if kept[-1] > _SERIES - 4:
        return None
    return np.stack([chebyshev.cheb2poly(np.append(row[: kept[-1] + 1], 0.0 * row[:1])) for row in series.T], axis=1)


@lru_cache(maxsize=1)
def _horner() -> Any:
    """Return the map from the coefficients of a polynomial and x to its value, with derivatives of all orders.

    Left to itself JAX differentiates the sum, and what is compiled grows with each order.
    """
    import jax
    import jax.numpy as jnp

    def value(powers: Any, x: Any) -> Any:
        total = 0.0 * x
        for k in range(len(powers) - 1, -1, -1):
            total = total * x + powers[k]
        return total

    def derivative(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (powers, x), (change, motion) = primals, tangents
        slope = powers[1:] * jnp.arange(1.0, len(powers))
        return whole(powers, x), whole(slope, x) * motion + whole(change, x)

    whole = jax.custom_jvp(value)
    whole.defjvp(derivative)
    return whole


def smooth_force(family: Family) -> Any:
    """Return the polynomial of a family's force, beyond a reach by four terms of its series there.

    A function of coefficients, field and reach (in s, 1 at the phases). The family's own force is linear beyond the
    phases, but a fluctuating field is there half of the time, and what it feels on average is the second derivative.
    """
    import jax.numpy as jnp

    powers = _powers(family)
    if powers is None:
        force = differentiable_force(family)
        return lambda coefficients, u, _: force(coefficients, u)
    value = _horner()
    derived = [np.asarray(np.polynomial.polynomial.polyder(powers, n, axis=0)) for n in range(4)]

    def smooth(coefficients: Any, u: Any, reach: Any) -> Any:
        s = (u - family.middle) / family.half
        x = jnp.clip(s, -reach, reach)
        here, *later = (jnp.asarray(part) @ coefficients for part in derived)
        one, two, three = (jnp.where(s < 0.0, value(part, -reach), value(part, reach)) for part in later)
        d = s - x
        return value(here, x) + d * (one + d * (two / 2.0 + d * three / 6.0))

    return smooth


@dataclass(frozen=True)
class LinkedModel(RecordModel):
    """Predict all frames and all gaps at the links; the nuisance is the first field of each segment.

    A segment has ``length`` frame intervals. The predictions are the frames as they are observed, then for each inner
    segment its first field minus where its predecessor ends, which is observed to be zero. Fields and gaps are in
    observed values, but for the optics: in phase values a larger gain would make all gaps smaller.
    """

    length: int = 1
    rounds: ClassVar[bool] = False  # links hold where theta is small far more firmly than frames are observed

    @classmethod
    def of(cls, model: RecordModel, length: int = 1) -> LinkedModel:
        """Return the model of a record cut into segments."""
        return cls(**{item.name: getattr(model, item.name) for item in fields(model)} | {"length": length})

    @property
    def count(self) -> int:
        """The number of segments."""
        return -(-self.frames // self.length)

    def predict(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Return the frames u[t, (z, y,) x], then the gaps."""
        import jax
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        taus, links = constants.taus * joint.get("q", 1.0), constants.links
        sharp = constants._replace(transfer=(), passband=(), squares=())
        forward, backward = jax_transforms(self.cells, self.boundary)

        def pieces(of_intervals: Any) -> Any:
            """Cut what is given for each frame interval; the last segment is filled up."""
            if isinstance(of_intervals, tuple):
                return None
            values = jnp.asarray(of_intervals)
            last = jnp.broadcast_to(values[-1:], (self.count * self.length - len(values), *values.shape[1:]))
            return jnp.concatenate([values, last]).reshape(self.count, self.length, *values.shape[1:])

        def of_piece(driving: Any, variance: Any) -> Constants:
            own = sharp if driving is None else sharp._replace(driving=driving)
            return own if variance is None else own._replace(links=links._replace(variance=variance[0]))

        def run(first: Any, taus: Any, driving: Any, variance: Any) -> tuple[Any, Any]:
            """Return the frames of a piece, then where it ends, and with an exposure its mean in place of the frame."""
            own = of_piece(driving, variance)
            if not links.exposed:
                path = replace(self, frames=len(taus) + 1)._whole(first, None, coefficients, taus, joint, own)
                return path[:-1], path[-1]
            time = jnp.sqrt(24.0 * constants.average) * taus[0]
            parts = jnp.stack([0.5 * time, 0.5 * time, taus[0] - time])
            path = replace(self, frames=4)._whole(first, None, coefficients, parts, joint, own)
            return mean(path[:3], time, own)[None], path[-1]

        def mean(path: Any, time: Any, own: Constants) -> Any:
            """Return the mean of a path over an exposure.

            Of slow modes by Simpson's rule; the mean of a fast one follows from its ends and the force it has felt.
            """
            slope = jnp.maximum(links.usual, 0.0)
            felt = jax.vmap(forward)(self._law(own)(coefficients, path) - slope * path)
            modes, weights = jax.vmap(forward)(path), jnp.array([1.0, 4.0, 1.0]) / 6.0
            x = (constants.coupling * slope - constants.linear) * time
            fast = modes[0] - modes[2] - constants.coupling * time * jnp.tensordot(weights, felt, axes=1)
            return backward(jnp.where(x > 1.0, fast / jnp.maximum(x, 1.0), jnp.tensordot(weights, modes, axes=1)))

        gains, offsets = self._contrasts(nuisance, joint, constants)
        at = slice(None, None, self.length)
        each = pieces(taus), pieces(constants.driving), pieces(links.variance)
        axes = (0, 0, *(None if part is None else 0 for part in each[1:]))
        runs, ends = jax.vmap(run, in_axes=axes)((nuisance - offsets[at]) / gains[at], *each)
        fields = gains * runs.reshape(-1, *self.cells)[: self.frames] + offsets
        gaps = nuisance[1:] - (gains[at][1:] * ends[:-1] + offsets[at][1:])
        if links.exposed:
            after = jax.vmap(forward)(jnp.concatenate([gaps, jnp.zeros_like(gaps[:1])]))
            fields = fields + jax.vmap(backward)(links.follows * after)
        if (image := self._image(joint, constants)) is not None:
            fields = jax.vmap(lambda field: backward(image * forward(field)))(fields)
        return jnp.concatenate([fields, gaps])

    def _image(self, joint: dict[str, Any], constants: Constants) -> Any:
        sharp = isinstance(constants.transfer, tuple) and isinstance(constants.squares, tuple)
        return None if sharp else super()._image(joint, constants)

    def _law(self, constants: Constants) -> Any:
        """Return the mean force of a field that fluctuates within an interval: over a normal distribution around it.

        To the square of its variance, by a Gauss-Hermite quadrature of three points.
        """
        import jax.numpy as jnp

        variance, reach = constants.links.variance, constants.links.reach
        if isinstance(variance, tuple):
            return super()._law(constants)
        force, away = smooth_force(self.family), jnp.sqrt(variance)

        def mean(coefficients: Any, u: Any) -> Any:
            return sum(weight * force(coefficients, u + node * away, reach) for node, weight in HERMITE)

        return mean

    def whiten(self, field: Any, constants: Constants) -> Any:
        """Weight frames, and take the thermal covariance out of gaps, both in units of the camera's noise."""
        import jax
        import jax.numpy as jnp

        links, frames = constants.links, self.coloured(constants.root * field[: self.frames], constants)
        gaps = field[self.frames :]
        if not isinstance(links.rates, tuple):
            forward, backward = jax_transforms(self.cells, self.boundary)
            modes = jax.vmap(forward)(links.trusted * gaps)
            taus = (links.pace * constants.taus).reshape(-1, *[1] * len(self.cells))
            gaps = 0.0 * gaps
            for k in range(links.rates.shape[-1]):
                size = thermal_covariance(constants, links.rates[k], taus, links.volume)
                root = jnp.where(size > 0.0, 1.0 / jnp.sqrt(jnp.where(size > 0.0, size, 1.0)), 0.0)  # 0: conserved
                gaps = gaps + links.shares[k] * jax.vmap(backward)(root * modes)
        return jnp.concatenate([frames, links.camera / links.spread * links.inside * gaps])

    def drawn(self, nuisance: Any, theta: Any, seed: Any, constants: Constants) -> tuple[Any, Any]:
        """Return gaps that thermal noise makes from the given fields on, whitened, in units of their own noise.

        The second value is what the same noise makes of modes of the usual rate: white noise of variance 1, but for
        modes that are conserved.
        """
        import jax
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        gains, offsets = self._contrasts(nuisance, joint, constants)
        fields, sizes = ((nuisance - offsets) / gains)[:-1], constants.links.spread / gains[:-1]
        gaps, even = self._noise(fields, sizes, coefficients, jax.random.key(seed), constants)
        white = self.whiten(jnp.concatenate([jnp.zeros_like(nuisance), gains[:-1] * gaps]), constants)[self.frames :]
        return white / constants.links.camera, even

    def path(self, nuisance: Any, theta: Any, seed: Any, constants: Constants) -> Any:
        """Return fields of all frames that follow the law and thermal noise from the first one on."""
        import jax
        import jax.numpy as jnp

        joint, coefficients = self.split(theta)
        gains, offsets = self._contrasts(nuisance, joint, constants)
        pair, links = replace(self, frames=2), constants.links
        sharp = constants._replace(transfer=(), passband=(), squares=())
        given = {"taus": constants.taus, "driving": constants.driving, "variance": links.variance}
        given = {name: part for name, part in given.items() if not isinstance(part, tuple)}

        def interval(field: Any, at: Any) -> tuple[Any, Any]:
            own, size, key = at
            here = sharp._replace(links=links._replace(variance=own.pop("variance", ())))
            here = here._replace(**{name: part[None] for name, part in own.items()})
            end = pair._whole(field, None, coefficients, here.taus * joint.get("q", 1.0), joint, here)[-1]
            after = end + self._noise(field[None], size, coefficients, key, here)[0][0]
            return after, after

        first, keys = ((nuisance - offsets) / gains)[0], jax.random.split(jax.random.key(seed), self.frames - 1)
        _, later = jax.lax.scan(interval, first, (given, links.spread / gains[:-1], keys))
        return gains * jnp.concatenate([first[None], later]) + offsets

    def _contrasts(self, nuisance: Any, joint: dict[str, Any], constants: Constants) -> tuple[Any, Any]:
        """Return gain and offset of each frame, 1 and 0 where the values are exact."""
        import jax.numpy as jnp

        gains, offsets = self._contrast(nuisance, joint, constants)
        ones = jnp.ones((self.frames, *[1] * len(self.cells)))
        return (ones, 0.0 * ones) if gains is None else (gains * ones, offsets + 0.0 * ones)

    def _noise(self, fields: Any, sizes: Any, coefficients: Any, key: Any, constants: Constants) -> tuple[Any, Any]:
        """Return what thermal noise makes of each frame interval, from the fields before it on, in phase values.

        The second value is what the same noise makes of modes of the usual rate, over its standard deviation. Both by
        ETDRK2, of which the one with noise follows the law and the one without it the mean force, as predictions do.
        """
        import jax
        import jax.numpy as jnp

        links, law, steps = constants.links, smooth_force(self.family), _DRAWN * self.substeps
        forward, backward = jax_transforms(self.cells, self.boundary)
        m = jnp.maximum(links.usual, 0.0)
        h = (links.pace * constants.taus / steps).reshape(-1, *[1] * len(self.cells))
        weights, drive = kick_weights(h * (constants.linear - constants.coupling * m)), -h * constants.coupling
        spread, mean = jnp.sqrt(-drive * weights.noise / links.volume), self._law(constants)

        def push(force: Any) -> Any:
            def of(modes: Any) -> Any:
                u = jax.vmap(backward)(modes)
                return jax.vmap(forward)(force(u) - m * u)

            return of

        noisy, calm = push(lambda u: law(coefficients, u, links.reach)), push(lambda u: mean(coefficients, u))

        def step(state: Any, key: Any) -> tuple[Any, None]:
            noise = spread * jax.vmap(forward)(jax.random.normal(key, fields.shape))
            with_noise, without, even = state
            with_noise = kicked(with_noise, sizes * noise, drive, weights, noisy, noisy)
            without = kicked(without, 0.0, drive, weights, calm, calm)
            return (with_noise, without, weights.decay * even + noise), None

        start = jax.vmap(forward)(fields)
        (ends, means, even), _ = jax.lax.scan(step, (start, start, 0.0 * start), jax.random.split(key, steps))
        whole = thermal_covariance(constants, m, h * steps, links.volume)
        even = jnp.where(whole > 0.0, even / jnp.sqrt(jnp.where(whole > 0.0, whole, 1.0)), 0.0)
        return jax.vmap(backward)(ends - means), jax.vmap(backward)(even)

    def coloured(self, frames: Any, constants: Constants) -> Any:
        """Return frames whose modes have the camera's part of their noise left; values that count nothing stay so."""
        import jax

        if not constants.links.coloured:
            return frames
        forward, backward = jax_transforms(self.cells, self.boundary)
        modes = constants.links.colour * jax.vmap(forward)(frames)
        return (constants.root > 0.0) * jax.vmap(backward)(modes)

    def uniform(self, theta: Any, constants: Constants) -> tuple[Any, Any, Any, Any]:
        """Return decay between links, what frames show of their field and of the next one, and what a gap counts.

        Of each mode, where the rate is the usual one all over, in units of the camera's noise: the middle two are
        amplitudes, (segments, modes), of a segment those of all its frames together; the last one is a square.
        """
        import jax.numpy as jnp

        links, image = constants.links, self._image(self.split(theta)[0], constants)
        rate, tau = constants.coupling * links.usual - constants.linear, jnp.mean(constants.taus) * links.pace
        decay = jnp.exp(-rate * tau)
        image = links.colour * (1.0 if image is None else image) * jnp.ones((self.count, *decay.shape))
        here, later = image * jnp.sqrt(sum(decay ** (2 * k) for k in range(self.length))), 0.0 * image
        if links.exposed:
            follows = jnp.append(jnp.ones(self.count - 1), 0.0).reshape(-1, *[1] * decay.ndim) * links.follows
            here, later = image * (links.left - follows * decay), image * follows
        size = 1.0 + 0.0 * decay
        if not isinstance(links.rates, tuple):
            size = thermal_covariance(constants, links.usual, tau, links.volume)
        stiff = jnp.where(size > 0.0, 1.0 / jnp.where(size > 0.0, size, 1.0), 0.0) * jnp.ones_like(decay)
        return decay**self.length, here, later, (links.camera / links.spread) ** 2 * stiff

    def uniform_rest(self, theta: Any, noise: Any, constants: Constants) -> Any:
        """Return what the fields of segments of one interval would leave of noise where the rate is the usual one."""
        import jax
        import jax.numpy as jnp

        forward, backward = jax_transforms(self.cells, self.boundary)
        decay, here, later, stiff = self.uniform(theta, constants)

        def push(fields: Any) -> Any:
            modes = jax.vmap(forward)(fields)
            seen = here * modes + later * jnp.roll(modes, -1, axis=0)
            return jax.vmap(backward)(jnp.concatenate([seen, jnp.sqrt(stiff) * (modes[1:] - decay * modes[:-1])]))

        pull = jax.linear_transpose(push, noise[: self.frames])
        return noise - push(self.preconditioner(None, theta, constants)(pull(noise)[0]))

    def preconditioner(self, nuisance: Any, theta: Any, constants: Constants) -> Any:
        """Solve the linear problem of a uniform rate: tridiagonal in time, mode by mode."""
        import jax
        import jax.numpy as jnp

        del nuisance
        forward, backward = jax_transforms(self.cells, self.boundary)
        decay, here, later, stiff = self.uniform(theta, constants)
        weight, none = jnp.mean(jnp.asarray(constants.root) ** 2), jnp.zeros_like(here[:1])
        linked = jnp.ones_like(here[1:]) * stiff
        diagonal = weight * (here**2 + jnp.concatenate([none, later[:-1] ** 2]))
        diagonal += jnp.concatenate([linked * decay**2, none]) + jnp.concatenate([none, linked])
        diagonal = jnp.maximum(diagonal, _FAINT * jnp.max(diagonal))
        after = jnp.concatenate([weight * (here * later)[:-1] - linked * decay, none])
        before = jnp.concatenate([none, after[:-1]])

        def down(carry: Any, row: Any) -> Any:
            before, own, after, right = row
            pivot = own - before * carry[0]
            carry = after / pivot, (right - before * carry[1]) / pivot
            return carry, carry

        def up(later: Any, row: Any) -> Any:
            now = row[1] - row[0] * later
            return now, now

        def apply(gradient: Any) -> Any:
            modes = jax.vmap(forward)(gradient)
            start = none[0], jnp.zeros_like(modes[0])
            _, rows = jax.lax.scan(down, start, (before, diagonal, after, modes))
            return jax.vmap(backward)(jax.lax.scan(up, start[1], rows, reverse=True)[1])

        return apply


def fit_by_segments(
    record: Record, whole: tuple[Any, Any], data: Array, starts: Array, lines: Array, growth: float,
    watch: Watch | None,
) -> Iteration:  # fmt: skip
    """Fit segments whose links grow stiffer, then the whole record from there, along lines of theta.

    `whole` is the model of the whole record with its constants, `growth` the logarithm by which an error of the initial
    field may grow over it.
    """
    length = max(2, int((record.frames - 1) / (growth / _SEGMENT)))
    model = LinkedModel.of(whole[0], length)
    gaps = np.zeros((len(data), model.count - 1, *data.shape[2:]))
    extended, nuisance, theta = np.concatenate([data, gaps], axis=1), data[:, ::length], starts
    steps: list[list[Step]] = [[] for _ in data]
    apart: Array | None = None
    for link in _LINKS:
        free = data[0].size - data[0, 0].size * (model.count if apart is None else 1)
        stage = iterate(
            model, whole[1]._replace(links=Links.even(len(data), link)), extended, nuisance, theta, freedom=free,
            lines=lines, watch=watch, rule=_FIRST_STAGE if apart is None else _LATER_STAGE,
            stage=f"segments, links {link:g}",
        )  # fmt: skip
        nuisance, theta = stage.nuisance, stage.theta
        steps = [old + new for old, new in zip(steps, stage.steps, strict=True)]
        if apart is None:
            apart = np.sqrt([taken[-1].after / free if taken else np.nan for taken in stage.steps])
    free = data[0].size - data[0, 0].size - len(lines)
    last = iterate(*whole, data, nuisance[:, 0], theta, freedom=free, lines=lines, watch=watch, rule=_WHOLE)
    assert apart is not None
    last.steps = [old + new for old, new in zip(steps, last.steps, strict=True)]
    last.segments = [model.count] * len(data)
    last.status = [
        status if status.converged else replace(status, segments=model.count, apart=float(noise))
        for status, noise in zip(last.status, apart, strict=True)
    ]
    return last
