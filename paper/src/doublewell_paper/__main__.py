"""python -m doublewell_paper: make the paper's tables and figures again and compare them with its numbers."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doublewell_paper.core import InputError
from doublewell_paper.run import Study, run_study
from doublewell_paper.table import Table


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 for wrong use, 130 after Ctrl-C."""
    parser = ArgumentParser(
        prog="python -m doublewell_paper",
        description="Make the paper's tables and figures again and compare them with its numbers. Results are written "
        "as they come; a run that was stopped resumes with the same command.",
    )
    parser.add_argument("tables", nargs="*", help="names of tables and figures; all without any")
    parser.add_argument("--out", type=Path, default=Path("out/paper"), help="folder for results, tables and figures")
    parser.add_argument("--tiny", action="store_true", help="small records, to test the code; the numbers mean nothing")
    parser.add_argument(
        "--weak", action="store_true", help="leave out the trajectory fits, which take most of the time"
    )
    parser.add_argument("--workers", type=int, help="number of processes; as many as there are cores without it")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors (and the JSON object)")
    given = parser.parse_args(words)
    report = _show if sys.stderr.isatty() and not (given.json or given.quiet) else None
    try:
        study = run_study(
            given.out, given.tables, tiny=given.tiny, trajectory=not given.weak, workers=given.workers, report=report
        )
    except (InputError, OSError) as error:
        sys.stderr.write(f"doublewell_paper: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("doublewell_paper: interrupted; finished records are kept\n")
        return 130
    if given.json:
        sys.stdout.write(json.dumps(_document(study), allow_nan=False) + "\n")
    elif not given.quiet:
        sys.stdout.write(f"{study}\n")
    return 0


def _show(count: int, total: int, left: float | None) -> None:
    rest = "" if left is None else f", about {left / 60:.0f} min left" if left > 90 else f", about {left:.0f} s left"
    sys.stderr.write(f"\r{count}/{total} records{rest}\x1b[K" + ("\n" if count == total else ""))


def _document(study: Study) -> dict[str, Any]:
    """Return the answer as JSON takes it: tables by name, each row with its entries."""
    return {
        "tables": {table.name: _rows(table) for table in study.tables},
        "lines": len(study.results.lines),
        "files": [str(path) for path in study.files],
    }


def _rows(table: Table) -> list[dict[str, Any]]:
    return [
        {"row": row.label, "marked": row.marked}
        | {
            column: {"ours": entry.ours, "paper": entry.paper, "text": entry.words()}
            for column, entry in zip(table.columns, row.entries, strict=True)
        }
        for row in table.rows
    ]


if __name__ == "__main__":
    sys.exit(main())
