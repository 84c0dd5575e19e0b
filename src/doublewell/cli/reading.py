"""Reading: the options that say how a movie is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from doublewell.cli.values import parse_numbers, parse_pair

if TYPE_CHECKING:
    from doublewell.record import Record

__all__ = ["Boundary", "Reading"]

Boundary = Literal["periodic", "neumann"]


@Parameter(name="*")
@dataclass(frozen=True)
class Reading:
    """What a file may not say, or says wrongly; these go before what the file says.

    Parameters
    ----------
    dx
        Pixel size, one number or one per axis with commas, in the order (z, y,) x.
    dt
        Time from frame to frame.
    times
        Times of the frames with commas, instead of --dt.
    q
        Diffusion coefficient of u_t = q (Laplacian u - G(u)).
    boundary
        What happens at the border; the trajectory reading and --validate-from need it.
    var
        Name of the array, the variable or the channel, where the file holds several.
    axes
        One letter for each axis in the order of the file, of t, z, y, x and c: yxt is time last.
    levels
        Intensities of the pure phases -1 and +1, as low,high; a file of whole numbers needs them.
    length_unit
        Unit of --dx, such as um.
    time_unit
        Unit of --dt or --times, such as s.
    """

    dx: str | None = None
    dt: float | None = None
    times: str | None = None
    q: float | None = None
    boundary: Boundary | None = None
    var: str | None = None
    axes: str | None = None
    levels: str | None = None
    length_unit: str | None = None
    time_unit: str | None = None

    def open(self, file: Path) -> Record:
        """Open the record."""
        from doublewell.files import open_record

        return open_record(
            file,
            var=self.var,
            axes=self.axes,
            dx=parse_numbers(self.dx, "--dx"),
            dt=self.dt,
            times=parse_numbers(self.times, "--times"),
            q=self.q,
            boundary=self.boundary,
            levels=parse_pair(self.levels, "--levels"),
            length_unit=self.length_unit,
            time_unit=self.time_unit,
        )
