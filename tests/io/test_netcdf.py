"""netCDF: written exactly, read of both versions, with the conventions of xarray."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr
from movie_writers import WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8"])
@pytest.mark.parametrize("mesh", [(7,), (4, 5), (3, 4, 5)])
def test_round_trip_is_exact(mesh, dtype, same, tmp_path) -> None:
    rng = np.random.default_rng(3)
    u = rng.standard_normal((6, *mesh)).astype(dtype)
    record = Record(u, dx=rng.random(len(mesh)), times=np.cumsum(rng.random(6)), q=1 / 3, boundary="periodic")
    save(record, tmp_path / "movie.nc")
    back = open_record(tmp_path / "movie.nc")
    assert same(back, record)
    assert back.values.dtype == np.dtype(dtype).newbyteorder("=")


def test_narrow_floats_become_wider(same, tmp_path) -> None:
    record = Record(MOVIE.astype("f2"), dx=0.1, dt=1.0)
    save(record, tmp_path / "movie.nc")
    assert same(open_record(tmp_path / "movie.nc"), record)
    assert open_record(tmp_path / "movie.nc").values.dtype == np.float32  # netCDF has no floats of 2 bytes


def test_xarray_opens_what_is_saved(small, tmp_path) -> None:
    save(Record(small.values, dx=small.dx, times=small.times, length_unit="um", time_unit="s"), tmp_path / "movie.nc")
    with xr.open_dataset(tmp_path / "movie.nc", engine="h5netcdf", decode_times=False) as found:
        assert found.u.dims == ("time", "y", "x")
        np.testing.assert_array_equal(found.u.values, small.slab())
        np.testing.assert_array_equal(found.time.values, small.times)
        np.testing.assert_allclose(np.diff(found.y.values), small.dx[0])
        assert (found.y.units, found.time.units) == ("um", "s")


@pytest.mark.parametrize("engine", ["h5netcdf", "scipy"])
def test_packed_numbers_and_fill_values(engine, tmp_path) -> None:
    field = xr.DataArray(MOVIE.copy(), dims=("t", "y", "x"), name="phase")
    packed = {"dtype": "i2", "scale_factor": 1e-4, "add_offset": 0.25, "_FillValue": -32768}
    field.to_dataset().to_netcdf(tmp_path / "movie.nc", engine=engine, encoding={"phase": packed})
    record = open_record(tmp_path / "movie.nc", dx=0.1, dt=1.0)
    np.testing.assert_allclose(record.slab(), MOVIE, atol=0.51e-4)
    field[3, 2, 1] = np.nan
    field.to_dataset().to_netcdf(tmp_path / "lost.nc", engine=engine, encoding={"phase": packed})
    with refused(r"first in frame 3 at cell \(2, 1\)"):
        open_record(tmp_path / "lost.nc", dx=0.1, dt=1.0).slab()


def test_one_layer_and_dates(tmp_path) -> None:
    days = np.datetime64("2026-01-01", "ns") + np.arange(5) * np.timedelta64(1, "h")
    coords = {"time": days, "z": [0.5], "x": 0.5 * np.arange(6), "y": 0.25 * np.arange(4)}
    field = xr.DataArray(MOVIE[:, None].swapaxes(2, 3), dims=("time", "z", "x", "y"), coords=coords, name="phase")
    field.to_dataset().to_netcdf(tmp_path / "movie.nc", engine="h5netcdf")
    record = open_record(tmp_path / "movie.nc")
    assert (record.dx, record.dt, record.time_unit) == ((0.25, 0.5), 3600.0, "s")
    np.testing.assert_array_equal(record.slab(), MOVIE)


def test_dimensions_without_coordinates(tmp_path) -> None:
    data = xr.Dataset({"a": (("time", "y", "x"), MOVIE), "b": (("time", "y", "x"), -MOVIE)})
    for engine in ("h5netcdf", "scipy"):
        data.to_netcdf(tmp_path / "movie.nc", engine=engine)
        with refused(r"several arrays that could be the field, a \(5, 4, 6\), b \(5, 4, 6\): pass var="):
            open_record(tmp_path / "movie.nc")
        with refused("has no mesh spacing and no frame interval"):
            open_record(tmp_path / "movie.nc", var="a")
        np.testing.assert_array_equal(open_record(tmp_path / "movie.nc", var="b", dx=1, dt=1).slab(1, 3), -MOVIE[1:3])


def test_kinds_that_are_not_read(tmp_path) -> None:
    path, _ = WRITERS["netcdf3"](tmp_path, MOVIE)
    raw = bytearray(path.read_bytes())
    raw[3] = 5
    path.write_bytes(raw)
    with refused("is netCDF of the kind CDF-5: convert it with nccopy -k nc4 movie.nc new.nc"):
        open_record(path)
    path.write_bytes(WRITERS["netcdf3"](tmp_path, MOVIE)[0].read_bytes()[:-500])
    with refused("movie.nc is damaged or not in the netCDF format"):
        open_record(path).slab()


def test_a_missing_library(small, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    with refused(r"writing netCDF files needs the library h5netcdf, .*run pip install 'doublewell\[netcdf\]'$"):
        save(small, tmp_path / "movie.nc")
    assert list(tmp_path.iterdir()) == []
