"""How a path becomes a format: suffix, first bytes, folders, patterns, and the formats of other packages."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from movie_writers import WRITERS

from doublewell.errors import InputError
from doublewell.io import open_record, save
from doublewell.io.format import library
from doublewell.record import Record

MOVIE = np.linspace(-1, 1, 5 * 4 * 6).reshape(5, 4, 6)


def refused(match):
    return pytest.raises(InputError, match=match)


@pytest.mark.parametrize(
    ("writer", "suffix", "words"),
    [
        ("hdf5", ".tif", "holds HDF5 by its first bytes, not TIFF: give it the suffix .h5"),
        ("plain_tiff", ".npz", "holds TIFF by its first bytes, not npz: give it the suffix .tif"),
        ("npz", ".h5", "holds zip by its first bytes, not HDF5: give it the suffix .npz"),
        ("netcdf3", ".mat", "holds netCDF 3 by its first bytes, not MATLAB: give it the suffix .nc"),
        ("mat5", ".nc", "holds MATLAB 5 by its first bytes, not netCDF: give it the suffix .mat"),
        ("mat73", ".npy", "holds HDF5 by its first bytes, not npy"),
        ("npy", ".vti", "holds npy by its first bytes, not VTK: give it the suffix .npy"),
    ],
)
def test_a_wrong_suffix(writer, suffix, words, tmp_path) -> None:
    path, said = WRITERS[writer](tmp_path, MOVIE)
    wrong = path.rename(tmp_path / f"other{suffix}")
    with refused(words):
        open_record(wrong, **said)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".h5", ".nc", ".mat", ".tif", ".vti", ".pvd", ".e"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty|cut short|damaged|cannot be read"),
        (b"no such thing at all, but text", "damaged|not? "),
        (b"\x89PNG\r\n", "holds PNG by its first bytes"),
    ],
    ids=["empty", "text", "png"],
)
def test_other_content(suffix, content, words, tmp_path) -> None:
    (tmp_path / f"movie{suffix}").write_bytes(content)
    with refused(words):
        open_record(tmp_path / f"movie{suffix}", dx=1, dt=1)
    with refused("does not exist"):
        open_record(tmp_path / f"nowhere{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with refused("folder"):
        open_record(tmp_path / f"folder{suffix}", dx=1, dt=1)


def test_folders_and_patterns(tmp_path) -> None:
    path, said = WRITERS["tiff_folder"](tmp_path, MOVIE)
    for place in (path, path / "*.tif", path / "frame*.tif"):
        np.testing.assert_array_equal(open_record(place, **said).slab(), MOVIE)
    assert open_record(path / "frame?.tif", **said).frames == 5
    with refused(r"holds no files .tif, .*: check the folder or the pattern"):
        open_record(path / "picture*.tif", **said)
    with refused(r"is a pattern for several files: expected one that ends in .tif, .*\.vti.*with one file per frame"):
        open_record(tmp_path / "*.npz")
    (path / "mask1.tif").write_bytes((path / "frame5.tif").read_bytes())
    with refused(r"holds files of several series, frame\*\.tif, mask\*\.tif: pass a pattern for one of them, such as"):
        open_record(path, **said)
    assert open_record(path / "frame*.tif", **said).frames == 5
    (tmp_path / "empty").mkdir()
    with refused("is a folder without zarr metadata"):
        open_record(tmp_path / "empty")


def test_frames_of_different_shapes(tmp_path) -> None:
    path, said = WRITERS["tiff_folder"](tmp_path, MOVIE)
    (tmp_path / "more").mkdir()
    other, _ = WRITERS["tiff_folder"](tmp_path / "more", MOVIE[:, :3])
    (path / "frame7.tif").write_bytes((other / "frame5.tif").read_bytes())
    record = open_record(path, **said)
    record.slab(0, 2)
    with refused(r"frame7.tif holds a frame of shape \(3, 6\) and type float64, and frame5.tif one of \(4, 6\)"):
        record.slab()


PACKAGE = """
import numpy as np
from doublewell.io.format import Axis, Format, StoredField

def read(path, var, wanted):
    assert var in (None, "u")
    axes = (Axis("x", step=0.5, unit="nm"), Axis("t", step=3.0))
    return StoredField(np.loadtxt(path), {"q": 2.0} if "q" in wanted else {}, axes)

ROWS = Format("rows of numbers", (".rows",), read)
NOT_A_FORMAT = "text"
"""


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Install another package, as pip would, whose entry point leads to a value."""

    def add(value):
        (tmp_path / "rows_of_numbers.py").write_text(PACKAGE)
        about = tmp_path / "rows_of_numbers-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rows_of_numbers\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[doublewell.formats]\nrows = {value}\n")

    monkeypatch.syspath_prepend(tmp_path)
    yield add
    sys.modules.pop("rows_of_numbers", None)


def test_another_package_adds_a_format(added, tmp_path) -> None:
    np.savetxt(tmp_path / "movie.rows", MOVIE[:, 0])
    added("rows_of_numbers:ROWS")
    record = open_record(tmp_path / "movie.rows")
    assert (record.shape, record.dx, record.dt, record.q, record.length_unit) == ((6, 5), (0.5,), 3.0, 2.0, "nm")
    with refused("expected a name that ends in .npz, .zarr"):  # it only reads
        save(Record(MOVIE, dx=1, dt=1), tmp_path / "new.rows")


def test_a_package_that_cannot_be_loaded(added, tmp_path) -> None:
    (tmp_path / "movie.rows").write_text("1 2")
    added("no_such_package:ROWS")
    with refused(r"format 'rows' of another package \(no_such_package:ROWS\) cannot be loaded \(ModuleNotFoundError"):
        open_record(tmp_path / "movie.rows")
    np.save(tmp_path / "movie.npy", MOVIE)
    assert open_record(tmp_path / "movie.npy", dx=1, dt=1).frames == 5  # not asked for a known suffix
    added("rows_of_numbers:NOT_A_FORMAT")
    with refused(r"is a str: expected a doublewell.io.format.Format"):
        open_record(tmp_path / "movie.rows")


def test_a_missing_library_is_named_with_its_cure() -> None:
    with refused(r"reading them needs the library no_such_library, .*: run pip install 'doublewell\[extra\]'$"):
        library("no_such_library", "extra", "reading them")
