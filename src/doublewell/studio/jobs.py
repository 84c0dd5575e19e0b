"""Jobs: identifications, each a process and a folder. What is in the folder is all that is known of a run.

So finished runs come back after a restart, and a process that outlived its server is found by its number and its start:

    request.json    what was asked              pid.json     the process that does it, written by itself
    progress.json   how far it is               early.json   the weak-form fit, shown first
    end.json        how it ended, written last, together with result.json, report.html, answer.json and exports
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from threading import Event, RLock, Thread
from typing import Any

import psutil

from doublewell.atomic import write_files
from doublewell.errors import InputError, shown
from doublewell.studio.places import RUNS
from doublewell.studio.processes import Limits, alive, end, start

_OFTEN = 0.25  # seconds between two looks at the processes
_GRACE = 30.0  # seconds that a stopped run has to write down what it has
_NAME = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")
_SHOWN = 300  # characters of what a crashed process said last
_CRASH = "the process of this run ended by itself"


class Jobs:
    """The runs of a folder; one process at a time, because each takes all cores, and the others wait."""

    def __init__(self, root: Path, limits: Limits) -> None:
        self.root, self.folder, self._limits = root, root / RUNS, limits
        self._lock, self._over = RLock(), Event()
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._stopped: dict[str, float] = {}  # by run, when it was asked to stop
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread = Thread(target=self._watch, daemon=True, name="jobs")
        self._thread.start()

    def begin(self, file: str, words: dict[str, str], name: str) -> str:
        """Put a run in the queue and return its name."""
        run = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{token_hex(3)}"  # names in the order of time
        request = {"file": file, "words": words, "name": name, "created": time.time()}
        with self._lock:
            write_files([(self.folder / run / "request.json", json.dumps(request).encode())])
        return run

    def path(self, run: str) -> Path:
        """Return the folder of a run."""
        folder = self.folder / run
        if not _NAME.fullmatch(run) or folder.is_symlink() or not (folder / "request.json").is_file():
            raise InputError(f"there is no run {shown(run)}")
        return folder

    def listing(self) -> list[dict[str, Any]]:
        """Return all runs, the oldest first."""
        with self._lock:
            return [self._seen(folder) for folder in self._folders()]

    def stop(self, run: str) -> None:
        """Ask a run to end with the best answer so far; the second time, or where it does not, it is ended."""
        folder = self.path(run)
        with self._lock:
            if _load(folder / "end.json"):
                return
            process = self._process(folder)
            if process is None:
                self._end(folder, "stopped", "stopped before it began")
            elif run in self._stopped:
                self._kill(folder, process, "stopped", "stopped at once, without an answer")
            else:
                self._stopped[run] = time.time()
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGINT)

    def remove(self, run: str) -> None:
        """Remove a run that has ended, with its files."""
        folder = self.path(run)
        with self._lock:
            if not _load(folder / "end.json"):
                raise InputError("this run has not ended: stop it first")
            shutil.rmtree(folder)

    def close(self) -> None:
        """Ask all runs to stop with what they have, and wait for that; queued ones stay for the next start."""
        self._over.set()
        self._thread.join()
        running = [folder for folder in self._folders() if self._process(folder) is not None]
        for folder in running:
            self.stop(folder.name)
        deadline = time.time() + _GRACE
        while running and time.time() < deadline:
            time.sleep(_OFTEN)
            self.look()
            running = [folder for folder in running if not _load(folder / "end.json")]
        for folder in running:
            self.stop(folder.name)
        for process in self._started.values():
            process.wait()

    def look(self) -> None:
        """Write down which processes have ended, end those that take too much, and start the next."""
        with self._lock:
            busy, waiting = False, None
            for folder in self._folders():
                if _load(folder / "end.json"):
                    if folder.name in self._started and self._started[folder.name].poll() is not None:
                        del self._started[folder.name]
                    continue
                process = self._process(folder)
                if process is not None:
                    busy = True
                    self._check(folder, process)
                elif folder.name in self._started or (folder / "pid.json").exists():
                    if not _load(folder / "end.json"):  # it may have come in between
                        self._end(folder, "crashed", self._last_words(folder))
                else:
                    waiting = waiting or folder
            if waiting is not None and not busy and not self._over.is_set():
                self._started[waiting.name] = start("identify", self.root, str(waiting), log=waiting / "log.txt",
                                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip

    def _watch(self) -> None:
        while not self._over.wait(_OFTEN):
            self.look()

    def _folders(self) -> list[Path]:
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name) and not path.is_symlink()]
        return sorted(path for path in found if (path / "request.json").is_file())

    def _process(self, folder: Path) -> psutil.Process | None:
        """Return the living process of a run, of this server or of one before it."""
        ours, claim = self._started.get(folder.name), _load(folder / "pid.json")
        if ours is not None and ours.poll() is not None:
            return None
        if claim:
            return alive(claim["pid"], claim["started"])
        return None if ours is None else alive(ours.pid, psutil.Process(ours.pid).create_time())

    def _check(self, folder: Path, process: psutil.Process) -> None:
        with suppress(psutil.Error):
            asked = self._stopped.get(folder.name)
            if asked is not None and time.time() - asked > _GRACE:
                self._kill(folder, process, "stopped", "did not stop in time, and was ended without an answer")
            elif why := self._limits.broken(process, process.create_time()):
                self._kill(folder, process, "killed", f"{why}, and was ended; choose fewer frames or a smaller window")

    def _kill(self, folder: Path, process: psutil.Process, state: str, message: str) -> None:
        end(process)
        with suppress(psutil.Error, subprocess.TimeoutExpired):
            process.wait(5.0)
        if not _load(folder / "end.json"):
            self._end(folder, state, message)

    def _end(self, folder: Path, state: str, message: str) -> None:
        content = json.dumps({"state": state, "message": message, "ended": time.time()})
        write_files([(folder / "end.json", content.encode())])

    def _last_words(self, folder: Path) -> str:
        """Return how a process ended that did not write it down."""
        ours = self._started.get(folder.name)
        code = "" if ours is None else f" with code {ours.poll()}"
        lines = (folder / "log.txt").read_text("utf-8", "replace").split("\n") if (folder / "log.txt").exists() else []
        last = next((line for line in reversed(lines) if line.strip()), "")
        return f"{_CRASH}{code}{f': {last[-_SHOWN:]}' if last else ''}"

    def _seen(self, folder: Path) -> dict[str, Any]:
        """Return what the page shows of a run."""
        request, over = _load(folder / "request.json"), _load(folder / "end.json")
        running = not over and ((folder / "pid.json").exists() or folder.name in self._started)
        state = (
            over["state"]
            if over
            else "stopping"
            if folder.name in self._stopped
            else "running"
            if running
            else "queued"
        )
        began = (_load(folder / "pid.json") or {"started": request["created"]})["started"]
        seconds = (over["ended"] if over else time.time()) - began if running or over else 0.0
        return {
            "run": folder.name, "file": request["file"], "words": request["words"], "name": request["name"],
            "state": over.get("state", state), "message": over.get("message", ""), "seconds": seconds,
            "progress": {} if over else _load(folder / "progress.json"), "early": (folder / "early.json").exists(),
            "answer": (folder / "answer.json").exists(),
        }  # fmt: skip


def _load(path: Path) -> dict[str, Any]:
    """Return a small file of the folder of a run; empty where it is not there, or not whole."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
