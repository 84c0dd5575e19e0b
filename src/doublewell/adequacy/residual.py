"""The residual itself: neighbours, tails and outliers, whether it is noise at all, and whether a few cells stand out.

For each cell two probabilities are asked: that of the time mean of its residual without the largest value, and that of
the median of its absolute values (a binomial tail, exact for normal noise), which sees a pixel that flickers. One spike
moves neither. The fit takes a part of the noise, so both are on the safe side. The scale is a quantile over all cells,
which a few do not move, or the largest median around where that is larger: noise may differ from phase to phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.adequacy.alternatives import AXES, Fit
from doublewell.adequacy.values import ScoreTest, Spot
from doublewell.hints import Array

Mask = NDArray[np.bool_]
_NO_MATTER = 0.05  # excess kurtosis that changes no interval: not to be reported, however well it is seen
_FAR = 5.0  # standard deviations of an outlier
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_CERTAIN = 1e-3  # chance, of all cells together, below which a cell is left out
_FEW = 0.01  # fraction of the cells above which they are not few
_LEAST = 4  # cells that are few on any mesh
_ROUNDS = 6
_ALIKE = (
    0.5  # fraction of the largest deviation above which cells go in the same round: what neighbours inherit is less
)
_FRAMES = 2  # or fewer are not enough to tell a cell from its noise
_NAMED = 5  # cells that are listed
_MOST = 0.9  # the quantile that gives the scale, and the same of a normal deviate's size
_DEVIATE = 1.6449
_UNUSUAL = 2.0  # deviation of a bad cell, in units of the same quantile over all cells
_NOISY = 2.0  # noise of a cell that flickers in units of that around it
_AROUND = 5  # cells along each axis
_MEDIAN = 1.17  # relative standard deviation of the median size of n normal values, times the root of n
_NORMAL = 1.4826  # standard deviation of a normal variable in units of its median absolute value


def probe(shape: tuple[int, ...]) -> Array:
    """Return a random field with entries +-1, always the same."""
    return np.random.default_rng(0).choice([-1.0, 1.0], size=shape)


def neighbour_tests(fit: Fit, residual: Array, v: Array, taken: Array, kept: Mask) -> list[ScoreTest]:
    """Test neighbours in time and space for correlation, where both were `kept`.

    A fit takes the part P of the noise away, so that neighbours correlate by - tr(S P) even under the model. One
    random vector v with entries +-1 gives that trace, v' S P v; `taken` is P v.
    """
    names = ("t", *AXES[-len(fit.record.mesh) :])
    weight = np.asarray(kept, dtype=np.float64)
    fields = (weight * residual / fit.found.noise, weight * v, weight * taken, weight)
    return [_neighbours(*fields, axis, names[axis]) for axis in range(residual.ndim)]


def value_tests(fit: Fit, residual: Array, left: Array, free: Mask) -> list[ScoreTest]:
    """Test the values for tails and outliers; `left` is the fraction of each frame's noise that the fit leaves.

    Where the fit takes much, it takes unevenly, and a mixture of variances has tails: only `free` frames count for
    them. Values that were left out of the fit are zero, and count for nothing.
    """
    scale = fit.found.noise * np.sqrt(np.clip(left, 0.05, 1.0))
    scaled = residual / scale.reshape(-1, *(1 for _ in fit.record.mesh))
    chosen = scaled[free] if free.any() else scaled
    return [_tails(chosen[chosen != 0.0]), _outliers(scaled)]


def _neighbours(r: Array, v: Array, taken: Array, weight: Array, axis: int, name: str) -> ScoreTest:
    def pairs(a: Array, b: Array) -> float:
        first, second = (np.moveaxis(field, axis, 0) for field in (a, b))
        return float(np.vdot(first[:-1], second[1:]))

    expected = -0.5 * (pairs(v, taken) + pairs(taken, v))
    count = pairs(weight, weight)
    error = float(np.sqrt(1.0 / count))  # the fit takes as much from the variance as the one probe adds
    correlation = (pairs(r, r) - expected) / count
    z = correlation / error
    return ScoreTest(f"white in {name}", z, 1, chance(z * z, 1), 1.0, (correlation,), (error,), None)


def _tails(r: Array) -> ScoreTest:
    excess = float(np.mean(r**4) / np.mean(r**2) ** 2 - 3.0)
    error = float(np.sqrt(24.0 / r.size))
    z = float(np.sign(excess)) * max(abs(excess) - _NO_MATTER, 0.0) / error
    return ScoreTest("tails", z, 1, chance(z * z, 1), 1.0, (excess,), (error,), None)


def _outliers(r: Array) -> ScoreTest:
    from scipy.special import erfc, ndtri, pdtrc

    count = int(np.count_nonzero(np.abs(r) > _FAR))
    expected = float(r.size * erfc(_FAR / np.sqrt(2.0)))
    p = 1.0 if count == 0 else float(pdtrc(count - 1, expected))
    z = 0.0 if count == 0 else float(-ndtri(max(p, 1e-300)))
    spots, common = _where(r) if count else ((), "")
    estimate, error = (float(count),), (float(np.sqrt(expected)),)
    return ScoreTest("outliers", z, 1, p, 1.0, estimate, error, None, spots, count, r.size, common)


def _where(r: Array) -> tuple[tuple[Spot, ...], Literal["", "frame", "cell"]]:
    """Return the largest of the outliers, and whether all are in one frame or in one cell."""
    far = np.argwhere(np.abs(r) > _FAR)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(np.abs(r))), r.shape))
    spots = (Spot(place, float(r[place])),)
    if len(far) > 1 and np.all(far[:, 0] == place[0]):
        return spots, "frame"
    return spots, "cell" if len(far) > 1 and np.all(far[:, 1:] == place[1:]) else ""


def chance(chi2: float, degrees: int) -> float:
    """Return the probability that a chi-square value is larger."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, chi2))


def relative_noise(fit: Fit) -> float:
    """Return the standard deviation of the residual over the root mean square of the field."""
    return fit.found.noise / float(np.sqrt(np.mean(fit.predicted**2)))


def steadiness(fit: Fit) -> float | None:
    """Return the noise of the record itself, from fourth differences in time, over the residual."""
    if fit.record.frames < len(_FOURTH):
        return None
    u = fit.record.slab()
    rest = sum(c * u[k : len(u) - len(_FOURTH) + 1 + k] for k, c in enumerate(_FOURTH)) / np.linalg.norm(_FOURTH)
    return 1.4826 * float(np.median(np.abs(rest))) / fit.found.noise


@dataclass(frozen=True, eq=False)
class Cells:
    """What each cell of a residual says: its chance under the model, its deviation over its error, mean and spread."""

    chance: Array
    size: Array
    mean: Array
    spread: Array
    error: float

    @property
    def together(self) -> float:
        """The chance that the rarest of all cells is so rare."""
        return float(-np.expm1(self.chance.size * np.log1p(-min(float(np.min(self.chance)), 0.5))))

    @property
    def far(self) -> Mask:
        """The cells that are certainly not of the model, and far from what most cells do."""
        usual = float(np.quantile(self.size, _MOST))
        return np.asarray((self.chance * self.chance.size < _CERTAIN) & (self.size > _UNUSUAL * usual))


def ask_cells(residual: Array, frames: Mask, out: Mask) -> Cells:
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
    chances = np.minimum(erfc(off * np.sqrt(0.5)), np.where(flicker > _NOISY, tail, 1.0))
    return Cells(
        chance=np.where(out, 1.0, np.minimum(2.0 * chances, 1.0)),
        size=np.where(out, 0.0, np.maximum(off, (flicker - 1.0) * np.sqrt(count) / _MEDIAN)),
        mean=mean,
        spread=_NORMAL * middle,
        error=float(spread / np.sqrt(count)),
    )


def peel(first: Cells, ask: Callable[[Mask], Cells]) -> Mask | None:
    """Return the cells to leave out, none where more than a few stand out; `ask` fits again without some cells.

    The largest go first, and the fit is made again without them, for a bad cell bends the fit at its neighbours.
    """
    out, cells = np.zeros(first.chance.shape, dtype=bool), first
    for _ in range(_ROUNDS):
        far = cells.far
        if not far.any():
            return out
        out = out | (far & (cells.size >= _ALIKE * float(np.max(cells.size[far]))))
        if np.count_nonzero(out) > max(_LEAST, _FEW * out.size):
            return None
        cells = ask(out)
    return None


def cells_test(cells: Cells, out: Mask | None, shift: float | None) -> ScoreTest:
    """Return the test: its chance is that of the rarest cell, corrected for the number of cells."""
    from scipy.special import ndtri

    p = cells.together
    z = abs(float(ndtri(0.5 * p))) if p > 1e-300 else float(np.max(cells.size))
    bad = out is not None and bool(out.any())
    chosen = out if out is not None and bad else cells.size >= np.max(cells.size)
    values = tuple(float(x) for x in cells.mean[chosen][:_NAMED])
    errors = tuple(cells.error for _ in values)
    places = sorted((tuple(int(i) for i in at) for at in np.argwhere(chosen)), key=lambda at: -float(cells.size[at]))
    spots = tuple(Spot(at, float(cells.mean[at]), float(cells.spread[at])) for at in places[: _NAMED if bad else 1])
    count = int(np.count_nonzero(chosen if bad else cells.far))
    return ScoreTest("cells", z, 1, p, 1.0, values, errors, shift, spots, count, cells.size.size)
