"""Record: a movie of a phase field with its mesh and times; read slab by slab, never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doublewell.checks import check_spacing, is_whole, positive, shown, whole
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record.finite import check_finite
from doublewell.record.frames import Frames, from_xarray
from doublewell.record.mask import (
    Cells,
    Seen,
    check_mask,
    clip_mask,
    masked_array,
    missing_share,
    named_axes,
    seen_values,
)
from doublewell.record.metadata import Boundary, check_boundary, check_times, check_unit, check_values, regular_step

__all__ = ["Record", "check_record"]


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
        outside), or None when it is not declared: the weak reading needs none.
    length_unit, time_unit
        Names of the units of dx and of the times, such as "um" and "s"; None when they are not known. They are kept
        and shown, and nothing is converted.
    mask
        True where a value was observed, False where it is missing; what lies there may be NaN and is never used. Of the
        shape of a frame (fixed in time), of the whole record, (frames,) for dropped frames, or any shape with the
        record's axes, each of full length or 1. A stored mask of the whole record is read slab by slab. The mask of a
        NumPy masked array is taken from it.

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
        if hasattr(u, "dims") and hasattr(u, "coords"):
            mask = named_axes(mask, u)
            u, dx, dt, times = from_xarray(u, dx, dt, times)
        u, mask = masked_array(u, mask)
        values = check_values(u)
        space = values.ndim - 1
        fields = {
            "values": values,
            "dx": check_spacing(dx, space),
            "times": check_times(dt, times, values.shape[0]),
            "q": None if q is None else positive(q, "q", "the diffusion coefficient"),
            "boundary": check_boundary(boundary),
            "length_unit": check_unit(length_unit, "length_unit"),
            "time_unit": check_unit(time_unit, "time_unit"),
            "mask": check_mask(mask, tuple(int(n) for n in values.shape)),
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
        block = self.values[self._places(start, stop, cells)]
        with np.errstate(over="ignore"):
            if isinstance(block, np.ma.MaskedArray):  # below the mask lie arbitrary numbers
                block = np.ma.filled(block.astype(np.float64), np.nan)
            slab = np.asarray(block).astype(np.float64, order="C", copy=False).view()
        if self.mask is not None:
            slab = np.where(self.seen(start, stop, cells), slab, 0.0)
        slab.flags.writeable = False
        check_finite(slab, start, cells)
        return slab

    def seen(self, start: int = 0, stop: int | None = None, cells: Cells | None = None) -> Seen:
        """Read which values of frames start..stop-1 were observed; a read-only array, all True without a mask."""
        stop = self.frames if stop is None else stop
        self._check_range(start, stop)
        whole = cells is None or self._covers(cells)
        part = tuple((0, n) for n in self.mesh) if cells is None else cells
        return seen_values(self.mask, start, stop, part, whole=whole)

    def _places(self, start: int, stop: int, cells: Cells | None) -> slice | tuple[slice, ...]:
        """Return the index of a block; whole frames need no more than a slice, which is all some sources know."""
        if cells is None or self._covers(cells):
            return slice(start, stop)
        return slice(start, stop), *(slice(low, high) for low, high in cells)

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
        lazy = not isinstance(self.values, np.ndarray)
        values = Frames(self.values, start, stop) if lazy else self.values[start:stop]
        return self.replace(values, self.times[start:stop], clip_mask(self.mask, start, stop))

    def _check_range(self, start: int, stop: int) -> None:
        if not (is_whole(start) and is_whole(stop)):
            raise InputError(f"frames {shown(start)} to {shown(stop)}: expected whole numbers")
        if not 0 <= start < stop <= self.frames:
            raise InputError(f"frames {start} to {stop} lie outside the record, which has {self.frames}")

    def replace(
        self,
        u: Any = None,
        times: ArrayLike | None = None,
        mask: Any = None,
        *,
        q: float | None = None,
        boundary: Boundary | None = None,
    ) -> Record:
        """Return a record of other values (or frames) on the same mesh; what is not given stays, the mask too."""
        return Record(
            self.values if u is None else u,
            dx=self.dx,
            times=self.times if times is None else times,
            q=self.q if q is None else q,
            boundary=self.boundary if boundary is None else boundary,
            length_unit=self.length_unit,
            time_unit=self.time_unit,
            mask=self.mask if mask is None else mask,
        )

    def __repr__(self) -> str:
        mesh = f"{self.mesh[0]} cells (1-D)" if len(self.mesh) == 1 else " x ".join(str(n) for n in self.mesh)
        spacing = ", ".join(f"{h:.6g}" for h in dict.fromkeys(self.dx))
        q = "unknown" if self.q is None else f"{self.q:.6g}"
        length, time = (f" {unit}" if unit else "" for unit in (self.length_unit, self.time_unit))
        return (
            f"Record({self.frames} frames of {mesh}, dx = {spacing}{length}, t = {self.times[0]:.6g} to "
            f"{self.times[-1]:.6g}{time}, q = {q}, boundary = {self.boundary or 'not declared'}{self._missing()})"
        )

    def _missing(self) -> str:
        """Say how much is missing, where a mask says so without being read from a file."""
        if self.mask is None:
            return ""
        share = missing_share(self.mask)
        return ", with a stored mask" if share is None else f", {100.0 * share:.3g} % missing"


def check_record(value: Any) -> Record:
    """Return a record as it is; anything else raises and says how to make one."""
    if not isinstance(value, Record):
        raise InputError(
            f"record is a {type(value).__name__}: expected a Record; make one with Record(u, dx=, dt=, q=) or "
            "open_record(path)"
        )
    return value
