"""A record checks its metadata at once, its values slab by slab, and reads nothing before it must."""

from dataclasses import FrozenInstanceError

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from record_pieces import MOVIE, Stored, message, record

from doublewell.errors import InputError
from doublewell.record import Record, check_record


@pytest.mark.parametrize("shape", [(3, 7), (3, 4, 7), (3, 4, 5, 7)])
def test_one_to_three_space_axes(shape):
    movie = record(np.zeros(shape), dx=0.25)
    assert movie.shape == shape
    assert movie.frames == 3
    assert movie.mesh == shape[1:]
    assert movie.dx == (0.25,) * (len(shape) - 1)
    assert movie.extent == tuple(0.25 * n for n in shape[1:])


def test_metadata():
    movie = record(dx=(0.1, 0.2), q=2, boundary="neumann")
    assert movie.dx == (0.1, 0.2)
    assert movie.extent == pytest.approx((0.4, 1.2))
    assert movie.times.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert movie.dt == 0.5
    assert (movie.q, movie.boundary) == (2.0, "neumann")
    assert isinstance(movie.q, float)
    assert record().q is None
    assert record().boundary is None


def test_repr():
    assert repr(record(q=1.5, boundary="periodic")) == (
        "Record(5 frames of 4 x 6, dx = 0.1, t = 0 to 2, q = 1.5, boundary = periodic)"
    )
    assert repr(record(dx=(0.1, 0.2))) == (
        "Record(5 frames of 4 x 6, dx = 0.1, 0.2, t = 0 to 2, q = unknown, boundary = not declared)"
    )


@pytest.mark.parametrize(
    "stored",
    [
        MOVIE,
        MOVIE.tolist(),
        MOVIE.astype(np.float32),
        MOVIE.astype(np.float16),
        MOVIE.astype(np.longdouble),
        MOVIE.astype(">f8"),
        np.asfortranarray(MOVIE),
        da.from_array(MOVIE, chunks=(2, 4, 3)),
        zarr.array(MOVIE, chunks=(2, 4, 3)),
        xr.DataArray(MOVIE, dims=("t", "y", "x")),
        xr.DataArray(da.from_array(MOVIE, chunks=(1, 4, 6)), dims=("t", "y", "x")),
        Stored(MOVIE),
    ],
    ids=lambda u: f"{type(u).__module__.split('.')[0]}-{getattr(u, 'dtype', '')}",
)
def test_every_kind_of_array_reads_the_same(stored):
    movie = record(stored)
    accuracy = {2: 1e-3, 4: 1e-7}.get(movie.values.dtype.itemsize, 1e-16)
    for start, stop in [(0, 5), (1, 3), (4, 5)]:
        slab = movie.slab(start, stop)
        assert type(slab) is np.ndarray
        assert slab.dtype == np.dtype(np.float64)
        assert slab.dtype.isnative
        assert slab.flags.c_contiguous
        assert not slab.flags.writeable
        np.testing.assert_allclose(slab, MOVIE[start:stop], rtol=0, atol=accuracy)
    joined = np.concatenate([slab for _, slab in movie.slabs(2)])
    np.testing.assert_array_equal(joined, movie.slab())
    np.testing.assert_array_equal(movie.clip(1, 4).clip(1, 3).slab(), movie.slab(2, 4))


def test_construction_and_clipping_read_nothing():
    stored = Stored(MOVIE)
    movie = record(stored)
    clipped = movie.clip(1, 4)
    repr(movie), repr(clipped), movie.dt, movie.extent, movie.shape
    assert stored.read == []
    clipped.slab(1, 2)
    assert stored.read == [(2, 3)]
    clipped.clip(1, 3).slab()
    assert stored.read == [(2, 3), (2, 4)]
    assert clipped.times.tolist() == [0.5, 1.0, 1.5]


def test_dask_is_computed_slab_by_slab():
    computed = []

    def read(block, block_info=None):
        computed.append(block_info[0]["chunk-location"][0])
        return block

    lazy = da.from_array(MOVIE, chunks=(1, 4, 6)).map_blocks(read, dtype=float, meta=np.empty((0, 0, 0)))
    for source in (lazy, xr.DataArray(lazy, dims=("time", "y", "x"))):
        computed.clear()
        movie = record(source).clip(1, 5)
        assert computed == []
        movie.slab(1, 3)
        assert sorted(computed) == [2, 3]


def test_xarray_on_a_file_without_dask_is_not_read_whole(tmp_path, monkeypatch):
    xr.Dataset({"u": (("t", "y", "x"), MOVIE)}).to_zarr(tmp_path / "movie.zarr", zarr_format=2)
    field = xr.open_zarr(tmp_path / "movie.zarr", chunks=None, consolidated=False)["u"]
    sizes = []
    plain = zarr.Array.__getitem__
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda a, k: sizes.append(k[0]) or plain(a, k))
    movie = record(field).clip(1, 4)
    assert sizes == []
    np.testing.assert_array_equal(movie.slab(0, 2), MOVIE[1:3])
    assert sizes == [slice(1, 3, 1)]


def test_a_float64_array_is_viewed_not_copied():
    assert np.shares_memory(record().slab(1, 3), MOVIE)
    assert np.shares_memory(record().clip(1, 3).slab(), MOVIE)
    assert np.shares_memory(record(xr.DataArray(MOVIE, dims=("t", "y", "x"))).slab(1, 3), MOVIE)


def test_read_only():
    mine = MOVIE.copy()
    movie = record(mine)
    with pytest.raises(FrozenInstanceError):
        movie.q = 1.0
    for array in (movie.values, movie.slab(), movie.times):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    mine[0, 0, 0] = 7.0  # the caller's array stays the caller's
    times = np.arange(5.0)
    movie = record(dt=None, times=times)
    times[0] = -3.0
    assert movie.times[0] == 0.0


def test_times():
    movie = record(dt=None, times=[1, 2, 4, 5, 6])
    assert movie.times.dtype == np.float64
    assert not movie.uniform
    assert message(lambda: movie.dt) == (
        "the frames are not evenly spaced (intervals 1 to 2): expected one frame interval; resample the record, "
        "or cut it where the interval changes"
    )
    assert movie.clip(2, 5).dt == 1.0
    nearly = record(dt=None, times=0.1 * np.arange(5) + 1e-9 * np.array([0, 1, -1, 1, 0]))
    assert nearly.uniform
    assert nearly.dt == pytest.approx(0.1)


def test_dates_and_durations_become_seconds():
    start = np.datetime64("2026-03-01T12:00:00")
    steps = np.arange(5) * np.timedelta64(250, "ms")
    for times in (start + steps, steps):
        np.testing.assert_allclose(record(dt=None, times=times).times, 0.25 * np.arange(5))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(2, 9), st.integers(1, 12), st.data())
def test_slabs_cover_the_record_once(frames, size, data):
    u = np.random.default_rng(frames).normal(size=(frames, 3))
    movie = record(u, dx=1.0)
    pieces = list(movie.slabs(size))
    assert [start for start, _ in pieces] == list(range(0, frames, size))
    np.testing.assert_array_equal(np.concatenate([slab for _, slab in pieces]), u)
    start = data.draw(st.integers(0, frames - 2))
    stop = data.draw(st.integers(start + 2, frames))
    clipped = movie.clip(start, stop)
    np.testing.assert_array_equal(clipped.slab(), u[start:stop])
    np.testing.assert_array_equal(clipped.times, movie.times[start:stop])


def test_replace_keeps_the_mesh():
    movie = record(q=2.0, boundary="periodic")
    other = movie.replace(-MOVIE)
    np.testing.assert_array_equal(other.slab(), -MOVIE)
    assert (other.dx, other.q, other.boundary) == (movie.dx, 2.0, "periodic")
    np.testing.assert_array_equal(other.times, movie.times)
    assert movie.replace(MOVIE[:2], times=[3.0, 4.0]).times.tolist() == [3.0, 4.0]


def test_replace_forgets_what_is_none() -> None:
    movie = record(MOVIE, q=2.0, boundary="neumann", mask=np.arange(5) != 2, length_unit="um", time_unit="s")
    for name in ("q", "boundary", "mask", "length_unit", "time_unit"):
        other = movie.replace(**{name: None})
        assert getattr(other, name) is None
        assert all(getattr(other, rest) is not None for rest in ("q", "boundary", "mask", "time_unit") if rest != name)
    assert movie.replace(dx=3.0).dx == (3.0, 3.0)
    assert np.array_equal(movie.replace(mask=None).slab(), MOVIE)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (3, 2), (0, 6), (5, 6)])
@pytest.mark.parametrize("verb", ["slab", "clip"])
def test_frames_outside_the_record(verb, start, stop):
    text = message(lambda: getattr(record(), verb)(start, stop))
    assert text == f"frames {start} to {stop} lie outside the record, which has 5"


def test_a_slab_has_at_least_one_frame():
    text = message(lambda: next(record().slabs(0)))
    assert text == "size is 0: expected the frames of a slab, an integer from 1"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named_by_frame_and_cell(bad):
    u = MOVIE.copy()
    u[3, 1, 4] = u[4, 0, 0] = bad
    movie = record(u)
    assert movie.slab(0, 3).shape == (3, 4, 6)
    assert message(lambda: movie.slab(2, 5)) == (
        "2 values in frames 2 to 4 are not finite, the first in frame 3 at cell (1, 4): expected finite phase values; "
        "pass mask='finite' where values are missing"
    )


def test_infinities_of_both_signs_and_a_sum_that_overflows():
    u = MOVIE.copy()
    u[1, 0, 0], u[1, 0, 1] = np.inf, -np.inf  # the sum is not a number
    assert message(record(u).slab).startswith("2 values in frames 0 to 4 are not finite, the first in frame 1")
    huge = np.full((2, 3), 1.7e308)  # finite, though the sum is not
    np.testing.assert_array_equal(record(huge).slab(), huge)


def test_a_value_too_large_for_float64_is_not_finite():
    u = MOVIE.astype(np.longdouble)
    u[2, 3, 5] = np.longdouble("1e4000")
    assert "first in frame 2 at cell (3, 5)" in message(record(u).slab)


def test_xarray_coordinates_supply_the_mesh_and_the_times():
    field = xr.DataArray(
        MOVIE.transpose(2, 0, 1),
        dims=("x", "Time", "y"),
        coords={
            "x": np.linspace(1.0, 2.0, 6),
            "y": -0.5 * np.arange(4),  # falling
            "Time": np.datetime64("2026-03-01T00:00") + np.arange(5) * np.timedelta64(90, "s"),
        },
    )
    movie = Record(field)
    assert movie.shape == (5, 4, 6)  # time first, then y and x
    assert movie.dx == pytest.approx((0.5, 0.2))
    np.testing.assert_allclose(movie.times, 90.0 * np.arange(5))
    np.testing.assert_array_equal(movie.slab(1, 3), MOVIE[1:3])


@pytest.mark.parametrize("clock", ["t", "time", "frame", "T", "frames", "Times", "step", "timestep", "anything"])
def test_xarray_time_axis(clock):
    field = xr.DataArray(MOVIE, dims=(clock, "y", "x"), coords={clock: 2.0 * np.arange(5)})
    if clock != "anything":
        field = field.transpose("y", "x", clock)
    movie = Record(field, dx=0.1)
    assert movie.shape == (5, 4, 6)
    assert movie.dt == 2.0


@pytest.mark.parametrize("space", ["y", "x", "Y", "z_um", "x0", "row", "lat", "height"])
def test_an_xarray_whose_time_axis_is_not_known(space):
    field = xr.DataArray(MOVIE, dims=(space, "other", "number"))
    assert message(lambda: Record(field, dx=0.1, dt=1.0)) == (
        f"the axes are named {space}, other, number, and none of the axes is known to be time: expected one of the "
        "names time, t, frame or step; rename it, for example u.rename({'number': 'time'})"
    )
    assert Record(field.rename(number="time"), dx=0.1, dt=1.0).shape == (6, 5, 4)


def test_an_xarray_with_two_time_axes():
    field = xr.DataArray(MOVIE, dims=("frame", "x", "time"))
    assert "and several axes could be time: expected one" in message(lambda: Record(field, dx=0.1, dt=1.0))


def test_axes_without_names_of_their_own_are_in_order():
    assert Record(xr.DataArray(MOVIE), dx=0.1, dt=1.0).shape == (5, 4, 6)


@pytest.mark.parametrize("rounded", [np.float32, lambda x: np.round(x, 5)], ids=["f4", "digits"])
def test_coordinates_and_times_after_rounding_are_even(rounded):
    y, x, t = (rounded(step * np.arange(n)) for step, n in ((2 / 96, 4), (1 / 96, 6), (0.03, 5)))
    movie = Record(xr.DataArray(MOVIE, dims=("time", "y", "x"), coords={"time": t, "y": y, "x": x}))
    assert movie.dx == pytest.approx((2 / 96, 1 / 96), rel=1e-3)
    assert movie.uniform
    assert movie.dt == pytest.approx(0.03, rel=1e-3)


@pytest.mark.parametrize(("start", "frames"), [(0.0, 61), (0.0, 20_000), (1.0, 2000)])
def test_long_movies_with_times_in_single_precision(start, frames):
    times = (start + 5e-5 * np.arange(frames)).astype(np.float32)
    movie = Record(np.zeros((frames, 2)), dx=1.0, times=times)
    assert movie.dt == pytest.approx(5e-5, rel=1e-3)
    assert movie.clip(frames // 2, frames).dt == pytest.approx(movie.dt, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("jump", [1.01, 1.5, 2.0])
def test_one_interval_that_differs_is_still_seen(dtype, jump):
    steps = np.ones(60)
    steps[30] = jump
    times = np.cumsum(steps).astype(dtype)
    assert not Record(np.zeros((60, 4)), dx=1.0, times=times).uniform
    field = xr.DataArray(np.zeros((3, 60)), dims=("t", "x"), coords={"x": times})
    assert "coordinate 'x' is not evenly spaced" in message(lambda: Record(field, dt=1.0))


def test_a_drift_of_the_interval_is_seen():
    times = np.arange(61.0) + 1e-5 * np.arange(61.0) ** 2
    assert not Record(np.zeros((61, 4)), dx=1.0, times=times).uniform


def test_frames_are_whole_numbers():
    assert message(lambda: record().slab(0.5, 3)) == "frames 0.5 to 3: expected integers"
    assert message(lambda: record().clip(0, "a")) == "frames 0 to 'a': expected integers"


def test_only_a_record_is_a_record():
    movie = record()
    assert check_record(movie) is movie
    assert message(lambda: check_record(MOVIE)) == (
        "record is a ndarray: expected a Record; make one with Record(u, dx=, dt=, q=) or open_record(path)"
    )


def test_what_is_passed_wins_over_the_coordinates():
    coords = {"t": np.arange(5.0), "y": np.arange(4.0), "x": np.arange(6.0) ** 2}
    field = xr.DataArray(MOVIE, dims=("t", "y", "x"), coords=coords)
    movie = Record(field, dx=(0.1, 0.2), dt=0.25)
    assert movie.dx == (0.1, 0.2)
    assert movie.dt == 0.25
    assert Record(field, dx=0.1, times=np.arange(5) * 3.0).dt == 3.0


def test_an_uneven_mesh_coordinate():
    field = xr.DataArray(MOVIE, dims=("t", "y", "x"), coords={"y": np.arange(4.0), "x": np.arange(6.0) ** 2})
    assert message(lambda: Record(field, dt=1.0)) == (
        "coordinate 'x' is not evenly spaced: expected a regular mesh; interpolate the field"
    )


def test_a_mesh_coordinate_of_words():
    field = xr.DataArray(MOVIE[:, :, 0], dims=("t", "x"), coords={"x": list("abcd")})
    assert message(lambda: Record(field, dt=1.0)).startswith("coordinate 'x' is array(['a',")


def test_missing_coordinates_are_asked_for():
    field = xr.DataArray(MOVIE, dims=("t", "y", "x"), coords={"x": np.arange(6.0)})
    assert message(lambda: Record(field, dt=1.0)).startswith("the mesh spacing is missing: pass dx=")
    assert message(lambda: Record(field, dx=1.0)).endswith("got neither")


def test_a_dataset_is_not_a_field():
    dataset = xr.Dataset({"u": (("t", "y", "x"), MOVIE), "v": (("t", "y", "x"), MOVIE)})
    assert message(lambda: record(dataset)) == (
        "the field is an xarray Dataset (u, v): expected one DataArray; pass dataset[name]"
    )


def test_large_slabs_are_checked_by_threads(monkeypatch):
    monkeypatch.setattr("doublewell.record.record._LARGE", 64)
    u = np.zeros((5, 6, 7))
    assert record(u).slab().shape == u.shape
    u[3, 1, 4] = np.nan
    assert message(record(u).slab).startswith(
        "1 value in frames 0 to 4 is not finite, the first in frame 3 at cell (1, 4)"
    )


def test_a_dataset_of_h5py_and_its_mask_are_taken_as_they_are(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "movie.h5", "w") as file:
        u = file.create_dataset("u", data=MOVIE, chunks=(1, *MOVIE.shape[1:]))
        mask = file.create_dataset("mask", data=MOVIE.min() < MOVIE, chunks=(1, *MOVIE.shape[1:]))
        record = Record(u, dx=1.0, dt=1.0, mask=mask)
        np.testing.assert_array_equal(record.slab(), np.where(MOVIE.min() < MOVIE, MOVIE, 0.0))


def test_xarray_in_any_order_with_units():
    values = np.random.default_rng(0).uniform(-1, 1, (8, 9, 5))
    places = {"x": ("x", 0.5 * np.arange(8), {"units": "µm"}), "y": ("y", 250.0 * np.arange(9), {"units": "nm"}),
              "time": ("time", 2.0 * np.arange(5), {"units": "min"})}  # fmt: skip
    field = xr.DataArray(values, dims=("x", "y", "time"), coords=places)
    for order in (("x", "y", "time"), ("time", "x", "y"), ("y", "time", "x")):
        record = Record(field.transpose(*order))
        assert (record.shape, record.dx, record.length_unit, record.time_unit) == ((5, 9, 8), (0.25, 0.5), "um", "min")
        np.testing.assert_array_equal(record.slab(), values.transpose(2, 1, 0))
    mask = xr.DataArray(np.arange(72).reshape(8, 9) != 17, dims=("x", "y"))
    assert not Record(field, mask=mask).observed()[0, 8, 1]
    assert Record(field, dx=1.0, dt=1.0).length_unit is None  # a number of your own has no unit
    dated = field.assign_coords(time=np.datetime64("2026-01-01") + np.arange(5) * np.timedelta64(1, "m"))
    assert (Record(dated).time_unit, Record(dated).dt) == ("s", 60.0)


def test_values_on_nodes():
    u = np.random.default_rng(0).uniform(-1, 1, (4, 9, 8))
    u[:, -1], u[:, :, -1] = u[:, 0], u[:, :, 0]
    record = Record(u, dx=0.1, dt=1.0, boundary="periodic", nodes=True)
    np.testing.assert_array_equal(record.slab(), u[:, :-1, :-1])
    assert record.replace(q=1.0).mesh == (8, 7)
    assert Record(u, dx=0.1, dt=1.0, boundary="neumann", nodes=True).mesh == (8, 7)
    with pytest.raises(InputError, match="nodes=True and boundary='neumann' all nodes of a frame .*: expected no mask"):
        Record(u, dx=0.1, dt=1.0, boundary="neumann", nodes=True, mask=np.ones((9, 8), bool))


def test_uneven_times_are_said():
    u = np.zeros((3, 4, 4))
    assert "t = 0 to 3 (uneven), q" in repr(Record(u, dx=1.0, times=[0.0, 1.0, 3.0]))
    assert "uneven" not in repr(Record(u, dx=1.0, dt=1.0))
