"""phase_from_intensity: from grey values to phase values, with what was found in them and the errors of the levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from doublewell.errors import InputError, not_negative, numbers, option, real, shown, whole
from doublewell.hints import Array, Bools
from doublewell.record.arrays import Values, check_levels, lazy
from doublewell.record.levels import (
    FADING_ORDER,
    LIGHT_ORDER,
    Camera,
    Flatten,
    Found,
    Levels,
    find_levels,
    given_levels,
    rough_levels,
    smoothed,
    whole_frame,
)
from doublewell.record.pixels import bad_pixels, differences, noise_line, runs
from doublewell.record.record import KNOWN, Boundary, Record

_LOOKS = 24  # frames that give levels, light and drift; all of them where each frame fades by itself
_MOST = 400  # frames whose fading is measured one by one; the others lie between
_SAMPLE = 2**14  # values of a frame for the first histogram
_HELD = 2**25  # values that are held at once to look for bad pixels
_LIMITS = tuple(float(2**bits - 1) for bits in (8, 10, 12, 14, 16))
_PILE = 1e-3  # fraction of values at a camera's limit that cannot be accidental
_HEAP = 0.01  # fraction of values that are all the highest one: cut off, whatever that value is
_SMOOTH = 1.5  # pixels, before the drift is measured
_STEPS = 8  # Gauss-Newton steps of a shift
_CLOSE = 1e-4  # pixels
_SPLINE = 2  # pixels at a border that a cubic spline spoils
_BENDS = 3  # highest degree of a drift in time
_CHANCE = 1e-4  # probability of a drift, or of a bend of it, that is not there
_LOUD = 1.0  # of half the step between the plateaus: with less noise of a pixel levels are found (tests/record)
_MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; pass the "
    "grey values that the mask was made from"
)
Drift = Literal["auto", "remove"]


@dataclass(frozen=True)
class GreyQuality:
    """How grey values became phase values.

    ``levels`` are the intensities of the phases -1 and +1, ``levels_sd`` their standard deviations, and ``noise`` that
    of one pixel in u; ``found`` is what the movie was searched for. ``limits`` are the lowest and the highest value and
    ``saturated`` the fractions of values at them, where they are limits of the camera or of the file; ``steps`` is the
    number of grey values between the plateaus; ``deficit`` how far the bulk of either may be from the pure phase, in u;
    ``fade_gap`` by how much the two plateaus fade differently, in u, and ``bleaching`` whether a fading was taken off;
    ``dark`` the camera's value without light; ``moved`` by how many pixels frames were moved back, None where they were
    not; ``orders`` the degrees of light and fading, 0 where there is none.
    """

    limits: tuple[float, float]
    saturated: tuple[float, float]
    steps: float
    deficit: tuple[float, float]
    fade_gap: float
    bleaching: bool
    dark: float
    moved: float | None
    levels: tuple[float, float] | None = None
    levels_sd: tuple[float, float] | None = None
    noise: float | None = None
    found: tuple[Found, ...] = ()
    orders: tuple[int, int] = (LIGHT_ORDER, FADING_ORDER)

    def __str__(self) -> str:
        from doublewell.report.text import grey_text

        return grey_text(self)


@dataclass(frozen=True, eq=False)
class Correction:
    """Grey values to phase values: light and fading taken off, moved back, cut to what all frames show."""

    camera: Camera
    drift: Array | None
    crop: tuple[slice, ...]
    periodic: bool

    def __call__(self, frames: Values, first: int) -> Array:
        """Convert whole frames that begin at number `first`."""
        u = self.camera.phases(frames.astype(np.float64), first)
        if self.drift is not None:
            shifts = self.drift[first : first + len(u)]
            u = np.stack([shift_frame(one, -d, periodic=self.periodic) for one, d in zip(u, shifts, strict=True)])
        return u[(slice(None), *self.crop)]

    def values(self, source: Any) -> Any:
        """Return the phase values: at once where the source is in memory, otherwise when they are read."""
        mesh = tuple(len(range(n)[part]) for n, part in zip(source.shape[1:], self.crop, strict=True))
        corrected = lazy(source).map_frames(self, mesh)
        return corrected[:] if isinstance(source, np.ndarray) else corrected


@dataclass(frozen=True, eq=False)
class Phase:
    """A record of phase values, and how they were made.

    ``record`` has the phase values, and a mask without dead and hot pixels where there are any. ``levels`` are the
    intensities of the pure phases -1 and +1, ``levels_sd`` their standard deviations (None where they were given
    without). ``light`` is the factor (or, of stray light, the addend) of every pixel, ``fading`` the factor of every
    frame, ``drift`` the displacement of the picture since frame 0 in pixels, None for what is not there. ``noise`` is
    the standard deviation of one pixel in u. ``quality.found`` states what was looked for and how much each mattered.
    """

    record: Record
    levels: tuple[float, float]
    levels_sd: tuple[float, float] | None
    noise: float
    light: Array | None
    fading: Array | None
    drift: Array | None
    quality: GreyQuality

    def __str__(self) -> str:
        return str(self.quality)


def phase_from_intensity(
    intensity: Any,
    *,
    levels: Sequence[float] | None = None,
    levels_sd: Sequence[float] | None = None,
    flatten: Flatten | None = "auto",
    bleaching: bool | None = None,
    drift: Drift | None = "auto",
    dark: Any = None,
    order: int = LIGHT_ORDER,
    mask: Any = None,
    dx: float | Sequence[float] | None = None,
    dt: float | None = None,
    times: ArrayLike | None = None,
    q: float | None = None,
    boundary: Boundary | None = None,
    length_unit: str | None = None,
    time_unit: str | None = None,
) -> Phase:
    """Turn grey values into phase values: u = -1 on the low plateau, +1 on the high one, linear in between.

    Dead and hot pixels are found first and masked. Light, fading, dark value and drift are looked for; what the pixels
    show beyond doubt is taken off (a drift is left to the fit), and ``phase.quality.found`` lists all.

    Parameters
    ----------
    intensity
        An array I[t, (z, y,) x] of integers or floats, or a Record of them, whose mesh, times and mask are then used.
    levels, levels_sd
        Intensities of the phases -1 and +1, and their standard deviations, where they are known. Otherwise they are
        found: the best threshold of the smoothed picture, then a fit to the pixels far from every interface. Their
        errors count each of 6 x 6 tiles of the picture once, and include how far from pure those pixels may be. Given
        levels need no plateau in the picture, unless light or fading are to be found.
    flatten
        "gain": uneven light, a smooth factor. "offset": stray light, a smooth addend. None: neither. "auto": the data
        decide.
    bleaching
        Whether the light or the dye fades: smoothly, or where that does not suffice with a factor for each frame. None:
        the data decide.
    drift
        "auto": how far the picture moves as a whole is measured, and left to the fit. "remove": frames are moved back
        by interpolation, which correlates the noise of neighbours, and cut to what all of them show unless periodic.
        None: not looked for.
    dark
        The camera's value without light, which neither fades nor is uneven: a number, a picture or dark frames. None:
        found where fading or uneven light show it.
    order
        Highest degree of the smooth picture of `flatten`; a lower one is taken where that suffices.
    mask
        True where a value was observed, as in Record.
    dx, dt, times, q, boundary, length_unit, time_unit
        As in Record.

    The intensity must be linear in the order parameter. Contours and thresholded masks are refused: the law lives in
    the values between the plateaus.
    """
    given = {"dx": dx, "dt": dt, "times": times, "q": q, "boundary": boundary}
    given |= {"length_unit": length_unit, "time_unit": time_unit, "mask": mask}
    source, kind, grey = _source(intensity, {name: value for name, value in given.items() if value is not None})
    if flatten not in (None, "auto", "gain", "offset"):
        raise InputError(
            f"flatten is {shown(flatten)}: expected 'auto', 'gain' (uneven light), 'offset' (stray light) or None"
        )
    if drift not in (None, "auto", "remove"):
        raise InputError(f"drift is {shown(drift)}: expected 'auto' (measured), 'remove' (frames moved back) or None")
    if drift == "remove" and grey.boundary == "neumann":
        raise InputError(f"a picture that drifts has no fixed wall at its border: leave out {option('boundary')}")
    order, frames, mesh = whole(order, "order", least=1, most=8), grey.frames, grey.mesh
    looks, offset = _spread(frames, _LOOKS), _dark(dark, mesh)

    groups, bad, grey = _mask_bad(grey, kind, looks)
    limits, saturated, step = measure_saturation((_shown(grey, k) for k in looks), kind)
    search = partial(find_levels, grey, flatten=flatten, bleaching=bleaching, dark=dark is None, order=order)
    fitted = _levels(grey, looks, levels, partial(Camera.flat, frames=frames, mesh=mesh, dark=offset), search)
    fitted, sd = _with_given(fitted, levels, levels_sd)

    camera, periodic = fitted.camera, grey.boundary == "periodic"
    correction = Correction(camera, None, (slice(None),) * len(mesh), periodic)
    found = [Found("bad pixels", bool(bad.any()), float(bad.sum()), (float(bad.size),)), *fitted.found]
    way = None
    if drift is not None and grey.boundary != "neumann":
        chosen = list(range(frames)) if drift == "remove" else looks
        shifts = measure_drift(lambda k: correction(whole_frame(grey, k)[None], k)[0], chosen, periodic=periodic)
        way, clear = smooth_drift(np.array(chosen), shifts, frames)
        found.append(Found("drift", clear, float(np.max(np.abs(way))), tuple(float(x) for x in way[-1])))
        way = shifts if drift == "remove" else way if clear else None
    moved = way if drift == "remove" else None
    if moved is not None:
        correction = replace(correction, drift=moved, crop=_crop(mesh, moved, periodic=periodic))
    found.append(_noise(groups, ~bad, camera))
    fading = np.exp(camera.fading) if np.any(camera.fading) else None
    base, steps = float(np.mean(camera.dark)), float(np.ptp(camera.levels)) / step if step else float("inf")
    low, high = (float(x) for x in camera.levels + base)
    quality = GreyQuality(
        limits, saturated, steps, fitted.deficit, fitted.fade_gap, fading is not None, base,
        None if moved is None else float(np.max(np.abs(moved))), (low, high), sd, fitted.noise, tuple(found),
        camera.orders,
    )  # fmt: skip
    mask = _moved_mask(grey, correction) if moved is not None and grey.mask is not None else grey.mask
    facts = {name: getattr(grey, name) for name in KNOWN} | {"origin": "camera"}
    record = Record(correction.values(source), **facts, mask=mask, grey=quality, notes=grey.notes)
    return Phase(record, (low, high), sd, fitted.noise, camera.light, fading, way, quality)


def _levels(
    grey: Record, looks: list[int], levels: Any, flat: Callable[[Array], Camera], search: partial[Levels]
) -> Levels:
    """Return the fitted camera; where levels are given and nothing was to be found, a flat one will do."""
    if np.unique(np.concatenate([_shown(grey, k) for k in looks])).size == 2:
        raise InputError(f"the picture holds two different values: {_MASK}")
    pieces = (smoothed(whole_frame(grey, k)).ravel() for k in looks)
    sample = np.concatenate([piece[:: max(1, -(-piece.size // _SAMPLE))] for piece in pieces])
    start = rough_levels(sample) if levels is None else check_levels(levels)
    camera = flat(np.sort(start))
    try:
        fitted = search(looks, camera)
        steady = fitted.camera.orders[1] <= FADING_ORDER
        return fitted if steady else search(_spread(grey.frames, _MOST), camera)
    except InputError as error:
        given = given_levels(np.stack([whole_frame(grey, k) for k in range(min(grey.frames, 3))]), flat(start))
        if levels is None and given.noise > _LOUD:
            raise InputError(
                f"the noise hides the levels: that of one pixel is {given.noise:.2g} of half the step between the two "
                f"plateaus as far as they can be told, expected {_LOUD:g} at most; average frames or pixels before, or "
                f"pass {option('levels', ('low', 'high'))} ({error})"
            ) from error
        if levels is None or search.keywords["flatten"] in ("gain", "offset") or search.keywords["bleaching"]:
            raise
        return given


def _mask_bad(grey: Record, kind: np.dtype[Any], looks: list[int]) -> tuple[Array, Bools, Record]:
    """Return runs of frames, which pixels are bad, and the record with these masked."""
    spans = runs(grey.frames)
    spans = spans[:: max(1, -(-len(spans) * 5 * int(np.prod(grey.mesh)) // _HELD))]
    groups = np.stack([np.stack([whole_frame(grey, k) for k in range(*span)]) for span in spans])
    bad = bad_pixels(groups, measure_saturation((_shown(grey, k) for k in looks), kind)[2]) & grey.observed(0, 1)[0]
    if not bad.any():
        return groups, bad, grey
    if grey.mask is None or isinstance(grey.mask, np.ndarray):
        mask: Any = ~bad[None] if grey.mask is None else grey.mask & ~bad
    else:
        mask = lazy(grey.mask).map_frames(partial(_both, ~bad), grey.mesh, bool)
    return groups, bad, grey.replace(mask=mask)


def _shown(grey: Record, k: int) -> Array:
    return np.asarray(grey.slab(k, k + 1)[grey.observed(k, k + 1)])


def _both(good: Bools, mask: Values, first: int) -> Values:  # noqa: ARG001  of map_frames
    return np.asarray(mask & good)


def _moved_mask(grey: Record, correction: Correction) -> Bools:
    """Return where a moved frame hardly rests on what was not observed."""
    ways = enumerate(() if correction.drift is None else correction.drift)
    known = ((grey.observed(k, k + 1)[0].astype(float), -d) for k, d in ways)
    parts = [shift_frame(*pair, periodic=correction.periodic) for pair in known]
    return np.asarray(np.array(parts)[(slice(None), *correction.crop)] > 0.99)


def _noise(groups: Array, good: Bools, camera: Camera) -> Found:
    """Return the variance of the noise at the two plateaus, from differences in time of the grey values."""
    pairs = [differences(run) for run in groups]
    rest, means = (np.concatenate([part[0][good] for part in parts]) for parts in zip(*pairs, strict=True))
    line = noise_line(means, rest)
    low, high = camera.levels + np.mean(camera.dark)
    variances = np.maximum(line.level + line.slope * np.array([low, high]), 0.0) / (0.5 * (high - low)) ** 2
    effect = float(np.sqrt(variances[1] / variances[0])) if variances[0] > 0.0 else np.inf
    return Found("shot noise", line.shot, effect, (float(variances[0]), float(variances[1])))


def measure_saturation(
    frames: Iterable[Array], kind: np.dtype
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return the lowest and the highest value, the fractions of values there, and the smallest step between values.

    A fraction is 0 unless the value is a limit of the type or of a camera of 8 to 16 bits, or one value in a hundred is
    the highest; the step is 0 for floats.
    """
    integers, rows = kind.kind in "iu", []
    for frame in frames:
        ends = [float(frame.min()), float(frame.max())]
        gaps = np.diff(np.unique(frame)) if integers else np.zeros(1)
        rows.append([*ends, *(np.count_nonzero(frame == end) for end in ends), frame.size, min(gaps, default=0.0)])
    lows, highs, at_low, at_high, sizes, steps = np.array(rows).T
    low, high = float(lows.min()), float(highs.max())
    bottom, top = at_low[lows == low].sum() / sizes.sum(), at_high[highs == high].sum() / sizes.sum()
    at_bottom = integers and low in (0.0, float(np.iinfo(kind).min))
    limit = integers and high in (*_LIMITS, float(np.iinfo(kind).max))
    at_top = (limit and top >= _PILE) or (integers and top >= _HEAP and bool(high - low > 50.0 * steps.min()))
    return (low, high), (float(bottom) if at_bottom else 0.0, float(top) if at_top else 0.0), float(steps.min())


def measure_drift(frame: Callable[[int], Array], chosen: Sequence[int], *, periodic: bool) -> Array:
    """Return the displacement of the picture since the first of the chosen frames, in pixels; shape (frames, axes).

    Each frame is laid over the one before: the shift of least squares, by Gauss-Newton steps. Growth and shrinking
    change both sides of a drop by the same and leave no shift; a pattern that moves by itself is taken for drift.
    """
    from scipy.ndimage import correlate1d, gaussian_filter

    def blurred(k: int) -> Array:
        return np.asarray(gaussian_filter(frame(k), _SMOOTH, mode="wrap" if periodic else "nearest"))

    before = blurred(chosen[0])
    steps, margin = np.zeros((len(chosen), before.ndim)), (slice(None) if periodic else slice(3, -3),) * before.ndim
    for k, number in enumerate(chosen[1:], 1):
        shift, now = steps[k - 1], blurred(number)
        gradients = (correlate1d(before, [-0.5, 0.0, 0.5], axis, mode="wrap") for axis in range(before.ndim))
        slopes = np.array([gradient[margin].ravel() for gradient in gradients])
        for _ in range(_STEPS):
            rest = (shift_frame(now, -shift, periodic=periodic) - before)[margin].ravel()
            change = np.linalg.lstsq(slopes.T, -rest, rcond=None)[0]
            shift = shift + change
            if float(np.max(np.abs(change))) < _CLOSE:
                break
        steps[k], before = shift, now
    return np.cumsum(steps, axis=0)


def smooth_drift(chosen: Values, shifts: Array, frames: int) -> tuple[Array, bool]:
    """Return a polynomial drift at all frames, 0 at the first, and whether it is significant.

    A constant, the error of the first frame, is left out. The degree grows while that explains significantly more.
    """
    from scipy.special import fdtrc

    t, way, certain = 2.0 * np.arange(frames) / max(frames - 1, 1) - 1.0, np.zeros((frames, shifts.shape[1])), False
    columns = np.polynomial.legendre.legvander(t, _BENDS)
    for axis, values in enumerate(shifts.T):
        left = float(np.sum((values - values.mean()) ** 2))
        for degree in range(1, min(_BENDS, len(chosen) - 3) + 1):
            fit = np.linalg.lstsq(columns[chosen, : degree + 1], values, rcond=None)[0]
            rest = float(np.sum((values - columns[chosen, : degree + 1] @ fit) ** 2))
            free = len(chosen) - degree - 1
            if fdtrc(1, free, (left - rest) * free / max(rest, 1e-300)) < _CHANCE:
                certain, left, line = True, rest, columns[:, : degree + 1] @ fit
                way[:, axis] = line - line[0]
    return way, certain


def shift_frame(frame: Array, shift: Array, *, periodic: bool) -> Array:
    """Return a frame moved by a shift in pixels: by Fourier modes on a periodic domain, else by cubic splines."""
    from scipy import ndimage

    if not np.any(shift):
        return frame
    if not periodic:
        return np.asarray(ndimage.shift(frame, shift, order=3, mode="nearest"))
    return np.asarray(np.fft.ifftn(ndimage.fourier_shift(np.fft.fftn(frame), shift)).real)


def _crop(mesh: tuple[int, ...], shifts: Array, *, periodic: bool) -> tuple[slice, ...]:
    """Return the part of the mesh that every frame shows after it was moved back."""
    if periodic:
        return (slice(None),) * len(mesh)
    parts = []
    for n, moved in zip(mesh, shifts.T, strict=True):
        low, high = (int(np.ceil(max(end, 0.0))) + _SPLINE for end in (-moved.min(), moved.max()))
        if n - low - high < 8:
            raise InputError(
                f"the picture drifts by {np.ptp(moved):.1f} of {n} pixels, so nothing is left that all frames show: "
                "cut the movie into shorter parts"
            )
        parts.append(slice(low, n - high))
    return tuple(parts)


def _dark(dark: Any, mesh: tuple[int, ...]) -> float | Array:
    """Return the camera's value without light: one number, or a picture, the mean of dark frames."""
    if dark is None or np.ndim(dark) == 0:
        return 0.0 if dark is None else real(dark, "dark", "the camera's value without light")
    picture = numbers(dark, "dark")
    picture = picture.mean(axis=0) if picture.ndim == len(mesh) + 1 else picture
    if picture.shape != mesh or not np.all(np.isfinite(picture)):
        raise InputError(f"dark has shape {picture.shape}: expected one number, or frames of the mesh {mesh}")
    return picture


def _source(intensity: Any, given: dict[str, Any]) -> tuple[Any, np.dtype[Any], Record]:
    """Return the stored array, the type of its numbers, and a record of the grey values as floats."""
    known: dict[str, Any] = {}
    if isinstance(intensity, Record):
        known = {name: getattr(intensity, name) for name in (*KNOWN, "mask", "notes")}
        intensity = intensity.values
    if "dt" in given:
        known.pop("times", None)
    values = intensity if hasattr(intensity, "shape") and hasattr(intensity, "dtype") else np.asarray(intensity)
    base = getattr(values, "base", None) if not isinstance(values, np.ndarray) else None  # the integers of a file
    kind = np.dtype(values.dtype if base is None else base.dtype)
    if kind.kind == "b":
        raise InputError(f"the picture holds booleans, a mask: {_MASK}")
    if kind.kind not in "iuf":
        raise InputError(f"the picture has type {values.dtype}: expected grey values, integers or floats")
    if not 2 <= len(values.shape) <= 4 or values.shape[0] < 2 or min(values.shape[1:]) < 8:
        raise InputError(
            f"the picture has shape {tuple(values.shape)}: expected I[t, x], I[t, y, x] or I[t, z, y, x] with at least "
            "2 frames and 8 cells along each axis; of a colour picture pass one channel"
        )
    floats = values if np.dtype(values.dtype).kind == "f" else lazy(values).map(partial(np.asarray, dtype=np.float64))
    return values, kind, Record(floats, **known | given)


def _spread(frames: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, frames - 1, min(frames, most)).round())]


def _with_given(fitted: Levels, levels: Any, sd: Any) -> tuple[Levels, tuple[float, float] | None]:
    """Put given levels in the place of the fitted ones; light and fading stay."""
    if levels is None:
        if sd is not None:
            raise InputError(f"levels_sd means nothing without levels: pass {option('levels')} too")
        return fitted, (float(fitted.sd[0]), float(fitted.sd[1]))
    camera = replace(fitted.camera, levels=check_levels(levels) - np.mean(fitted.camera.dark))
    fitted = replace(fitted, camera=camera, deficit=(0.0, 0.0))  # the pixels of the plateaus say nothing of these
    if sd is None:
        return fitted, None
    pair = numbers(sd, "levels_sd")
    if pair.shape != (2,):
        raise InputError(f"levels_sd is {shown(sd)}: expected two numbers")
    return fitted, (not_negative(pair[0], "levels_sd"), not_negative(pair[1], "levels_sd"))
