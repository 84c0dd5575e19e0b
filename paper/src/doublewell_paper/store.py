"""Store: results as lines of JSON, appended record by record; a run that was killed goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from doublewell.errors import InputError
from doublewell_paper.line import Key, Line, line_of

__all__ = ["Store"]

NAME = "results.jsonl"


class Store:
    """The results file of one folder.

    A line counts when it is whole. What a killed run left of its last line is cut off before the next one is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def lines(self) -> list[Line]:
        """Return all whole lines; of several with one key the last."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        found: dict[Key, Line] = {}
        for number, text in enumerate(whole.decode().splitlines(), start=1):
            line = self._read(text, number)
            found[line.key] = line
        return list(found.values())

    def _read(self, text: str, number: int) -> Line:
        try:
            return line_of(text)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path}, line {number} is no result of this study: expected one JSON object a line; move the "
                "file away, or choose another folder"
            ) from error

    def append(self, lines: Iterable[Line]) -> None:
        """Write lines in one piece and wait until they are on the disk."""
        data = "".join(line.text() + "\n" for line in lines).encode()
        with self.path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the file for one run: a second one is refused, and a torn last line is cut off."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            _lock(file.fileno(), self.path)
            file.seek(0)
            content = file.read()
            if not content.endswith(b"\n"):
                file.truncate(content.rfind(b"\n") + 1)
            yield


def _lock(handle: int, path: Path) -> None:
    """Take the file for this process; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(f"{path} is being written by another run: wait for it, or choose another folder") from error
