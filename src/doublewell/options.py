"""Options are values: what is assumed of the law, the method, the observation, and what may be used to compute.

Each is a frozen dataclass whose fields carry their help and how they are read from a word, so that the command line,
result files and `repeat` need no code of their own for any of them. Short forms are accepted wherever a value is:

    None            the defaults
    "weak"          the name of a method
    "weak-corrected"    Weak(corrected=True)
    2               DoubleWell(degree=2)
    "degree=2, wells=equal"    fields by name; after a method's name in brackets, "weak(supports=paper)"
    {"degree": 2}   fields by name
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from os import PathLike
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from doublewell.errors import InputError, is_whole, not_negative, option, shown, whole
from doublewell.law import MAX_DEGREE, Constraint, WellsKind, check_phases
from doublewell.stop import Stop
from doublewell.units import parse_limit, parse_memory

Read = Callable[[str], Any]
Derivative = Literal["discrete", "analytic"]
Noise = Literal["auto", "white", "correlated", "shot", "robust", "none"]
Contrast = Literal["auto", "exact", "estimated", "drifting"]
_DRIFTS = ("auto", "none", "estimated")


def _field(default: Any, read: Read = str) -> Any:
    """Declare an option: its default, and how it is read from a word; its help is its paragraph of the docstring."""
    return field(default=default, metadata={"read": read})


def help_of(kind: type[Options]) -> dict[str, str]:
    """Return the help of each option of a value, from its docstring.

    >>> help_of(Compute)["device"]
    '"gpu", "cpu", or by default what is there.'
    """
    text = inspect.getdoc(kind) or ""
    paragraphs = re.findall(r"^(\w+)\n((?:    .*\n?)+)", text.partition("----------\n")[2], re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in paragraphs}


def worded(kind: type[Options]) -> list[Field[Any]]:
    """Return the options of a value that are read from words: all but functions."""
    return [item for item in fields(kind) if item.metadata]


def _as(kind: type[float] | type[int], name: str) -> Read:
    def read(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            raise InputError(f"{text!r} is not {name}") from None

    return read


_number, _integer = _as(float, "a number"), _as(int, "an integer")


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "yes", "no"):
        raise InputError(f"{text!r}: expected true or false")
    return text.lower() in ("true", "yes")


def _or(read: Read, *words: str) -> Read:
    """Read one of some words as it is, anything else by `read`."""
    return lambda text: text if text in words else read(text)


def _pair(text: str) -> tuple[float, ...]:
    return tuple(_number(part) for part in text.split(","))


def _supports(text: str) -> list[tuple[int, float]]:
    """Read pairs frames:length with commas between them.

    >>> _supports("5:0.06,8:0.12")
    [(5, 0.06), (8, 0.12)]
    """
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(int(frames), float(length)) for frames, length in pairs]
    except ValueError:
        raise InputError(f"{text!r}: expected frames:length pairs, such as 5:0.06,8:0.12, or paper") from None


def _subject(name: str) -> str:
    """Name an option as the subject of a sentence."""
    return option(name).rstrip("=")


@dataclass(frozen=True)
class Options:
    """What all option values share: short forms, and words for what is wrong."""

    noun: ClassVar[str] = ""

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a value from itself or a short form.

        >>> DoubleWell.of("degree=2, wells=equal")
        DoubleWell(degree=2, constraint='admissible', wells='equal')
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(**cls._fields_of(value))
        if not isinstance(value, Mapping):
            raise InputError(f"{cls.noun} is {shown(value)}: expected {cls.__name__}(...) or a short form of it")
        names = [item.name for item in fields(cls)]
        for name in value:
            if name not in names:
                raise InputError(f"{cls.__name__} has no option {name!r}: expected {', '.join(names)}")
        return cls(**value)

    @classmethod
    def _fields_of(cls, text: str) -> dict[str, Any]:
        """Read "name=value, name=value"; commas inside a value are followed by no space."""
        readers = {item.name: item.metadata["read"] for item in worded(cls)}
        found = {}
        for part in re.split(r",\s+|;", text.strip()):
            name, sign, word = (piece.strip() for piece in part.partition("="))
            if not sign or name not in readers:
                raise InputError(
                    f"{cls.noun} is {shown(text)}: expected {cls.__name__}(...), or text such as "
                    f"'{next(iter(readers))}=...'; its options are {', '.join(readers)}"
                )
            found[name] = readers[name](word)
        return found

    def _check_word(self, name: str, words: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in words:
            *others, last = map(repr, words)
            either = f"{', '.join(others)} or {last}" if others else last
            raise InputError(f"{_subject(name)} is {shown(value)}: expected {either}")


@dataclass(frozen=True)
class DoubleWell(Options):
    """The laws that are looked for: polynomials with two wells at the phases.

    Parameters
    ----------
    degree
        Degree of the bracket polynomial in u^2, 0 to 8, or "auto": the average over all degrees, weighted by the
        likelihood. By default "auto" for a trajectory fit, 2 for a weak-form fit.
    constraint
        "admissible": all laws of the degree with two stable pure phases and one central maximum, so the wells are right
        by construction. "bernstein": positive coefficients, the paper's part of these. "none": plain least squares.
    wells
        "symmetric": G(u) = -u (1 - u^2) p(u^2). "equal": asymmetric wells of equal depth. "unequal": their depths may
        differ too; then a planar interface travels, and no planar tension exists. "found": for conserved fields;
        polynomials over the values of the record, and the coexisting phases follow by the common tangent. "ideal": the
        same with the entropy of ideal mixing, where the values are compositions; ``phases`` are those of the pure
        components. With all but the first any constraint but "none" is "admissible". By default "symmetric", of a
        conserved field "found".

    >>> DoubleWell("auto", wells="equal").degree
    'auto'
    """

    noun = "law"

    degree: int | Literal["auto"] | None = _field(None, _or(_integer, "auto"))
    constraint: Constraint = _field("admissible")
    wells: WellsKind | None = _field(None)

    def __post_init__(self) -> None:
        self._check_word("constraint", get_args(Constraint))
        if self.wells is not None:
            self._check_word("wells", get_args(WellsKind))
        if self.wells not in (None, "symmetric") and self.constraint == "bernstein":
            object.__setattr__(self, "constraint", "admissible")  # asymmetric wells have one class only
        if self.degree is None or (isinstance(self.degree, str) and self.degree == "auto"):
            return
        if not is_whole(self.degree):
            raise InputError(f"{_subject('degree')} is {shown(self.degree)}: expected 'auto' or an integer from 0 to 8")
        object.__setattr__(self, "degree", whole(self.degree, _subject("degree"), least=0, most=MAX_DEGREE))

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a value from itself or a short form; a number is a degree."""
        number = isinstance(value, int | float | np.number) or (isinstance(value, str) and value == "auto")
        return cls(degree=value) if number else super().of(value)


@dataclass(frozen=True)
class Trajectory(Options):
    """The trajectory fit: the likelihood of the whole record, with error bands.

    Parameters
    ----------
    ridge
        For one degree, a multiple alpha of the mean squared column norm; by default none.
    memory
        The most that one worker may take, such as "2GB". A record over the budget is fitted in disjoint tiles, each a
        window with a border of its own: what the borders take makes the bands wider. By default it is fitted whole.
    """

    noun = "method"
    name: ClassVar = "trajectory"
    bands: ClassVar = True
    corrected: ClassVar = False
    precision: ClassVar = "double"

    ridge: float | None = _field(None, _or(_number, "validated"))  # "validated" is read to be refused in words
    memory: str | int | None = _field(None)

    def __post_init__(self) -> None:
        if isinstance(self.ridge, str):
            raise InputError(f"{option('ridge', self.ridge)} belongs to the weak-form fit: give a number, or none")
        _check_budget(self.ridge, self.memory)

    @property
    def start(self) -> Weak:
        """The weak-form fit that the trajectory fit starts from."""
        return Weak()


@dataclass(frozen=True)
class Weak(Options):
    """The weak-form fit: the paper's space-time moments, fast and without bands.

    Parameters
    ----------
    supports
        Half-widths of the test functions as pairs (frames, length), in the shell 5:0.06,8:0.12, or "paper"; by default
        a rule that follows the interface width.
    derivative
        "discrete" (exact summation by parts) or "analytic" derivative weights.
    ridge
        A multiple alpha of the mean squared column norm, or "validated": alpha from the paper's grid, chosen on the
        last 40 % of the frames; by default none.
    corrected
        Whether the bias of white noise is removed.
    memory
        The most that one worker may take, such as "2GB"; the answer does not depend on it.
    precision
        "double", or on a GPU "single": faster, with six digits instead of twelve.
    """

    noun = "method"
    bands: ClassVar = False

    supports: tuple[tuple[int, float], ...] | Literal["paper"] | None = _field(None, _or(_supports, "paper"))
    derivative: Derivative = _field("discrete")
    ridge: float | Literal["validated"] | None = _field(None, _or(_number, "validated"))
    corrected: bool = _field(False, _flag)
    memory: str | int | None = _field(None)
    precision: Literal["double", "single"] = _field("double")

    def __post_init__(self) -> None:
        self._check_word("derivative", get_args(Derivative))
        self._check_word("precision", ("double", "single"))
        if self.supports is not None and not (isinstance(self.supports, str) and self.supports == "paper"):
            object.__setattr__(self, "supports", _pairs(self.supports))
        if not isinstance(self.corrected, bool):
            raise InputError(f"{_subject('corrected')} is {shown(self.corrected)}: expected True or False")
        if isinstance(self.ridge, str):
            self._check_word("ridge", ("validated",))
            if self.corrected:
                raise InputError(
                    f"{option('ridge', 'validated')} belongs to the plain weak-form fit, because a residual on "
                    "held-out frames holds the noise that was removed: give a number"
                )
        _check_budget(None if isinstance(self.ridge, str) else self.ridge, self.memory)

    @property
    def name(self) -> str:
        """The short form that names it."""
        return "weak-corrected" if self.corrected else "weak"

    @property
    def start(self) -> Weak:
        """The fit itself."""
        return self


def _pairs(supports: Any) -> tuple[tuple[Any, Any], ...]:
    try:
        if isinstance(supports, str):
            raise TypeError
        pairs = tuple(
            (item.frames, item.length) if hasattr(item, "frames") else (item[0], item[1]) for item in supports
        )
    except (TypeError, IndexError, KeyError):
        raise InputError(
            f"{_subject('supports')} is {shown(supports)}: expected pairs (frames, length), 'paper' or None"
        ) from None
    return tuple((int(n) if is_whole(n) else n, length) for n, length in pairs)


def _check_budget(ridge: Any, memory: Any) -> None:
    if ridge is not None:
        not_negative(ridge, _subject("ridge"), "None, 'validated' (weak-form fit), or alpha")
    if memory is not None:
        parse_memory(memory)


Method = Trajectory | Weak
METHODS: dict[str, type[Trajectory] | type[Weak]] = {"trajectory": Trajectory, "weak": Weak}


def method_of(value: Any) -> Method:
    """Return a method from itself, its name, or "name(field=value, ...)"; without a value the trajectory fit.

    >>> method_of("weak(supports=paper)").supports
    'paper'
    """
    if isinstance(value, Trajectory | Weak):
        return value
    if value is None:
        return Trajectory()
    if isinstance(value, str):
        name, bracket, rest = value.strip().partition("(")
        if name.strip() == "weak-corrected" and not bracket:
            return Weak(corrected=True)
        if name.strip() in METHODS and (not bracket or rest.endswith(")")):
            return METHODS[name.strip()].of(rest[:-1] if rest[:-1].strip() else None)
    raise InputError(
        f"{_subject('method')} is {shown(value)}: expected 'trajectory', 'weak', 'weak-corrected', Trajectory(...) or "
        "Weak(...)"
    )


Phases = tuple[float, float] | Literal["estimated"]


@dataclass(frozen=True)
class Observation(Options):
    """How the field was observed: its phase values, noise and optics.

    Parameters
    ----------
    phases
        The phase values of the two wells, such as 0,1, or "estimated": found by the fit, of a weak-form fit those with
        the smallest residual.
    contrast
        "estimated": gain and offset of the phase values are parameters of the trajectory fit, values = gain u + offset,
        with the wells of u at the phases. "drifting": they also change evenly in time. "exact": the values are those of
        u. "auto": exact for the record of a simulation, else estimated.
    noise
        "white"; "auto": its variance is linear in the phase value where differences in time of a camera's values show
        that, else white; "shot": that line is measured on a first fit; "correlated": its spectrum and its memory
        are; "robust": outliers are found and left out; "none": frames are exact, and all that fluctuates is thermal.
    blur
        Standard deviation of a Gaussian point-spread function, in the unit of dx; "estimated" when it is not known.
        "some": none, or up to half a pixel or so, averaged, which widens the bands. "auto": some for pictures of a
        camera, else none.
    pixel
        Whether a pixel is the mean over its area, or the value at its centre; by default a mean for pictures of a
        camera. A number n from 2 on: the mean of n cells along each axis of a simulation.
    drift
        "estimated": the picture moves as a whole by fractions of a pixel, smoothly in time, and the fit follows it.
        "none"; "auto": estimated where the conversion from grey values found a drift; or a known velocity, one number
        for each axis in the order (z, y,) x.
    response
        Exponent of the camera's response between the low and the high phase, 1 where grey values are linear in the
        light; "estimated": found by the fit. For pictures in even light.
    exposure
        Time over which a frame is averaged, in the unit of the times, centred at the time of the frame; 0 where it is
        not declared, but then pictures of a camera with thermal noise give no tension.
    refine
        How many times finer the model's mesh is than the record's: for records coarser than their interface. With a
        no-flux boundary it must be odd. "auto": two times (three) where the fit shows that it matters.
    missing
        "refuse": a value that is not finite is an error; "mask": it is a missing value.

    >>> Observation(blur=0.01, pixel=True).noise
    'auto'
    """

    noun = "observation"

    phases: Phases = _field((-1.0, 1.0), _or(_pair, "estimated"))
    contrast: Contrast = _field("auto")
    noise: Noise = _field("auto")
    blur: float | Literal["estimated", "some", "auto"] = _field("auto", _or(_number, "estimated", "some", "auto"))
    pixel: bool | int | None = _field(None, lambda text: int(text) if text.isdecimal() else _flag(text))
    drift: tuple[float, ...] | Literal["auto", "none", "estimated"] = _field("auto", _or(_pair, *_DRIFTS))
    response: float | Literal["estimated"] = _field(1.0, _or(_number, "estimated"))
    exposure: float | None = _field(None, _number)
    refine: int | Literal["auto"] = _field("auto", _or(_integer, "auto"))
    missing: Literal["refuse", "mask"] = _field("refuse")

    def __post_init__(self) -> None:
        estimated = self.phases is None or (isinstance(self.phases, str) and self.phases == "estimated")
        object.__setattr__(self, "phases", "estimated" if estimated else check_phases(self.phases))
        self._check_word("contrast", get_args(Contrast))
        self._check_word("noise", get_args(Noise))
        self._check_word("missing", ("refuse", "mask"))
        if isinstance(self.drift, str):
            self._check_word("drift", _DRIFTS)
        else:
            object.__setattr__(self, "drift", _velocity(self.drift))
        if not (isinstance(self.blur, str) and self.blur in ("estimated", "some", "auto")):
            blur = _length(self.blur, "blur", "a length of at least 0, 'estimated', 'some' or 'auto'")
            object.__setattr__(self, "blur", blur)
        if self.response != "estimated":
            response = _length(self.response, "response", "an exponent from 0.2 to 5, or 'estimated'", (0.2, 5.0))
            object.__setattr__(self, "response", response)
        if self.exposure is not None:
            object.__setattr__(self, "exposure", _length(self.exposure, "exposure", "a time of at least 0"))
        if not (self.pixel is None or isinstance(self.pixel, bool)):
            pixel = whole(self.pixel, _subject("pixel"), least=2, meaning="True, False")
            object.__setattr__(self, "pixel", pixel)
        if self.refine != "auto":
            refine = whole(self.refine, _subject("refine"), least=1, most=9, meaning="'auto'")
            object.__setattr__(self, "refine", refine)


def _velocity(value: Any) -> tuple[float, ...]:
    try:
        numbers = tuple([float(part) for part in value])
    except (TypeError, ValueError):
        numbers = ()
    if not 1 <= len(numbers) <= 3 or not np.all(np.isfinite(numbers)):
        raise InputError(
            f"{_subject('drift')} is {shown(value)}: expected 'auto', 'none', 'estimated', or a velocity for each axis"
        )
    return numbers


def _length(value: Any, name: str, expected: str, ends: tuple[float, float] = (0.0, np.finfo(float).max)) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and ends[0] <= value <= ends[1]
    if not good:
        raise InputError(f"{_subject(name)} is {shown(value)}: expected {expected}")
    return float(value)


@dataclass(frozen=True, eq=False)
class Compute(Options):
    """What a fit may use; none of it changes an answer, but a time limit may end it before it is complete.

    Parameters
    ----------
    workers
        How many processes (threads, where the values are in memory) read the parts of a record. A script with workers
        needs ``if __name__ == "__main__":``.
    scheduler
        The address of a Dask scheduler, a Dask Client or an Executor, in place of workers.
    checkpoint
        A file that keeps what was computed so far; the same call resumes from there.
    device
        "gpu", "cpu", or by default what is there.
    time_limit
        When the answer must be there: "60 s", "5 min", or a number of seconds. What the fit has by then is the result,
        and its findings state what is missing. "7 steps" ends it before the 7th step, which is the same on all
        machines; ``resolved.stopped`` is that number.
    cancel
        A function without arguments, called before each step and between compiled programs: where it returns true,
        Interrupted is raised with the best answer so far as its ``result``.
    """

    noun = "compute"

    workers: int | None = _field(None, _integer)
    scheduler: Any = _field(None)
    checkpoint: str | PathLike[str] | None = _field(None)
    device: str | None = _field(None)
    time_limit: float | str | None = _field(None)
    cancel: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            parse_limit(self.time_limit)
        if not (self.cancel is None or callable(self.cancel)):
            raise InputError(f"cancel is {shown(self.cancel)}: expected a function that returns whether to stop")
        if self.workers is not None:
            object.__setattr__(self, "workers", whole(self.workers, _subject("workers"), least=1))
        if self.scheduler is not None and self.workers is not None:
            raise InputError("workers and scheduler are both given: a scheduler has its own workers; give one of them")
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | PathLike):
            raise InputError(f"{_subject('checkpoint')} is {shown(self.checkpoint)}: expected the name of a file")
        if self.device is not None:
            self._check_word("device", ("cpu", "gpu"))

    def stop(self) -> Stop:
        """Return when the work that begins now has to stop."""
        seconds, step = (None, None) if self.time_limit is None else parse_limit(self.time_limit)
        return Stop(seconds, step, self.cancel)
