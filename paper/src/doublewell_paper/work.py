"""Work: tasks of one record each, done by this process or by several; every finished record is stored at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from time import monotonic

from doublewell.compute import worker_pool
from doublewell.errors import InputError
from doublewell.inference import Constraint
from doublewell.jax_runtime import on_gpu
from doublewell_paper.case import Case
from doublewell_paper.line import Key, Line, fingerprint
from doublewell_paper.methods import METHODS
from doublewell_paper.outcome import Outcome
from doublewell_paper.sample import Sample, read_together
from doublewell_paper.scores import SCORES
from doublewell_paper.spec import Spec
from doublewell_paper.store import Store

__all__ = ["Report", "Task", "do_tasks", "evaluate", "open_tasks"]

Report = Callable[[int, int, float | None], None]  # records done, records, seconds left
_BATCH = 20  # records that a GPU reads at once
_SLOW = 15.0  # seconds of a trajectory reading of a principal record


@dataclass(frozen=True)
class Task:
    """One record and the methods that are still to be run on it, all fast or all slow."""

    case: str
    spec: Spec
    methods: tuple[str, ...]

    @property
    def slow(self) -> bool:
        """Whether these are trajectory readings."""
        return METHODS[self.methods[0]].slow

    @property
    def cost(self) -> float:
        """A rough guess of the seconds it takes, for the time left; ten seeds share a movie."""
        s = self.spec
        movie = s.cells**2 * s.movie_frames * s.substeps / (2.5e7 if s.seed is None else 2.5e8)
        seen = (s.cells // s.coarsen) ** 2 * s.frames / 5.6e5  # in records of the principal set
        return movie + seen * (_SLOW if self.slow else (0.07 if s.horizon else 0.02) * len(self.methods))


def open_tasks(cases: Iterable[Case], done: Iterable[Line], *, slow: bool) -> list[Task]:
    """Return what is left to do: first the fast methods of all records, then the slow ones, long records first."""
    known: dict[Key, str] = {line.key: line.fingerprint for line in done}
    tasks = []
    for case in cases:
        for spec in case.specs:
            missing = [name for name in case.methods_of(spec) if _missing(case.name, spec, name, known)]
            for kind in (False, True) if slow else (False,):
                part = tuple(name for name in missing if METHODS[name].slow == kind)
                tasks += [Task(case.name, spec, part)] if part else []
    return sorted(tasks, key=lambda task: (task.slow, -task.spec.cells))


def _missing(case: str, spec: Spec, method: str, known: dict[Key, str]) -> bool:
    return known.get((case, spec.record, method)) != fingerprint(spec, METHODS[method])


def evaluate(task: Task) -> list[Line]:
    """Make the record of a task, run its methods and score them."""
    sample = Sample(task.spec)
    return [_line(task, name, sample) for name in task.methods]


def _line(task: Task, name: str, sample: Sample) -> Line:
    method = METHODS[name]
    try:
        found = method.fit(sample)
    except InputError as error:  # a record that a method refuses is an outcome, and counts
        found = Outcome(None, f"refused: {error}")
    return Line(
        case=task.case,
        record=task.spec.record,
        method=name,
        fingerprint=fingerprint(task.spec, method),
        spec=task.spec,
        status=found.status,
        coefficients=None if found.law is None else tuple(float(g) for g in found.law.coefficients),
        active=found.active,
        seconds=found.seconds,
        condition=found.condition,
        rows=found.rows,
        scores={key: score(sample, found) for key, score in SCORES.items()},
        extra={key: float(value) for key, value in found.extra.items()},
    )


def evaluate_together(tasks: Sequence[Task]) -> list[list[Line]]:
    """Evaluate tasks with trajectory readings of one shape; a GPU reads all of them in one batch."""
    samples = [Sample(task.spec) for task in tasks]
    for constraint in dict.fromkeys(c for task in tasks for c in _reads(task)):
        chosen = [s for s, task in zip(samples, tasks, strict=True) if constraint in _reads(task)]
        try:
            read_together(chosen, constraint)
        except InputError:  # one of them is refused: each then says for itself which, when its methods are run
            continue
    return [[_line(task, name, one) for name in task.methods] for task, one in zip(tasks, samples, strict=True)]


def _reads(task: Task) -> list[Constraint]:
    """Return the constraints of the trajectory readings that a task needs."""
    found = (METHODS[name].reads for name in task.methods)
    return [constraint for constraint in found if constraint is not None]


def do_tasks(tasks: Sequence[Task], store: Store, *, workers: int, report: Report | None = None) -> None:
    """Do all tasks, with several workers in processes of one thread each, and store each record as it comes."""
    say = _Clock(tasks, report)
    with store.writing():
        for task, lines in _each(tasks, workers):
            store.append(lines)
            say.done(task)


def _each(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, list[Line]]]:
    slow = [task for task in tasks if task.slow]
    if not slow or not on_gpu():
        yield from _by_processes(tasks, workers)
        return
    yield from _by_processes([task for task in tasks if not task.slow], workers)
    for group in _groups(slow):
        yield from zip(group, evaluate_together(group), strict=True)


def _groups(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Split tasks into batches of one shape, mesh and interval."""
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        s = task.spec
        groups.setdefault((s.cells, s.coarsen, s.frames, s.stride, s.dt), []).append(task)
    return (group[k : k + _BATCH] for group in groups.values() for k in range(0, len(group), _BATCH))


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


class _Clock:
    """Counts records and says how much time is left, by the cost of what is done."""

    def __init__(self, tasks: Sequence[Task], report: Report | None) -> None:
        self._report, self._total = report, len(tasks)
        self._cost, self._spent, self._count = sum(task.cost for task in tasks), 0.0, 0
        self._began = monotonic()
        if report is not None:
            report(0, self._total, None)

    def done(self, task: Task) -> None:
        self._count += 1
        self._spent += task.cost
        if self._report is not None:
            rate = (monotonic() - self._began) / self._spent
            self._report(self._count, self._total, rate * (self._cost - self._spent))
