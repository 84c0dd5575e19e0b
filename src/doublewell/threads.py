"""Threads that are started once: a small record is read in the time that starting and stopping some would take."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

__all__ = ["kept_threads"]


@lru_cache(maxsize=8)
def kept_threads(count: int) -> ThreadPoolExecutor:
    """Return threads that stay until the process ends, for calls that wait for no other call.

    >>> list(kept_threads(2).map(abs, [-1, 2]))
    [1, 2]
    """
    return ThreadPoolExecutor(count, thread_name_prefix="doublewell")


if hasattr(os, "register_at_fork"):  # a forked process has none of them
    os.register_at_fork(after_in_child=kept_threads.cache_clear)
