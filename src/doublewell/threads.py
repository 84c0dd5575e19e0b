"""Threads that are started once: a small record is read in the time that starting and stopping some would take."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def map_threads(count: int, function: Callable[[_In], _Out], items: Iterable[_In]) -> list[_Out]:
    """Call a function for each item, on the thread that asks and count - 1 others; return what it gave, in order.

    The others stay until the process ends. The function must not wait for another call of this kind.

    >>> map_threads(2, abs, [-1, 2, -3])
    [1, 2, 3]
    """
    given = list(items)
    results: dict[int, _Out] = {}
    todo = deque(range(len(given)))

    def work() -> None:
        while todo:
            try:
                k = todo.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[k] = function(given[k])
            except BaseException:
                todo.clear()  # nobody begins anything new
                raise

    others = [_kept(count - 1).submit(work) for _ in range(min(count, len(given)) - 1)]
    try:
        work()
    finally:
        wait(others)
    for other in others:
        other.result()
    return [results[k] for k in range(len(given))]


@lru_cache(maxsize=8)
def _kept(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="doublewell")


if hasattr(os, "register_at_fork"):  # a forked process has none of them
    os.register_at_fork(after_in_child=_kept.cache_clear)
