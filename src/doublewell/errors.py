"""Errors of misuse (what was expected, what came, what to do) in the words of the caller; checks that raise them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from doublewell.hints import Array

_SHELL = "DOUBLEWELL_SHELL_WORDS"  # in the environment, because threads and spawned workers raise errors too
_SHOWN = 60  # characters of a wrong value in a message
_POSITIVE, _NOT_NEGATIVE = "a positive number", "a number of at least 0"


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""


class NoStartError(InputError):
    """Weak moments give no law: a trajectory fit starts from whole frames then."""


class Interrupted(KeyboardInterrupt):
    """The work was ended by Ctrl-C, by the caller, or by its time; ``result`` is the best answer so far, or None.

    Like KeyboardInterrupt it is not an Exception, so a script that does not expect it stops.
    """

    def __init__(self, message: str = "interrupted before there was an answer", result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class UnfinishedError(InputError):
    """Some of many inputs could not be used; ``results`` holds those of the others, None where there is none.

    ``failures`` has what was wrong, by the number of the input (from 0).
    """

    def __init__(self, message: str, results: Sequence[Any], failures: Mapping[int, str]) -> None:
        super().__init__(message)
        self.results = list(results)
        self.failures = dict(failures)

    def __reduce__(self) -> Any:
        return type(self), (*self.args, self.results, self.failures)


def option(name: str, value: Any = None) -> str:
    """Name an option, perhaps with a value, as the caller writes it: in Python, or inside `shell_words` in the shell.

    Texts in a tuple stand for values: option("levels", ("low", "high")) is levels=(low, high), or --levels low,high.

    >>> option("time_unit"), option("boundary", "open"), option("levels", (10, 200)), option("bleaching", True)
    ('time_unit=', "boundary='open'", 'levels=(10, 200)', 'bleaching=True')
    >>> with shell_words():
    ...     option("time_unit"), option("boundary", "open"), option("levels", (10, 200)), option("bleaching", True)
    ('--time-unit', '--boundary open', '--levels 10,200', '--bleaching')
    """
    if _SHELL not in os.environ:
        pair = f"({', '.join(map(str, value))})" if isinstance(value, tuple) else repr(value)
        return f"{name}=" if value is None else f"{name}={pair}"
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag}" if value is None else f"--{flag} {as_word(value)}"


def library(name: str, extra: str, purpose: str) -> Any:
    """Import a library that belongs to an extra of this package."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"{purpose} needs the library {name}, which is not installed ({error}): run "
            f"pip install 'doublewell[{extra}]'"
        ) from error


@contextmanager
def shell_words() -> Iterator[None]:
    """Name options as those of the command line in all messages that are made in this block, by any worker too."""
    before = os.environ.get(_SHELL)
    os.environ[_SHELL] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SHELL]


def as_word(value: Any) -> str:
    """Write a value as one word of the shell.

    >>> as_word((10, 200)), as_word([(28, 0.06)])
    ('10,200', '28:0.06')
    """
    if isinstance(value, list):
        return ",".join(":".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def real(value: Any, name: str, meaning: str = "", kind: str = "a finite number") -> float:
    """Return a finite number as a float; `positive` and `not_negative` are this with a kind of their own.

    >>> positive(2, "q", "the diffusion coefficient")
    2.0
    """
    number, other = None, bool | np.bool_ | str | bytes | complex | np.complexfloating
    if not isinstance(value, other) and getattr(value, "ndim", 0) == 0:
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    low = number is not None and ((kind == _POSITIVE and number <= 0) or (kind == _NOT_NEGATIVE and number < 0))
    if number is None or low or not np.isfinite(number):
        came = shown(value) if number is None else f"{number:g}"
        raise InputError(f"{name} is {came}: expected {meaning}{', ' if meaning else ''}{kind}")
    return number


positive = partial(real, kind=_POSITIVE)
not_negative = partial(real, kind=_NOT_NEGATIVE)


def whole(value: Any, name: str, *, least: int, most: int | None = None, meaning: str = "") -> int:
    """Return an integer from `least` to `most` as an int; a boolean is not one.

    >>> whole(np.int64(3), "frames", least=2)
    3
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        size = f"an integer from {least}" + (f" to {most}" if most is not None else "")
        raise InputError(f"{name} is {shown(value)}: expected {f'{meaning}, {size}' if meaning else size}")
    return int(value)


def seed(value: Any, purpose: str) -> np.random.Generator:
    """Return the random numbers of a seed, or a Generator as it is; nothing is drawn without either."""
    if isinstance(value, np.random.Generator):
        return value
    if not is_whole(value) or value < 0:
        raise InputError(
            f"seed is {shown(value)}: expected an integer of at least 0 or a numpy Generator, to make {purpose} "
            "repeatable"
        )
    return np.random.default_rng(int(value))


def check_spacing(dx: float | Sequence[float] | None, space: int) -> tuple[float, ...]:
    """Return the mesh spacing, one number per space axis."""
    if dx is None:
        raise InputError(f"the mesh spacing is missing: pass {option('dx')}, one number or one per space axis")
    spacing = np.atleast_1d(numbers(dx, "dx"))
    if spacing.ndim != 1 or spacing.size not in (1, space):
        came = f"{spacing.size} entries" if spacing.ndim == 1 else f"shape {spacing.shape}"
        raise InputError(f"dx has {came}: expected 1, or {space}, one per space axis of the field")
    for h in spacing.tolist():
        positive(h, "dx", "the mesh spacing")
    return tuple(np.broadcast_to(spacing, (space,)).tolist())


def numbers(values: Any, name: str) -> Array:
    """Return values as an array of floats; text and complex numbers are refused, never turned into some."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cUS":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {shown(values)}: expected numbers") from None


def is_whole(value: object) -> bool:
    """Whether a value is an integer, of Python or NumPy; a boolean is not one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Return a wrong value as a message shows it: in one line and not too long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integer of more than 4300 digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
