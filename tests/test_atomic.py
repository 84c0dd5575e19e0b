"""Files that belong together are written together or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from doublewell import atomic
from doublewell.atomic import write_files
from doublewell.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_bytes_and_writers_in_new_folders(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    paths = (tmp_path / "new" / "a.bin", tmp_path / "old.txt", tmp_path / "new" / "b.txt")
    written = write_files(
        [(paths[0], b"a"), (paths[1], b"other"), (paths[2], lambda path: path.write_text(path.suffix))]
    )
    assert written == paths
    assert [path.read_text() for path in paths] == ["a", "other", ".txt"]
    assert names(tmp_path) == ["new", "new/a.bin", "new/b.txt", "old.txt"]


def test_a_failure_before_the_end_leaves_everything_as_it_was(tmp_path):
    (tmp_path / "old.txt").write_text("old")

    def fail(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    contents = [(tmp_path / "old.txt", b"new"), (tmp_path / "x" / "y" / "z.txt", fail)]
    with pytest.raises(InputError, match=r"z\.txt could not be written: No space left .*; nothing was written: check"):
        write_files(contents)
    assert names(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_other_errors_leave_everything_as_it_was_too(tmp_path):
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_files([(tmp_path / "a" / "a.txt", b"a"), (tmp_path / "b.txt", fail)])
    assert names(tmp_path) == []


def test_what_took_its_name_before_a_failure_is_listed(tmp_path, monkeypatch):
    replace, moved = Path.replace, []

    def once(self, target):
        if moved:
            raise OSError(5, "Input/output error")
        moved.append(target)
        return replace(self, target)

    monkeypatch.setattr(atomic.Path, "replace", once)
    with pytest.raises(InputError, match=r"b\.txt could not be written: Input.*; only .*a\.txt was written: check"):
        write_files([(tmp_path / "a.txt", b"a"), (tmp_path / "b.txt", b"b")])
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="is a folder: expected the name of a file"):
        write_files([(tmp_path / "a.txt", b"a"), (tmp_path / "folder", b"b")])
    assert names(tmp_path) == ["folder"]
