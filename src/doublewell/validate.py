"""Validate: evolve a recovered law from an observed frame and compare with what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.result import Result
from doublewell.simulate import simulate

__all__ = ["Validation", "validate"]

Array = NDArray[np.float64]
_STEP = 0.1  # largest q |G'| dt of one internal step


@dataclass(frozen=True, eq=False)
class Validation:
    """The field error over time: |u_hat - u| / |u| in L2 for each frame from `start` on, the first of them zero.

    ``predicted`` is the evolved record. The observed start frame brings its own noise into the comparison:
    ``noise_floor`` is what noise alone adds to the error of the later frames, noise / rms(u), at least.
    """

    start: int
    times: Array
    error: Array
    noise_floor: float
    predicted: Record

    def __str__(self) -> str:
        return (
            f"evolved {self.times.size - 1} frames from frame {self.start}: relative field error "
            f"{100 * self.error[-1]:.3g} % at the last frame, {100 * self.error.max():.3g} % at most; noise alone "
            f"makes {100 * self.noise_floor:.3g} %"
        )


def validate(
    result: Result, record: Record, *, start: int = 0, progress: Callable[[int, int], None] | None = None
) -> Validation:
    """Evolve the recovered force from frame `start` of a record to its end and report the field error.

    The record may be another one than the law came from, with other q and mesh. It must declare its boundary. A small
    error tests the force on the phase values visited; it says nothing about epsilon and F, which no movie tests.
    """
    if record.boundary is None:
        raise InputError("the record declares no boundary, so it cannot be evolved: pass boundary= to Record")
    if record.q is None:
        raise InputError("the record has no diffusion coefficient: pass q= to Record")
    if not 0 <= start < record.frames - 1:
        raise InputError(f"start is {start}: expected a frame from 0 to {record.frames - 2}")
    steep = max(abs(result.law.well_curvature), abs(result.law.centre_curvature))
    predicted = simulate(
        result.law,
        record.slab(start, start + 1)[0],
        dx=record.dx,
        dt=record.dt,
        frames=record.frames - start,
        q=record.q,
        boundary=record.boundary,
        solver="etdrk4",
        substeps=max(1, ceil(record.q * steep * record.dt / _STEP)),
        progress=progress,
    )
    error, size = np.empty(predicted.frames), 0.0
    for first, slab in predicted.slabs(16):
        seen = record.slab(start + first, start + first + len(slab))
        axes = tuple(range(1, slab.ndim))
        sizes = np.sqrt(np.mean(seen**2, axis=axes))
        error[first : first + len(slab)] = np.sqrt(np.mean((slab - seen) ** 2, axis=axes)) / sizes
        size = float(sizes[-1])
    times = record.times[start:]
    return Validation(start, times, error, result.diagnostics.survey.noise / size, predicted)
