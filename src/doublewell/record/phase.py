"""phase_from_intensity: from grey values to phase values, with the uncertainty of the two levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.errors import InputError, not_negative, numbers, option, real, shown, whole
from doublewell.hints import Array
from doublewell.record.arrays import Values, check_levels, lazy
from doublewell.record.levels import Camera, Flatten, Levels, find_levels, given_levels, rough_levels
from doublewell.record.record import KNOWN, Boundary, Record

_LOOKS = 24  # frames that give the levels; all of them where each frame fades by itself
_MOST = 400  # frames whose fading is measured one by one; the others lie between
_SAMPLE = 2**14  # values of a frame for the first histogram
_LIMITS = tuple(float(2**bits - 1) for bits in (8, 10, 12, 14, 16))
_PILE = 1e-3  # fraction of values at a camera's limit that cannot be accidental
_SMOOTH = 1.5  # pixels, before the drift is measured
_STEPS = 8  # Gauss-Newton steps of a shift
_CLOSE = 1e-4  # pixels
_SPLINE = 2  # pixels at a border that a cubic spline spoils
_MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; pass the "
    "grey values that the mask was made from"
)


@dataclass(frozen=True)
class GreyQuality:
    """Numbers of a conversion from grey values to phase values.

    ``limits`` are the lowest and the highest value and ``saturated`` the fractions of values at them, where they are
    limits of the camera or of the file; ``steps`` is the number of grey values between the plateaus; ``deficit`` how
    far the bulk of either may be from the pure phase, in u; ``fade_gap`` by how much the two plateaus fade differently,
    in u, and ``bleaching`` whether each frame has a factor of its own; ``dark`` the camera's value without light;
    ``moved`` by how many pixels frames were moved back, None where they were not.
    """

    limits: tuple[float, float]
    saturated: tuple[float, float]
    steps: float
    deficit: tuple[float, float]
    fade_gap: float
    bleaching: bool
    dark: float
    moved: float | None


@dataclass(frozen=True, eq=False)
class Correction:
    """Grey values to phase values: light and fading taken off, moved back, cut to what all frames show."""

    camera: Camera
    drift: Array | None
    crop: tuple[slice, ...]
    periodic: bool

    def __call__(self, frames: Values, first: int) -> Array:
        """Convert whole frames that begin at number `first`."""
        u = self.camera.phases(_intensities(frames, first), first)
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

    ``record`` has the phase values. ``levels`` are the intensities of the pure phases -1 and +1, ``levels_sd`` their
    standard deviations (None where they were given without); ``gain_sd`` and ``offset_sd`` are what these make of the
    phase values: u is known up to (1 +- gain_sd) u +- offset_sd. ``light`` is the factor (or, flatten="offset", the
    addend) of every pixel, ``fading`` the factor of every frame, ``drift`` the displacement of the picture since frame
    0 in pixels, None for what was not asked for. ``noise`` is the standard deviation of one pixel in u. ``source`` are
    the grey values and ``correction`` is what made phase values of them.
    """

    record: Record
    levels: tuple[float, float]
    levels_sd: tuple[float, float] | None
    noise: float
    light: Array | None
    fading: Array | None
    drift: Array | None
    quality: GreyQuality
    source: Any
    correction: Correction

    @property
    def gain_sd(self) -> float | None:
        """The relative standard deviation of the contrast."""
        return None if self.levels_sd is None else float(np.hypot(*self.levels_sd) / abs(np.diff(self.levels)[0]))

    @property
    def offset_sd(self) -> float | None:
        """The standard deviation of a constant added to u."""
        return self.gain_sd

    def variants(self) -> tuple[Record, Record]:
        """Return the records with one level moved by its standard deviation; ``add_level_errors`` identifies them."""
        if self.levels_sd is None:
            raise InputError(f"the levels were given without an error: pass {option('levels_sd', ('low', 'high'))}")
        camera = self.correction.camera
        moved = (replace(camera, levels=camera.levels + step) for step in np.diag(self.levels_sd))
        low, high = (self.record.replace(replace(self.correction, camera=one).values(self.source)) for one in moved)
        return low, high

    def __str__(self) -> str:
        from doublewell.report.text import phase_text

        return phase_text(self)


def phase_from_intensity(
    intensity: Any,
    *,
    levels: Sequence[float] | None = None,
    levels_sd: Sequence[float] | None = None,
    flatten: Flatten | None = None,
    bleaching: bool = False,
    drift: bool = False,
    dark: float = 0.0,
    order: int = 4,
    dx: float | Sequence[float] | None = None,
    dt: float | None = None,
    times: ArrayLike | None = None,
    q: float | None = None,
    boundary: Boundary | None = None,
    length_unit: str | None = None,
    time_unit: str | None = None,
) -> Phase:
    """Turn grey values into phase values: u = -1 on the low plateau, +1 on the high one, linear in between.

    Parameters
    ----------
    intensity
        An array I[t, (z, y,) x] of integers or floats, or a Record of them, whose mesh and times are then used.
    levels, levels_sd
        Intensities of the phases -1 and +1, and their standard deviations, where they are known. Otherwise they are
        found: the best threshold of the histogram, then a fit to the pixels far from every interface. Their errors
        count each of 6 x 6 tiles of the picture once, and include how far from pure those pixels may be. Given levels
        need no plateau in the picture, unless light or fading are to be found.
    flatten
        "gain": uneven light, a smooth factor. "offset": stray light, a smooth addend. None: neither.
    bleaching
        Whether the signal of each frame has a factor of its own.
    drift
        Whether the picture moves as a whole. It is moved back and, unless it is periodic, cut to what all frames
        show. Moved frames are interpolated, which correlates the noise of neighbours.
    dark
        The camera's value without light, which neither fades nor is uneven.
    order
        Degree of the smooth picture of `flatten`.
    dx, dt, times, q, boundary, length_unit, time_unit
        As in Record.

    The intensity must be linear in the order parameter. Contours and thresholded masks are refused: the law lives in
    the values between the plateaus.
    """
    source, known = _source(intensity)
    given = {"dx": dx, "dt": dt, "times": times, "q": q, "boundary": boundary}
    given |= {"length_unit": length_unit, "time_unit": time_unit}
    known |= {name: value for name, value in given.items() if value is not None}
    if dt is not None:
        known.pop("times", None)
    if flatten not in (None, "gain", "offset"):
        raise InputError(f"flatten is {shown(flatten)}: expected 'gain' (uneven light), 'offset' (stray light) or None")
    if drift and known.get("boundary") == "neumann":
        raise InputError(f"a picture that drifts has no fixed wall at its border: leave out {option('boundary')}")
    frames, mesh = int(source.shape[0]), tuple(int(n) for n in source.shape[1:])

    def frame(k: int) -> Array:
        return np.asarray(_intensities(lazy(source)[k : k + 1], k)[0])

    limits, saturated, step = measure_saturation((frame(k) for k in _spread(frames, _LOOKS)), np.dtype(source.dtype))
    pictures = (frame(k).ravel() for k in _spread(frames, _LOOKS))
    sample = np.concatenate([picture[:: max(1, -(-picture.size // _SAMPLE))] for picture in pictures])
    if np.unique(sample).size == 2:
        raise InputError(f"the picture holds two different values: {_MASK}")
    start = rough_levels(sample) if levels is None else check_levels(levels)
    dark = real(dark, "dark", "the camera's value without light")
    try:
        fitted = find_levels(
            frame, _spread(frames, _MOST if bleaching else _LOOKS), Camera.flat(np.sort(start), frames, mesh, dark),
            flatten=flatten, bleaching=bool(bleaching), order=whole(order, "order", least=1, most=8),
        )  # fmt: skip
    except InputError:
        if levels is None or flatten is not None or bleaching:
            raise
        few = np.stack([frame(k) for k in range(min(frames, 3))])
        fitted = given_levels(few, Camera.flat(start, frames, mesh, dark))
    fitted, sd = _with_given(fitted, levels, levels_sd)

    camera, periodic = fitted.camera, known.get("boundary") == "periodic"
    still = Correction(camera, None, (slice(None),) * len(mesh), periodic)
    shifts = measure_drift(lambda k: still(frame(k)[None], k)[0], frames, periodic=periodic) if drift else None
    correction = replace(still, drift=shifts, crop=_crop(mesh, shifts, periodic=periodic))
    light = None if flatten is None else np.exp(camera.gain) if flatten == "gain" else camera.offset
    fading = np.exp(camera.fading) if bleaching else None
    steps = float(np.ptp(camera.levels)) / step if step else float("inf")
    moved = None if shifts is None else float(np.max(np.abs(shifts)))
    quality = GreyQuality(
        limits, saturated, steps, fitted.deficit, fitted.fade_gap, bool(bleaching), camera.dark, moved
    )
    low, high = (float(x) for x in camera.levels + camera.dark)
    record = Record(correction.values(source), **known)
    return Phase(record, (low, high), sd, fitted.noise, light, fading, shifts, quality, source, correction)


def measure_saturation(
    frames: Iterable[Array], kind: np.dtype
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return the lowest and the highest value, the fractions of values there, and the smallest step between values.

    A fraction is 0 unless the value is a limit of the type, or of a camera of 8 to 16 bits; the step is 0 for floats.
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
    at_top = integers and high in (*_LIMITS, float(np.iinfo(kind).max)) and top >= _PILE
    return (low, high), (float(bottom) if at_bottom else 0.0, float(top) if at_top else 0.0), float(steps.min())


def measure_drift(frame: Callable[[int], Array], frames: int, *, periodic: bool) -> Array:
    """Return the displacement of the picture since frame 0, in pixels along each axis; shape (frames, axes).

    Each frame is laid over the one before: the shift of least squares, by Gauss-Newton steps. Growth and shrinking
    change both sides of a drop by the same and leave no shift; a pattern that moves by itself is taken for drift.
    """
    from scipy.ndimage import gaussian_filter

    def smoothed(k: int) -> Array:
        return np.asarray(gaussian_filter(frame(k), _SMOOTH, mode="wrap" if periodic else "nearest"))

    before = smoothed(0)
    steps, margin = np.zeros((frames, before.ndim)), (slice(None) if periodic else slice(3, -3),) * before.ndim
    for k in range(1, frames):
        shift, now = steps[k - 1], smoothed(k)
        gradients = [
            0.5 * (np.roll(before, -1, axis) - np.roll(before, 1, axis)) if periodic else np.gradient(before, axis=axis)
            for axis in range(before.ndim)
        ]
        slopes = np.array([g[margin].ravel() for g in gradients])
        for _ in range(_STEPS):
            rest = (shift_frame(now, -shift, periodic=periodic) - before)[margin].ravel()
            change = np.linalg.lstsq(slopes.T, -rest, rcond=None)[0]
            shift = shift + change
            if float(np.max(np.abs(change))) < _CLOSE:
                break
        steps[k], before = shift, now
    return np.cumsum(steps, axis=0)


def shift_frame(frame: Array, shift: Array, *, periodic: bool) -> Array:
    """Return a frame moved by a shift in pixels: by Fourier modes on a periodic domain, else by cubic splines."""
    from scipy import ndimage

    if not np.any(shift):
        return frame
    if not periodic:
        return np.asarray(ndimage.shift(frame, shift, order=3, mode="nearest"))
    modes = np.fft.fftn(frame)
    for axis, (n, d) in enumerate(zip(frame.shape, shift, strict=True)):
        turn = np.exp(-2j * np.pi * np.fft.fftfreq(n) * d)
        if n % 2 == 0:
            turn[n // 2] = np.cos(np.pi * d)  # the highest mode has no direction
        modes *= turn.reshape([-1 if k == axis else 1 for k in range(frame.ndim)])
    return np.asarray(np.fft.ifftn(modes).real)


def _crop(mesh: tuple[int, ...], shifts: Array | None, *, periodic: bool) -> tuple[slice, ...]:
    """Return the part of the mesh that every frame shows after it was moved back."""
    if shifts is None or periodic:
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


def _intensities(frames: Values, first: int) -> Array:
    """Return frames as floats; they must be finite."""
    exact = frames.astype(np.float64)
    finite = np.isfinite(exact).all(axis=tuple(range(1, exact.ndim)))
    if not finite.all():
        k = first + int(np.argmin(finite))
        raise InputError(f"frame {k} holds values that are not finite: expected intensities; fill or cut that part")
    return exact


def _source(intensity: Any) -> tuple[Any, dict[str, Any]]:
    """Return the stored array and what a record knows of it."""
    if isinstance(intensity, Record):
        if intensity.mask is not None:
            raise InputError(
                "the record has a mask, and levels cannot be found around missing values yet: expected a complete "
                f"record; give {option('levels')} and {option('mask')} when the record is opened"
            )
        return intensity.values, {name: getattr(intensity, name) for name in KNOWN}
    values = intensity if hasattr(intensity, "shape") and hasattr(intensity, "dtype") else np.asarray(intensity)
    kind = np.dtype(values.dtype).kind
    if kind == "b":
        raise InputError(f"the picture holds booleans, a mask: {_MASK}")
    if kind not in "iuf":
        raise InputError(f"the picture has type {values.dtype}: expected grey values, integers or floats")
    if not 2 <= len(values.shape) <= 4 or values.shape[0] < 2 or min(values.shape[1:]) < 8:
        raise InputError(
            f"the picture has shape {tuple(values.shape)}: expected I[t, x], I[t, y, x] or I[t, z, y, x] with at least "
            "2 frames and 8 cells along each axis; of a colour picture pass one channel"
        )
    return values, {}


def _spread(frames: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, frames - 1, min(frames, most)).round())]


def _with_given(fitted: Levels, levels: Any, sd: Any) -> tuple[Levels, tuple[float, float] | None]:
    """Put given levels in the place of the fitted ones; light and fading stay."""
    if levels is None:
        if sd is not None:
            raise InputError(f"levels_sd means nothing without levels: pass {option('levels')} too")
        return fitted, (float(fitted.sd[0]), float(fitted.sd[1]))
    camera = replace(fitted.camera, levels=check_levels(levels) - fitted.camera.dark)
    fitted = replace(fitted, camera=camera, deficit=(0.0, 0.0))  # the pixels of the plateaus say nothing of these
    if sd is None:
        return fitted, None
    pair = numbers(sd, "levels_sd")
    if pair.shape != (2,):
        raise InputError(f"levels_sd is {shown(sd)}: expected two numbers")
    return fitted, (not_negative(pair[0], "levels_sd"), not_negative(pair[1], "levels_sd"))
