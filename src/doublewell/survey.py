"""Survey: what a record looks like before any law is fitted: noise, phase coverage, interface width."""

from __future__ import annotations

from dataclasses import dataclass
from math import atanh

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.record import Record

__all__ = ["FEW_CELLS", "LARGE", "TOO_FEW_CELLS", "Survey", "survey"]

FEW_CELLS = 9.0  # the paper's error at noise 0.03 grows fourfold when an interface has 6 to 8 cells instead of 12
TOO_FEW_CELLS = 2.5  # fewer are refused
LARGE = 3.0  # phase values beyond this are no order parameter with noise

Array = NDArray[np.float64]
_LEVEL = 0.9  # interface width is measured between the phase values -0.9 and 0.9
_BINS = 20
_LOOKS = 12  # groups of frames that are looked at, spread over the record
_GROUP = 5  # frames per look: one fourth difference in time
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_SLOPE = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0


@dataclass(frozen=True)
class Survey:
    """Measured properties of a record, from groups of frames spread over it.

    ``noise`` is the standard deviation of one pixel; ``low`` and ``high`` the 0.1 and 99.9 percentiles of u;
    ``histogram`` the share of all values in each of 20 equal bins of [-1, 1]; ``interface_width`` the distance
    from u = -0.9 to 0.9 across an interface, None when no interface is seen, and ``cells`` the same in cells of the
    coarsest axis; ``change`` the root mean square change of u from the first to the last look.
    """

    frames: int
    mesh: tuple[int, ...]
    noise: float
    noise_method: str
    low: float
    high: float
    histogram: tuple[float, ...]
    interface_width: float | None
    cells: float | None
    change: float

    @property
    def coverage(self) -> float:
        """The share of the 20 phase bins that hold at least 0.1 % of the values."""
        return float(np.mean(np.array(self.histogram) >= 1e-3))

    @property
    def interface_share(self) -> float:
        """The share of all values between -0.9 and 0.9."""
        return float(sum(self.histogram[1:-1]))


def survey(record: Record) -> Survey:
    """Look at a record: groups of five frames spread over it (all frames when there are fewer than five).

    Noise comes from fourth differences in time, which a smooth evolution leaves nearly empty (in space, with fewer
    than five frames), by the median absolute deviation. The interface width is that of the tanh profile with the
    slope measured in the later half of the looks, the noise's share of the squared gradient taken off.
    """
    groups = [record.slab(start, stop) for start, stop in _looks(record.frames)]
    values = np.concatenate([group[len(group) // 2].ravel() for group in groups])
    low, high = (float(x) for x in np.percentile(values, [0.1, 99.9]))
    if np.ptp(values) == 0.0:
        raise InputError(
            f"the field is constant (u = {values[0]:g} everywhere): expected two phases and an interface between them"
        )
    noise, method = _noise(groups)
    width = _interface_width(groups, record.dx, noise)
    counts, _ = np.histogram(values, bins=_BINS, range=(-1.0, 1.0))
    first, last = (group.mean(axis=0) for group in (groups[0], groups[-1]))
    return Survey(
        frames=record.frames,
        mesh=record.mesh,
        noise=noise,
        noise_method=method,
        low=low,
        high=high,
        histogram=tuple(float(c) / values.size for c in counts),
        interface_width=width,
        cells=None if width is None else width / max(record.dx),
        change=float(np.sqrt(np.mean((last - first) ** 2))),
    )


def _looks(frames: int) -> list[tuple[int, int]]:
    size = min(_GROUP, frames)
    starts = np.unique(np.linspace(0, frames - size, min(_LOOKS, frames - size + 1)).round().astype(int))
    return [(int(start), int(start) + size) for start in starts]


def _noise(groups: list[Array]) -> tuple[float, str]:
    axis, method = (
        (0, "fourth differences in time") if len(groups[0]) == _GROUP else (-1, "fourth differences in space")
    )
    if groups[0].shape[axis] < len(_FOURTH):
        raise InputError(
            f"{len(groups[0])} frames of {groups[0].shape[-1]} cells are too few to measure noise: "
            "record at least 5 frames"
        )
    windows = (np.lib.stride_tricks.sliding_window_view(group, len(_FOURTH), axis=axis) for group in groups)
    rest = np.concatenate([(window @ _FOURTH).ravel() for window in windows]) / np.linalg.norm(_FOURTH)
    return float(1.4826 * np.median(np.abs(rest))), method


def _interface_width(groups: list[Array], dx: tuple[float, ...], noise: float) -> float | None:
    """Return 2 atanh(0.9) / s with s the median slope of the later half of the looks that have an interface.

    Profiles relax in time, so the later half is closer to the law's own interface than the initial field.
    """
    if min(groups[0].shape[1:]) < len(_SLOPE):
        return None
    slopes = [slope for slope in (_profile_slope(group, dx, noise) for group in groups) if slope > 0.0]
    return 2.0 * atanh(_LEVEL) / float(np.median(slopes[len(slopes) // 2 :])) if slopes else None


def _profile_slope(group: Array, dx: tuple[float, ...], noise: float) -> float:
    """Fit |grad u| = s (1 - u^2) over |u| < 0.8 to the mean of a group, weighted by |grad u|.

    The weight makes every crossing from phase to phase count the same, however wide it is.
    """
    u = group.mean(axis=0)
    inner = (slice(2, -2),) * u.ndim
    near = np.abs(u[inner]) < 0.8
    squared = sum(_slope(u, axis)[inner][near] ** 2 / h**2 for axis, h in enumerate(dx))
    floor = sum(np.sum(_SLOPE**2) * noise**2 / len(group) / h**2 for h in dx)
    steep = np.maximum(squared - floor, 0.0)
    weight = float(np.sum(np.sqrt(steep) * (1.0 - u[inner][near] ** 2)))
    return float(np.sum(steep)) / weight if weight > 0.0 else 0.0


def _slope(u: Array, axis: int) -> Array:
    """Fourth-order central difference times the spacing; the two outer cells wrap and are cut by the caller."""
    return np.asarray(sum(c * np.roll(u, 2 - k, axis=axis) for k, c in enumerate(_SLOPE)))
