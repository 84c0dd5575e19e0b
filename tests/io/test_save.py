"""Saving is all or nothing: the old target stays until the new one is complete, and no scraps remain."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

from doublewell.errors import InputError
from doublewell.io import load_result, open_record, save
from doublewell.record import Record


def refused(match):
    return pytest.raises(InputError, match=match)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Breaks:
    """A field of 80 MB whose second slab cannot be read."""

    shape, ndim, dtype = (40, 512, 512), 3, np.dtype("f8")

    def __init__(self, error):
        self.error, self.reads = error, 0

    def __getitem__(self, frames):
        self.reads += 1
        if self.reads == 2:
            raise self.error
        return np.zeros((frames.stop - frames.start, *self.shape[1:]))


@pytest.mark.parametrize("suffix", ["npz", "zarr", "nc"])
@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError("lost"), RuntimeError),
        (OSError(28, "No space left on device"), InputError),
        (InputError("values are not finite"), InputError),
    ],
)
def test_a_failure_half_way_leaves_the_old_file(suffix, error, seen, small, same, tmp_path):
    path = tmp_path / f"movie.{suffix}"
    broken = Record(Breaks(error), dx=0.1, dt=1.0)
    with pytest.raises(seen, match="No space left .*nothing was changed" if isinstance(error, OSError) else None):
        save(broken, path)
    assert broken.values.reads == 2
    assert names(tmp_path) == []
    save(small, path)
    broken.values.reads = 0
    with pytest.raises(seen):
        save(broken, path)
    assert names(tmp_path) == [path.name]
    assert same(open_record(path), small)


def test_values_that_are_not_finite_are_not_saved(small, tmp_path):
    u = small.slab().copy()
    u[4, 1, 1] = np.inf
    for name in ("movie.npz", "movie.zarr", "movie.nc"):
        with refused("first in frame 4 at cell .1, 1."):
            save(small.replace(u), tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("suffix", ["npz", "zarr", "nc"])
def test_an_old_file_is_replaced(suffix, small, same, tmp_path):
    path = tmp_path / f"movie.{suffix}"
    save(small, path)
    save(small.clip(1, 4), path)
    assert same(open_record(path), small.clip(1, 4))
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["npz", "zarr", "nc"])
def test_a_record_can_be_saved_onto_itself(suffix, small, same, tmp_path):
    path = tmp_path / f"movie.{suffix}"
    save(small, path)
    save(open_record(path, q=5.0).clip(0, 3), path)
    assert np.array_equal(open_record(path).slab(), small.slab(0, 3))
    assert open_record(path).q == 5.0


def test_a_link_is_followed(small, same, tmp_path):
    (tmp_path / "real").mkdir()
    save(small.clip(0, 2), tmp_path / "real" / "movie.npz")
    (tmp_path / "link.npz").symlink_to(tmp_path / "real" / "movie.npz")
    save(small, tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert same(open_record(tmp_path / "real" / "movie.npz"), small)


def test_the_new_file_is_flushed_before_it_takes_its_name(small, tmp_path, monkeypatch):
    order, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("flush"), fsync(handle)))
    monkeypatch.setattr(
        "doublewell.atomic.os.replace", lambda a, b: (order.append((Path(a).parent, Path(b))), replace(a, b))
    )
    save(small, tmp_path / "movie.npz")
    assert order == ["flush", (tmp_path, tmp_path / "movie.npz"), "flush"]


def test_all_chunks_are_flushed(small, tmp_path, monkeypatch):
    count, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (count.append(handle), fsync(handle)))
    save(small, tmp_path / "movie.zarr")
    store = tmp_path / "movie.zarr"
    assert len(count) == len([store, *store.rglob("*")]) + 1  # and the folder that holds the store


def test_a_rename_that_fails_brings_the_old_folder_back(small, same, tmp_path, monkeypatch):
    path, rename = tmp_path / "movie.zarr", Path.rename
    save(small, path)

    def fail(self, target):
        if self.suffix == ".part":
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with refused(r"movie\.zarr could not be written: Device or resource busy; nothing was changed"):
        save(small.clip(0, 2), path)
    assert names(tmp_path) == ["movie.zarr"]
    assert same(open_record(path), small)


def test_the_old_folder_is_there_until_the_new_one_is_complete(small, tmp_path, monkeypatch):
    path, remove, seen = tmp_path / "movie.zarr", shutil.rmtree, []
    save(small, path)

    def look(folder, **options):
        seen.append(open_record(path).frames)  # the new one is in place when the old one goes
        remove(folder, **options)

    monkeypatch.setattr("doublewell.atomic.shutil.rmtree", look)
    save(small.clip(0, 2), path)
    assert seen == [2]


def test_places_where_nothing_can_be_written(small, result, tmp_path):
    for name in ("movie.npz", "movie.zarr", "movie.nc"):
        with refused(r"the folder .*absent does not exist: create it"):
            save(small, tmp_path / "absent" / name)
    for value, name in [(small, "folder.npz"), (result, "folder.json")]:
        (tmp_path / name).mkdir()
        with refused(rf"{name} is a folder: expected the name of a file"):
            save(value, tmp_path / name)
    (tmp_path / "file.zarr").write_text("mine")
    with refused(r"file\.zarr is a file"):
        save(small, tmp_path / "file.zarr")
    assert (tmp_path / "file.zarr").read_text() == "mine"
    with refused("could not be written: File name too long"):
        save(small, tmp_path / ("x" * 300 + ".npz"))


def test_a_folder_of_others_is_not_overwritten(small, same, tmp_path):
    (tmp_path / "thesis.zarr").mkdir()
    (tmp_path / "thesis.zarr" / "chapter").write_text("three years")
    with refused(r"thesis\.zarr is a folder with other files, which are not overwritten"):
        save(small, tmp_path / "thesis.zarr")
    assert (tmp_path / "thesis.zarr" / "chapter").read_text() == "three years"
    (tmp_path / "empty.zarr").mkdir()
    save(small, tmp_path / "empty.zarr")
    assert same(open_record(tmp_path / "empty.zarr"), small)
    zarr.create_array(tmp_path / "old.zarr", shape=(3, 3), dtype="f8", zarr_format=2)[:] = 1.0
    save(small, tmp_path / "old.zarr")
    assert same(open_record(tmp_path / "old.zarr"), small)


def test_suffixes_and_types(small, result, tmp_path):
    with refused(
        r"movie\.mat: expected a name that ends in \.npz, \.zarr, \.nc, .*for a Record .a Result goes to \.json"
    ):
        save(small, tmp_path / "movie.mat")
    for name in ("movie.npy", "movie.json", "movie"):
        with refused("expected a name that ends in .npz, .zarr"):
            save(small, tmp_path / name)
    for name in ("result.npz", "result"):
        with refused(r"expected a name that ends in \.json for a Result"):
            save(result, tmp_path / name)
    with refused("a ndarray cannot be saved: expected a Record or a Result"):
        save(np.zeros((3, 4)), tmp_path / "movie.npz")
    with refused("path is 3: expected the name of a file"):
        save(small, 3)
    assert names(tmp_path) == []


def test_a_result_is_replaced_whole(result, tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    save(result, path)
    before = path.read_bytes()

    def fail(source, target):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("doublewell.atomic.os.replace", fail)
    with refused("could not be written: Input/output error"):
        save(result, path)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["result.json"]
    assert str(load_result(path)) == str(result)


def test_a_result_that_cannot_be_written_leaves_the_old_one(result, tmp_path):
    from dataclasses import replace

    path = tmp_path / "result.json"
    save(result, path)
    with refused("result.version is 3: expected a text"):
        save(replace(result, version=3), path)
    assert str(load_result(path)) == str(result)


def test_new_files_have_the_usual_rights(small, result, tmp_path):
    (tmp_path / "plain").write_text("x")
    save(small, tmp_path / "movie.npz")
    save(result, tmp_path / "result.json")
    usual = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "movie.npz").stat().st_mode == usual
    assert (tmp_path / "result.json").stat().st_mode == usual
