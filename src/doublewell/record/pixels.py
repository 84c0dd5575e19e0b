"""Raw grey values before any model: dead and hot pixels, and the noise against the signal."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from doublewell.hints import Array, Bools

_RUN = 5  # consecutive frames whose difference of fourth order shows noise and hardly any motion
_GROUPS = 12  # such runs, spread over the movie
_FAR = 5.0  # standard deviations of one frame by which a bad pixel is off its neighbours in most frames
_SEEN = 0.1  # of the contrast by which it lies outside of what its neighbours span, at least
_ALONE = 3.0  # times as far as its neighbours are off theirs: the top of a drop has neighbours like itself
_FLICKER = 5.0  # times the noise of its neighbours
_STUCK = 14.0  # minus the log of the probability that a sound pixel stays the same
_BINS = 12  # of values, for the noise against the signal
_CLEAR = 4.5  # standard errors of the slope of a variance that is not constant


@dataclass(frozen=True)
class NoiseLine:
    """The variance of the noise as a line in the value: ``level`` at the value 0, ``slope``, and the error of that."""

    level: float
    slope: float
    slope_sd: float

    @property
    def shot(self) -> bool:
        """Whether the variance changes with the value beyond doubt."""
        return abs(self.slope) > _CLEAR * self.slope_sd


def runs(frames: int) -> list[tuple[int, int]]:
    """Return spans of up to five consecutive frames, spread over a movie."""
    size = min(_RUN, frames)
    starts = np.linspace(0, frames - size, min(_GROUPS, frames // size)).round()
    return [(int(k), int(k) + size) for k in np.unique(starts)]


def differences(values: Array) -> tuple[Array, Array]:
    """Return the highest difference along the first axis, up to the fourth, as noise of one value, and the means."""
    size = min(_RUN, len(values))
    weights = np.array([(-1.0) ** k * comb(size - 1, k) for k in range(size)])
    starts = len(values) - size + 1
    rest = sum(c * values[k : k + starts] for k, c in enumerate(weights)) / np.linalg.norm(weights)
    return np.asarray(rest), np.asarray(sum(values[k : k + starts] for k in range(size)) / size)


def bad_pixels(groups: Array, step: float) -> Bools:
    """Return which pixels are dead, hot, stuck or flicker; `groups` has axes run, frame, space, `step` the grey step.

    Bad is a pixel that in most frames lies far from the median of its neighbours and outside of what they span, while
    they do not lie so far from their own; one that stays the same where its neighbours are noisy; and one with several
    times their noise. The median of the neighbours of a plane interface is the value between them, however steep it is;
    one that passes is not there in most frames.
    """
    from scipy.ndimage import generate_binary_structure, rank_filter

    count, size, *mesh = groups.shape
    around = generate_binary_structure(len(mesh), len(mesh)) if len(mesh) > 1 else np.ones(5, bool)
    around[(around.shape[0] // 2,) * len(mesh)] = False
    half = int(around.sum()) // 2

    def ranked(picture: Array, rank: int) -> list[Array]:
        """Return the neighbour of that rank from below, and from above."""
        return [rank_filter(picture, k, footprint=around, mode="reflect") for k in (rank, 2 * half - 1 - rank)]

    def beside(picture: Array) -> Array:
        """Return the median of the neighbours."""
        return np.asarray(0.5 * sum(ranked(picture, half - 1)))

    def beyond(picture: Array) -> Array:
        """Return how far a pixel lies outside of what all but one neighbour on either side span."""
        low, high = ranked(picture, 1)
        return np.maximum(picture - high, low - picture)

    frames = groups.reshape(-1, *mesh)
    rest, means = (np.concatenate(parts) for parts in zip(*map(differences, groups), strict=True))
    noise, line = 1.4826 * np.median(np.abs(rest), axis=0), noise_line(means.ravel(), rest.ravel())
    local, (low, high) = beside(noise), np.quantile(frames, (0.01, 0.99))
    usual = np.sqrt(np.maximum(line.level + line.slope * beside(np.median(frames, axis=0)), 0.0))
    usual = np.maximum(usual, local) if count > 4 else usual
    apart = np.median(np.stack([frame - beside(frame) for frame in frames]), axis=0)
    outside = np.median(np.stack([beyond(frame) for frame in frames]), axis=0)
    bad = (np.abs(apart) > _FAR * usual) & (outside > np.maximum(0.5 * _FAR * usual, _SEEN * (high - low)))
    bad &= np.abs(apart) > _ALONE * beside(np.abs(apart))
    if len(mesh) == 1:
        bad[[0, 1, -2, -1]] = False  # whose neighbours lie on one side
    if len(frames) >= _RUN:
        least = np.maximum(max(step, 1e-4 * (high - low)), 0.1 * usual)
        with np.errstate(divide="ignore", invalid="ignore"):
            unlikely = (len(frames) - 1) * np.log(np.minimum(usual, 2.0 * local) / (0.28 * least))
        cut = (frames[0] == frames.min()) | (frames[0] == frames.max())  # a plateau that is cut off stays the same
        stuck = (np.ptp(frames, axis=0) < least) & (unlikely > _STUCK)
        bad |= stuck & (~cut | (np.abs(apart) > _FAR * usual))
    if count >= _GROUPS - 2 and size == _RUN:
        bad |= noise > _FLICKER * np.maximum(usual, step)
    return np.asarray(bad)


def noise_line(means: Array, rest: Array) -> NoiseLine:
    """Fit the variance of differences as a line in the mean value, by medians of groups of equal size."""
    order = np.argsort(means, kind="stable")
    groups = [part for part in np.array_split(order, _BINS) if part.size > 1]
    centres = np.array([np.mean(means[part]) for part in groups])
    variances = np.array([(1.4826 * np.median(np.abs(rest[part]))) ** 2 for part in groups])
    counts = np.array([part.size for part in groups])
    if not np.all(variances > 0.0):
        return NoiseLine(float(np.mean(variances)), 0.0, np.inf)
    columns, fitted = np.stack([np.ones_like(centres), centres], 1), np.full(len(groups), np.mean(variances))
    for _ in range(4):  # the error of a variance is in proportion to it
        weight = 1.0 / (fitted * np.sqrt(5.4 / counts))  # 2 / 0.37, the efficiency of a median
        (level, slope), *_ = np.linalg.lstsq(weight[:, None] * columns, weight * variances, rcond=None)
        fitted = np.maximum(level + slope * centres, 0.05 * np.mean(variances))
    scatter = max(1.0, float(np.sum((weight * (variances - fitted)) ** 2)) / max(len(groups) - 2, 1))
    covariance = np.linalg.inv((weight[:, None] * columns).T @ (weight[:, None] * columns)) * scatter
    return NoiseLine(float(level), float(slope), float(np.sqrt(covariance[1, 1])))
