"""Output: an answer on stdout, as words or as one JSON object, and a progress bar on stderr."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Annotated, Any

from cyclopts import Parameter

__all__ = ["Bar", "Output"]

_PATIENCE = 1.0  # seconds before a bar appears


class Bar:
    """A progress bar that appears on a terminal when the work takes more than a second."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted, self._start = wanted, monotonic()
        self._shown: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.stop()

    def stage(self, name: str) -> partial[None]:
        """Return a callback (done, total) for one stage of the work."""
        return partial(self.show, name)

    def show(self, name: str, done: int, total: int) -> None:
        """Show how far a stage is, once the second has passed."""
        if not self._wanted or monotonic() - self._start < _PATIENCE:
            return
        if self._shown is None:
            self._shown = _start_bar()
        if name not in self._tasks:
            self._tasks[name] = self._shown.add_task(name, total=total)
        self._shown.update(self._tasks[name], completed=done, total=total)


def _start_bar() -> Any:
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar


@Parameter(name="*")
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

    json: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    quiet: Annotated[bool, Parameter(negative=(), show_default=False)] = False

    def answer(self, text: str, document: dict[str, Any]) -> None:
        """Print the answer in the form that was asked for."""
        if self.json:
            _write(json.dumps(document, allow_nan=False))
        elif not self.quiet:
            _write(text)

    def bar(self) -> Bar:
        """Return a progress bar, silent where nobody watches."""
        return Bar(wanted=not (self.json or self.quiet) and sys.stderr.isatty())


def _write(text: str) -> None:
    """Write a text; characters that the terminal does not know are escaped, not fatal."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
