"""Table: numbers of this study beside the paper's, in one value that is written as Markdown and as LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

from doublewell_paper.results import Results

MARK = "(!)"
QUARTER = 1.25  # what the main text settles
HALF = 2.0  # what moves with settings that the main text leaves open
_NONE = "-"
_UNEXPLAINED = "outside the expected range, and we do not know why."


@dataclass(frozen=True)
class Entry:
    """One number: ours, the paper's where it has one, and how far apart they may be.

    ``factor`` 1.25 expects a ratio from 1/1.25 to 1.25; None expects nothing. ``limit`` is instead the largest
    difference that is expected, for numbers that may be zero or change sign. ``text`` stands for ours where it is not
    a plain number, and ``why`` is what may be behind a number outside its range.
    """

    ours: float | None = None
    paper: float | None = None
    factor: float | None = None
    limit: float | None = None
    text: str = ""
    paper_text: str = ""
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's, None where one is missing or the paper's is zero."""
        if self.ours is None or self.paper in (None, 0.0):
            return None
        return self.ours / float(self.paper or 1.0)

    @property
    def marked(self) -> bool:
        """Whether ours lies outside what was expected."""
        if self.ours is None or self.paper is None:
            return False
        if self.limit is not None:
            return abs(self.ours - self.paper) > self.limit
        ratio = self.ratio
        return self.factor is not None and ratio is not None and not 1 / self.factor <= ratio <= self.factor

    def words(self) -> str:
        """Return ours, and in brackets the paper's and their ratio."""
        ours = self.text or number(self.ours)
        if self.paper is None and not self.paper_text:
            return ours
        theirs = self.paper_text or number(self.paper)
        ratio = "" if self.text or self.limit is not None or self.ratio is None else f"; {self.ratio:.2f}"
        return f"{ours} [{theirs}{ratio}]{' ' + MARK if self.marked else ''}"


@dataclass(frozen=True)
class Row:
    """A label, its entries, and the sentence that is shown when one of them is marked and has none of its own."""

    label: str
    entries: tuple[Entry, ...]
    why: str = ""

    @property
    def marked(self) -> bool:
        """Whether an entry lies outside what was expected."""
        return any(entry.marked for entry in self.entries)


@dataclass(frozen=True)
class Table:
    """Rows under named columns, what they show, and remarks that always stand below."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks, and one sentence for all marked entries that share it."""
        groups: dict[str, list[str]] = {}
        for row in self.rows:
            for column, entry in zip(self.columns, row.entries, strict=True):
                if entry.marked:
                    groups.setdefault(entry.why or row.why or _UNEXPLAINED, []).append(f"{row.label}, {column}")
        return (*self.remarks, *(f"{MARK} {'; '.join(places)}: {why}" for why, places in groups.items()))


@dataclass(frozen=True)
class TableKind:
    """How one table is made: from the results of the named cases."""

    name: str
    cases: tuple[str, ...]
    make: Callable[[Results], Table]


@cache
def paper_numbers() -> dict[str, Any]:
    """Return the paper's own numbers by table, as they are printed; errors in percent unless named otherwise.

    >>> paper_numbers()["principal_noise_0.03"]["STAC m=2"][0]
    5.65
    """
    text = files("doublewell_paper").joinpath("paper_numbers.json").read_text(encoding="utf-8")
    numbers: dict[str, Any] = json.loads(text)
    return numbers


def number(value: float | None) -> str:
    """Return a number with three digits that count, as people write it.

    >>> number(5.6512), number(0.00012345), number(80.0), number(None), number(12345.0)
    ('5.65', '1.23e-04', '80', '-', '12345')
    """
    if value is None or not isfinite(value):
        return _NONE
    if value == round(value) and abs(value) < 1e6:
        return f"{value:.0f}"
    if 1e-3 <= abs(value) < 1e3:
        text = f"{value:.3g}"
        return text if "e" not in text else f"{value:.0f}"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.2e}"


def markdown(table: Table) -> str:
    """Return a table as Markdown: a heading, the cells, the notes."""
    lines = [f"### {table.title}", "", _pipe(("", *table.columns)), _pipe(["---"] * (1 + len(table.columns)))]
    lines += [_pipe((row.label, *(entry.words() for entry in row.entries))) for row in table.rows]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]) + "\n"


def _pipe(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def latex(table: Table) -> str:
    """Return a table as a LaTeX table environment for the package booktabs."""
    return "\n".join(_latex_lines(table)) + "\n"


def _latex_lines(table: Table) -> Iterator[str]:
    yield r"\begin{table}[tbp]\centering\small"
    yield rf"\caption{{{_escape(table.title)}.}}\label{{tab:{table.name}}}"
    yield rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}\toprule"
    yield " & ".join(["", *map(_escape, table.columns)]) + r"\\\midrule"
    for row in table.rows:
        yield " & ".join(_escape(cell) for cell in (row.label, *(entry.words() for entry in row.entries))) + r"\\"
    yield r"\bottomrule\end{tabular}"
    for note in table.notes:
        yield rf"\par\footnotesize {_escape(note)}"
    yield r"\end{table}"


_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}", "\\": r"\textbackslash{}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "±": r"$\pm$"}


def _escape(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
