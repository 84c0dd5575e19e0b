"""Growth of peak memory, kernels compiled before, as a share of the record as it is stored.

Run: python benchmarks/memory.py
Each row is measured in a process of its own, so that no peak hides another.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import PAPER_SUPPORTS, print_table, save_results, sized, synthetic_record

from doublewell.weak.assembly import weak_evidence
from doublewell.io import open_record, save
from doublewell.law import Bernstein
from doublewell.record import Record
from doublewell.observation import survey

SHAPE = sized((101, 512, 512), tiny=(25, 96, 96))
SMALL = (25, 64, 64)
KINDS = sized(("NumPy float64", "zarr float64", "zarr float32"), tiny=("zarr float32",))
CASES = [(task, kind) for task in ("assembly", "survey") for kind in KINDS]
TITLE = "Growth of peak memory, 101 x 512 x 512; assembly: degree 5, both supports"


def table() -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        return [_in_own_process(task, kind, folder) for task, kind in CASES]


def main() -> None:
    rows = table()
    print_table(TITLE, rows)
    save_results("memory", rows)


def _in_own_process(task: str, kind: str, folder: str) -> dict:
    subprocess.run([sys.executable, __file__, "write", kind, folder], check=True)
    done = subprocess.run([sys.executable, __file__, task, kind, folder], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def write(kind: str, folder: str) -> None:
    """Store the record, unless it is there or stays in memory. A process of its own, for its temporaries are large."""
    number = kind.split()[1]
    for shape in (SMALL, SHAPE):
        path = _path(folder, number, shape)
        if kind.startswith("zarr") and not path.exists():
            record = synthetic_record(shape)
            save(record.replace(record.slab().astype(number)), path)


def measure(task: str, kind: str, folder: str) -> dict:
    number, stored = kind.split()[1], kind.startswith("zarr")
    small, record = (
        open_record(_path(folder, number, shape)) if stored else synthetic_record(shape) for shape in (SMALL, SHAPE)
    )
    _run(task, small)  # compiles the kernels or loads them, and sets up the reader of files
    growth = _growth(lambda: _run(task, record))
    size = int(np.prod(SHAPE)) * np.dtype(number).itemsize
    return {
        "task": task,
        "record": kind,
        "record MB": round(size / 1e6, 1),
        "growth MB": round(growth / 1e6, 1),
        "share": round(growth / size, 3),
        "asked": 0.5,
    }


def _path(folder: str, number: str, shape: tuple[int, ...]) -> Path:
    return Path(folder) / f"{number}_{shape[-1]}.zarr"


def _run(task: str, record: Record) -> None:
    if task == "survey":
        survey(record)
    else:
        weak_evidence(record, Bernstein(5), PAPER_SUPPORTS)


def _growth(action: Callable[[], None]) -> int:
    before = _status("VmRSS")
    with open("/proc/self/clear_refs", "w") as reset:  # noqa: PTH123
        reset.write("5")  # the kernel forgets the old peak
    action()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith(field))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        print(json.dumps(measure(*sys.argv[1:])))
