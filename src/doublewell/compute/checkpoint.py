"""Checkpoint: the pieces that are there, in a file that is whole at every moment; only of one question to one record.

The file is an .npz of plain arrays. What cannot be an array is one JSON text in it. Triangles are kept to the last bit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_WORDS = {"record": "the record", "options": "the options of the fit", "plan": "the memory or the plan of slabs"}
_FILES = 100_000  # of a store whose size and time of change are looked at; a larger one is sampled


class Joinable(Protocol):
    """What a task returns: a piece that can be joined with the next one, and packed for a file."""

    def joined(self, other: Self) -> Self:
        """Return this piece and the next one as one."""

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what JSON can hold, and arrays by name."""


P = TypeVar("P", bound=Joinable)


class Ledger(Generic[P]):
    """The pieces that are there, in memory and, where a path is given, in a file after each of them.

    ``merged`` are those of the first ``done`` tasks as one, ``waiting`` those of later ones by number. `unpack` makes a
    piece of what ``packed`` gave.
    """

    def __init__(
        self, path: Path | None, fingerprint: Mapping[str, str],
        unpack: Callable[[Mapping[str, Any], Mapping[str, Array]], P],
    ) -> None:  # fmt: skip
        self._path, self._fingerprint = path, dict(fingerprint)
        self.done = 0
        self.merged: P | None = None
        self.waiting: dict[int, P] = {}
        if path is not None and path.exists():
            about, arrays = _read(path, fingerprint)
            for name, words in about["pieces"].items():
                held = {key.rsplit(" ", 1)[0]: array for key, array in arrays.items() if key.rsplit(" ", 1)[1] == name}
                if name == "merged":
                    self.merged = unpack(words, held)
                else:
                    self.waiting[int(name)] = unpack(words, held)
            self.done = int(about["done"])
        self._save()  # a place that cannot be written is found before the work

    @property
    def count(self) -> int:
        """How many pieces are there."""
        return self.done + len(self.waiting)

    def left(self, numbers: range) -> list[int]:
        """Return the numbers whose pieces are not there."""
        return [number for number in numbers if number >= self.done and number not in self.waiting]

    def add(self, number: int, piece: P) -> None:
        """Take in one more piece; what is next in order is joined."""
        self.waiting[number] = piece
        while self.done in self.waiting:
            piece = self.waiting.pop(self.done)
            self.merged = piece if self.merged is None else self.merged.joined(piece)
            self.done += 1
        self._save()

    def _save(self) -> None:
        """Write the pieces; the file on the disk is the one before or this one, never a part of it."""
        if self._path is None:
            return
        pieces = {} if self.merged is None else {"merged": self.merged}
        pieces |= {str(number): piece for number, piece in sorted(self.waiting.items())}
        packed = {name: piece.packed() for name, piece in pieces.items()}
        about = {"format": _FORMAT, "version": _VERSION, "fingerprint": self._fingerprint, "done": self.done}
        about["pieces"] = {name: words for name, (words, _) in packed.items()}
        arrays: dict[str, Any] = {f"{kind} {name}": x for name, (_, held) in packed.items() for kind, x in held.items()}
        with replace_file(self._path) as temporary, temporary.open("wb") as file:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)


def _read(path: Path, fingerprint: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read the file of the same question to the same record."""
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
    other = [_WORDS[name] for name, value in fingerprint.items() if about["fingerprint"].get(name) != value]
    if other:
        raise InputError(
            f"{path} is the checkpoint of another run: {' and '.join(other)} changed; expected the same command on the "
            "same data; give another name, or delete the file to begin again"
        )
    return about, arrays


def fingerprint(
    record: Record, histogram: object, options: Sequence[object], regions: Sequence[object]
) -> dict[str, str]:
    """Return digests of the record, of the options that its evidence depends on, and of the plan; no value is read.

    The record's holds its shape, mesh and times, the histogram of values that the survey made, and name, size and time
    of change of its files. So a file that was written again is another record.
    """
    functions = getattr(record.values, "functions", ())
    mask = None if record.mask is None else (record.mask.shape, _content(record.mask))
    kind = record.shape, str(record.values.dtype), record.dx, _content(record.times), functions, mask
    parts = {
        "record": (kind, histogram, *_stamps(record.values), *_stamps(record.mask)),
        "options": (__version__, *options),
        "plan": regions,
    }
    return {name: sha256("\n".join(map(repr, values)).encode()).hexdigest() for name, values in parts.items()}


def _content(values: Any) -> str:
    return sha256(np.ascontiguousarray(values).data).hexdigest() if isinstance(values, np.ndarray) else ""


def _stamps(values: Any) -> Iterator[tuple[str, int, int]]:
    """Go through the files behind an array: name, size and time of change."""
    for path in getattr(values, "files", ()):
        files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names) or [path]
        yield str(path.absolute()), len(files), 0
        for file in files[:: -(-len(files) // _FILES)]:
            status = file.stat()
            yield str(file.relative_to(path)), status.st_size, status.st_mtime_ns
