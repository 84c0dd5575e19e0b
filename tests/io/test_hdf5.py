"""HDF5: by slabs, never a fill value in place of what was not written; and py-pde's own files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from movie_writers import WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record
from doublewell.record import LazyArray

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def h5(tmp_path):
    def write(fill):
        with h5py.File(tmp_path / "movie.h5", "w") as file:
            file.attrs.update(dx=0.1, dt=1.0)
            fill(file)
        return tmp_path / "movie.h5"

    return write


def test_attributes_and_small_arrays(h5) -> None:
    def fill(file):
        file["run/a/phase"] = MOVIE
        file["run/times"] = [0.0, 1.0, 2.0, 4.0, 5.0]
        file["run"].attrs["q"] = 2
        file["run/boundary"] = "periodic"
        file["run/a/phase"].attrs["dx"] = np.array([0.5, 0.25], dtype="f4")
        file["run/a"].attrs["length_unit"] = np.bytes_(b"um")

    record = open_record(h5(fill))
    assert (record.dx, record.q, record.boundary, record.length_unit) == ((0.5, 0.25), None, "periodic", "um")
    assert record.times.tolist() == [0.0, 1.0, 2.0, 4.0, 5.0]
    assert isinstance(record.values, LazyArray)
    np.testing.assert_array_equal(np.asarray(record.values), MOVIE)


def test_labels_of_axes(h5) -> None:
    def fill(file):
        file["u"] = np.moveaxis(MOVIE, 0, -1)
        for axis, name in zip(file["u"].dims, ("y", "x", "time"), strict=True):
            axis.label = name

    np.testing.assert_array_equal(open_record(h5(fill)).slab(), MOVIE)


@pytest.mark.parametrize(
    ("shape", "words"), [((9,), "holds no field: .*found u .9,.;"), ((2, 2, 2, 2, 2), "holds no field")]
)
def test_wrong_rank(shape, words, h5) -> None:
    path = h5(lambda file: file.create_dataset("u", data=np.zeros(shape)))
    with refused(words):
        open_record(path)
    with refused(r"movie.h5: the field has shape .*expected u\[t, x\]"):
        open_record(path, var="u")


def test_several_arrays_are_listed(h5) -> None:
    def fill(file):
        file["a/phi"], file["b/phi"], file["names"] = MOVIE, -MOVIE, np.array([[b"x", b"y"]])

    path = h5(fill)
    with refused(r"several arrays .*a/phi \(5, 4, 6\), b/phi \(5, 4, 6\): pass var="):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, var="b/phi").slab(), -MOVIE)
    with refused(r"has no array 'c': expected one of its arrays, a/phi \(5, 4, 6\), b/phi \(5, 4, 6\)"):
        open_record(path, var="c")


def test_what_was_never_written_raises(h5) -> None:
    def fill(file):
        data = file.create_dataset("u", shape=MOVIE.shape, chunks=(2, 2, 6), dtype="f8")
        data[:2], data[2:4, :2] = MOVIE[:2], MOVIE[2:4, :2]

    record = open_record(h5(fill))
    np.testing.assert_array_equal(record.slab(0, 2), MOVIE[:2])
    with refused(r"a part of array 'u' was never written, within 2 to 3, 2 to 3, 0 to 5 along its axes; HDF5 "):
        record.slab(1, 3)
    with refused("was never written"):
        record.slab()
    with refused("array 'u' was never written: run what wrote the file again"):
        open_record(h5(lambda file: file.create_dataset("u", shape=(3, 4), dtype="f8"))).slab()
    record = open_record(h5(lambda file: file.create_dataset("u", shape=(3, 4), dtype="f8", fillvalue=-1.0)))
    assert np.all(record.slab() == -1.0)  # a chosen fill value is data


def test_other_files_are_not_followed(h5, tmp_path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["u"] = MOVIE
    with refused("holds no field: .*found no arrays"):
        open_record(h5(lambda file: file.__setitem__("u", h5py.ExternalLink(str(tmp_path / "other.h5"), "u"))))
    layout = h5py.VirtualLayout(MOVIE.shape, "f8")
    layout[...] = h5py.VirtualSource(str(tmp_path / "other.h5"), "u", MOVIE.shape)
    with refused("array 'u' lies in other files, .*copy it into one file first, with h5repack"):
        open_record(h5(lambda file: file.create_virtual_dataset("u", layout))).slab()


def test_a_truncated_file(h5) -> None:
    path = h5(lambda file: file.create_dataset("u", data=MOVIE))
    path.write_bytes(path.read_bytes()[:-100])
    with refused("movie.h5 is damaged or not in the HDF5 format"):
        open_record(path)


def test_a_damaged_chunk_is_found(h5) -> None:
    noise = np.random.default_rng(0).standard_normal(MOVIE.shape)
    path = h5(lambda file: file.create_dataset("u", data=noise, chunks=(1, 4, 6), compression="gzip", fletcher32=True))
    raw = bytearray(path.read_bytes())
    raw[-30] ^= 1
    path.write_bytes(raw)
    with refused("movie.h5 is damaged or not in the HDF5 format"):
        open_record(path).slab()


def test_a_broken_heap_does_not_hang(h5) -> None:
    def fill(file):
        file["u"] = MOVIE
        file["u"].attrs["units"] = "a text of any length"

    path = h5(fill)
    raw = bytearray(path.read_bytes())
    place = raw.index(b"GCOL")
    raw[place + 24 : place + 32] = (4000).to_bytes(8, "little")  # the length of the first text
    path.write_bytes(raw)
    with refused("movie.h5 is damaged or cut short .a heap of texts is broken"):
        open_record(path)


def test_not_finite_values_are_named(h5) -> None:
    u = MOVIE.copy()
    u[2, 1, 0] = np.nan
    record = open_record(h5(lambda file: file.create_dataset("u", data=u)))
    with refused(r"first in frame 2 at cell \(1, 0\)"):
        record.slab()


def test_py_pde_writes_what_the_writer_writes(tmp_path) -> None:
    import pde

    grid = pde.CartesianGrid([[0, 3], [0, 2]], [6, 4], periodic=[True, True])
    fields = [pde.ScalarField(grid, frame.T, label="phi") for frame in MOVIE]
    storage = pde.FileStorage(tmp_path / "movie.hdf5")
    storage.start_writing(fields[0])
    for time, field in enumerate(fields):
        storage.append(field, 0.5 * time)
    storage.end_writing()
    storage.close()
    record = open_record(tmp_path / "movie.hdf5")
    assert (record.dx, record.dt, record.boundary) == ((0.5, 0.5), 0.5, "periodic")
    np.testing.assert_array_equal(record.slab(), MOVIE)
    assert open_record(tmp_path / "movie.hdf5", var="phi").frames == 5
    path, _ = WRITERS["py_pde"](tmp_path / "..", MOVIE)
    with h5py.File(tmp_path / "movie.hdf5") as real, h5py.File(path) as ours:
        assert set(ours) == set(real)
        assert set(ours.attrs) <= set(real.attrs)
        assert (ours["data"].dtype, ours["data"].shape) == (real["data"].dtype, real["data"].shape)


def test_a_collection_of_py_pde(tmp_path) -> None:
    import pde

    grid = pde.UnitGrid([6, 4])
    parts = [pde.VectorField(grid), pde.ScalarField(grid, MOVIE[0].T), pde.ScalarField(grid, MOVIE[1].T)]
    state = pde.FieldCollection(parts, labels=["v", "a", "b"])
    storage = pde.FileStorage(tmp_path / "movie.h5")
    storage.start_writing(state)
    for time in range(3):
        storage.append(state, time)
    storage.end_writing()
    storage.close()
    with refused("holds several scalar fields: pass var= with one of a, b"):
        open_record(tmp_path / "movie.h5")
    record = open_record(tmp_path / "movie.h5", var="b")
    assert (record.dx, record.boundary) == ((1.0, 1.0), None)
    np.testing.assert_array_equal(record.slab(2), MOVIE[1:2])
    with refused("has no scalar field 'v': pass var= with one of a, b"):
        open_record(tmp_path / "movie.h5", var="v")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"class": '"VectorField"'}, "holds vectors or tensors only"),
        ({"grid": '{"class": "SphericalSymGrid", "shape": [4], "radius": 2}'}, "has a SphericalSymGrid of py-pde"),
        ({"grid": '{"class": "UnitGrid", "shape": [9, 9], "periodic": [true, true]}'}, "its data have shape"),
        ({"grid": "{"}, "movie.hdf5 is damaged"),
    ],
)
def test_storages_of_py_pde_that_cannot_be_used(change, words, tmp_path) -> None:
    import json

    path, _ = WRITERS["py_pde"](tmp_path, MOVIE)
    with h5py.File(path, "r+") as file:
        file.attrs["field_attributes"] = json.dumps(json.loads(file.attrs["field_attributes"]) | change)
    with refused(words):
        open_record(path)


def test_a_storage_that_was_cut_short(tmp_path) -> None:
    path, _ = WRITERS["py_pde"](tmp_path, MOVIE)
    with h5py.File(path, "r+") as file:
        file.attrs["data_length"] = "3"
    assert open_record(path).shape == (3, 4, 6)
    np.testing.assert_array_equal(open_record(path).slab(), MOVIE[:3])


def test_vectors_beside_the_field(tmp_path) -> None:
    u = np.random.default_rng(0).uniform(-1, 1, (6, 4, 5))
    with h5py.File(tmp_path / "run.h5", "w") as file:
        run = file.create_group("run")
        run["phi"], run["time"], run["y"] = u, np.arange(5.0), 0.25 * np.arange(4)
        run["x_grid"] = 500 * np.arange(6.0)
        run["X"], run["Y"] = np.zeros((6, 4)), np.zeros((6, 4))
        run["y"].attrs["units"], run["x_grid"].attrs["units"], run["time"].attrs["units"] = "um", "nm", "ms"
    record = open_record(tmp_path / "run.h5")
    assert (record.dx, record.length_unit, record.dt, record.time_unit) == ((250.0, 500.0), "nm", 1.0, "ms")
    np.testing.assert_array_equal(record.slab(), u.transpose(2, 1, 0))
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        del file["run/time"]
    assert open_record(tmp_path / "run.h5", dt=0.5).shape == (5, 4, 6)  # the axis that is left is time
