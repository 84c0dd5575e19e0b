"""Noise: its shape, read off what a first fit leaves; the next fit weighs the record by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from doublewell.dynamics import border_mask
from doublewell.dynamics.grid import numpy_transforms
from doublewell.hints import Array
from doublewell.likelihood.trajectory import Trajectory
from doublewell.likelihood.view import View, Whitening
from doublewell.record import Record, Seen

__all__ = ["FLOOR", "NOISES", "Noise", "noise_view", "outlier_mask", "spectrum"]

Noise = Literal["white", "correlated", "shot", "robust"]
NOISES: tuple[Noise, ...] = get_args(Noise)
FLOOR = 0.01  # of the mean level: white noise that is added to a measured spectrum
_SMOOTH = 1.5  # modes over which a spectrum is averaged
_EARLY = 0.2  # share of the frames in which the initial field takes much of the noise
_MEMORY = 4.0  # standard errors of a correlation in time that counts
_BINS = 12  # of phase values, for noise that varies with them
_FAR = 5.0  # standard deviations of an outlier
_SPIKE = 6.0  # the same, against the frames around
_OFTEN = 0.2  # share of frames in which a cell is an outlier, above which it is left out altogether


def noise_view(record: Record, found: Trajectory, view: View, noise: Noise, *, floor: float = FLOOR) -> View:
    """Return the view with the noise's shape as the residual of a fit shows it."""
    if noise == "correlated":
        return replace(view, whitening=_correlated(record, found, floor))
    if noise == "shot":
        return replace(view, whitening=Whitening(root=_shot(record, found)))
    return view


def spectrum(record: Record, residual: Array) -> Array:
    """Return the mean power of each cosine mode of a frame, smoothed over neighbours; white noise has its variance.

    Cosines, whatever the boundary: noise does not know that a domain is periodic, and would be torn at its ends.
    """
    from scipy.ndimage import gaussian_filter

    forward, _ = numpy_transforms(record.mesh, "neumann")
    late = residual[int(_EARLY * len(residual)) :]
    power = np.mean([forward(frame) ** 2 for frame in late], axis=0) / np.mean(_noisy(record))
    return np.asarray(gaussian_filter(power, _SMOOTH, mode="reflect"))


def _noisy(record: Record) -> Seen:
    """Return the cells whose residual is noise: all, but on a window not its border, which is estimated."""
    if record.boundary != "open":
        return np.ones(record.mesh, dtype=bool)
    return ~border_mask(record.mesh)


def _correlated(record: Record, found: Trajectory, floor: float) -> Whitening:
    """Return colour and memory; their level is known, so it is not estimated a second time.

    Modes that hold nearly no noise would count without bound, and the model is not exact to that degree: the floor
    says how exactly it is taken. It only makes the errors larger.
    """
    power = spectrum(record, found.residual)
    late = found.residual[int(_EARLY * len(found.residual)) :]
    level = float(np.mean(late[:, _noisy(record)] ** 2))
    colour = 1.0 / np.sqrt(power / level + floor)
    memory = _memory(found.residual)
    return Whitening(colour=colour, memory=memory, level=float(np.sqrt(level)))


def _memory(residual: Array) -> float:
    """Return the correlation of consecutive frames; 0 where it is not seen.

    Noise that is correlated in space has fewer independent values than pixels: their number is read off the scatter
    from frame to frame.
    """
    late = residual[int(_EARLY * len(residual)) :].reshape(-1, residual[0].size)
    each = np.sum(late[1:] * late[:-1], axis=1) / np.mean(np.sum(late**2, axis=1))
    error = float(np.std(each) / np.sqrt(each.size))
    return float(np.mean(each)) if abs(np.mean(each)) > _MEMORY * error else 0.0


def _shot(record: Record, found: Trajectory) -> Array:
    """Return one over the noise's standard deviation as a line in the phase value; the mean variance is 1."""
    predicted = record.slab() - found.residual
    late = (np.arange(record.frames) >= _EARLY * record.frames).reshape(-1, *(1 for _ in record.mesh))
    seen = record.seen() & _noisy(record) & late
    u, r = predicted[seen], found.residual[seen]
    edges = np.quantile(u, np.linspace(0.0, 1.0, _BINS + 1))
    place = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, _BINS - 1)
    counts = np.bincount(place, minlength=_BINS).astype(float)
    kept = counts > 1
    centres = np.bincount(place, u, _BINS)[kept] / counts[kept]
    variances = np.bincount(place, r**2, _BINS)[kept] / counts[kept]
    root = np.sqrt(counts[kept]) / variances  # the error of a variance is in proportion to it
    slope, level = np.linalg.lstsq(root[:, None] * np.stack([centres, np.ones_like(centres)], 1), root * variances)[0]
    fitted = np.maximum(level + slope * np.clip(predicted, -1.0, 1.0), 0.05 * float(np.mean(variances)))
    return np.asarray(np.sqrt(np.mean(fitted) / fitted))


def outlier_mask(record: Record, found: Trajectory | None = None) -> Seen:
    """Return what is left of a record without outliers: spikes against the frames around, or far from a fit."""
    if found is None:
        far = _spikes(record.slab())
    else:
        scale = 1.4826 * float(np.median(np.abs(found.residual[record.seen() & _noisy(record)])))
        far = np.abs(found.residual) > _FAR * scale
    often = np.mean(far, axis=0) > _OFTEN
    return np.asarray(record.seen() & ~far & ~often)


def _spikes(values: Array) -> Seen:
    from scipy.ndimage import median_filter

    around = median_filter(values, size=(5, *(1 for _ in values.shape[1:])), mode="nearest")
    gap = np.abs(values - around)
    return np.asarray(gap > _SPIKE * 1.4826 * float(np.median(gap)))
