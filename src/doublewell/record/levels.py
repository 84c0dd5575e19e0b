"""Levels: the two plateaus of a histogram, and how well they are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record.background import Flatten, Model, Pixels, fit_model
from doublewell.record.bulk import Bulk, find_bulk, interface_pixels

__all__ = ["Levels", "find_levels", "given_levels", "rough_levels"]

_PER_FRAME = 3000  # bulk pixels of each phase and frame that enter the fit
_PIXELS = 100_000  # in all
_APART = 3.0  # robust standard deviations between two plateaus
_ROUNDS = 3  # of classification and fit
_DEEP_ENOUGH = 1e-3  # in u: frames whose bulk is this close to the pure phase are enough
_TILES = 6  # along each axis, for the error of the levels
_FEWEST = 30  # bulk pixels of a phase
_WAY_OUT = "pass levels=(low, high), the intensities of the two pure phases"


Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Levels:
    """The fitted camera model, the standard deviations of its levels, and what they rest on.

    ``deficit`` is how far the bulk may be from the pure phases, in u, and is part of ``sd``; ``noise`` is in u;
    ``width`` is that of an interface in pixels; ``fade_gap`` by how much the two plateaus fade differently, in u.
    """

    model: Model
    sd: Array
    deficit: tuple[float, float]
    noise: float
    width: float
    pixels: tuple[int, int]
    fade_gap: float


def rough_levels(sample: Array) -> Array:
    """Return the medians on both sides of the threshold that separates the values best (Otsu's)."""
    low, high = np.quantile(sample, [0.001, 0.999])
    if not high > low:
        raise InputError(f"all intensities are {low:g}: expected two phases and an interface between them")
    counts, edges = np.histogram(sample, bins=512, range=(low, high))
    middle = 0.5 * (edges[1:] + edges[:-1])
    share, mass = np.cumsum(counts) / counts.sum(), np.cumsum(counts * middle) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mass[-1] * share - mass) ** 2 / (share * (1.0 - share))
    best = float(np.mean(middle[between >= np.nanmax(between) * (1.0 - 1e-9)]))
    return np.array([np.median(sample[sample <= best]), np.median(sample[sample > best])])


def find_levels(
    frame: Callable[[int], Array], chosen: list[int], frames: int, mesh: tuple[int, ...], start: Array, *,
    dark: float, flatten: Flatten | None, bleaching: bool, order: int,
) -> Levels:  # fmt: skip
    """Fit the camera to bulk pixels, found anew with each fit; the first guess is a flat light and `start`."""
    none = np.zeros(mesh)
    model = Model(dark, np.asarray(start) - dark, np.zeros(frames), none, none)
    for _ in range(_ROUNDS if flatten or bleaching else 2):
        pixels, deficit, width = _bulk_pixels(frame, chosen, model)
        model = fit_model(
            pixels, model.levels + dark, mesh, frames, dark=dark, flatten=flatten, bleaching=bleaching, order=order
        )
    rest, contrast = _residual(model, pixels), float(np.ptp(model.levels))
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if contrast < _APART * spread:
        raise InputError(
            f"two plateaus are not seen: the values scatter by {spread:.3g} around levels {contrast:.3g} apart; "
            f"{_WAY_OUT}"
        )
    error = np.array([_clustered_error(rest, pixels, k, mesh) for k in (0, 1)])
    sd = np.hypot(error, 0.5 * contrast * np.array(deficit))
    count = tuple(int(np.sum(pixels.phase == k)) for k in (0, 1))
    gap = _fade_gap(rest, pixels) / (0.5 * contrast)
    return Levels(model, sd, deficit, 2.0 * spread / contrast, width, (count[0], count[1]), gap)


def _bulk_pixels(
    frame: Callable[[int], Array], chosen: list[int], model: Model
) -> tuple[Pixels, tuple[float, float], float]:
    """Collect bulk pixels of the frames, the largest deficit among them, and the interface width."""
    looks = [(k, frame(k)) for k in chosen]
    fields = [(k, seen, model.apply(seen[None], k)[0]) for k, seen in looks]
    widths = [width for _, _, u in fields if (width := interface_pixels(u)) is not None]
    if not widths:
        raise InputError(
            "no interface is seen between the two plateaus: the picture looks like one phase, like noise, or like a "
            f"mask with steps sharper than a pixel; record grey values that resolve the interface, or {_WAY_OUT}"
        )
    width = float(np.median(widths))
    found = [(k, seen, find_bulk(u, width)) for k, seen, u in fields]
    parts, deficits = [], []
    for phase in (0, 1):
        kept, deficit = _deep_frames([(k, seen, *_side(bulk, phase)) for k, seen, bulk in found], phase)
        parts += [_sampled(seen, mask, k, phase, len(kept)) for k, seen, mask in kept]
        deficits.append(deficit)
    stacked = [np.concatenate([part[i] for part in parts]) for i in range(4)]
    return Pixels(stacked[0], *(x.astype(np.int64) for x in stacked[1:])), (deficits[0], deficits[1]), width


def _side(bulk: Bulk, phase: int) -> tuple[Mask, float]:
    return (bulk.low, bulk.deficit_low) if phase == 0 else (bulk.high, bulk.deficit_high)


def _deep_frames(
    found: list[tuple[int, Array, Mask, float]], phase: int
) -> tuple[list[tuple[int, Array, Mask]], float]:
    """Keep the frames whose bulk of a phase is deep, or about as deep as any."""
    usable = [one for one in found if np.count_nonzero(one[2]) > 0]
    least = min((one[3] for one in usable), default=1.0)
    limit = max(_DEEP_ENOUGH, 1.5 * least)
    kept = [(k, seen, mask) for k, seen, mask, deficit in usable if deficit <= limit]
    if sum(np.count_nonzero(mask) for _, _, mask in kept) < _FEWEST or least > 0.1:
        name = ("low", "high")[phase]
        raise InputError(
            f"the {name} plateau has no pixels far from an interface, so its level cannot be measured; {_WAY_OUT}"
        )
    return kept, max(one[3] for one in usable if one[3] <= limit)


def _sampled(seen: Array, mask: Mask, k: int, phase: int, count: int) -> tuple[Any, ...]:
    """Return values, phase, frame and cell of every n-th bulk pixel of a frame."""
    cells = np.flatnonzero(mask)
    most = max(_FEWEST, min(_PER_FRAME, _PIXELS // (2 * count)))
    cells = cells[:: max(1, -(-cells.size // most))]
    return seen.ravel()[cells], np.full(cells.size, phase), np.full(cells.size, k), cells


def given_levels(seen: Array, frames: int, levels: Array, *, dark: float) -> Levels:
    """Return levels that are given, of a picture in which none could be found.

    The noise is that of the frames `seen`, two or three: of their differences, in which slow changes cancel.
    """
    none = np.zeros(seen.shape[1:])
    model = Model(dark, np.asarray(levels) - dark, np.zeros(frames), none, none)
    weights = np.array([1.0, -2.0, 1.0] if len(seen) == 3 else [1.0, -1.0])
    rest = np.tensordot(weights, seen, axes=1) / np.linalg.norm(weights)
    noise = 2.0 * 1.4826 * float(np.median(np.abs(rest))) / float(np.ptp(levels))
    return Levels(model, np.zeros(2), (0.0, 0.0), noise, float("nan"), (0, 0), 0.0)


def _residual(model: Model, pixels: Pixels) -> Array:
    """Return what the model leaves, in units of the levels."""
    gain, offset = model.gain.reshape(-1)[pixels.cell], model.offset.reshape(-1)[pixels.cell]
    seen = (pixels.value - model.dark - offset) / np.exp(gain + model.fading[pixels.frame])
    return np.asarray(seen - model.levels[pixels.phase])


def _clustered_error(rest: Array, pixels: Pixels, phase: int, mesh: tuple[int, ...]) -> float:
    """Return the standard error of a level, with residuals of one tile of the picture counted as one.

    What is wrong at a place is wrong there in every frame, so more frames do not average it away.
    """
    own = pixels.phase == phase
    places = np.unravel_index(pixels.cell[own], mesh)
    tile = np.zeros(int(own.sum()), dtype=np.int64)
    for place, n in zip(places, mesh, strict=True):
        tile = tile * _TILES + place * _TILES // n
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
