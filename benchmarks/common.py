"""What the benchmarks share: a record to read, a table to print, a file to write."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from doublewell.record import Record

RESULTS = Path(__file__).parent / "results"


def synthetic_record(shape: tuple[int, int, int], noise: float = 0.03) -> Record:
    """A still circle with noise: the cost of reading does not depend on the dynamics."""
    frames, rows, columns = shape
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    u = np.tanh((0.2 - np.hypot(x - 0.5, y - 0.5)) / (np.sqrt(2) * 0.03))
    u = u + noise * np.random.default_rng(0).standard_normal((frames, rows, columns))
    return Record(u, dx=(1 / rows, 1 / columns), dt=5e-5, q=1.0)


def print_table(title: str, rows: list[dict]) -> None:
    names = list(rows[0])
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
    print(title)
    for k, row in enumerate(cells):
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if k == 0:
            print("  " + "  ".join("-" * width for width in widths))
    print()


def save_results(name: str, rows: list[dict]) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "rows": rows}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)


def machine() -> str:
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = f"{len(names)} cores of {names[0]}" if names else platform.processor()
    return f"{processor}, Python {platform.python_version()}, NumPy {np.__version__}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
