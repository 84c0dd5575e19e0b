"""Thermal noise that nobody declared: how often it is found, and how often it is found where there is none.

    python benchmarks/thermal_detection.py [--first 1] [--records 20] [--workers 2] [--out FILE]
                                                                  # results/thermal_detection.json
    python benchmarks/thermal_detection.py --declared ...         # results/thermal_declared.json

Allen-Cahn movies of fluctuating.py, quartic and sixth law, theta 0 to 3e-4, camera noise 0.01 and 0.03. Read without
`temperature=`, with all tests: whether the result says "not adequate", and whether it names thermal noise. Movies
without thermal noise are read with `temperature=` too: a result must not give a tension. With --declared movies of
theta 1e-3 and 0.01 are read with `temperature=`: how often the tests of fluctuation against dissipation refuse one.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from common import join_results, markdown, parser_in_parts, print_table, save_results, sized, words
from fluctuating import CASE, Case, made

import doublewell as dw

THETAS = sized((0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4), tiny=(0.0, 1e-3))
CAMERAS, LAWS = sized((0.01, 0.03), tiny=(0.01,)), sized(("quartic", "sixth"), tiny=("quartic",))


def rows_of(cases: list[Case]) -> list[dict[str, Any]]:
    rows = []
    for case in cases:
        record, row = made(case), dict(zip(CASE, case, strict=True))
        result = dw.identify(record, observation={"contrast": "exact"})
        codes = [finding.code for finding in dw.findings(result)]
        row |= {"verdict": str(result.adequacy.verdict), "named": "thermal-noise" in codes}
        if not case[2]:
            warm = dw.identify(record, temperature=1.0, observation={"contrast": "exact"}, check=False)
            row |= {"tension": warm.scale is not None, "theta below": warm.interval("theta")[1]}
        print(row, flush=True)
        rows.append(row)
    return rows


def declared(cases: list[Case]) -> list[dict[str, Any]]:
    rows = []
    for case in cases:
        result = dw.identify(made(case), temperature=1.0, observation={"contrast": "exact"})
        row = dict(zip(CASE, case, strict=True)) | {"tension": result.scale is not None}
        row |= {test.name: round(float(test.p), 6) for test in result.adequacy.tests}
        print(row, flush=True)
        rows.append(row)
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = []
    for camera, theta in product(CAMERAS, THETAS):
        own = [row for row in rows if (row["camera"], row["theta"]) == (camera, theta)]
        if own:
            line = {"camera": camera, "theta": theta, "movies": len(own)}
            line["not adequate, %"] = round(100 * float(np.mean([row["verdict"] != "adequate" for row in own])), 1)
            line["named, %"] = round(100 * float(np.mean([row["named"] for row in own])), 1)
            line["tension given, %"] = (
                round(100 * float(np.mean([row["tension"] for row in own])), 1) if not theta else ""
            )
            lines.append(line)
    return lines


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of docs/fluctuating.md."""
    lines = summary(rows)
    return markdown([[*lines[0]], *[[*map(str, line.values())] for line in lines]])


def main() -> None:
    parser = parser_in_parts()
    parser.add_argument("--records", type=int, default=sized(20, tiny=1), help="of each theta and camera")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--declared", action="store_true", help="movies whose thermal noise is declared")
    asked, rows = parser.parse_args(words()), list[dict[str, Any]]()
    name, work = ("thermal_declared", declared) if asked.declared else ("thermal_detection", rows_of)
    thetas = sized((1e-3, 1e-2), tiny=(1e-3,)) if asked.declared else THETAS
    if asked.merge:
        rows = join_results(name, asked.merge, lambda row: tuple(row[key] for key in CASE))
    else:
        seeds, jobs = range(asked.first, asked.first + asked.records), []
        for camera, theta in product(CAMERAS, thetas):
            cases = [("allen-cahn", LAWS[seed % len(LAWS)], theta, camera, seed) for seed in seeds]
            jobs += [cases[k::2] for k in range(2)]
        with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
            for done in as_completed([pool.submit(work, job) for job in jobs if job]):
                rows += done.result()
                save_results(name, rows, asked.out)
    if asked.declared:
        print(f"tests refuse the tension of {sum(not row['tension'] for row in rows)} of {len(rows)} movies")
    else:
        print_table("thermal noise that nobody declared", summary(rows))


if __name__ == "__main__":
    main()
