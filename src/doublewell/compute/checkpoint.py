"""Checkpoint: the pieces that are there, in a file that is whole at every moment; only of one question to one record.

The file is an .npz of plain arrays. What cannot be an array is one JSON text in it. Triangles are kept to the last bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar
from zipfile import BadZipFile

import numpy as np

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.record import Record
from doublewell.version import __version__

_FORMAT = "doublewell partial evidence"
_VERSION = 1
_WORDS = {"record": "the record", "options": "the options of the reading", "plan": "the memory or the plan of slabs"}
_FILES = 100_000  # of a store whose size and time of change are looked at; a larger one is sampled


class Joinable(Protocol):
    """What a task returns: a piece that can be joined with the next one, and packed for a file."""

    def joined(self, other: Self) -> Self:
        """Return this piece and the next one as one."""

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what JSON can hold, and arrays by name."""


P = TypeVar("P", bound=Joinable)


@dataclass(frozen=True, eq=False)
class Partial(Generic[P]):
    """The pieces of the first `done` tasks as one, and those of later ones that are there already."""

    done: int = 0
    merged: P | None = None
    waiting: Mapping[int, P] = field(default_factory=dict)

    def has(self, number: int) -> bool:
        """Whether the piece of a task is there."""
        return number < self.done or number in self.waiting

    @property
    def count(self) -> int:
        """How many pieces are there."""
        return self.done + len(self.waiting)


def add(partial: Partial[P], number: int, piece: P) -> Partial[P]:
    """Return the pieces with one more; what is next in order is joined."""
    waiting = {**partial.waiting, number: piece}
    done, merged = partial.done, partial.merged
    while done in waiting:
        piece = waiting.pop(done)
        merged = piece if merged is None else merged.joined(piece)
        done += 1
    return Partial(done, merged, waiting)


class Ledger(Generic[P]):
    """The pieces that are there, in memory and, where a path is given, in a file after each of them.

    `unpack` makes a piece of what ``packed`` gave.
    """

    def __init__(
        self,
        path: Path | None,
        fingerprint: Mapping[str, str],
        unpack: Callable[[Mapping[str, Any], Mapping[str, Array]], P],
    ) -> None:
        self._path, self._fingerprint = path, fingerprint
        self.pieces: Partial[P] = Partial() if path is None else load_partial(path, fingerprint, unpack)
        self._save()  # a place that cannot be written is found before the work

    def add(self, number: int, piece: P) -> None:
        """Take in one more piece."""
        self.pieces = add(self.pieces, number, piece)
        self._save()

    def left(self, numbers: range) -> list[int]:
        """Return the numbers whose pieces are not there."""
        return [number for number in numbers if not self.pieces.has(number)]

    def _save(self) -> None:
        if self._path is not None:
            save_partial(self._path, self.pieces, self._fingerprint)


def save_partial(path: Path, partial: Partial[P], fingerprint: Mapping[str, str]) -> None:
    """Write the pieces; the file on the disk is the one before or this one, never a part of it."""
    pieces = {} if partial.merged is None else {"merged": partial.merged}
    pieces |= {str(number): piece for number, piece in sorted(partial.waiting.items())}
    packed = {name: piece.packed() for name, piece in pieces.items()}
    about = {
        "format": _FORMAT,
        "version": _VERSION,
        "fingerprint": dict(fingerprint),
        "done": partial.done,
        "pieces": {name: words for name, (words, _) in packed.items()},
    }
    arrays: dict[str, Any] = {
        f"{kind} {name}": array for name, (_, held) in packed.items() for kind, array in held.items()
    }
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)


def load_partial(
    path: Path, fingerprint: Mapping[str, str], unpack: Callable[[Mapping[str, Any], Mapping[str, Array]], P]
) -> Partial[P]:
    """Read the pieces of the same question to the same record; none where there is no file yet."""
    if not path.exists():
        return Partial()
    about, arrays = _read(path)
    _check(path, about, fingerprint)
    pieces = {name: unpack(words, _held(name, arrays)) for name, words in about["pieces"].items()}
    merged = pieces.pop("merged", None)
    return Partial(int(about["done"]), merged, {int(number): piece for number, piece in pieces.items()})


def _held(name: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of one piece, by their own names."""
    names = (key.rsplit(" ", 1) for key in arrays)
    return {kind: arrays[f"{kind} {piece}"] for kind, piece in names if piece == name}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != _FORMAT or about["version"] != _VERSION:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError) as error:
        raise InputError(
            f"{path} is not a checkpoint of this version ({type(error).__name__}: {error}): expected a file that an "
            "earlier run of the same command wrote; give another name, or delete the file to begin again"
        ) from error
    return about, arrays


def _check(path: Path, about: Mapping[str, Any], fingerprint: Mapping[str, str]) -> None:
    other = [_WORDS[name] for name, value in fingerprint.items() if about["fingerprint"].get(name) != value]
    if other:
        raise InputError(
            f"{path} is the checkpoint of another run: {' and '.join(other)} changed; expected the same command on the "
            "same data; give another name, or delete the file to begin again"
        )


def fingerprint(
    record: Record, histogram: object, options: Sequence[object], regions: Sequence[object]
) -> dict[str, str]:
    """Return digests of the record, of the options that its evidence depends on, and of the plan; no value is read.

    The record's holds its shape, mesh and times, the histogram of values that the survey made, and name, size and time
    of change of its files. So a file that was written again is another record.
    """
    return {
        "record": _digest(_record(record), histogram, *_stamps(record.values), *_stamps(record.mask)),
        "options": _digest(__version__, *options),
        "plan": _digest(*regions),
    }


def _record(record: Record) -> tuple[Any, ...]:
    functions = getattr(record.values, "functions", ())
    mask = None if record.mask is None else (record.mask.shape, _content(record.mask))
    return record.shape, str(record.values.dtype), record.dx, _content(record.times), functions, mask


def _content(values: Any) -> str:
    return sha256(np.ascontiguousarray(values).data).hexdigest() if isinstance(values, np.ndarray) else ""


def _digest(*values: object) -> str:
    return sha256("\n".join(repr(value) for value in values).encode()).hexdigest()


def _stamps(values: Any) -> Iterator[tuple[str, int, int]]:
    """Go through the files behind an array: name, size and time of change."""
    for path in getattr(values, "files", ()):
        files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names) or [path]
        yield str(path.absolute()), len(files), 0
        for file in files[:: -(-len(files) // _FILES)]:
            status = file.stat()
            yield str(file.relative_to(path)), status.st_size, status.st_mtime_ns
