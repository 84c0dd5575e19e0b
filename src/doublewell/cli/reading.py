"""Reading: the options that say how a movie is opened."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from doublewell.cli.values import parse_numbers
from doublewell.errors import InputError
from doublewell.units import check_dimension, factor, parse_quantity

if TYPE_CHECKING:
    from doublewell.record import Record
    from doublewell.result import Source

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
        Diffusion coefficient of u_t = q (Laplacian u - G(u)); where the units are known also as "1e-12 m^2/s".
    boundary
        What happens at the border; the trajectory reading and --validate-from need it.
    var
        Name of the array, where the file holds several.
    length_unit
        Unit of --dx, such as um.
    time_unit
        Unit of --dt or --times, such as s.
    """

    dx: str | None = None
    dt: float | None = None
    times: str | None = None
    q: str | None = None
    boundary: Boundary | None = None
    var: str | None = None
    length_unit: str | None = None
    time_unit: str | None = None

    def source(self, file: Path) -> Source:
        """Return what a result keeps of its file: the path as it was given, and the options that were given."""
        from doublewell.result import Source

        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return Source(str(file), tuple((name, value) for name, value in given.items() if value is not None))

    @classmethod
    def of(cls, source: Source) -> Reading:
        """Return the options that a result was read with; names of a later version are refused."""
        known = {part.name for part in fields(cls)}
        if unknown := [name for name, _ in source.reading if name not in known]:
            raise InputError(
                f"the result was read with {', '.join(unknown)}, which this version does not know: run pip install "
                "--upgrade doublewell"
            )
        options: dict[str, Any] = dict(source.reading)
        return cls(**options)

    def open(self, file: Path) -> Record:
        """Open the record."""
        from doublewell.files import open_record

        spacing, times = parse_numbers(self.dx, "--dx"), parse_numbers(self.times, "--times")
        q, unit = (None, None) if self.q is None else parse_quantity(self.q, "--q")
        record = open_record(
            file, var=self.var, dx=spacing, dt=self.dt, times=times, q=None if unit else q, boundary=self.boundary
        )
        named = self.length_unit is not None or self.time_unit is not None or unit is not None
        return self._with_units(record, q, unit) if named else record

    def _with_units(self, record: Record, q: float | None, unit: str | None) -> Record:
        """Name the units; q with a unit of its own is converted to the record's."""
        from doublewell.record import Record

        length, time = self.length_unit or record.length_unit, self.time_unit or record.time_unit
        for name, given, like in (("--length-unit", length, "m"), ("--time-unit", time, "s")):
            if given is not None:
                check_dimension(given, like, name)
        if unit is not None:
            if length is None or time is None:
                raise InputError(f"--q is in {unit}: pass --length-unit and --time-unit too, or --q as a plain number")
            check_dimension(unit, "m^2/s", "--q")
            q = (q or 0.0) * factor(((unit, 1),), ((length, 2), (time, -1)))
        return Record(
            record.values, dx=record.dx, times=record.times, q=record.q if unit is None else q,
            boundary=record.boundary, length_unit=length, time_unit=time,
        )  # fmt: skip
