"""The errors that misuse raises (what was expected, what came, what to do next), in the words of the caller."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_SHELL = "DOUBLEWELL_SHELL_WORDS"  # in the environment, because threads and spawned workers raise errors too


class InputError(ValueError):
    """A value, an array or a file that cannot be used, with the way out in the message."""


class UnfinishedError(InputError):
    """Some of many inputs could not be used. ``results`` holds the others' in place, None where there is none.

    ``failures`` says for each place (counted from 0) what was wrong there.
    """

    def __init__(self, message: str, results: Sequence[Any], failures: Mapping[int, str]) -> None:
        super().__init__(message)
        self.results = list(results)
        self.failures = dict(failures)


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
