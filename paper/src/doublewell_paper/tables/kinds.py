"""TableKind: a table's name, the cases it needs and how it is made; and what several tables say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from doublewell_paper.results import Results
from doublewell_paper.table import Table

__all__ = ["DEGREE_FIVE", "HALF", "OPEN_CONTROL", "QUARTER", "SHORT", "TableKind", "count_text"]

QUARTER = 1.25  # what the main text settles
HALF = 2.0  # what moves with settings that the main text leaves open
DEGREE_FIVE = (
    "degree five is weakly determined, so its errors move by about two with settings that the main text leaves open "
    "(outline of the nonconvex start, noise seeds, validation split)."
)
OPEN_CONTROL = "filter, widths and their choice are in the paper's supplement; ours are stated below the tables."
SHORT = "the length, supports and split of short records are in the paper's supplement; ours are stated below."


@dataclass(frozen=True)
class TableKind:
    """How one table is made: from the results of the named cases."""

    name: str
    cases: tuple[str, ...]
    make: Callable[[Results], Table]


def count_text(count: int, total: int) -> str:
    """Return a count as text."""
    return f"{count}/{total}"
