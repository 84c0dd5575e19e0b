"""The residual itself: whether neighbours are uncorrelated and the tails normal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doublewell.adequacy.alternatives import AXES, Fit
from doublewell.adequacy.values import ScoreTest
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
    said = "consecutive frames" if axis == 0 else f"neighbours along {name}"
    words = f"{said} of the residual correlate by {correlation:+.4f} +- {error:.4f}"
    return ScoreTest(f"white in {name}", z, 1, chance(z * z, 1), 1.0, (correlation,), (error,), None, words)


def _tails(r: Array) -> ScoreTest:
    excess = float(np.mean(r**4) / np.mean(r**2) ** 2 - 3.0)
    error = float(np.sqrt(24.0 / r.size))
    z = float(np.sign(excess)) * max(abs(excess) - _NO_MATTER, 0.0) / error
    words = f"excess kurtosis of the residual {excess:+.3f} +- {error:.3f}"
    return ScoreTest("tails", z, 1, chance(z * z, 1), 1.0, (excess,), (error,), None, words)


def _outliers(r: Array) -> ScoreTest:
    from scipy.special import erfc, ndtri, pdtrc

    count = int(np.count_nonzero(np.abs(r) > _FAR))
    expected = float(r.size * erfc(_FAR / np.sqrt(2.0)))
    p = 1.0 if count == 0 else float(pdtrc(count - 1, expected))
    z = 0.0 if count == 0 else float(-ndtri(max(p, 1e-300)))
    said = "1 value" if count == 1 else f"{count} values"
    words = f"{said} beyond {_FAR:g} standard deviations, {expected:.2g} expected{_where(r) if count else ''}"
    return ScoreTest("outliers", z, 1, p, 1.0, (float(count),), (float(np.sqrt(expected)),), None, words)


def _where(r: Array) -> str:
    """Say where the outliers are: in one frame, in one cell, or the largest of them."""
    far = np.argwhere(np.abs(r) > _FAR)
    frame, *cell = (int(i) for i in np.unravel_index(int(np.argmax(np.abs(r))), r.shape))
    if len(far) > 1 and np.all(far[:, 0] == frame):
        return f", all in frame {frame}"
    if len(far) > 1 and np.all(far[:, 1:] == cell):
        return f", all at cell {tuple(cell)}"
    return f", the largest in frame {frame} at cell {tuple(cell)}"


def chance(chi2: float, degrees: int) -> float:
    """Return the probability that a chi-square value is larger."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, chi2))
