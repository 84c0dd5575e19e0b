"""A zarr store that xarray wrote says its mesh and times by coordinates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

from doublewell.errors import InputError
from doublewell.io import open_record

START = np.datetime64("2026-03-01", "ns")
MINUTES = np.arange(5) * np.timedelta64(90, "s").astype("m8[ns]")


def movie(**coords):
    values = np.random.default_rng(0).uniform(-1, 1, (5, 4, 6))
    places = {"time": 0.5 * np.arange(5), "y": 0.2 * np.arange(4), "x": np.float32(0.1) * np.arange(6, dtype="f4")}
    return xr.DataArray(values, dims=("time", "y", "x"), coords=places | coords, name="phase", attrs={"q": 2.0})


def write(field, path, zarr_format=2, **encoding):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of consolidated metadata, which are not in the specification yet
        field.to_dataset().to_zarr(path, zarr_format=zarr_format, encoding=encoding)
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_mesh_and_times_come_from_the_coordinates(zarr_format, tmp_path) -> None:
    record = open_record(write(movie(), tmp_path / "movie.zarr", zarr_format))
    assert record.dx == pytest.approx((0.2, 0.1))
    assert (record.dt, record.q) == (0.5, 2.0)
    np.testing.assert_array_equal(record.slab(), movie().values)


@pytest.mark.parametrize("time", [START + MINUTES, START + MINUTES / 45 * 3600], ids=["dates", "hours"])
def test_dates_become_seconds(time, tmp_path) -> None:
    record = open_record(write(movie(time=time), tmp_path / "movie.zarr"))
    seconds = (time - time[0]) / np.timedelta64(1, "s")
    np.testing.assert_allclose(record.times - record.times[0], seconds)


def test_an_argument_takes_the_place_of_a_coordinate(tmp_path) -> None:
    path = write(movie(x=np.arange(6.0) ** 2), tmp_path / "movie.zarr")
    with pytest.raises(InputError, match=r"movie.zarr: coordinate 'x' is not evenly spaced"):
        open_record(path)
    record = open_record(path, dx=0.3, dt=2.0)
    assert record.dx == (0.3, 0.3)
    assert record.dt == 2.0


def test_attributes_come_before_coordinates(tmp_path) -> None:
    field = movie()
    field.attrs |= {"dx": [0.3, 0.4], "dt": 7.0}
    record = open_record(write(field, tmp_path / "movie.zarr"))
    assert record.dx == (0.3, 0.4)
    assert record.dt == 7.0


def test_missing_coordinates_are_asked_for(tmp_path) -> None:
    path = write(movie().drop_vars("y"), tmp_path / "movie.zarr")
    with pytest.raises(InputError, match="has no mesh spacing: pass dx="):
        open_record(path)
    assert open_record(path, dx=1.0).dt == 0.5


@pytest.mark.parametrize("order", [("y", "x", "time"), ("x", "time", "y")])
def test_names_put_the_axes_in_order(order, tmp_path) -> None:
    record = open_record(write(movie().transpose(*order), tmp_path / "movie.zarr"))
    assert record.dx == pytest.approx((0.2, 0.1))
    assert record.dt == 0.5
    np.testing.assert_array_equal(record.slab(), movie().values)
    np.testing.assert_array_equal(record.slab(1, 3), movie().values[1:3])


def test_axes_without_a_known_time_are_asked_for(tmp_path) -> None:
    path = write(movie().rename(time="z"), tmp_path / "unknown.zarr")
    words = "unknown.zarr: the axes are named z, y, x, and none of the axes is known .*pass axes=.*axes='tyx'"
    with pytest.raises(InputError, match=words):
        open_record(path, dx=1.0, dt=1.0)
    record = open_record(path, axes="tyx", dt=2.0)
    assert record.dx == pytest.approx((0.2, 0.1))
    with pytest.raises(InputError, match="has no frame interval"):  # the steps of an axis z are no times
        open_record(path, axes="tyx")


def test_units_of_coordinates_are_kept(tmp_path) -> None:
    field = movie()
    for name, unit in (("time", "ms"), ("y", "nm"), ("x", "micrometer")):
        field[name].attrs["units"] = unit
    record = open_record(write(field, tmp_path / "movie.zarr"))
    assert (record.length_unit, record.time_unit) == ("um", "ms")
    assert record.dx == pytest.approx((0.0002, 0.1))
    assert open_record(tmp_path / "movie.zarr", dx=1.0).length_unit is None
    assert open_record(tmp_path / "movie.zarr", dx=1.0, length_unit="mm").length_unit == "mm"


def test_a_first_time_of_zero_in_a_chunk_of_its_own(tmp_path) -> None:
    """zarr does not write a chunk that equals the fill value."""
    path = write(movie(time=3 * np.arange(5)), tmp_path / "movie.zarr", time={"chunks": (1,)})
    assert open_record(path).dt == 3.0


def test_a_lost_chunk_of_a_coordinate_is_no_mesh(tmp_path) -> None:
    path = write(movie(time=3 * np.arange(1, 6)), tmp_path / "movie.zarr", time={"chunks": (1,)})
    for file in (path / "time" / "3", path / "time" / "c" / "3"):
        if file.exists():
            file.unlink()
    with pytest.raises(InputError, match="times must be finite and increase"):
        open_record(path)


def test_names_that_lead_out_of_the_store_are_not_followed(tmp_path) -> None:
    write(movie(), tmp_path / "other.zarr")
    group = zarr.create_group(tmp_path / "movie.zarr", zarr_format=3)
    names = ("../other.zarr/time", "../other.zarr/y", "../other.zarr/x")
    field = group.create_array("u", shape=(5, 4, 6), dtype="f8", dimension_names=names)
    field[...] = 0.5
    with pytest.raises(InputError, match="has no mesh spacing"):
        open_record(tmp_path / "movie.zarr")


def test_coordinates_that_are_no_lines_are_left_alone(tmp_path) -> None:
    group = zarr.create_group(tmp_path / "movie.zarr", zarr_format=3)
    for name, shape in (("u", (5, 4)), ("x", (4, 4)), ("t", (5,))):
        names = ("t", "x") if name == "u" else None
        array = group.create_array(name, shape=shape, dtype="f8", dimension_names=names)
        array[...] = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    with pytest.raises(InputError, match="has no mesh spacing"):
        open_record(tmp_path / "movie.zarr")
    assert open_record(tmp_path / "movie.zarr", dx=1.0).dt == 1.0
