"""Targets: names of output files, checked before the work begins, and the writing after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from doublewell.errors import InputError
from doublewell.hints import Report
from doublewell.io import save
from doublewell.io.formats import format_to_write
from doublewell.record import Record
from doublewell.report import draw_figures, page_html
from doublewell.report.page.film import predicted
from doublewell.report.style import write_bytes
from doublewell.result import Result
from doublewell.validate import Validation

__all__ = ["Targets", "check_folder", "check_record", "check_result", "write_answers"]

_PAGE, _RESULT = "report.html", "result.json"


def check_record(path: Path, *, force: bool) -> None:
    """Refuse a name that no record can be saved under, and one that is taken unless `force` gives it up."""
    if format_to_write(path) is None:
        raise InputError(f"{path}: expected a name that ends in .npz, .zarr or .nc for a movie")
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


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a folder whose name is that of a file."""
    if path is not None and path.exists() and not path.is_dir():
        raise InputError(f"{option} is {path}, which is a file: expected a folder; choose another name")


@dataclass(frozen=True)
class Targets:
    """Where answers go: the result, the folder of figures, the folder of the page; None where not asked for."""

    out: Path | None = None
    figures: Path | None = None
    report: Path | None = None


def write_answers(
    result: Result,
    record: Record,
    validation: Validation | None,
    targets: Targets,
    *,
    progress: Report,
) -> tuple[Path, ...]:
    """Write what was asked for, everything drawn first, and return the paths."""
    progress("writing" if targets.figures is None and targets.report is None else "drawing", 0, 0)
    drawn: list[tuple[Path, bytes]] = []
    shown = validation
    if validation is None and (targets.figures is not None or targets.report is not None):
        found = predicted(result, record, progress=partial(progress, "evolving"))
        shown = None if isinstance(found, str) else found
        progress("drawing", 0, 0)
    if targets.figures is not None:
        made = draw_figures(result, record=record, validation=shown)
        drawn += [(targets.figures / name, data) for name, data in made.items()]
    if targets.report is not None:
        page = page_html(result, record, validation=shown, progress=progress)
        drawn.append((targets.report / _PAGE, page.encode("utf-8")))
    results = [place for place in (targets.out, targets.report and targets.report / _RESULT) if place is not None]
    with _folder(targets.figures, "--figures"), _folder(targets.report, "--report"):
        for place in results:
            save(result, place)
        return (*results, *write_bytes(drawn))


@contextmanager
def _folder(path: Path | None, option: str) -> Iterator[None]:
    """Make a folder before anything is written; after a failure the folders that were made go, where empty."""
    missing = [] if path is None else [place for place in (path, *path.parents) if not place.exists()]
    try:
        if path is not None:
            _make(path, option)
        yield
    except BaseException:
        for place in missing:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
        raise


def _make(path: Path, option: str) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{option} is {path}, which could not be made: {reason}; choose another name") from error


def _check_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it, or choose another place")
