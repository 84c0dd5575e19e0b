"""View: corrected frames of a stored array, made when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record.background import Model
from doublewell.record.drift import shift_frame
from doublewell.record.rescaled import Lazy

__all__ = ["Corrected", "crop_of", "read_frame"]

_SPLINE = 2  # pixels at a border that a cubic spline spoils


@dataclass(frozen=True, eq=False)
class Corrected(Lazy):
    """Phase values of a movie of intensities: light and fading taken off, moved back, cut to what all frames show.

    It has shape, dtype and slicing, which is all that a Record needs; whole frames are corrected when they are read.
    """

    source: Any
    model: Model
    way: Array | None
    crop: tuple[slice, ...]
    periodic: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, then cells along each axis."""
        mesh = self.source.shape[1:]
        return (self.source.shape[0], *(len(range(n)[part]) for n, part in zip(mesh, self.crop, strict=True)))

    def __getitem__(self, index: slice | tuple[slice, ...]) -> Array:
        frames, *space = index if isinstance(index, tuple) else (index,)
        first, last, _ = frames.indices(self.shape[0])
        block = np.stack([read_frame(self.source, k) for k in range(first, last)])
        u = self.model.apply(block, first)
        if self.way is not None:
            way = self.way[first:last]
            u = np.stack([shift_frame(one, -d, periodic=self.periodic) for one, d in zip(u, way, strict=True)])
        return np.ascontiguousarray(u[(slice(None), *self.crop)][(slice(None), *space)])


def read_frame(source: Any, k: int) -> Array:
    """Read one frame as floats; it must be finite."""
    frame: Array = np.asarray(source[k : k + 1], dtype=np.float64)[0]
    if not np.all(np.isfinite(frame)):
        raise InputError(f"frame {k} holds values that are not finite: expected intensities; fill or cut that part")
    return frame


def crop_of(mesh: tuple[int, ...], way: Array | None, *, periodic: bool) -> tuple[slice, ...]:
    """Return the part of the mesh that every frame shows after it was moved back."""
    if way is None or periodic:
        return (slice(None),) * len(mesh)
    parts = []
    for n, moved in zip(mesh, way.T, strict=True):
        low = int(np.ceil(max(-float(moved.min()), 0.0))) + _SPLINE
        high = int(np.ceil(max(float(moved.max()), 0.0))) + _SPLINE
        if n - low - high < 8:
            raise InputError(
                f"the picture drifts by {np.ptp(moved):.1f} of {n} pixels, so nothing is left that all frames show: "
                "cut the movie into shorter parts"
            )
        parts.append(slice(low, n - high))
    return tuple(parts)
