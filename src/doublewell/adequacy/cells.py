"""Cells: whether a few cells, dead or hot pixels, stand out from the others, and which.

For each cell two chances are asked: that of the time mean of its residual without the largest value, and that of the
median of its absolute values (a binomial tail, exact for normal noise), which sees a pixel that flickers. One spike
moves neither. The fit takes a part of the noise, so both are on the safe side. The scale is a quantile over all cells,
which a few do not move, or the largest median around where that is larger: noise may differ from phase to phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublewell.adequacy.values import ScoreTest, Spot
from doublewell.hints import Array

__all__ = ["Cells", "Mask", "ask_cells", "cells_test", "peel"]

_CERTAIN = 1e-3  # chance, of all cells together, below which a cell is left out
_FEW = 0.01  # share of the cells above which they are no few
_LEAST = 4  # cells that are few on any mesh
_ROUNDS = 6
_ALIKE = 0.5  # share of the largest deviation above which cells go in the same round: what neighbours inherit is less
_FRAMES = 2  # or fewer are not enough to tell a cell from its noise
_NAMED = 5  # cells that are listed
_MOST = 0.9  # the quantile that gives the scale, and the same of a normal deviate's size
_DEVIATE = 1.6449
_UNUSUAL = 2.0  # deviation of a bad cell, in units of the same quantile over all cells
_NOISY = 2.0  # noise of a cell that flickers in units of that around it
_AROUND = 5  # cells along each axis
_MEDIAN = 1.17  # relative standard deviation of the median size of n normal values, times the root of n
_NORMAL = 1.4826  # standard deviation of a normal variable in units of its median absolute value

Mask = NDArray[np.bool_]


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
