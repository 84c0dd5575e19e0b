"""Run: do what the results lack, record by record, then write tables, figures and the page from the results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from time import monotonic

from doublewell_paper.cases import CASES, Case, shrink
from doublewell_paper.core import (
    FORMATS,
    Constraint,
    InputError,
    __version__,
    device_names,
    on_gpu,
    render,
    whole,
    worker_pool,
    write_files,
)
from doublewell_paper.figures import FIGURES, FigureKind
from doublewell_paper.methods import METHODS, Outcome
from doublewell_paper.page import page
from doublewell_paper.records import Sample, Spec, fit_together
from doublewell_paper.results import Key, Line, Results, Store, fingerprint
from doublewell_paper.scores import scores_of
from doublewell_paper.table import Table, TableKind, latex, markdown
from doublewell_paper.tables import TABLES

Report = Callable[[int, int, float | None], None]  # records done, records, seconds left
_BATCH = 20  # records that a GPU fits at once
_SLOW = 15.0  # seconds of a trajectory fit of a principal record
_LIBRARIES = ("numpy", "scipy", "numba", "jax")


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
    wanted: Sequence[str] = (),
    *,
    tiny: bool = False,
    trajectory: bool = True,
    workers: int | None = None,
    report: Report | None = None,
) -> Study:
    """Make the wanted tables and figures (all by default) in a folder, and run what their results lack.

    Finished records are kept in the folder's results file, so that a run which was stopped resumes where it was.
    Without `trajectory` the trajectory fits are left out: their rows are empty unless they were run before. `workers`
    is the number of processes, as many as there are cores by default.
    """
    tables, figures = _chosen(wanted)
    count = whole(workers, "workers", least=1) if workers is not None else os.cpu_count() or 1
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: expected a folder for the results; choose another name")
    needed = {name for named in (*(t.cases for t in tables), *(f.cases for f in figures)) for name in named}
    cases = [shrink(case) if tiny else case for name, case in CASES.items() if name in needed]
    store = Store(folder)
    tasks = open_tasks(cases, store.lines(), slow=trajectory)
    began = monotonic()
    _do(tasks, store, workers=count, report=report)
    run = f"{len(tasks)} records done in {monotonic() - began:.0f} s with {count} workers; the others were kept"
    return _write(folder, tables, figures, _results(cases, store), run, tiny=tiny)


def _chosen(wanted: Sequence[str]) -> tuple[list[TableKind], list[FigureKind]]:
    for name in wanted:
        if name not in names():
            near = get_close_matches(name, names(), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"no table or figure is named {name!r}: expected one of {', '.join(names())}{hint}")
    chosen = wanted or names()
    return [TABLES[n] for n in TABLES if n in chosen], [FIGURES[n] for n in FIGURES if n in chosen]


def _results(cases: Sequence[Case], store: Store) -> Results:
    """Return the stored lines that belong to these cases with their present settings."""
    wanted = {
        (case.name, spec.record, method): fingerprint(spec, METHODS[method])
        for case in cases
        for spec in case.specs
        for method in case.methods_of(spec)
    }
    return Results(tuple(line for line in store.lines() if wanted.get(line.key) == line.fingerprint))


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
    return Study(made, results, write_files(contents))


@dataclass(frozen=True)
class Task:
    """One record and the methods that are still to be run on it, all fast or all slow."""

    case: str
    spec: Spec
    methods: tuple[str, ...]

    @property
    def slow(self) -> bool:
        """Whether these are trajectory fits."""
        return METHODS[self.methods[0]].slow

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints of the trajectory fits that it needs."""
        constraints = (METHODS[name].trajectory for name in self.methods)
        return [constraint for constraint in constraints if constraint is not None]

    @property
    def cost(self) -> float:
        """A rough guess of the seconds it takes, for the time left; ten seeds share a movie."""
        s = self.spec
        movie = s.cells**2 * s.movie_frames * s.substeps / (2.5e7 if s.seed is None else 2.5e8)
        size = (s.cells // s.coarsen) ** 2 * s.frames / 5.6e5  # in records of the principal set
        return movie + size * (_SLOW if self.slow else (0.07 if s.horizon else 0.02) * len(self.methods))


def open_tasks(cases: Iterable[Case], done: Iterable[Line], *, slow: bool) -> list[Task]:
    """Return what is left to do: first the fast methods of all records, then the slow ones, long records first."""
    known: dict[Key, str] = {line.key: line.fingerprint for line in done}
    tasks = []
    for case in cases:
        for spec in case.specs:
            missing = [
                name
                for name in case.methods_of(spec)
                if known.get((case.name, spec.record, name)) != fingerprint(spec, METHODS[name])
            ]
            for kind in (False, True) if slow else (False,):
                if part := tuple(name for name in missing if METHODS[name].slow == kind):
                    tasks.append(Task(case.name, spec, part))
    return sorted(tasks, key=lambda task: (task.slow, -task.spec.cells))


def evaluate(task: Task) -> list[Line]:
    """Make the record of a task, run its methods and score them."""
    sample = Sample(task.spec)
    return [_line(task, name, sample) for name in task.methods]


def evaluate_together(tasks: Sequence[Task]) -> list[list[Line]]:
    """Evaluate tasks with trajectory fits of one shape; a GPU fits all of them in one batch."""
    samples = [Sample(task.spec) for task in tasks]
    for constraint in dict.fromkeys(constraint for task in tasks for constraint in task.constraints):
        chosen = [sample for sample, task in zip(samples, tasks, strict=True) if constraint in task.constraints]
        try:
            fit_together(chosen, constraint)
        except InputError:  # one of them is refused: the line of each then states which, when its methods are run
            continue
    return [[_line(task, name, sample) for name in task.methods] for task, sample in zip(tasks, samples, strict=True)]


def _line(task: Task, name: str, sample: Sample) -> Line:
    method = METHODS[name]
    try:
        outcome = method.fit(sample)
    except InputError as error:  # a record that a method refuses is an outcome, and counts
        outcome = Outcome(None, f"refused: {error}")
    return Line(
        case=task.case,
        record=task.spec.record,
        method=name,
        fingerprint=fingerprint(task.spec, method),
        spec=task.spec,
        status=outcome.status,
        coefficients=None if outcome.law is None else tuple(float(g) for g in outcome.law.coefficients),
        active=outcome.active,
        seconds=outcome.seconds,
        condition=outcome.condition,
        rows=outcome.rows,
        scores=scores_of(sample, outcome),
        extra={key: float(value) for key, value in outcome.extra.items()},
    )


def _do(tasks: Sequence[Task], store: Store, *, workers: int, report: Report | None) -> None:
    """Do all tasks, with several workers in processes of one thread each, and store each record as it comes."""
    show = report or (lambda *_: None)
    total, spent, began = sum(task.cost for task in tasks), 0.0, monotonic()
    show(0, len(tasks), None)
    with store.writing():
        for count, (task, lines) in enumerate(each(tasks, workers), start=1):
            store.append(lines)
            spent += task.cost
            show(count, len(tasks), (monotonic() - began) / spent * (total - spent))


def each(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, list[Line]]]:
    """Yield each task with its lines; a GPU takes the slow ones in batches of one shape, mesh and interval."""
    batched = on_gpu()
    yield from _by_processes([task for task in tasks if not (batched and task.slow)], workers)
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        if batched and task.slow:
            s = task.spec
            groups.setdefault((s.cells, s.coarsen, s.frames, s.stride, s.dt), []).append(task)
    for group in groups.values():
        for k in range(0, len(group), _BATCH):
            batch = group[k : k + _BATCH]
            yield from zip(batch, evaluate_together(batch), strict=True)


def _by_processes(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, list[Line]]]:
    if workers == 1 or len(tasks) < 2:
        yield from ((task, evaluate(task)) for task in tasks)
        return
    with worker_pool(workers) as pool:
        futures = {pool.submit(evaluate, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process ended, perhaps for want of memory: what is finished is kept; run the same command "
                "again with fewer workers"
            ) from error


def about() -> dict[str, str]:
    """Return where numbers come from, each as one line of text, without names of hosts or folders."""
    libraries = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _LIBRARIES)]
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "doublewell": __version__,
        "commit": commit(Path(__file__).parent),
        "machine": f"{os.cpu_count()} cores of {_processor()}, {platform.system()}",
        "device": device_names()[0],
        "libraries": ", ".join(libraries),
    }


def commit(folder: Path) -> str:
    """Return the commit of the sources, and whether they were changed since; or that there is none."""
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not head:
        return "not from a checkout"
    return f"{head}, with changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else head


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
