"""Wording: the library's messages in the words of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doublewell.errors import InputError

__all__ = ["about", "shell_words"]

_OPTIONS = (
    "dx|dt|times|q|boundary|var|axes|levels_sd|levels|length_unit|time_unit|"
    "degree|method|constraint|wells|phases|ridge|supports|derivative|seed|noise|correlation|epsilon|memory|scheduler|checkpoint|device|precision"
)
_PAIRS = re.compile(r"\bsupports=\[((?:\(\d+, [^()]+\)(?:, )?)+)\]")
_LEVELS = re.compile(r"\blevels=\((\w+), (\w+)\)")
_BESIDE = re.compile(r" \(on the command line [^()]*\)")  # said in the shell's words by the rest
_ASSIGNED = re.compile(rf"\b({_OPTIONS})=(?:'(\w+)'|(\w+))?")


def shell_words(message: str) -> str:
    """Return a message with Python's keyword arguments written as options.

    >>> shell_words("pass supports=[(28, 0.06)] or constraint='none'; correct var=")
    'pass --supports 28:0.06 or --constraint none; correct --var'
    """
    plain = _BESIDE.sub("", message)
    return _ASSIGNED.sub(_option, _LEVELS.sub(r"--levels \1,\2", _PAIRS.sub(_supports, plain)))


@contextmanager
def about(file: Path) -> Iterator[None]:
    """Name the file in the message of an InputError, where it is not named yet."""
    try:
        yield
    except InputError as error:
        said = str(error)
        raise InputError(said if str(file) in said else f"{file}: {said}") from error


def _supports(found: re.Match[str]) -> str:
    pairs = re.findall(r"\((\d+), ([^()]+)\)", found[1])
    return "--supports " + ",".join(f"{frames}:{length}" for frames, length in pairs)


def _option(found: re.Match[str]) -> str:
    return " ".join(["--" + found[1].replace("_", "-"), *(word for word in found.groups()[1:] if word)])
