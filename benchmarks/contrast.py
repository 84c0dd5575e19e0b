"""Contrast that is not exact: gain and offset estimated jointly with the law, against exact values of the same movies.

Run (a GPU is used when JAX sees one):
    python benchmarks/contrast.py [--seeds 6] [--first-seed 810000] [--only 0.03] [--out FILE]
    python benchmarks/contrast.py --merge FILE ...   join such files into results/contrast.json
    python benchmarks/contrast.py --sweep       one movie at growing errors of its contrast: results/contrast_sweep.json
    python benchmarks/contrast.py --figure      docs/figures/contrast.png from that

Movies of the paper's four laws from CNAB2, whole periodic domains and windows cut out of them, circle, nonconvex and an
early spinodal pattern without plateaus. Each is fitted twice: as it is, declared exact, and as gain u + offset with a
gain from 0.85 to 1.15 and an offset within 0.1. For each kind: force errors of both, their ratio where the contrast is
determined, the fraction of records that state "contrast not determined", and what the intervals cover.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
from common import RESULTS, join_results, print_table, save_results, sized, target, words

from doublewell.findings import findings
from doublewell.identify import identify, identify_many
from doublewell.law import Law, named_law
from doublewell.record import Record
from doublewell.result import Result
from doublewell.simulate import initial_field, simulate

LAWS = sized(("sixth", "bernstein3", "exponential", "rational"), tiny=("sixth",))
NOISES = sized((0.01, 0.03, 0.10), tiny=(0.03,))
KINDS = sized(
    (("circle", "periodic"), ("nonconvex", "periodic"), ("circle", "open"), ("spinodal", "periodic")),
    tiny=(("circle", "periodic"),),
)
CELLS, FRAMES, EPSILON, DT = sized((96, 41, 0.03, 5e-5), tiny=(32, 25, 0.08, 4e-4))
SIDE = sized(48, tiny=32)
SWEEP = sized((-10, -5, -2, -1, 0, 1, 2, 5, 10), tiny=(-2,))
WINDOW = (8, 80)  # rows and columns of a window
U = np.linspace(-1.0, 1.0, 401)


def movie(law: Law, geometry: str, boundary: str, seed: int) -> Record:
    """Return a movie without noise; a spinodal pattern ends before its phases are there."""
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON, seed=seed)
    clean = simulate(law, start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
    if boundary == "periodic":
        return clean
    part = slice(*WINDOW)
    return clean.replace(np.ascontiguousarray(clean.slab()[:, part, part]), boundary="open")


def score(result: Result, law: Law, gain: float, offset: float) -> dict:
    """Return errors and what was covered; the tension is that of the true law, so epsilon is known."""
    force = law.force(U) / EPSILON**2
    low, high = result.band("force", U)
    inside = np.abs(U) < 0.999  # at the wells every law is zero
    ends = result.interval("epsilon")
    row = {
        "error": float(np.linalg.norm(result.force(U) - force) / np.linalg.norm(force)),
        "band": float(np.mean(((low <= force) & (force <= high))[inside])),
        "epsilon": bool(ends[0] <= EPSILON <= ends[1]),
        "converged": bool(result.diagnostics.likelihood.status.converged),
    }
    if result.contrast is not None:
        for name, true in (("gain", gain), ("offset", offset)):
            ends = result.interval(name)
            row[name] = bool(ends[0] <= true <= ends[1])
            row[f"{name} error"] = getattr(result.contrast, name) - true
        row["undetermined"] = any(item.code == "contrast-undetermined" for item in findings(result))
        row["cost"] = result.contrast.cost
    return row


def run(kind: tuple[str, str], noise: float, seeds: range, batch: int) -> list[dict]:
    cases, exact, scaled = [], [], []
    for name, seed in product(LAWS, seeds):
        rng = np.random.default_rng(seed)
        clean = movie(named_law(name), *kind, seed)
        values = clean.slab() + noise * rng.standard_normal(clean.shape)
        gain, offset = rng.uniform(0.85, 1.15), rng.uniform(-0.1, 0.1)
        cases.append((name, seed, gain, offset))
        exact.append(clean.replace(values))
        scaled.append(clean.replace(gain * values + offset, origin=None))
    tension = [named_law(name).surface_tension(epsilon=1.0) for name, *_ in cases]
    options = {"check": False, "batch": batch}
    pairs = [identify_many(records, tension, **options) for records in (exact, scaled)]
    rows = []
    for (name, seed, gain, offset), known, estimated in zip(cases, *pairs, strict=True):
        law = named_law(name)
        row = {"law": name, "seed": seed, "known": score(known, law, gain, offset)}
        rows.append(row | {"estimated": score(estimated, law, gain, offset)})
    return rows


def summary(kind: tuple[str, str], noise: float, rows: list[dict], seconds: float) -> dict:
    """Return one line of the table: ratio of root mean square errors where the contrast is determined, coverage."""
    clear = [row for row in rows if not row["estimated"]["undetermined"]]
    errors = {key: np.array([row[key]["error"] for row in clear]) for key in ("known", "estimated")}

    def mean(key: str, which: str = "estimated") -> float:
        return round(100 * float(np.mean([row[which][key] for row in rows])), 1)

    return {
        "geometry": kind[0],
        "boundary": kind[1],
        "noise": noise,
        "records": len(rows),
        "determined": len(clear),
        "error known %": round(100 * float(np.mean(errors["known"])), 3) if clear else None,
        "error %": round(100 * float(np.mean(errors["estimated"])), 3) if clear else None,
        "ratio": round(float(np.sqrt(np.mean(errors["estimated"] ** 2) / np.mean(errors["known"] ** 2))), 3)
        if clear
        else None,
        "error all %": round(100 * float(np.mean([row["estimated"]["error"] for row in rows])), 3),
        "band known %": mean("band", "known"),
        "band %": mean("band"),
        "epsilon %": mean("epsilon"),
        "gain %": mean("gain"),
        "offset %": mean("offset"),
        "converged %": mean("converged"),
        "cost": round(float(np.median([row["estimated"]["cost"] for row in rows])), 3),
        "s": round(seconds, 1),
    }


def sweep() -> None:
    """Fit one movie whose contrast is off by growing amounts, its values taken for exact and its contrast estimated."""
    law, rows = named_law("sixth"), []
    start = initial_field("nonconvex", (SIDE, SIDE), 1 / SIDE, epsilon=0.05)
    clean = simulate(law, start, dx=1 / SIDE, dt=1.5e-4, frames=31, epsilon=0.05)
    values = clean.slab() + 0.02 * np.random.default_rng(820_000).standard_normal(clean.shape)
    force = law.force(U) / 0.05**2
    for percent in SWEEP:
        row: dict = {"contrast %": percent}
        for name in ("exact", "estimated"):
            record = clean.replace((1.0 + percent / 100) * values, origin=None)
            result = identify(record, observation={"contrast": name})
            low, high = result.band("force", U)
            row[f"{name} error %"] = round(
                100 * float(np.linalg.norm(result.force(U) - force) / np.linalg.norm(force)), 3
            )
            row[f"{name} covered %"] = round(100 * float(np.mean((low <= force) & (force <= high))), 1)
            row[f"{name} verdict"] = str(result.adequacy.verdict)
        row["gain"] = [round(x, 5) for x in result.interval("gain")]
        rows.append(row)
        print(row, flush=True)
    print_table("one movie, its contrast off", rows)
    save_results("contrast_sweep", rows)


def figure() -> None:
    """Draw the force error against the error of the contrast."""
    from doublewell.report.style import COLOURS, new_figure, render, style

    rows = json.loads((RESULTS / "contrast_sweep.json").read_text())["rows"]
    with style():
        canvas = new_figure(5.0, 3.2)
        axis = canvas.add_subplot()
        for name, colour, label in (
            ("exact", COLOURS["noise"], "values taken for exact"),
            ("estimated", COLOURS["recovered"], "contrast estimated"),
        ):
            x, y = [row["contrast %"] for row in rows], [row[f"{name} error %"] for row in rows]
            axis.semilogy(x, y, "o-", color=colour, ms=4, lw=1.0, label=label)
        axis.set_xlabel("error of the contrast in %")
        axis.set_ylabel("force error in %")
        axis.legend()
        target(RESULTS.parents[1] / "docs/figures/contrast.png").write_bytes(render(canvas, "png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=810_000)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--only", type=float, nargs="*", default=NOISES)
    parser.add_argument("--kinds", type=int, nargs="*", help="numbers of the kinds, by default all")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--merge", nargs="+", type=Path)
    options = parser.parse_args(words("--seeds 1"))
    if options.sweep or options.figure:
        return sweep() if options.sweep else figure()
    table = []
    if options.merge:
        order = lambda row: (row["boundary"] != "periodic", row["geometry"], row["noise"])  # noqa: E731
        print_table("contrast estimated", join_results("contrast", options.merge, order))
        return
    for kind, noise in (
        () if options.merge else product([KINDS[k] for k in options.kinds or range(len(KINDS))], options.only)
    ):
        began = time.perf_counter()
        rows = run(kind, noise, range(options.first_seed, options.first_seed + options.seeds), options.batch)
        table.append(summary(kind, noise, rows, time.perf_counter() - began))
        print(table[-1], flush=True)
        worst = max(rows, key=lambda row: row["estimated"]["error"] / row["known"]["error"])
        print("  worst:", worst, flush=True)
        save_results("contrast", table, options.out)
    print_table("contrast estimated, against exact values of the same movies", table)
    save_results("contrast", table, options.out)


if __name__ == "__main__":
    main()
