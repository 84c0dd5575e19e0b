"""The table of docs/validation.md: all coverage studies, from their stored results.

Run: python benchmarks/validation_page.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
from common import RESULTS, ROOT, markdown, renewed, target

PAGE, MARKER = ROOT / "docs/validation.md", "benchmarks/results/*.json"
_BLURRED = "blurred, operator", "blurred, operator with unknown width"
GROUPS = (
    ("missing pixels, at random and a hole", "wider_missing", ("30 % at random", "hole of 20 x 20")),
    (
        "a blur of one pixel, known or not",
        "wider_optics",
        ("blurred, operator", "blurred, operator with unknown width"),
    ),
    ("correlated noise", "wider_noise", ("correlated",)),
)
Study = tuple[str, list[float], list[float]]  # what, errors of the force and coverage of its band in percent


def kept(name: str) -> list[dict]:
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def studies() -> Iterator[Study]:
    """Yield each study with a value for each of its records."""
    for noise in ("0.01", "0.03", "0.10"):
        rows = [
            row
            for row in kept(f"trajectory_noise_{noise.replace('.', '')}")
            if row["law"] not in ("all", "the paper's four")
        ]
        each = [[row[key] for row in rows for _ in range(row["records"])] for key in ("e_G", "band covers")]
        yield f"nine laws, 61 frames of 96 x 96, noise {noise}", each[0], [100 * x for x in each[1]]
    rows = [row for row in kept("frames") if "covered" in row]
    yield "2 to 9 frames", [row["error"] for row in rows], [100 * row["covered"] for row in rows]
    rows = kept("wider_window")
    yield "windows, no border known", [row["e_G"] for row in rows], [100 * row["covered"] for row in rows]
    for what, name, groups in GROUPS:
        content = json.loads((RESULTS / f"{name}.json").read_text())
        found = [content[group]["summary"] for group in groups]
        each = [[one[key] for one in found for _ in range(one["records"])] for key in ("mean e_G", "coverage")]
        yield what, each[0], [100 * x for x in each[1]]
    rows = kept("contrast")
    each = [[row[key] for row in rows for _ in range(row["records"])] for key in ("error %", "band %")]
    yield "gain and offset unknown", each[0], each[1]
    rows = [row for row in kept("camera_movie") if row["values"] == "camera"]
    yield "cameras with all faults", [row["force error %"] for row in rows], [row["covered %"] for row in rows]
    rows = kept("conserved")
    yield "Cahn-Hilliard", [row["error"] for row in rows], [100 * row["covered"] for row in rows]
    rows = [row for row in kept("fluctuating") if row.get("force covered") is not None]
    yield "thermal noise", [row["force error"] for row in rows], [100 * row["force covered"] for row in rows]


def table() -> str:
    """Return the table of the page."""
    lines = [["records of", "number", "force error, median (%)", "truth inside the 95 % band (%)"]]
    for what, errors, covered in studies():
        lines.append([what, str(len(errors)), f"{np.median(errors):.2g}", f"{np.mean(covered):.0f}"])
    return markdown(lines)


if __name__ == "__main__":
    print(table())
    target(PAGE).write_text(renewed(PAGE.read_text(), MARKER, table()))
