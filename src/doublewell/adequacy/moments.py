"""Moments: whether weak moments are those of the model plus white noise, and which term the model lacks if not.

Moments of one short support are read on a lattice of centres. What an alternative adds to a row is a column z, made of
the smoothed field and its derivatives; zp is what the columns of the law cannot imitate of it, r what the law leaves of
the target. Under the model the score <zp, r> has a variance and, because noise is in both, a mean. The variance is
noise^2 |w|^2 with w the derivative of the score by the pixels (the same taps, transposed), exact for white noise. The
mean is half the change of the score when noise of the same size is added and when it is taken off: the first order
cancels. What the law and the best alternative leave is compared with the power of noise that went through the same taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.adequacy.statistics import TOLERANCE, Adequacy, ScoreTest, holm, significant, verdict_of
from doublewell.hints import Array, Bools
from doublewell.law import Law
from doublewell.record import Cells, Record
from doublewell.weak.weights import Support, axis_weights, half_cells, uneven_weights

_VALUES = 2**17  # of a record that are read: of a larger one, the part with most interface
_FRAMES = 2  # half-width along time: short ones reach the ends of the record, and the columns are smooth anyway
_LEAST = 300  # centres below which nothing is tested: 30 columns or so
_PROBES, _PAIRS = 8, 2  # fields of noise that give the power of the residual, and of them those for the mean of scores
_REACH = 1.96  # standard deviations of a 95 % band
_SLOW = 0.01  # least motion, over the Laplacian, that a deviation is measured against
_DARK = 0.02  # of the range of grey values: no logarithm of less
_NEAR, _PURE = 0.8, 0.9  # |u| at an interface, and in the bulk
_ALIKE = 0.3  # excess in the bulk over that of all centres, of a random force
_STEP = 1e-2  # of u, of the derivatives of a force
_NONE = 1e-6  # of a column: less is what the law can imitate


class MomentTests(NamedTuple):
    """The tests of weak moments, and the relative standard error of q where it is one of the unknowns."""

    adequacy: Adequacy
    q_error: float | None


def check_moments(
    record: Record, law: Law, support: Support, noise: float, q: float, *, q_free: bool = False
) -> MomentTests | None:
    """Test the moments of a record of the phases -1 and +1 for what u_t = q (Laplacian u - G(u)) lacks.

    `support` is a short one of the fit, `noise` the surveyed standard deviation, taken to be white. A test counts when
    it is significant after Holm's correction and its effect on the law or its part of the motion is more than 1 %. Of a
    large record the part with most interface is tested. None where too few supports are complete.
    """
    frames, cells = _part(record)
    lattice = Lattice.of(Support(min(support.frames, _FRAMES), support.length), record, frames, cells)
    if lattice is None:
        return None
    reader, u = _Reader(lattice, law, q, q_free, _whole(record, cells)), record.slab(*frames, cells)
    keep = lattice.complete(record.observed(*frames, cells))
    if np.count_nonzero(keep) < _LEAST:
        return None
    rng, noise = np.random.default_rng(0), max(noise, 1e-12)  # always the same
    probes = noise * rng.standard_normal((_PROBES, *u.shape))
    rows = reader.rows(u, keep)
    means = {name: np.zeros(z.shape[1]) for name, z in rows.others.items()}
    for probe in probes[:_PAIRS]:
        for sign in (1.0, -1.0):
            for name, score in reader.rows(u + sign * probe, keep).scores.items():
                means[name] += (score - rows.scores[name]) / (2.0 * _PAIRS)
    inverse = np.linalg.pinv(rows.law)
    stacked = np.concatenate([inverse, *(z.T for z in rows.others.values())])
    spread = np.zeros((len(stacked), keep.size))
    spread[:, keep] = stacked
    slope = _derivatives(law, u)[1]
    weights = lattice.transposed(spread.reshape(-1, *lattice.shape), 1.0 / q, slope).reshape(len(stacked), -1)
    covariance = noise**2 * weights @ weights.T
    scale = _Scale.of(rows, lattice, law, noise, q)
    band = max(TOLERANCE, scale.band(covariance[: law.family.size, : law.family.size]))
    tests, first = [], len(inverse)
    for name, z in rows.others.items():
        own, first = covariance[first : first + z.shape[1], first : first + z.shape[1]], first + z.shape[1]
        tests.append(_tested(name, z, rows, rows.scores[name] - means[name], own, inverse, scale))
    tests = holm([test for test in tests if test is not None])
    best = next((rows.others[t.name] for t in significant(tests)), np.zeros((len(rows.left), 0)))
    noises = lattice.linear(probes, 1.0 / q, slope).reshape(_PROBES, -1)[:, keep]
    tests = holm([*tests, _unexplained(rows, noises, best, scale)])
    error = None
    if q_free:
        slowness = float((inverse @ rows.target)[-1])
        error = float(np.sqrt(covariance[len(inverse) - 1, len(inverse) - 1]) / abs(slowness))
    return MomentTests(Adequacy(tests, verdict_of(tests, band), band=band), error)


def _part(record: Record) -> tuple[tuple[int, int], Cells]:
    """Return the frames and cells that are tested: all, or a box of cells where most of the interface is."""
    fraction = (_VALUES / prod(record.shape)) ** (1.0 / len(record.mesh))
    if fraction >= 1.0:
        return (0, record.frames), tuple((0, n) for n in record.mesh)
    from scipy.ndimage import uniform_filter

    size = [min(n, max(32, int(fraction * n))) for n in record.mesh]
    middle = record.frames // 2
    near = (np.abs(record.slab(middle, middle + 1)[0]) < _NEAR).astype(float)
    inner = tuple(slice(k // 2, n - k + k // 2 + 1) for k, n in zip(size, record.mesh, strict=True))
    share = uniform_filter(near, size)[inner]
    corner = np.unravel_index(int(np.argmax(share)), share.shape)
    length = max(4 * _FRAMES + 5, _VALUES // prod(size))
    start = max(0, (record.frames - length) // 2)
    box = tuple((int(c), int(c) + k) for c, k in zip(corner, size, strict=True))
    return (start, min(record.frames, start + length)), box


def _whole(record: Record, cells: Cells) -> bool:
    return record.boundary != "open" and cells == tuple((0, n) for n in record.mesh)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Centres of a support, and its taps along t and each space axis as matrices [centre, cell].

    Kinds of taps are 0 for the value, 1 and 2 for first and second derivatives. ``times`` are those of the centres, in
    [0, 1] over ``duration``.
    """

    taps: tuple[tuple[Array, ...], ...]
    times: Array
    duration: float

    @classmethod
    def of(cls, support: Support, record: Record, frames: tuple[int, int], cells: Cells) -> Lattice | None:
        """Return the lattice, centres half a half-width apart; None where nothing fits."""
        times, reach = record.times[slice(*frames)], support.reach
        sizes = [b - a for a, b in cells]
        halves = [half_cells(support.length / h) + 2 for h in record.dx]
        if len(times) <= 2 * reach or any(n <= 2 * k for n, k in zip(sizes, halves, strict=True)):
            return None
        rows = uneven_weights(support.frames, sliding_window_view(times, 2 * reach + 1))
        taps = [tuple(_matrix(w, len(times), reach)[:: min(support.frames, 2)] for w in rows)]
        for n, h in zip(sizes, record.dx, strict=True):
            along, step = axis_weights(support.length / h, h), max(1, int(support.length / h / 2))
            each = [np.tile(w, (n - 2 * along.half, 1)) for w in (along.value, along.first, along.second)]
            taps.append(tuple(_matrix(w, n, along.half)[::step] for w in each))
        duration = float(times[-1] - times[0])
        return cls(tuple(taps), (taps[0][0] @ times - times[0]) / duration, duration)

    @property
    def shape(self) -> tuple[int, ...]:
        """Centres along t and each space axis."""
        return tuple(len(each[0]) for each in self.taps)

    def smooth(self, fields: Array, kinds: Sequence[int], *, back: bool = False) -> Array:
        """Apply taps of a kind along each of the last axes; with `back` transposed, from centres to cells."""
        for axis in reversed(range(len(kinds))) if back else range(len(kinds)):
            place = axis - len(kinds)
            fields = np.tensordot(fields, self.taps[axis][kinds[axis]], (place, 0 if back else 1))
            fields = np.moveaxis(fields, -1, place)
        return fields

    def linear(self, fields: Array, rate: float, slope: Array) -> Array:
        """Return how Lap S[u] - rate D S[u] - S[G(u)] moves with the field, `slope` being G'(u)."""
        return (
            self.sum(fields, self.bends())
            - rate * self.smooth(fields, self.kinds(1))
            - self.smooth(slope * fields, self.kinds())
        )

    def transposed(self, rows: Array, rate: float, slope: Array) -> Array:
        """Return the transpose of ``linear``: the weight of each value in sums over rows."""
        bends, value = self.sum(rows, self.bends(), back=True), self.smooth(rows, self.kinds(), back=True)
        return np.asarray(bends - rate * self.smooth(rows, self.kinds(1), back=True) - slope * value)

    def sum(self, fields: Array, terms: Sequence[tuple[int, ...]], *, back: bool = False) -> Array:
        """Return the sum of several smoothings."""
        return np.asarray(sum(self.smooth(fields, kinds, back=back) for kinds in terms))

    def kinds(self, time: int = 0, *axes: int) -> tuple[int, ...]:
        """Return kinds of taps: derivatives in time, and one along each of the space axes named."""
        return (time, *(axes.count(a) for a in range(len(self.taps) - 1)))

    def bends(self, time: int = 0) -> list[tuple[int, ...]]:
        """Return the terms of the Laplacian."""
        return [self.kinds(time, a, a) for a in range(len(self.taps) - 1)]

    def complete(self, observed: Bools) -> Bools:
        """Return the centres, flat, whose supports hold no missing value."""
        boxes = tuple((sum((w != 0.0).astype(float) for w in each),) for each in self.taps)
        missing = Lattice(boxes, self.times, self.duration).smooth(1.0 - observed, self.kinds())
        return np.asarray(missing.ravel() == 0.0)


def _matrix(rows: Array, cells: int, first: int) -> Array:
    """Put the taps of the centres first, first + 1, ... into the rows of a matrix."""
    half, matrix = rows.shape[1] // 2, np.zeros((len(rows), cells))
    for k, row in enumerate(rows):
        matrix[k, first + k - half : first + k + half + 1] = row
    return matrix


class _Rows(NamedTuple):
    """Rows at one field: columns of the law, the target and what is left of it, and of each alternative what is left.

    ``given`` are the alternatives before, ``motion`` is u_t / q, ``u`` the smoothed field.
    """

    law: Array
    target: Array
    left: Array
    given: dict[str, Array]
    others: dict[str, Array]
    scores: dict[str, Array]
    motion: Array
    u: Array


@dataclass(frozen=True, eq=False)
class _Reader:
    """What makes rows of a field: a lattice, the law that alternatives are taken at, q, and whether it is unknown."""

    lattice: Lattice
    law: Law
    q: float
    q_free: bool
    whole: bool

    def rows(self, u: Array, keep: Bools) -> _Rows:
        """Return the rows of the centres to keep."""
        lattice, axes, rate = self.lattice, range(u.ndim - 1), 1.0 / self.q

        def read(field: Array, time: int = 0, *along: int) -> Array:
            smooth = lattice.smooth(field, lattice.kinds(time, *along))
            return np.asarray(smooth.reshape(*field.shape[: -u.ndim], -1)[..., keep])

        features = np.stack([*self.law.family.features(u)])
        law, bends = read(features).T, {(a, b): read(u, 0, a, b) for a in axes for b in axes if a <= b}
        motion, target = rate * read(u, 1), np.asarray(sum(bends[a, a] for a in axes))
        law, target = (np.column_stack([law, self.q * motion]), target) if self.q_free else (law, target - motion)
        v, slopes, lap_motion = read(u), [read(u, 0, a) for a in axes], rate * sum(read(u, 1, a, a) for a in axes)
        mean = np.tensordot(self.law.coefficients, features.mean(axis=tuple(range(2, u.ndim + 1))), 1)
        t, shape = lattice.times, lattice.shape
        time, mass = (
            np.broadcast_to(f.reshape(-1, *(1,) * len(axes)), shape).ravel()[keep]
            for f in (t, lattice.taps[0][0] @ mean)
        )
        given = {
            k: np.column_stack(z) for k, z in self._columns(v, slopes, bends, motion, lap_motion, time, mass).items()
        }
        given["mobility(x)"] = np.column_stack([*(-wave[keep] * motion for wave in _waves(shape)), -motion])
        given["halves"] = np.where(time > np.median(t), 0.5, -0.5)[:, None] * law
        basis = np.linalg.qr(law)[0]
        others = {k: z - basis @ (basis.T @ z) for k, z in given.items()}
        left = target - basis @ (basis.T @ target)
        return _Rows(law, target, left, given, others, {k: z.T @ left for k, z in others.items()}, motion, v)

    def _columns(
        self, u: Array, slopes: list[Array], bends: dict[tuple[int, int], Array], motion: Array, lap_motion: Array,
        time: Array, mass: Array,
    ) -> dict[str, list[Array]]:  # fmt: skip
        """Return what each alternative adds to Lap u - u_t / q, which is G(u) under the model, at the centres."""
        force, slope, bend = _derivatives(self.law, u)
        steep = np.sum(np.square(slopes), axis=0)
        grey = np.maximum(0.5 + 0.5 * u, _DARK)
        bright = 0.5 / grey * steep + (np.log(grey) + 1.0) * force - 2.0 * grey * np.log(grey) * slope
        contrast = force - u * slope  # of values (1 + a) u
        found = {
            "q": [-motion],
            "advection": [s / self.q for s in slopes],
            "tilt": [np.ones_like(u)],
            "mass": [-mass],
            "force(t)": [time * force],
            "mobility(u)": [-u * motion, -(u**2) * motion, -motion],
            "conserved": [lap_motion, -motion],
            "time step": [slope * motion - lap_motion],
            "anisotropy": [-bends[pair] for pair in sorted(bends, key=lambda pair: pair[0] == pair[1])],
            "gain": [contrast],
            "gain drift": [time * contrast - u / (self.q * self.lattice.duration)],
            "offset": [-slope],
            "response": [bright],
            "blur": [bend * steep],
        }
        unasked = {"q"} if self.q_free else set()
        unasked |= (set() if self.whole else {"mass"}) | (set() if len(slopes) > 1 else {"anisotropy"})
        return {name: columns for name, columns in found.items() if name not in unasked}


def _derivatives(law: Law, u: Array) -> tuple[Array, Array, Array]:
    """Return the force and its first two derivatives."""
    low, here, high = (np.asarray(law.force(u + k * _STEP)) for k in (-1, 0, 1))
    return here, (high - low) / (2.0 * _STEP), (high - 2.0 * here + low) / _STEP**2


def _waves(shape: tuple[int, ...]) -> list[Array]:
    """Return the lowest cosine and sine along each space axis of a lattice, flat."""
    waves = []
    for axis in range(1, len(shape)):
        x = 2.0 * np.pi * (np.arange(shape[axis]) + 0.5) / shape[axis]
        for wave in (np.cos(x), np.sin(x)):
            waves.append(np.broadcast_to(wave.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape))
    return [wave.ravel() for wave in waves]


@dataclass(frozen=True, eq=False)
class _Scale:
    """What a test is weighed against: the root of the squared motion, less its noise, and the force."""

    motion: float
    features: Array
    force: float

    @classmethod
    def of(cls, rows: _Rows, lattice: Lattice, law: Law, noise: float, q: float) -> _Scale:
        gain = prod(float(np.mean(np.sum(taps[k] ** 2, axis=1))) for taps, k in zip(lattice.taps, lattice.kinds(1)))
        moved = float(np.sum(rows.motion**2)) - len(rows.left) * (noise / q) ** 2 * gain
        least = _SLOW * float(
            np.linalg.norm(rows.target + (0.0 if rows.law.shape[1] > law.family.size else rows.motion))
        )
        features = np.stack([*law.family.features(np.linspace(*law.phases, 101))])
        size = float(np.linalg.norm(np.linalg.lstsq(rows.law, rows.target, rcond=None)[0][: len(features)] @ features))
        return cls(max(np.sqrt(max(moved, 0.0)), least), features, size or 1.0)

    def effect(self, shift: Array) -> float:
        """Return the change of the force, relative, root mean square."""
        return float(np.linalg.norm(shift[: len(self.features)] @ self.features) / self.force)

    def band(self, covariance: Array) -> float:
        """Return half the width of the 95 % band of the force that noise gives the moments, relative."""
        return float(_REACH * np.sqrt(np.sum(self.features * (covariance @ self.features))) / self.force)


def _tested(
    name: str, z: Array, rows: _Rows, score: Array, covariance: Array, inverse: Array, scale: _Scale
) -> ScoreTest | None:
    """Return the test of an alternative by its score less the mean; None where the law imitates all of it."""
    from scipy.special import chdtrc

    if np.linalg.norm(z) < _NONE * np.linalg.norm(rows.given[name]):
        return None
    information = np.linalg.pinv(z.T @ z, rcond=1e-10, hermitian=True)
    fitted, count = information @ score, z.shape[1]
    chi2 = float(score @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ score)
    errors = np.sqrt(np.diag(information @ covariance @ information))
    values = fitted
    if name == "q" and fitted[0] != 1.0:  # the column is that of 1/q
        values, errors = fitted / (1.0 - fitted), errors / (1.0 - fitted) ** 2
    statistic = float(np.sign(values[0]) * np.sqrt(chi2)) if count == 1 else chi2
    return ScoreTest(
        name, statistic, count, float(chdtrc(count, chi2)), 1.0, tuple(values.tolist()), tuple(errors.tolist()), None,
        drop=chi2, effect=scale.effect(inverse @ (rows.given[name] @ fitted)),
        deviation=float(np.linalg.norm(z @ fitted)) / scale.motion,
    )  # fmt: skip


def _unexplained(rows: _Rows, noises: Array, best: Array, scale: _Scale) -> ScoreTest:
    """Test whether what the law and the best alternative leave is more than noise, and whether it is so in the bulk."""
    from scipy.special import fdtrc

    basis = np.linalg.qr(np.column_stack([rows.law, best]))[0]
    left, noise = rows.left - basis @ (basis.T @ rows.left), noises - (noises @ basis) @ basis.T
    gram = noise @ noise.T
    power, pairs = float(np.mean(np.diag(gram))), gram[np.triu_indices(len(gram), 1)]
    freedom = power**2 / float(np.mean(pairs**2))
    ratio = float(left @ left) / power
    bulk = np.abs(rows.u) > _PURE
    apart = float(np.sum(left[bulk] ** 2)) / max(float(np.mean(np.sum(noise[:, bulk] ** 2, axis=1))), 1e-300)
    random = np.mean(bulk) > 0.05 and apart - 1.0 > _ALIKE * (ratio - 1.0)
    deviation = np.sqrt(max(ratio - 1.0, 0.0) * power) / scale.motion
    p, size = float(fdtrc(freedom, freedom * len(noise), ratio)), float(np.sqrt(2.0 / freedom))
    return ScoreTest(
        "thermal" if random else "unknown", (ratio - 1.0) / size, 1, p, 1.0, (ratio - 1.0,), (size,), None,
        drop=max(ratio - 1.0, 0.0) * freedom, deviation=float(deviation),
    )  # fmt: skip
