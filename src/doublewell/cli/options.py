"""Options of the shell: flags of the option values, the movie of a command, how it answers, words for numbers.

The flags of the law, the method, the observation and the computing are read off the fields of `doublewell.options`:
their names, defaults, help and how a word is read. A field that is added there needs no line here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

from cyclopts import Group, Parameter

from doublewell.errors import InputError, as_word, option, whole
from doublewell.hints import Report
from doublewell.options import METHODS, Compute, DoubleWell, Observation, Options, help_of, method_of, worded
from doublewell.progress import Bar
from doublewell.units import check_dimension, parse_quantity

if TYPE_CHECKING:
    from doublewell.problem import Source
    from doublewell.record import Record

Boundary = Literal["periodic", "neumann"]
Border = Literal["periodic", "neumann", "open"]
ANSWER, TENSION, MOVIE, LAW, METHOD, OBSERVATION, COMPUTE = (
    Group.create_ordered(name)
    for name in ("Answer", "Surface tension", "Movie", "Law", "Method", "Observation", "Computing")
)
Switch = Annotated[bool, Parameter(negative=(), show_default=False)]
_PATIENT = "compiling and fitting; the first time on a machine takes a minute or more (--quiet hides this line)"
_GREY: dict[str, Literal["auto", "remove"]] = {"auto": "auto", "remove": "remove"}  # drifts that grey values decide
_VALUES: dict[Group, dict[str, type[Options]]] = {
    LAW: {"": DoubleWell}, METHOD: dict(METHODS), OBSERVATION: {"": Observation}, COMPUTE: {"": Compute},
}  # fmt: skip


def _flags() -> list[tuple[str, Any, Any]]:
    """Return name, annotation and default of a flag for each field; methods share one where they share a name."""
    words: Any = Literal[(*METHODS, "weak-corrected")]
    about = "trajectory: the likelihood of the whole movie, with error bands; weak: space-time moments, faster and "
    about += "without bands; weak-corrected: the same without the bias of white noise."
    flags = [("method", Annotated[words, Parameter(group=METHOD, help=about)], field(default="trajectory"))]
    for group, kinds in _VALUES.items():
        owners: dict[str, list[tuple[str, type[Options], Field[Any]]]] = {}
        for name, kind in kinds.items():
            for item in worded(kind):
                if item.name == "drift":  # that of the movie, which knows more words
                    continue
                owners.setdefault(item.name, []).append((name, kind, item))
        flags += [_flag(group, len(kinds), owned) for owned in owners.values()]
    return flags


def _flag(group: Group, kinds: int, owners: list[tuple[str, type[Options], Field[Any]]]) -> tuple[str, Any, Any]:
    _, kind, item = owners[0]
    texts = {help_of(owner)[item.name]: name for name, owner, _ in owners}
    about = " ".join(f"{name.capitalize()}: {text}" if len(texts) > 1 else text for text, name in texts.items())
    if len(owners) < kinds:
        about += f" ({', '.join(name for name, *_ in owners)} only)"
    hint, default = get_type_hints(kind)[item.name], item.default
    if hint is bool:
        return item.name, Annotated[Switch, Parameter(group=group, help=about)], field(default=default)
    words = hint if get_origin(hint) is Literal else str | None
    reported = Parameter(group=group, help=about, allow_leading_hyphen=True)
    return item.name, Annotated[words, reported], field(default=None if default is None else as_word(default))


if TYPE_CHECKING:
    Given = Any
else:
    Given = Parameter(name="*")(
        make_dataclass("Given", _flags(), frozen=True, namespace={"__module__": __name__, "__doc__": "The flags."})
    )


def options_of(given: Given, drift: str = "auto") -> dict[str, Any]:
    """Return the options of identify as its values; those of another method are refused."""
    method = method_of(given.method)
    own = {item.name for item in fields(method)}
    for name, kind in METHODS.items():
        for item in _given(given, kind):
            if item.name not in own:
                raise InputError(
                    f"{option(item.name)} belongs to {option('method', name)}: leave it out, or choose that"
                )
    values: dict[str, Any] = {
        "law": DoubleWell(), "method": method, "observation": Observation(), "compute": Compute(),
    }  # fmt: skip
    if drift not in _GREY:
        try:
            values["observation"] = Observation.of(f"drift={drift}")
        except InputError as error:
            words = "expected auto, remove, none, estimated, or a velocity for each axis, such as 0,0.6"
            raise InputError(f"--drift: {error}; {words}") from error
    return {name: replace(value, **_read(given, type(value))) for name, value in values.items()}


def _given(given: Given, kind: type[Options]) -> list[Field[Any]]:
    """Return the fields of a value whose flags differ from the default."""
    items = [(item, getattr(given, item.name, None)) for item in worded(kind)]
    return [item for item, word in items if word is not None and word not in (item.default, as_word(item.default))]


def _read(given: Given, kind: type[Options]) -> dict[str, Any]:
    """Read what was given of the fields of a value."""
    values = {}
    for item in _given(given, kind):
        word = getattr(given, item.name)
        with about(option(item.name)):
            values[item.name] = word if isinstance(word, bool) else item.metadata["read"](word)
    return values


def _integer(_: Any, tokens: Sequence[Any]) -> int:
    """Read an integer; the parser's own reading would round 2.5."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer") from None


Integer = Annotated[int, Parameter(converter=_integer)]


# --- the movie --------------------------------------------------------------------------------------------------------


@Parameter(name="*", group=MOVIE)
@dataclass(frozen=True)
class Movie:
    """What a file may not state, or state wrongly; these take precedence over the file.

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
        Intensities of the pure phases -1 and +1, as low,high; auto, the default for a file of integers, finds them with
        the faults of the camera.
    length_unit
        Unit of --dx, such as um.
    time_unit
        Unit of --dt or --times, such as s.
    mask
        Where values are missing: the name of an array in the file, or of an .npy file, that is True (or 1) where a
        value was observed; or finite, for all values that are finite numbers.
    flatten
        Light of grey values: gain (uneven), offset (stray light), none, or auto: the movie decides.
    bleaching
        Whether light or dye fade; without it the movie decides.
    drift
        auto: measured on grey values and left to the fit; remove: frames are moved back by interpolation; none;
        estimated: the fit follows it; or a known velocity along each axis, such as 0,0.6.
    dark
        The camera's grey value without light, a number or a file of dark frames; without it the movie decides.
    nodes
        Values lie on nodes, the first and the last on the borders; --no-nodes where they do not. Without it the file
        decides.
    frames
        The frames that are used, as first:past the last, such as 10:60 or 10: for all from the tenth on.
    window
        The part of the mesh that is used, one span of cells per axis in the order (z, y,) x, such as 10:50,: for some
        rows in full. Its border is open.
    leave_out
        Boxes of the mesh that hold nothing of the field, such as a scale bar: spans as for a window, with a semicolon
        between boxes, "90:96,60:96;0:4,:".
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
    flatten: Literal["auto", "gain", "offset", "none"] = "auto"
    bleaching: bool | None = None
    drift: Annotated[str, Parameter(allow_leading_hyphen=True)] = "auto"
    dark: str | None = None
    nodes: bool | None = None
    frames: str | None = None
    window: str | None = None
    leave_out: str | None = None

    def source(self, file: Path) -> Source:
        """Return what a result keeps of its file: the path as it was given, and the options that were given."""
        from doublewell.problem import Source

        given = ((part, getattr(self, part.name)) for part in fields(self))
        return Source(str(file), tuple((part.name, value) for part, value in given if value != part.default))

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

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of open_record for the options that were given."""
        for name, unit, like in (("--length-unit", self.length_unit, "m"), ("--time-unit", self.time_unit, "s")):
            if unit is not None:
                check_dimension(unit, like, name)
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        given = {part.name: given[part.name] for part in fields(self) if given[part.name] != part.default}
        return given | {
            name: _MOVIE[name](given[name], f"--{name.replace('_', '-')}") for name in _MOVIE.keys() & given.keys()
        }

    def open(self, file: Path) -> Record:
        """Open the record; grey values become phase values, and ``record.grey`` states how."""
        from doublewell.io import open_record

        return open_record(file, **self.arguments())


@contextmanager
def about(subject: Path | str) -> Iterator[None]:
    """Name the file or the flag in the message of an InputError, where it is not named yet."""
    try:
        yield
    except InputError as error:
        message = str(error)
        raise InputError(message if str(subject) in message else f"{subject}: {message}") from error


# --- the answer -------------------------------------------------------------------------------------------------------


@Parameter(name="*", group=ANSWER)
@dataclass(frozen=True)
class Output:
    """How the answer is given.

    Parameters
    ----------
    json
        Print one JSON object and nothing else.
    quiet
        Print nothing but errors (and the JSON object, when asked for).
    """

    json: Switch = False
    quiet: Switch = False

    def answer(self, text: str, document: dict[str, Any]) -> None:
        """Print the answer in the form that was asked for."""
        if self.json:
            _write(json.dumps(document, allow_nan=False))
        elif not self.quiet:
            _write(text)

    def fitting(self, bar: Bar) -> Report:
        """Return a callback that shows the progress of a fit, and first of all that compiling takes its time.

        A terminal shows the bar; elsewhere one line on stderr states why nothing happens.
        """
        reported = self.json or self.quiet or sys.stderr.isatty()

        def show(name: str, done: int, total: int) -> None:
            nonlocal reported
            if not reported:
                reported = True
                sys.stderr.write(f"doublewell: {_PATIENT}\n")
                sys.stderr.flush()
            bar.show(name, done, total)

        return show

    def bar(self) -> Bar:
        """Return the sign of progress, silent where nobody watches."""
        return Bar(wanted=not (self.json or self.quiet) and sys.stderr.isatty())


def _write(text: str) -> None:
    """Write a text; characters that the terminal does not know are escaped, not fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


# --- words ------------------------------------------------------------------------------------------------------------


def parse_mesh(text: str) -> tuple[int, ...]:
    """Read cells along each axis, such as 96x96.

    >>> parse_mesh("64x96")
    (64, 96)
    """
    parts = text.lower().split("x")
    if len(parts) > 3 or not all(part.isdecimal() and part.isascii() and int(part) > 1 for part in parts):
        raise InputError(f"--mesh is {text!r}: expected cells along (z, y and) x, such as 256, 96x96 or 32x32x32")
    return tuple(map(int, parts))


def parse_numbers(text: str | None, flag: str) -> float | tuple[float, ...] | None:
    """Read one number, or several with commas between them.

    >>> parse_numbers("0.1,0.2", "--dx")
    (0.1, 0.2)
    """
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{flag} is {text!r}: expected a number, or one per axis such as 0.1,0.2") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _number_or_name(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def parse_levels(text: str | None, flag: str) -> tuple[float, float] | Literal["auto"] | None:
    """Read two intensities with a comma between them, or the word auto.

    >>> parse_levels("auto", "--levels"), parse_levels("12,240", "--levels")
    ('auto', (12.0, 240.0))
    """
    if text is None or text == "auto":
        return None if text is None else "auto"
    numbers = parse_numbers(text, flag)
    if not isinstance(numbers, tuple) or len(numbers) != 2:
        raise InputError(f"{flag} is {text!r}: expected auto, or two numbers such as 12,240")
    return numbers[0], numbers[1]


def parse_box(text: str, flag: str) -> tuple[tuple[int | None, int | None], ...]:
    """Read spans of cells along the axes, with commas between them.

    >>> parse_box("10:50,:", "--window")
    ((10, 50), (None, None))
    """
    spans = [part.strip().split(":") for part in text.split(",")]
    if not all(len(span) == 2 and all(end == "" or end.isdecimal() for end in span) for span in spans):
        raise InputError(f"{flag} is {text!r}: expected first:past the last along each axis, such as 10:50,20:60")
    return tuple((int(a) if a else None, int(b) if b else None) for a, b in spans)


def parse_span(text: str, flag: str) -> tuple[int | None, int | None]:
    """Read one span.

    >>> parse_span("10:", "--frames")
    (10, None)
    """
    span, *others = parse_box(text, flag)
    if others:
        raise InputError(f"{flag} is {text!r}: expected first:past the last, such as 10:60")
    return span


def _quantity(text: str, flag: str) -> float | str:
    """Return a number, or the text of a number with a unit."""
    number, unit = parse_quantity(text, flag)
    return number if unit is None else text


_MOVIE: dict[str, Callable[[Any, str], Any]] = {  # how words become arguments of open_record
    "dx": parse_numbers, "times": parse_numbers, "q": _quantity, "levels": parse_levels, "frames": parse_span,
    "dark": lambda text, _: _number_or_name(text), "flatten": lambda text, _: None if text == "none" else text,
    "drift": lambda text, _: _GREY.get(text), "window": parse_box,
    "leave_out": lambda text, flag: [parse_box(box, flag) for box in text.split(";")],
}  # fmt: skip


def parse_fraction(text: str, flag: str) -> float:
    """Read a fraction, as a number below 1 or in percent.

    >>> parse_fraction("1%", "--target"), parse_fraction("0.01", "--target")
    (0.01, 0.01)
    """
    number = text.strip().removesuffix("%").strip()
    try:
        fraction = float(number) / (100.0 if "%" in text else 1.0)
    except ValueError:
        fraction = -1.0
    if not 0.0 <= fraction < 1.0:
        raise InputError(f"{flag} is {text!r}: expected a fraction below 1, such as 1% or 0.01")
    return fraction


def check_seed(seed: int | None) -> int | None:
    """Check a seed, where one is given."""
    return None if seed is None else whole(seed, "--seed", least=0)
