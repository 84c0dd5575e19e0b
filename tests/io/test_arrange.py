"""Axes: time last, channels and single layers; what is unclear is asked for by name, all of it at once."""

from __future__ import annotations

import numpy as np
import pytest

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def npy(tmp_path):
    def write(u):
        np.save(tmp_path / "movie.npy", u)
        return tmp_path / "movie.npy"

    return write


@pytest.mark.parametrize(("axes", "order"), [("yxt", (1, 2, 0)), ("XTY", (2, 0, 1)), ("tyx", (0, 1, 2))])
def test_letters_name_the_axes(axes, order, npy) -> None:
    record = open_record(npy(MOVIE.transpose(order)), axes=axes, dx=(0.2, 0.1), dt=1.0)
    np.testing.assert_array_equal(record.slab(), MOVIE)
    assert record.dx == (0.2, 0.1)  # in the order y, x, whatever the order of the file


def test_single_layers_are_left_out(npy) -> None:
    record = open_record(npy(MOVIE[:, None, :, :]), axes="tzyx", dx=0.1, dt=1.0)
    np.testing.assert_array_equal(record.slab(), MOVIE)
    record = open_record(npy(MOVIE[:, None, :, :]), axes="tcyx", dx=0.1, dt=1.0)
    assert record.mesh == (4, 6)
    with refused(r"has 4 channels .shape .5, 4, 6..: expected one field; save one channel"):
        open_record(npy(MOVIE), axes="tcx", dx=0.1, dt=1.0)


@pytest.mark.parametrize("axes", ["yx", "tyy", "tyq", "", 3, "t", "tc"])
def test_letters_that_name_no_axes(axes, npy) -> None:
    with refused(r"axes is .*: expected one letter for each axis .*axes='yxt' where time is last"):
        open_record(npy(MOVIE), axes=axes, dx=0.1, dt=1.0)


def test_as_many_letters_as_axes(npy) -> None:
    with refused(r"axes is 'tx', 2 letters, and the field has shape \(5, 4, 6\): expected one letter per axis"):
        open_record(npy(MOVIE), axes="tx", dx=0.1, dt=1.0)


def test_everything_that_is_missing_is_asked_for_at_once(npy) -> None:
    path = npy((100 * np.ones((6, 6, 9))).astype("uint8"))
    with refused(
        r"movie.npy has no order of its axes and no mesh spacing and no frame interval: "
        r"pass axes=, one letter per axis, such as axes='yxt'; dx=, .*; dt=, "
        r".*or times="
    ):
        open_record(path)
    record = open_record(path, axes="yxt", dx=0.1, dt=1.0, levels=(0, 200))
    assert record.shape == (9, 6, 6)
    assert np.all(record.slab() == 0.0)


def test_squares_with_another_last_axis_look_like_time_last(npy, tmp_path) -> None:
    u = np.zeros((6, 6, 9))
    with refused("has no order of its axes: pass axes="):
        open_record(npy(u), dx=0.1, dt=1.0)
    assert open_record(npy(u), axes="tyx", dx=0.1, dt=1.0).frames == 6
    assert open_record(npy(u), dx=0.1, times=range(6)).frames == 6
    save(Record(u, dx=0.1, dt=1.0), tmp_path / "own.npz")
    assert open_record(tmp_path / "own.npz").frames == 6
    save(Record(u, dx=0.1, dt=1.0), tmp_path / "own.zarr")
    assert open_record(tmp_path / "own.zarr", dt=3.0).frames == 6


def test_as_many_times_as_places_on_the_last_axis(npy) -> None:
    with refused(r"there are 6 times, and the axes of the field have 5, 4, 6 cells: .*pass axes='yxt'"):
        open_record(npy(MOVIE), dx=0.1, times=range(6))
    with refused(r"times has shape \(7,\)"):
        open_record(npy(MOVIE), dx=0.1, times=range(7))


def test_levels(npy) -> None:
    counts = np.arange(60, dtype="uint16").reshape(3, 4, 5)
    np.testing.assert_allclose(open_record(npy(counts), dx=1, dt=1, levels=(10, 30)).slab(), (counts - 20.0) / 10)
    np.testing.assert_array_equal(open_record(npy(counts), dx=1, dt=1, levels=(-1, 1)).slab(), counts)
    np.testing.assert_allclose(open_record(npy(MOVIE), dx=1, dt=1, levels=(1, -1)).slab(), -MOVIE)
    assert open_record(npy(counts), dx=1, dt=1, levels=(10, 30)).clip(1, 3).frames == 2
    for levels in ((1, 1), (1,), (0, np.inf), "ab", (0, 1, 2)):
        with refused("levels is .*: expected"):
            open_record(npy(counts), dx=1, dt=1, levels=levels)
    with refused("the field is complex"):
        open_record(npy(MOVIE + 1j), dx=1, dt=1, levels=(0, 1))
    with refused("the field holds integers"):  # a mask
        open_record(npy(MOVIE > 0), dx=1, dt=1, levels=(0, 1))
