"""phase_from_intensity: from grey values to phase values, with the uncertainty of the two levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import not_negative, numbers, real, shown, whole
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record.background import Flatten
from doublewell.record.drift import measure_drift
from doublewell.record.levels import Levels, find_levels, given_levels, rough_levels
from doublewell.record.metadata import Boundary
from doublewell.record.notes import phase_notes, phase_text
from doublewell.record.record import Record
from doublewell.record.saturation import Saturation, measure_saturation
from doublewell.record.view import Corrected, crop_of, read_frame

__all__ = ["Phase", "phase_from_intensity"]

_LOOKS = 24  # frames that give the levels; all of them where each frame fades by itself
_MOST = 400  # frames whose fading is measured one by one; the others lie between
_SAMPLE = 2**14  # values of a frame for the first histogram


@dataclass(frozen=True, eq=False)
class Phase:
    """A record of phase values, and what was found on the way.

    ``record`` has the phase values. ``levels`` are the intensities of the pure phases -1 and +1, ``levels_sd`` their
    standard deviations (None where they were given without); ``gain_sd`` and ``offset_sd`` are what these make of the
    phase values: u is known up to (1 +- gain_sd) u +- offset_sd. ``light`` is the factor (or, flatten="offset", the
    addend) of every pixel, ``fading`` the factor of every frame, ``drift`` the way of the picture since frame 0 in
    pixels, None for what was not asked for. ``noise`` is the standard deviation of one pixel in u.
    """

    record: Record
    levels: tuple[float, float]
    levels_sd: tuple[float, float] | None
    noise: float
    light: Array | None
    fading: Array | None
    drift: Array | None
    saturation: Saturation
    notes: tuple[str, ...]
    view: Corrected

    @property
    def gain_sd(self) -> float | None:
        """The relative standard deviation of the contrast."""
        return None if self.levels_sd is None else float(np.hypot(*self.levels_sd) / abs(np.diff(self.levels)[0]))

    @property
    def offset_sd(self) -> float | None:
        """The standard deviation of a constant added to u."""
        return self.gain_sd

    def variants(self) -> tuple[Record, Record]:
        """Return the record with the low level moved by one standard deviation, and with the high level moved.

        ``add_level_errors`` identifies them too and adds the changes of the law to its errors, which do not hold them
        otherwise.
        """
        if self.levels_sd is None:
            raise InputError(
                "the levels were given without an error: pass levels_sd=(low, high) to phase_from_intensity"
            )
        low, high = np.diag(self.levels_sd)
        model = self.view.model
        moved = [replace(self.view, model=replace(model, levels=model.levels + step)) for step in (low, high)]
        return self.record.replace(_values(moved[0])), self.record.replace(_values(moved[1]))

    def __str__(self) -> str:
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
        An array I[t, (z, y,) x] of whole numbers or floats, or a Record of them, whose mesh and times are then used.
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
    _check_options(flatten, drift, known.get("boundary"))
    frames, mesh = int(source.shape[0]), tuple(int(n) for n in source.shape[1:])
    limits = measure_saturation((read_frame(source, k) for k in _spread(frames, _LOOKS)), np.dtype(source.dtype))
    start = _start(source, levels)
    dark = real(dark, "dark", "the camera's value without light")
    try:
        found = find_levels(
            lambda k: read_frame(source, k), _spread(frames, _MOST if bleaching else _LOOKS), frames, mesh,
            np.sort(start), dark=dark, flatten=flatten, bleaching=bool(bleaching),
            order=whole(order, "order", least=1, most=8),
        )  # fmt: skip
    except InputError:
        if levels is None or flatten is not None or bleaching:
            raise
        first = np.stack([read_frame(source, k) for k in range(min(frames, 3))])
        found = given_levels(first, frames, start, dark=dark)
    found, sd = _with_given(found, levels, levels_sd)
    return _phase(source, found, sd, known, limits, flatten=flatten, bleaching=bleaching, drift=drift)


def _phase(
    source: Any, found: Levels, sd: tuple[float, float] | None, known: dict[str, Any], limits: Saturation, *,
    flatten: Flatten | None, bleaching: bool, drift: bool,
) -> Phase:  # fmt: skip
    """Put the parts together; drift is measured on the corrected fields."""
    model, periodic = found.model, known.get("boundary") == "periodic"
    mesh = tuple(source.shape[1:])
    still = Corrected(source, model, None, (slice(None),) * len(mesh), periodic)
    way = measure_drift(lambda k: still[k : k + 1][0], source.shape[0], periodic=periodic) if drift else None
    view = replace(still, way=way, crop=crop_of(mesh, way, periodic=periodic))
    picture = {"gain": np.exp(model.gain), "offset": model.offset}
    low, high = (float(x) for x in model.levels + model.dark)
    return Phase(
        record=Record(_values(view), **known),
        levels=(low, high),
        levels_sd=sd,
        noise=found.noise,
        light=None if flatten is None else picture[flatten],
        fading=np.exp(model.fading) if bleaching else None,
        drift=way,
        saturation=limits,
        notes=phase_notes(found, limits, way, bleaching=bleaching, dark=model.dark),
        view=view,
    )


def _values(view: Corrected) -> Any:
    """Return the corrected values: at once where the source is in memory, otherwise when they are read."""
    return view[:] if isinstance(view.source, np.ndarray) else view


def _source(intensity: Any) -> tuple[Any, dict[str, Any]]:
    """Return the stored array and what a record knows of it."""
    if isinstance(intensity, Record):
        if intensity.mask is not None:
            raise InputError(
                "the record has a mask, and levels cannot be found around missing values yet: expected a complete "
                "record; give the levels, as in u = 2*(i - low)/(high - low) - 1, and pass the mask to Record"
            )
        names = ("dx", "times", "q", "boundary", "length_unit", "time_unit")
        return intensity.values, {name: getattr(intensity, name) for name in names}
    values = intensity if hasattr(intensity, "shape") and hasattr(intensity, "dtype") else np.asarray(intensity)
    kind = np.dtype(values.dtype).kind
    if kind == "b":
        raise InputError(f"the picture holds truth values, a mask: {_MASK}")
    if kind not in "iuf":
        raise InputError(f"the picture has type {values.dtype}: expected grey values, whole numbers or floats")
    if not 2 <= len(values.shape) <= 4 or values.shape[0] < 2 or min(values.shape[1:]) < 8:
        raise InputError(
            f"the picture has shape {tuple(values.shape)}: expected I[t, x], I[t, y, x] or I[t, z, y, x] with at least "
            "2 frames and 8 cells along each axis; of a colour picture pass one channel"
        )
    return values, {}


_MASK = (
    "contours and thresholded masks are not enough, because the law lives in the values between the phases; pass the "
    "grey values that the mask was made from"
)


def _check_options(flatten: Any, drift: bool, boundary: Any) -> None:
    if flatten not in (None, "gain", "offset"):
        raise InputError(f"flatten is {shown(flatten)}: expected 'gain' (uneven light), 'offset' (stray light) or None")
    if drift and boundary == "neumann":
        raise InputError(
            "a picture that drifts has no fixed wall at its border: leave boundary out, and use the weak reading"
        )


def _spread(frames: int, most: int) -> list[int]:
    return [int(k) for k in np.unique(np.linspace(0, frames - 1, min(frames, most)).round())]


def _start(source: Any, levels: Any) -> Array:
    """Return rough levels: the given ones, or those of the histogram."""
    sample = []
    for k in _spread(int(source.shape[0]), _LOOKS):
        frame = read_frame(source, k).ravel()
        sample.append(frame[:: max(1, -(-frame.size // _SAMPLE))])
    values = np.concatenate(sample)
    if np.unique(values).size == 2:
        raise InputError(f"the picture holds two different values: {_MASK}")
    return rough_levels(values) if levels is None else _pair(levels, "levels", "two different intensities (low, high)")


def _pair(values: Any, name: str, expected: str) -> Array:
    pair = numbers(values, name)
    if pair.shape != (2,) or not np.all(np.isfinite(pair)) or (name == "levels" and pair[0] == pair[1]):
        raise InputError(f"{name} is {shown(values)}: expected {expected}")
    return pair


def _with_given(found: Levels, levels: Any, sd: Any) -> tuple[Levels, tuple[float, float] | None]:
    """Put given levels in the place of the fitted ones; light and fading stay."""
    if levels is None:
        if sd is not None:
            raise InputError("levels_sd says nothing without levels: pass levels=(low, high) too")
        return found, (float(found.sd[0]), float(found.sd[1]))
    pair = _pair(levels, "levels", "two different intensities (low, high)")
    model = replace(found.model, levels=pair - found.model.dark)
    spread = None if sd is None else tuple(not_negative(x, "levels_sd") for x in _pair(sd, "levels_sd", "two numbers"))
    found = replace(found, model=model, deficit=(0.0, 0.0))  # the pixels of the plateaus say nothing of these
    return found, None if spread is None else (spread[0], spread[1])
