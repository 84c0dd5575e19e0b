"""Run the code of a page or of a notebook in order and compare what it prints with what is shown.

    python docs/site/run_page.py docs/tutorial.ipynb --out build/tutorial [--write]

Python blocks share one set of names; every line of a sh block is a command of doublewell. A text block right after a
code block is what the code printed: the words must be the same, the numbers within one percent or two units of their
last digit. With --write the page gets what was printed now, and pictures named by a comment such as
<!-- from figures/law.png --> are copied. The cells of a notebook run in a kernel of their own, then the sh blocks
between them; the texts of its outputs are compared, which pictures and HTML have too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"<!-- from (\S+) -->\n!\[[^\]]*\]\((\S+?)\)")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_NEAR = 0.01


@dataclass(frozen=True)
class Ran:
    """A block of code, what the page shows below it (None: nothing), and what it printed."""

    code: str
    shown: str | None
    printed: str
    place: tuple[int, int]  # of the text that is shown

    @property
    def same(self) -> bool:
        """Whether the page shows what was printed."""
        return self.shown is None or alike(self.shown, self.printed)


def alike(one: str, other: str) -> bool:
    """Tell whether two texts have the same words, and numbers within one percent or two units of the last digit.

    >>> alike("noise 0.02, 3 steps", "noise 0.0201, 3 steps"), alike("noise 0.020", "noise 0.030"), alike("a", "b")
    (True, False, False)
    """
    words = [_NUMBER.sub("#", text).split() for text in (one, other)]
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
    return words[0] == words[1] and all(_near(a, b) for a, b in pairs)


def _near(one: str, other: str) -> bool:
    digits, _, power = one.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    slack = 2.0 * unit if "." in digits else 0.0  # integers are counts
    return math.isclose(float(one), float(other), rel_tol=_NEAR, abs_tol=slack)


def run_page(text: str, folder: Path, names: dict[str, Any] | None = None) -> Iterator[Ran]:
    """Run the blocks of a page in a folder, one after the other; `names` are there before the first."""
    names = {} if names is None else names
    folder.mkdir(parents=True, exist_ok=True)
    for found in _BLOCK.finditer(text):
        kind, code, shown = found.groups()
        stream = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(stream):
            if kind == "python":
                exec(compile(code, "page", "exec"), names)
            else:
                _run_commands(code)
        yield Ran(code, shown, stream.getvalue(), found.span(3))


def run_notebook(path: Path, folder: Path) -> tuple[list[Ran], Any]:
    """Run a notebook in a folder; return its cells and commands, and the notebook with its new outputs."""
    import nbformat
    from nbclient import NotebookClient

    folder.mkdir(parents=True, exist_ok=True)
    stored = nbformat.read(path, as_version=4)
    fresh = deepcopy(stored)
    drawn = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    NotebookClient(fresh, timeout=None, resources={"metadata": {"path": str(folder)}}).execute(env=drawn)
    fresh.metadata = stored.metadata
    cells = list(zip(stored.cells, fresh.cells, strict=True))
    blocks = [Ran(a.source, _texts(a), _texts(b), (0, 0)) for a, b in cells if a.cell_type == "code"]
    for _, cell in cells:
        cell.metadata = {}  # times of execution
        blocks += run_page(cell.source, folder) if cell.cell_type == "markdown" else []
    return blocks, fresh


def _texts(cell: Any) -> str:
    return "".join(item.get("text") or item.data["text/plain"] for item in cell.outputs)


def _run_commands(code: str) -> None:
    from doublewell.cli import main

    for line in code.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True)
        words = [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
        if program != "doublewell":
            raise ValueError(f"{line!r}: only commands of doublewell are run")
        if code := main(words):
            raise RuntimeError(f"{line!r} ended with the exit code {code}")


def rewritten(text: str, blocks: list[Ran]) -> str:
    """Return the page with what was printed in the place of what it showed."""
    for ran in reversed([block for block in blocks if block.shown is not None]):
        lines = "".join(f"{line.rstrip()}\n" for line in ran.printed.strip("\n").splitlines())
        text = text[: ran.place[0]] + lines + text[ran.place[1] :]
    return text


def main() -> int:
    """Run a page; the exit code is 1 where it shows something else than was printed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    shutil.rmtree(asked.out, ignore_errors=True)
    if asked.page.suffix == ".ipynb":
        import nbformat

        blocks, fresh = run_notebook(asked.page, asked.out)
        text, written = "\n".join(cell.source for cell in fresh.cells), nbformat.writes(fresh) + "\n"
    else:
        text = asked.page.read_text(encoding="utf-8")
        blocks = list(run_page(text, asked.out))
        written = rewritten(text, blocks)
    if asked.write:
        asked.page.write_text(written, encoding="utf-8")
        for source, target in _PICTURE.findall(text):
            shutil.copy(asked.out / source, asked.page.parent / target)
        return 0
    differ = [block for block in blocks if not block.same]
    for block in differ:
        print(f"{asked.page}: the page shows\n{block.shown}\nbut this was printed:\n{block.printed}")
    print(f"{asked.page}: {len(blocks)} blocks ran, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    raise SystemExit(main())
