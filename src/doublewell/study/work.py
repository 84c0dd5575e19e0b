"""Work: tasks of one record each, done by this process or by several; every finished record is stored at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from time import monotonic

from doublewell.errors import InputError
from doublewell.study.case import Case
from doublewell.study.line import Key, Line, fingerprint
from doublewell.study.methods import METHODS
from doublewell.study.outcome import Outcome
from doublewell.study.sample import Sample
from doublewell.study.scores import SCORES
from doublewell.study.spec import Spec
from doublewell.study.store import Store

__all__ = ["Report", "Task", "do_tasks", "evaluate", "open_tasks"]

Report = Callable[[int, int, float | None], None]  # records done, records, seconds left
_SLOW = 15.0  # seconds of a trajectory reading of a principal record
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share one GPU
}


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


def do_tasks(tasks: Sequence[Task], store: Store, *, workers: int, report: Report | None = None) -> None:
    """Do all tasks, with several workers in processes of one thread each, and store each record as it comes."""
    say = _Clock(tasks, report)
    with store.writing():
        for task, lines in _each(tasks, workers):
            store.append(lines)
            say.done(task)


def _each(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, list[Line]]]:
    if workers == 1 or len(tasks) < 2:
        yield from ((task, evaluate(task)) for task in tasks)
        return
    others = set(active_children())
    context = get_context("spawn")
    with _one_thread(), ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker) as pool:
        futures = {pool.submit(evaluate, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process ended, perhaps for want of memory: what is finished is kept; run the same command "
                "again with fewer workers"
            ) from error
        except BaseException:  # interrupted: nobody waits for what is under way
            for child in set(active_children()) - others:
                child.terminate()
            raise


def _start_worker() -> None:
    """Leave Ctrl-C to the main process, and end when that one ends, however it ends."""
    signal(SIGINT, SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start in this block use one thread each; the environment comes back after."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
