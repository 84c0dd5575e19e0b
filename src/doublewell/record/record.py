"""Record: a movie of a phase field with its mesh and times; read slab by slab, never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.errors import InputError, check_spacing, is_whole, option, positive, shown, whole
from doublewell.hints import Array, Bools
from doublewell.record.lazy import lazy
from doublewell.record.metadata import (
    Boundary,
    Cells,
    check_boundary,
    check_mask,
    check_times,
    check_unit,
    check_values,
    missing_fraction,
    regular_step,
    unwrapped,
)
from doublewell.runtime import map_threads

_LARGE = 128 * 2**20  # bytes from which threads are worth starting
_THREADS = 8
_KEEP: Any = object()  # stands for what `replace` leaves as it is; None is a value there


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
        "periodic", "neumann", "open" for a field of view cut out of something larger (nothing is assumed about the
        outside), or None when it is not declared: it is then treated as open.
    length_unit, time_unit
        Names of the units of dx and of the times, such as "um" and "s"; None when they are not known. They are kept
        and shown, and nothing is converted.
    mask
        True where a value was observed, False where it is missing; what lies there may be NaN and is never used. Of the
        shape of a frame (fixed in time), of the whole record, (frames,) for dropped frames, or any shape with the
        record's axes, each of full length or 1. "finite" marks all values that are finite numbers. A stored mask of the
        whole record is read slab by slab. The mask of a NumPy masked array is taken from it.

    Metadata is checked here, values when a slab is read, so that a record may be larger than memory.

    >>> record = Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1, q=1.0)
    >>> record.shape, record.dx, record.dt
    ((3, 8, 8), (0.125, 0.125), 0.1)
    """

    values: Any
    dx: tuple[float, ...]
    times: Array
    q: float | None
    boundary: Boundary | None
    length_unit: str | None
    time_unit: str | None
    mask: Any

    def __init__(
        self,
        u: Any,
        *,
        dx: float | Sequence[float] | None = None,
        dt: float | None = None,
        times: ArrayLike | None = None,
        q: float | None = None,
        boundary: Boundary | None = None,
        length_unit: str | None = None,
        time_unit: str | None = None,
        mask: Any = None,
    ) -> None:
        u, mask, mesh = unwrapped(u, mask, {"dx": dx, "dt": dt, "times": times})
        values = check_values(u)
        fields = {
            "values": values,
            "dx": check_spacing(mesh["dx"], values.ndim - 1),
            "times": check_times(mesh["dt"], mesh["times"], values.shape[0]),
            "q": None if q is None else positive(q, "q", "the diffusion coefficient"),
            "boundary": check_boundary(boundary),
            "length_unit": check_unit(length_unit, "length_unit"),
            "time_unit": check_unit(time_unit, "time_unit"),
            "mask": check_mask(mask, values),
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
        """Whether all frames are the same interval apart, to a thousandth of it."""
        return self._step is not None

    @cached_property
    def _step(self) -> float | None:
        return regular_step(self.times)

    @property
    def dt(self) -> float:
        """Frame interval of a record with uniform times."""
        if self._step is None:
            raise InputError(
                f"the frames are not evenly spaced (intervals {np.diff(self.times).min():g} to "
                f"{np.diff(self.times).max():g}): expected one frame interval; resample the record, "
                "or cut it where the interval changes"
            )
        return self._step

    def slab(self, start: int = 0, stop: int | None = None, cells: Cells | None = None) -> Array:
        """Read frames start..stop-1 as float64, checked to be finite; a read-only array.

        Values that the mask leaves out are 0. A NumPy float64 record without a mask gives a view, not a copy. `cells`
        are pairs (first, past the last), one per space axis, of a part of the mesh; only that part is read.
        """
        stop = self.frames if stop is None else stop
        self._check_range(start, stop)
        whole = cells is None or self._covers(cells)  # whole frames need only a slice, which is all some sources know
        frames = slice(start, stop)
        block = self.values[frames if whole else (frames, *(slice(*pair) for pair in cells or ()))]
        with np.errstate(over="ignore"):
            if isinstance(block, np.ma.MaskedArray):  # below the mask lie arbitrary numbers
                block = np.ma.filled(block.astype(np.float64), np.nan)
            slab = np.asarray(block).astype(np.float64, order="C", copy=False).view()
        if self.mask is not None:
            slab = np.where(self.observed(start, stop, cells), slab, 0.0)
        slab.flags.writeable = False
        if not np.isfinite(_total(slab)):
            _check_finite(slab, start, cells)
        return slab

    def observed(self, start: int = 0, stop: int | None = None, cells: Cells | None = None) -> Bools:
        """Read which values of frames start..stop-1 were observed; a read-only array, all True without a mask."""
        stop = self.frames if stop is None else stop
        self._check_range(start, stop)
        pairs = tuple((0, n) for n in self.mesh) if cells is None else cells
        shape = (stop - start, *(high - low for low, high in pairs))
        whole = self._covers(pairs)
        if self.mask is None:
            return np.broadcast_to(np.True_, shape)
        lengths = self.mask.shape
        frames = slice(None) if lengths[0] == 1 else slice(start, stop)
        space = (slice(None) if n == 1 else slice(*pair) for n, pair in zip(lengths[1:], pairs, strict=True))
        return np.broadcast_to(np.asarray(self.mask[frames if whole else (frames, *space)], dtype=bool), shape)

    def _covers(self, cells: Cells) -> bool:
        """Whether cells are the whole mesh; others are checked to lie inside it."""
        if cells == tuple((0, n) for n in self.mesh):
            return True
        if len(cells) != len(self.mesh) or not all(0 <= a < b <= n for (a, b), n in zip(cells, self.mesh, strict=True)):
            raise InputError(f"cells {shown(cells)} lie outside the mesh {self.mesh}: expected (first, past the last)")
        return False

    def slabs(self, size: int) -> Iterator[tuple[int, Array]]:
        """Read the record in consecutive slabs of `size` frames: pairs of first frame and slab."""
        size = whole(size, "size", least=1, meaning="the frames of a slab")
        for start in range(0, self.frames, size):
            yield start, self.slab(start, min(start + size, self.frames))

    def clip(self, start: int, stop: int) -> Record:
        """Return the record of frames start..stop-1, without reading it."""
        self._check_range(start, stop)
        fixed = self.mask is None or self.mask.shape[0] == 1
        mask = self.mask if fixed else _clipped(self.mask, start, stop)
        return self.replace(_clipped(self.values, start, stop), self.times[start:stop], mask)

    def _check_range(self, start: int, stop: int) -> None:
        if not (is_whole(start) and is_whole(stop)):
            raise InputError(f"frames {shown(start)} to {shown(stop)}: expected integers")
        if not 0 <= start < stop <= self.frames:
            raise InputError(f"frames {start} to {stop} lie outside the record, which has {self.frames}")

    def replace(
        self,
        u: Any = _KEEP,
        times: ArrayLike = _KEEP,
        mask: Any = _KEEP,
        *,
        dx: float | Sequence[float] = _KEEP,
        q: float | None = _KEEP,
        boundary: Boundary | None = _KEEP,
        length_unit: str | None = _KEEP,
        time_unit: str | None = _KEEP,
    ) -> Record:
        """Return a record with other values, frames or metadata; what is not given stays, the mask too.

        None forgets: ``record.replace(q=None)`` has an unknown q, and ``record.replace(mask=None)`` no mask.
        """
        given = {"times": times, "mask": mask, "dx": dx, "q": q, "boundary": boundary}
        given |= {"length_unit": length_unit, "time_unit": time_unit}
        kept = {name: getattr(self, name) if value is _KEEP else value for name, value in given.items()}
        return Record(self.values if u is _KEEP else u, **kept)

    def __repr__(self) -> str:
        mesh = f"{self.mesh[0]} cells (1-D)" if len(self.mesh) == 1 else " x ".join(str(n) for n in self.mesh)
        spacing = ", ".join(f"{h:.6g}" for h in dict.fromkeys(self.dx))
        q = "unknown" if self.q is None else f"{self.q:.6g}"
        length, time = (f" {unit}" if unit else "" for unit in (self.length_unit, self.time_unit))
        fraction = missing_fraction(self.mask)
        stored = "" if self.mask is None else ", with a stored mask"  # is not read for this
        missing = stored if fraction is None else f", {100.0 * fraction:.3g} % missing"
        return (
            f"Record({self.frames} frames of {mesh}, dx = {spacing}{length}, t = {self.times[0]:.6g} to "
            f"{self.times[-1]:.6g}{time}, q = {q}, boundary = {self.boundary or 'not declared'}{missing})"
        )


def check_record(value: Any) -> Record:
    """Return a record as it is; anything else raises."""
    if not isinstance(value, Record):
        raise InputError(
            f"record is a {type(value).__name__}: expected a Record; make one with Record(u, dx=, dt=, q=) or "
            "open_record(path)"
        )
    return value


def _clipped(values: Any, start: int, stop: int) -> Any:
    return values[start:stop] if isinstance(values, np.ndarray) else lazy(values).part((start, stop))


def _total(slab: Array) -> float:
    """Return the sum of all values: one pass without a temporary; a sum that overflows is not finite either."""
    if slab.nbytes < _LARGE:
        return _sum(slab)
    return sum(map_threads(min(_THREADS, cpu_count() or 1), _sum, np.array_split(slab, 4 * _THREADS)))


def _sum(part: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.sum(part))


def _check_finite(slab: Array, first: int, cells: Cells | None) -> None:
    """Refuse a slab with values that are not finite, and name the first of them; `first` is its first frame."""
    bad = ~np.isfinite(slab)
    if bad.any():
        frame, *cell = (int(i) for i in np.argwhere(bad)[0])
        cell = cell if cells is None else [i + low for i, (low, _) in zip(cell, cells, strict=True)]
        count = int(bad.sum())
        raise InputError(
            f"{count} {'value' if count == 1 else 'values'} in frames {first} to {first + slab.shape[0] - 1} "
            f"{'is' if count == 1 else 'are'} not finite, the first in frame {first + frame} at cell {tuple(cell)}: "
            f"expected finite phase values; pass {option('mask', 'finite')} where values are missing"
        )
