"""The numbers behind a trajectory estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.dynamics import border_mask
from doublewell.hints import Array
from doublewell.identify.trajectory_road import TrajectoryFit
from doublewell.inference import Posterior
from doublewell.likelihood import Trajectory
from doublewell.observation import Survey
from doublewell.record import Record
from doublewell.result import Diagnostics, FitQuality, Likelihood, Tiling

_BLOCKS = 48  # along each axis of the map of the residual


def trajectory_diagnostics(fit: TrajectoryFit, seen: Survey) -> Diagnostics:
    """Return the numbers behind a trajectory estimate."""
    left = Leftover(residual_map(fit.found, fit.record), _frame_noise(fit.found, fit.record))
    return diagnostics_of(fit, seen, left, initial=_read_only(fit.initial.astype(np.float32)))


@dataclass(frozen=True, eq=False)
class Leftover:
    """What a fit leaves: the map of its residual and the residual's size in each frame."""

    places: Array
    frames: Array


def diagnostics_of(
    fit: TrajectoryFit, seen: Survey, left: Leftover, *,
    initial: NDArray[np.float32] | None = None, tiles: Tiling | None = None,
) -> Diagnostics:  # fmt: skip
    """Return the numbers behind the estimate of a record, whole or in tiles."""
    block = fit.found.evidence.blocks[0]
    return Diagnostics(
        rows=block.rows,
        condition=fit.condition,
        scaled_condition=fit.condition,
        active=fit.active,
        contacts=fit.contacts,
        bound=None,
        kkt=None,
        residual=fit.misfit,
        unconstrained=fit.unconstrained,
        ridge=None,
        supports=(),
        support_spread=0.0,
        survey=seen,
        likelihood=Likelihood(
            **_quality(fit),
            steps=fit.found.steps,
            substeps=fit.found.substeps,
            rounds=fit.rounds,
            extra_structure=structure_probability(fit.posterior),
            segments=fit.found.segments,
            residual_map=left.places,
            residual_frames=left.frames,
            initial=initial,
            tiles=tiles,
        ),
    )


def fit_quality(fit: TrajectoryFit) -> FitQuality:
    """Return what the fit of one record is worth."""
    return FitQuality(**_quality(fit))


def _quality(fit: TrajectoryFit) -> dict[str, Any]:
    return {
        "dx": fit.record.dx,
        "boundary": fit.record.boundary,
        "noise": fit.found.noise,
        "status": fit.found.status.text,
        "converged": fit.found.converged,
        "time_size": fit.resolution.time_size,
        "mesh_size": fit.resolution.mesh_size,
        "distance": fit.distance,
        "constraint_rise": fit.rise,
        "adequacy": fit.adequacy,
    }


def _read_only(field: NDArray[np.float32]) -> NDArray[np.float32]:
    field.flags.writeable = False
    return field


def _noisy(record: Record) -> NDArray[np.bool_]:
    """Return the values whose residual is noise: those that were seen, less a window's border, which is estimated."""
    seen = np.asarray(record.seen())
    return seen & ~border_mask(record.mesh) if record.boundary == "open" else seen


def _frame_noise(found: Trajectory, record: Record) -> Array:
    """Return the standard deviation of the residual of each frame, 0 where nothing of it was seen."""
    axes, kept = tuple(range(1, found.residual.ndim)), _noisy(record)
    sums = np.sum(np.where(kept, found.residual, 0.0) ** 2, axis=axes)
    return np.asarray(np.sqrt(sums / np.maximum(np.count_nonzero(kept, axis=axes), 1)))


def residual_map(found: Trajectory, record: Record) -> Array:
    """Return how far the residual's variance in each block of cells is from the mean, in standard deviations.

    Zero where a block holds no value that tells of noise.
    """
    kept = _noisy(record)
    sums = np.sum(np.where(kept, found.residual / found.noise, 0.0) ** 2, axis=0)
    counts = np.count_nonzero(kept, axis=0).astype(float)
    for axis, cells in enumerate(sums.shape):
        edges = np.linspace(0, cells, min(cells, _BLOCKS) + 1).round().astype(int)[:-1]
        sums, counts = (np.add.reduceat(values, edges, axis=axis) for values in (sums, counts))
    none, counts = counts == 0.0, np.maximum(counts, 1.0)
    share = 2.0 / (9.0 * counts)  # Wilson and Hilferty: the cube root of a chi-square is close to normal
    ratio = sums / counts / (np.sum(sums) / np.sum(counts, where=~none))
    return np.where(none, 0.0, (np.cbrt(ratio) - (1.0 - share)) / np.sqrt(share))


def structure_probability(posterior: Posterior) -> float:
    """Return the share of unconstrained draws whose bracket dips to zero: how likely an extra stationary point is."""
    return float(np.mean(~posterior.family.single_barrier(posterior.free_draws)))
