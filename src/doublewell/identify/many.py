"""identify_many: many records, each with a law of its own, batched on a GPU, in processes on CPUs."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import parent_process
from typing import Any, TypeVar

import numpy as np

from doublewell.calibrate import Mixing, SurfaceTension, check_units, scaling_of
from doublewell.compute.run import worker_pool
from doublewell.errors import InputError, UnfinishedError, whole
from doublewell.hints import Report
from doublewell.identify.identify import fit_whole, result_of, weak_answer
from doublewell.identify.parts import begin, check_layout, look_at, survey_of
from doublewell.identify.phases import plateaus_or, visited
from doublewell.observation import Survey
from doublewell.options import Compute, Phases
from doublewell.problem import Problem, ask, observed_as
from doublewell.progress import reporting
from doublewell.record import Record
from doublewell.result import Result
from doublewell.runtime import on_gpu

_BATCH = 20  # records of 61 x 96 x 96 take about 2 GB of a GPU's memory
_SHOWN = 3  # entries that a message names with their reason
GUARD = 'put the call of identify_many under if __name__ == "__main__": in the script, or use one worker'

Tension = float | str | tuple[float, float] | SurfaceTension | Mixing | None
Work = tuple[Record, Problem, Survey]
Outcome = Result | str  # or what went wrong
In = TypeVar("In")
Out = TypeVar("Out")


def identify_many(
    records: Sequence[Record],
    surface_tension: Tension | Sequence[Tension] = None,
    *,
    dynamics: Any = "allen-cahn",
    law: Any = None,
    method: Any = None,
    observation: Any = None,
    compute: Any = None,
    check: bool = True,
    temperature: Any = None,
    batch: int = _BATCH,
    progress: Report | bool | None = None,
) -> list[Result]:
    """Identify each record by itself, in the order given; the options are those of ``identify``, one equation for all.

    Where JAX sees a GPU, records of one shape, mesh, interval, q and boundary are fitted together, `batch` at a time.
    Otherwise the workers of `compute` (processes, all cores by default) take one record after the other; a script that
    calls this needs the usual ``if __name__ == "__main__":``. Results do not depend on the number of workers.
    `surface_tension` is one for all, or one for each record. `progress` is True, which shows a bar, or called with
    (what is done, records done, records).

    All records are surveyed before the first fit, and every one that cannot be used is named. Where a fit fails later,
    the others continue; then UnfinishedError (an InputError) is raised, with the finished ``results`` and the
    ``failures`` by place.
    """
    if isinstance(records, Record):
        raise InputError("expected several records, got one Record: pass a list, or use identify")
    records = list(records)
    if not records:
        raise InputError("no records: expected at least one Record")
    tensions = _tensions(surface_tension, len(records))
    chosen = Compute.of(compute)
    for name in ("scheduler", "checkpoint", "time_limit", "cancel"):
        if getattr(chosen, name) is not None:
            raise InputError(f"{name} is for one call of identify: use that, or leave {name} out")
    workers = min(chosen.workers or os.cpu_count() or 1, len(records))
    batch = whole(batch, "batch", least=1)
    options = {"dynamics": dynamics, "law": law, "method": method, "observation": observation, "check": check}
    problems = _each(records, "record", lambda record: ask([record], temperature=temperature, **options))
    for record, tension in zip(records, tensions, strict=True):
        check_units(tension, len(record.mesh), record.length_unit, record.time_unit)
    records = [observed_as(record, problem) for record, problem in zip(records, problems, strict=True)]
    found, phases = problems[0].family.found, problems[0].observation.phases
    surveys = _each(records, "record", lambda record: _look(check_layout(record), phases, found=found))
    if problems[0].law.wells == "ideal":  # where the pure components lie in the range belongs to the family
        problems = [replace(each, values=visited([record])) for each, record in zip(problems, records, strict=True)]
    work = [
        (record, replace(problem, tension=tension), seen)
        for record, problem, tension, seen in zip(records, problems, tensions, surveys, strict=True)
    ]
    gpu = any(problem.method.bands for problem in problems) and on_gpu()
    jobs = _jobs(work, batch if gpu else 1)
    with reporting(progress) as report:
        if len(jobs) == 1 or workers == 1 or gpu:
            outcomes = _in_turn(work, jobs, report)
        else:
            outcomes = _in_processes(work, jobs, workers, report)
    return _finished([outcomes[k] for k in range(len(records))])


def _look(record: Record, phases: Phases, *, found: bool) -> Survey:
    """Survey a record, with its plateaus for its phases where these are found."""
    return look_at(record, plateaus_or(record, visited([record]))) if found else survey_of(record, phases)


def _in_turn(work: list[Work], jobs: list[list[int]], progress: Report | None) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    for places in jobs:
        outcomes |= zip(places, _run([work[k] for k in places]), strict=True)
        if progress is not None:
            progress("identifying", len(outcomes), len(work))
    return outcomes


def _in_processes(work: list[Work], jobs: list[list[int]], workers: int, progress: Report | None) -> dict[int, Outcome]:
    if parent_process() is not None:  # a worker that is importing a script without a guard
        raise InputError(GUARD)
    outcomes: dict[int, Outcome] = {}
    with worker_pool(workers) as pool:
        waiting = {pool.submit(_run, [work[k] for k in places]): places for places in jobs}
        for done in as_completed(waiting):
            places = waiting[done]
            try:
                outcomes |= zip(places, done.result(), strict=True)
            except BrokenProcessPool:
                outcomes |= dict.fromkeys(places, f"a worker process ended, for want of memory or of a guard. {GUARD}")
            if progress is not None:
                progress("identifying", len(outcomes), len(work))
    return outcomes


def _run(work: list[Work]) -> list[Outcome]:
    """Identify records side by side; where that fails, one by one, so that a bad one does not take the others along."""
    try:
        return list(_side_by_side(work))
    except InputError as error:
        message = str(error)
    except Exception as error:  # the results of the other records are worth more than a fast end
        message = "".join(traceback.format_exception(error)).strip()
    return [message] if len(work) == 1 else [outcome for one in work for outcome in _run([one])]


def _side_by_side(work: list[Work]) -> list[Result]:
    """Run one loop for each record; what they want next is done together."""
    parts = [begin(record, problem, None, seen) for record, problem, seen in work]
    first = work[0][1]
    if first.method.bands:
        answers = fit_whole(parts, [[k] for k in range(len(parts))], first)
    else:
        answers = [weak_answer(part, problem) for part, (_, problem, _) in zip(parts, work, strict=True)]
    return [
        result_of([part], problem, answer) for part, answer, (_, problem, _) in zip(parts, answers, work, strict=True)
    ]


def _tensions(given: Any, count: int) -> list[SurfaceTension | Mixing | None]:
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        if len(given) != count:
            raise InputError(
                f"{len(given)} surface tensions for {count} records: expected one for all or for each; one value with "
                "its standard deviation, for all, is SurfaceTension(value, sd)"
            )
        return _each(list(given), "surface tension", lambda one: None if one is None else scaling_of(one))
    return [None if given is None else scaling_of(given)] * count


def _each(items: Sequence[In], noun: str, make: Callable[[In], Out]) -> list[Out]:
    """Return what is made of each item; all that cannot be used are named in one error, before any fit."""
    made, failures = [], {}
    for k, item in enumerate(items):
        try:
            made.append(make(item))
        except InputError as error:
            failures[k] = str(error)
    if failures:
        raise InputError(_named(failures, noun))
    return made


def _named(failures: Mapping[int, str], noun: str = "record") -> str:
    """Name the entries that failed, the first few with their reason."""
    first, *others = [
        f"{noun} {k}{' (counted from 0)' * (not n)}: {text}" for n, (k, text) in enumerate(failures.items())
    ]
    shown, more = others[: _SHOWN - 1], len(others) - _SHOWN + 1
    return "; ".join([first, *shown, *([f"and {more} more"] if more > 0 else [])])


def _jobs(work: list[Work], batch: int) -> list[list[int]]:
    """Group records that can be fitted together, in their order."""
    groups: dict[object, list[int]] = {}
    for k, (record, problem, _) in enumerate(work):
        key = (replace(problem, tension=None), record.q, record.shape, record.dx, record.boundary)
        groups.setdefault((*key, tuple(record.times - record.times[0])), []).append(k)
    return [places[k : k + batch] for places in groups.values() for k in range(0, len(places), batch)]


def _finished(outcomes: list[Outcome]) -> list[Result]:
    """Return the results where all are there; else raise an error that carries those that are."""
    failures = {k: one for k, one in enumerate(outcomes) if isinstance(one, str)}
    results = [None if isinstance(one, str) else one for one in outcomes]
    if failures:
        short = {k: text.splitlines()[-1] for k, text in failures.items()}
        kept = len(outcomes) - len(failures)
        raise UnfinishedError(
            f"{len(failures)} of {len(outcomes)} records failed: {_named(short)}. The other {kept} are in .results of "
            "this error, in their places, and what went wrong is in .failures",
            results,
            failures,
        )
    return [one for one in results if one is not None]
