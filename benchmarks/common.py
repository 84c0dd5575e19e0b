"""What the benchmarks share: a record to read, a table to print, a file to write, and --tiny.

Every script takes --tiny: the smallest record on which its code runs, seconds on one core, to see that it still runs.
Its numbers mean nothing; they are printed, and nothing is written to results/ or docs/.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np

from doublewell.record import Record

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
T = TypeVar("T")
TINY = "--tiny" in sys.argv or "BENCHMARKS_TINY" in os.environ
if TINY:
    os.environ["BENCHMARKS_TINY"] = "1"  # for the processes that a script starts
    sys.argv = [word for word in sys.argv if word != "--tiny"]
    _FOLDER = TemporaryDirectory()
SMALL = (32, 25, 0.08, 4e-4)  # cells, frames, epsilon and dt of a tiny record: one shape, so that programs are shared


def sized(full: T, *, tiny: T) -> T:
    """Return a setting of the benchmark, or that of --tiny."""
    return tiny if TINY else full


def words(tiny: str = "") -> list[str]:
    """Return the words of the command line; where --tiny stands alone, those of its run."""
    return sys.argv[1:] or sized([], tiny=tiny.split())


def parser_in_parts() -> ArgumentParser:
    """Return a parser of runs that are made in parts, by their seeds, and joined."""
    parser = ArgumentParser()
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--out", type=Path, help="results, else those in benchmarks/results")
    parser.add_argument("--merge", nargs="+", type=Path, help="join such results")
    return parser


def target(path: Path) -> Path:
    """Return where a file is written: with --tiny, its name in a temporary folder."""
    return Path(_FOLDER.name) / path.name if TINY else path


def need(*packages: str) -> None:
    """End where a package is missing that is no part of doublewell's own environment."""
    if missing := [name for name in packages if find_spec(name) is None]:
        print(f"needs {', '.join(missing)}: not installed")
        raise SystemExit(0 if TINY else 1)


PAPER_SUPPORTS = sized([(5, 1 / 16), (8, 1 / 8)], tiny=[(5, 1 / 8), (8, 3 / 16)])


def evidence_files() -> list[Path]:
    """Return the stored evidence of trajectory_records.py, a file for each noise."""
    return sorted((RESULTS / "evidence").glob("noise_*.npz"))[: sized(None, tiny=1)]


def stored_evidence(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of such a file; with --tiny two records of two laws."""
    content = dict(np.load(path))
    if TINY:
        pairs = [content["law"] == name for name in ("sixth", "bernstein3")]
        chosen = np.concatenate([np.flatnonzero(pair)[:2] for pair in pairs])
        content = {name: array if array.ndim == 0 else array[chosen] for name, array in content.items()}
    return content


def synthetic_record(shape: tuple[int, int, int], noise: float = 0.03) -> Record:
    """A still circle with noise: the cost of reading does not depend on the dynamics."""
    frames, rows, columns = shape
    y, x = np.meshgrid((np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij")
    u = np.tanh((0.2 - np.hypot(x - 0.5, y - 0.5)) / (np.sqrt(2) * 0.03))
    u = u + noise * np.random.default_rng(0).standard_normal((frames, rows, columns))
    return Record(u, dx=(1 / rows, 1 / columns), dt=5e-5, q=1.0)


def file_of(name: str, about: str | None) -> Path:
    """Return the path of a file that is not ours from the command line; exit without one, with 0 under --tiny."""
    parser = ArgumentParser(description=about)
    parser.add_argument("file", nargs="?", type=Path)
    path: Path | None = parser.parse_args(words()).file
    if path is None:
        print(f"needs the path of {name}")
        raise SystemExit(0 if TINY else 1)
    return path


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


def save_results(name: str, rows: list[dict], path: Path | None = None) -> None:
    """Write the rows to a file, else to that of their name in results/."""
    write_json(
        path or RESULTS / f"{name}.json", {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "rows": rows}
    )


def join_results(name: str, paths: list[Path], key) -> list[dict]:
    """Join the rows of runs in parts into the file of their name, with date and machine of the first; return them."""
    contents = [json.loads(path.read_text()) for path in paths]
    rows = sorted([row for content in contents for row in content["rows"]], key=key)
    write_json(RESULTS / f"{name}.json", contents[0] | {"rows": rows})
    return rows


def markdown(table: list[list[str]]) -> str:
    """Return a table of a page, its first row the heads."""
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def renewed(page: str, marker: str, table: str) -> str:
    """Return a page with a table in the place of the one below the comment that names its file."""
    before, rest = page.split(f"<!-- numbers: {marker} -->\n")
    return f"{before}<!-- numbers: {marker} -->\n{table}\n\n" + rest.split("\n\n", 1)[1]


def write_json(path: Path, content: dict) -> None:
    """Write a file at once; with --tiny print its content."""
    if TINY:
        print(json.dumps(content))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1) + "\n")
    temporary.replace(path)


def machine() -> str:
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    processor = f"{len(names)} cores of {names[0]}" if names else platform.processor()
    return f"{processor}, Python {platform.python_version()}, NumPy {np.__version__}"


def description() -> dict:
    """The machine in detail, without names of hosts or folders."""
    import numba
    import scipy

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    memory = [line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    return {
        "processor": machine().split(",")[0],
        "vectors": next((name for name in ("avx512f", "avx2", "avx", "asimd") if name in _flags()), ""),
        "caches": _caches(),
        "memory GB": round(int(memory[0]) / 1e6, 1) if memory else None,
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "numba": numba.__version__,
        "BLAS": f"{blas['name']} {blas['version']}",
    }


def _flags() -> list[str]:
    return next((line.split() for line in _lines("/proc/cpuinfo") if line.startswith(("flags", "Features"))), [])


def _caches() -> str:
    """Sizes of the caches of one core, nearest first."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    read = [[(folder / name).read_text().strip() for name in ("level", "type", "size")] for folder in folders]
    return ", ".join(f"L{level} {size}" for level, kind, size in read if kind != "Instruction")


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
