"""Tasks on workers: places, deaths, and what cannot travel."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor
from time import sleep

import numpy as np
import pytest

from doublewell.compute.run import Pool, Serial, check_travels, each_alone, open_pool, worker_pool
from doublewell.errors import InputError
from doublewell.record import Record


def die(*_) -> None:
    os._exit(1)


def test_workers_that_always_die() -> None:
    pool = Pool(lambda: worker_pool(1), lambda: 1)
    with pytest.raises(InputError, match="worker processes ended 3 times in a row .* smaller memory= or fewer workers"):
        list(pool.completed(die, [(), ()]))


def test_results_come_with_their_places() -> None:
    pool = Pool(Serial, lambda: 1)
    assert list(pool.completed(pow, [(2, 3), (3, 2)])) == [(0, 8), (1, 9)]
    with pytest.raises(ZeroDivisionError):
        list(pool.completed(divmod, [(1, 0)]))


def test_values_in_memory_do_not_travel() -> None:
    check_travels(Record(np.zeros((2, 8, 8)), dx=1.0, dt=1.0), "a cluster")
    large = Record(np.broadcast_to(0.0, (2, 3000, 3000)), dx=1.0, dt=1.0)
    with pytest.raises(InputError, match=r"holds an array of 144 MB in memory, which a cluster cannot read: .*save\("):
        check_travels(large, "a cluster")
    odd = Record(type("Odd", (), {"shape": (2, 8), "ndim": 2, "dtype": np.dtype("f8")})(), dx=1.0, dt=1.0)
    with (
        pytest.raises(InputError, match="the record cannot be sent to other processes"),
        open_pool(odd, 2),
    ):
        pass


def test_a_process_that_dies_between_two_items_takes_none_along():
    dies = "__import__('threading').Timer(0.2, __import__('os')._exit, (1,)).start()"
    answers = each_alone(eval, [(dies,), ("3",)], 1)
    assert next(answers) == (0, None)
    sleep(1.0)
    assert list(answers) == [(1, 3)]


def test_a_process_that_dies_takes_one_item_along():
    items = [("1 + 1",), ("__import__('os')._exit(9)",), ("1 / 0",), ("3",)]
    answers = dict(each_alone(eval, items, 2))
    assert (answers[0], answers[3]) == (2, 3)
    assert isinstance(answers[1], BrokenExecutor)
    assert isinstance(answers[2], ZeroDivisionError)
