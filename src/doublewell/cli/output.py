"""Output: an answer on stdout, as words or as one JSON object, and the progress of the work on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import RLock, Timer
from typing import Any

from cyclopts import Parameter

from doublewell.cli.options import ANSWER, Switch
from doublewell.hints import Report

_PATIENCE = 1.0  # seconds before anything appears
_PATIENT = "compiling and fitting; the first time on a machine takes a minute or more (--quiet hides this line)"
_BESIDE = 20  # characters that spinner, shortest bar, share and time take from the line
_SHORTER = (  # what a narrow terminal does without, the least useful first
    ("^fitting: ", ""),
    ("whole record, ", ""),
    (" standard errors", " s.e."),
    (" iterations", ""),
    ("segments, links", "links"),
    (", moved [^,]*", ""),
)


class Bar:
    """The progress of the work, on a terminal, once it takes more than a second.

    A timer shows it, not the work: a stage that is silent for long, such as a first compilation, still has its name
    and a moving sign on the screen.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._lock = RLock()  # the timer shows what the work says
        self._shown: Any = None
        self._said: tuple[str, int, int] | None = None
        self._timer: Timer | None = None

    def __enter__(self) -> Bar:
        if self._wanted:
            self._timer = Timer(_PATIENCE, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._wanted = False
            if self._timer is not None:
                self._timer.cancel()
            if self._shown is not None:
                self._shown.stop()

    def stage(self, name: str) -> Callable[[int, int], None]:
        """Begin a stage of the work and return its callback (done, total)."""
        self.show(name, 0, 0)
        return partial(self.show, name)

    def show(self, name: str, done: int, total: int) -> None:
        """Show how far a stage is; a total of 0 is not known."""
        with self._lock:
            self._said = (name, done, total)
            if self._shown is not None:
                self._shown.say(*self._said)

    def _appear(self) -> None:
        with self._lock:
            if self._wanted:
                self._shown = _Screen()
                if self._said is not None:
                    self._shown.say(*self._said)


class _Screen:
    """One line on the terminal: a spinner, the name of the stage, how far it is, and the seconds so far."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        self._console = Console(stderr=True)
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def say(self, name: str, done: int, total: int) -> None:
        self._bar.tasks[0].total = total or None  # update() takes None for "as before"
        words = one_line(name, self._console.width - _BESIDE)
        self._bar.update(self._task, description=words, completed=done)

    def stop(self) -> None:
        self._bar.stop()


def one_line(words: str, room: int) -> str:
    """Return words that fit into one line: shorter forms where they are known, then cut.

    >>> one_line("fitting: whole record, step 3: cost 12.5", 20)
    'step 3: cost 12.5'
    """
    for pattern, shorter in _SHORTER:
        if len(words) <= room:
            return words
        words = re.sub(pattern, shorter, words)
    return words if len(words) <= room else words[: max(room - 3, 0)] + "..."


@Parameter(name="*", group=ANSWER)
@dataclass(frozen=True)
class Output:
    """How the answer is given.

    Parameters
    ----------
    json
        Print one JSON object and nothing else.
    quiet
        Print nothing but errors (and the JSON object, when asked for).
    """

    json: Switch = False
    quiet: Switch = False

    def answer(self, text: str, document: dict[str, Any]) -> None:
        """Print the answer in the form that was asked for."""
        if self.json:
            _write(json.dumps(document, allow_nan=False))
        elif not self.quiet:
            _write(text)

    def fitting(self, bar: Bar) -> Report:
        """Return a callback that shows the progress of a fit, and first of all that compiling takes its time.

        A terminal shows the bar; elsewhere one line on stderr says why nothing happens.
        """
        told = self.json or self.quiet or sys.stderr.isatty()

        def show(name: str, done: int, total: int) -> None:
            nonlocal told
            if not told:
                told = True
                sys.stderr.write(f"doublewell: {_PATIENT}\n")
                sys.stderr.flush()
            bar.show(name, done, total)

        return show

    def bar(self) -> Bar:
        """Return the sign of progress, silent where nobody watches."""
        return Bar(wanted=not (self.json or self.quiet) and sys.stderr.isatty())


def _write(text: str) -> None:
    """Write a text; characters that the terminal does not know are escaped, not fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
