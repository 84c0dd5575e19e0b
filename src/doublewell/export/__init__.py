"""Export: an identified law as a text that another program runs or a person reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from doublewell.errors import InputError, shown
from doublewell.export.content import Content, content_of
from doublewell.export.documents import json_text, latex_text
from doublewell.export.moose import moose_text
from doublewell.export.programs import fipy_text, pypde_text, python_text, sympy_text
from doublewell.result import Result

FormatName = Literal["moose", "py-pde", "fipy", "sympy", "latex", "python", "json"]

_WRITERS: dict[str, Callable[[Content], str]] = {
    "moose": moose_text, "py-pde": pypde_text, "fipy": fipy_text, "sympy": sympy_text, "latex": latex_text,
    "python": python_text, "json": json_text,
}  # fmt: skip
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

    Every text states the units, the meaning and what is known of the errors. Coefficients have all their digits where
    they are executed. Without a surface tension the energy has no scale: then kappa = 1 is used and stated, which gives
    the same movie.

    >>> from doublewell.export import FORMATS
    >>> FORMATS
    ('moose', 'py-pde', 'fipy', 'sympy', 'latex', 'python', 'json')
    """
    name: Any = format
    if not isinstance(name, str) or name not in _WRITERS:
        raise InputError(f"format is {shown(name)}: expected one of {', '.join(_WRITERS)}")
    if not isinstance(result, Result):
        raise InputError(
            f"result is a {type(result).__name__}: expected a Result; pass what identify or load_result returned"
        )
    return _WRITERS[name](content_of(result))
