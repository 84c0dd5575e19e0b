"""Statistics of a residual: the tests as numbers, their correction and verdict, and the tests of the residual itself.

Neighbours, tails and outliers are tested over all values. Each cell has two probabilities: that of the time mean of its
residual without the largest value, and that of the median of its absolute values (a binomial tail, exact for normal
noise), which sees a pixel that flickers. One spike moves neither. The fit takes a part of the noise, so both are on the
safe side. The scale is a quantile over all cells, which a few do not move, or the largest median around where that is
larger: noise may differ from phase to phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from doublewell.hints import Array, Bools, Integers

FALSE_ALARMS = 0.03  # of all tests together; some are approximate, and 5 % is what the user is promised
REACH = 1.96  # standard deviations of a 95 % band
NUMERICAL = 1e-4  # residual over field: two solvers differ by this, measurements by more
STEADY = 0.1  # noise of the record over the residual below which the residual is not noise
_CERTAIN = 1e-3  # adjusted probability below which the model is refused, or a cell is left out
_GENTLE = ("tails", "outliers")  # least squares bears them, so they never refuse the model alone
TOLERANCE = 0.01  # relative change of the force, and deviation over the motion of the field, that matter
_GROSS = 0.05  # of the motion of the field: the law is not to be used
_NAMED = 9.0  # a wrong model leaves correlations that a noise model explains as well; correlated noise no other scores
_CLOSE = 9.0  # difference of chi-square below which two causes cannot be distinguished
_PARAMETER = 10.0  # of chi-square, that a parameter must explain to count: the logarithm of 20,000 values
_ROUGH = 0.15  # of chi-square: what first order leaves open
_NARROW, _TOO_NARROW = 0.05, 0.5  # part by which bands are too narrow: worth a check, not to be used
_SAME = 0.02  # of chi-square: what two ways to compute it may differ by
_LARGER = {"q": ("mobility(u)", "mobility(x)", "conserved", "anisotropy"), "mass": ("conserved",)}  # that contain it
_MODES = 40  # of about the same power, whose median a few strong ones do not move
_INDEPENDENT = 0.6  # of the values that a spectrum counts, for a field that is not even
_NO_MATTER = 0.05  # excess kurtosis that changes no interval: not to be reported, however well it is measured
_FAR = 5.0  # standard deviations of an outlier
_FELT = 0.01  # of chi-square in outliers: a law of ten coefficients moves by root 0.1 of its error
_FEW = 0.01  # fraction of the cells above which they are not few
_LEAST = 4  # cells that are few on any mesh
_ROUNDS = 6
_ALIKE = 0.5  # of the largest deviation: larger ones go in the same round, what neighbours inherit is less
_FRAMES = 2  # or fewer are not enough to tell a cell from its noise
_LISTED = 5  # cells
_MOST = 0.9  # the quantile that gives the scale, and the same of a normal deviate's size
_DEVIATE = 1.6449
_UNUSUAL = 2.0  # deviation of a bad cell, in units of the same quantile over all cells
_NOISY = 2.0  # noise of a cell that flickers in units of that around it
_AROUND = 5  # cells along each axis
_MEDIAN = 1.17  # relative standard deviation of the median size of n normal values, times the root of n
_NORMAL = 1.4826  # standard deviation of a normal variable in units of its median absolute value


class Verdict(StrEnum):
    """Whether a record is the fitted model plus white noise."""

    ADEQUATE = "adequate"
    CHECK = "check"
    NOT_ADEQUATE = "not adequate"


@dataclass(frozen=True)
class Spot:
    """A value or a cell that stands out: its index, its (mean) deviation and the spread of that over the frames."""

    index: tuple[int, ...]
    size: float
    spread: float = 0.0


@dataclass(frozen=True)
class ScoreTest:
    """One test of the residual. All numbers are what the model predicts to be pure noise.

    ``statistic`` is standard normal under the model, or chi-square where ``degrees`` > 1; ``p`` its two-sided
    probability and ``adjusted`` the same after Holm's correction for the number of tests. ``estimate`` and ``error``
    are the missing parameters and their standard errors; ``shift`` is by how many standard errors the law would move
    if they were fitted too, None where that has no meaning. ``spots`` are the values or cells that stand out, the
    largest first, ``count`` how many there are of ``total``, and ``common`` what they have in common. ``part`` is the
    tile that the test is of. ``drop`` is how much chi-square falls if what the test looks for is fitted, ``effect`` the
    relative change of the force then (None where it has none), ``deviation`` what it explains over the motion of the
    field, both root mean square.
    """

    name: str
    statistic: float
    degrees: int
    p: float
    adjusted: float
    estimate: tuple[float, ...]
    error: tuple[float, ...]
    shift: float | None
    spots: tuple[Spot, ...] = ()
    count: int = 0
    total: int = 0
    common: Literal["", "frame", "cell"] = ""
    part: str | None = None
    drop: float = 0.0
    effect: float | None = None
    deviation: float = 0.0

    @property
    def sigma(self) -> float:
        """The size: the normal deviate of the same two-sided probability; beyond the range of numbers the statistic."""
        from scipy.special import ndtri

        if self.p > 1e-300:
            return abs(float(ndtri(0.5 * self.p)))
        return abs(self.statistic) if self.degrees == 1 else float(np.sqrt(self.statistic))

    @property
    def significant(self) -> bool:
        """Whether it counts after the correction for the number of tests."""
        return self.adjusted < FALSE_ALARMS

    @property
    def gentle(self) -> bool:
        """Whether least squares bears it: tails, and a noise that differs from cell to cell."""
        return self.name in _GENTLE or (self.name == "cells" and self.shift is None)

    @property
    def rank(self) -> float:
        """The order of significant tests: by the drop of chi-square, a named cause before its traces."""
        if self.gentle:
            return 0.0
        return (self.drop - self.degrees * _PARAMETER) / (_NAMED if self.name.startswith("white in") else 1.0)

    def grade(self, band: float) -> Verdict:
        """Return how much it matters: its effect on the law, against the band and 1 %, and on the movie."""
        if self.gentle:
            return _worst(False, self.name != "outliers" or self.drop > _FELT * self.total)
        if self.name.startswith("white in "):
            r = min(abs(self.estimate[0]), 0.99)
            narrow = np.sqrt((1.0 + r) / (1.0 - r)) - 1.0
            return _worst(narrow > _TOO_NARROW, narrow > _NARROW)
        effect = 0.0 if self.effect is None else self.effect
        gross = effect > max(TOLERANCE, band) or self.deviation > _GROSS
        return _worst(gross, effect > min(TOLERANCE, band) or self.deviation > TOLERANCE)


def _worst(fail: bool, check: bool) -> Verdict:
    return Verdict.NOT_ADEQUATE if fail else Verdict.CHECK if check else Verdict.ADEQUATE


@dataclass(frozen=True)
class Adequacy:
    """The tests of a residual and their verdict.

    ``relative_noise`` is the residual over the field, ``steadiness`` the noise of the record itself over the residual
    (None where it was not measured), ``band`` half the width of the 95 % band of the force, relative.
    """

    tests: tuple[ScoreTest, ...]
    verdict: Verdict
    relative_noise: float = 1.0
    steadiness: float | None = None
    band: float = 0.0

    @property
    def numerical(self) -> bool:
        """Whether the residual is of the size of differences between two solvers, so that the tests have no meaning."""
        return self.relative_noise < NUMERICAL

    @property
    def significant(self) -> tuple[ScoreTest, ...]:
        """The significant tests, the likeliest cause first; none where the residual is numerical."""
        return () if self.numerical else significant(self.tests)

    @property
    def rivals(self) -> tuple[ScoreTest, ...]:
        """Causes that explain the residual about as well as the first of the significant tests."""
        named = [t for t in self.significant if t.effect is not None and t.name != "cells"]
        if not named or self.significant[0] is not named[0]:
            return ()
        best, larger = max(named, key=lambda t: t.rank), _LARGER.get(named[0].name, ())
        return tuple(t for t in named[1:] if _near(best, t) and t.name not in larger)

    def __str__(self) -> str:
        rows = [f"  {t.name:<12}{t.statistic:>9.2f}{t.p:>10.2g}{t.adjusted:>10.2g}" for t in self.tests]
        head = f"  {'test':<12}{'z or chi2':>9}{'p':>10}{'p, all':>10}"
        return "\n".join([f"model: {self.verdict}", head, *rows])


def significant(tests: Sequence[ScoreTest]) -> tuple[ScoreTest, ...]:
    """Return the significant tests, the likeliest cause first.

    Of causes about as likely the one with fewest parameters is first: first order leaves a part of chi-square open, and
    a larger alternative contains a smaller one.
    """
    counted = sorted([t for t in tests if t.significant], key=lambda t: t.rank, reverse=True)
    named = [t for t in tests if t.significant and t.effect is not None and t.name != "cells"]
    near = [t for t in named if _near(counted[0], t)]  # in the order of the tests: the more usual first
    if counted and counted[0] in near:
        same = max(_CLOSE, _SAME * counted[0].rank)
        near.sort(key=lambda t: (t.degrees, (counted[0].rank - t.rank) // same))
        return (*near, *(t for t in counted if t not in near))
    return tuple(counted)


def _near(first: ScoreTest, test: ScoreTest) -> bool:
    return first.rank - test.rank < max(_CLOSE, _ROUGH * first.rank)


def verdict_of(tests: Sequence[ScoreTest], band: float) -> Verdict:
    """Return the verdict: how much the significant tests matter, never "not adequate" above a probability of 0.1 %."""
    grades = [(t.grade(band), t.adjusted < _CERTAIN) for t in significant(tests)]
    certain = any(grade == Verdict.NOT_ADEQUATE and sure for grade, sure in grades)
    return _worst(certain, any(grade != Verdict.ADEQUATE for grade, _ in grades))


def holm_adjusted(p: Sequence[float]) -> list[float]:
    """Return probabilities adjusted for their number (Holm 1979).

    >>> holm_adjusted([0.01, 0.5])
    [0.02, 0.5]
    """
    order, adjusted = np.argsort(p, kind="stable"), np.empty(len(p))
    factors = np.arange(len(p), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * np.asarray(p, dtype=np.float64)[order]))
    return adjusted.tolist()


def holm(tests: Sequence[ScoreTest]) -> tuple[ScoreTest, ...]:
    """Adjust the probabilities of tests for their number."""
    adjusted = holm_adjusted([test.p for test in tests])
    return tuple([replace(test, adjusted=value) for test, value in zip(tests, adjusted, strict=True)])


def neighbour_tests(r: Array, v: Array, taken: Array, kept: Bools) -> list[ScoreTest]:
    """Test neighbours of r[t, (z, y,) x], in units of the noise, for correlation where both were `kept`.

    A fit takes the part P of the noise away, so that neighbours correlate by - tr(S P) even under the model. One
    random vector v with entries +-1 gives that trace, v' S P v; `taken` is P v.
    """
    from scipy.special import chdtrc

    weight, tests = kept.astype(np.float64), []
    r, v, taken = weight * r, weight * v, weight * taken
    for axis, name in enumerate(("t", *"zyx"[1 - r.ndim :])):
        before, after = (slice(None),) * axis + (slice(-1),), (slice(None),) * axis + (slice(1, None),)
        expected = -0.5 * (np.vdot(v[before], taken[after]) + np.vdot(taken[before], v[after]))
        count = np.vdot(weight[before], weight[after])
        error = float(np.sqrt(1.0 / count))  # the fit takes as much from the variance as the one probe adds
        correlation = float((np.vdot(r[before], r[after]) - expected) / count)
        z = correlation / error
        tests.append(ScoreTest(f"white in {name}", z, 1, float(chdtrc(1, z * z)), 1.0, (correlation,), (error,), None))
    return tests


def forced_test(own: tuple[Array, float], *noise: tuple[Array, float]) -> ScoreTest:
    """Test whether a force that nobody named drives the field: what one in each frame interval explains, above noise.

    `own` is the gradient by such a force, ``[interval, ...]``, of the residual in units of the noise, with the part of
    chi-square that it explains; `noise` are those of white noise that went through the same fit. Noise in the dynamics
    raises most of the modes that it can drive, "thermal"; what no other test knows raises a few of them, "unknown".
    """
    from scipy import fft
    from scipy.ndimage import uniform_filter
    from scipy.special import fdtrc, ndtri

    fields = [field for field, _ in noise]
    scale = np.sqrt(uniform_filter(np.mean(np.square(fields), axis=(0, 1)), _AROUND, mode="nearest"))
    scale = np.maximum(scale, 1e-3 * np.max(scale))
    mine, *powers = [np.abs(fft.fftn(field / scale)).ravel() ** 2 for field in (own[0], *fields)]
    mean, alone = np.mean(powers, axis=0), np.mean([float(np.vdot(p, p)) for p in powers])
    squares = (len(powers) * float(np.vdot(mean, mean)) - alone) / (len(powers) - 1)  # of pairs of fields
    ratio, degrees = float(np.sum(mine) / np.sum(mean)), _INDEPENDENT * float(np.sum(mean)) ** 2 / squares
    p = float(fdtrc(degrees, len(noise) * degrees, ratio)) if ratio > 1.0 else 1.0
    z = float(-ndtri(max(0.5 * p, 1e-300)))
    order, size = np.argsort(-mean), np.cumsum(np.sort(mean)[::-1])
    count = max(order.size // _MODES, 1)
    kept = min(1 + int(np.searchsorted(size, 0.99 * size[-1])) // _MODES, count)
    even = 0.0
    for modes in _bins(order, count, kept):  # in rows of one length
        usual = np.median(mine[modes], axis=1) / np.mean([np.median(p[modes], axis=1) for p in powers], axis=0)
        usual = np.maximum(usual, 1.0)
        even += modes.shape[1] * float(np.sum(usual - 1.0 - np.log(usual)))
    drop = max(own[1] - float(np.mean([explained for _, explained in noise])), 0.0)
    name, drop = ("thermal", even) if even > drop else ("unknown", drop)
    return ScoreTest(name, z, 1, p, 1.0, (ratio - 1.0,), (float(np.sqrt(2.0 / degrees)),), None, drop=float(drop))


def _bins(order: Integers, count: int, kept: int) -> list[Integers]:
    """Return the first of `count` bins of entries: those of one entry more, which come first, and the others.

    >>> [bins.tolist() for bins in _bins(np.arange(7), 3, 2)]
    [[[0, 1, 2]], [[3, 4]]]
    """
    length, longer = divmod(order.size, count)
    split = longer * (length + 1)
    bins = order[:split].reshape(longer, length + 1)[:kept], order[split:].reshape(-1, length)[: max(kept - longer, 0)]
    return [part for part in bins if part.size]


def value_tests(r: Array, left: Array, free: Bools) -> list[ScoreTest]:
    """Test values r[t, ...] in units of the noise for tails and outliers; `left` is what the fit leaves of each frame.

    Where the fit takes much, it takes unevenly, and a mixture of variances has tails: only `free` frames count for
    them. Values that were left out of the fit are zero, and count for nothing.
    """
    from scipy.special import chdtrc, erfc, ndtri, pdtrc

    r = r / np.sqrt(np.clip(left, 0.05, 1.0)).reshape(-1, *[1] * (r.ndim - 1))
    chosen = r[free] if free.any() else r
    chosen = chosen[(chosen != 0.0) & (np.abs(chosen) < _FAR)]  # outliers are asked by themselves
    excess = float(np.mean(chosen**4) / np.mean(chosen**2) ** 2 - 3.0)
    error = float(np.sqrt(24.0 / chosen.size))
    z = float(np.sign(excess)) * max(abs(excess) - _NO_MATTER, 0.0) / error
    tails = ScoreTest("tails", z, 1, float(chdtrc(1, z * z)), 1.0, (excess,), (error,), None)
    count = int(np.count_nonzero(np.abs(r) > _FAR))
    expected = float(r.size * erfc(_FAR / np.sqrt(2.0)))
    outliers = ScoreTest("outliers", 0.0, 1, 1.0, 1.0, (0.0,), (float(np.sqrt(expected)),), None, total=r.size)
    if count == 0:
        return [tails, outliers]
    p = float(pdtrc(count - 1, expected))
    largest = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.abs(r))), r.shape))
    same = np.argwhere(np.abs(r) > _FAR) == largest
    common: Literal["", "frame", "cell"] = ""
    if count > 1:
        common = "frame" if np.all(same[:, 0]) else "cell" if np.all(same[:, 1:]) else ""
    spots = (Spot(largest, float(r[largest])),)
    z, drop = float(-ndtri(max(p, 1e-300))), float(np.sum(r[np.abs(r) > _FAR] ** 2))
    found = replace(outliers, statistic=z, p=p, estimate=(float(count),), spots=spots, count=count, common=common)
    return [tails, replace(found, drop=drop)]


@dataclass(frozen=True, eq=False)
class Cells:
    """What is known of each cell of a residual: probability under the model, deviation over its error, mean, spread."""

    p: Array
    size: Array
    mean: Array
    spread: Array
    error: float

    @property
    def rarest(self) -> float:
        """The probability that the rarest of all cells is so rare."""
        return float(-np.expm1(self.p.size * np.log1p(-min(float(np.min(self.p)), 0.5))))

    @property
    def far(self) -> Bools:
        """The cells that are certainly not of the model, and far from what most cells do."""
        usual = float(np.quantile(self.size, _MOST))
        return np.asarray((self.p * self.p.size < _CERTAIN) & (self.size > _UNUSUAL * usual))


def cells_of(residual: Array, frames: Bools, out: Bools) -> Cells:
    """Ask every cell of residual[t, cells] in the frames that the fit leaves; cells left out say nothing."""
    from scipy.ndimage import maximum_filter, median_filter
    from scipy.special import bdtrc, erfc

    r = residual[frames] if np.count_nonzero(frames) > _FRAMES else residual
    size = np.abs(r)
    count = len(r) - 1  # without the largest
    largest = np.take_along_axis(r, np.argmax(size, axis=0)[None], axis=0)[0]
    mean = (np.sum(r, axis=0) - largest) / count
    spread = max(float(np.quantile(size, _MOST)), np.sqrt(count) * float(np.quantile(np.abs(mean), _MOST))) / _DEVIATE
    half = len(r) // 2
    middle = np.sort(size, axis=0)[half]  # the larger median: len(r) - half values are at least as large
    around = maximum_filter(median_filter(middle, _AROUND, mode="nearest"), _AROUND, mode="nearest")
    scale = np.maximum(_NORMAL * around, spread)
    off, flicker = np.abs(mean) * np.sqrt(count) / scale, _NORMAL * middle / scale
    tail = bdtrc(len(r) - half - 1, len(r), erfc(middle / (scale * np.sqrt(2.0))))
    p = np.minimum(erfc(off * np.sqrt(0.5)), np.where(flicker > _NOISY, tail, 1.0))
    return Cells(
        p=np.where(out, 1.0, np.minimum(2.0 * p, 1.0)),
        size=np.where(out, 0.0, np.maximum(off, (flicker - 1.0) * np.sqrt(count) / _MEDIAN)),
        mean=mean,
        spread=_NORMAL * middle,
        error=float(spread / np.sqrt(count)),
    )


def peel(first: Cells, without: Callable[[Bools], Cells]) -> Bools | None:
    """Return the cells to leave out, None where more than a few stand out; `without` fits again without some cells.

    The largest go first, and the fit is made again without them, for a bad cell bends the fit at its neighbours.
    """
    out, cells = np.zeros(first.p.shape, dtype=bool), first
    for _ in range(_ROUNDS):
        far = cells.far
        if not far.any():
            return out
        out = out | (far & (cells.size >= _ALIKE * float(np.max(cells.size[far]))))
        if np.count_nonzero(out) > max(_LEAST, _FEW * out.size):
            return None
        cells = without(out)
    return None


def cells_test(cells: Cells, out: Bools | None, shift: float | None) -> ScoreTest:
    """Return the test: its probability is that of the rarest cell, corrected for the number of cells."""
    from scipy.special import ndtri

    p = cells.rarest
    z = abs(float(ndtri(0.5 * p))) if p > 1e-300 else float(np.max(cells.size))
    bad = out is not None and bool(out.any())
    chosen = out if out is not None and bad else cells.size >= np.max(cells.size)
    means, indices = cells.mean[chosen], np.argwhere(chosen)
    largest = np.argsort(-cells.size[chosen], kind="stable")[: _LISTED if bad else 1]
    spots = [Spot(tuple(indices[k].tolist()), float(means[k]), float(cells.spread[chosen][k])) for k in largest]
    values = tuple(means[:_LISTED].tolist())
    count = int(np.count_nonzero(chosen if bad else cells.far))
    errors = (cells.error,) * len(values)
    drop = float(np.sum(cells.size[chosen] ** 2)) if bad else 0.0
    return ScoreTest("cells", z, 1, p, 1.0, values, errors, shift, tuple(spots), count, cells.size.size, drop=drop)
