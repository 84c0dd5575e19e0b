"""How the time of the weak reading grows with pixels, frames, degree and threads; and what others take.

Run: python benchmarks/scaling.py
One core unless threads are named; both supports of the paper (in sixteenths of the side); best of several, in turn.
Other methods: the paper's route with scipy.fft (reference.py), measured here; the time that the paper states for a
record of 256 x 256; and, where results/baselines.json has one, the row of PySINDy on the same record.
"""

from __future__ import annotations

import one_thread  # noqa: F401

import json

import numpy as np
from common import PAPER_SUPPORTS, RESULTS, print_table, sized, synthetic_record
from floor import best_of
from operations import operations
from reference import reference_triangles

from doublewell.weak.assembly import weak_evidence
from doublewell.law import Bernstein

BASE = sized((61, 128, 128), tiny=(25, 32, 32))
PIXELS, FRAME_COUNTS, DEGREES, THREADS = sized(
    ((64, 128, 256, 512), (31, 61, 121, 241), (0, 2, 5, 8), (1, 2)), tiny=((32,), (25,), (2,), (1, 2))
)
OTHERS = sized([((61, 96, 96), 5), ((61, 256, 256), 2)], tiny=[((25, 32, 32), 2)])
PAPER_SECONDS = "1.2 to 1.3"  # the paper, 256 x 256, assembly of both supports


def growth(quick: bool = False) -> list[dict]:
    """One row for each size; the base case is in every series."""
    series = {
        "pixels": [((BASE[0], n, n), 5, 1) for n in (PIXELS[:3] if quick else PIXELS)],
        "frames": [((n, *BASE[1:]), 5, 1) for n in FRAME_COUNTS[: 3 if quick else 4]],
        "degree": [(BASE, m, 1) for m in DEGREES],
        "threads": [(BASE, 5, n) for n in THREADS],
    }
    return [row for name, cases in series.items() for row in _series(name, cases)]


def _series(name: str, cases: list[tuple]) -> list[dict]:
    records = {shape: synthetic_record(shape) for shape, _, _ in cases}
    actions = {
        case: lambda case=case: weak_evidence(records[case[0]], Bernstein(case[1]), PAPER_SUPPORTS, threads=case[2])
        for case in cases
    }
    rows = {case: [block.rows for block in action().blocks] for case, action in actions.items()}
    best = best_of(actions, 5)
    count = {case: operations(records[case[0]], PAPER_SUPPORTS, case[1], rows[case])["all centres"] for case in cases}
    return [
        {
            "series": name,
            "record": " x ".join(map(str, case[0])),
            "degree": case[1],
            "threads": case[2],
            "seconds": round(best[case], 4),
            "ns a value": round(1e9 * best[case] / np.prod(case[0]), 1),
            "GFLOP/s": round(count[case] / best[case] / 1e9, 1),
        }
        for case in cases
    ]


def others(repeats: int = 5) -> list[dict]:
    """The same evidence by other methods."""
    table = []
    for shape, degree in OTHERS:
        record, family = synthetic_record(shape), Bernstein(degree)
        best = best_of(
            {
                "ours": lambda record=record, family=family: weak_evidence(record, family, PAPER_SUPPORTS),
                "theirs": lambda record=record, family=family: reference_triangles(record, family, PAPER_SUPPORTS),
            },
            repeats,
        )
        table.append(
            {
                "record": " x ".join(map(str, shape)),
                "degree": degree,
                "seconds": round(best["ours"], 4),
                "scipy.fft route": round(best["theirs"], 4),
                "ratio": round(best["theirs"] / best["ours"], 1),
                **_agreement(record, family),
                "the paper's own time": PAPER_SECONDS if shape[1] == 256 else "",
            }
        )
    return table


def _agreement(record, family) -> dict:
    ours = weak_evidence(record, family, PAPER_SUPPORTS).blocks
    theirs = reference_triangles(record, family, PAPER_SUPPORTS)
    gaps = [np.abs(b.triangle - r).max() / np.abs(r).max() for b, (r, _) in zip(ours, theirs, strict=True)]
    same = [block.rows for block in ours] == [rows for _, rows in theirs]
    return {"largest difference in R": f"{max(gaps):.0e}", "same rows": same}


def baselines() -> list[dict]:
    """What benchmarks of other packages left, if they ran."""
    path = RESULTS / "pysindy_speed.json"
    return json.loads(path.read_text()).get("rows", []) if path.exists() else []


if __name__ == "__main__":
    for title, rows in (
        ("Growth of the time", growth()),
        ("Other methods, one core", others()),
        ("Baselines", baselines()),
    ):
        if rows:
            print_table(title, rows)
