"""WSINDy: its choice of test functions from the spectrum of the data, on our moments.

Messenger and Bortz (2021) choose the width and the power of (1 - x^2)^p along each axis so that the test function's
spectrum falls off where that of the data turns into noise. That corner is where two lines fit the cumulative spectrum
best. What is different here is the choice alone: our features, our mask, known diffusion, positive coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, log, pi

import numpy as np

from doublewell.baselines.inputs import complete
from doublewell.baselines.protocol import BaselineFit, cores, measured
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact
from doublewell.hints import Array
from doublewell.inference import estimate
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak import PHASE_CUT, axis_weights
from doublewell.weak.smoother import Smoother
from doublewell.weak.weights import MARGIN, AxisWeights

__all__ = ["Bump", "Wsindy", "chosen_bump", "corner"]

_DEGREE = 2
_LEAST_POWER = 3  # one more than the highest derivative
_LEAST_CELLS = 2
_EDGE = 3  # points at either end of the spectrum that are no candidates for its corner
_TINY = 1e-12
_CENTRES = 5  # centres that a test function must leave along every axis


@dataclass(frozen=True)
class Bump:
    """(1 - x^2)^power with a half-width in cells or frames; `cut` says that the record had no room for the chosen."""

    cells: int
    power: int
    cut: bool

    def __str__(self) -> str:
        return f"{self.cells} (power {self.power}{', cut to what fits' if self.cut else ''})"


@dataclass(frozen=True)
class Wsindy:
    """STAC with test functions chosen from the spectrum.

    `decay` is the value of the test function one cell inside its edge; `spread` is how many standard deviations of its
    spectrum lie below the corner of the data's.
    """

    decay: float = 1e-10
    spread: float = 1.0
    name: str = "WSINDy test functions"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force from moments with the chosen test functions."""
        q = complete(record, self.name)
        with measured() as cost:
            u = record.slab()
            chosen = [chosen_bump(u, axis, decay=self.decay, spread=self.spread) for axis in range(u.ndim)]
            found = estimate(_evidence(record, u, chosen), q, constraint="bernstein")
        law = found.law
        notes = (f"half-widths in frames and cells {', '.join(map(str, chosen))}", f"{found.rows} rows")
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), notes, law=law)


def chosen_bump(u: Array, axis: int, *, decay: float, spread: float) -> Bump:
    """Return the test function along one axis of a field."""
    length = u.shape[axis]
    most = (length - _CENTRES) // 2 - MARGIN
    if most < _LEAST_CELLS:
        raise InputError(
            f"axis {axis} of the record has {length} points, too few for a test function: expected at least "
            f"{2 * (_LEAST_CELLS + MARGIN) + _CENTRES}; record longer, or a larger field of view"
        )
    wanted = _half_width(corner(u, axis), length, decay, spread)
    cells = max(_LEAST_CELLS, min(wanted, most))
    return Bump(cells, max(_LEAST_POWER, _power(cells, decay)), wanted > most)


def corner(u: Array, axis: int) -> int:
    """Return the wave number, in waves over the record, where two lines meet that fit the cumulative spectrum."""
    length = u.shape[axis]
    size = np.abs(np.fft.fft(u, axis=axis))
    mean = np.mean(np.moveaxis(size, axis, 0).reshape(length, -1), axis=1)
    spectrum = np.cumsum(np.fft.fftshift(mean))[: length // 2 + 1]  # from the highest wave number to zero
    spectrum = np.maximum(spectrum, _TINY * spectrum[-1])  # relative misfits of a field without small waves
    points = np.arange(spectrum.size, dtype=np.float64)
    places = range(_EDGE, spectrum.size - _EDGE)
    if not places:
        return 1
    best = min(places, key=lambda k: _misfit(points, spectrum, k))
    return max(1, int(spectrum.size) - 1 - best)


def _misfit(x: Array, y: Array, k: int) -> float:
    """Return the relative misfit of the two chords that meet at point k."""
    line = np.interp(x, [x[0], x[k], x[-1]], [y[0], y[k], y[-1]])
    return float(np.sum(((line - y) / y) ** 2))


def _half_width(waves: int, length: int, decay: float, spread: float) -> int:
    """Return the half-width whose power, set by the decay, puts the corner at `spread` deviations of its spectrum."""
    from scipy.optimize import brentq

    def gap(m: float) -> float:
        slope = log((2 * m - 1) / m**2)
        room = (2 * pi * waves * m) ** 2 - 3 * (length * spread) ** 2
        return slope * room - 2 * (length * spread) ** 2 * log(decay)

    low, high = 1.0 + 1e-9, float(length)
    if gap(low) * gap(high) > 0.0:
        return length  # more than there is: it is cut by the caller
    return ceil(float(brentq(gap, low, high)))


def _power(cells: int, decay: float) -> int:
    """Return the power with which the test function has fallen to `decay` one cell inside its edge."""
    return floor(log(decay) / log((2 * cells - 1) / cells**2))


def _evidence(record: Record, u: Array, chosen: list[Bump]) -> Evidence:
    time, *space = (
        _weights(function, spacing) for function, spacing in zip(chosen, (record.dt, *record.dx), strict=True)
    )
    smoother = Smoother.of_weights(record, time, space)
    keep = np.abs(smoother.temporal_mean(u)) < PHASE_CUT
    if np.count_nonzero(keep) <= _DEGREE:
        widths = ", ".join(map(str, chosen))
        raise InputError(
            f"the test functions of half-widths {widths} leave no centre between the pure phases: expected an "
            "interface farther from the border than a half-width; lower spread, or use STAC"
        )
    family = Bernstein(_DEGREE)
    columns = smoother.columns(list(family.features(u)), keep)
    rows = np.column_stack([columns, smoother.rate(u)[keep], smoother.laplacian(u)[keep]])
    return Evidence(family, (Block(Key("record", "spectrum", "all"), compact(rows), len(rows)),))


def _weights(function: Bump, spacing: float) -> AxisWeights:
    return axis_weights(function.cells, spacing, "analytic", power=function.power)
