"""Targets: names of output files, checked before the work begins, and the writing after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


def check_record(path: Path, *, force: bool) -> None:
    """Refuse a name that no record can be saved under, and one that is taken unless `force` gives it up."""
    if format_to_write(path) is None:
        raise InputError(f"{path}: expected a name that ends in .npz or .zarr for a movie")
    _check_parent(path)
    if path.exists() and not force:
        raise InputError(f"{path} exists already: choose another name, or pass --force to replace it")


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
    if figures is None:
        return _write_result(result, out)
    drawn = draw_figures(result, record=record, validation=validation)
    with _folder(figures):
        written = _write_result(result, out)
        return (*written, *write_bytes([(figures / name, data) for name, data in drawn.items()]))


def _write_result(result: Result, out: Path | None) -> tuple[Path, ...]:
    if out is None:
        return ()
    save(result, out)
    return (out,)


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Make a folder before anything is written; after a failure the folders that were made go, where empty."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    try:
        _make(path)
        yield
    except BaseException:
        for place in missing:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
        raise


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--figures is {path}, which could not be made: {reason}; choose another name") from error


def _check_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it, or choose another place")
