"""Reading: the options that say how a movie is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from doublewell.cli.values import parse_numbers

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
        Name of the array, where the file holds several.
    """

    dx: str | None = None
    dt: float | None = None
    times: str | None = None
    q: float | None = None
    boundary: Boundary | None = None
    var: str | None = None

    def open(self, file: Path) -> Record:
        """Open the record."""
        from doublewell.files import open_record

        spacing, times = parse_numbers(self.dx, "--dx"), parse_numbers(self.times, "--times")
        return open_record(file, var=self.var, dx=spacing, dt=self.dt, times=times, q=self.q, boundary=self.boundary)
