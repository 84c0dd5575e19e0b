"""Options of the shell: one flag for each field of the option values, and words that need more than one number.

The flags of the law, the method, the observation and the computing are read off the fields of `doublewell.options`:
their names, defaults, help and how a word is read. A field that is added there needs no line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, field, fields, make_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

from cyclopts import Group, Parameter

from doublewell.errors import InputError, as_word, option
from doublewell.options import METHODS, Compute, DoubleWell, Method, Observation, Options, method_of

ANSWER, TENSION, MOVIE, LAW, METHOD, OBSERVATION, COMPUTE = (
    Group.create_ordered(name)
    for name in ("Answer", "Surface tension", "Movie", "Law", "Method", "Observation", "Computing")
)
Switch = Annotated[bool, Parameter(negative=(), show_default=False)]
_VALUES: dict[str, tuple[Group, dict[str, type[Options]]]] = {
    "law": (LAW, {"": DoubleWell}),
    "method": (METHOD, dict(METHODS)),
    "observation": (OBSERVATION, {"": Observation}),
    "compute": (COMPUTE, {"": Compute}),
}


def _flags() -> list[tuple[str, Any, Any]]:
    """Return name, annotation and default of a flag for each field; methods share one where they share a name."""
    words: Any = Literal[(*METHODS, "weak-corrected")]
    about = "trajectory: the likelihood of the whole movie, with error bands; weak: space-time moments, faster and "
    about += "without bands; weak-corrected: the same without the bias of white noise."
    flags = [("method", Annotated[words, Parameter(group=METHOD, help=about)], field(default="trajectory"))]
    for group, kinds in _VALUES.values():
        owners: dict[str, list[tuple[str, type[Options], Field[Any]]]] = {}
        for name, kind in kinds.items():
            for item in fields(kind):  # type: ignore[arg-type]
                owners.setdefault(item.name, []).append((name, kind, item))
        flags += [_flag(group, len(kinds), owned) for owned in owners.values()]
    return flags


def _flag(group: Group, kinds: int, owners: list[tuple[str, type[Options], Field[Any]]]) -> tuple[str, Any, Any]:
    _, kind, item = owners[0]
    texts = {owned.metadata["help"]: name for name, _, owned in owners}
    about = "; ".join(f"{name}: {text}" if len(texts) > 1 else text for text, name in texts.items())
    if len(owners) < kinds:
        about += f" ({', '.join(name for name, *_ in owners)} only)"
    about = f"{about[0].upper()}{about[1:]}."
    hint, default = get_type_hints(kind)[item.name], item.default
    if hint is bool:
        return item.name, Annotated[Switch, Parameter(group=group, help=about)], field(default=default)
    words = hint if get_origin(hint) is Literal else str | None
    told = Parameter(group=group, help=about, allow_leading_hyphen=True)
    return item.name, Annotated[words, told], field(default=None if default is None else as_word(default))


if TYPE_CHECKING:
    Given = Any
else:
    Given = Parameter(name="*")(
        make_dataclass("Given", _flags(), frozen=True, namespace={"__module__": __name__, "__doc__": "The flags."})
    )


def law_of(given: Given) -> DoubleWell:
    """Return the laws that are looked for."""
    return replace(DoubleWell(), **_read(given, DoubleWell))


def method_asked(given: Given) -> Method:
    """Return the method with its own options; those of another method are refused."""
    base = method_of(given.method)
    own = {item.name for item in fields(base)}
    for name, kind in METHODS.items():
        for item in _given(given, kind):
            if item.name not in own:
                raise InputError(
                    f"{option(item.name)} belongs to {option('method', name)}: leave it out, or choose that"
                )
    return replace(base, **_read(given, type(base)))


def options_of(given: Given) -> dict[str, Any]:
    """Return the options of identify as its values."""
    return {
        "law": law_of(given),
        "method": method_asked(given),
        "observation": replace(Observation(), **_read(given, Observation)),
        "compute": replace(Compute(), **_read(given, Compute)),
    }


def _given(given: Given, kind: type[Options]) -> list[Field[Any]]:
    """Return the fields of a value whose flags differ from the default."""
    items = [(item, getattr(given, item.name)) for item in fields(kind)]  # type: ignore[arg-type]
    return [item for item, word in items if word is not None and word not in (item.default, as_word(item.default))]


def _read(given: Given, kind: type[Options]) -> dict[str, Any]:
    """Read what was given of the fields of a value."""
    values = {}
    for item in _given(given, kind):
        word = getattr(given, item.name)
        try:
            values[item.name] = word if isinstance(word, bool) else item.metadata["read"](word)
        except InputError as error:
            raise InputError(f"{option(item.name)}: {error}") from error
    return values


def _integer(_: Any, tokens: Sequence[Any]) -> int:
    """Read an integer; the parser's own reading would round 2.5."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer") from None


Integer = Annotated[int, Parameter(converter=_integer)]


def parse_mesh(text: str) -> tuple[int, ...]:
    """Read cells along each axis, such as 96x96.

    >>> parse_mesh("64x96")
    (64, 96)
    """
    try:
        mesh = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        mesh = ()
    if not 1 <= len(mesh) <= 3 or min(mesh) < 2:
        raise InputError(f"--mesh is {text!r}: expected cells along (z, y and) x, such as 256, 96x96 or 32x32x32")
    return mesh


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
    if seed is not None and seed < 0:
        raise InputError(f"--seed is {seed}: expected an integer from 0")
    return seed
