"""The command export."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from doublewell.cli.output import Output

__all__ = ["export"]


def export(
    result: Path,
    format: Literal["moose", "py-pde", "fipy", "sympy", "latex", "python", "json"],
    /,
    *,
    out: Path | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Write an identified law as a text for another program, or as a page to read.

    Parameters
    ----------
    result
        A result that identify wrote with --out.
    format
        moose: an input file. py-pde, fipy: a script that evolves a field. sympy, python: the law as symbols or as NumPy
        functions. latex: a page to read, with errors. json: all numbers and a table with bands.
    out
        Write the text to this file instead of the screen.
    """
    from doublewell.atomic import replace_file
    from doublewell.export import export as write
    from doublewell.io import load_result

    text = write(load_result(result), format)
    if out is not None:
        with replace_file(out) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    said = text.rstrip("\n") if out is None else f"{out}: the law of {result} for {format}"
    document = {"result": str(result), "format": format, "file": None if out is None else str(out), "text": text}
    output.answer(said, document)
