"""Validate: evolve a recovered law from an observed frame and compare with what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from doublewell.checks import is_whole, shown
from doublewell.errors import InputError
from doublewell.hints import Array, Progress
from doublewell.record import Boundary, Record
from doublewell.result import Result
from doublewell.simulate import simulate
from doublewell.survey import survey

__all__ = ["Validation", "validate"]

_STEP = 0.1  # largest q |G'| dt of one internal step


@dataclass(frozen=True, eq=False)
class Validation:
    """The field error over time: |u_hat - u| / |u| in L2 for each frame from `start` on, the first of them zero.

    ``predicted`` is the evolved record. The observed frames bring their own noise into the comparison: ``noise_floor``
    is what noise alone adds to the error of each frame, noise / rms(u), at least. A frame that is zero everywhere is
    measured by the rms of all frames.
    """

    start: int
    times: Array
    error: Array
    noise_floor: Array
    predicted: Record

    def __str__(self) -> str:
        worst = int(np.argmax(self.error))
        return (
            f"evolved {self.times.size - 1} frames from frame {self.start}: relative field error "
            f"{self._at(self.error.size - 1)} at the last frame, {self._at(worst)} at most (frame {self.start + worst})"
        )

    def _at(self, k: int) -> str:
        return f"{100 * self.error[k]:.3g} % (noise alone makes {100 * self.noise_floor[k]:.3g} %)"


def validate(result: Result, record: Record, *, start: int = 0, progress: Progress | None = None) -> Validation:
    """Evolve the recovered force from frame `start` of a record to its end and report the field error.

    The record may be another one than the law came from, with other q, mesh and noise, which is measured here. It must
    declare its boundary. A small error tests the force on the phase values visited; it says nothing about epsilon
    and F, which no movie tests.
    """
    q, boundary = _check(result, record, start)
    noise = survey(record).noise
    curvatures = np.abs([*result.law.well_curvatures, result.law.centre_curvature])
    steep = float(np.nanmax(curvatures))  # there may be no maximum between the phases
    predicted = simulate(
        result.law,
        record.slab(start, start + 1)[0],
        dx=record.dx,
        dt=record.dt,
        frames=record.frames - start,
        q=q,
        boundary=boundary,
        solver="etdrk4",
        substeps=max(1, ceil(q * steep * record.dt / _STEP)),
        progress=progress,
    )
    misfit, size = np.empty(predicted.frames), np.empty(predicted.frames)
    for first, slab in predicted.slabs(16):
        seen = record.slab(start + first, start + first + len(slab))
        part, axes = slice(first, first + len(slab)), tuple(range(1, slab.ndim))
        size[part] = np.sqrt(np.mean(seen**2, axis=axes))
        misfit[part] = np.sqrt(np.mean((slab - seen) ** 2, axis=axes))
    size = np.where(size > 0.0, size, np.sqrt(np.mean(size**2)) or 1.0)
    return Validation(start, record.times[start:], misfit / size, noise / size, predicted)


def _check(result: Result, record: Record, start: int) -> tuple[float, Boundary]:
    """Refuse what cannot be evolved; return q and the boundary."""
    if not isinstance(result, Result) or not isinstance(record, Record):
        raise InputError(
            f"expected a Result and a Record, got {type(result).__name__} and {type(record).__name__}: call "
            "validate(identify(record), record)"
        )
    if record.boundary is None:
        raise InputError("the record declares no boundary, so it cannot be evolved: pass boundary= to Record")
    if record.q is None:
        raise InputError("the record has no diffusion coefficient: pass q= to Record")
    if not is_whole(start) or not 0 <= start < record.frames - 1:
        raise InputError(f"start is {shown(start)}: expected a frame from 0 to {record.frames - 2}")
    return record.q, record.boundary
