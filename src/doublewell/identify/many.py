"""identify_many: many records with one request, batched on a GPU, in processes on CPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import parent_process
from typing import Any, Literal

import numpy as np

from doublewell.calibrate import SurfaceTension
from doublewell.checks import whole
from doublewell.dynamics import on_gpu
from doublewell.errors import InputError
from doublewell.estimate import Constraint
from doublewell.evidence import Derivative
from doublewell.hints import Report
from doublewell.identify.batch import Degree, Method, Request, identify_batch
from doublewell.identify.weak_road import Supports
from doublewell.record import Record
from doublewell.result import Result
from doublewell.workers import worker_pool

__all__ = ["identify_many"]

_BATCH = 20  # records of 61 x 96 x 96 take about 2 GB of a GPU's memory
GUARD = 'put the call of identify_many under if __name__ == "__main__": in the script, or pass workers=1'

Tension = float | str | SurfaceTension | None
Job = tuple[list[int], Request]


def identify_many(
    records: Sequence[Record],
    surface_tension: Tension | Sequence[Tension] = None,
    *,
    degree: Degree = None,
    method: Method = None,
    constraint: Constraint = "bernstein",
    ridge: float | Literal["validated"] | None = None,
    supports: Supports = None,
    derivative: Derivative = "discrete",
    check: bool = True,
    workers: int | None = None,
    batch: int = _BATCH,
    progress: Report | None = None,
) -> list[Result]:
    """Identify each record by itself, in the order given; the options are those of ``identify``.

    Where JAX sees a GPU, records of one shape, mesh, interval, q and boundary are fitted together, `batch` at a time.
    Otherwise `workers` processes (all cores by default) take one record after the other; a script that calls this needs
    the usual ``if __name__ == "__main__":``. Results do not depend on the number of workers. `surface_tension` is one
    for all, or one for each record. `progress` is called with (what is done, records done, records).
    """
    if isinstance(records, Record):
        raise InputError("expected several records, got one Record: pass a list, or use identify")
    records = list(records)
    if not records:
        raise InputError("no records: expected at least one Record")
    tensions = _tensions(surface_tension, len(records))
    workers = min(whole(workers or os.cpu_count() or 1, "workers", least=1), len(records))
    batch = whole(batch, "batch", least=1)
    asked = [
        Request.of(
            record, method=method, degree=degree, constraint=constraint, ridge=ridge, supports=supports,
            derivative=derivative, check=check,
        )
        for record in records
    ]  # fmt: skip
    jobs = _jobs(records, asked, batch if _on_gpu(asked) else 1)
    if len(jobs) == 1 or workers == 1 or _on_gpu(asked):
        return _in_turn(records, tensions, jobs, progress)
    _check_process()
    return _in_processes(records, tensions, jobs, workers, progress)


def _check_process() -> None:
    """Refuse to start processes from a worker: it is importing a script that has no guard."""
    if parent_process() is not None:
        raise InputError(GUARD)


def _tensions(given: Any, count: int) -> list[SurfaceTension | None]:
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        if len(given) != count:
            raise InputError(f"{len(given)} surface tensions for {count} records: expected one for all or for each")
        return [None if one is None else SurfaceTension.of(one) for one in given]
    return [None if given is None else SurfaceTension.of(given)] * count


def _on_gpu(asked: Sequence[Request]) -> bool:
    if all(one.method == "weak" for one in asked):
        return False
    return on_gpu()


def _jobs(records: list[Record], asked: list[Request], batch: int) -> list[Job]:
    """Group records that can be fitted together, in their order."""
    groups: dict[object, list[int]] = {}
    for k, (record, one) in enumerate(zip(records, asked, strict=True)):
        key = (one, record.shape, record.dx, tuple(record.times - record.times[0]), record.boundary)
        groups.setdefault(key, []).append(k)
    return [
        (places[k : k + batch], asked[places[0]]) for places in groups.values() for k in range(0, len(places), batch)
    ]


def _in_turn(
    records: list[Record], tensions: list[SurfaceTension | None], jobs: list[Job], progress: Report | None
) -> list[Result]:
    results: dict[int, Result] = {}
    for places, asked in jobs:
        found = _run([records[k] for k in places], [tensions[k] for k in places], asked, places)
        results |= dict(zip(places, found, strict=True))
        if progress is not None:
            progress("identifying", len(results), len(records))
    return [results[k] for k in range(len(records))]


def _in_processes(
    records: list[Record],
    tensions: list[SurfaceTension | None],
    jobs: list[Job],
    workers: int,
    progress: Report | None,
) -> list[Result]:
    results: dict[int, Result] = {}
    with worker_pool(workers) as pool:
        waiting = {
            pool.submit(_run, [records[k] for k in places], [tensions[k] for k in places], asked, places): places
            for places, asked in jobs
        }
        try:
            for done in as_completed(waiting):
                results |= dict(zip(waiting[done], done.result(), strict=True))
                if progress is not None:
                    progress("identifying", len(results), len(records))
        except BrokenProcessPool as error:
            raise InputError(f"a worker process ended, for want of memory or of a guard. {GUARD}") from error
    return [results[k] for k in range(len(records))]


def _run(
    records: list[Record], tensions: list[SurfaceTension | None], asked: Request, places: list[int]
) -> list[Result]:
    try:
        return identify_batch(records, tensions, asked)
    except InputError as error:
        which = f"record {places[0]}" if len(places) == 1 else f"one of the records {', '.join(map(str, places))}"
        raise InputError(f"{which} (counted from 0): {error}") from error
