"""Linear regression on a record: weak moments (STAC, analytic, WSINDy's test functions) and pixels (FD4).

All solve for positive Bernstein coefficients g in  sum_k g_k phi_k(u) = Lap u - u_t / q,  tested with smooth functions
or at every pixel. Other equations have the columns of their weak form, and conserved fields polynomials over their
values.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import ceil, floor, log, pi

import numpy as np

from doublewell.baselines.method import (
    PAPER_DEGREE,
    Baseline,
    BaselineFit,
    Supports,
    chosen_supports,
    complete,
    cores,
    in_family,
    known_q,
    measured,
)
from doublewell.dynamics import ALLEN_CAHN, Column, Dynamics
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key, compact, lower, system
from doublewell.hints import Array
from doublewell.inference import estimate
from doublewell.inference.estimate import Solution, solve
from doublewell.law import Family, Law
from doublewell.record import Record
from doublewell.weak.assembly import PHASE_CUT, weak_evidence
from doublewell.weak.noise import Smoother
from doublewell.weak.weights import (
    FIRST,
    MARGIN,
    SECOND,
    Derivative,
    axis_weights,
    bends,
    check_centred,
    split_folds,
)

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0)  # of the filter of smoothed FD4: standard deviations, in cells and in frames
# WSINDy's choice of test functions
_LEAST_POWER = 3  # one more than the highest derivative
_LEAST_CELLS = 2
_EDGE = 3  # points at either end of the spectrum that are not candidates for its corner
_TINY = 1e-12
_CENTRES = 5  # centres that a test function must leave along every axis
# FD4
_TRAINING = 0.6  # of the frames, that candidates are fitted on
_REACH = 3.0  # half-width of the filter in standard deviations
_STENCIL = 2  # cells that a difference reaches
_MODES = {"periodic": "wrap", "neumann": "reflect"}  # what lies beyond an edge; of a window the edges are left out


class _Regression(Baseline):
    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force of a record by least squares."""
        with measured() as cost:
            law, notes = self._solve(record)
        return BaselineFit(self.name, law.force, cost.seconds, cost.memory, cores(), notes, law=law)

    @abstractmethod
    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        """Return the law and notes on what was chosen."""


@dataclass(frozen=True)
class Stac(_Regression):
    """The weak-form fit of the paper: discrete derivatives, positive coefficients, no intervals."""

    supports: Supports = None
    degree: int = PAPER_DEGREE
    name: str = "STAC"
    derivative: Derivative = "discrete"
    dynamics: Dynamics = ALLEN_CAHN

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q, form = known_q(record, self.name), self.dynamics.weak_form
        supports = chosen_supports(record, self.supports, self.derivative, self.dynamics.order)
        scaled, family, plain = in_family(record, self.dynamics, self.degree)
        moments = weak_evidence(scaled, plain, supports, form=form, derivative=self.derivative)
        fit = estimate(moments, q, constraint="bernstein")
        notes = f"supports {', '.join(map(str, supports))}", f"{fit.rows} rows"
        return Law(family, fit.coefficients), notes


@dataclass(frozen=True)
class Analytic(Stac):
    """STAC with samples of the test function's derivatives, the paper's control.

    Its summation by parts is not exact on the mesh.
    """

    name: str = "analytic weak"
    derivative: Derivative = "analytic"


@dataclass(frozen=True)
class Bump:
    """(1 - x^2)^power with a half-width in cells or frames; `cut` where the record had no room for the chosen one."""

    cells: int
    power: int
    cut: bool

    def __str__(self) -> str:
        return f"{self.cells} (power {self.power}{', cut to what fits' if self.cut else ''})"


@dataclass(frozen=True)
class Wsindy(_Regression):
    """STAC with test functions chosen from the spectrum.

    Messenger and Bortz (2021) choose the width and the power of (1 - x^2)^p along each axis so that the test function's
    spectrum falls off where that of the data turns into noise. That corner is where two lines fit the cumulative
    spectrum best. Only the choice differs from STAC: our features, our mask, known diffusion, positive coefficients.
    `decay` is the value of the test function one cell inside its edge; `spread` is how many standard deviations of its
    spectrum lie below the corner of the data's.
    """

    decay: float = 1e-10
    spread: float = 1.0
    name: str = "WSINDy test functions"
    dynamics: Dynamics = ALLEN_CAHN

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q = complete(record, self.name)
        scaled, family, plain = in_family(record, self.dynamics, PAPER_DEGREE)
        u = scaled.slab()
        bumps = [chosen_bump(u, axis, decay=self.decay, spread=self.spread) for axis in range(u.ndim)]
        fit = estimate(_bump_evidence(scaled, plain, bumps, self.dynamics), q, constraint="bernstein")
        return Law(family, fit.coefficients), (
            f"half-widths in frames and cells {', '.join(map(str, bumps))}",
            f"{fit.rows} rows",
        )


def chosen_bump(u: Array, axis: int, *, decay: float, spread: float) -> Bump:
    """Return the test function along one axis of a field."""
    from scipy.optimize import brentq

    length = u.shape[axis]
    most = (length - _CENTRES) // 2 - MARGIN
    if most < _LEAST_CELLS:
        raise InputError(
            f"axis {axis} of the record has {length} points, too few for a test function: expected at least "
            f"{2 * (_LEAST_CELLS + MARGIN) + _CENTRES}; record longer, or a larger field of view"
        )
    waves, low, high = corner(u, axis), 1.0 + 1e-9, float(length)

    def gap(m: float) -> float:
        """Vanish where the power that the decay sets puts the corner at `spread` deviations of the spectrum."""
        slope, room = log((2 * m - 1) / m**2), (2 * pi * waves * m) ** 2 - 3 * (length * spread) ** 2
        return float(slope * room - 2 * (length * spread) ** 2 * log(decay))

    wanted = length if gap(low) * gap(high) > 0.0 else ceil(float(brentq(gap, low, high)))  # or more than there is
    cells = max(_LEAST_CELLS, min(wanted, most))
    power = floor(log(decay) / log((2 * cells - 1) / cells**2))  # falls to `decay` one cell inside the edge
    return Bump(cells, max(_LEAST_POWER, power), wanted > most)


def corner(u: Array, axis: int) -> int:
    """Return the wave number, in waves over the record, where two lines meet that fit the cumulative spectrum."""
    length = u.shape[axis]
    size = np.abs(np.fft.fft(u, axis=axis))
    mean = np.mean(np.moveaxis(size, axis, 0).reshape(length, -1), axis=1)
    spectrum = np.cumsum(np.fft.fftshift(mean))[: length // 2 + 1]  # from the highest wave number to zero
    spectrum = np.maximum(spectrum, _TINY * spectrum[-1])  # relative misfits of a field without small waves
    x = np.arange(spectrum.size, dtype=np.float64)

    def misfit(k: int) -> float:
        """Return the relative misfit of the two chords that meet at point k."""
        line = np.interp(x, [x[0], x[k], x[-1]], [spectrum[0], spectrum[k], spectrum[-1]])
        return float(np.sum(((line - spectrum) / spectrum) ** 2))

    candidates = range(_EDGE, spectrum.size - _EDGE)
    return max(1, int(spectrum.size) - 1 - min(candidates, key=misfit)) if candidates else 1


def _bump_evidence(record: Record, family: Family, bumps: list[Bump], dynamics: Dynamics) -> Evidence:
    u, form = record.slab(), dynamics.weak_form
    check_centred(form, record)
    smoother = Smoother([
        axis_weights(bump.cells, spacing, "analytic", power=bump.power, bends=bends(form))
        for bump, spacing in zip(bumps, (record.dt, *record.dx), strict=True)
    ])  # fmt: skip
    keep = np.abs(smoother.temporal_mean(u)) < PHASE_CUT
    if np.count_nonzero(keep) <= PAPER_DEGREE:
        raise InputError(
            f"the test functions of half-widths {', '.join(map(str, bumps))} leave no centre between the pure phases: "
            "expected an interface farther from the border than a half-width; lower spread, or use STAC"
        )
    fields = {"features": family.features(u), "field": u[None]}
    rows = np.stack([smoother.column(c, field)[keep] for c in form for field in fields[c.source]], axis=1)
    return Evidence(family, (Block(Key("record", "spectrum", "all"), compact(rows), len(rows)),))


@dataclass(frozen=True)
class DirectFD4(_Regression):
    """Fourth-order differences of the record as it is: exact on clean, fine records and lost in noise."""

    name: str = "direct FD4"
    dynamics: Dynamics = ALLEN_CAHN

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        fit = pointwise_fit(record, complete(record, self.name), 0.0, self.dynamics)
        return fit.law, (f"{fit.rows} rows",)


@dataclass(frozen=True)
class SmoothedFD4(_Regression):
    """Differences of the record after a Gaussian filter in space and time.

    Held-out weak moments choose its width, a yardstick that does not change with the width.
    """

    supports: Supports = None
    name: str = "smoothed FD4"
    dynamics: Dynamics = ALLEN_CAHN

    def _solve(self, record: Record) -> tuple[Law, tuple[str, ...]]:
        q = complete(record, self.name)
        supports = chosen_supports(record, self.supports, order=self.dynamics.order)
        longest = max(support.frames for support in supports)
        try:
            folds = split_folds(record.frames, longest, _TRAINING)
        except InputError as error:
            needs = round((2 * (longest + MARGIN) + 1) / (1.0 - _TRAINING))
            raise InputError(
                f"smoothed FD4 chooses its filter on the last {100 * (1 - _TRAINING):.0f} % of the frames: expected "
                f"about {needs} frames for a support of {longest} intervals, and the record has {record.frames}; "
                "record longer, or pass shorter supports"
            ) from error
        scaled, _, plain = in_family(record, self.dynamics, PAPER_DEGREE)
        moments = weak_evidence(scaled, plain, supports, folds=folds, form=self.dynamics.weak_form)
        width = smoothing_width(scaled, q, moments, round(_TRAINING * record.frames), self.dynamics)
        fit = pointwise_fit(record, q, width, self.dynamics)
        return fit.law, (f"filter of {width:g} cells and frames", f"{fit.rows} rows")


def smoothing_width(record: Record, q: float, moments: Evidence, frames: int, dynamics: Dynamics = ALLEN_CAHN) -> float:
    """Return the width whose fit to the first frames has the smallest residual on the moments of fold "validation"."""
    family = moments.family.at(PAPER_DEGREE)
    matrix, target = system(lower(moments.select(fold="validation"), family.degree), q)

    def residual(width: float) -> float:
        triangle, _ = _pixel_rows(record, family, q, width, frames, dynamics)
        solution, _ = solve(triangle[:, :-1], triangle[:, -1], family, constraint="bernstein")
        return float(np.linalg.norm(matrix @ solution.coefficients - target))

    return min(WIDTHS, key=residual)


@dataclass(frozen=True, eq=False)
class PointwiseFit:
    """Positive coefficients of degree two from pixels, the condition of the design with unit columns, and the rows."""

    family: Family
    solution: Solution
    condition: float
    rows: int

    @property
    def law(self) -> Law:
        """The law with these coefficients."""
        return Law(self.family, self.solution.coefficients)


def pointwise_fit(record: Record, q: float, width: float, dynamics: Dynamics = ALLEN_CAHN) -> PointwiseFit:
    """Solve for positive coefficients from every pixel between the pure phases; a width of 0 does not smooth."""
    record, family, plain = in_family(record, dynamics, PAPER_DEGREE)
    triangle, rows = _pixel_rows(record, plain, q, width, record.frames, dynamics)
    matrix, target = triangle[:, :-1] / np.sqrt(rows), triangle[:, -1] / np.sqrt(rows)
    solution, _ = solve(matrix, target, plain, constraint="bernstein")
    return PointwiseFit(family, solution, float(np.linalg.cond(matrix / np.linalg.norm(matrix, axis=0))), rows)


def _pixel_rows(
    record: Record, family: Family, q: float, width: float, frames: int, dynamics: Dynamics
) -> tuple[Array, int]:
    """Return R of [features | target - rate / q] over the pixels of the first frames that are between the phases."""
    from scipy.ndimage import correlate1d, gaussian_filter1d

    form, u = dynamics.weak_form, record.slab(0, frames)
    check_centred(form, record)
    beyond = _MODES.get(record.boundary or "open", "nearest")
    if width:
        for axis in range(u.ndim):
            u = gaussian_filter1d(u, width, axis=axis, mode=beyond if axis else "nearest", truncate=_REACH)

    def inside(n: int) -> slice:
        """Return the points whose filter and stencil lie inside an axis of n points."""
        margin = min(_STENCIL * bends(form) + round(_REACH * width), (n - 1) // 2)
        return slice(margin, n - margin)

    time = inside(frames)
    space = (slice(None), *(slice(None) if record.boundary in _MODES else inside(n) for n in record.mesh))
    keep = np.abs(u[time][space]) < PHASE_CUT
    if not keep.any():
        raise InputError("no pixel lies between the pure phases: expected a record that shows an interface")

    def values(column: Column, field: Array) -> Array:
        """Return a column at the pixels, of one feature or of the field."""
        if column.centred:
            field = field - field.mean(axis=tuple(range(1, field.ndim)), keepdims=True)
        if column.time:
            field = correlate1d(field, FIRST, axis=0, mode="nearest") / record.dt
        field = field[time]
        for _ in range(column.space):
            field = sum(
                correlate1d(field, SECOND, axis=axis, mode=beyond) / h**2 for axis, h in enumerate(record.dx, start=1)
            )
        return np.asarray(column.factor * field[space][keep])

    force, rate, target = form
    columns = [values(force, field) for field in family.features(u)]
    columns.append(values(target, u) - values(rate, u) / q)
    return compact(np.stack(columns, axis=1)), int(np.count_nonzero(keep))
