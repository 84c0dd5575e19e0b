"""Atomic: write beside the target, flush to disk, then take its name; a failure leaves everything as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from doublewell.errors import InputError

Content = bytes | Callable[[Path], object]  # the bytes of a file, or what writes it to a name
_CHECK = "check the name, the free space and the rights"


def write_files(contents: Sequence[tuple[Path, Content]]) -> tuple[Path, ...]:
    """Write files that belong together: all of them, or after a failure such as a full disk none; return their paths.

    Folders are made as needed. Everything is on the disk under temporary names before the first file takes its name.
    """
    staged: list[tuple[Path, Path]] = []
    moved: list[Path] = []
    missing = {folder for path, _ in contents for folder in path.absolute().parents if not folder.exists()}
    path = Path()
    try:
        for path, content in contents:
            _check_no_folder(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            target = Path(os.path.realpath(path))
            temporary = _beside(target, "part" if isinstance(content, bytes) else f"part{target.suffix}")
            staged.append((temporary, target))
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                content(temporary)
            _flush([temporary])
        for temporary, path in staged:
            temporary.replace(path)
            moved.append(path)
    except OSError as error:
        left = f"only {', '.join(map(str, moved))} was written" if moved else "nothing was written"
        raise InputError(f"{path} could not be written: {error.strerror or error}; {left}: {_CHECK}") from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)  # gone already after a move
        for folder in sorted(missing, reverse=True):  # the innermost first
            with suppress(OSError):
                folder.rmdir()  # one that holds a file stays
    _flush({target.parent for _, target in staged})
    return tuple(path for path, _ in contents)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name; the file written there replaces `path` when the block ends without an error."""
    with _staged(path, os.replace) as temporary:
        _check_no_folder(path)
        yield temporary


@contextmanager
def replace_folder(path: Path, *, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a temporary name; the folder written there is swapped for `path`, and the old one removed after.

    A folder that is not empty and not `replaceable` is refused, because its files belong to somebody else.
    """
    with _staged(path, _swap) as temporary:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file: expected a new name or a folder to replace; choose another name")
        if path.is_dir() and any(path.iterdir()) and not replaceable(path):
            raise InputError(f"{path} is a folder with other files, which are not overwritten: choose another name")
        yield temporary


@contextmanager
def _staged(path: Path, move: Callable[[Path, Path], object]) -> Iterator[Path]:
    target = Path(os.path.realpath(path))  # through a link the file behind it is replaced, not the link
    if not target.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist: create it, or choose another place for {path.name}")
    temporary = _beside(target, "part")
    try:
        yield temporary
        _flush([temporary, *temporary.rglob("*")])
        move(temporary, target)
        _flush([target.parent])
    except OSError as error:
        raise InputError(
            f"{path} could not be written: {error.strerror or error}; nothing was changed there: {_CHECK}"
        ) from error
    finally:  # gone already after a move
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        temporary.unlink(missing_ok=True)


def _check_no_folder(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder: expected the name of a file; choose another name")


def _swap(new: Path, target: Path) -> None:
    """Put a folder in the place of another. Between two renames the target is absent, never half written."""
    old = _beside(target, "old")
    if not target.exists():
        new.rename(target)
        return
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new data are in place; a remnant does no harm


def _beside(target: Path, ending: str) -> Path:
    """A hidden name in the same folder, so that the rename stays on one disk."""
    return target.with_name(f".{target.name[:100]}.{uuid4().hex}.{ending}")


def _flush(paths: Iterable[Path]) -> None:
    """Ask the system to put files, and the names in folders, on the disk; not every network disk does the latter."""
    for path in paths:
        folder = path.is_dir()
        try:
            handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError:
            if not folder:
                raise
