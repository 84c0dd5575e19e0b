"""zarr folders: lazy, exact, and never a fill value in place of lost data."""

import json
import shutil

import numpy as np
import pytest
import zarr

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import LazyArray, Record


def refused(match):
    return pytest.raises(InputError, match=match)


def add(group, name, data):
    """Write an array the way that every zarr 3 knows."""
    array = group.create_array(name, shape=data.shape, dtype=data.dtype)
    array[...] = data
    return array


def chunk(store, *place):
    return store.joinpath("u", "c", *map(str, place))


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8"])
@pytest.mark.parametrize("mesh", [(7,), (4, 5), (3, 4, 5)])
def test_round_trip_is_exact(mesh, dtype, same, tmp_path):
    rng = np.random.default_rng(3)
    u = rng.standard_normal((6, *mesh)).astype(dtype)
    record = Record(u, dx=rng.random(len(mesh)), times=np.cumsum(rng.random(6)), q=1 / 3, boundary="periodic")
    save(record, tmp_path / "movie.zarr")
    back = open_record(tmp_path / "movie.zarr")
    assert same(back, record)
    assert back.values.dtype == np.dtype(dtype).newbyteorder("=")


def test_unknown_q_and_boundary_are_absent(tmp_path):
    save(Record(np.zeros((3, 4)), dx=0.1, dt=1.0), tmp_path / "movie.zarr")
    assert sorted(zarr.open(tmp_path / "movie.zarr").attrs) == ["dx", "format", "times", "version"]
    assert open_record(tmp_path / "movie.zarr").q is None


def test_opening_reads_no_values(stored):
    for file in (stored / "u" / "c").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no longer a chunk")
    record = open_record(stored)
    assert (record.shape, record.dx, record.dt) == ((6, 4, 5), (1 / 3, 0.1), 0.5)
    with refused("is damaged or not in the zarr format"):
        record.slab(0, 1)


def test_a_slab_reads_its_own_chunks_only(stored, small):
    shutil.rmtree(chunk(stored, 2))
    record = open_record(stored)
    assert np.array_equal(record.slab(1, 4), small.slab(1, 4))
    assert np.array_equal(record.clip(0, 4).slab(), small.slab(0, 4))


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((100, 64, 64), (50, 64, 64)),  # 32 kB a frame, two chunks of 1.6 MB
        ((100, 512, 512), (1, 512, 512)),  # 2 MB a frame
        ((3, 1024, 1024), (1, 256, 1024)),  # 8 MB a frame
        ((3, 256, 256, 256), (1, 4, 256, 256)),  # 128 MB a frame
        ((2, 600000), (1, 200000)),
    ],
)
def test_chunks_hold_about_two_megabytes(shape, chunks, tmp_path):
    record = Record(np.broadcast_to(np.float64(0.5), shape), dx=0.1, dt=1.0)

    class Stop(Exception):
        pass

    class Empty:
        shape, dtype, ndim = record.shape, record.values.dtype, record.values.ndim

        def __getitem__(self, frames):
            [store] = tmp_path.glob(".movie*")
            self.chunks = zarr.open(store / "u", mode="r").chunks
            raise Stop

    empty = Empty()
    with pytest.raises(Stop):
        save(record.replace(empty), tmp_path / "movie.zarr")
    assert empty.chunks == chunks
    assert list(tmp_path.iterdir()) == []


def test_every_chunk_is_written_even_an_empty_one(tmp_path):
    save(Record(np.zeros((3, 4, 4)), dx=0.1, dt=1.0), tmp_path / "movie.zarr")
    array = zarr.open(tmp_path / "movie.zarr")["u"]
    assert np.isnan(array.fill_value)
    assert chunk(tmp_path / "movie.zarr", 0, 0, 0).is_file()


def test_a_missing_chunk_raises(stored):
    shutil.rmtree(chunk(stored, 1))
    assert np.all(zarr.open(stored)["u"][2:4] == 0)  # what zarr makes of it
    record = open_record(stored)
    record.slab(0, 2)
    with refused(
        r"movie\.zarr: chunk c/1/0/0 of array 'u' is missing, frames 2 to 3; zarr would give 0\.0 there\. "
        r"Copy the store again, cut the record before frame 2, .*write_empty_chunks=True"
    ):
        record.slab(1, 3)
    with refused("frames 2 to 3"):
        record.slab()


def test_a_missing_chunk_of_our_own_file_raises(small, tmp_path):
    save(small, tmp_path / "movie.zarr")
    chunk(tmp_path / "movie.zarr", 0, 0, 0).unlink()
    with refused("frames 0 to 5; zarr would give nan there"):
        open_record(tmp_path / "movie.zarr").slab()


def test_a_chosen_fill_value_is_data(tmp_path):
    array = zarr.create_array(tmp_path / "m.zarr", shape=(4, 6), chunks=(1, 3), dtype="f8", fill_value=-1.0)
    array[1, 4] = 0.5
    array.attrs.update(dx=0.1, dt=1.0)
    expected = np.full((4, 6), -1.0)
    expected[1, 4] = 0.5
    assert np.array_equal(open_record(tmp_path / "m.zarr").slab(), expected)


def test_shards_count_as_what_is_stored(tmp_path):
    array = zarr.create_array(tmp_path / "m.zarr", shape=(8, 6), chunks=(1, 3), shards=(4, 6), dtype="f8")
    array[:] = 0.5
    array.attrs.update(dx=0.1, dt=1.0)
    record = open_record(tmp_path / "m.zarr")
    assert np.all(record.slab() == 0.5)
    shutil.rmtree(tmp_path / "m.zarr" / "c" / "1")
    record.slab(0, 4)
    with refused("frames 4 to 7"):
        record.slab(3, 5)


def test_a_flipped_bit_in_a_chunk_is_found(small, tmp_path):
    save(small, tmp_path / "movie.zarr")
    file = chunk(tmp_path / "movie.zarr", 0, 0, 0)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with refused(r"movie\.zarr is damaged or not in the zarr format"):
        open_record(tmp_path / "movie.zarr").slab()
    file.write_bytes(b"")
    with refused(r"movie\.zarr is damaged or not in the zarr format"):
        open_record(tmp_path / "movie.zarr").slab()


@pytest.mark.parametrize("version", [2, 3])
def test_plain_arrays_and_any_name(version, tmp_path, small):
    path = tmp_path / "some folder"
    array = zarr.create_array(path, shape=small.shape, chunks=(2, 4, 5), dtype="f4", zarr_format=version)
    array[:] = small.slab()
    array.attrs.update(dx=0.5, times=[0, 1, 2, 4, 5, 6], q=2, boundary="neumann")
    record = open_record(path)
    assert np.array_equal(record.slab(), small.slab().astype("f4"))
    assert (record.dx, record.q, record.boundary, record.uniform) == ((0.5, 0.5), 2.0, "neumann", False)
    assert isinstance(record.values, LazyArray)
    assert np.array_equal(np.asarray(record.values), record.slab())
    with refused("holds one array without a name: leave out var='u'"):
        open_record(path, var="u")
    (path / ("0.0.0" if version == 2 else "c/0/0/0")).unlink()
    with refused("chunk .* of the array is missing"):
        record.slab()


def test_the_attributes_of_the_array_come_before_those_of_the_group(tmp_path):
    group = zarr.create_group(tmp_path / "m.zarr", attributes={"dx": 0.1, "dt": 1.0, "q": 3.0})
    add(group, "phase", np.zeros((4, 6))).attrs["dx"] = 0.2
    record = open_record(tmp_path / "m.zarr")
    assert (record.dx, record.dt, record.q) == ((0.2,), 1.0, 3.0)


def test_metadata_as_arrays_of_a_group(tmp_path):
    group = zarr.create_group(tmp_path / "m.zarr")
    add(group, "phase", np.ones((4, 6)))
    add(group, "times", np.array([1.0, 2.0, 3.0, 5.0]))
    add(group, "dx", np.array(0.25))
    add(group, "q", np.ones((4, 6)))  # a field of that name is no number
    group.create_group("boundary")
    with refused(r"phase \(4, 6\), q \(4, 6\)"):
        open_record(tmp_path / "m.zarr")
    record = open_record(tmp_path / "m.zarr", var="phase")
    assert (record.dx, record.times.tolist(), record.q) == ((0.25,), [1.0, 2.0, 3.0, 5.0], None)


def test_fields_are_named_with_their_shapes(tmp_path):
    group = zarr.create_group(tmp_path / "m.zarr", attributes={"dx": 0.1, "dt": 1.0})
    with refused("holds no field: .*found no arrays"):
        open_record(tmp_path / "m.zarr")
    add(group, "u", np.zeros(4))
    with refused(r"holds no field: .*found u \(4,\)"):
        open_record(tmp_path / "m.zarr")
    add(group, "phase", np.ones((4, 6)))
    assert open_record(tmp_path / "m.zarr").mesh == (6,)
    with refused(r"has no array 'v': expected one of its arrays, phase \(4, 6\), u \(4,\)"):
        open_record(tmp_path / "m.zarr", var="v")
    add(group.create_group("run"), "phase", np.ones((4, 7)))
    assert open_record(tmp_path / "m.zarr", var="run/phase").mesh == (7,)


def test_missing_metadata_is_asked_for(stored):
    zarr.open(stored).attrs.put({})
    with refused(r"movie\.zarr has no mesh spacing and no frame interval: pass dx=.*; dt="):
        open_record(stored)
    with refused(r"movie\.zarr has no frame interval: pass dt="):
        open_record(stored, dx=0.1)
    assert open_record(stored, dx=0.1, dt=1.0).frames == 6


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"dx": "wide"}, "dx is 'wide'"),
        ({"dx": {"x": 1}}, "dx is"),
        ({"times": [[0, 1], [2]]}, ""),
        ({"times": {"first": 0}}, "times is"),
        ({"q": 10**400}, ""),
        ({"q": None}, "no mesh"),
        ({"boundary": ["periodic"]}, "boundary is"),
        ({"format": "doublewell record", "version": 2}, "newer doublewell"),
        ({"format": "doublewell record", "version": "x"}, "format version is 'x'"),
    ],
)
def test_bad_attributes(stored, bad, words):
    zarr.open(stored).attrs.update(bad)
    if bad == {"q": None}:
        assert open_record(stored).q is None
        return
    with refused(rf"movie\.zarr.*{words}"):
        open_record(stored)


def test_newer_version(small, tmp_path):
    save(small, tmp_path / "movie.zarr")
    zarr.open(tmp_path / "movie.zarr").attrs["version"] = 2
    with refused("newer doublewell .*pip install --upgrade"):
        open_record(tmp_path / "movie.zarr")


def test_folders_that_are_no_store(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("x")
    with refused(r"folder is a folder without zarr metadata and without frames \(its files: 1 \.txt\)"):
        open_record(tmp_path / "folder")
    (tmp_path / "file.zarr").write_text("x")
    with refused("file.zarr is a file: expected a zarr store, which is a folder"):
        open_record(tmp_path / "file.zarr")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"zarr_format": 9, "node_type": "x"}'])
@pytest.mark.parametrize("place", ["zarr.json", "u/zarr.json"])
def test_damaged_metadata(stored, text, place):
    (stored / place).write_text(text)
    with refused(r"movie\.zarr is damaged or not in the zarr format .*copy the file again"):
        open_record(stored)


def test_a_damaged_neighbour_does_no_harm(stored):
    (stored / "other").mkdir()
    (stored / "other" / "zarr.json").write_text("{")
    assert open_record(stored).frames == 6


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_damaged_shape_takes_no_memory(axis, stored):
    file = stored / "u" / "zarr.json"
    metadata = json.loads(file.read_text())
    for size, words in [(10**15, "is damaged: its field has shape"), (10**8, "chunk .* is missing")]:
        metadata["shape"][axis] = size if axis else size // 100
        file.write_text(json.dumps(metadata))
        with refused(rf"movie\.zarr.*{words}"):
            open_record(stored).slab()


def test_integer_and_complex_arrays(tmp_path):
    zarr.create_array(tmp_path / "i.zarr", shape=(3, 4), dtype="i2")
    with refused(r"i\.zarr: the picture has shape \(3, 4\): expected I\[t, x\]"):
        open_record(tmp_path / "i.zarr", dx=1, dt=1)
    stored = zarr.create_array(tmp_path / "c.zarr", shape=(3, 4), dtype="c16")
    stored[...] = np.full((3, 4), 1 + 1e-12j)
    assert np.all(open_record(tmp_path / "c.zarr", dx=1, dt=1).slab() == 1.0)
    stored[...] = np.full((3, 4), 1j)
    with refused(r"the field is complex \(complex128\), with imaginary parts up to 1"):
        open_record(tmp_path / "c.zarr", dx=1, dt=1).slab()


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}], "fill_value": None},
        {"dtype": "|O", "filters": [{"id": "vlen-bytes"}], "fill_value": None},
        {"filters": [{"id": "pickle", "protocol": 5}]},
        {"compressor": {"id": "pickle", "protocol": 5}},
    ],
)
def test_objects_are_never_loaded(change, tmp_path):
    group = zarr.create_group(tmp_path / "m.zarr", zarr_format=2, attributes={"dx": 1, "dt": 1})
    add(group, "u", np.ones((3, 4)))
    add(group, "v", np.ones((3, 4)))
    file = tmp_path / "m.zarr" / "u" / ".zarray"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    words = "holds pickled Python objects, which can run any code and are never loaded"
    with refused(rf"m\.zarr: array 'u' {words}.*name another one with var="):
        open_record(tmp_path / "m.zarr")
    with refused(rf"the array {words}"):
        open_record(tmp_path / "m.zarr" / "u", dx=1, dt=1)
    assert open_record(tmp_path / "m.zarr", var="v").frames == 3
