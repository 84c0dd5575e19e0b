"""The command line: parse, call, print; one clear line where something was wrong.

Heavy modules are imported by the command that needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from inspect import BoundArguments
from typing import Any

from cyclopts import App, CycloptsError, UnknownOptionError, UnusedCliTokensError

from doublewell.cli.commands import compare, demo, doctor, export, inspect, prepare
from doublewell.cli.experiments import plan, simulate
from doublewell.cli.identify import identify, repeat
from doublewell.cli.studio import studio
from doublewell.errors import InputError, Interrupted, shell_words
from doublewell.version import __version__

_OK, _WRONG_USE, _INTERRUPTED, _CLOSED_PIPE = 0, 2, 130, 141


def main(tokens: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 (see the command), 2 for wrong use, 130 after Ctrl-C.

    Wrong use ends in one line on stderr. An error of the program itself is not caught: it shows its traceback.
    """
    try:
        with shell_words():
            words = sys.argv[1:] if tokens is None else list(tokens)
            command, bound = parse(words)
            own = {"words": words} if "words" in bound.signature.parameters else {}  # to parse them again with settings
            answer = command(*bound.args, **bound.kwargs, **own)
        sys.stdout.flush()
    except KeyboardInterrupt as reason:
        known = isinstance(reason, Interrupted) and reason.result is not None
        _complain(str(reason) if known else "interrupted; nothing was left half written")
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as head, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except (CycloptsError, InputError, OSError, MemoryError) as error:
        _complain(explain(error))
        return _WRONG_USE
    return answer if isinstance(answer, int) else _OK  # some commands have an answer of their own


def parse(words: Sequence[str]) -> tuple[Callable[..., Any], BoundArguments]:
    """Return the function of a command and its arguments; wrong words raise CycloptsError."""
    command, bound, _ = _app().parse_args(list(words), exit_on_error=False, print_error=False)
    return command, bound


def explain(error: Exception) -> str:
    """Put an expected error into words; most have their own."""
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected words: {' '.join(error.unused_tokens or [])}; see doublewell --help"
    if isinstance(error, UnknownOptionError):  # the parser's own guess is often far off
        word = error.token.keyword or error.token.value
        return f"unknown option {word}; see {' '.join(['doublewell', *(error.command_chain or ())])} --help"
    if isinstance(error, MemoryError):
        return f"not enough memory ({error}): use a smaller mesh or fewer frames"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return str(error)


def _app() -> App:
    app = App(name="doublewell", help="Recover free energies from phase-field movies.", version=__version__)
    for command in (demo, inspect, prepare, identify, repeat, compare, export, plan, simulate, studio, doctor):
        app.command(command)
    app.register_install_completion_command()
    return app


def _complain(message: str) -> None:
    """Write one line; a message of several lines is joined."""
    sys.stderr.write(f"doublewell: {' '.join(message.split())}\n")
