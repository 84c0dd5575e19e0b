"""Files larger than memory: 30 GB that take no disk, of which a slab is read without more memory than the slab."""

from __future__ import annotations

import tracemalloc
import zipfile

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from doublewell.io import open_record
from doublewell.io.format import _read_mapped
from doublewell.io.formats import npz

SHAPE = (4000, 1024, 1024)  # of float64: 31 GiB
FRAME = np.linspace(-1, 1, 1024 * 1024).reshape(1024, 1024)
LIMIT = 4 * FRAME.nbytes


def npy(path):
    array = np.lib.format.open_memmap(path / "movie.npy", "w+", "f8", SHAPE)
    array[3000] = FRAME
    return path / "movie.npy"


def hdf5(path):
    with h5py.File(path / "movie.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple(SHAPE)
        h5py.h5d.create(file.id, b"u", h5py.h5t.NATIVE_DOUBLE, space, plist)
        file["u"][3000] = FRAME
    return path / "movie.h5"


def big_tiff(path):
    array = tifffile.memmap(path / "movie.tif", shape=SHAPE, dtype="f8", bigtiff=True, photometric="minisblack")
    array[3000] = FRAME
    return path / "movie.tif"


def zarr_store(path):
    array = zarr.create_array(path / "movie.zarr", shape=SHAPE, chunks=(1, 1024, 1024), dtype="f8", fill_value=1.0)
    array[3000] = FRAME
    return path / "movie.zarr"


@pytest.mark.parametrize("write", [npy, hdf5, big_tiff, zarr_store])
def test_a_slab_of_thirty_gigabytes(write, tmp_path) -> None:
    path = write(tmp_path)
    if path.is_file() and path.stat().st_blocks * 512 > 2**30:
        path.unlink()
        pytest.skip("this disk keeps no sparse files")
    tracemalloc.start()
    try:
        record = open_record(path, dx=0.1, dt=1.0)
        slab = record.slab(3000, 3001)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        if path.is_file():
            path.unlink()
    assert record.shape == SHAPE
    np.testing.assert_array_equal(slab[0], FRAME)
    assert peak < LIMIT


def test_a_large_archive_is_mapped(tmp_path, monkeypatch) -> None:
    u = np.linspace(-1, 1, 60).reshape(3, 4, 5)
    np.savez(tmp_path / "c.npz", dx=1.0, u=u, dt=1.0)
    np.savez(tmp_path / "f.npz", dx=1.0, u=np.asfortranarray(u), dt=1.0)
    monkeypatch.setattr(npz, "_MAPPED", 100)
    for name in ("c.npz", "f.npz"):
        record = open_record(tmp_path / name)
        assert record.values.read.func is _read_mapped
        np.testing.assert_array_equal(record.slab(), u)
        np.testing.assert_array_equal(record.slab(1, 2), u[1:2])


def test_a_packed_archive_that_is_too_large(tmp_path, monkeypatch) -> None:
    np.savez_compressed(tmp_path / "movie.npz", u=np.zeros((3, 4, 5)), dx=1.0, dt=1.0)
    assert zipfile.is_zipfile(tmp_path / "movie.npz")
    monkeypatch.setattr("doublewell.io.format.os.sysconf", lambda name: 16)
    with pytest.raises(ValueError, match="can only be read whole, .*save it with numpy.savez, without compression"):
        open_record(tmp_path / "movie.npz")
