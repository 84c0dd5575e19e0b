"""Noise and gaps: the shape of the noise from the residual of a first fit, and values for what was not observed."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Literal, get_args

import numpy as np

from doublewell.dynamics import border_mask, numpy_transforms
from doublewell.hints import Array, Bools
from doublewell.observation.optics import View, Whitening
from doublewell.record import Record

Noise = Literal["white", "correlated", "shot", "robust"]
NOISES: tuple[Noise, ...] = get_args(Noise)
FLOOR = 0.01  # of the mean level: white noise that is added to a measured spectrum
_SMOOTH = 1.5  # modes over which a spectrum is averaged
_EARLY = 0.2  # fraction of the frames in which the initial field takes much of the noise
_MEMORY = 4.0  # standard errors of a correlation in time that counts
_BINS = 12  # of phase values, for noise that varies with them
_FAR = 5.0  # standard deviations of an outlier
_SPIKE = 6.0  # the same, against the frames around
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_OFTEN = 0.2  # fraction of frames in which a cell is an outlier, above which it is left out altogether


def noise_view(record: Record, residual: Array, view: View, noise: Noise, *, floor: float = FLOOR) -> View:
    """Return the view with the noise's shape as the residual of a fit shows it."""
    if noise == "correlated":
        return replace(view, whitening=_correlated(record, residual, floor))
    if noise == "shot":
        return replace(view, whitening=Whitening(root=_shot(record, residual)))
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


def _noisy(record: Record) -> Bools:
    """Return the cells whose residual is noise: all, but on a window not its border, which is estimated."""
    if record.boundary != "open":
        return np.ones(record.mesh, dtype=bool)
    return ~border_mask(record.mesh)


def _correlated(record: Record, residual: Array, floor: float) -> Whitening:
    """Return colour and memory; their level is known, so it is not estimated a second time.

    Modes that hold nearly no noise would count without bound, and the model is not exact to that degree: the floor
    is how exactly it is taken. It only makes the errors larger.
    """
    power = spectrum(record, residual)
    late = residual[int(_EARLY * len(residual)) :]
    level = float(np.mean(late[:, _noisy(record)] ** 2))
    colour = 1.0 / np.sqrt(power / level + floor)
    memory = _memory(residual)
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


def _shot(record: Record, residual: Array) -> Array:
    """Return one over the noise's standard deviation as a line in the phase value; the mean variance is 1."""
    predicted = record.slab() - residual
    late = (np.arange(record.frames) >= _EARLY * record.frames).reshape(-1, *(1 for _ in record.mesh))
    seen = record.observed() & _noisy(record) & late
    u, r = predicted[seen], residual[seen]
    edges = np.quantile(u, np.linspace(0.0, 1.0, _BINS + 1))
    bins = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, _BINS - 1)
    counts = np.bincount(bins, minlength=_BINS).astype(float)
    kept = counts > 1
    centres = np.bincount(bins, u, _BINS)[kept] / counts[kept]
    variances = np.bincount(bins, r**2, _BINS)[kept] / counts[kept]
    root = np.sqrt(counts[kept]) / variances  # the error of a variance is in proportion to it
    slope, level = np.linalg.lstsq(root[:, None] * np.stack([centres, np.ones_like(centres)], 1), root * variances)[0]
    fitted = np.maximum(level + slope * np.clip(predicted, -1.0, 1.0), 0.05 * float(np.mean(variances)))
    return np.asarray(np.sqrt(np.mean(fitted) / fitted))


def outlier_mask(record: Record, residual: Array | None = None) -> Bools:
    """Return what is left of a record without outliers: spikes against the frames around, or far from a fit."""
    if residual is None:
        far = _spikes(record.slab())
    else:
        scale = 1.4826 * float(np.median(np.abs(residual[record.observed() & _noisy(record)])))
        far = np.abs(residual) > _FAR * scale
    often = np.mean(far, axis=0) > _OFTEN
    return np.asarray(record.observed() & ~far & ~often)


def _spikes(values: Array) -> Bools:
    from scipy.ndimage import median_filter

    around = median_filter(values, size=(5, *(1 for _ in values.shape[1:])), mode="nearest")
    gap = np.abs(values - around)
    return np.asarray(gap > _SPIKE * 1.4826 * float(np.median(gap)))


def complete(record: Record) -> Record:
    """Return a record with its missing values filled in: to start from, not to fit."""
    if record.mask is None:
        return record
    values = filled(record.slab(), np.asarray(record.observed()))
    return Record(
        values, dx=record.dx, times=record.times, q=record.q, boundary=record.boundary,
        length_unit=record.length_unit, time_unit=record.time_unit,
    )  # fmt: skip


def rough_noise(values: Array, seen: Bools) -> float:
    """Return the noise from fourth differences in time where all five values are known; 0.05 where there are none."""
    count = len(values) - len(_FOURTH) + 1
    if count < 1:
        return 0.05
    rest = sum(c * values[k : k + count] for k, c in enumerate(_FOURTH)) / np.linalg.norm(_FOURTH)
    whole = reduce(np.logical_and, [seen[k : k + count] for k in range(len(_FOURTH))])
    return 1.4826 * float(np.median(np.abs(rest[whole]))) if whole.any() else 0.05


def filled(values: Array, seen: Bools) -> Array:
    """Fill missing values: from the nearest frame in which the cell is known, else from the cells around it."""
    known = np.where(seen, values, np.nan)
    for k in range(1, len(known)):
        known[k] = np.where(np.isnan(known[k]), known[k - 1], known[k])
    for k in range(len(known) - 2, -1, -1):
        known[k] = np.where(np.isnan(known[k]), known[k + 1], known[k])
    return np.stack([_smooth_fill(frame) for frame in known]) if np.isnan(known).any() else known


def _smooth_fill(frame: Array) -> Array:
    from scipy.ndimage import gaussian_filter

    gaps = np.isnan(frame)
    known, width = np.where(gaps, 0.0, frame), 1.0
    while gaps.any():
        weight = gaussian_filter((~np.isnan(frame)).astype(float), width, mode="nearest")
        mean = gaussian_filter(known, width, mode="nearest") / np.maximum(weight, 1e-300)
        ready = gaps & (weight > 0.05)
        frame = np.where(ready, mean, frame)
        gaps, width = gaps & ~ready, 1.5 * width
    return np.asarray(frame)
