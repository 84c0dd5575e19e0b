"""Progress: what the work reports, as one moving line of a terminal or of a notebook."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from threading import RLock, Timer
from time import monotonic
from typing import Any

from doublewell.errors import InputError, shown
from doublewell.hints import STATED

_PATIENCE = 1.0  # seconds before anything appears
_PAUSE = 0.1  # seconds between two pictures of a notebook
_TAKEN = 20  # characters that spinner, shortest bar, fraction and time take from the line
_SHORTER = {  # what a narrow terminal does without, the least useful first
    "^fitting: ": "", "whole record, ": "", " standard errors": " s.e.", " iterations": "", "segments, links": "links",
    ", moved [^,]*": "",
}  # fmt: skip


class Bar:
    """The progress of the work: below the cell of a notebook, or on a terminal once it takes more than a second.

    There a timer shows it, not the work: a stage that is silent for long, such as a first compilation, still has its
    name and a moving sign on the screen.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._lock = RLock()  # the timer shows what the work reports
        self._shown: Any = None
        self._said: tuple[str, int, int] | None = None
        self._timer: Timer | None = None

    def __enter__(self) -> Bar:
        if self._wanted and in_notebook():
            self._shown = _Cell()
        elif self._wanted:
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
        """Show how far a stage is; a total of 0 is not known. What is stated stays above it."""
        with self._lock:
            if total == STATED:
                if self._shown is not None:
                    self._shown.state(name)
                elif self._wanted:
                    sys.stderr.write(f"{name}\n")
                return
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

        words, self._console = TextColumn("{task.description}", markup=False), Console(stderr=True)
        columns = (SpinnerColumn(), words, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def say(self, name: str, done: int, total: int) -> None:
        self._bar.tasks[0].total = total or None  # update() takes None for "as before"
        words = one_line(name, self._console.width - _TAKEN)
        self._bar.update(self._task, description=words, completed=done)
        self._bar.tasks[0].finished_time = None  # a stage that has ended would stop the clock and the spinner

    def state(self, words: str) -> None:
        self._bar.console.print(words, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        self._bar.stop()


class _Cell:
    """The same below a cell of a notebook: a bar of HTML, which needs no widgets; what was stated stays."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._stated, self._shown_at, self._began = HTML, "", 0.0, monotonic()
        self._display = display(HTML(""), display_id=True)

    def say(self, name: str, done: int, total: int) -> None:
        now = monotonic()
        if now - self._shown_at < _PAUSE and done not in (0, total):
            return
        self._shown_at, size = now, f' value="{done}" max="{total}"' if total else ""
        words = escape(f"{name} ({now - self._began:.0f} s)")
        self._display.update(self._html(f"{self._stated}<div><progress{size}></progress> {words}</div>"))

    def state(self, words: str) -> None:
        self._stated += f"<div>{escape(words)}</div>"

    def stop(self) -> None:
        self._display.update(self._html(self._stated))


def in_notebook() -> bool:
    """Tell whether this is the kernel of a notebook, which has no terminal."""
    from rich.console import Console

    return Console().is_jupyter


@contextmanager
def reporting(progress: Any, stage: str | None = None) -> Iterator[Any]:
    """Yield the callback that work reports to: `progress` itself, that of a bar for True, or None.

    With a `stage` the callback takes (steps done, steps), else the name of the stage before them. Where neither a
    terminal nor a notebook shows it, a bar is silent.
    """
    if progress is True:
        with Bar(wanted=sys.stderr.isatty() or in_notebook()) as bar:
            count = bar.stage(stage or "preparing")
            yield bar.show if stage is None else count
    elif progress in (None, False) or callable(progress):
        yield progress or None
    else:
        raise InputError(f"progress is {shown(progress)}: expected True (shows a bar), a function, or None")


def one_line(words: str, room: int) -> str:
    """Return words that fit into one line: shorter forms where they are known, then cut.

    >>> one_line("fitting: whole record, step 3: cost 12.5", 20)
    'step 3: cost 12.5'
    """
    for pattern, shorter in _SHORTER.items():
        if len(words) <= room:
            return words
        words = re.sub(pattern, shorter, words)
    return words if len(words) <= room else words[: max(room - 3, 0)] + "..."
