"""Plans: a partition of the record, within the budget, in chunks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doublewell.errors import InputError
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.weak.stream import LIBRARIES, look_rows, make_plan, slab_bytes
from doublewell.weak.weights import Support

FAMILY = Bernstein(2)


class Stored:
    """The shape of a stored array; no value is read for a plan."""

    def __init__(self, shape, dtype="f8", chunks=None) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype(dtype)
        if chunks is not None:
            self.chunks = chunks


def record_of(shape, dtype="f8", chunks=None, mask=None):
    return Record(Stored(shape, dtype, chunks), dx=1.0, dt=1.0, q=1.0, mask=mask)


def check(record, supports, memory):
    plan = make_plan(record, FAMILY, supports, memory)
    points = sum(int(np.prod([b - a for a, b in (r.frames, *r.cells)])) for r in plan)
    assert points == np.prod(record.shape)
    assert len(set(plan)) == len(plan)
    for axis, n in enumerate(record.shape):
        spans = sorted({(r.frames, *r.cells)[axis] for r in plan})
        assert spans[0][0] == 0
        assert spans[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert all(LIBRARIES + slab_bytes(record, FAMILY, supports, region) <= memory for region in plan)
    return plan


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    frames=st.integers(25, 3000), mesh=st.lists(st.integers(30, 600), min_size=1, max_size=3),
    size=st.floats(3e9, 2e10), frames_wide=st.integers(2, 8), cells=st.integers(3, 12), dtype=st.sampled_from("fd"),
)  # fmt: skip
def test_a_plan_is_a_partition_within_the_budget(frames, mesh, size, frames_wide, cells, dtype) -> None:
    supports = [Support(2, 2.0), Support(frames_wide, float(cells))]
    check(record_of((frames, *mesh), dtype), supports, int(size))


def test_large_frames_are_cut_into_tiles_of_whole_lines() -> None:
    supports = [Support(5, 6.0), Support(8, 12.0)]
    record = record_of((600, 2048, 2048), chunks=(1, 128, 2048))
    plan = check(record, supports, 900 * 10**6)
    assert len({r.cells for r in plan}) > 1
    assert {r.cells[1] for r in plan} == {(0, 2048)}
    assert all(low % 128 == 0 for r in plan for low, _ in r.cells[:1])
    assert len({r.cells for r in check(record, supports, 4 * 10**9)}) == 1


def test_volumes_are_cut_across_both_other_axes() -> None:
    plan = check(record_of((100, 256, 256, 256)), [Support(8, 8.0)], 8 * 10**8)
    assert all(len({r.cells[axis] for r in plan}) > 1 for axis in (0, 1))
    assert {r.cells[2] for r in plan} == {(0, 256)}


def test_slabs_begin_where_chunks_do() -> None:
    plan = check(record_of((5003, 256, 256), chunks=(16, 256, 256)), [Support(5, 6.0)], 2 * 10**9)
    assert len({r.frames for r in plan}) > 3
    assert all(r.frames[0] % 16 == 0 for r in plan)


def test_a_mask_takes_memory_too() -> None:
    supports = [Support(8, 12.0)]
    plain, masked = (record_of((600, 2048, 2048), mask=m) for m in (None, Stored((600, 2048, 2048), "?")))
    assert len(check(masked, supports, 10**9)) > len(check(plain, supports, 10**9))


@pytest.mark.parametrize("shape", [(100, 512, 512, 512), (100, 16384, 16384), (60, 96, 96)])
def test_a_look_at_large_frames_is_in_bands(shape) -> None:
    record = record_of(shape)
    rows = look_rows(record, 10**9)
    assert rows == shape[1] or (0 < rows < shape[1] and rows % 4 == 0)
    assert 14 * 8 * rows * np.prod(shape[2:]) <= 10**9 - LIBRARIES


@pytest.mark.parametrize("shape", [(100, 2048, 2048, 2048), (100, 8_000_000)])
def test_too_little_memory_for_a_look(shape) -> None:
    with pytest.raises(InputError, match=r"memory is 1.0 GB: expected at least .* for a first look at a record of"):
        look_rows(record_of(shape), 10**9)


def test_too_little_memory_for_long_lines() -> None:
    with pytest.raises(InputError, match=r"memory is 1.1 GB: expected at least .* for a record of \(8000000,\) cells"):
        make_plan(record_of((100, 8_000_000)), FAMILY, [Support(8, 8.0)], 11 * 10**8)


def test_a_petabyte_is_not_millions_of_tasks() -> None:
    record = record_of((62_500, 44_721, 44_721), chunks=(1, 512, 44_721))  # 1 PB
    plan = make_plan(record, FAMILY, [Support(5, 6.0), Support(8, 12.0)], 2 * 10**9)
    assert 5_000 < len(plan) <= 25_000  # slabs are of nearly equal length
