"""identify_many: the same answers as one by one, in processes and in batches, and what it refuses."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext

import numpy as np
import pytest

from doublewell.errors import InputError, UnfinishedError
from doublewell.identify import identify, identify_many, many
from doublewell.law import named_law
from doublewell.options import Compute
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON, CELLS, FRAMES = 0.1, 24, 13
SIGMA = named_law("sixth").surface_tension(epsilon=1.0)


def movie(frames: int = FRAMES) -> Record:
    start = initial_field("circle", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return simulate(named_law("sixth"), start, dx=1 / CELLS, dt=5e-4, frames=frames, epsilon=EPSILON)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return [add_noise(movie(), 0.02, seed=seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def alone(records) -> list:
    return [identify(record, SIGMA, law=2, check=False) for record in records]


def test_one_worker_gives_what_identify_gives(records, alone) -> None:
    seen = []
    found = identify_many(
        records,
        SIGMA,
        law=2,
        compute=Compute(workers=1),
        check=False,
        progress=lambda words, done, total: seen.append((done, total)),
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]
    for one, other in zip(found, alone, strict=True):
        assert np.array_equal(one.coefficients, other.coefficients)
        assert one.epsilon == other.epsilon
        assert (one.problem, one.resolved) == (other.problem, other.resolved)


def test_processes_give_the_same_in_the_same_order(records, alone) -> None:
    found = identify_many(records[:2], [SIGMA, None], law=2, compute=Compute(workers=2), check=False)
    assert np.allclose(found[0].coefficients, alone[0].coefficients, rtol=1e-9)
    assert np.allclose(found[1].coefficients, alone[1].coefficients, rtol=1e-9)
    assert found[0].scale is not None
    assert found[1].scale is None


def test_a_batch_as_on_a_gpu_gives_the_same(records, alone, monkeypatch) -> None:
    monkeypatch.setattr(many, "on_gpu", lambda: True)
    monkeypatch.setattr("doublewell.likelihood.batch.on_gpu", lambda: True)  # linearised again in full width
    mixed = [records[0], movie(15), *records[1:]]
    found = identify_many(mixed, SIGMA, law=2, check=False, batch=2)
    for place, other in zip((0, 2, 3), alone, strict=True):
        gap = np.sqrt(np.diag(other.covariance))
        assert np.all(np.abs(found[place].coefficients - other.coefficients) < 0.02 * gap)
    assert found[1].problem.records[0].shape[0] == 15


def test_jobs_hold_records_of_one_kind(records) -> None:
    mixed = [records[0], movie(15), records[1], records[2]]
    work = [(record, many.ask([record], law=2, check=False), None) for record in mixed]
    assert many._jobs(work, 2) == [[0, 2], [3], [1]]
    assert many._jobs(work, 1) == [[0], [2], [3], [1]]


def test_weak_readings_need_no_boundary(records) -> None:
    bare = [Record(record.slab(), dx=record.dx, dt=record.dt, q=1.0) for record in records[:2]]
    found = identify_many(bare, method="weak", compute=Compute(workers=1))
    assert [one.problem.method.name for one in found] == ["weak", "weak"]


def test_what_it_refuses(records) -> None:
    with pytest.raises(InputError, match="no records: expected at least one"):
        identify_many([])
    with pytest.raises(InputError, match="2 surface tensions for 3 records: expected one for all or for each"):
        identify_many(records, [SIGMA, SIGMA])
    with pytest.raises(InputError, match="expected several records, got one Record: pass a list, or use identify"):
        identify_many(records[0])
    with pytest.raises(InputError, match="2 surface tensions for 3 records"):
        identify_many(records, np.array([SIGMA, SIGMA]))
    with pytest.raises(InputError, match="workers is -1: expected an integer from 1"):
        identify_many(records, compute=Compute(workers=-1))
    with pytest.raises(InputError, match="batch is 0: expected an integer from 1"):
        identify_many(records, batch=0)
    flat = records[0].replace(np.ones(records[0].shape))
    with pytest.raises(InputError, match=r"record 1 \(counted from 0\): the field is constant"):
        identify_many([records[0], flat], law=2, compute=Compute(workers=1), check=False)
    with pytest.raises(InputError, match=r"record 0 \(counted from 0\): expected a Record, got ndarray"):
        identify_many([records[0].slab()])


def test_all_entries_are_checked_before_any_fit(records, monkeypatch) -> None:
    monkeypatch.setattr(many, "_side_by_side", lambda *_: pytest.fail("a fit was begun"))
    bare = Record(records[0].slab()[:, :8], dx=1 / CELLS, dt=5e-4, q=1.0)
    with pytest.raises(InputError, match=r"^record 1 .counted from 0.: the window is 8 x .*; record 2: the window"):
        identify_many([records[0], bare, bare], method="trajectory")
    broken = records[0].slab().copy()
    broken[3, 4, 5] = np.nan
    with pytest.raises(InputError, match=r"^record 2 .counted from 0.: 1 value in frames .* is not finite"):
        identify_many([*records[:2], records[0].replace(broken)])
    flat = records[0].replace(np.ones(records[0].shape))
    with pytest.raises(InputError, match=r"record 0 .*; record 1: .*; record 2: .*; and 2 more$"):
        identify_many([flat] * 5)


def test_surface_tensions_are_read_one_by_one(records) -> None:
    read = many._tensions([SIGMA, (SIGMA, 0.01), None], 3)
    assert [one and (one.value, one.sd) for one in read] == [(SIGMA, None), (SIGMA, 0.01), None]
    with pytest.raises(
        InputError, match=r"^surface tension 1 .counted from 0.: the surface tension is 'soft': expected a number"
    ):
        identify_many(records, [SIGMA, "soft", SIGMA])
    with pytest.raises(
        InputError, match=r"^surface tension 2 .*expected a number, or a pair .value, standard deviation."
    ):
        identify_many(records, [SIGMA, SIGMA, (1.0, 0.1, 0.2)])
    with pytest.raises(InputError, match="surface tension is 'soft': expected a number"):
        identify_many(records, "soft")
    with pytest.raises(InputError, match=r"for all, is SurfaceTension\(value, sd\)"):
        identify_many(records, (SIGMA, 0.01))


def failing(records, bad):
    """The fit, where one record makes it fail."""
    fit = many._side_by_side

    def run(work):
        if any(record is bad for record, *_ in work):
            raise InputError("this one cannot be fitted") if bad is records[1] else ZeroDivisionError("a bug")
        return fit(work)

    return run


@pytest.mark.parametrize(("place", "said"), [(1, "this one cannot be fitted"), (2, "ZeroDivisionError: a bug")])
@pytest.mark.parametrize("together", [False, True])
def test_a_record_that_fails_does_not_lose_the_others(records, alone, monkeypatch, place, said, together) -> None:
    monkeypatch.setattr(many, "_side_by_side", failing(records, records[place]))
    monkeypatch.setattr(many, "on_gpu", lambda: together)
    seen = []
    with pytest.raises(
        UnfinishedError, match=rf"1 of 3 records failed: record {place} .counted from 0.: {said}"
    ) as caught:
        identify_many(
            records, SIGMA, law=2, compute=Compute(workers=1), check=False, progress=lambda *at: seen.append(at[1:])
        )
    assert seen[-1] == (3, 3)
    assert list(caught.value.failures) == [place]
    assert caught.value.results[place] is None
    for k in {0, 1, 2} - {place}:
        assert np.allclose(caught.value.results[k].coefficients, alone[k].coefficients, rtol=1e-9)
    assert ("Traceback" in caught.value.failures[place]) == (place == 2)


def test_a_worker_that_dies_does_not_lose_the_others(records, monkeypatch) -> None:
    class Pool:
        def submit(self, run, work):
            done = Future()
            if work[0][0] is records[1]:
                done.set_exception(BrokenProcessPool("gone"))
            else:
                done.set_result(run(work))
            return done

    monkeypatch.setattr(many, "worker_pool", lambda workers: nullcontext(Pool()))
    with pytest.raises(
        UnfinishedError, match=r"1 of 3 .*record 1 .*a worker process ended.*The other 2 are in"
    ) as caught:
        identify_many(records, method="weak", compute=Compute(workers=2))
    assert [one is None for one in caught.value.results] == [False, True, False]


def test_a_worker_that_imports_a_script_without_a_guard_says_so(records, monkeypatch) -> None:
    monkeypatch.setattr(many, "parent_process", object)
    with pytest.raises(InputError, match='put the call of identify_many under if __name__ == "__main__":'):
        identify_many(records)
