"""Run tasks on one core, threads, spawned processes or a Dask cluster: all of them a concurrent.futures.Executor."""

from __future__ import annotations

import io
import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from multiprocessing import active_children, get_context, parent_process
from signal import SIG_IGN, SIGINT, signal
from threading import Thread
from time import monotonic
from typing import Any, Self

import numpy as np

from doublewell.compute.partition import shown_bytes
from doublewell.errors import InputError, option, shown
from doublewell.hints import Report
from doublewell.record import Record

_TRIES = 3  # times in a row that workers may die without finishing anything
_LIGHT = 64 * 10**6  # bytes of one array that may travel to another process
_PATIENCE = "30s"  # for the scheduler to answer
_EXPECTED = 'expected the address of a Dask scheduler such as "tcp://10.0.0.1:8786", a dask.distributed.Client, or an '
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share one GPU
}


class Serial(Executor):
    """Runs a task when it is submitted, here."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the task; the future that is returned is finished."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Pool:
    """Runs tasks on an executor, a few more at a time than it has workers, and again where a worker died.

    `make` gives a new executor in place of a broken one; `width` states how many tasks to have under way. As a context
    it ends the executor that it started; after an error without waiting for what is under way.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Executor]], width: Callable[[], int]) -> None:
        self._make, self._width, self._stack = make, width, ExitStack()
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._executor = None
        self._stack.__exit__(*error)

    def completed(self, task: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Run the task on all items and give (number, result) as they finish; an error of a task ends it all."""
        todo, waiting, deaths = deque(range(len(items))), dict[Future[Any], int](), 0
        try:
            while todo or waiting:
                if self._executor is None:
                    self._executor = self._stack.enter_context(self._make())
                lost, width = False, self._width()
                while todo and len(waiting) < width and not lost:
                    try:
                        waiting[self._executor.submit(task, *items[todo[0]])] = todo[0]
                        todo.popleft()
                    except futures.BrokenExecutor:
                        lost = True
                for future in futures.wait(waiting, return_when=futures.FIRST_COMPLETED).done if waiting else ():
                    number = waiting.pop(future)
                    if isinstance(future.exception(), futures.BrokenExecutor):
                        todo.append(number)
                        lost = True
                    else:
                        deaths = 0
                        yield number, _result(future)
                if lost:
                    deaths += 1
                    self._drop(deaths)
                    todo.extend(waiting.values())
                    waiting.clear()
        finally:
            for future in waiting:
                future.cancel()

    def _drop(self, deaths: int) -> None:
        """Close a broken executor, so that the next task starts another one."""
        if deaths >= _TRIES:
            raise InputError(
                f"worker processes ended {deaths} times in a row before they finished anything, perhaps for want of "
                f"memory: expected them to live; give a smaller {option('memory')} or fewer workers. In a script, "
                'put the call under if __name__ == "__main__":'
            )
        self._executor = None
        stack, self._stack = self._stack, ExitStack()
        stack.close()


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise InputError(
            f"a part of the record was given to several workers of the cluster and all of them died ({error}): "
            f"expected them to have the memory that {option('memory')} states, for each thread; give a smaller one"
        ) from error


def open_pool(record: Record, workers: int = 1, scheduler: Any = None) -> Pool:
    """Return a pool: of one core, of several spawned processes, or of what `scheduler` is.

    A scheduler is the address of a Dask scheduler, a Dask Client, or any Executor. Records whose values are in memory
    are read by threads, because their values would have to be copied to processes.
    """
    if isinstance(scheduler, Executor):
        width = int(getattr(scheduler, "_max_workers", 1))
        return Pool(lambda: nullcontext(scheduler), lambda: 2 * width)
    if scheduler is not None:
        check_travels(record, "a cluster")
        return _cluster_pool(scheduler)
    if workers == 1:
        return Pool(Serial, lambda: 1)
    if isinstance(record.values, np.ndarray):
        return Pool(lambda: futures.ThreadPoolExecutor(workers), lambda: 2 * workers)
    check_travels(record, "other processes")
    return Pool(lambda: worker_pool(workers), lambda: workers + 1)


def check_travels(record: Record, where: str) -> None:
    """Refuse a record whose values would travel with every task, or that cannot be sent at all."""
    try:
        _Light(io.BytesIO()).dump(record)
    except _TooLarge as error:
        raise InputError(
            f"the record holds an array of {shown_bytes(error.args[0])} in memory, which {where} cannot read: "
            "expected a record on a disk that all workers see; write it with save(record, 'movie.zarr') and use "
            "open_record('movie.zarr')"
        ) from None
    except Exception as error:
        raise InputError(
            f"the record cannot be sent to {where} ({shown(error)}): expected one that open_record gave; write it with "
            "save(record, 'movie.zarr') and use open_record('movie.zarr')"
        ) from error


class _TooLarge(Exception):
    pass


class _Light(pickle.Pickler):
    """Pickles what is small and refuses arrays that are data."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.nbytes > _LIGHT:
            raise _TooLarge(value.nbytes)
        return NotImplemented


def _cluster_pool(scheduler: Any) -> Pool:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed: run pip install 'doublewell[cluster]'"
        ) from None
    if not isinstance(scheduler, Client | str):
        raise InputError(f"scheduler is {shown(scheduler)}: {_EXPECTED}Executor")
    clients: list[Any] = []

    @contextmanager
    def make() -> Iterator[Executor]:
        client: Any = scheduler
        if isinstance(scheduler, str):
            try:
                client = Client(scheduler, timeout=_PATIENCE, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"no Dask scheduler answers at {scheduler!r} ({shown(error)}): {_EXPECTED}Executor; start one with "
                    "dask scheduler"
                ) from error
        clients[:] = [client]
        try:
            yield client.get_executor(pure=False)
        finally:
            if isinstance(scheduler, str):
                client.close()

    return Pool(make, lambda: max(2, 2 * sum(clients[0].nthreads().values())))


@contextmanager
def worker_pool(workers: int) -> Iterator[futures.ProcessPoolExecutor]:
    """Give a pool of spawned processes of one thread each; an error in the block ends them without waiting."""
    others = set(active_children())
    pool = futures.ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start)
    with _one_thread(), pool:
        try:
            yield pool
        except BaseException:  # nobody waits for what is under way
            for child in set(active_children()) - others:
                child.terminate()
            raise


def each_alone(
    task: Callable[..., Any], items: Sequence[tuple[Any, ...]], workers: int
) -> Generator[tuple[int, Any], None, None]:
    """Run a task on each item in spawned processes; give (number, its result or its exception) as they finish.

    Each worker is a pool of its own: a process that dies takes one item along, whose exception is a BrokenExecutor.
    """
    todo, waiting = deque(range(len(items))), dict[Future[Any], tuple[int, Executor]]()
    with ExitStack() as stack:
        idle: list[Executor] = [stack.enter_context(worker_pool(1)) for _ in range(min(workers, len(items)))]
        while todo or waiting:
            while todo and idle:
                pool = idle.pop()
                try:
                    future = pool.submit(task, *items[todo[0]])
                except futures.BrokenExecutor:  # it died after its last task
                    idle.append(stack.enter_context(worker_pool(1)))
                else:
                    waiting[future] = todo.popleft(), pool
            for future in futures.wait(waiting, return_when=futures.FIRST_COMPLETED).done:
                number, pool = waiting.pop(future)
                error = future.exception()
                idle.append(stack.enter_context(worker_pool(1)) if isinstance(error, futures.BrokenExecutor) else pool)
                yield number, future.result() if error is None else error


def _start() -> None:
    """Leave Ctrl-C to the main process, and end when that one ends, however it ends."""

    def end_with_parent() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    signal(SIGINT, SIG_IGN)
    Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that start in this block use one thread each; the environment comes back after."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    os.environ["XLA_FLAGS"] = f"{before['XLA_FLAGS'] or ''} {_ONE_THREAD['XLA_FLAGS']}".strip()  # the user's count too
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class Clock:
    """Report how fast values come and how much time is left; `size` bytes were cut into `total` parts."""

    def __init__(self, size: float, before: int, total: int, report: Report | None, parts: str = "slabs") -> None:
        self._megabytes, self._before, self._total, self._parts = size / total / 1e6, before, total, parts
        self._report, self._began = report, monotonic()
        if report is not None and before < total:
            report(f"reading {parts}, {before} were there" if before else "compiling and reading", before, total)

    def done(self, count: int) -> None:
        """Say that so many parts are there."""
        if self._report is not None:
            rate = (count - self._before) / max(monotonic() - self._began, 1e-9)
            speed, left = f"{rate * self._megabytes:.3g} MB/s", _span((self._total - count) / rate)
            self._report(f"reading {self._parts}, {speed}, {left} left", count, self._total)


class Pace:
    """Report the stages of a fit with the time left, by the fraction of the work that is usually done before each."""

    def __init__(self, report: Report | None, end: float = 1.0) -> None:
        self._report, self._began, self._end = report, monotonic(), end

    def say(self, words: str, fraction: float, done: int = 0) -> None:
        """Report a stage before which this fraction of the work is done, of which there is ``end`` in all."""
        if self._report is None:
            return
        left = (monotonic() - self._began) * (self._end / fraction - 1.0) if fraction > 0.0 else 0.0
        self._report(f"{words}; about {_span(left)} left" if left > 0.0 else words, done, 0)


def _span(seconds: float) -> str:
    """Return a time in words.

    >>> _span(75.2), _span(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
