"""Export: choose the format and write the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.export.content import Content, content_of
from doublewell.export.fipy_text import fipy_text
from doublewell.export.json_text import json_text
from doublewell.export.latex_text import latex_text
from doublewell.export.moose_text import moose_text
from doublewell.export.pypde_text import pypde_text
from doublewell.export.python_text import python_text
from doublewell.export.sympy_text import sympy_text
from doublewell.result import Result

__all__ = ["FORMATS", "FormatName", "export"]

FormatName = Literal["moose", "py-pde", "fipy", "sympy", "latex", "python", "json"]

_WRITERS: dict[str, Callable[[Content], str]] = {
    "moose": moose_text,
    "py-pde": pypde_text,
    "fipy": fipy_text,
    "sympy": sympy_text,
    "latex": latex_text,
    "python": python_text,
    "json": json_text,
}
FORMATS = tuple(_WRITERS)


def export(result: Result, format: FormatName) -> str:
    """Return the law of a result as a whole text in one of the formats.

    Parameters
    ----------
    result
        What `identify` or `load_result` returned.
    format
        "moose": an input file with a parsed free energy. "py-pde", "fipy": a script that evolves a field by the law.
        "sympy": the law as symbols. "python": the law as NumPy functions. "latex": a page to read, rounded, with
        errors. "json": all numbers and a table with bands, for any other program.

    Every text says the units, the meaning and what is known of the errors. Coefficients have all their digits where
    they are executed. Without a surface tension the energy has no scale: then kappa = 1 is used and said, which gives
    the same movie.

    >>> from doublewell.export import FORMATS
    >>> FORMATS
    ('moose', 'py-pde', 'fipy', 'sympy', 'latex', 'python', 'json')
    """
    return _WRITERS[_check_format(format)](content_of(_check_result(result)))


def _check_format(name: Any) -> str:
    if not isinstance(name, str) or name not in _WRITERS:
        raise InputError(f"format is {shown(name)}: expected one of {', '.join(_WRITERS)}")
    return name


def _check_result(value: Any) -> Result:
    if not isinstance(value, Result):
        raise InputError(
            f"result is a {type(value).__name__}: expected a Result; pass what identify or load_result returned"
        )
    return value
