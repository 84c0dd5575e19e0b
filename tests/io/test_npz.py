"""npz and npy files: exact, plain arrays only, and clear about what is wrong."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


class Lazy:
    """Values of a field that are made when they are read; holds nothing."""

    def __init__(self, shape):
        self.shape, self.ndim, self.dtype, self.largest = shape, len(shape), np.dtype("f8"), 0

    def __getitem__(self, frames):
        count = frames.stop - frames.start
        self.largest = max(self.largest, count)
        return np.full((count, *self.shape[1:]), 0.25) * np.arange(frames.start, frames.stop)[:, None, None]


def test_round_trip_is_exact(small, same, tmp_path):
    save(small, tmp_path / "movie.npz")
    assert same(open_record(tmp_path / "movie.npz"), small)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    u=arrays.arrays(
        st.sampled_from(["f8", "f4", "f2", ">f8"]),
        arrays.array_shapes(min_dims=2, max_dims=4, min_side=2, max_side=4),
        elements=st.floats(-2, 2, width=16),
    ),
    dx=st.floats(1e-300, 1e300),
    dt=st.floats(1e-3, 1e300 / 4),
    q=st.none() | st.floats(1e-300, 1e300),
    boundary=st.sampled_from([None, "periodic", "neumann"]),
)
def test_any_record_round_trips(u, dx, dt, q, boundary, same, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "movie.npz"
    record = Record(u, dx=dx, dt=dt, q=q, boundary=boundary)
    save(record, path)
    back = open_record(path)
    assert same(back, record)
    assert back.values.dtype == np.dtype(u.dtype).newbyteorder("=")


def test_layout_is_that_of_numpy(small, tmp_path):
    save(small, tmp_path / "movie.npz")
    with np.load(tmp_path / "movie.npz", allow_pickle=False) as file:
        assert sorted(file) == ["boundary", "dx", "format", "q", "times", "u", "version"]
        assert np.array_equal(file["u"], small.slab())
        assert file["q"].shape == ()
        assert str(file["format"]) == "doublewell record"
    with zipfile.ZipFile(tmp_path / "movie.npz") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


def test_unknown_q_and_boundary_are_absent(tmp_path):
    save(Record(MOVIE, dx=0.1, dt=1.0), tmp_path / "movie.npz")
    with np.load(tmp_path / "movie.npz") as file:
        assert sorted(file) == ["dx", "format", "times", "u", "version"]


def test_extended_precision_is_kept_as_the_slabs_give_it(same, tmp_path):
    record = Record(MOVIE.astype(np.longdouble) / 3, dx=0.1, dt=1.0)
    save(record, tmp_path / "movie.npz")
    assert same(open_record(tmp_path / "movie.npz"), record)


def test_a_record_is_written_slab_by_slab(tmp_path):
    lazy = Lazy((40, 512, 512))  # 2 MB a frame, 80 MB in all
    save(Record(lazy, dx=0.1, dt=1.0), tmp_path / "movie.npz")
    assert lazy.largest == 16
    assert np.all(open_record(tmp_path / "movie.npz").slab(39) == 0.25 * 39)


def test_compressed_and_fortran_files_of_others(tmp_path):
    np.savez_compressed(tmp_path / "movie.npz", u=np.asfortranarray(MOVIE), dx=0.1, dt=0.5, q=2, boundary="periodic")
    record = open_record(tmp_path / "movie.npz")
    assert np.array_equal(record.slab(), MOVIE)
    assert (record.dx, record.dt, record.q, record.boundary) == ((0.1, 0.1), 0.5, 2.0, "periodic")


def test_only_the_chosen_array_is_read(tmp_path):
    np.savez(tmp_path / "movie.npz", u=MOVIE, notes=np.array(["a", None], dtype=object), format=np.array({}))
    assert open_record(tmp_path / "movie.npz", dx=1, dt=1).shape == MOVIE.shape


class Trap:
    def __reduce__(self):
        return (print, ("ran",))


def test_pickled_objects_are_never_loaded(tmp_path, capsys):
    np.savez(tmp_path / "movie.npz", u=np.array([[Trap()] * 3] * 3, dtype=object))
    with refused(r"movie\.npz: array 'u' holds pickled Python objects.*never loaded.*dtype=float"):
        open_record(tmp_path / "movie.npz", dx=1, dt=1)
    np.savez(tmp_path / "movie.npz", u=MOVIE, dx=0.1, dt=0.1, q=None)
    with refused("array 'q' holds pickled Python objects.*leave it out"):
        open_record(tmp_path / "movie.npz")
    assert open_record(tmp_path / "movie.npz", q=3.0).q == 3.0
    np.save(tmp_path / "movie.npy", np.array([[Trap()] * 3] * 3, dtype=object))
    with refused("the array holds pickled"):
        open_record(tmp_path / "movie.npy", dx=1, dt=1)
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Trap()))
    with refused("bare.npz is damaged or not in the npz format"):
        open_record(tmp_path / "bare.npz", dx=1, dt=1)
    assert capsys.readouterr().out == ""


def test_empty_text_and_truncated_files(small, tmp_path):
    path = tmp_path / "movie.npz"
    path.write_bytes(b"")
    with refused(r"movie\.npz is empty \(0 bytes\).*copy the file again"):
        open_record(path)
    path.write_text("t,x,u\n0,0,1\n")
    with refused(r"movie\.npz is damaged or not in the npz format \(BadZipFile: File is not a zip file\)"):
        open_record(path)
    save(small, path)
    whole = path.read_bytes()
    for size in [1, 2, 21, len(whole) // 3, len(whole) // 2, len(whole) - 200, len(whole) - 22, len(whole) - 1]:
        path.write_bytes(whole[:size])
        with refused("movie.npz is damaged or not in the npz format"):
            open_record(path)


def test_a_flipped_bit_in_the_values_is_found(small, tmp_path):
    path = tmp_path / "movie.npz"
    save(small, path)
    raw = bytearray(path.read_bytes())
    raw[raw.index(small.slab().tobytes()) + 100] ^= 1
    path.write_bytes(raw)
    with refused("Bad CRC-32"):
        open_record(path)


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_headers_that_lie_about_the_size(tmp_path):
    raw = npy(MOVIE)
    archive(tmp_path / "movie.npz", u_npy=raw.replace(b"(5, 4, 6)", b"(5, 4, 9000000000000)", 1))
    with refused("movie.npz is damaged: array 'u' of shape .5, 4, 9000000000000. needs 1440000000000000 bytes"):
        open_record(tmp_path / "movie.npz", dx=1, dt=1)
    archive(tmp_path / "movie.npz", u_npy=raw + b"more")
    with refused("damaged: array 'u' is longer than its shape"):
        open_record(tmp_path / "movie.npz", dx=1, dt=1)


def test_a_zip_without_arrays(tmp_path):
    archive(tmp_path / "movie.npz", readme_txt="nothing")
    with refused("is a zip archive without arrays"):
        open_record(tmp_path / "movie.npz", dx=1, dt=1)


def test_npy_is_mapped_not_read(tmp_path):
    np.save(tmp_path / "movie.npy", MOVIE)
    record = open_record(tmp_path / "movie.npy", dx=0.1, dt=0.5, q=1, boundary="neumann")
    assert isinstance(record.values, np.memmap)
    assert np.array_equal(record.slab(1, 3), MOVIE[1:3])
    with refused("holds one array without a name: leave out var='u'"):
        open_record(tmp_path / "movie.npy", var="u", dx=0.1, dt=0.5)


def test_damaged_npy(tmp_path):
    np.save(tmp_path / "movie.npy", MOVIE)
    whole = (tmp_path / "movie.npy").read_bytes()
    for size in [3, 8, 60, 128, 500]:
        (tmp_path / "movie.npy").write_bytes(whole[:size])
        with refused("movie.npy is damaged or not in the npy format"):
            open_record(tmp_path / "movie.npy", dx=1, dt=1)
    (tmp_path / "movie.npy").write_bytes(b"")
    with refused("movie.npy is empty"):
        open_record(tmp_path / "movie.npy", dx=1, dt=1)
    (tmp_path / "folder.npy").mkdir()
    with refused("folder.npy is a folder: expected a file in the npy format"):
        open_record(tmp_path / "folder.npy", dx=1, dt=1)
