"""Study: run what is missing, then write tables, figures and the page from the results."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from time import monotonic

from doublewell.checks import whole
from doublewell.errors import InputError
from doublewell.report.style import FORMATS, render, write_bytes
from doublewell_paper.about import about
from doublewell_paper.case import Case, shrink
from doublewell_paper.cases import CASES
from doublewell_paper.figures import FIGURES
from doublewell_paper.figures.kinds import FigureKind
from doublewell_paper.line import fingerprint
from doublewell_paper.methods import METHODS
from doublewell_paper.page import page
from doublewell_paper.results import Results
from doublewell_paper.store import Store
from doublewell_paper.table import Table, latex, markdown
from doublewell_paper.tables import TABLES
from doublewell_paper.tables.kinds import TableKind
from doublewell_paper.work import Report, do_tasks, open_tasks

__all__ = ["Study", "names", "run_study"]


@dataclass(frozen=True, eq=False)
class Study:
    """What a run wrote: the tables as values, the results behind them, and the files."""

    tables: tuple[Table, ...]
    results: Results
    files: tuple[Path, ...]

    def __str__(self) -> str:
        body = "\n".join(markdown(table) for table in self.tables)
        return f"{body}\nWritten\n" + "\n".join(f"  {path}" for path in self.files)


def names() -> tuple[str, ...]:
    """Return the names of all tables and figures; some name both."""
    return tuple(dict.fromkeys([*TABLES, *FIGURES]))


def run_study(
    folder: Path,
    asked: Sequence[str] = (),
    *,
    tiny: bool = False,
    trajectory: bool = True,
    workers: int | None = None,
    report: Report | None = None,
) -> Study:
    """Make the tables and figures asked for (all by default) in a folder, and run what their results lack.

    Finished records are kept in the folder's results file, so that a run which was stopped goes on where it was.
    Without `trajectory` the trajectory readings are left out: their rows are empty unless they were run before.
    `workers` is the number of processes, as many as there are cores by default.
    """
    tables, figures = _chosen(asked)
    count = whole(workers, "workers", least=1) if workers is not None else os.cpu_count() or 1
    folder = _folder(folder)
    cases = _cases(tables, figures, tiny=tiny)
    store = Store(folder)
    tasks = open_tasks(cases, store.lines(), slow=trajectory)
    began = monotonic()
    do_tasks(tasks, store, workers=count, report=report)
    run = f"{len(tasks)} records read in {monotonic() - began:.0f} s with {count} workers; the others were kept"
    return _write(folder, tables, figures, results_of(cases, store), run, tiny=tiny)


def results_of(cases: Sequence[Case], store: Store) -> Results:
    """Return the stored lines that belong to these cases with their present settings."""
    wanted = {
        (case.name, spec.record, method): fingerprint(spec, METHODS[method])
        for case in cases
        for spec in case.specs
        for method in case.methods_of(spec)
    }
    return Results(tuple(line for line in store.lines() if wanted.get(line.key) == line.fingerprint))


def _chosen(asked: Sequence[str]) -> tuple[list[TableKind], list[FigureKind]]:
    for name in asked:
        if name not in names():
            near = get_close_matches(name, names(), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"no table or figure is named {name!r}: expected one of {', '.join(names())}{hint}")
    wanted = asked or names()
    return [TABLES[n] for n in TABLES if n in wanted], [FIGURES[n] for n in FIGURES if n in wanted]


def _folder(folder: Path) -> Path:
    place = folder.expanduser()
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file: expected a folder for the results; choose another name")
    return place


def _cases(tables: Sequence[TableKind], figures: Sequence[FigureKind], *, tiny: bool) -> list[Case]:
    needed = {name for table in tables for name in table.cases} | {name for figure in figures for name in figure.cases}
    found = [CASES[name] for name in CASES if name in needed]
    return [shrink(case) for case in found] if tiny else found


def _write(
    folder: Path, tables: Sequence[TableKind], figures: Sequence[FigureKind], results: Results, run: str, *, tiny: bool
) -> Study:
    made = tuple(kind.make(results) for kind in tables)
    facts = about()
    contents = [(folder / "tables" / f"{table.name}.md", markdown(table).encode()) for table in made]
    contents += [(folder / "tables" / f"{table.name}.tex", latex(table).encode()) for table in made]
    for kind in figures:
        figure = kind.draw(results)
        contents += [(folder / "figures" / f"{kind.name}.{form}", render(figure, form)) for form in FORMATS]
    contents.append((folder / "about.json", (json.dumps(facts | {"run": run}, indent=1) + "\n").encode()))
    contents.append((folder / "paper.md", page(made, figures, results, facts, tiny=tiny).encode()))
    return Study(made, results, write_bytes(contents))
