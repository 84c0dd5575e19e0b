"""Validate: evolve a recovered law from an observed frame and compare with what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from doublewell.dynamics import Grid, fastest_rate, since, steps_per_frame
from doublewell.errors import InputError, is_whole, option, shown
from doublewell.hints import Array, Progress
from doublewell.observation import survey
from doublewell.progress import reporting
from doublewell.record import Boundary, Record
from doublewell.result import Result
from doublewell.simulate import simulate

Origin = Literal["observed frame", "fitted initial field"]
_STEP = 0.1  # largest rate of the force times one internal step


@dataclass(frozen=True, eq=False)
class Validation:
    """The field error over time: |u_hat - u| / |u| in L2 for each frame from `start` on, the first of them zero.

    ``predicted`` is the evolved record. The observed frames bring their own noise into the comparison: ``noise_floor``
    is what noise alone adds to the error of each frame, noise / rms(u), at least. A frame that is zero everywhere is
    measured by the rms of all frames. ``origin`` states what was evolved: the observed frame, or the initial field of
    the fit, whose error is then nowhere zero.
    """

    start: int
    times: Array
    error: Array
    noise_floor: Array
    predicted: Record
    origin: Origin = "observed frame"

    def __str__(self) -> str:
        worst = int(np.argmax(self.error))
        begun = f"frame {self.start}" if self.origin == "observed frame" else "the fitted initial field"
        return (
            f"evolved {self.times.size - 1} frames from {begun}: relative field error "
            f"{self._at(self.error.size - 1)} at the last frame, {self._at(worst)} at most (frame {self.start + worst})"
        )

    def _at(self, k: int) -> str:
        return f"{100 * self.error[k]:.3g} % (noise alone makes {100 * self.noise_floor[k]:.3g} %)"


def validate(result: Result, record: Record, *, start: int = 0, progress: Progress | bool | None = None) -> Validation:
    """Evolve the recovered force from frame `start` of a record to its end and report the field error.

    The record may be another one than the law came from, with other q, mesh and noise, which is measured here. It must
    declare its boundary, and its frame `start` must be complete; of later frames the observed values are compared, and
    one without any has the error 0. Where gain and offset were estimated, the values of this record are taken to have
    the same, unless they are those of a simulation. Where it does not say q, an estimated one is used. A small error
    tests the force on the phase values visited; it does not test epsilon and F, which no movie tests.
    """
    with reporting(progress, "evolving") as report:
        return _evolve(result, record, None, start, report)


def replay(result: Result, record: Record, *, progress: Progress | None = None) -> Validation:
    """Evolve the recovered force from the initial field of the fit: the fields that the fit compared with the record.

    Only a trajectory result has such a field, and one that was loaded from a file may not hold it.
    """
    fit = result.diagnostics.likelihood
    if fit is None or fit.initial is None:
        raise InputError(
            "the result holds no fitted initial field, so its fit cannot be evolved again: expected a result of the "
            "trajectory fit; use validate, which begins with an observed frame"
        )
    if fit.initial.shape != record.mesh:
        raise InputError(
            f"the fitted initial field has shape {fit.initial.shape} and the record the mesh {record.mesh}: expected "
            "the record that the result came from"
        )
    return _evolve(result, record, fit.initial.astype(np.float64), 0, progress)


def _evolve(result: Result, record: Record, initial: Array | None, start: int, progress: Progress | None) -> Validation:
    """Evolve the law from an initial field, without one from the observed frame `start`."""
    q, boundary = _check(result, record, start)
    dynamics, noise, law = since(result.dynamics, record.times[start]), survey(record).noise, result.law
    if result.contrast is not None and record.origin != "simulation":  # the law that the values of the record obey
        law = law.placed(result.contrast.plateaus)
    curvatures = np.abs([*law.well_curvatures, law.centre_curvature])
    steep = float(np.nanmax(curvatures))  # there may be no maximum between the phases
    rate = q * fastest_rate(dynamics, Grid(record.mesh, record.dx, boundary).waves, steep)
    predicted = simulate(
        law,
        record.slab(start, start + 1)[0] if initial is None else initial,
        dx=record.dx,
        dt=record.dt,
        frames=record.frames - start,
        q=q,
        boundary=boundary,
        solver="etdrk4",
        substeps=steps_per_frame(rate, record.dt, _STEP),
        dynamics=dynamics,
        progress=progress,
    )
    misfit, size = np.empty(predicted.frames), np.empty(predicted.frames)
    for frame, slab in predicted.slabs(16):
        span = start + frame, start + frame + len(slab)
        u, known = record.slab(*span), record.observed(*span)
        part, axes = slice(frame, frame + len(slab)), tuple(range(1, slab.ndim))
        count = np.maximum(np.sum(known, axis=axes), 1)
        size[part] = np.sqrt(np.sum(u**2, axis=axes) / count)  # what is missing is 0 here
        misfit[part] = np.sqrt(np.sum((slab - u) ** 2, axis=axes, where=known) / count)
    size = np.where(size > 0.0, size, np.sqrt(np.mean(size**2)) or 1.0)
    origin: Origin = "observed frame" if initial is None else "fitted initial field"
    return Validation(start, record.times[start:], misfit / size, noise / size, predicted, origin)


def _check(result: Result, record: Record, start: int) -> tuple[float, Boundary]:
    """Refuse what cannot be evolved; return q and the boundary."""
    if not isinstance(result, Result) or not isinstance(record, Record):
        raise InputError(
            f"expected a Result and a Record, got {type(result).__name__} and {type(record).__name__}: call "
            "validate(identify(record), record)"
        )
    if record.boundary in (None, "open"):
        raise InputError(
            "the record declares no boundary, so it cannot be evolved: pass "
            f"{option('boundary', 'periodic')} or 'neumann' with the record"
        )
    q = result.q if record.q is None and result.q_estimated else record.q
    if q is None:
        raise InputError(f"the record has no diffusion coefficient: pass {option('q')} with the record")
    if not is_whole(start) or not 0 <= start < record.frames - 1:
        raise InputError(f"start is {shown(start)}: expected a frame from 0 to {record.frames - 2}")
    if record.mask is not None and not record.observed(start, start + 1).all():
        raise InputError(
            f"frame {start} has missing values, and the law is evolved from it: expected a complete frame; pass start= "
            "the number of one"
        )
    return q, record.boundary
