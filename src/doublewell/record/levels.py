"""Levels: the two plateaus of a movie of grey values with its light and fading, fitted to pixels deep inside a phase.

There the camera records

    I(t, x) = dark + exp(T(t)) (1 + P(x)) s_phase + B(x),

with s_phase one of two levels. P (uneven light) or B (stray light) and T (bleaching) are kept where they are asked for,
or where the pixels show them: they explain significantly more, and move u by more than the plateaus may be off. P
and B are polynomials without a constant, of the lowest degree that suffices; T has mean 0: the levels are those of an
average place and time. T is a polynomial in time where that suffices, else a number for each frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import atanh
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option
from doublewell.hints import Array, Bools
from doublewell.record.record import Record

Flatten = Literal["auto", "gain", "offset"]
_DROPPED: dict[str, dict[str, Any]] = {"dark": {"dark": False}, "fading": {"fading": False}}
Bulk = tuple[Bools, float]  # deep pixels of one phase in one frame, and how far they are from pure, in u
_STEPS = 12  # Gauss-Newton steps of one fit
_SMALL = 1e-7  # relative size of the last step
_TAIL = 2.5  # robust standard deviations beyond which a pixel counts less
_SMOOTH = 1.5  # pixels, so that noise makes no specks of the other phase
_DEEP = 1.5  # interface widths from the middle of an interface: a tanh profile is there within 0.03 % of its end
_EDGE = 0.4  # |u| where the interface of a phase begins
_SHALLOW = 0.9  # quantile of the distance inside a phase that stands in where no pixel lies so deep
_REACH = 2.0 * atanh(0.9)
_PER_FRAME = 3000  # bulk pixels of each phase and frame that enter the fit
_PIXELS = 100_000  # in all
_WILD = 5.0  # in u: no light, stray light or fading moves the values of a picture with two plateaus so far
_APART = 6.0  # standard deviations of a smoothed pixel between two plateaus
_CHANCE = 1e-4  # probability with which a fault may be found that is not there
_BEND = 0.01  # the same of a higher degree of the light: what is left out is in no error
_MATTERS = 3e-4  # in u: a fault that moves u by less is left alone
FADING_ORDER = 4  # degree of a fading that is smooth in time
LIGHT_ORDER = 4  # degree of the light
_DIM = 0.05  # of the mean light: no place has less
_ROUNDS = 3  # of classification and fit
_DEEP_ENOUGH = 1e-3  # in u: frames whose bulk is this close to the pure phase are enough
_TILES = 6  # along each axis, for the error of the levels
_FEWEST = 30  # bulk pixels of a phase


@dataclass(frozen=True)
class Faults:
    """What of light, fading and dark is fitted; light is "gain", "offset" or None. ``order`` is that of the light."""

    light: str | None = None
    fading: bool = False
    dark: bool = False
    order: int = LIGHT_ORDER


@dataclass(frozen=True)
class Found:
    """One thing that grey values were searched for.

    ``effect`` is the root mean square by which it moves u, in pixels for "drift", the number of "bad pixels"; ``kept``
    whether it was taken off (a drift: whether it is significant). ``numbers``: the lowest and the highest factor of
    "uneven light" or addend of "stray light"; the first and the last factor of "fading"; the value of "dark"; the way
    along each axis of "drift"; the variances at the low and the high plateau of "shot noise".
    """

    name: str
    kept: bool
    effect: float
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Pixels:
    """Bulk pixels of many frames: value, phase (0 low, 1 high), frame number and cell number."""

    value: Array
    phase: NDArray[np.int64]
    frame: NDArray[np.int64]
    cell: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Camera:
    """The fitted camera: the two levels over dark, log fading of each frame, log gain and offset of each pixel.

    ``dark`` is one value or a picture; ``orders`` are the degrees of light and fading, that of a fading which is not
    smooth one less than the number of frames.
    """

    dark: float | Array
    levels: Array
    fading: Array
    gain: Array
    offset: Array
    orders: tuple[int, int] = (0, 0)

    @classmethod
    def flat(cls, levels: Array, frames: int, mesh: tuple[int, ...], dark: float | Array) -> Camera:
        """Return a camera with even and steady light."""
        return cls(dark, np.asarray(levels) - np.mean(dark), np.zeros(frames), np.zeros(mesh), np.zeros(mesh))

    def phases(self, frames: Array, first: int) -> Array:
        """Return phase values of frames that begin at number `first`."""
        fade = self.fading[first : first + len(frames)].reshape(-1, *(1,) * (frames.ndim - 1))
        return self._scaled((frames - self.dark - self.offset) / np.exp(fade + self.gain))

    def _scaled(self, flat: Array) -> Array:
        low, high = self.levels
        return np.asarray(2.0 * (flat - low) / (high - low) - 1.0)

    @property
    def light(self) -> Array | None:
        """The factor of every pixel, of stray light the addend; None where the light is even."""
        return self.offset if np.any(self.offset) else np.exp(self.gain) if np.any(self.gain) else None

    def of_pixels(self, pixels: Pixels) -> Array:
        """Return the phase values of bulk pixels."""
        return self._scaled((pixels.value - self.background(pixels)) / self.bright(pixels))

    def bright(self, pixels: Pixels) -> Array:
        """Return the light of bulk pixels, as a factor."""
        return np.asarray(np.exp(self.gain.ravel()[pixels.cell] + self.fading[pixels.frame]))

    def background(self, pixels: Pixels) -> Array:
        """Return what bulk pixels have without the signal."""
        return np.asarray((np.broadcast_to(self.dark, self.gain.shape) + self.offset).ravel()[pixels.cell])


@dataclass(frozen=True, eq=False)
class Levels:
    """The fitted camera, the standard deviations of its levels, and what they rest on.

    ``deficit`` is how far the bulk may be from the pure phases, in u, and is part of ``sd``; ``noise`` is in u;
    ``fade_gap`` is by how much the two plateaus fade differently, in u; ``found`` what light, fading and dark do.
    """

    camera: Camera
    sd: Array
    deficit: tuple[float, float]
    noise: float
    fade_gap: float
    found: tuple[Found, ...] = ()


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


def whole_frame(grey: Record, k: int) -> Array:
    """Return a frame with what is missing filled by the nearest pixel that is there."""
    from scipy.ndimage import distance_transform_edt

    frame, known = np.asarray(grey.slab(k, k + 1)[0]), grey.observed(k, k + 1)[0]
    if known.all() or not known.any():
        return frame
    nearest = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return np.asarray(frame[tuple(nearest)])


def find_levels(
    grey: Record, chosen: list[int], camera: Camera, *, flatten: Flatten | None, bleaching: bool | None, dark: bool,
    order: int,
) -> Levels:  # fmt: skip
    """Fit the camera to bulk pixels of chosen frames, classified again with each fit; `camera` is the first guess.

    `flatten` "auto", `bleaching` None and `dark` are decided by the pixels.
    """
    mesh, start = camera.gain.shape, camera
    faults = Faults("gain" if flatten == "auto" else flatten, bleaching is not False, False, order)
    for _ in range(_ROUNDS if faults.light or faults.fading else 2):
        pixels, deficit = _bulk_pixels(grey, chosen, camera)
        camera = _fitted(pixels, start, faults)
    camera, found = _choose(pixels, start, camera, faults, max(deficit), (flatten == "auto", bleaching is None, dark))
    for item in found:
        if item.kept and item.effect > _WILD:
            raise InputError(
                f"{item.name} would move phase values by {item.effect:.2g} on average: "
                f"the picture has no two plateaus; {_way_out()}, and leave light and fading out"
            )
    half = 0.5 * float(np.ptp(camera.levels))
    rest = half * (camera.of_pixels(pixels) - np.array([-1.0, 1.0])[pixels.phase])
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if 2.0 * half < _APART * spread * smoothing(len(mesh)):
        raise InputError(
            f"two plateaus cannot be distinguished: the values scatter by {spread:.3g} around levels {2 * half:.3g} "
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
    sd, gap = np.hypot(errors, half * np.array(deficit)), abs(changes[1] - changes[0])
    return Levels(camera, sd, deficit, spread / half, gap / half, found)


def _choose(
    pixels: Pixels, start: Camera, camera: Camera, faults: Faults, deficit: float, tested: tuple[bool, bool, bool]
) -> tuple[Camera, tuple[Found, ...]]:
    """Return the camera without what the pixels do not show, and what each fault does to u.

    `tested` are light, fading and dark: whether the pixels decide on them.
    """
    from scipy.special import chdtrc

    def rest(one: Camera) -> Array:
        """Return residuals in grey values, as they were recorded: a dim place has less noise there."""
        off = np.abs(one.of_pixels(pixels) - np.array([-1.0, 1.0])[pixels.phase])
        return np.asarray(one.bright(pixels) * np.ptp(one.levels) * off)

    def misfit(one: Camera) -> float:
        """Return the mean square residual in units of the noise; of values beyond the tail only that of the tail."""
        return max(float(np.mean(np.minimum(rest(one) / scale, _TAIL) ** 2)), 1e-30)

    if tested[2] and (faults.light == "gain" or faults.fading):
        faults = replace(faults, dark=True)
        camera = _fitted(pixels, start, faults)
    scale = np.array([1.4826 * np.median(rest(camera)[pixels.phase == k]) or 1e-9 for k in (0, 1)])[pixels.phase]
    if tested[0]:
        other = replace(faults, light="offset", dark=faults.dark and faults.fading)
        stray = _fitted(pixels, start, other)
        if misfit(stray) < misfit(camera):
            faults, camera = other, stray
    cells = {"gain": "uneven light", "offset": "stray light"}
    trials = [("dark", replace(faults, dark=False), 1, faults.dark)]
    trials += [("fading", replace(faults, fading=False, dark=False), np.unique(pixels.frame).size, faults.fading)]
    terms = len(smooth_basis(start.gain.shape, faults.order))
    trials += [(cells.get(faults.light or "", ""), replace(faults, light=None), terms, faults.light is not None)]
    full, best, found, ideal = camera, misfit(camera), [], _ideal(camera)
    for (name, reduced, count, there), test in zip(trials, tested[::-1], strict=True):
        if not there:
            continue
        without = _fitted(pixels, start, reduced)
        effect = float(np.sqrt(np.mean((without.of_pixels(ideal) - full.of_pixels(ideal)) ** 2)))
        gained = pixels.value.size * np.log(misfit(without) / best)
        level = 0.01 if name == "dark" else _CHANCE  # most cameras have a dark value
        clear = float(chdtrc(count, max(gained, 0.0))) < level and effect > _MATTERS + 0.3 * deficit
        if test and not clear:
            faults = replace(faults, **_DROPPED.get(name, {"light": None}))
        numbers = {
            "dark": (float(np.mean(full.dark)),),
            "fading": (float(np.exp(full.fading[0])), float(np.exp(full.fading[-1]))),
            "stray light": (float(full.offset.min()), float(full.offset.max())),
        }.get(name, (float(np.exp(full.gain.min())), float(np.exp(full.gain.max()))))
        found.append(Found(name, clear or not test, effect, numbers))
    if not (faults.light == "gain" or faults.fading):  # then it changes nothing
        faults, found = replace(faults, dark=False), [item for item in found if item.name != "dark"]
    camera = _fitted(pixels, start, faults)
    while faults.light and faults.order > 1:  # a light that bends more than it must is confused with the pattern
        faults = replace(faults, order=faults.order - 1)
        count, smoother = terms - len(smooth_basis(start.gain.shape, faults.order)), _fitted(pixels, start, faults)
        gained = pixels.value.size * np.log(misfit(smoother) / misfit(camera))
        if float(chdtrc(count, max(gained, 0.0))) < _BEND:
            break
        camera, terms = smoother, terms - count
    return camera, tuple(found[::-1])


def _ideal(camera: Camera) -> Pixels:
    """Return what a camera records of both phases all over the picture and the record."""
    sizes = (len(camera.fading), 9), (camera.gain.size, 999)
    spread = [np.unique(np.linspace(0, size - 1, count).round().astype(int)) for size, count in sizes]
    frame, cell, phase = map(np.ravel, np.meshgrid(*spread, np.arange(2), indexing="ij"))
    ideal = Pixels(np.empty(0), phase, frame, cell)
    return replace(ideal, value=camera.background(ideal) + camera.bright(ideal) * camera.levels[phase])


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


def _fitted(pixels: Pixels, camera: Camera, faults: Faults) -> Camera:
    """Fit levels, light, fading and dark by robust Gauss-Newton steps from the levels of a camera."""
    from scipy.special import chdtrc

    mesh, frames, gains = camera.gain.shape, len(camera.fading), faults.light == "gain"
    basis = smooth_basis(mesh, faults.order) if faults.light else np.zeros((0, camera.gain.size))
    bends = min(FADING_ORDER, np.unique(pixels.frame).size - 1)
    times = smooth_basis((frames,), bends) if faults.fading else basis[:0, :1]
    terms, curves, levels = basis[:, pixels.cell], times[:, pixels.frame] if len(times) else times, camera.levels
    value, each = pixels.value - np.broadcast_to(camera.dark, mesh).reshape(-1)[pixels.cell], np.zeros(frames)
    contrast, phases, steady = float(np.ptp(levels)), [pixels.phase == k for k in (0, 1)], True
    prior = np.array(
        [1.0 if gains else contrast] * len(basis) + [1.0] * len(times) + [float(np.min(np.abs(levels)))] * faults.dark
    )
    x, cut = np.zeros(len(prior)), (len(basis), len(basis) + len(times))
    known = np.bincount(pixels.frame, minlength=frames) > 0

    for turn in range(_STEPS):
        shape, fade = x[: cut[0]] @ terms, x[cut[0] : cut[1]] @ curves + each[pixels.frame]
        factor = np.maximum(1.0 + shape, _DIM) if gains else 1.0
        bright = np.exp(fade) * factor
        signal, background = levels[pixels.phase] * bright, float(np.sum(x[cut[1] :])) + (0.0 if gains else shape)
        columns = [np.where(own, bright, 0.0) for own in phases] + list(terms * (signal / factor if gains else 1.0))
        columns += [*(curves * signal), *[np.ones_like(bright)] * faults.dark]
        rest = value - signal - background
        noise = 1.4826 * np.array([np.median(np.abs(rest[own] - np.median(rest[own]))) for own in phases])
        noise = np.where(noise > 0.0, noise, noise.max() or 1.0)[pixels.phase]
        weight = 1.0 / np.maximum(np.abs(rest) / (_TAIL * noise), 1.0) / noise**2  # Huber's
        size = np.sqrt(np.mean(np.square(columns), axis=1))
        scaled = np.array(columns) / size[:, None]
        # normal equations are enough, a step need not be exact; the prior holds what the pixels do not determine
        held = np.concatenate([[0.0, 0.0], (prior * size[2:]) ** -2.0])
        matrix, pull = (scaled * weight) @ scaled.T + np.diag(held), held * size * np.array([0.0, 0.0, *x])
        try:
            step = np.linalg.lstsq(matrix, (scaled * weight) @ rest - pull, rcond=None)[0] / size
        except np.linalg.LinAlgError:  # the fit runs away, as with a scale bar in the picture
            raise InputError(
                "no two grey levels describe the movie: leave out what is not the field, such as a scale bar, with "
                f"{option('leave_out')}, or pass {option('levels', ('low', 'high'))}"
            ) from None
        levels, x, change = levels + step[:2], x + step[2:], 0.0
        if faults.fading:  # what is left of the ratio of the values of a frame to what the levels predict
            bottom = np.bincount(pixels.frame, signal * signal * weight, minlength=frames)[known]
            ratio = np.bincount(pixels.frame, signal * rest * weight, minlength=frames)[known] / bottom
            if turn > 3:
                steady = steady and bool(chdtrc(ratio.size, float(np.sum(ratio**2 * bottom))) > _CHANCE)
            if not steady:
                change = float(np.max(np.abs(ratio)))
                each += np.interp(np.arange(frames), np.flatnonzero(known), ratio)
        if turn > 3 and max(float(np.max(np.abs(step[:2]))) / float(np.ptp(levels)), change) < _SMALL:
            break
    fading = x[cut[0] : cut[1]] @ times + each if faults.fading else each
    light, none = (x[: cut[0]] @ basis).reshape(mesh), np.zeros(mesh)
    light = np.log(np.maximum(1.0 + light, _DIM)) if gains else light
    levels, fading = levels * np.exp(fading.mean()), fading - fading.mean()
    dark = camera.dark + float(np.sum(x[cut[1] :]))
    orders = faults.order if faults.light else 0, (bends if steady else frames - 1) if faults.fading else 0
    return Camera(dark, levels, fading, *((light, none) if gains else (none, light)), orders)


def find_bulk(u: Array, width: float) -> tuple[Bulk, Bulk]:
    """Return the pixels of a rough phase field deep in the low and in the high phase; `width` in pixels.

    Their distance from pure is the mean of 1 - tanh of their depth.
    """
    from scipy.ndimage import distance_transform_edt

    smooth, noise = smoothed(u), 1.4826 * float(np.median(np.abs(np.diff(u)))) / np.sqrt(2.0)
    # a drop that fades away is far from u = 0 and not of the pure phase; noise must not be taken for one
    edge = float(np.clip(1.0 - _APART * noise * smoothing(u.ndim), 0.0, _EDGE))
    parts: list[Bulk] = []
    for inside in (smooth < -edge, smooth > edge):
        deep, deficit = inside, 0.0
        if inside.any() and not inside.all():
            depth = distance_transform_edt(inside) + width * atanh(edge) / _REACH
            deep = depth >= min(_DEEP * width, float(np.quantile(depth[inside], _SHALLOW)))
            deficit = float(np.mean(1.0 - np.tanh(_REACH * depth[deep] / width)))
        parts.append((deep, deficit))
    return parts[0], parts[1]


def interface_pixels(u: Array) -> float | None:
    """Return the width of the interfaces of a rough phase field from -0.9 to 0.9 in pixels, None where there is none.

    It is the width of the tanh profile with the median slope near u = 0.
    """
    smooth = smoothed(u)
    near = np.abs(smooth) < 0.3
    if np.count_nonzero(near) < 2:
        return None
    slope = float(np.median(np.sqrt(sum(g[near] ** 2 for g in np.atleast_2d(np.gradient(smooth))))))
    return _REACH / slope if slope > 0.0 else None


def _way_out() -> str:
    return f"pass {option('levels', ('low', 'high'))}, the intensities of the two pure phases"


def _bulk_pixels(grey: Record, chosen: list[int], camera: Camera) -> tuple[Pixels, tuple[float, float]]:
    """Collect bulk pixels of the frames, and the largest deficit of each phase among them.

    Of each phase the frames count whose bulk is deep, or about as deep as any.
    """
    pictures = {k: whole_frame(grey, k) for k in chosen}
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
        enough = max(_DEEP_ENOUGH, 1.5 * least)
        kept = {k: mask & grey.observed(k, k + 1)[0] for k, (mask, depth) in usable.items() if depth <= enough}
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


def smoothed(u: Array) -> Array:
    """Return a picture in which noise makes no specks of the other phase."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(u, _SMOOTH, mode="nearest"))


def smoothing(axes: int) -> float:
    """Return what the smoothing leaves of white noise."""
    return float((2.0 * np.sqrt(np.pi) * _SMOOTH) ** (-0.5 * axes))
