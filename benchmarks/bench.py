"""All tables of speed and memory, in one go, and what changed since they were stored.

Run: python benchmarks/bench.py            # prints all, writes results/bench.json with the machine's description
     python benchmarks/bench.py --compare  # the quick ones again, beside the stored ones; writes nothing
Times of different machines do not compare; of the same one they differ by some percent from run to run. A change is
marked when it is beyond 15 %: "slower" or "faster".
"""

from __future__ import annotations

import one_thread  # noqa: F401

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime

import fft_route
import floor
import memory
import scaling
from common import RESULTS, description, print_table, words, write_json

STORED = RESULTS / "bench.json"
NOISE = 0.15
TABLES: dict[str, tuple[str, Callable[[bool], list[dict]]]] = {
    "floor": (f"Against the floor of the arithmetic, one core; asked {floor.ASKED}", floor.table),
    "growth": ("Growth with pixels, frames, degree, threads", scaling.growth),
    "others": ("Other methods, both supports, one core", lambda quick: scaling.others(3 if quick else 5)),
    "fft": ("Wide supports: direct sums and FFT, one core", fft_route.table),
}
# what names a row, and the times that are compared
NAMES = ("series", "record", "mesh", "degree", "threads", "half-width in cells")
TIMES = ("seconds", "direct, s")


def run_all() -> None:
    tables = {}
    for name, (title, make) in TABLES.items():
        tables[name] = make(False)
        print_table(title, tables[name])
    tables["memory"] = memory.table()
    print_table(memory.TITLE, tables["memory"])
    write_json(STORED, {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": description(), **tables})
    if rows := scaling.baselines():
        print_table("PySINDy on the same records (benchmarks/pysindy_speed.py)", rows)


def compare() -> None:
    stored = json.loads(STORED.read_text())
    here = description()
    for key, value in stored["machine"].items():
        if here.get(key) != value:
            print(f"{key}: stored {value}, here {here.get(key)}")
    for name, (title, make) in TABLES.items():
        rows = compared(stored[name], make(True))
        print_table(f"{title}: stored {stored['date']} and now", rows)


def compared(old: list[dict], new: list[dict]) -> list[dict]:
    """One row for each case that both have: old and new time, their ratio, and a mark beyond noise."""
    before = {_name(row): _time(row) for row in old}
    return [
        {
            "case": _name(row),
            "old": before[_name(row)],
            "new": _time(row),
            "ratio": round(_time(row) / before[_name(row)], 2),
            "": _mark(_time(row) / before[_name(row)]),
        }
        for row in new
        if _name(row) in before
    ]


def _name(row: dict) -> str:
    return ", ".join(f"{key} {row[key]}" for key in NAMES if key in row)


def _time(row: dict) -> float:
    return next(row[key] for key in TIMES if key in row)


def _mark(ratio: float) -> str:
    return "slower" if ratio > 1 + NOISE else "faster" if ratio < 1 / (1 + NOISE) else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", action="store_true", help="rerun the quick ones and compare")
    if parser.parse_args(words()).compare:
        compare()
    else:
        run_all()
