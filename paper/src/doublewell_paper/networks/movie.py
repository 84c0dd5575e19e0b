"""Movie: a record as the networks take it, in float32, periodic, on no finer mesh than the field needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.baselines import complete
from doublewell.dynamics import Grid
from doublewell.errors import InputError
from doublewell.observation import survey
from doublewell.record import Record

__all__ = ["Movie", "movie_of"]

Single = NDArray[np.float32]
_LEVEL = 0.9  # the phase values between which the survey measures the width
_MULTIPLE = 16  # cells come in multiples of this, so that records of one kind share compiled code
_SMOOTHING = 0.1  # standard deviation of the smoothing for the weights, in widths
_REST = 0.02  # weight of a pure phase over that of the interface


@dataclass(frozen=True, eq=False)
class Movie:
    """Frames u[t, (z, y,) x] on a periodic grid, with q, the frame interval and the width of the interface.

    `size` is what the output of a network is multiplied by, so that it is near 1: 2 a^2 for an interface tanh(a x), or
    how fast the field changes, where that is more.
    `width` is the distance from u = -0.9 to 0.9. `weights` are for the squared misfits, of mean 1: the pure phases fill
    most of a frame and say little of the force.
    """

    values: Single
    weights: Single
    grid: Grid
    dt: float
    q: float
    width: float

    @property
    def size(self) -> float:
        """The size of the force of that width; on a record far from rest, that of the change from first to last."""
        moved = float(np.std(self.values[-1] - self.values[0])) / (self.q * self.dt * (self.frames - 1))
        return max(2.0 * (2.0 * atanh(_LEVEL) / self.width) ** 2, moved)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.values.shape[0])


def movie_of(record: Record, *, resolution: float | None, method: str) -> Movie:
    """Return the frames of a record, low-passed to `resolution` cells across an interface (None: as they are).

    With ten cells from u = -0.9 to 0.9 and more, what is dropped is noise. A Neumann record is mirrored: its even
    continuation is periodic on twice the cells.
    """
    q = _check(record, method)
    width = _interface_width(record)
    values = np.asarray(record.slab())
    if record.boundary == "neumann":
        for axis in range(1, values.ndim):
            values = np.concatenate([values, np.flip(values, axis)], axis)
    extent = tuple(h * n for h, n in zip(record.dx, values.shape[1:], strict=True))
    if resolution is not None:
        values = _band_limited(values, [resolution * length / width for length in extent])
    spacing = [length / n for length, n in zip(extent, values.shape[1:], strict=True)]
    grid = Grid(values.shape[1:], spacing, "periodic")
    weights = _weights(values, grid, width)
    return Movie(values.astype(np.float32), weights, grid, record.dt, q, width)


def _check(record: Record, method: str) -> float:
    """Refuse a record that no network here can be trained on; return q."""
    q = complete(record, method)
    if record.boundary not in ("periodic", "neumann"):
        raise InputError(
            f"{method} needs a periodic or a Neumann boundary: the record's is {record.boundary or 'not declared'}; "
            "declare it with boundary="
        )
    if record.frames < 3:
        raise InputError(f"{method} needs at least 3 frames: the record has {record.frames}")
    return q


def _band_limited(values: Any, wanted: Sequence[float]) -> Any:
    """Return the values on at least the wanted numbers of cells, where the mesh has more; the highest modes go."""
    from scipy.signal import resample

    for axis, number in enumerate(wanted, start=1):
        cells = _MULTIPLE * ceil(number / _MULTIPLE)
        if cells < values.shape[axis]:
            values = resample(values, cells, axis=axis)
    return values


def _weights(values: Any, grid: Grid, width: float) -> Single:
    """Return weights that fall from |u| = 0.9 on to a small rest at the pure phases, of mean 1.

    They are read from a smoothed field, so that they do not pick values by their noise.
    """
    axes = tuple(range(1, values.ndim))
    damping = np.exp(0.5 * (_SMOOTHING * width) ** 2 * grid.laplacian)
    smooth = np.fft.irfftn(np.fft.rfftn(values, axes=axes) * damping, s=grid.cells, axes=axes)
    raw = np.clip((1.0 - smooth**2) / (1.0 - _LEVEL**2), _REST, 1.0)
    return np.asarray(raw / raw.mean(), np.float32)


def _interface_width(record: Record) -> float:
    width = survey(record).interface_width
    if width is None:
        raise InputError("the record shows no interface: expected phase values from -0.9 to 0.9; record another part")
    return float(width)
