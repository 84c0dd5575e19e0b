"""The movie of a command: the options that say how it is opened, and messages that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from doublewell.cli.options import MOVIE, parse_levels, parse_numbers
from doublewell.errors import InputError
from doublewell.units import check_dimension, factor, parse_quantity

if TYPE_CHECKING:
    from doublewell.problem import Source
    from doublewell.record import Phase, Record

Boundary = Literal["periodic", "neumann"]
Border = Literal["periodic", "neumann", "open"]


@Parameter(name="*", group=MOVIE)
@dataclass(frozen=True)
class Movie:
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
        Diffusion coefficient of u_t = q (Laplacian u - G(u)); where the units are known also as "1e-12 m^2/s". Without
        it q is estimated from the movie.
    boundary
        What happens at the border; --validate-from needs it. open, or nothing: a field of view cut out of something
        larger, and nothing is assumed about the outside.
    var
        Name of the array, the variable or the channel, where the file holds several.
    axes
        One letter for each axis in the order of the file, of t, z, y, x and c: yxt is time last.
    levels
        Intensities of the pure phases -1 and +1, as low,high, or auto; a file of integers needs them.
    length_unit
        Unit of --dx, such as um.
    time_unit
        Unit of --dt or --times, such as s.
    mask
        Where values are missing: the name of an array in the file, or of an .npy file, that is True (or 1) where a
        value was observed; or finite, for all values that are finite numbers.
    """

    dx: str | None = None
    dt: float | None = None
    times: str | None = None
    q: str | None = None
    boundary: Border | None = None
    var: str | None = None
    axes: str | None = None
    levels: str | None = None
    length_unit: str | None = None
    time_unit: str | None = None
    mask: str | None = None

    def source(self, file: Path) -> Source:
        """Return what a result keeps of its file: the path as it was given, and the options that were given."""
        from doublewell.problem import Source

        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return Source(str(file), tuple((name, value) for name, value in given.items() if value is not None))

    @classmethod
    def of(cls, source: Source) -> Movie:
        """Return the options that the movie of a result was opened with; names of a later version are refused."""
        known = {part.name for part in fields(cls)}
        if unknown := [name for name, _ in source.reading if name not in known]:
            raise InputError(
                f"the movie was opened with {', '.join(unknown)}, which this version does not know: run pip install "
                "--upgrade doublewell"
            )
        options: dict[str, Any] = dict(source.reading)
        return cls(**options)

    def open(self, file: Path) -> Record:
        """Open the record."""
        return self._open(file, parse_levels(self.levels, "--levels"))

    def open_grey(self, file: Path, levels_sd: str | None = None) -> tuple[Record, Phase | None]:
        """Open the record, and where its grey levels are found, or have an error, also how they became phases."""
        from doublewell.record import phase_from_intensity

        levels, sd = parse_levels(self.levels, "--levels"), parse_levels(levels_sd, "--levels-sd")
        if levels is None and sd is not None:
            raise InputError("--levels-sd has no meaning without levels: pass --levels too")
        if isinstance(levels, str) and isinstance(sd, tuple):
            raise InputError("--levels auto finds the errors itself: pass --levels-sd auto")
        if isinstance(levels, tuple) and isinstance(sd, str):
            raise InputError("--levels-sd auto belongs to --levels auto: give two numbers such as 3,5")
        if levels is None or (sd is None and isinstance(levels, tuple)):
            return self.open(file), None
        grey = self._open(file, (-1.0, 1.0))  # the values as they are
        pair = None if isinstance(levels, str) or isinstance(sd, str) else sd
        phase = phase_from_intensity(grey, levels=None if isinstance(levels, str) else levels, levels_sd=pair)
        if isinstance(levels, tuple):
            phase = replace(phase, record=self.open(file))  # the same to the last bit with and without errors
        return phase.record, phase

    def _open(self, file: Path, levels: tuple[float, float] | Literal["auto"] | None) -> Record:
        from doublewell.io import open_record

        for name, unit, like in (("--length-unit", self.length_unit, "m"), ("--time-unit", self.time_unit, "s")):
            if unit is not None:
                check_dimension(unit, like, name)
        q, unit = (None, None) if self.q is None else parse_quantity(self.q, "--q")
        record = open_record(
            file, var=self.var, axes=self.axes, dx=parse_numbers(self.dx, "--dx"), dt=self.dt,
            times=parse_numbers(self.times, "--times"), q=None if unit else q, boundary=self.boundary, levels=levels,
            length_unit=self.length_unit, time_unit=self.time_unit, mask=self.mask,
        )  # fmt: skip
        return record if q is None or unit is None else _with_diffusion(record, q, unit)


def _with_diffusion(record: Record, q: float, unit: str) -> Record:
    """Set q from a number with a unit of its own, converted to the record's."""
    length, time = record.length_unit, record.time_unit
    if length is None or time is None:
        raise InputError(f"--q is in {unit}: pass --length-unit and --time-unit too, or --q as a plain number")
    check_dimension(unit, "m^2/s", "--q")
    return record.replace(q=q * factor(((unit, 1),), ((length, 2), (time, -1))))


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Name the file in the message of an InputError, where it is not named yet."""
    try:
        yield
    except InputError as error:
        message = str(error)
        raise InputError(message if str(file) in message else f"{file}: {message}") from error
