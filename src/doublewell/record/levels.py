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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array

Flatten = Literal["gain", "offset"]
Mask = NDArray[np.bool_]
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
class Bulk:
    """Pixels of one frame deep inside the low and the high phase; a deficit is how far they are from pure, in u."""

    masks: tuple[Mask, Mask]
    deficits: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Camera:
    """The fitted camera: the two levels, log fading of each frame, log gain and offset of each pixel."""

    dark: float
    levels: Array
    fading: Array
    gain: Array
    offset: Array

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
    frame: Callable[[int], Array], chosen: list[int], frames: int, mesh: tuple[int, ...], start: Array, *,
    dark: float, flatten: Flatten | None, bleaching: bool, order: int,
) -> Levels:  # fmt: skip
    """Fit the camera to bulk pixels, classified again with each fit; the first guess is a flat light and `start`."""
    camera = _flat_camera(start, frames, mesh, dark)
    for _ in range(_ROUNDS if flatten or bleaching else 2):
        pixels, deficit = _bulk_pixels(frame, chosen, camera)
        camera = fit_camera(
            pixels, camera.levels + dark, mesh, frames, dark=dark, flatten=flatten, bleaching=bleaching, order=order
        )
    gain, offset = camera.gain.reshape(-1)[pixels.cell], camera.offset.reshape(-1)[pixels.cell]
    flat = (pixels.value - dark - offset) / np.exp(gain + camera.fading[pixels.frame])
    rest, contrast = np.asarray(flat - camera.levels[pixels.phase]), float(np.ptp(camera.levels))
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if contrast < _APART * spread:
        raise InputError(
            f"two plateaus cannot be distinguished: the values scatter by {spread:.3g} around levels {contrast:.3g} "
            f"apart; {_way_out()}"
        )
    error = np.array([_clustered_error(rest, pixels, k, mesh) for k in (0, 1)])
    sd = np.hypot(error, 0.5 * contrast * np.array(deficit))
    return Levels(camera, sd, deficit, 2.0 * spread / contrast, _fade_gap(rest, pixels) / (0.5 * contrast))


def given_levels(sample: Array, frames: int, levels: Array, *, dark: float) -> Levels:
    """Return levels that are given, of a movie in which none could be found.

    The noise is that of two or three frames, `sample`: of their differences, in which slow changes cancel.
    """
    camera = _flat_camera(levels, frames, sample.shape[1:], dark)
    weights = np.array([1.0, -2.0, 1.0] if len(sample) == 3 else [1.0, -1.0])
    rest = np.tensordot(weights, sample, axes=1) / np.linalg.norm(weights)
    noise = 2.0 * 1.4826 * float(np.median(np.abs(rest))) / float(np.ptp(levels))
    return Levels(camera, np.zeros(2), (0.0, 0.0), noise, 0.0)


def smooth_basis(mesh: tuple[int, ...], order: int) -> Array:
    """Return Legendre polynomials of total degree 1..order on a mesh; shape (terms, cells). Each has mean near 0."""
    lines = [np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, n), order) for n in mesh]
    powers = [p for p in product(range(order + 1), repeat=len(mesh)) if 0 < sum(p) <= order]
    terms = []
    for power in powers:
        term = np.ones(())
        for line, p in zip(lines, power, strict=True):
            term = np.multiply.outer(term, line[:, p])
        terms.append((term - term.mean()).ravel())
    return np.array(terms).reshape(len(powers), -1)


def fit_camera(
    pixels: Pixels, start: Array, mesh: tuple[int, ...], frames: int, *,
    dark: float, flatten: Flatten | None, bleaching: bool, order: int,
) -> Camera:  # fmt: skip
    """Fit levels, light and fading by robust Gauss-Newton steps from two rough levels."""
    basis = smooth_basis(mesh, order) if flatten else np.zeros((0, int(np.prod(mesh))))
    terms = basis[:, pixels.cell]
    levels, weights = np.asarray(start, dtype=np.float64) - dark, np.zeros(len(basis))
    fading = np.zeros(frames)
    value = pixels.value - dark
    for _ in range(_STEPS):
        smooth = weights @ terms
        light = np.exp(fading[pixels.frame] + (smooth if flatten == "gain" else 0.0))
        signal = levels[pixels.phase] * light
        rest = value - signal - (smooth if flatten == "offset" else 0.0)
        columns = [np.where(pixels.phase == k, light, 0.0) for k in (0, 1)]
        columns += list(terms * (signal if flatten == "gain" else 1.0))
        step = _robust_step(np.array(columns), rest)
        levels, weights = levels + step[:2], weights + step[2:]
        change = 0.0
        if bleaching:
            fading, change = _new_fading(pixels, value, levels, weights @ terms, flatten, fading)
            levels, fading = levels * np.exp(fading.mean()), fading - fading.mean()
        if max(float(np.max(np.abs(step[:2]))) / float(np.ptp(levels)), change) < _SMALL:
            break
    picture, none = (weights @ basis).reshape(mesh), np.zeros(mesh)
    return Camera(
        dark, levels, fading, picture if flatten == "gain" else none, picture if flatten == "offset" else none
    )


def find_bulk(u: Array, width: float) -> Bulk:
    """Return the pixels of a rough phase field that lie deep in a phase; `width` is the interface's, in pixels."""
    above = _smoothed(u) > 0.0
    (low, below), (high, beyond) = _deep(~above, width), _deep(above, width)
    return Bulk((low, high), (below, beyond))


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


def _flat_camera(levels: Array, frames: int, mesh: tuple[int, ...], dark: float) -> Camera:
    none = np.zeros(mesh)
    return Camera(dark, np.asarray(levels) - dark, np.zeros(frames), none, none)


def _way_out() -> str:
    return f"pass {option('levels', ('low', 'high'))}, the intensities of the two pure phases"


def _robust_step(columns: Array, rest: Array) -> Array:
    """Solve least squares with Huber's weights; columns are the rows here.

    Normal equations are enough: Legendre polynomials are nearly orthogonal, and a step need not be exact.
    """
    spread = 1.4826 * float(np.median(np.abs(rest - np.median(rest)))) or 1.0
    weight = 1.0 / np.maximum(np.abs(rest) / (_TAIL * spread), 1.0)
    size = np.sqrt(np.mean(columns**2, axis=1))
    scaled = columns / size[:, None]
    heavy = scaled * weight
    return np.asarray(np.linalg.lstsq(heavy @ scaled.T, heavy @ rest, rcond=None)[0] / size)


def _new_fading(
    pixels: Pixels, value: Array, levels: Array, smooth: Array, flatten: Flatten | None, before: Array
) -> tuple[Array, float]:
    """Return the fading of every frame, the ratio of the values to what the levels predict, and its largest change.

    Frames without any bulk lie between their neighbours.
    """
    light = np.exp(smooth) if flatten == "gain" else 1.0
    model = levels[pixels.phase] * light
    value = value - (smooth if flatten == "offset" else 0.0)
    top = np.bincount(pixels.frame, model * value, minlength=len(before))
    bottom = np.bincount(pixels.frame, model * model, minlength=len(before))
    known = (bottom > 0.0) & (top > 0.0)
    numbers = np.arange(len(before))
    fading = np.interp(numbers, numbers[known], np.log(top[known] / bottom[known]))
    return fading, float(np.max(np.abs(fading - before)))


def _bulk_pixels(
    frame: Callable[[int], Array], chosen: list[int], camera: Camera
) -> tuple[Pixels, tuple[float, float]]:
    """Collect bulk pixels of the frames, and the largest deficit of each phase among them."""
    pictures = [(k, frame(k)) for k in chosen]
    fields = [camera.phases(picture[None], k)[0] for k, picture in pictures]
    widths = [width for u in fields if (width := interface_pixels(u)) is not None]
    if not widths:
        raise InputError(
            "there is no interface between the two plateaus: the picture looks like one phase, like noise, or like a "
            f"mask with steps sharper than a pixel; record grey values that resolve the interface, or {_way_out()}"
        )
    width = float(np.median(widths))
    bulks = [(k, picture, find_bulk(u, width)) for (k, picture), u in zip(pictures, fields, strict=True)]
    parts, deficits = [], []
    for phase in (0, 1):
        kept, deficit = _deep_frames(bulks, phase)
        parts += [_sampled(picture, mask, k, phase, len(kept)) for k, picture, mask in kept]
        deficits.append(deficit)
    stacked = [np.concatenate([part[i] for part in parts]) for i in range(4)]
    return Pixels(stacked[0], *(x.astype(np.int64) for x in stacked[1:])), (deficits[0], deficits[1])


def _deep_frames(
    bulks: list[tuple[int, Array, Bulk]], phase: int
) -> tuple[list[tuple[int, Array, Mask]], float]:  # fmt: skip
    """Keep the frames whose bulk of a phase is deep, or about as deep as any, and return the largest deficit."""
    usable = [
        (k, picture, bulk.masks[phase], bulk.deficits[phase])
        for k, picture, bulk in bulks
        if np.count_nonzero(bulk.masks[phase]) > 0
    ]
    least = min((deficit for *_, deficit in usable), default=1.0)
    limit = max(_DEEP_ENOUGH, 1.5 * least)
    kept = [(k, picture, mask) for k, picture, mask, deficit in usable if deficit <= limit]
    if sum(np.count_nonzero(mask) for _, _, mask in kept) < _FEWEST or least > 0.1:
        name = ("low", "high")[phase]
        raise InputError(
            f"the {name} plateau has no pixels far from an interface, so its level cannot be measured; {_way_out()}"
        )
    return kept, max(deficit for *_, deficit in usable if deficit <= limit)


def _sampled(picture: Array, mask: Mask, k: int, phase: int, count: int) -> tuple[Any, ...]:
    """Return values, phase, frame and cell of every n-th bulk pixel of a frame."""
    cells = np.flatnonzero(mask)
    most = max(_FEWEST, min(_PER_FRAME, _PIXELS // (2 * count)))
    cells = cells[:: max(1, -(-cells.size // most))]
    return picture.ravel()[cells], np.full(cells.size, phase), np.full(cells.size, k), cells


def _clustered_error(rest: Array, pixels: Pixels, phase: int, mesh: tuple[int, ...]) -> float:
    """Return the standard error of a level, with residuals of one tile of the picture counted as one.

    What is wrong at a place is wrong there in every frame, so more frames do not average it away.
    """
    own = pixels.phase == phase
    tile = np.zeros(int(own.sum()), dtype=np.int64)
    for cells, n in zip(np.unravel_index(pixels.cell[own], mesh), mesh, strict=True):
        tile = tile * _TILES + cells * _TILES // n
    sums = np.bincount(tile, rest[own])
    return float(np.sqrt(np.sum(sums**2)) / own.sum())


def _fade_gap(rest: Array, pixels: Pixels) -> float:
    """Return how much more one plateau changes than the other from the first to the last third of the frames."""
    first, last = np.quantile(pixels.frame, [1 / 3, 2 / 3])
    changes = []
    for phase in (0, 1):
        own = pixels.phase == phase
        early, late = rest[own & (pixels.frame <= first)], rest[own & (pixels.frame >= last)]
        changes.append(float(np.median(late) - np.median(early)) if early.size and late.size else 0.0)
    return abs(changes[1] - changes[0])


def _smoothed(u: Array) -> Array:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(u, _SMOOTH, mode="nearest"))


def _deep(inside: Mask, width: float) -> tuple[Mask, float]:
    """Return the deep pixels of one phase, and the mean of 1 - tanh of their depth."""
    from scipy.ndimage import distance_transform_edt

    if inside.all() or not inside.any():
        return inside, 0.0
    depth = distance_transform_edt(inside)
    chosen = depth >= min(_DEEP * width, float(np.quantile(depth[inside], _SHALLOW)))
    return np.asarray(chosen), float(np.mean(1.0 - np.tanh(_REACH * depth[chosen] / width)))
