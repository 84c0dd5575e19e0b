"""The command paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from doublewell.cli.output import Bar, Output
from doublewell.cli.values import Whole

__all__ = ["paper"]

_Switch = Annotated[bool, Parameter(negative=(), show_default=False)]


def paper(
    *tables: str,
    out: Path = Path("out/paper"),
    tiny: _Switch = False,
    weak: _Switch = False,
    workers: Whole | None = None,
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Make the paper's tables and figures anew and set them beside its numbers.

    Results are written as they come. A run that was stopped goes on with the same command.

    Parameters
    ----------
    tables
        Names of tables and figures; without any, all are made.
    out
        Folder for results, tables, figures and the page paper.md.
    tiny
        Use small records, to test the machinery; the numbers mean nothing.
    weak
        Leave out the trajectory readings, which take most of the time.
    workers
        Number of processes; as many as there are cores without it.
    """
    from doublewell.study import run_study

    with output.bar() as bar:
        done = run_study(out, tables, tiny=tiny, trajectory=not weak, workers=workers, report=_reporter(bar))
    output.answer(str(done), _document(done))


def _reporter(bar: Bar) -> Any:
    def report(count: int, total: int, left: float | None) -> None:
        bar.show("records" if left is None else f"records, about {_duration(left)} left", count, total)

    return report


def _duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> _duration(42.0), _duration(600.0), _duration(7500.0)
    ('42 s', '10 min', '2 h 5 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _document(done: Any) -> dict[str, Any]:
    """Return the answer as JSON takes it: tables by name, each row with its entries."""
    return {
        "tables": {table.name: _rows(table) for table in done.tables},
        "lines": len(done.results.lines),
        "files": [str(path) for path in done.files],
    }


def _rows(table: Any) -> list[dict[str, Any]]:
    return [
        {
            "row": row.label,
            "marked": row.marked,
            **{
                column: {"ours": entry.ours, "paper": entry.paper, "text": entry.words()}
                for column, entry in zip(table.columns, row.entries, strict=True)
            },
        }
        for row in table.rows
    ]
