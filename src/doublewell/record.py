"""Record: a movie of a phase field with its mesh and times; read slab by slab, never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublewell.errors import InputError

__all__ = ["Boundary", "Record"]

Boundary = Literal["periodic", "neumann"]
_BOUNDARIES = (None, "periodic", "neumann")
_TIME_NAMES = ("t", "time", "frame")
_UNIFORM = 1e-6  # relative spread of the steps below which an axis counts as uniform


@dataclass(frozen=True, init=False, eq=False)
class Record:
    """Hold an observed phase field u[t, (z, y,) x] with what is known of its mesh.

    Parameters
    ----------
    u
        Real phase values, pure phases at -1 and +1. Anything with ``shape``, ``dtype`` and slicing: NumPy,
        dask, zarr, or xarray with coordinates (which then supply ``dx`` and ``times``). One to three space
        axes.
    dx
        Mesh spacing, one number or one per space axis, in the order of the axes of u.
    dt, times
        Frame interval, or the times of all frames; give one of them.
    q
        Diffusion coefficient of u_t = q (Laplacian u - G(u)); None when it is not known.
    boundary
        "periodic", "neumann", or None when nothing is known: the weak reading needs none.

    Metadata is checked here, values when a slab is read, so that a record may be larger than memory.

    >>> record = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1, q=1.0)
    >>> record.shape, record.dx, record.dt
    ((3, 8, 8), (0.125, 0.125), 0.1)
    """

    values: Any
    dx: tuple[float, ...]
    times: NDArray[np.float64]
    q: float | None
    boundary: Boundary | None

    def __init__(
        self,
        u: Any,
        *,
        dx: float | Sequence[float] | None = None,
        dt: float | None = None,
        times: ArrayLike | None = None,
        q: float | None = None,
        boundary: Boundary | None = None,
    ) -> None:
        if hasattr(u, "dims") and hasattr(u, "coords"):
            u, dx, dt, times = _from_xarray(u, dx, dt, times)
        values = _check_values(u)
        space = values.ndim - 1
        fields = {
            "values": values,
            "dx": _check_spacing(dx, space),
            "times": _check_times(dt, times, values.shape[0]),
            "q": None if q is None else _positive(q, "q", "the diffusion coefficient"),
            "boundary": _check_boundary(boundary),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, then cells along each space axis."""
        return tuple(int(n) for n in self.values.shape)

    @property
    def frames(self) -> int:
        """Number of frames."""
        return self.shape[0]

    @property
    def mesh(self) -> tuple[int, ...]:
        """Cells along each space axis."""
        return self.shape[1:]

    @property
    def extent(self) -> tuple[float, ...]:
        """Length of each space axis, cells times spacing."""
        return tuple(n * h for n, h in zip(self.mesh, self.dx, strict=True))

    @property
    def uniform(self) -> bool:
        """Whether all frames are the same interval apart."""
        steps = np.diff(self.times)
        return bool(np.ptp(steps) <= _UNIFORM * steps.mean())

    @property
    def dt(self) -> float:
        """Frame interval of a record with uniform times."""
        if not self.uniform:
            raise InputError(
                f"the frames are not evenly spaced (intervals {np.diff(self.times).min():g} to "
                f"{np.diff(self.times).max():g}): expected one frame interval; resample the record, "
                "or cut it where the interval changes"
            )
        return float((self.times[-1] - self.times[0]) / (self.frames - 1))

    def slab(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Read frames start..stop-1 as float64, checked to be finite; a read-only array.

        A NumPy float64 record gives a view, not a copy.
        """
        stop = self.frames if stop is None else stop
        if not 0 <= start < stop <= self.frames:
            raise InputError(f"frames {start} to {stop} lie outside the record, which has {self.frames}")
        block = self.values[start:stop]
        with np.errstate(over="ignore"):
            if isinstance(block, np.ma.MaskedArray):  # below the mask lie arbitrary numbers
                block = np.ma.filled(block.astype(np.float64), np.nan)
            slab = np.asarray(block).astype(np.float64, order="C", copy=False).view()
        slab.flags.writeable = False
        _check_finite(slab, start)
        return slab

    def slabs(self, size: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Read the record in consecutive slabs of `size` frames: pairs of first frame and slab."""
        if size < 1:
            raise InputError(f"a slab of {size} frames cannot be read: expected at least 1 frame")
        for start in range(0, self.frames, size):
            yield start, self.slab(start, min(start + size, self.frames))

    def clip(self, start: int, stop: int) -> Record:
        """Return the record of frames start..stop-1, without reading it."""
        if not 0 <= start < stop <= self.frames:
            raise InputError(f"frames {start} to {stop} lie outside the record, which has {self.frames}")
        lazy = not isinstance(self.values, np.ndarray)
        values = _Frames(self.values, start, stop) if lazy else self.values[start:stop]
        return self.replace(values, self.times[start:stop])

    def replace(self, u: Any, times: ArrayLike | None = None) -> Record:
        """Return a record of other values (or frames) on the same mesh."""
        times = self.times if times is None else times
        return Record(u, dx=self.dx, times=times, q=self.q, boundary=self.boundary)

    def __repr__(self) -> str:
        mesh = " x ".join(str(n) for n in self.mesh)
        spacing = ", ".join(f"{h:.6g}" for h in dict.fromkeys(self.dx))
        q = "unknown" if self.q is None else f"{self.q:.6g}"
        return (
            f"Record({self.frames} frames of {mesh}, dx = {spacing}, t = {self.times[0]:.6g} to "
            f"{self.times[-1]:.6g}, q = {q}, boundary = {self.boundary or 'not declared'})"
        )


class _Frames:
    """A range of frames of a stored array, read only when sliced along time."""

    def __init__(self, values: Any, start: int, stop: int) -> None:
        self.values, self.start = values, start
        self.shape = (stop - start, *values.shape[1:])
        self.dtype, self.ndim = values.dtype, values.ndim

    def __getitem__(self, frames: slice) -> Any:
        first, last, _ = frames.indices(self.shape[0])
        return self.values[self.start + first : self.start + last]


def _check_values(u: Any) -> Any:
    values, kind = _as_array(u)
    if kind == "c":
        raise InputError(
            f"the field is complex ({values.dtype}): expected real phase values; pass its real part u.real"
        )
    if kind in "iub":
        raise InputError(
            f"the field holds whole numbers ({values.dtype}): expected phase values as floats with the pure "
            "phases at -1 and +1; convert intensities first, for example "
            "u = 2*(i.astype(float) - low)/(high - low) - 1"
        )
    if kind != "f":
        raise InputError(f"the field has type {values.dtype}: expected floating-point phase values")
    if not 2 <= values.ndim <= 4:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected u[t, x], u[t, y, x] or u[t, z, y, x]"
            + ("; for one frame pass u[None]" if values.ndim == 1 else "")
        )
    if values.shape[0] < 2 or min(values.shape[1:]) < 2:
        raise InputError(
            f"the field has shape {tuple(values.shape)}: expected at least 2 frames and 2 cells along each axis"
        )
    if isinstance(values, np.ndarray):
        values = values.view()
        values.flags.writeable = False
    return values


def _as_array(u: Any) -> tuple[Any, str]:
    """Return u, or its NumPy array where it is no array, and the kind of its numbers."""
    try:
        values = u if hasattr(u, "shape") and hasattr(u, "dtype") else np.asarray(u)
        return values, np.dtype(values.dtype).kind
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the field is not an array ({type(u).__name__}: {error}): expected u[t, (z, y,) x] as NumPy, "
            "dask, zarr or xarray; pass numpy.asarray(u)"
        ) from None


def _check_spacing(dx: float | Sequence[float] | None, space: int) -> tuple[float, ...]:
    if dx is None:
        raise InputError("the mesh spacing is missing: pass dx=, one number or one per space axis")
    spacing = np.atleast_1d(_numbers(dx, "dx"))
    if spacing.ndim != 1 or spacing.size not in (1, space):
        raise InputError(f"dx has {spacing.size} entries: expected 1, or {space}, one per space axis of the field")
    return tuple(_positive(h, "dx", "the mesh spacing") for h in np.broadcast_to(spacing, (space,)))


def _check_times(dt: float | None, times: ArrayLike | None, frames: int) -> NDArray[np.float64]:
    if (dt is None) == (times is None):
        got = "neither" if dt is None else "both"
        raise InputError(f"expected dt= (one frame interval) or times= (one per frame), got {got}")
    if dt is not None:
        stamps = _positive(dt, "dt", "the frame interval") * np.arange(frames, dtype=np.float64)
    else:
        stamps = _seconds(times)
    if stamps.shape != (frames,):
        raise InputError(f"times has shape {stamps.shape}: expected one time for each of the {frames} frames")
    if not np.all(np.isfinite(stamps)) or np.any(np.diff(stamps) <= 0):
        raise InputError("times must be finite and increase from frame to frame; sort or drop repeated frames")
    stamps.flags.writeable = False
    return stamps


def _check_boundary(boundary: Any) -> Boundary | None:
    if boundary not in _BOUNDARIES:
        raise InputError(f"boundary is {boundary!r}: expected 'periodic', 'neumann' or None (not known)")
    checked: Boundary | None = boundary
    return checked


def _positive(value: Any, name: str, meaning: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}: expected {meaning}, a positive number") from None
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"{name} is {number:g}: expected {meaning}, a positive number")
    return number


def _check_finite(slab: NDArray[np.float64], first: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.sum(slab)  # one pass without a temporary; an overflowing sum falls through
    if np.isfinite(total):
        return
    bad = ~np.isfinite(slab)
    if bad.any():
        frame, *cell = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{int(bad.sum())} values in frames {first} to {first + slab.shape[0] - 1} are not finite, the "
            f"first in frame {first + frame} at cell {tuple(cell)}: expected finite phase values; "
            "fill or cut the missing part of the field"
        )


def _from_xarray(
    array: Any, dx: float | Sequence[float] | None, dt: float | None, times: ArrayLike | None
) -> tuple[Any, float | Sequence[float] | None, float | None, ArrayLike | None]:
    """Put time first and take what is missing of dx and times from the coordinates."""
    if hasattr(array, "data_vars"):
        found = ", ".join(str(name) for name in array.data_vars)
        raise InputError(f"the field is an xarray Dataset ({found}): expected one DataArray; pass dataset[name]")
    if array.ndim < 2:
        return array, dx, dt, times  # the shape is refused next
    names = [str(name) for name in array.dims]
    clock = next((name for name in names if name.lower() in _TIME_NAMES), names[0])
    array = array.transpose(clock, ...)
    space = [name for name in array.dims if name != clock]
    if dx is None and all(name in array.coords for name in space):
        dx = [_coordinate_step(array.coords[name].values, str(name)) for name in space]
    if dt is None and times is None and clock in array.coords:
        times = array.coords[clock].values
    # only dask is asked for its data: a file opened without it would be read whole here
    values = _Frames(array, 0, array.shape[0]) if array.chunks is None else array.data
    return values, dx, dt, times


def _coordinate_step(points: NDArray[Any], name: str) -> float:
    places = _numbers(points, f"coordinate {name!r}")
    steps = np.diff(places)
    if steps.size == 0:
        return 1.0  # a single cell; the shape is refused next
    if np.ptp(steps) > _UNIFORM * abs(steps.mean()) + 1e-14 * np.abs(places).max():
        raise InputError(f"coordinate {name!r} is not evenly spaced: expected a regular mesh; interpolate the field")
    return float(abs(steps.mean()))


def _seconds(times: Any) -> NDArray[np.float64]:
    """Return times as a new array of floats; dates become seconds from the first, durations seconds."""
    stamps = np.asarray(times)
    if np.issubdtype(stamps.dtype, np.datetime64) and stamps.size:
        stamps = stamps - stamps.flat[0]
    if np.issubdtype(stamps.dtype, np.timedelta64):
        stamps = stamps / np.timedelta64(1, "s")
    return _numbers(stamps, "times").copy()


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {values!r}: expected numbers") from None
