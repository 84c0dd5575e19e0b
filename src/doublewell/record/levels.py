"""Levels: the two plateaus of a movie of grey values with its light and fading, fitted to pixels deep inside a phase.

There the camera records

    I(t, x) = dark + exp(T(t) + P(x)) s_phase + B(x),

with s_phase one of two levels. P (uneven light), B (stray light) and T (bleaching) are left out unless they are asked
for. P and B are polynomials without a constant, T has mean 0: the levels are those of an average place and time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import atanh
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array, Bools

Flatten = Literal["gain", "offset"]
Bulk = tuple[Bools, float]  # deep pixels of one phase in one frame, and how far they are from pure, in u
_STEPS = 12  # Gauss-Newton steps of one fit
_SMALL = 1e-7  # relative size of the last step
_TAIL = 2.5  # robust standard deviations beyond which a pixel counts less
_SMOOTH = 1.5  # pixels, so that noise makes no specks of the other phase
_DEEP = 1.5  # interface widths from the middle of an interface: a tanh profile is there within 0.03 % of its end
_SHALLOW = 0.9  # quantile of the distance inside a phase that stands in where no pixel lies so deep
_REACH = 2.0 * atanh(0.9)
_PER_FRAME = 3000  # bulk pixels of each phase and frame that enter the fit
_PIXELS = 100_000  # in all
_APART = 3.0  # robust standard deviations between two plateaus
_ROUNDS = 3  # of classification and fit
_DEEP_ENOUGH = 1e-3  # in u: frames whose bulk is this close to the pure phase are enough
_TILES = 6  # along each axis, for the error of the levels
_FEWEST = 30  # bulk pixels of a phase


@dataclass(frozen=True, eq=False)
class Pixels:
    """Bulk pixels of many frames: value, phase (0 low, 1 high), frame number and cell number."""

    value: Array
    phase: NDArray[np.int64]
    frame: NDArray[np.int64]
    cell: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Camera:
    """The fitted camera: the two levels over dark, log fading of each frame, log gain and offset of each pixel."""

    dark: float
    levels: Array
    fading: Array
    gain: Array
    offset: Array

    @classmethod
    def flat(cls, levels: Array, frames: int, mesh: tuple[int, ...], dark: float) -> Camera:
        """Return a camera with even and steady light."""
        return cls(dark, np.asarray(levels) - dark, np.zeros(frames), np.zeros(mesh), np.zeros(mesh))

    def phases(self, frames: Array, first: int) -> Array:
        """Return phase values of frames that begin at number `first`."""
        low, high = self.levels
        fade = self.fading[first : first + len(frames)].reshape(-1, *(1,) * (frames.ndim - 1))
        flat = (frames - self.dark - self.offset) / np.exp(fade + self.gain)
        return np.asarray(2.0 * (flat - low) / (high - low) - 1.0)


@dataclass(frozen=True, eq=False)
class Levels:
    """The fitted camera, the standard deviations of its levels, and what they rest on.

    ``deficit`` is how far the bulk may be from the pure phases, in u, and is part of ``sd``; ``noise`` is in u;
    ``fade_gap`` is by how much the two plateaus fade differently, in u.
    """

    camera: Camera
    sd: Array
    deficit: tuple[float, float]
    noise: float
    fade_gap: float


def rough_levels(sample: Array) -> Array:
    """Return the medians on both sides of the threshold that separates the values best (Otsu's)."""
    low, high = np.quantile(sample, [0.001, 0.999])
    if not high > low:
        raise InputError(f"all intensities are {low:g}: expected two phases and an interface between them")
    counts, edges = np.histogram(sample, bins=512, range=(low, high))
    middle = 0.5 * (edges[1:] + edges[:-1])
    below, mass = np.cumsum(counts) / counts.sum(), np.cumsum(counts * middle) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mass[-1] * below - mass) ** 2 / (below * (1.0 - below))
    best = float(np.mean(middle[between >= np.nanmax(between) * (1.0 - 1e-9)]))
    return np.array([np.median(sample[sample <= best]), np.median(sample[sample > best])])


def find_levels(
    frame: Callable[[int], Array], chosen: list[int], camera: Camera, *,
    flatten: Flatten | None, bleaching: bool, order: int,
) -> Levels:  # fmt: skip
    """Fit the camera to bulk pixels of chosen frames, classified again with each fit; `camera` is the first guess."""
    mesh = camera.gain.shape
    for _ in range(_ROUNDS if flatten or bleaching else 2):
        pixels, deficit = _bulk_pixels(frame, chosen, camera)
        camera = _fitted(pixels, camera, flatten, bleaching, order)
    gain, offset = camera.gain.reshape(-1)[pixels.cell], camera.offset.reshape(-1)[pixels.cell]
    flat = (pixels.value - camera.dark - offset) / np.exp(gain + camera.fading[pixels.frame])
    rest, contrast = np.asarray(flat - camera.levels[pixels.phase]), float(np.ptp(camera.levels))
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if contrast < _APART * spread:
        raise InputError(
            f"two plateaus cannot be distinguished: the values scatter by {spread:.3g} around levels {contrast:.3g} "
            f"apart; {_way_out()}"
        )
    # what is wrong somewhere is wrong there in every frame, so residuals of one tile of the picture count as one
    tile = np.zeros(rest.size, dtype=np.int64)
    for cells, n in zip(np.unravel_index(pixels.cell, mesh), mesh, strict=True):
        tile = tile * _TILES + cells * _TILES // n
    first, last = np.quantile(pixels.frame, [1 / 3, 2 / 3])
    errors, changes = [], []
    for own in (pixels.phase == 0, pixels.phase == 1):
        errors.append(float(np.sqrt(np.sum(np.bincount(tile[own], rest[own]) ** 2)) / own.sum()))
        early, late = rest[own & (pixels.frame <= first)], rest[own & (pixels.frame >= last)]
        changes.append(float(np.median(late) - np.median(early)) if early.size and late.size else 0.0)
    sd, gap = np.hypot(errors, 0.5 * contrast * np.array(deficit)), abs(changes[1] - changes[0])
    return Levels(camera, sd, deficit, 2.0 * spread / contrast, gap / (0.5 * contrast))


def given_levels(sample: Array, camera: Camera) -> Levels:
    """Return levels that are given, of a movie in which none could be found.

    The noise is that of two or three frames, `sample`: of their differences, in which slow changes cancel.
    """
    weights = np.array([1.0, -2.0, 1.0] if len(sample) == 3 else [1.0, -1.0])
    rest = np.tensordot(weights, sample, axes=1) / np.linalg.norm(weights)
    noise = 2.0 * 1.4826 * float(np.median(np.abs(rest))) / float(np.ptp(camera.levels))
    return Levels(camera, np.zeros(2), (0.0, 0.0), noise, 0.0)


def smooth_basis(mesh: tuple[int, ...], order: int) -> Array:
    """Return Legendre polynomials of total degree 1..order on a mesh; shape (terms, cells). Each has mean near 0."""
    lines = [np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, n), order) for n in mesh]
    terms = []
    for powers in product(range(order + 1), repeat=len(mesh)):
        if 0 < sum(powers) <= order:
            term = np.ones(())
            for line, p in zip(lines, powers, strict=True):
                term = np.multiply.outer(term, line[:, p])
            terms.append((term - term.mean()).ravel())
    return np.array(terms)


def _fitted(pixels: Pixels, camera: Camera, flatten: Flatten | None, bleaching: bool, order: int) -> Camera:
    """Fit levels, light and fading by robust Gauss-Newton steps from the levels of a camera."""
    mesh, frames = camera.gain.shape, len(camera.fading)
    basis = smooth_basis(mesh, order) if flatten else np.zeros((0, camera.gain.size))
    terms, levels, weights, fading = basis[:, pixels.cell], camera.levels, np.zeros(len(basis)), np.zeros(frames)
    value, numbers = pixels.value - camera.dark, np.arange(frames)

    def light(smooth: Array) -> tuple[Array, Array]:
        """Return log gain and offset that a smooth picture stands for."""
        none = np.zeros_like(smooth)
        return (smooth, none) if flatten == "gain" else (none, smooth)

    for _ in range(_STEPS):
        gain, offset = light(weights @ terms)
        bright = np.exp(fading[pixels.frame] + gain)
        signal = levels[pixels.phase] * bright
        columns = [np.where(pixels.phase == k, bright, 0.0) for k in (0, 1)]
        columns += list(terms * (signal if flatten == "gain" else 1.0))
        rest = value - signal - offset
        deviation = 1.4826 * float(np.median(np.abs(rest - np.median(rest)))) or 1.0
        weight = 1.0 / np.maximum(np.abs(rest) / (_TAIL * deviation), 1.0)  # Huber's
        size = np.sqrt(np.mean(np.square(columns), axis=1))
        scaled = np.array(columns) / size[:, None]
        # normal equations are enough: the polynomials are nearly orthogonal, and a step need not be exact
        step = np.linalg.lstsq((scaled * weight) @ scaled.T, (scaled * weight) @ rest, rcond=None)[0] / size
        levels, weights, change = levels + step[:2], weights + step[2:], 0.0
        if bleaching:  # the ratio of the values of a frame to what the levels predict
            gain, offset = light(weights @ terms)
            model = levels[pixels.phase] * np.exp(gain)
            top = np.bincount(pixels.frame, model * (value - offset), minlength=frames)
            bottom = np.bincount(pixels.frame, model * model, minlength=frames)
            known = (bottom > 0.0) & (top > 0.0)  # frames without any bulk lie between their neighbours
            before, fading = fading, np.interp(numbers, numbers[known], np.log(top[known] / bottom[known]))
            change = float(np.max(np.abs(fading - before)))
            levels, fading = levels * np.exp(fading.mean()), fading - fading.mean()
        if max(float(np.max(np.abs(step[:2]))) / float(np.ptp(levels)), change) < _SMALL:
            break
    return Camera(camera.dark, levels, fading, *light((weights @ basis).reshape(mesh)))


def find_bulk(u: Array, width: float) -> tuple[Bulk, Bulk]:
    """Return the pixels of a rough phase field deep in the low and in the high phase; `width` in pixels.

    Their distance from pure is the mean of 1 - tanh of their depth.
    """
    from scipy.ndimage import distance_transform_edt

    above = _smoothed(u) > 0.0
    parts: list[Bulk] = []
    for inside in (~above, above):
        deep, deficit = inside, 0.0
        if inside.any() and not inside.all():
            depth = distance_transform_edt(inside)
            deep = depth >= min(_DEEP * width, float(np.quantile(depth[inside], _SHALLOW)))
            deficit = float(np.mean(1.0 - np.tanh(_REACH * depth[deep] / width)))
        parts.append((deep, deficit))
    return parts[0], parts[1]


def interface_pixels(u: Array) -> float | None:
    """Return the width of the interfaces of a rough phase field from -0.9 to 0.9 in pixels, None where there is none.

    It is the width of the tanh profile with the median slope near u = 0.
    """
    smooth = _smoothed(u)
    near = np.abs(smooth) < 0.3
    if np.count_nonzero(near) < 2:
        return None
    slope = float(np.median(np.sqrt(sum(g[near] ** 2 for g in np.atleast_2d(np.gradient(smooth))))))
    return _REACH / slope if slope > 0.0 else None


def _way_out() -> str:
    return f"pass {option('levels', ('low', 'high'))}, the intensities of the two pure phases"


def _bulk_pixels(
    frame: Callable[[int], Array], chosen: list[int], camera: Camera
) -> tuple[Pixels, tuple[float, float]]:
    """Collect bulk pixels of the frames, and the largest deficit of each phase among them.

    Of each phase the frames count whose bulk is deep, or about as deep as any.
    """
    pictures = {k: frame(k) for k in chosen}
    fields = {k: camera.phases(picture[None], k)[0] for k, picture in pictures.items()}
    widths = [width for u in fields.values() if (width := interface_pixels(u)) is not None]
    if not widths:
        raise InputError(
            "there is no interface between the two plateaus: the picture looks like one phase, like noise, or like a "
            f"mask with steps sharper than a pixel; record grey values that resolve the interface, or {_way_out()}"
        )
    bulks = {k: find_bulk(u, float(np.median(widths))) for k, u in fields.items()}
    parts, deficits = [], []
    for phase, name in enumerate(("low", "high")):
        usable = {k: bulk[phase] for k, bulk in bulks.items() if bulk[phase][0].any()}
        least = min((deficit for _, deficit in usable.values()), default=1.0)
        kept = {k: mask for k, (mask, deficit) in usable.items() if deficit <= max(_DEEP_ENOUGH, 1.5 * least)}
        if sum(np.count_nonzero(mask) for mask in kept.values()) < _FEWEST or least > 0.1:
            raise InputError(
                f"the {name} plateau has no pixels far from an interface, so its level cannot be measured; {_way_out()}"
            )
        deficits.append(max(usable[k][1] for k in kept))
        most = max(_FEWEST, min(_PER_FRAME, _PIXELS // (2 * len(kept))))
        for k, mask in kept.items():
            cells = np.flatnonzero(mask)
            cells = cells[:: max(1, -(-cells.size // most))]
            parts.append((pictures[k].ravel()[cells], np.full(cells.size, phase), np.full(cells.size, k), cells))
    return Pixels(*(np.concatenate(column) for column in zip(*parts, strict=True))), (deficits[0], deficits[1])


def _smoothed(u: Array) -> Array:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(u, _SMOOTH, mode="nearest"))
