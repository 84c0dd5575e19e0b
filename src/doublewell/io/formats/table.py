"""Tables of numbers as text (.csv, .tsv, .dat): a folder with one frame per file, or one table of time and place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.record.arrays import Values

_SUFFIXES = (".csv", ".tsv", ".dat")
_LOOKED_AT = 2**16  # bytes at the start, that show how numbers are separated
_SPARSE = 4  # bytes of memory a byte of text may take: one digit and a separator make eight
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)"


def read_table(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (has no metadata)
    """Find the frames of a folder or of a pattern, which are read when sliced; or the table of one file."""
    files.refuse_name(path, var)
    if not (files.is_pattern(path) or path.is_dir()):
        values = _table(path)
        return StoredField(values if values.ndim > 1 else values[:, None], {}, any_order=True)
    paths = files.members(path, _SUFFIXES)
    frame = _frame(paths[0])
    axes = [Axis(name) for name in ("t", "y", "x")[: 1 + frame.ndim]] if frame.ndim == 2 else [Axis("t"), Axis("x")]
    return StoredField(files.file_frames(paths, _frame, frame.shape, frame.dtype), {}, tuple(axes))


def _frame(path: Path) -> Values:
    """Read one frame: a table, or a single row or column of numbers along a line."""
    values = _table(path)
    return values.ravel() if 1 in values.shape else values


def _table(path: Path) -> Values:
    """Read a table; what separates the numbers, a decimal comma, and lines of a heading are seen in its first lines."""
    with files.reading(path, "table"):
        files.check_file(path, "table")
        files.check_memory(path, _SPARSE * path.stat().st_size, "save it as .npy")
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT).decode("utf-8-sig", "replace")
        lines = [line.split("#")[0] for line in start.splitlines()]
        lines = lines[: len(lines) - (len(start) >= _LOOKED_AT)] or lines
        for separator, comma in ((";", True), ("\t", True), (";", False), ("\t", False), (",", False), (None, False)):
            if separator is not None and separator not in start:
                continue
            rows = [_is_row(line, separator, comma=comma) for line in lines]
            first = next((k for k, row in enumerate(rows) if row), None)
            if first is not None and all(row is not False for row in rows[first:]):
                break
        else:
            raise InputError(f"{path} is no table of numbers: expected rows with one separator (, ; tab or blanks)")
        with path.open(encoding="utf-8-sig") as text:
            swapped = (line.replace(",", ".") if comma else line for line in text)
            return np.loadtxt(swapped, delimiter=separator, skiprows=first, comments="#", ndmin=2, dtype=np.float64)


def _is_row(line: str, separator: str | None, *, comma: bool) -> bool | None:
    """Tell whether a line holds numbers only, None where it is empty."""
    if not line.strip():
        return None
    text = line.strip().replace(",", ".") if comma else line.strip()
    cells = [cell.strip() for cell in text.split(separator)]
    return all(re.fullmatch(_NUMBER, cell, re.IGNORECASE) for cell in cells)
