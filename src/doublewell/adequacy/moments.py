"""Moments: whether weak moments are those of the model plus white noise, and which term is missing in the model if not.

Moments of one short support are read on a lattice of centres, y = A g under the model. What an alternative adds to
a row is a column z, made of the smoothed field and its derivatives. All sums of products of A, z and y hold noise
twice: its mean is the mean change of these sums when noise of the same size is added and when it is taken off, and is
subtracted. With the law g that they then give, the score <zp, y - A g>, zp = z less what A can imitate of it, is zero
on average. Its variance is noise^2 |w|^2 with w the derivative of the score by the pixels (the same taps, transposed),
exact for white noise, and what the products add. What the law and the best alternative leave is compared with noise
that went through the same taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.adequacy.statistics import REACH, TOLERANCE, Adequacy, ScoreTest, holm, significant, verdict_of
from doublewell.hints import Array, Bools
from doublewell.law import Family, Law
from doublewell.record import Cells, Record
from doublewell.weak.weights import Support, axis_weights, half_cells, uneven_weights

_VALUES = 2**16  # of a record that are read: of a larger one, the part with most interface
_SEARCHED = 2**22  # cells in the middle of the picture that are searched for it
_FRAMES = 2  # half-width along time: short ones reach the ends of the record, and the columns are smooth anyway
_LEAST = 300  # centres below which nothing is tested: 30 columns or so
_PROBES, _PAIRS = 8, 4  # fields of noise that give the power of the residual, and of them those for the mean of scores
_SLOW = 0.01  # least motion, over the Laplacian, that a deviation is measured against
_DARK = 0.02  # of the range of grey values: no logarithm of less
_NEAR, _PURE = 0.8, 0.9  # |u| at an interface, and in the bulk
_MOST = 0.95  # of the square of a direction of the law that may be noise
_ALIKE = 0.3  # excess in the bulk over that of all centres, of a random force
_FEW = 0.05  # of the centres: a smaller bulk determines nothing
_STEP, _KINK = 1e-2, 1e-3  # of u: steps of the derivatives of a force, and of its bend at a phase
_NONE = 1e-6  # of a column: less is what the law can imitate


class MomentTests(NamedTuple):
    """The tests of weak moments, and the relative standard error of q where it is one of the unknowns."""

    adequacy: Adequacy
    q_error: float | None


def check_moments(
    record: Record, law: Law, support: Support, noise: float, q: float, *, q_free: bool = False
) -> MomentTests | None:
    """Test the moments of a record of the phases -1 and +1 for terms that u_t = q (Laplacian u - G(u)) is missing.

    `support` is a short one of the fit, `noise` the surveyed standard deviation, taken to be white. A test counts when
    it is significant after Holm's correction and its effect on the law or its part of the motion is more than 1 %. Of a
    large record the part with most interface is tested. None where too few supports are complete, or all is noise.
    """
    frames, cells = _part(record)
    lattice = Lattice.of(Support(min(support.frames, _FRAMES), support.length), record, frames, cells)
    if lattice is None:
        return None
    u, keep = record.slab(*frames, cells), lattice.complete(record.observed(*frames, cells))
    whole = record.boundary != "open" and cells == tuple((0, n) for n in record.mesh)
    if np.count_nonzero(keep) < _LEAST:
        return None
    rng, noise = np.random.default_rng(0), max(noise, 1e-12)  # always the same
    probes = noise * rng.standard_normal((_PROBES, *u.shape))
    read = partial(_read, lattice, law, q, q_free, whole, keep)
    rows, more = read(u, noise), np.sqrt(2.0) * noise
    pairs = [[read(u + d, more).gram for d in (probe, -probe)] for probe in probes[:_PAIRS]]
    excess, p = np.mean(pairs, axis=1) - rows.gram, rows.law.shape[1]
    noisy = np.linalg.eigvals(np.linalg.solve(rows.gram[:p, :p], np.mean(excess, axis=0)[:p, :p]))
    if not np.max(np.abs(noisy)) < _MOST:
        return None
    gram = rows.gram - np.mean(excess, axis=0)
    solved = np.linalg.solve(gram[:p, :p], gram[:p])  # of the law and of what it can imitate of each alternative
    left = rows.every[:, p:] - rows.law @ solved[:, p:]
    scores = (gram[p:] - gram[p:, :p] @ solved)[:-1, -1]
    turn = np.vstack([-solved[:, p:], np.eye(left.shape[1])])  # from all columns to what is left of those after the law
    spread = np.var([(turn.T @ each @ turn)[:-1, -1] for each in excess], axis=0, ddof=1) * (1.0 + 1.0 / _PAIRS)
    stacked = np.zeros((p + left.shape[1] - 1, keep.size), np.float32)
    stacked[:, keep] = np.vstack([np.linalg.pinv(rows.law), left[:, :-1].T])
    slope = _derivatives(law, u)[1]
    weights = lattice.transposed(stacked.reshape(-1, *lattice.shape), 1.0 / q, slope).reshape(len(stacked), -1)
    covariance = noise**2 * (weights @ weights.T).astype(np.float64)
    covariance[p:, p:] += np.diag(spread)  # of what noise does twice
    scales = _Scale.of(rows, lattice, law, solved[:, -1], noise, q)
    band = max(TOLERANCE, scales.band(covariance[: law.family.size, : law.family.size]))
    tests = []
    for name, part in rows.others.items():
        own = covariance[p + part.start : p + part.stop, p + part.start : p + part.stop]
        if np.linalg.norm(left[:, part]) > _NONE * np.linalg.norm(rows.every[:, p:][:, part]):
            tests.append(_tested(name, left[:, part], scores[part], own, solved[:, p:][:, part], scales))
    adjusted, rest = holm(tests), left[:, -1]
    if best := significant(adjusted):
        rest = rest - left[:, rows.others[best[0].name]] @ np.linalg.pinv(left[:, rows.others[best[0].name]]) @ rest
    noises = lattice.linear(probes, 1.0 / q, slope).reshape(_PROBES, -1)[:, keep]
    unknown = _unexplained(rest, noises, rows.u, scales)
    if best and unknown.name == "unknown" and unknown.deviation > best[0].deviation:  # that cause is the smaller part
        unknown = replace(unknown, drop=best[0].drop + unknown.drop)
    adjusted = holm([*tests, unknown])
    error = float(np.sqrt(covariance[p - 1, p - 1]) / abs(solved[p - 1, -1])) if q_free else None
    return MomentTests(Adequacy(adjusted, verdict_of(adjusted, band), band=band), error)


def _part(record: Record) -> tuple[tuple[int, int], Cells]:
    """Return the frames and cells that are tested: all, or a box of cells where most of the interface is."""
    fraction = (_VALUES / prod(record.shape)) ** (1.0 / len(record.mesh))
    if fraction >= 1.0:
        return (0, record.frames), tuple((0, n) for n in record.mesh)
    from scipy.ndimage import uniform_filter

    size = [min(n, max(32, int(fraction * n))) for n in record.mesh]
    middle = record.frames // 2
    most = [max(k, min(n, int(_SEARCHED ** (1.0 / len(size))))) for k, n in zip(size, record.mesh, strict=True)]
    low = [(n - m) // 2 for n, m in zip(record.mesh, most, strict=True)]
    around = tuple((a, a + m) for a, m in zip(low, most, strict=True))
    near = (np.abs(record.slab(middle, middle + 1, around)[0]) < _NEAR).astype(float)
    inner = tuple(slice(k // 2, m - k + k // 2 + 1) for k, m in zip(size, most, strict=True))
    fraction = uniform_filter(near, size)[inner]
    corner = np.add(low, np.unravel_index(int(np.argmax(fraction)), fraction.shape))
    length = max(4 * _FRAMES + 5, _VALUES // prod(size))
    start = max(0, (record.frames - length) // 2)
    box = tuple((int(c), int(c) + k) for c, k in zip(corner, size, strict=True))
    return (start, min(record.frames, start + length)), box


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

    def smooth(self, fields: Array, kinds: Sequence[int], *, back: bool = False, first: int = 0) -> Array:
        """Apply taps of a kind along each of the last axes, from axis `first` on; with `back` from centres to cells."""
        for axis in reversed(range(first, len(kinds))) if back else range(first, len(kinds)):
            taps, place = self.taps[axis][kinds[axis]], fields.ndim + axis - len(kinds)
            taps = taps.T if back else taps
            before, after = fields.shape[:place], fields.shape[place + 1 :]
            lines = fields.reshape(prod(before), taps.shape[1], prod(after))
            fields = (taps.astype(fields.dtype) @ lines).reshape(*before, len(taps), *after)
        return fields

    def linear(self, fields: Array, rate: float, slope: Array) -> Array:
        """Return how Lap S[u] - rate D S[u] - S[G(u)] moves with the field, `slope` being G'(u)."""
        bends = sum(self.smooth(fields, kinds) for kinds in self.bends())
        moved = rate * self.smooth(fields, self.kinds(1)) + self.smooth(slope * fields, self.kinds())
        return np.asarray(bends - moved)

    def transposed(self, rows: Array, rate: float, slope: Array) -> Array:
        """Return the transpose of ``linear``: the weight of each value in sums over rows."""
        value = self.smooth(rows, self.kinds(), back=True, first=1)
        bends = sum(self.smooth(rows, kinds, back=True, first=1) for kinds in self.bends())
        (low, high), cells = self.taps[0][:2], (-1, *slope.shape)
        both = np.concatenate([bends, value], axis=1).reshape(len(rows), 2 * len(low), -1)
        weights = np.concatenate([low, -rate * high]).T.astype(rows.dtype) @ both
        value = low.T.astype(rows.dtype) @ value.reshape(len(rows), len(low), -1)
        return np.asarray(weights.reshape(cells) - slope.astype(rows.dtype) * value.reshape(cells))

    def kinds(self, time: int = 0, *axes: int) -> tuple[int, ...]:
        """Return kinds of taps: derivatives in time, and one along each of the space axes named."""
        return (time, *(axes.count(a) for a in range(len(self.taps) - 1)))

    def bends(self, time: int = 0) -> list[tuple[int, ...]]:
        """Return the terms of the Laplacian."""
        return [self.kinds(time, a, a) for a in range(len(self.taps) - 1)]

    def complete(self, observed: Bools) -> Bools:
        """Return the centres, flat, whose supports hold no missing value."""
        boxes = tuple((sum((w != 0.0).astype(float) for w in each),) for each in self.taps)
        missing = Lattice(boxes, self.times, self.duration).smooth((~observed).astype(np.float64), self.kinds())
        return np.asarray(missing.ravel() == 0.0)


def _matrix(rows: Array, cells: int, first: int) -> Array:
    """Put the taps of the centres first, first + 1, ... into the rows of a matrix."""
    half, matrix = rows.shape[1] // 2, np.zeros((len(rows), cells))
    for k, row in enumerate(rows):
        matrix[k, first + k - half : first + k + half + 1] = row
    return matrix


class _Rows(NamedTuple):
    """Rows at one field: ``every`` column, first those of the law, then of each of the ``others``, last the target.

    ``others`` count from the first that is not the law's; ``motion`` is u_t / q, ``bend`` Lap u and ``u`` the smoothed
    field.
    """

    every: Array
    size: int
    others: dict[str, slice]
    motion: Array
    bend: Array
    u: Array

    @property
    def law(self) -> Array:
        """The columns of the law, with q where it is unknown."""
        return self.every[:, : self.size]

    @property
    def gram(self) -> Array:
        """All sums of products of two columns."""
        return np.asarray(self.every.T @ self.every)


def _read(
    lattice: Lattice, law: Law, q: float, q_free: bool, whole: bool, keep: Bools, u: Array, noise: float
) -> _Rows:  # fmt: skip
    """Return the rows of the centres to keep, of a field with this noise: of the law, and of each alternative to it.

    An alternative is what it adds to Lap u - u_t / q, which is G(u) under the model, at the centres.
    """
    axes, rate = range(u.ndim - 1), 1.0 / q

    def read(field: Array, time: int = 0, *along: int) -> Array:
        smooth = lattice.smooth(field, lattice.kinds(time, *along))
        return np.asarray(smooth.reshape(*field.shape[: -u.ndim], -1)[..., keep])

    features = _features(law.family, u, noise)
    first, bends = [*read(features)], {(a, b): read(u, 0, a, b) for a in axes for b in axes if a <= b}
    motion, laplacian = rate * read(u, 1), np.asarray(sum(bends[a, a] for a in axes))
    v, slopes = read(u), [read(u, 0, a) for a in axes]
    bent_motion = np.asarray(sum(rate * read(u, 1, a, a) for a in axes))
    mean = np.tensordot(law.coefficients, features.mean(axis=tuple(range(2, u.ndim + 1))), 1)
    over = [f.reshape(-1, *(1,) * len(axes)) for f in (lattice.times, lattice.taps[0][0] @ mean)]
    time, mass = (np.broadcast_to(f, lattice.shape).ravel()[keep] for f in over)
    force, slope, bend = _derivatives(law, v)
    steep = np.sum(np.square(slopes), axis=0)
    grey = np.maximum(0.5 + 0.5 * v, _DARK)
    bright = 0.5 / grey * steep + (np.log(grey) + 1.0) * force - 2.0 * grey * np.log(grey) * slope
    contrast = force - v * slope  # of values (1 + a) u
    waves = [2.0 * np.pi * (np.indices(lattice.shape)[a + 1].ravel()[keep] + 0.5) / lattice.shape[a + 1] for a in axes]
    others: dict[str, list[Array]] = {
        "q": [-motion],
        "advection": [s / q for s in slopes],
        "tilt": [np.ones_like(v)],
        "mass": [-mass],
        "force(t)": [time * force],
        "mobility(u)": [-v * motion, -(v**2) * motion, -motion],
        "conserved": [bent_motion, -motion],
        "time step": [slope * motion - bent_motion],
        "anisotropy": [*(-z if a < b else bends[0, 0] - z for (a, b), z in bends.items() if b), -motion],
        "gain": [contrast],
        "gain drift": [time * contrast - v / (q * lattice.duration)],
        "offset": [-slope],
        "response": [bright],
        "blur": [bend * steep],
        "mobility(x)": [*(-wave(x) * motion for x in waves for wave in (np.cos, np.sin)), -motion],
    }
    for name, unasked in (("q", q_free), ("mass", not whole), ("anisotropy", len(slopes) == 1)):
        if unasked:
            del others[name]
    ends = np.cumsum([0, *map(len, others.values())]).tolist()
    parts = {name: slice(*pair) for name, pair in zip(others, pairwise(ends), strict=True)}
    first += [q * motion] if q_free else []
    target = laplacian if q_free else laplacian - motion
    columns = [*first, *(z for each in others.values() for z in each), target]
    return _Rows(np.column_stack(columns), len(first), parts, motion, laplacian, v)


def _features(family: Family, u: Array, noise: float) -> Array:
    """Return features of noisy values whose mean is that of clean ones: 2 B(u) - (B(u + noise) + B(u - noise)) / 2.

    They are continued by parabolas beyond the phases, where they would be linear: most values are at that kink.
    """
    features = np.zeros((family.size, *u.shape))
    for shift, weight in ((0.0, 2.0), (noise, -0.5), (-noise, -0.5)):
        features += weight * np.stack([*family.features(u + shift)])
        for edge, side in zip(family.phases, (1.0, -1.0), strict=True):
            at = np.stack([*family.features(edge + side * _KINK * np.arange(3))])
            beyond = 0.5 * np.minimum(side * (u + shift - edge), 0.0) ** 2
            features += weight * np.multiply.outer((at[:, 0] - 2.0 * at[:, 1] + at[:, 2]) / _KINK**2, beyond)
    return features


def _derivatives(law: Law, u: Array) -> tuple[Array, Array, Array]:
    """Return the force and its first two derivatives."""
    low, here, high = (np.asarray(law.force(u + k * _STEP)) for k in (-1, 0, 1))
    return here, (high - low) / (2.0 * _STEP), (high - 2.0 * here + low) / _STEP**2


@dataclass(frozen=True, eq=False)
class _Scale:
    """What a test is weighed against: the root of the squared motion, less its noise, and the force."""

    motion: float
    features: Array
    force: float

    @classmethod
    def of(cls, rows: _Rows, lattice: Lattice, law: Law, coefficients: Array, noise: float, q: float) -> _Scale:
        gains = [
            float(np.mean(np.sum(each[kind] ** 2, axis=1)))
            for each, kind in zip(lattice.taps, lattice.kinds(1), strict=True)
        ]
        moved = float(np.sum(rows.motion**2)) - rows.u.size * (noise / q) ** 2 * prod(gains)
        features = np.stack([*law.family.features(np.linspace(*law.phases, 101))])
        force = float(np.linalg.norm(coefficients[: len(features)] @ features))
        least = _SLOW * float(np.linalg.norm(rows.bend))
        return cls(max(float(np.sqrt(max(moved, 0.0))), least), features, force or 1.0)

    def effect(self, shift: Array) -> float:
        """Return the change of the force, relative, root mean square."""
        return float(np.linalg.norm(shift[: len(self.features)] @ self.features) / self.force)

    def band(self, covariance: Array) -> float:
        """Return half the width of the 95 % band of the force that noise gives the moments, relative."""
        return float(REACH * np.sqrt(np.sum(self.features * (covariance @ self.features))) / self.force)


def _tested(name: str, z: Array, score: Array, covariance: Array, imitated: Array, scale: _Scale) -> ScoreTest:
    """Return the test of an alternative; `imitated` is how the law moves with it."""
    from scipy.special import chdtrc

    information = np.linalg.pinv(z.T @ z, rcond=1e-10, hermitian=True)
    fitted, count = information @ score, z.shape[1]
    chi2 = float(score @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ score)
    values, errors = fitted, np.sqrt(np.diag(information @ covariance @ information))
    if name == "q" and fitted[0] != 1.0:  # the column is that of 1/q
        values, errors = fitted / (1.0 - fitted), errors / (1.0 - fitted) ** 2
    statistic = float(np.sign(values[0]) * np.sqrt(chi2)) if count == 1 else chi2
    return ScoreTest(
        name, statistic, count, float(chdtrc(count, chi2)), 1.0, tuple(values.tolist()), tuple(errors.tolist()), None,
        drop=chi2, effect=scale.effect(imitated @ fitted), deviation=float(np.linalg.norm(z @ fitted)) / scale.motion,
    )  # fmt: skip


def _unexplained(left: Array, noises: Array, u: Array, scale: _Scale) -> ScoreTest:
    """Test whether what the law and the best alternative leave is more than noise, and whether it is so in the bulk."""
    from scipy.special import fdtrc

    gram = noises @ noises.T
    power, pairs = float(np.mean(np.diag(gram))), gram[np.triu_indices(len(gram), 1)]
    freedom, ratio, bulk = power**2 / float(np.mean(pairs**2)), float(left @ left) / power, np.abs(u) > _PURE
    apart = float(np.sum(left[bulk] ** 2)) / max(float(np.mean(np.sum(noises[:, bulk] ** 2, axis=1))), 1e-300)
    random = np.mean(bulk) > _FEW and apart - 1.0 > _ALIKE * (ratio - 1.0)
    excess, size = max(ratio - 1.0, 0.0), float(np.sqrt(2.0 / freedom))
    return ScoreTest(
        "thermal" if random else "unknown", (ratio - 1.0) / size, 1,
        float(fdtrc(freedom, freedom * len(noises), ratio)), 1.0, (ratio - 1.0,), (size,), None,
        drop=excess * freedom, deviation=float(np.sqrt(excess * power)) / scale.motion,
    )  # fmt: skip
