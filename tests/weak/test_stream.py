"""Streamed results are those in memory, whatever the chunks, the slabs and the kind of record."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import zarr
from grouping import grouped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doublewell.compute.partition import Region
from doublewell.difference import compare
from doublewell.errors import InputError
from doublewell.identify import identify as identify_any
from doublewell.identify.again import repeat
from doublewell.io import open_record, save
from doublewell.law import Bernstein
from doublewell.observation import survey
from doublewell.options import Compute, Observation, Weak
from doublewell.record import Record, checksum
from doublewell.weak import assembly as weak_module
from doublewell.weak import stream as plan_module
from doublewell.weak.stream import make_plan, open_stream
from doublewell.weak.weights import Support

identify = partial(identify_any, method="weak")


def agree(plain, streamed, record) -> None:
    """All numbers to 1e-10, rows exactly, and the checksum that the record has when it is read in order."""
    assert streamed.problem.records[0].checksum == checksum(record, like="sha256-lines:")
    assert plain.diagnostics.rows == streamed.diagnostics.rows
    assert [part.rows for part in plain.diagnostics.supports] == [part.rows for part in streamed.diagnostics.supports]
    alike = replace(streamed, problem=plain.problem)  # which holds the memory, and the checksum
    found = compare(plain, alike, tolerance=1e-10)
    assert found.same, "\n".join(str(item) for item in found.differences)


@settings(
    derandomize=True, deadline=None, max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    chunks=st.tuples(st.integers(1, 20), st.integers(5, 40), st.integers(7, 48)), halos=st.integers(1, 3),
    budget=st.sampled_from([403_000_000, 10**9]), dtype=st.sampled_from(["f4", "f8"]),
)  # fmt: skip
def test_any_chunks_and_any_plan(long_movie, tmp_path, chunks, halos, budget, dtype) -> None:
    values = long_movie.slab().astype(dtype)
    array = zarr.create_array(store=zarr.storage.MemoryStore(), shape=values.shape, chunks=chunks, dtype=dtype)
    array[:] = values
    record = long_movie.replace(array)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "_HALOS", halos)
        patch.setattr(plan_module, "_SLAB_BYTES", 1)
        patch.setattr(plan_module, "READ_BYTES", 1000)
        agree(identify(record, 1.0), identify(record, 1.0, method=Weak(memory=budget)), record)


def test_a_budget_that_cuts_frames(stored, many_slabs, monkeypatch) -> None:
    monkeypatch.setattr(plan_module, "_SCRATCH", 0)
    monkeypatch.setattr(plan_module, "READ_BYTES", 1)
    monkeypatch.setitem(weak_module._STEP_BYTES, "cpu", 1)
    supports, whole = [Support(2, 0.06), Support(3, 0.1)], Region.whole(stored)
    most = plan_module.slab_bytes(stored, Bernstein(2), supports, whole)
    budget = plan_module.LIBRARIES + round(0.7 * most)
    assert len({region.cells for region in make_plan(stored, Bernstein(2), supports, budget)}) > 1
    agree(
        identify(stored, 1.0, method=Weak(supports=supports)),
        identify(stored, 1.0, method=Weak(supports=supports, memory=budget)),
        stored,
    )


def test_a_streamed_survey_is_the_survey(stored, long_movie) -> None:
    for record in (stored, long_movie.replace(mask=np.arange(64) > 4)):
        with open_stream(record) as stream:
            seen, plain = stream.survey(record), survey(record)
        assert replace(seen, change=0.0, pace=0.0, peak=0.0) == replace(plain, change=0.0, pace=0.0, peak=0.0)
        assert (seen.change, seen.pace, seen.peak) == pytest.approx((plain.change, plain.pace, plain.peak), rel=1e-12)


OPTIONS = [
    {"ridge": "validated"},
    {"degree": 4, "constraint": "none", "derivative": "analytic"},
    {"wells": "unequal"},
    {"supports": "paper"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(stored, many_slabs, options) -> None:
    plain, parted = (grouped(method="weak", **options, memory=memory) for memory in (None, "1GB"))
    agree(identify(stored, 1.0, **plain), identify(stored, 1.0, **parted), stored)


def test_an_unknown_q(long_movie, many_slabs) -> None:
    free = Record(long_movie.values, dx=long_movie.dx, times=long_movie.times)
    agree(identify(free), identify(free, method=Weak(memory="1GB")), free)


def test_uneven_times(long_movie, many_slabs) -> None:
    times = long_movie.times.copy()
    times[40:] += 0.4 * (times[1] - times[0])
    record = long_movie.replace(times=times)
    agree(identify(record), identify(record, method=Weak(memory="1GB")), record)


def test_other_phases(long_movie, tmp_path, many_slabs) -> None:
    save(long_movie.replace(0.5 + 0.5 * long_movie.slab()), tmp_path / "half.zarr")
    record = open_record(tmp_path / "half.zarr")
    agree(
        identify(record, observation=Observation(phases=(0, 1))),
        identify(record, method=Weak(memory="1GB"), observation=Observation(phases=(0, 1))),
        record,
    )


@pytest.mark.parametrize("kind", ["values", "fixed", "frames", "stored"])
def test_masks(long_movie, tmp_path, many_slabs, kind) -> None:
    rng = np.random.default_rng(4)
    masks = {"values": rng.uniform(size=long_movie.shape) > 1e-4, "fixed": rng.uniform(size=long_movie.mesh) > 2e-3}
    masks |= {"frames": np.arange(64) != 30, "stored": masks["values"]}
    values = np.where(
        np.broadcast_to(long_movie.replace(mask=masks[kind]).observed(), long_movie.shape), long_movie.slab(), np.nan
    )
    record = long_movie.replace(values, mask=masks[kind])
    if kind == "stored":
        save(record, tmp_path / "mask.zarr")
        record = open_record(tmp_path / "mask.zarr")
    plain = identify(record, method=Weak(supports=[(2, 0.05), (3, 0.08)]))
    agree(plain, identify(record, method=Weak(supports=[(2, 0.05), (3, 0.08)], memory="1GB")), record)
    assert plain.diagnostics.survey.missing > 0


def test_a_value_that_is_not_finite_is_found_wherever_it_is(long_movie, many_slabs) -> None:
    values = long_movie.slab().copy()
    values[7, 3, 47] = np.nan  # in a frame that no look needs
    with pytest.raises(InputError, match=r"1 value in frames .* the first in frame 7 at cell \(3, 47\)"):
        identify(long_movie.replace(values), method=Weak(memory="1GB"))


def test_a_streamed_result_is_repeated(stored, many_slabs) -> None:
    done = repeat(identify(stored, 1.0, method=Weak(memory="1GB")), stored)
    assert done.data == "the same"
    assert done.comparison.same


def test_progress_says_speed_and_time_left(stored, many_slabs) -> None:
    said = []
    identify(stored, method=Weak(memory="1GB"), progress=lambda *words: said.append(words))
    assert said[0] == ("looking at the record", 1, 12)
    assert said[-1][1:] == (6, 6)
    assert said[-1][0].startswith("reading slabs, ")
    assert said[-1][0].endswith(" MB/s, 0 s left")


def test_a_record_in_memory_is_read_by_threads_and_other_executors(long_movie, many_slabs) -> None:
    one = identify(long_movie, 1.0, method=Weak(memory="1GB"))
    assert compare(
        one, identify(long_movie, 1.0, method=Weak(memory="1GB"), compute=Compute(workers=2)), tolerance=0.0
    ).same
    with ThreadPoolExecutor(2) as threads:
        assert compare(
            one, identify(long_movie, 1.0, method=Weak(memory="1GB"), compute=Compute(scheduler=threads)), tolerance=0.0
        ).same


def test_readings_that_do_not_stream(stored) -> None:
    for method, compute in ((Weak(corrected=True, memory="1MB"), None), ("weak-corrected", Compute(checkpoint="a"))):
        with pytest.raises(InputError, match="the corrected weak-form fit holds the whole record: leave out memory"):
            identify_any(stored, method=method, compute=compute)
    with pytest.raises(InputError, match="phases='estimated' reads a record many times"):
        identify(stored, method=Weak(memory="1GB"), observation=Observation(phases="estimated"))


def test_wrong_resources(stored, long_movie) -> None:
    for options, words in [
        ({"workers": 0}, "workers is 0: expected an integer from 1"),
        ({"workers": 2, "scheduler": "tcp://a:1"}, "workers and scheduler are both given"),
        ({"checkpoint": 3}, "checkpoint is 3: expected the name of a file"),
        ({"scheduler": 5}, "scheduler is 5: expected the address of a Dask scheduler"),
        ({"memory": "100MB"}, "memory is 100 MB: expected at least 350 MB"),
    ]:
        with pytest.raises(InputError, match=words):
            identify(stored, **grouped(method="weak", **options))
