"""What a file says is used, what an argument says comes first, what is missing is asked for by name."""

import subprocess
import sys

import numpy as np
import pytest

from doublewell.errors import InputError, shell_words
from doublewell.io import open_record, save
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.fixture
def npz(tmp_path):
    def write(**content):
        np.savez(tmp_path / "movie.npz", **content)
        return tmp_path / "movie.npz"

    return write


def test_arguments_override_the_file(npz):
    path = npz(u=MOVIE, dx=0.1, times=np.arange(5.0), q=1.0, boundary="periodic")
    record = open_record(path, dx=(0.2, 0.3), dt=0.25, q=4, boundary="neumann")
    assert (record.dx, record.dt, record.q, record.boundary) == ((0.2, 0.3), 0.25, 4.0, "neumann")
    assert open_record(str(path), times=[0, 2, 4, 6, 8]).dt == 2.0


def test_times_say_more_than_dt_in_a_file(npz):
    assert open_record(npz(u=MOVIE, dx=0.1, dt=9.0, times=np.arange(5.0))).dt == 1.0


def test_what_is_missing_is_asked_for(npz):
    with refused(r"movie\.npz has no mesh spacing: pass dx=, one number or one per space axis$"):
        open_record(npz(u=MOVIE, dt=0.1))
    with refused(r"movie\.npz has no frame interval: pass dt=, one number, or times=, one per frame$"):
        open_record(npz(u=MOVIE, dx=0.1))
    with refused(r"has no mesh spacing and no frame interval: pass dx=.*; dt=.*one per frame$"):
        open_record(npz(u=MOVIE))
    with shell_words(), refused(r"no mesh spacing and no frame interval: pass --dx, .*; --dt, .*, or --times, "):
        open_record(npz(u=MOVIE))
    with refused("expected dt= .* or times= .*got both"):
        open_record(npz(u=MOVIE, dx=0.1), dt=1.0, times=range(5))
    assert open_record(npz(u=MOVIE, dx=0.1), dt=1.0).q is None


def test_the_field_is_found_by_name_or_alone(npz):
    path = npz(phase=MOVIE, dx=0.1, dt=1.0, weights=np.ones(9))
    assert np.array_equal(open_record(path).slab(), MOVIE)
    path = npz(u=MOVIE, v=-MOVIE, dx=0.1, dt=1.0)
    assert np.array_equal(open_record(path).slab(), MOVIE)
    assert np.array_equal(open_record(path, var="v").slab(), -MOVIE)


def test_the_field_has_to_be_named_where_several_fit(npz):
    path = npz(phase=MOVIE, mask=MOVIE[:, 0], dx=0.1, dt=1.0)
    with refused(r"several arrays .*mask \(5, 6\), phase \(5, 4, 6\): pass var= with"):
        open_record(path)
    assert open_record(path, var="mask").mesh == (6,)
    with refused(r"has no array 'u': expected one of its arrays, mask \(5, 6\), phase \(5, 4, 6\)"):
        open_record(path, var="u", dx=0.1, dt=1.0)


def test_a_file_without_a_field(npz, small, tmp_path):
    with refused(r"movie\.npz holds no field: .*found v \(9,\); save the movie with its time axis first"):
        open_record(npz(v=np.ones(9), dx=0.1, dt=1.0))
    save(small, tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        content = {name: file[name] for name in file if name != "u"}
    with refused(r"movie\.npz holds no field: .*found no arrays"):
        open_record(npz(**content))


@pytest.mark.parametrize(
    ("u", "words"),
    [
        (MOVIE + 1j, "the field is complex"),
        (MOVIE > 0, "the field holds integers"),
        (MOVIE.astype(str), "the field has type <U"),
        (MOVIE[:1], "the field has shape .*at least 2 frames"),
    ],
)
def test_the_words_of_record_follow_the_path(npz, u, words):
    with refused(rf"movie\.npz: {words}"):
        open_record(npz(u=u, dx=0.1, dt=1.0))


@pytest.mark.parametrize("u", [MOVIE[0, 0], MOVIE.reshape(5, 2, 2, 2, 3)])
def test_wrong_rank(npz, u):
    with refused(r"movie\.npz holds no field"):
        open_record(npz(u=u, dx=0.1, dt=1.0))
    with refused(r"movie\.npz: the field has shape .*expected u\[t, x\]"):
        open_record(npz(u=u, dx=0.1, dt=1.0), var="u")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"dx": "wide"}, "dx is 'wide'"),
        ({"dx": [0.1, 0.2, 0.3]}, "dx has 3 entries"),
        ({"dx": -1.0}, "dx is -1"),
        ({"dt": 0.0}, "dt is 0"),
        ({"times": [0.0, 1.0]}, r"times has shape \(2,\)"),
        ({"times": [0.0, 1.0, 1.0, 2.0, 3.0]}, "times must be finite and increase"),
        ({"q": float("nan")}, "q is nan"),
        ({"q": [1.0, 2.0]}, "q is"),
        ({"boundary": "wall"}, "boundary is 'wall'"),
    ],
)
def test_bad_metadata_in_the_file(npz, bad, words):
    with refused(rf"movie\.npz: {words}"):
        open_record(npz(**{"u": MOVIE, "dx": 0.1, "dt": 1.0} | bad))


def test_bad_values_are_named_when_they_are_read(npz):
    u = MOVIE.copy()
    u[3, 1, 2] = np.nan
    record = open_record(npz(u=u, dx=0.1, dt=1.0))
    with refused("first in frame 3 at cell .1, 2."):
        record.slab()


def test_newer_and_broken_versions(npz):
    with refused("written by a newer doublewell .record version 2, this one reads 1.*pip install --upgrade"):
        open_record(npz(u=MOVIE, dx=0.1, dt=1.0, format="doublewell record", version=2))
    with refused("damaged: its format version is None"):
        open_record(npz(u=MOVIE, dx=0.1, dt=1.0, format="doublewell record"))
    assert open_record(npz(u=MOVIE, dx=0.1, dt=1.0, format="of another lab", version=99)).frames == 5


def test_paths_that_lead_nowhere(tmp_path):
    with refused(r"nowhere\.npz does not exist: .*check the name"):
        open_record(tmp_path / "nowhere.npz")
    with refused(r"nowhere\.zarr does not exist"):
        open_record(tmp_path / "nowhere.zarr")
    with refused("cannot be read: File name too long"):
        open_record(tmp_path / ("long" * 100 + ".npz"))
    for path in (3, None, b"movie.npz", "movie\0.npz"):
        with refused("path is .*: expected the name of a file"):
            open_record(path)
    with refused("stands for no known folder"):
        open_record("~nobody-of-this-name/movie.npz")


def test_suffixes(tmp_path, small, same):
    (tmp_path / "movie.gif").write_bytes(b"GIF89")
    with refused(
        r"movie\.gif has no suffix of a record: expected \.npz, \.npy, \.zarr, .* it is GIF: convert the file"
    ):
        open_record(tmp_path / "movie.gif")
    (tmp_path / "movie.data").write_bytes(b"\x89HDF\r\n\x1a\n")
    with refused(r"movie\.data has no suffix of a record: .*by its first bytes it is HDF5: give it the suffix \.h5"):
        open_record(tmp_path / "movie.data")
    (tmp_path / "result.json").write_text("{}")
    with refused(r"result\.json .*a .json file is a saved result"):
        open_record(tmp_path / "result.json")
    save(small, tmp_path / "MOVIE.NPZ")
    assert same(open_record(tmp_path / "MOVIE.NPZ"), small)


def test_a_home_folder_is_expanded(small, same, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save(small, "~/movie.npz")
    assert same(open_record("~/movie.npz"), small)


def test_a_spaced_record_survives_a_chain_of_formats(small, same, tmp_path):
    save(small, tmp_path / "a.npz")
    save(open_record(tmp_path / "a.npz"), tmp_path / "b.zarr")
    save(open_record(tmp_path / "b.zarr").clip(1, 5), tmp_path / "c.npz")
    assert same(open_record(tmp_path / "c.npz"), small.clip(1, 5))


def test_nothing_heavy_is_imported():
    script = (
        "import sys, doublewell.io\n"
        "print([m for m in ('zarr', 'numba', 'jax', 'xarray', 'scipy.optimize', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_record_metadata_is_read_only(small, tmp_path):
    save(small, tmp_path / "movie.npz")
    record = open_record(tmp_path / "movie.npz")
    assert isinstance(record, Record)
    with pytest.raises(ValueError, match="read-only"):
        record.values[0] = 1.0


def test_values_on_both_borders(tmp_path):
    u = np.random.default_rng(0).uniform(-1, 1, (4, 9, 8))
    u[:, -1], u[:, :, -1] = u[:, 0], u[:, :, 0]
    np.save(tmp_path / "u.npy", u)
    known = {"dx": 0.1, "dt": 1.0}
    record = open_record(tmp_path / "u.npy", boundary="periodic", **known)
    np.testing.assert_array_equal(record.slab(), u[:, :-1, :-1])
    (note,) = record.notes
    assert note.code == "period-stored-twice"
    assert "the first and the last layer along y and x are the same" in note.sentence
    assert open_record(tmp_path / "u.npy", boundary="periodic", nodes=True, **known).mesh == (8, 7)
    assert open_record(tmp_path / "u.npy", boundary="periodic", nodes=False, **known).mesh == (9, 8)
    assert open_record(tmp_path / "u.npy", boundary="neumann", nodes=True, **known).mesh == (8, 7)
    assert open_record(tmp_path / "u.npy", nodes=True, **known).mesh == (9, 8)
    mask = np.ones((9, 8), bool)
    mask[3, 3] = False
    masked = open_record(tmp_path / "u.npy", boundary="periodic", mask=mask, **known)
    assert masked.observed().sum() == 4 * (8 * 7 - 1)
    u[:, -1] += 0.01
    np.save(tmp_path / "u.npy", u)
    assert open_record(tmp_path / "u.npy", boundary="periodic", **known).mesh == (9, 7)  # along x only
    with refused("the first and the last layer of nodes along y are not the same"):
        open_record(tmp_path / "u.npy", boundary="periodic", nodes=True, **known)
    with refused("nodes is 'yes': expected True"):
        open_record(tmp_path / "u.npy", nodes="yes", **known)


def test_mirror_images_and_constants_repeat_nothing(tmp_path):
    half = np.random.default_rng(0).uniform(-1, 1, (4, 5, 6))
    for u in (np.concatenate([half, half[:, ::-1]], axis=1), np.ones((4, 5, 6))):
        np.save(tmp_path / "u.npy", u)
        assert open_record(tmp_path / "u.npy", boundary="periodic", dx=0.1, dt=1.0).mesh == u.shape[1:]
