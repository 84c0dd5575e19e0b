"""The form: what was filled in is the words of a command; the command's own parser reads them, and Python copies them.

So a form, the command, the script and the job of the studio cannot differ: all are made of one value, `Question`.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from doublewell.cli import parse
from doublewell.cli.identify import asked
from doublewell.cli.identify import identify as command
from doublewell.cli.options import Given, Movie
from doublewell.errors import InputError, shown
from doublewell.options import Compute, DoubleWell, Observation, Trajectory, help_of

if TYPE_CHECKING:
    from doublewell.record import Record

_TENSION = ("surface_tension", "tension_sd", "normalisation", "temperature")
_OUTSIDE = ("checkpoint", "scheduler")  # a file that is written and an address: nothing for a page
_FIRST = (  # what most movies need; the rest is folded away
    "dx", "length_unit", "dt", "time_unit", "q", "boundary", "levels", "phases", "dynamics", "surface_tension",
    "method", "degree",
)  # fmt: skip
_LABELS = {
    "dx": "Pixel size", "length_unit": "Unit of length", "dt": "Frame interval", "time_unit": "Unit of time",
    "q": "Diffusion coefficient q", "boundary": "Border", "levels": "Grey levels", "phases": "Phase values",
    "surface_tension": "Surface tension", "check": "Test the model", "var": "Array or channel", "tension_sd": "Its sd",
}  # fmt: skip
_HINTS = {
    "dynamics": ("allen-cahn", "cahn-hilliard", "mass-conserving", "auto"), "levels": ("auto",), "degree": ("auto",),
    "phases": ("estimated",), "mask": ("finite",), "drift": ("auto", "remove", "none", "estimated"),
    "length_unit": ("um", "nm", "mm"), "time_unit": ("s", "ms", "min"),
}  # fmt: skip
_USUAL = {"law": DoubleWell(), "method": Trajectory(), "observation": Observation(), "compute": Compute()}
_DRAWN = ("frames", "window", "leave_out")  # beside the picture


@dataclass(frozen=True)
class Field:
    """A field of the form: its name is that of a flag; `kind` is text, choice or switch, and `value` the default."""

    name: str
    group: str
    label: str
    help: str
    kind: str
    choices: tuple[str, ...]
    value: str
    first: bool


def form_fields() -> list[Field]:
    """Return the fields of the form, read off the flags of `doublewell identify`."""
    own, hints = inspect.signature(command).parameters, get_type_hints(command)
    found: list[tuple[str, str, str, Any, Any]] = []
    movie, typed = help_of(Movie), get_type_hints(Movie)  # type: ignore[arg-type]  # of any docstring
    found += [(part.name, "Movie", movie[part.name], typed[part.name], part.default) for part in fields(Movie)]
    about = help_of(command)  # type: ignore[arg-type]
    for name in ("dynamics", *_TENSION, "check"):
        group = "Surface tension" if name in _TENSION else "Model"
        found.append((name, group, about[name], hints[name], own[name].default))
    for part, hint in ((part, get_type_hints(Given, include_extras=True)[part.name]) for part in fields(Given)):
        reported = hint.__metadata__[-1]
        group = "Model" if reported.group[0].name in ("Law", "Method") else reported.group[0].name
        found.append((part.name, group, reported.help, get_args(hint)[0], part.default))
    made = [_field(*item) for item in found if item[0] not in _OUTSIDE]
    return sorted(made, key=lambda item: _FIRST.index(item.name) if item.first else len(_FIRST))


def _field(name: str, group: str, about: str, hint: Any, default: Any) -> Field:
    kinds = [hint, *get_args(hint)]
    words = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
    kind = "choice" if words else "switch" if bool in kinds else "text"
    value = "" if default is None else str(default).lower() if kind == "switch" else str(default)
    label = _LABELS.get(name, name.replace("_", " ").capitalize())
    group = "Part" if name in _DRAWN else group
    return Field(name, group, label, about, kind, words or _HINTS.get(name, ()), value, name in _FIRST)


@dataclass(frozen=True)
class Question:
    """A movie and what is asked of it: the words of the command, and the arguments that they stand for in Python."""

    file: Path
    flags: tuple[str, ...]
    movie: Movie
    opening: dict[str, Any]  # of open_record
    asking: dict[str, Any]  # of identify

    def open(self) -> Record:
        """Open the record."""
        return self.movie.open(self.file)

    def command(self) -> str:
        """Return the same as a command of the shell."""
        words = ["doublewell", "identify", str(self.file), *self.flags, "--out", "result.json", "--report", "report"]
        return shlex.join(words)

    def python(self) -> str:
        """Return the same as a script."""
        from doublewell.identify import identify

        usual = {name: item.default for name, item in inspect.signature(identify).parameters.items()} | _USUAL
        texts = {name: source(value) for name, value in self.asking.items()}
        asked = {name: text for name, text in texts.items() if text != source(usual[name])}
        lines = [
            "import doublewell as dw",
            "",
            _call("record = dw.open_record", repr(str(self.file)), {k: source(v) for k, v in self.opening.items()}),
            _call("result = dw.identify", "record", asked),
            "print(result)",
            'dw.save(result, "result.json")',
            'dw.write_page(result, record, "report.html")',
        ]
        if getattr(self.asking["compute"], "workers", None) is None:
            return "\n".join(lines) + "\n"
        body = "\n".join(lines[2:]).replace("\n", "\n    ")  # workers import the script
        return f'{lines[0]}\n\nif __name__ == "__main__":\n    {body}\n'


def read(file: Path, words: Mapping[str, str]) -> Question:
    """Return what a form asks: `words` are those of the fields that were filled in, by their names.

    >>> question = read(Path("/data/movie.npz"), {"degree": "2", "check": "false", "levels": "-1,1"})
    >>> question.command()
    'doublewell identify /data/movie.npz --levels=-1,1 --degree 2 --no-check --out result.json --report report'
    >>> print(question.python().splitlines()[3])
    result = dw.identify(record, law=dw.DoubleWell(degree=2), check=False)
    """
    known = {field.name: field for field in form_fields()}
    if unknown := [name for name in words if name not in known]:
        raise InputError(f"{shown(unknown[0])} is not a field of the form: expected one of {', '.join(known)}")
    flags: list[str] = []
    for name in (name for name in known if name in words):
        word, flag = words[name], name.replace("_", "-")
        if not isinstance(word, str) or "\0" in word:
            raise InputError(f"{name} is {shown(word)}: expected a text")
        if known[name].kind == "switch":
            flags.append(f"--{flag}" if word == "true" else f"--no-{flag}")
        else:  # nothing in a value can become another flag
            flags += [f"--{flag}={word}"] if word.startswith("-") or not word else [f"--{flag}", word]
    _, bound = parse(["identify", str(file), *flags])
    given: dict[str, Any] = dict(bound.arguments)
    movie = given.get("movie", Movie())
    rest = {name: given.get(name, item.default) for name, item in inspect.signature(command).parameters.items()}
    asking = asked(**{name: rest[name] for name in (*_TENSION, "dynamics", "check", "given")}, movie=movie)
    return Question(file, tuple(flags), movie, movie.arguments(), asking)


def source(value: Any) -> str:
    """Return Python that makes a value; of options only what is not the default.

    >>> from doublewell.options import Observation
    >>> source(Observation(phases=(0, 1), blur=0.5))
    'dw.Observation(phases=(0.0, 1.0), blur=0.5)'
    """
    if not is_dataclass(value):
        return repr(value)
    given = [
        f"{part.name}={source(getattr(value, part.name))}"
        for part in fields(value)
        if part.init and (part.default is MISSING or getattr(value, part.name) != part.default)
    ]
    return f"dw.{type(value).__name__}({', '.join(given)})"


def _call(function: str, first: str, given: Mapping[str, str]) -> str:
    """Write a call, in one line where it is short."""
    words = [first, *(f"{name}={text}" for name, text in given.items())]
    line = f"{function}({', '.join(words)})"
    return line if len(line) <= 100 else f"{function}(\n    " + ",\n    ".join(words) + ",\n)"
