"""Executors: one road for one core, threads, processes and a cluster, all of them concurrent.futures.Executor."""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from doublewell.checks import shown
from doublewell.compute.memory import shown_bytes
from doublewell.errors import InputError
from doublewell.record import Record
from doublewell.workers import worker_pool

__all__ = ["Pool", "Serial", "check_travels", "open_pool"]

_TRIES = 3  # times in a row that workers may die without finishing anything
_LIGHT = 64 * 10**6  # bytes of one array that may travel to another process


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

    `make` gives a new executor in place of a broken one; `width` says how many tasks to have under way.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Executor]], width: Callable[[], int]) -> None:
        self._make, self._width, self._stack = make, width, ExitStack()
        self._executor: Executor | None = None

    def completed(self, task: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Run the task on all items and give (place, result) as they finish; an error of a task ends it all."""
        todo, waiting, deaths = deque(range(len(items))), dict[Future[Any], int](), 0
        try:
            while todo or waiting:
                lost = self._submit(task, items, todo, waiting)
                done = wait(waiting, return_when=FIRST_COMPLETED).done if waiting else set()
                for future in done:
                    place = waiting.pop(future)
                    if isinstance(future.exception(), BrokenExecutor):
                        todo.append(place)
                        lost = True
                    else:
                        deaths = 0
                        yield place, _result(future)
                if lost:
                    deaths += 1
                    self._again(deaths)
                    todo.extend(waiting.values())
                    waiting.clear()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the executor that this pool started."""
        self._executor = None
        self._stack.close()

    def fail(self, error: BaseException) -> None:
        """End the executor without waiting for what is under way."""
        self._executor = None
        self._stack.__exit__(type(error), error, error.__traceback__)

    def _submit(
        self, task: Callable[..., Any], items: Sequence[tuple[Any, ...]], todo: deque[int],
        waiting: dict[Future[Any], int],
    ) -> bool:  # fmt: skip
        """Submit what there is room for; return whether the executor turned out to be broken."""
        if self._executor is None:
            self._executor = self._stack.enter_context(self._make())
        width = self._width()
        while todo and len(waiting) < width:
            try:
                future = self._executor.submit(task, *items[todo[0]])
            except BrokenExecutor:
                return True
            waiting[future] = todo.popleft()
        return False

    def _again(self, deaths: int) -> None:
        if deaths >= _TRIES:
            raise InputError(
                f"worker processes ended {deaths} times in a row before they finished anything, perhaps for want of "
                "memory: expected them to live; give a smaller memory= or fewer workers. In a script, "
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
            "expected them to have the memory that memory= says, for each of their threads; give a smaller one"
        ) from error


@contextmanager
def open_pool(record: Record, workers: int = 1, scheduler: Any = None) -> Iterator[Pool]:
    """Give a pool: of one core, of several spawned processes, or of what `scheduler` is.

    A scheduler is the address of a Dask scheduler, a Dask Client, or any Executor. Records whose values are in memory
    are read by threads, because their values would have to be copied to processes.
    """
    pool = _pool(record, workers, scheduler)
    try:
        yield pool
    except BaseException as error:
        pool.fail(error)
        raise
    else:
        pool.close()


def _pool(record: Record, workers: int, scheduler: Any) -> Pool:
    if isinstance(scheduler, Executor):
        width = int(getattr(scheduler, "_max_workers", 1))
        return Pool(lambda: nullcontext(scheduler), lambda: 2 * width)
    if scheduler is not None:
        from doublewell.compute.cluster import cluster_pool

        check_travels(record, "a cluster")
        return Pool(*cluster_pool(scheduler))
    if workers == 1:
        return Pool(lambda: nullcontext(Serial()), lambda: 1)
    if isinstance(record.values, np.ndarray):
        return Pool(lambda: ThreadPoolExecutor(workers), lambda: 2 * workers)
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
