"""The residual itself: whether neighbours are uncorrelated and the tails normal."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.adequacy.alternatives import AXES, Fit
from doublewell.adequacy.values import ScoreTest, Spot
from doublewell.hints import Array

__all__ = ["chance", "neighbour_tests", "probe", "value_tests"]

_NO_MATTER = 0.05  # excess kurtosis that changes no interval: not to be reported, however well it is seen
_FAR = 5.0  # standard deviations of an outlier


def probe(shape: tuple[int, ...]) -> Array:
    """Return a random field with entries +-1, always the same."""
    return np.random.default_rng(0).choice([-1.0, 1.0], size=shape)


def neighbour_tests(fit: Fit, residual: Array, v: Array, taken: Array, kept: NDArray[np.bool_]) -> list[ScoreTest]:
    """Test neighbours in time and space for correlation, where both were `kept`.

    A fit takes the part P of the noise away, so that neighbours correlate by - tr(S P) even under the model. One
    random vector v with entries +-1 gives that trace, v' S P v; `taken` is P v.
    """
    names = ("t", *AXES[-len(fit.record.mesh) :])
    weight = np.asarray(kept, dtype=np.float64)
    fields = (weight * residual / fit.found.noise, weight * v, weight * taken, weight)
    return [_neighbours(*fields, axis, names[axis]) for axis in range(residual.ndim)]


def value_tests(fit: Fit, residual: Array, left: Array, free: NDArray[np.bool_]) -> list[ScoreTest]:
    """Test the values for tails and outliers; `left` is the share of each frame's noise that the fit leaves.

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
