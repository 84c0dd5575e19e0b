"""FD4: pointwise regression with fourth-order differences, direct or after Gaussian smoothing in space and time.

The smoothed one chooses its width by the held-out weak moments, a yardstick that does not change with the width.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from doublewell.baselines.inputs import Supports, chosen_supports, complete
from doublewell.baselines.protocol import BaselineFit, cores, measured
from doublewell.errors import InputError
from doublewell.evidence import Evidence, compact, lower, system
from doublewell.hints import Array
from doublewell.inference.least_squares import Solution
from doublewell.inference.ridge import solve
from doublewell.law import Bernstein, Law
from doublewell.record import Record
from doublewell.weak import PHASE_CUT, Fold, split_folds, weak_evidence
from doublewell.weak.weights import MARGIN

__all__ = ["DIRECT", "WIDTHS", "DirectFD4", "PointwiseFit", "SmoothedFD4", "pointwise_fit", "smoothing_width"]

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0)  # standard deviations, in cells and in frames
DIRECT = 0.0  # the width of no smoothing
_TRAINING = 0.6  # of the frames, that candidates are fitted on
_REACH = 3.0  # half-width of the filter in standard deviations
_STENCIL = 2  # cells that a difference reaches
_FAMILY = Bernstein(2)
_MODES = {"periodic": "wrap", "neumann": "reflect"}  # what lies beyond an edge; of a window the edges are left out
_FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0


@dataclass(frozen=True, eq=False)
class PointwiseFit:
    """Positive coefficients from pointwise rows, the condition of the design with unit columns, and the rows."""

    solution: Solution
    condition: float
    rows: int

    @property
    def law(self) -> Law:
        """The law of degree two with these coefficients."""
        return Law(_FAMILY, self.solution.coefficients)


@dataclass(frozen=True)
class DirectFD4:
    """Differences of the record as it is: exact on clean, fine records and lost in noise."""

    name: str = "direct FD4"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force from the differences of a record."""
        q = complete(record, self.name)
        with measured() as cost:
            found = pointwise_fit(record, q, DIRECT)
        notes = (f"{found.rows} rows",)
        return BaselineFit(self.name, found.law.force, cost.seconds, cost.memory, cores(), notes, law=found.law)


@dataclass(frozen=True)
class SmoothedFD4:
    """Differences of the record after a Gaussian filter of a width that held-out weak moments choose."""

    supports: Supports = None
    name: str = "smoothed FD4"
    needs: tuple[str, ...] = field(default=(), init=False)

    def fit(self, record: Record, *, seed: int = 0) -> BaselineFit:  # noqa: ARG002  nothing here is random
        """Estimate the force from the differences of the smoothed record."""
        q = complete(record, self.name)
        with measured() as cost:
            chosen = chosen_supports(record, self.supports)
            folds = _folds(record, max(support.frames for support in chosen))
            held = weak_evidence(record, _FAMILY, chosen, folds=folds)
            width = smoothing_width(record, q, held, round(_TRAINING * record.frames))
            found = pointwise_fit(record, q, width)
        notes = (f"filter of {width:g} cells and frames", f"{found.rows} rows")
        return BaselineFit(self.name, found.law.force, cost.seconds, cost.memory, cores(), notes, law=found.law)


def _folds(record: Record, longest: int) -> tuple[Fold, Fold]:
    try:
        return split_folds(record.frames, longest, _TRAINING)
    except InputError as error:
        needs = round((2 * (longest + MARGIN) + 1) / (1.0 - _TRAINING))
        raise InputError(
            f"smoothed FD4 chooses its filter on the last {100 * (1 - _TRAINING):.0f} % of the frames: expected about "
            f"{needs} frames for a support of {longest} intervals, and the record has {record.frames}; record longer, "
            "or pass shorter supports"
        ) from error


def smoothing_width(record: Record, q: float, moments: Evidence, frames: int) -> float:
    """Return the width whose fit to the first frames leaves the least of the moments of the fold "validation"."""
    matrix, target = system(lower(moments.select(lambda key: key.fold == "validation"), _FAMILY.degree), q)

    def residual(width: float) -> float:
        triangle, _ = _rows(record, q, width, frames)
        found, _ = solve(triangle[:, :-1], triangle[:, -1], constraint="bernstein")
        return float(np.linalg.norm(matrix @ found.coefficients - target))

    return min(WIDTHS, key=residual)


def pointwise_fit(record: Record, q: float, width: float) -> PointwiseFit:
    """Solve for positive coefficients from every pixel between the pure phases."""
    triangle, rows = _rows(record, q, width, record.frames)
    matrix, target = triangle[:, :-1] / np.sqrt(rows), triangle[:, -1] / np.sqrt(rows)
    found, _ = solve(matrix, target, constraint="bernstein")
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    return PointwiseFit(found, float(np.linalg.cond(scaled)), rows)


def _rows(record: Record, q: float, width: float, frames: int) -> tuple[Array, int]:
    """Return R of [features | Lap u - u_t / q] over the pixels of the first frames that lie between the pure phases."""
    from scipy.ndimage import correlate1d, gaussian_filter1d

    u: Array = record.slab(0, frames)
    beyond = _MODES.get(record.boundary or "open", "nearest")
    if width:
        for axis in range(u.ndim):
            u = gaussian_filter1d(u, width, axis=axis, mode=beyond if axis else "nearest", truncate=_REACH)
    margin = _STENCIL + round(_REACH * width)  # frames whose filter and stencil lie inside
    margin = min(margin, (frames - 1) // 2)
    inside = slice(margin, frames - margin)
    target = -correlate1d(u, _FIRST, axis=0, mode="nearest")[inside] / record.dt / q
    for axis, h in enumerate(record.dx, start=1):
        target += correlate1d(u[inside], _SECOND, axis=axis, mode=beyond) / h**2
    known = _inner(record, _STENCIL + round(_REACH * width))
    seen, target = u[inside][known], target[known]
    keep = np.abs(seen) < PHASE_CUT
    columns = [*_FAMILY.features(seen[keep]), target[keep]]
    if not keep.any():
        raise InputError("no pixel lies between the pure phases: expected a record that shows an interface")
    return compact(np.stack(columns, axis=1)), int(np.count_nonzero(keep))


def _inner(record: Record, margin: int) -> tuple[slice, ...]:
    """Return the pixels whose filter and stencil lie inside the record, or all where the boundary says what follows."""
    if record.boundary in _MODES:
        return (slice(None),) * (1 + len(record.mesh))
    return (slice(None), *(slice(min(margin, (n - 1) // 2), n - min(margin, (n - 1) // 2)) for n in record.mesh))
