"""Pointwise regression with fourth-order differences, direct or after Gaussian smoothing in space and time.

The smoothed one chooses its width by the held-out weak moments, a yardstick that does not change with the width.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from doublewell.estimate.ridge import solve
from doublewell.evidence import PHASE_CUT, compact, lower, system
from doublewell.hints import Array
from doublewell.law import Bernstein, Law
from doublewell.study.outcome import Method, Outcome
from doublewell.study.sample import Sample

__all__ = ["METHODS", "WIDTHS"]

WIDTHS = (0.5, 1.0, 1.5, 2.0, 3.0)  # standard deviations, in cells and in frames
_REACH = 3.0  # half-width of the filter in standard deviations
_FAMILY = Bernstein(2)
_FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
_SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0


def _direct(sample: Sample) -> Outcome:
    began = perf_counter()
    triangle, rows = _rows(sample, 0.0, sample.spec.frames)
    return _outcome(triangle, rows, perf_counter() - began, {})


def _smoothed(sample: Sample) -> Outcome:
    evidence, _ = sample.weak
    began = perf_counter()
    held = system(lower(evidence.select(lambda key: key.fold == "validation"), 2), 1.0)
    training = round(sample.spec.training * sample.spec.frames)
    width = min(WIDTHS, key=lambda w: _residual(sample, w, training, held))
    triangle, rows = _rows(sample, width, sample.spec.frames)
    return _outcome(triangle, rows, perf_counter() - began, {"width": width})


def _residual(sample: Sample, width: float, frames: int, held: tuple[Array, Array]) -> float:
    triangle, _ = _rows(sample, width, frames)
    found, _ = solve(triangle[:, :-1], triangle[:, -1], constraint="bernstein")
    return float(np.linalg.norm(held[0] @ found.coefficients - held[1]))


def _rows(sample: Sample, width: float, frames: int) -> tuple[Array, int]:
    """Return R of [features | Lap u - u_t] over the pixels of the first frames that lie between the pure phases."""
    from scipy.ndimage import correlate1d, gaussian_filter1d

    record = sample.record
    u: Array = record.slab(0, frames)
    if width:
        for axis, mode in enumerate(("nearest", "wrap", "wrap")):
            u = gaussian_filter1d(u, width, axis=axis, mode=mode, truncate=_REACH)
    margin = 2 + round(_REACH * width)  # frames whose filter and stencil lie inside
    margin = min(margin, (frames - 1) // 2)
    inside = slice(margin, frames - margin)
    target = -correlate1d(u, _FIRST, axis=0, mode="nearest")[inside] / record.dt
    for axis, h in zip((1, 2), record.dx, strict=True):
        target += correlate1d(u[inside], _SECOND, axis=axis, mode="wrap") / h**2
    seen = u[inside]
    keep = np.abs(seen) < PHASE_CUT
    columns = [*_FAMILY.features(seen[keep]), target[keep]]
    return compact(np.stack(columns, axis=1)), int(np.count_nonzero(keep))


def _outcome(triangle: Array, rows: int, seconds: float, extra: dict[str, float]) -> Outcome:
    matrix, target = triangle[:, :-1] / np.sqrt(rows), triangle[:, -1] / np.sqrt(rows)
    found, _ = solve(matrix, target, constraint="bernstein")
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    active = int(np.count_nonzero(found.active))
    condition = float(np.linalg.cond(scaled))
    return Outcome(Law(_FAMILY, found.coefficients), "fitted", active, seconds, condition, rows, extra)


METHODS = (
    Method("direct FD4 m=2", "Direct FD4, m = 2", _direct),
    Method("smoothed FD4 m=2", "Smoothed FD4, m = 2", _smoothed, f"widths {WIDTHS}, judged on held-out weak moments"),
)
