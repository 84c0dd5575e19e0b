"""Noise: what a measurement adds to a record."""

from __future__ import annotations

import numpy as np

from doublewell.checks import not_negative
from doublewell.checks import seed as generator
from doublewell.hints import Array
from doublewell.record import Record, check_record

__all__ = ["add_noise"]

_REACH = 4.0  # half-width of the Gaussian filter, in standard deviations


def add_noise(record: Record, sd: float, *, seed: int | np.random.Generator, correlation: float = 0.0) -> Record:
    """Return the record plus Gaussian noise of standard deviation `sd` at every pixel, fresh in each frame.

    With ``correlation`` > 0 the noise of a frame is white noise through a Gaussian filter of that many cells, scaled
    back to `sd`; two pixels r cells apart then correlate as exp(-r^2 / (4 correlation^2)). One seed gives one noise,
    and the first frames do not depend on how many follow.

    >>> clean = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1)
    >>> bool(np.array_equal(add_noise(clean, 0.1, seed=1).slab(), add_noise(clean, 0.1, seed=1).slab()))
    True
    """
    check_record(record)
    sd = not_negative(sd, "sd", "the standard deviation of the noise")
    correlation = not_negative(correlation, "correlation", "a length in cells")
    rng = generator(seed, "the noise")
    taps = _gaussian_taps(correlation)
    values = np.empty(record.shape)
    for frame, slab in record.slabs(1):
        values[frame] = slab[0] + sd * _draw(rng, record.mesh, taps)
    return record.replace(values)


def _gaussian_taps(correlation: float) -> Array:
    """Taps of the filter along one axis, scaled so that white noise keeps its variance."""
    reach = int(np.ceil(_REACH * correlation))
    offsets = np.arange(-reach, reach + 1)
    taps = np.exp(-0.5 * (offsets / correlation) ** 2) if correlation > 0 else np.ones(1)
    return np.asarray(taps / np.sqrt(np.sum(taps**2)))


def _draw(rng: np.random.Generator, mesh: tuple[int, ...], taps: Array) -> Array:
    """Draw one frame of unit noise; drawn wider than the mesh and cut, so that the border is like the middle."""
    from scipy.ndimage import correlate1d

    margin = taps.size // 2
    noise = rng.normal(size=tuple(n + 2 * margin for n in mesh))
    if margin == 0:
        return noise
    for axis in range(noise.ndim):
        noise = correlate1d(noise, taps, axis=axis, mode="constant")
    return noise[(slice(margin, -margin),) * noise.ndim]
