"""The weak reading against the floor of its arithmetic, and two threads against one.

Run: python benchmarks/floor.py
Time of the reading, features to compacted rows, over the time that its operations (operations.py) would take at the
rate of a large matrix product (dgemm) on one core. All are measured in turn in one run and the best of each is taken,
for other work on the machine only makes things slower. Copying memory is the other ceiling: the record is read once.
"""

from __future__ import annotations

import one_thread  # noqa: F401

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from common import PAPER_SUPPORTS, print_table, sized, synthetic_record
from operations import operations

from doublewell.weak.assembly import weak_evidence
from doublewell.law import Bernstein

CASES = sized(
    [((61, 96, 96), 5, 30), ((61, 96, 96), 2, 30), ((61, 256, 256), 5, 3), ((61, 256, 256), 2, 3)],
    tiny=[((25, 32, 32), 2, 1)],
)
ASKED = {"times the floor": 2.0, "two threads over one": 1.7}
_SIDE = 1024  # of the matrices
_BYTES = 64 * 2**20  # copied


def best_of(actions: dict[str, Callable[[], object]], repeats: int, row: int = 2) -> dict[str, float]:
    """Run all actions in turn, many times, each some times in a row so that the caches are its own; the best times."""
    best = dict.fromkeys(actions, np.inf)
    for _ in range(repeats):
        for name, action in [pair for pair in actions.items() for _ in range(row)]:
            start = time.perf_counter()
            action()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def ceilings() -> dict[str, Callable[[], object]]:
    """What the machine can do: a matrix product, and a copy of memory."""
    a, c = np.random.default_rng(0).standard_normal((_SIDE, _SIDE)), np.empty((_SIDE, _SIDE))
    source, target = np.ones(_BYTES // 8), np.empty(_BYTES // 8)
    return {"dgemm": lambda: np.dot(a, a, out=c), "copy": lambda: np.copyto(target, source)}


def measure(shape: tuple[int, int, int], degree: int, repeats: int) -> dict:
    record, family = synthetic_record(shape), Bernstein(degree)
    evidence = weak_evidence(record, family, PAPER_SUPPORTS)  # kernels compiled or loaded before
    tracemalloc.start()
    weak_evidence(record, family, PAPER_SUPPORTS)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    readings = {f"{n} threads": lambda n=n: weak_evidence(record, family, PAPER_SUPPORTS, threads=n) for n in (1, 2)}
    best = best_of({**ceilings(), **readings}, repeats, row=10)
    count = operations(record, PAPER_SUPPORTS, degree, [block.rows for block in evidence.blocks])
    rate = 2 * _SIDE**3 / best["dgemm"]
    seconds, floor = best["1 threads"], count["all centres"] / rate
    return {
        "record": " x ".join(map(str, shape)),
        "degree": degree,
        "seconds": round(seconds, 4),
        "Goperations": round(count["all centres"] / 1e9, 3),
        "GFLOP/s": round(count["all centres"] / seconds / 1e9, 1),
        "dgemm GFLOP/s": round(rate / 1e9, 1),
        "share of dgemm": round(floor / seconds, 2),
        "times the floor": round(seconds / floor, 2),
        "times that of kept centres": round(seconds / (count["kept centres"] / rate), 2),
        "copy GB/s": round(2 * _BYTES / best["copy"] / 1e9, 1),
        "share of copy": round(8 * np.prod(shape) / seconds / (_BYTES / best["copy"]), 3),
        "memory MB": round(memory / 1e6, 1),
        "two threads over one": round(seconds / best["2 threads"], 2),
    }


def table(quick: bool = False) -> list[dict]:
    """All cases, or the first two."""
    return [measure(*case) for case in (CASES[:2] if quick else CASES)]


if __name__ == "__main__":
    rows = table()
    print_table(f"Weak reading, both supports, mask and compaction, one core; asked: {ASKED}", rows)
