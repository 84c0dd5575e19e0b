"""A terminal in the place of stderr."""

import sys
from io import StringIO


class Terminal(StringIO):
    def isatty(self):
        return True


def watch(monkeypatch):
    """Put a terminal in the place of stderr; in the test itself, because pytest sets stderr anew after the fixtures."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found
