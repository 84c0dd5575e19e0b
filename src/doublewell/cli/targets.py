"""Targets: names of output files, checked before the work begins, and the writing after it."""

from __future__ import annotations

from pathlib import Path

from doublewell.errors import InputError
from doublewell.files import save
from doublewell.files.formats import format_to_write
from doublewell.record import Record
from doublewell.report import draw_figures
from doublewell.report.style import write_bytes
from doublewell.result import Result
from doublewell.validate import Validation

__all__ = ["check_folder", "check_record", "check_result", "write_answers"]


def check_record(path: Path) -> None:
    """Refuse a name that no record can be saved under."""
    if format_to_write(path) is None:
        raise InputError(f"{path}: expected a name that ends in .npz or .zarr for a movie")
    _check_parent(path)


def check_result(path: Path | None) -> None:
    """Refuse a name that no result can be saved under."""
    if path is None:
        return
    if path.suffix.lower() != ".json" or path.is_dir():
        raise InputError(f"--out is {path}: expected the name of a .json file")
    _check_parent(path)


def check_folder(path: Path | None) -> None:
    """Refuse a folder whose name is that of a file."""
    if path is not None and path.exists() and not path.is_dir():
        raise InputError(f"--figures is {path}, which is a file: expected a folder; choose another name")


def write_answers(
    result: Result, record: Record, validation: Validation | None, *, out: Path | None, figures: Path | None
) -> tuple[Path, ...]:
    """Write what was asked for, the figures drawn first, and return the paths."""
    drawn = {} if figures is None else draw_figures(result, record=record, validation=validation)
    if out is not None:
        save(result, out)
    pictures = () if figures is None else write_bytes([(figures / name, data) for name, data in drawn.items()])
    return (*(() if out is None else (out,)), *pictures)


def _check_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it, or choose another place")
