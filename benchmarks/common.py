"""What the benchmarks share: a record to read, a table to print, a file to write."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from doublewell.record import Record

RESULTS = Path(__file__).parent / "results"
PAPER_SUPPORTS = [(5, 1 / 16), (8, 1 / 8)]


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
    write_json(RESULTS / f"{name}.json", {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine(), "rows": rows})


def write_json(path: Path, content: dict) -> None:
    path.parent.mkdir(exist_ok=True)
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
