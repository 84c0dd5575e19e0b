"""The command line: parse, call, print. Heavy rooms are imported by the command that needs them."""

from doublewell.cli.main import main

__all__ = ["main"]
