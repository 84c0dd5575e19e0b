"""MATLAB files: MATLAB's order of axes in both versions, which is asked for where vectors do not tell it."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from movie_writers import WRITERS
from scipy.io import savemat

from doublewell.errors import InputError
from doublewell.io import open_record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)
LAST = np.moveaxis(MOVIE, 0, -1)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def mat(tmp_path):
    def write(**content):
        savemat(tmp_path / "movie.mat", content)
        return tmp_path / "movie.mat"

    return write


def test_vectors_tell_the_order(mat) -> None:
    record = open_record(mat(uu=MOVIE[:, 0].T, tt=0.5 * np.arange(5), x=0.25 * np.arange(6)))
    assert (record.dx, record.dt) == ((0.25,), 0.5)
    np.testing.assert_array_equal(record.slab(), MOVIE[:, 0])
    record = open_record(mat(u=LAST, times=[0, 1, 2, 4, 5.0], dx=[0.2, 0.1], q=3.0, boundary="periodic"))
    assert (record.dx, record.q, record.boundary, record.uniform) == ((0.2, 0.1), 3.0, "periodic", False)
    np.testing.assert_array_equal(record.slab(1, 3), MOVIE[1:3])
    record = open_record(mat(u=MOVIE.transpose(2, 1, 0), t=np.arange(5.0), x=np.arange(6.0), y=2 * np.arange(4.0)))
    assert record.dx == (2.0, 1.0)  # ndgrid: x first
    np.testing.assert_array_equal(record.slab(), MOVIE)


def test_the_order_is_asked_for(mat) -> None:
    with refused(r"has no order of its axes and no mesh spacing and no frame interval: pass axes=.*axes='yxt'; dx="):
        open_record(mat(u=LAST))
    path = mat(u=LAST, dt=1.0, dx=0.1)
    with refused("has no order of its axes: pass axes="):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, axes="yxt").slab(), MOVIE)
    square = mat(u=np.zeros((5, 5, 5)), t=np.arange(5.0), dx=0.1)
    with refused("has no order of its axes"):
        open_record(square)


def test_texts_and_numbers_of_version_seven(tmp_path) -> None:
    path, said = WRITERS["mat73"](tmp_path, MOVIE)
    with h5py.File(path, "r+") as file:
        text = np.frombuffer("periodic".encode("utf-16-le"), "<u2").reshape(8, 1)
        file.create_dataset("boundary", data=text).attrs["MATLAB_class"] = np.bytes_("char")
        file.create_dataset("empty", data=np.zeros(2, "u8")).attrs.update(
            MATLAB_class=np.bytes_("double"), MATLAB_empty=1
        )
        file.create_dataset("cells", data=np.zeros((3, 3))).attrs["MATLAB_class"] = np.bytes_("cell")
        file.create_group("settings").attrs["MATLAB_class"] = np.bytes_("struct")
    record = open_record(path, **said)
    assert record.boundary == "periodic"
    np.testing.assert_array_equal(record.slab(1, 4), MOVIE[1:4])


def test_several_arrays_are_listed(mat) -> None:
    path = mat(a=LAST, b=-LAST, t=np.arange(5.0), dx=0.1)
    with refused(r"several arrays .*a \(4, 6, 5\), b \(4, 6, 5\): pass var="):
        open_record(path)
    np.testing.assert_array_equal(open_record(path, var="b").slab(), -MOVIE)


def test_objects_are_never_made(mat) -> None:
    cells = np.empty((5, 6), dtype=object)
    cells[...] = "text"
    path = mat(u=cells, settings={"a": 1.0, "b": MOVIE}, words=np.array(["one", "two"]))
    with refused("movie.mat: the cells of 'u' hold no numbers of one shape: expected one picture for each time"):
        open_record(path)
    with refused("has no array 'settings'"):
        open_record(path, var="settings")


def test_damaged_sizes_and_cut_files(mat, monkeypatch) -> None:
    path = mat(u=LAST, t=np.arange(5.0), dx=0.1)
    monkeypatch.setattr("scipy.io.whosmat", lambda path: [("u", (10**5, 10**6, 5), "double")])
    with refused("movie.mat is damaged: array 'u' has shape"):
        open_record(path)
    monkeypatch.undo()
    monkeypatch.setattr("doublewell.io.format.os.sysconf", lambda name: 16)
    with refused("can only be read whole, 0.0 GiB, and the machine has 0.0: save it in MATLAB with -v7.3"):
        open_record(path)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:-90])
    with refused("movie.mat is damaged"):
        open_record(path)


def test_a_real_field_that_is_stored_as_complex_numbers(mat) -> None:
    lines = {"t": np.arange(5.0), "x": 0.25 * np.arange(6), "y": 0.5 * np.arange(4)}
    record = open_record(mat(usol=LAST + 1e-12j, **lines))
    np.testing.assert_array_equal(record.slab(), MOVIE)
    with refused(r"the field is complex \(complex128\), with imaginary parts up to 0\.1: expected real phase values"):
        open_record(mat(usol=LAST + 0.1j, **lines))


def test_axes_by_vectors_and_meshgrids(mat) -> None:
    """Equal steps along x and y need no question; a square kymograph does."""
    square, t = np.random.default_rng(0).uniform(-1, 1, (6, 6, 5)), np.arange(5.0)
    for lines in ({"x": 0.5 * np.arange(6)}, {"x": 0.5 * np.arange(6), "y": 1 + 0.5 * np.arange(6)}):
        record = open_record(mat(u=square, t=t, **lines))
        assert record.dx == (0.5, 0.5)
        np.testing.assert_array_equal(record.slab(), np.moveaxis(square, -1, 0))
    with refused("has no mesh spacing: pass dx=, one number or one per space axis"):
        open_record(mat(u=square, t=t, x=np.arange(6.0), y=2 * np.arange(6.0)), dt=1.0)
    with refused("has no order of its axes"):
        open_record(mat(u=square[:, :, 0], t=np.arange(6.0), x=np.arange(6.0)), dx=1.0, dt=1.0)
    for order in ("ij", "xy"):
        x, times = np.meshgrid(0.5 * np.arange(6), 2.0 * np.arange(6), indexing=order)
        record = open_record(mat(u=square[:, :, 0], X=x, T=times))
        assert (record.dx, record.dt) == ((0.5,), 2.0)
        np.testing.assert_array_equal(record.slab(), square[:, :, 0].T if order == "ij" else square[:, :, 0])


def test_cells_and_what_is_empty(mat, tmp_path) -> None:
    cells = np.empty((5, 1), dtype=object)
    cells[:, 0] = list(MOVIE)
    record = open_record(mat(U=cells, nothing=np.zeros((0, 4)), dx=0.1, dt=1.0))
    np.testing.assert_array_equal(record.slab(), MOVIE)
    np.testing.assert_array_equal(open_record(mat(U=cells, A=LAST, dx=0.1, dt=1.0), var="U").slab(), MOVIE)
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        for k, frame in enumerate(MOVIE):
            file.create_dataset(f"#refs#/{k}", data=frame.T).attrs["MATLAB_class"] = np.bytes_("double")
        cell = file.create_dataset("U", (1, 5), h5py.ref_dtype)
        cell[0] = [file[f"#refs#/{k}"].ref for k in range(5)]
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
    with (tmp_path / "new.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    record = open_record(tmp_path / "new.mat", dx=0.1, dt=1.0)
    np.testing.assert_array_equal(record.slab(1, 3, ((1, 3), (2, 5))), MOVIE[1:3, 1:3, 2:5])


def test_links_of_version_73_to_other_files(mat, tmp_path) -> None:
    path, _ = WRITERS["mat73"](tmp_path, MOVIE)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = LAST.T
    with h5py.File(path, "r+") as file:
        del file["u"]
        file["u"] = h5py.ExternalLink("other.h5", "secret")
    with refused("movie.mat holds no field"):
        open_record(path, axes="yxt")


@pytest.mark.parametrize(("old", "new"), [((9, 960), (0x7777, 960)), ((9, 960), (9, 2**31)), ((5, 12), (77, 12))])
def test_elements_that_crash_the_library_are_refused(old, new, mat, tmp_path) -> None:
    path = mat(u=LAST, t=np.arange(5.0), dx=0.1)
    savemat(path, {"u": LAST, "t": np.arange(5.0), "dx": 0.1}, do_compression=False)
    assert open_record(path).shape == MOVIE.shape
    raw, tags = path.read_bytes(), [np.array(pair, "<u4").tobytes() for pair in (old, new)]
    assert tags[0] in raw
    path.write_bytes(raw.replace(*tags, 1))
    with refused("movie.mat is damaged"):
        open_record(path)


def test_a_cell_with_other_things_harms_no_other_array(mat, tmp_path) -> None:
    cells = np.empty((1, 3), dtype=object)
    cells[0] = [{"a": 1.0, "b": "text"}, MOVIE[0], np.zeros((0, 0))]
    path = mat(mixed=cells, u=LAST, t=np.arange(5.0), dx=0.1)
    for packed in (False, True):
        savemat(path, {"mixed": cells, "u": LAST + 0.5j * 0, "t": np.arange(5.0), "dx": 0.1}, do_compression=packed)
        np.testing.assert_array_equal(open_record(path).slab(), MOVIE)
