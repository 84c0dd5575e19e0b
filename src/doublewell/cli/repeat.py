"""The command repeat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from doublewell.cli.output import Output
from doublewell.cli.reading import Reading
from doublewell.cli.wording import about
from doublewell.errors import InputError

if TYPE_CHECKING:
    from doublewell.identify import Repetition
    from doublewell.record import Record
    from doublewell.result import Result

__all__ = ["repeat"]

_DIFFERENT = 1  # exit code


def repeat(
    result: Path,
    data: Path | None = None,
    /,
    *,
    any_data: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    out: Path | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> int:
    """Do an identification again with its stored settings, and say whether the numbers are the same.

    Exit code 0: the same to round-off. 1: different. The values of the movie must be those of the result, by checksum.

    Parameters
    ----------
    result
        A result that identify wrote, .json.
    data
        The movie; without it the file that the result names.
    any_data
        Use the movie although its values are others, or the result knows no checksum.
    out
        Write the new result to this .json file.
    """
    from doublewell.cli.targets import check_result
    from doublewell.identify import repeat as again
    from doublewell.io import load_result, save

    check_result(out)
    before = load_result(result)
    file = data or _file(before, result)
    with output.bar() as bar, about(file):
        record = _open(before, file)
        bar.stage("compiling and reading")
        done = again(before, record, any_data=any_data, progress=bar.show)
    if out is not None:
        save(done.again, out)
    output.answer(f"{file}\n{done}", _document(file, done))
    return 0 if done.comparison.same else _DIFFERENT


def _file(before: Result, result: Path) -> Path:
    """Return the file that a result names: as it was given, or of the same name beside the result."""
    source = before.settings.source
    if source is None:
        raise InputError(f"{result} does not name the file of its movie: give it, as in doublewell repeat RESULT MOVIE")
    given = Path(source.path)
    beside = result.parent / given.name
    return given if given.exists() or not beside.exists() else beside


def _open(before: Result, file: Path) -> Record:
    """Open the movie with the options of then; a result from Python has none, so its own metadata serve."""
    from doublewell.io import open_record

    asked = before.settings
    if asked.source is not None:
        return Reading.of(asked.source).open(file)
    boundary: Any = asked.boundary  # checked by open_record
    q = None if asked.q_estimated else asked.q
    return open_record(file, dx=asked.dx, dt=asked.dt, q=q, boundary=boundary)


def _document(file: Path, done: Repetition) -> dict[str, Any]:
    found = done.comparison
    return {
        "file": str(file),
        "same": found.same,
        "data": done.data,
        "checksum": done.again.settings.checksum,
        "version_before": done.before.settings.version,
        "version": done.again.settings.version,
        "fields": found.fields,
        "equal_to_the_last_bit": found.equal,
        "largest_difference": found.largest,
        "differences": [
            {"field": item.field, "before": item.before, "after": item.after, "size": item.size}
            for item in found.differences
        ],
    }
