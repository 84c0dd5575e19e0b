"""The tables of docs/baselines.md from the kept results; run it after a new run of baselines.py or pysindy_speed.py.

Run: python benchmarks/baselines_page.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
PAGE = ROOT / "docs/baselines.md"
LAWS = ("sixth", "exponential", "rational", "bernstein3")
ORDER = (
    "trajectory", "STAC, short", "STAC", "STAC, the paper's route", "analytic weak", "WSINDy test functions",
    "smoothed FD4", "direct FD4", "PySINDy LS masked", "PySINDy NNLS masked", "PySINDy LS", "PySINDy NNLS", "SPINN",
    "PFWNN", "PINN",
)  # fmt: skip
Row = dict


def tables() -> dict[str, str]:
    """Every table of the page by its name."""
    rows = [row for row in kept("baselines.json") if row["status"] == "fitted" and row["cells"] == 256]
    return {
        "published": published(rows),
        "errors 0.01": errors(rows, 0.01),
        "errors 0.03": errors(rows, 0.03),
        "coverage": coverage(rows),
        "speed": speed(),
        "public": public(kept("public_baselines.json")),
    }


def kept(name: str) -> list[Row]:
    return json.loads((RESULTS / name).read_text())["rows"]


def published(rows: list[Row]) -> str:
    """The paper's set-up: sixth law, noise 0.01; ranges over the geometries, of means over the method's seeds."""
    lines = []
    for name, group in by_method([row for row in rows if (row["law"], row["noise"]) == ("sixth", 0.01)]):
        wells = {row["admissible"] for row in group}
        cells = [name, "some" if len(wells) > 1 else "yes" if wells == {True} else "no"]
        cells += [ranged(group, key) for key in ("e_G", "e_G_positive", "e_G_exact", "e_F")]
        timed = [row | {"cost": cost(row)} for row in group]
        cells += [ranged(timed, "cost", seconds), ranged(group, "memory_mb", whole), device(group), counted(group)]
        lines.append(cells)
    head = ["method", "double well", "e_G", "positive", "exact", "e_F", "seconds", "MB", "device", "fits"]
    return markdown(head, lines)


def errors(rows: list[Row], noise: float) -> str:
    """Raw e_G for each law: ranges over the geometries."""
    lines = []
    for name, group in by_method([row for row in rows if row["noise"] == noise]):
        if name == "STAC, the paper's route":
            continue
        laws = [[row for row in group if row["law"] == law] for law in LAWS]
        lines.append([name, *(ranged(part, "e_G") for part in laws), counted(group)])
    return markdown(["method", *LAWS, "fits"], lines)


def coverage(rows: list[Row]) -> str:
    """The share of phase values inside the 95 % intervals, as a mean over records."""
    lines = []
    for name, group in by_method([row for row in rows if row["coverage"] is not None]):
        cells = []
        for noise in (0.01, 0.03):
            shares = [100 * row["coverage"] for row in group if row["noise"] == noise]
            cells.append(f"{sum(shares) / len(shares):.0f} ({len(shares)})" if shares else "-")
        lines.append([name, *cells])
    return markdown(["method", "noise 0.01", "noise 0.03"], lines)


def speed() -> str:
    names = (
        "geometry", "e_G", "PySINDy e_G", "seconds", "PySINDy seconds", "times faster", "MB", "PySINDy MB",
        "times smaller",
    )  # fmt: skip
    return markdown(list(names), [[str(row[name]) for name in names] for row in kept("pysindy_speed.json")])


def public(rows: list[Row]) -> str:
    """The public 1-D record, clean and with noise; a method that refuses has its reason in the file."""
    lines = []
    for name, group in by_method(rows):
        found = {row["noise"]: row for row in group if row["status"] == "fitted"}
        refused = {row["noise"] for row in group if row["status"] != "fitted"}
        shown = [
            percent(found[noise]["e_G"]) if noise in found else "refused" if noise in refused else "not run"
            for noise in (0.0, 0.03)
        ]
        noisy = found.get(0.03)
        lines.append([name, *shown, *([seconds(cost(noisy)), device([noisy])] if noisy else ["-", "-"])])
    return markdown(["method", "clean", "noise 0.03", "seconds", "device"], lines)


def by_method(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    names = sorted({row["method"] for row in rows}, key=lambda name: (place(name), name))
    return [(name, [row for row in rows if row["method"] == name]) for name in names]


def place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def ranged(group: list[Row], key: str, form: Callable[[float], str] | None = None) -> str:
    """Least and most over the records of means over the method's seeds."""
    records: dict[tuple, list[float]] = {}
    for row in group:
        if row.get(key) is not None:
            records.setdefault((row["law"], row["geometry"], row["noise"]), []).append(row[key])
    if not records:
        return "-"
    means = [sum(values) / len(values) for values in records.values()]
    low, high = ((form or percent)(value) for value in (min(means), max(means)))
    return low if low == high else f"{low} to {high}"


def cost(row: Row) -> float:
    """Seconds of one core for a method on a CPU, where they were taken; else those of the clock."""
    on_cpu = row["device"].startswith("cpu")
    return row.get("processor_seconds", row["seconds"]) if on_cpu else row["seconds"]


def percent(value: float) -> str:
    if value < 1e-3:
        return f"{value:.0e}"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def whole(value: float) -> str:
    return f"{value:.0f}"


def device(group: list[Row]) -> str:
    return ", ".join(sorted({row["device"].split(":")[0] for row in group}))


def counted(group: list[Row]) -> str:
    """How many fits are behind a line: records times seeds of the method."""
    return str(len(group))


def markdown(head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def renewed(text: str) -> str:
    """The page with its tables made anew; a marked table that nobody makes is an error."""
    made = tables()

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}\n{made[found[2]]}\n\n"

    return re.sub(r"(<!-- table: ([\w. ]+) -->\n)\n*(?:\|[^\n]*\n)*\n*", table, text)


if __name__ == "__main__":
    from common import target  # this file is also read without its folder on the path

    written = target(PAGE).write_text(renewed(PAGE.read_text()))
    print(f"{written} characters, {len(tables())} tables")
