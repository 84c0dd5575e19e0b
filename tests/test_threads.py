"""Threads that are kept: order, errors, no more work after an error, forked processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from doublewell.threads import map_threads


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_results_come_in_the_order_of_the_items(count, length) -> None:
    def slow_first(k: int) -> int:
        time.sleep(0.002 * (length - k))
        return k * k

    assert map_threads(count, slow_first, range(length)) == [k * k for k in range(length)]


def test_others_take_part() -> None:
    together = threading.Barrier(3, timeout=30.0)
    map_threads(3, lambda _: together.wait(), range(3))


def test_one_thread_is_the_one_that_asks() -> None:
    assert set(map_threads(1, lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}


@pytest.mark.parametrize("bad", [0, 3])
def test_an_error_reaches_the_caller_and_ends_the_work(bad) -> None:
    begun = []

    def fail(k: int) -> None:
        begun.append(k)
        if k == bad:
            raise ValueError(f"item {k}")
        time.sleep(0.005)

    with pytest.raises(ValueError, match=f"item {bad}"):
        map_threads(2, fail, range(200))
    seen = len(begun)
    assert seen < 20
    time.sleep(0.05)
    assert len(begun) == seen  # nothing goes on behind the caller's back
    assert map_threads(2, abs, [-1, -2]) == [1, 2]


FORKS = """
import os
from doublewell.threads import map_threads
map_threads(2, abs, range(4))
child = os.fork()
if child == 0:
    os._exit(0 if map_threads(2, abs, range(4)) == [0, 1, 2, 3] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"
