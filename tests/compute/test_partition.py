"""Tiles: a partition of the record within the budget, in few shapes; which of them hold an interface."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.compute.partition import (
    Region,
    interface_fraction,
    make_tiles,
    tile_memory,
    tile_record,
    tile_shape,
    whole_bytes,
)
from doublewell.errors import InputError
from doublewell.record import Record

COPIES = 100


class Stored:
    """The shape of a stored array; no value is read for a plan."""

    def __init__(self, shape) -> None:
        self.shape, self.ndim, self.dtype = shape, len(shape), np.dtype("f8")


def record_of(shape, boundary=None):
    return Record(Stored(shape), dx=1.0, dt=1.0, q=1.0, boundary=boundary)


@given(
    frames=st.integers(5, 400), mesh=st.lists(st.integers(12, 300), min_size=1, max_size=3),
    share=st.floats(0.01, 1.0), growth=st.floats(0.1, 100.0),
)  # fmt: skip
def test_tiles_have_every_value_once_within_the_budget(frames, mesh, share, growth) -> None:
    record = record_of((frames, *mesh))
    least = min(5, frames) * 23 ** len(mesh)  # no part of an axis needs to be longer than 23 cells
    memory = tile_memory(COPIES, max(int(share * np.prod(record.shape)), 2 * least))
    plan = make_tiles(record, copies=COPIES, rate=growth / frames, memory=memory)
    assert sum(int(np.prod(tile_shape(tile))) for tile in plan) == np.prod(record.shape)
    assert len(set(plan)) == len(plan)
    for axis, n in enumerate(record.shape):
        spans = sorted({(tile.frames, *tile.cells)[axis] for tile in plan})
        assert spans[0][0] == 0
        assert spans[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(spans))
        assert len({b - a for a, b in spans}) <= 2
    assert all(tile_memory(COPIES, int(np.prod(tile_shape(tile)))) <= memory for tile in plan)
    assert all(min(tile_shape(tile)[1:]) >= 12 for tile in plan)


def test_one_shape_where_that_takes_few_more_tiles() -> None:
    plan = make_tiles(record_of((21, 144, 144)), copies=COPIES, rate=0.2, memory=tile_memory(COPIES, 21 * 30 * 30))
    assert {tile_shape(tile) for tile in plan} == {(21, 24, 36)}  # five parts would be of 28 and of 29 cells


def test_long_records_are_cut_in_time_and_short_ones_in_space() -> None:
    memory = tile_memory(COPIES, 50_000)
    long = make_tiles(record_of((4000, 48, 48)), copies=COPIES, rate=0.5, memory=memory)
    assert {tile.cells for tile in long} == {((0, 48), (0, 48))}
    short = make_tiles(record_of((20, 200, 200)), copies=COPIES, rate=0.1, memory=memory)
    assert {tile.frames for tile in short} == {(0, 20)}


def test_a_slab_is_not_longer_than_fields_can_be_followed() -> None:
    plan = make_tiles(record_of((100, 24, 24)), copies=COPIES, rate=1.0, memory=10**12)
    assert max(tile_shape(tile)[0] for tile in plan) <= 13


def test_too_little_memory_for_a_tile() -> None:
    with pytest.raises(InputError, match=r"memory is 950 MB: expected at least 951 MB to read tiles of a record of"):
        make_tiles(record_of((20, 200, 200)), copies=COPIES, rate=0.1, memory=tile_memory(COPIES, 100))


def test_what_a_whole_record_takes() -> None:
    window, domain, unknown = (whole_bytes(record_of((101, 256, 256), b), 9) for b in ("open", "periodic", None))
    assert window == unknown > domain > 3.3e9  # measured: benchmarks/results/trajectory_cost.json


def noisy_step(noise):
    x = np.linspace(-3.0, 3.0, 48)
    u = np.tanh(4 * x) * np.ones((9, 24, 1))
    return Record(u + noise * np.random.default_rng(3).standard_normal(u.shape), dx=0.1, dt=0.1, q=1.0)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2])
def test_interfaces_are_seen_through_noise(noise) -> None:
    record = noisy_step(noise)
    with_one, without = (Region((0, 9), ((0, 24), cells)) for cells in ((12, 36), (36, 48)))
    assert interface_fraction(record, with_one) == pytest.approx(7 / 24, abs=0.1)
    assert interface_fraction(record, without) < 0.01


def test_nothing_seen_is_no_interface() -> None:
    record = noisy_step(0.0)
    masked = record.replace(mask=np.arange(48)[None, None, :] < 24 * np.ones((1, 24, 1)))
    assert interface_fraction(masked, Region((0, 9), ((0, 24), (24, 48)))) == 0.0


def test_a_tile_is_a_window_of_its_own() -> None:
    record = noisy_step(0.1).replace(boundary="periodic")
    tile = tile_record(record, Region((2, 7), ((0, 12), (12, 24))))
    assert tile.boundary == "open"
    assert np.array_equal(tile.slab(), record.slab()[2:7, :12, 12:24])
    assert np.array_equal(tile.times, record.times[2:7])
    assert tile.dx == record.dx


def test_wide_borders_ask_for_larger_tiles():
    record, memory = record_of((20, 60, 60)), tile_memory(COPIES, 20 * 20 * 20)
    for border, least in ((2, 12), (6, 20)):
        plan = make_tiles(record, copies=COPIES, rate=0.1, memory=memory, border=border)
        assert min(min(tile_shape(region)[1:]) for region in plan) >= least
    with pytest.raises(InputError, match="expected at least"):
        make_tiles(record, copies=COPIES, rate=0.1, memory=tile_memory(COPIES, 5 * 19 * 19), border=6)
