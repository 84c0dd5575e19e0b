"""Statistics: a mean over a few clusters with three intervals.

Ten clusters are few: nominal coverage is not established, so the three constructions stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array

__all__ = ["RESAMPLES", "Contrast", "contrast"]

RESAMPLES = 10_000
_SEED = 5  # of the resampling; the same for every contrast


@dataclass(frozen=True)
class Contrast:
    """The mean of cluster values and its intervals: percentile bootstrap, BCa, and Student's t over clusters."""

    values: tuple[float, ...]
    mean: float
    percentile: tuple[float, float]
    bca: tuple[float, float]
    student: tuple[float, float]

    @property
    def agrees(self) -> bool:
        """Whether all three intervals say the same about zero."""
        return len({low <= 0.0 <= high for low, high in (self.percentile, self.bca, self.student)}) == 1


def contrast(values: Array, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = _SEED) -> Contrast:
    """Return the mean of one value per cluster with its intervals; clusters are resampled whole.

    >>> contrast(np.array([1.0, 2.0, 3.0])).mean
    2.0
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or not np.all(np.isfinite(values)):
        raise InputError(f"clusters are {values.tolist()}: expected at least two finite values, one a cluster")
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, values.size, (resamples, values.size))].mean(axis=1)
    tails = (0.5 * (1.0 - level), 0.5 * (1.0 + level))
    return Contrast(
        values=tuple(values.tolist()),
        mean=float(values.mean()),
        percentile=_quantiles(means, tails),
        bca=_quantiles(means, _bca_tails(values, means, tails)),
        student=_student(values, tails[1]),
    )


def _quantiles(means: Array, tails: tuple[float, float]) -> tuple[float, float]:
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def _bca_tails(values: Array, means: Array, tails: tuple[float, float]) -> tuple[float, float]:
    """Return the tails corrected for bias and for skewness, from the jackknife (Efron 1987)."""
    from scipy.special import ndtr, ndtri

    if np.ptp(values) == 0.0:
        return tails
    centre = values.mean()
    share = np.mean(means < centre) + 0.5 * np.mean(means == centre)
    bias = ndtri(share)
    left_out = (values.sum() - values) / (values.size - 1)
    rest = left_out.mean() - left_out
    skew = np.sum(rest**3) / (6.0 * np.sum(rest**2) ** 1.5)
    moved = bias + ndtri(np.array(tails))
    low, high = ndtr(bias + moved / (1.0 - skew * moved))
    return float(low), float(high)


def _student(values: Array, tail: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    half = stdtrit(values.size - 1, tail) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)
