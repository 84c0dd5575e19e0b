"""A mask goes to disk beside its field and comes back; masks of other programs are found by name."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import scipy.io
import xarray as xr

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record, checksum

RNG = np.random.default_rng(3)
MOVIE = RNG.uniform(-1, 1, (5, 4, 6))
WHOLE = RNG.random(MOVIE.shape) < 0.7
MASKS = {
    "values": WHOLE,
    "frame": WHOLE[0],
    "frames": np.array([True, False, True, True, False]),
    "rows": np.array([True, False, True, True])[None, :, None],
    "one plane": WHOLE[:, :, :1],
}
GAPS = np.where(WHOLE, MOVIE, np.nan)


def message(call):
    with pytest.raises(InputError) as error:
        call()
    return str(error.value)


class Stored:
    def __init__(self, values):
        self.values, self.shape, self.dtype, self.ndim = values, values.shape, values.dtype, values.ndim

    def __getitem__(self, index):
        return self.values[index]


@pytest.mark.parametrize("suffix", [".npz", ".zarr", ".nc"])
@pytest.mark.parametrize("kind", MASKS)
def test_a_mask_comes_back(tmp_path, suffix, kind):
    record = Record(MOVIE, dx=0.1, dt=0.5, mask=MASKS[kind])
    path = tmp_path / f"movie{suffix}"
    save(record, path)
    again = open_record(path)
    np.testing.assert_array_equal(again.observed(), record.observed())
    np.testing.assert_array_equal(again.slab(), record.slab())
    assert checksum(again) == checksum(record)
    assert tuple(again.mask.shape) == tuple(record.mask.shape)


@pytest.mark.parametrize("suffix", [".npz", ".zarr", ".nc"])
def test_a_stored_mask_is_written_by_slabs_and_without_a_mask_there_is_none(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("doublewell.io.format._SLAB", 8 * 24 * 2)
    record = Record(Stored(GAPS), dx=0.1, dt=0.5, mask=Stored(WHOLE))
    save(record, tmp_path / f"movie{suffix}")
    np.testing.assert_array_equal(open_record(tmp_path / f"movie{suffix}").observed(), WHOLE)
    save(Record(MOVIE, dx=0.1, dt=0.5), tmp_path / f"movie{suffix}")
    assert open_record(tmp_path / f"movie{suffix}").mask is None


def test_other_programs_see_nan(tmp_path):
    save(Record(MOVIE, dx=0.1, dt=0.5, mask=WHOLE[0]), tmp_path / "movie.nc")
    with xr.open_dataset(tmp_path / "movie.nc", engine="h5netcdf") as found:
        np.testing.assert_array_equal(np.isfinite(found["u"].values), np.broadcast_to(WHOLE[0], MOVIE.shape))
        assert found["seen"].dims == ("y", "x")
    save(Record(MOVIE, dx=0.1, dt=0.5, mask=WHOLE), tmp_path / "movie.npz")
    with np.load(tmp_path / "movie.npz") as found:
        np.testing.assert_array_equal(found["u"], GAPS)
        assert found["seen"].dtype == bool


def hdf5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
@pytest.mark.parametrize("kind", ["values", "frame", "frames"])
def test_a_mask_by_its_name(tmp_path, kind, dtype):
    mask = MASKS[kind].astype(dtype)
    hdf5(tmp_path / "movie.h5", u=GAPS if kind == "values" else MOVIE, good=mask)
    np.savez(tmp_path / "movie.npz", u=GAPS if kind == "values" else MOVIE, good=mask)
    expected = Record(MOVIE, dx=0.1, dt=0.5, mask=MASKS[kind]).observed()
    for name in ("movie.h5", "movie.npz"):
        record = open_record(tmp_path / name, dx=0.1, dt=0.5, var="u", mask="good")
        np.testing.assert_array_equal(record.observed(), expected)
        np.testing.assert_array_equal(record.slab(), np.where(expected, MOVIE, 0.0))


def test_a_mask_of_named_axes_with_time_last(tmp_path):
    axes = ("y", "x", "time")
    data = {
        "u": (axes, MOVIE.transpose(1, 2, 0)),
        "frame": (("y", "x"), WHOLE[0].astype(np.int8)),
        "lost": (("time",), MASKS["frames"].astype(np.int8)),
        "all": (axes, WHOLE.transpose(1, 2, 0).astype(np.int8)),
        "columns": (("x",), WHOLE[0, 0].astype(np.int8)),
    }
    xr.Dataset(data).to_netcdf(tmp_path / "movie.nc", engine="h5netcdf")
    whole = {"frame": WHOLE[:1], "lost": MASKS["frames"][:, None, None], "all": WHOLE, "columns": WHOLE[:1, :1]}
    for name, mask in whole.items():
        record = open_record(tmp_path / "movie.nc", dx=0.1, dt=0.5, var="u", mask=name)
        np.testing.assert_array_equal(record.observed(), np.broadcast_to(mask, MOVIE.shape))


def test_a_mask_without_names_in_the_order_of_axes(tmp_path):
    np.savez(tmp_path / "movie.npz", u=MOVIE.transpose(2, 1, 0), good=WHOLE.transpose(2, 1, 0), frame=WHOLE[0].T)
    for name, mask in (("good", WHOLE), ("frame", WHOLE[:1])):
        record = open_record(tmp_path / "movie.npz", axes="xyt", dx=0.1, dt=0.5, var="u", mask=name)
        np.testing.assert_array_equal(record.observed(), np.broadcast_to(mask, MOVIE.shape))


def test_a_mask_in_an_npy_file_and_in_matlab(tmp_path):
    np.save(tmp_path / "movie.npy", GAPS)
    np.save(tmp_path / "mask.npy", WHOLE)
    for mask in (tmp_path / "mask.npy", str(tmp_path / "mask.npy"), WHOLE, "finite"):
        record = open_record(tmp_path / "movie.npy", dx=0.1, dt=0.5, mask=mask)
        np.testing.assert_array_equal(record.observed(), WHOLE)
    scipy.io.savemat(tmp_path / "movie.mat", {"u": MOVIE, "good": WHOLE[0].astype(np.uint8)})
    record = open_record(tmp_path / "movie.mat", axes="tyx", dx=0.1, dt=0.5, var="u", mask="good")
    np.testing.assert_array_equal(record.observed(2, 3)[0], WHOLE[0])


def test_fill_values_and_nan_name_the_mask(tmp_path):
    field = xr.DataArray(GAPS.astype(np.float32), dims=("time", "y", "x"), name="u")
    field.to_netcdf(tmp_path / "movie.nc", engine="h5netcdf", encoding={"u": {"_FillValue": np.float32(-9999.0)}})
    broken = open_record(tmp_path / "movie.nc", dx=0.1, dt=0.5)
    for record in (broken, Record(field, dx=0.1, dt=0.5)):
        assert message(record.slab).endswith("pass mask='finite' where values are missing")
    record = open_record(tmp_path / "movie.nc", dx=0.1, dt=0.5, mask="finite")
    np.testing.assert_array_equal(record.observed(), WHOLE)
    np.testing.assert_allclose(record.slab(), np.where(WHOLE, MOVIE, 0.0), atol=1e-7)


def test_wrong_masks_are_named(tmp_path):
    np.savez(tmp_path / "movie.npz", u=MOVIE, good=WHOLE, short=WHOLE[:3], floats=MOVIE)

    def opened(mask):
        return message(lambda: open_record(tmp_path / "movie.npz", dx=0.1, dt=0.5, var="u", mask=mask))

    assert "has no array 'bad': expected one of its arrays" in opened("bad")
    assert "mask 'floats' has type float64: expected booleans, or 0 (missing) and 1 (observed)" in opened("floats")
    assert "movie.npz: mask has shape (3, 4, 6): expected (4, 6) (fixed in time)" in opened("short")
    assert "nowhere.npy cannot be read: No such file" in opened(tmp_path / "nowhere.npy")
