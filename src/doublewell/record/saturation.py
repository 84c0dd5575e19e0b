"""Saturation: values that the camera or the file could not hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from doublewell.hints import Array

__all__ = ["Saturation", "measure_saturation"]

_LIMITS = tuple(float(2**bits - 1) for bits in (8, 10, 12, 14, 16))
_PILE = 1e-3  # share of values at a camera's limit that cannot be chance


@dataclass(frozen=True)
class Saturation:
    """The ends of the values, and the share of them that lies at a limit of the camera or of the file's type.

    ``step`` is the smallest difference between two values, 0 where it is not seen (floats).
    """

    lowest: float
    highest: float
    share_low: float
    share_high: float
    step: float


def measure_saturation(frames: Iterable[Array], kind: np.dtype) -> Saturation:
    """Count the values at the ends. Only the limits of the type, and of cameras of 8 to 16 bits, count as limits."""
    low, high, count = np.inf, -np.inf, 0
    ends = {"low": 0, "high": 0}
    steps = []
    for frame in frames:
        first, last = float(frame.min()), float(frame.max())
        ends["low"] = (ends["low"] if low == min(low, first) else 0) + int(np.sum(frame == min(low, first)))
        ends["high"] = (ends["high"] if high == max(high, last) else 0) + int(np.sum(frame == max(high, last)))
        low, high, count = min(low, first), max(high, last), count + frame.size
        if kind.kind in "iu":
            steps.append(_step(frame))
    bottom = float(np.iinfo(kind).min) if kind.kind in "iu" else None
    at_top = kind.kind in "iu" and high in (*_LIMITS, float(np.iinfo(kind).max))
    share = ends["high"] / count
    return Saturation(
        lowest=low,
        highest=high,
        share_low=ends["low"] / count if low == bottom or (low == 0.0 and kind.kind in "iu") else 0.0,
        share_high=share if at_top and share >= _PILE else 0.0,
        step=min(steps, default=0.0),
    )


def _step(frame: Array) -> float:
    values = np.unique(frame)
    return float(np.min(np.diff(values))) if values.size > 1 else 0.0
