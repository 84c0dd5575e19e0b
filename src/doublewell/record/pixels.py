"""Raw grey values before any model: dead and hot pixels, and the noise against the signal."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from doublewell.hints import Array, Bools

_RUN = 5  # consecutive frames whose difference of fourth order shows noise and hardly any motion
_GROUPS = 12  # such runs, spread over the movie
_FAR = 5.0  # standard deviations of one frame by which a bad pixel is off its neighbours in most frames
_SEEN = 0.1  # of the contrast by which it lies outside of what its neighbours span, at least
_ALONE = 3.0  # times as far as its neighbours are off theirs: the top of a drop has neighbours like itself
_FLICKER = 5.0  # times the noise of its neighbours
_STUCK = 14.0  # minus the log of the probability that a sound pixel stays the same
_STEPS = 8  # of the fit of a variance
_TAIL, _LEFT = 9.0, 0.995  # a square counts at most nine times its variance; what is left of the mean of a normal one
_LEAST = 0.02  # of the mean variance, anywhere
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
    squares = comb(2 * size - 2, size - 1)  # the sum of those of its weights, which are binomial coefficients
    means = sliding_window_view(values, size, axis=0).mean(axis=-1)
    return np.diff(values, size - 1, axis=0) / np.sqrt(squares), np.asarray(means)


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


def noise_line(means: Array, rest: Array, shared: float = 1.0) -> NoiseLine:
    """Fit the variance of differences as a line in the mean value, by its likelihood, robust against outliers.

    `shared` is how many differences are worth one independent one. Motion adds variance to values between
    the plateaus: where a parabola shows that, the line joins the plateaus.
    """
    low, high = np.quantile(means, (0.01, 0.99))
    middle, half, power = 0.5 * (low + high), 0.5 * (high - low) or 1.0, rest**2
    x, mean = (means - middle) / half, float(np.median(power)) / 0.455
    if mean <= 0.0:
        return NoiseLine(0.0, 0.0, np.inf)
    for count in (3, 2):
        columns, variance = x[:, None] ** np.arange(count), np.full(x.size, mean)
        for _ in range(_STEPS):
            scaled = columns / variance[:, None]
            normal = scaled.T @ scaled + 1e-12 * x.size * np.eye(count) / mean**2
            best = np.linalg.solve(normal, scaled.T @ (np.minimum(power / variance, _TAIL) / _LEFT))
            variance = np.maximum(columns @ best, _LEAST * mean)
        error = np.sqrt(2.0 * shared * np.diag(np.linalg.inv(normal)))
        if count == 3 and abs(best[2]) > _CLEAR * error[2]:
            best = np.array([best[0] + best[2], best[1]])
            break
    slope = float(best[1] / half)
    return NoiseLine(float(best[0] - slope * middle), slope, float(error[1] / half))
