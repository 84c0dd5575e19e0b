"""Background: a smooth picture of the illumination, the fading of frames, and the two plateau levels, fitted together.

Deep inside a phase the camera sees

    I(t, x) = dark + exp(T(t) + P(x)) s_phase + B(x),

with s_phase one of two levels. P (uneven light), B (stray light) and T (bleaching) are left out unless they are asked
for. P and B are polynomials without a constant, T has mean 0: the levels are those of an average place and time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

__all__ = ["Flatten", "Model", "Pixels", "fit_model", "smooth_basis"]

Flatten = Literal["gain", "offset"]
_ROUNDS = 12
_SMALL = 1e-7  # relative size of the last step
_TAIL = 2.5  # robust standard deviations beyond which a pixel counts less


@dataclass(frozen=True, eq=False)
class Pixels:
    """Bulk pixels of many frames: value, phase (0 low, 1 high), frame number and place among the cells."""

    value: Array
    phase: NDArray[np.int64]
    frame: NDArray[np.int64]
    cell: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Model:
    """The fitted camera: the two levels, log fading of each frame, log gain and offset of each pixel."""

    dark: float
    levels: Array
    fading: Array
    gain: Array
    offset: Array

    def apply(self, frames: Array, first: int) -> Array:
        """Return phase values of frames that begin at number `first`."""
        low, high = self.levels
        fade = self.fading[first : first + len(frames)].reshape(-1, *(1,) * (frames.ndim - 1))
        seen = (frames - self.dark - self.offset) / np.exp(fade + self.gain)
        return np.asarray(2.0 * (seen - low) / (high - low) - 1.0)


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


def fit_model(
    pixels: Pixels, start: Array, mesh: tuple[int, ...], frames: int, *,
    dark: float, flatten: Flatten | None, bleaching: bool, order: int,
) -> Model:  # fmt: skip
    """Fit levels, light and fading by robust Gauss-Newton steps from two rough levels."""
    basis = smooth_basis(mesh, order) if flatten else np.zeros((0, int(np.prod(mesh))))
    terms = basis[:, pixels.cell]
    levels, weights = np.asarray(start, dtype=np.float64) - dark, np.zeros(len(basis))
    fading = np.zeros(frames)
    seen = pixels.value - dark
    for _ in range(_ROUNDS):
        smooth = weights @ terms
        light = np.exp(fading[pixels.frame] + (smooth if flatten == "gain" else 0.0))
        signal = levels[pixels.phase] * light
        rest = seen - signal - (smooth if flatten == "offset" else 0.0)
        columns = [np.where(pixels.phase == k, light, 0.0) for k in (0, 1)]
        columns += list(terms * (signal if flatten == "gain" else 1.0))
        step = _robust_step(np.array(columns), rest)
        levels, weights = levels + step[:2], weights + step[2:]
        change = 0.0
        if bleaching:
            fading, change = _new_fading(pixels, seen, levels, weights @ terms, flatten, fading)
            levels, fading = levels * np.exp(fading.mean()), fading - fading.mean()
        if max(float(np.max(np.abs(step[:2]))) / float(np.ptp(levels)), change) < _SMALL:
            break
    picture = (weights @ basis).reshape(mesh)
    none = np.zeros(mesh)
    return Model(
        dark=dark,
        levels=levels,
        fading=fading,
        gain=picture if flatten == "gain" else none,
        offset=picture if flatten == "offset" else none,
    )


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
    pixels: Pixels, seen: Array, levels: Array, smooth: Array, flatten: Flatten | None, before: Array
) -> tuple[Array, float]:
    """Return the fading of every frame: the ratio of what is seen to what the levels predict.

    Frames without any bulk lie between their neighbours.
    """
    light = np.exp(smooth) if flatten == "gain" else 1.0
    model = levels[pixels.phase] * light
    value = seen - (smooth if flatten == "offset" else 0.0)
    top = np.bincount(pixels.frame, model * value, minlength=len(before))
    bottom = np.bincount(pixels.frame, model * model, minlength=len(before))
    known = (bottom > 0.0) & (top > 0.0)
    numbers = np.arange(len(before))
    fading = np.interp(numbers, numbers[known], np.log(top[known] / bottom[known]))
    return fading, float(np.max(np.abs(fading - before)))
