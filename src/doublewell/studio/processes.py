"""Processes of the studio: each is watched for its resident memory and its time, and ended where it takes too much.

Resident memory, not address space: compiled programs reserve far more than they use.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import psutil

_OFTEN = 0.1  # seconds between two looks at a process
_START = 120.0  # seconds that a worker may take to import all it needs, on a busy machine


@dataclass(frozen=True)
class Limits:
    """What one process may take: bytes of resident memory, with its children, and seconds."""

    memory: int
    seconds: float

    def broken(self, process: psutil.Process, since: float) -> str:
        """Return what a process has too much of, in words; nothing where all is well or it is gone."""
        if time.time() - since > self.seconds:
            return f"took more than {self.seconds:g} s"
        with suppress(psutil.Error):
            resident = sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))
            if resident > self.memory:
                return f"took {resident / 1e9:.2g} GB of memory, more than {self.memory / 1e9:.2g} GB"
        return ""


def start(task: str, root: Path, *words: str, log: Path, **pipes: Any) -> subprocess.Popen[bytes]:
    """Start a worker, in a session of its own: Ctrl-C reaches it only through us; modules in ROOT are not imported."""
    command = [sys.executable, "-P", "-m", "doublewell.studio.worker", task, str(root), *words]
    with log.open("ab") as errors:
        return subprocess.Popen(command, stderr=errors, start_new_session=True, **pipes)


def end(process: psutil.Process) -> None:
    """End a process with its children, at once."""
    with suppress(psutil.Error):
        for each in (*process.children(recursive=True), process):
            with suppress(psutil.Error):
                each.kill()


def alive(pid: int, started: float) -> psutil.Process | None:
    """Return the process of a number if it is the one that began then: numbers are used again."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if abs(process.create_time() - started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


class Looker:
    """A process that opens movies to show them; where it dies or takes too much, the next request gets a new one."""

    def __init__(self, root: Path, log: Path, limits: Limits) -> None:
        self._root, self._log, self._limits = root, log, limits
        self._lock, self._ready = Lock(), False
        self._process: Any = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request, or {"error": what went wrong}."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self.close()
            if self._process is None:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                self._process, self._ready = start("look", self._root, log=self._log, **pipes), False
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                line = self._line()
            except OSError:
                line = "ended"
            if isinstance(line, bytes):
                self._ready = True
                answer: dict[str, Any] = json.loads(line)
                return answer
            self.close()
            return {"error": f"the process that opened this movie {line}: it was ended, and the studio goes on"}

    def _line(self) -> bytes | str:
        """Wait for a line of the answer; what is wrong comes as words."""
        since, output = time.time(), self._process.stdout
        limits = self._limits if self._ready else Limits(self._limits.memory, self._limits.seconds + _START)
        watched, parts = psutil.Process(self._process.pid), []
        while True:
            if select.select([output], [], [], _OFTEN)[0]:
                part = os.read(output.fileno(), 2**20)
                parts.append(part)
                if not part:
                    return "crashed"
                if part.endswith(b"\n"):
                    return b"".join(parts)
            elif why := limits.broken(watched, since):
                return why

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            if self._process.poll() is None:
                end(psutil.Process(self._process.pid))
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(OSError):
                    pipe.close()
            self._process = None
