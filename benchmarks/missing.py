"""How well the law comes back from records with holes, lost frames and uneven times: the weak reading, five seeds each.

python benchmarks/missing.py       # writes benchmarks/results/missing.json and docs/figures/missing.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, sized, target, write_json

from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, EPSILON, DT = sized((96, 0.03, 5e-5), tiny=(48, 0.06, 2e-4))
FRAMES, STEPS, NOISE = 61, 5, 0.01
SEEDS = range(21, sized(26, tiny=22))
LAW = named_law("sixth")
SHOWN = ("hole of 20 x 20 pixels", "round field of view", "dead rows and columns")


def movie() -> Record:
    """Return a clean movie with `STEPS` frames for each one that a record takes."""
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return simulate(
        LAW, start, dx=1 / CELLS, dt=DT / STEPS, frames=STEPS * (FRAMES - 1) + 1, epsilon=EPSILON, substeps=4
    )


def masks() -> dict[str, np.ndarray]:
    """Return what was observed, by name."""
    y, x = np.mgrid[:CELLS, :CELLS] + 0.5 - CELLS / 2
    hole, lines = (np.ones((CELLS, CELLS), bool) for _ in range(2))
    hole[38 * CELLS // 96 : 58 * CELLS // 96, 20 * CELLS // 96 : 40 * CELLS // 96] = False
    lines[30 * CELLS // 96], lines[:, 61 * CELLS // 96] = False, False
    frames = np.ones(FRAMES, bool)
    frames[[9, 30, 31, 50]] = False
    values = np.random.default_rng(7).random((FRAMES, CELLS, CELLS)) >= 1e-3
    return {
        "complete": np.ones((CELLS, CELLS), bool),
        "hole of 20 x 20 pixels": hole,
        "round field of view": np.hypot(y, x) < 0.45 * CELLS,
        "dead rows and columns": lines,
        "4 of 61 frames lost": frames,
        "0.1 % of the values, at random": values,
    }


def clocks() -> dict[str, np.ndarray]:
    """Return the frames of the long movie that a record has, by name."""
    rng, even = np.random.default_rng(8), np.arange(0, STEPS * (FRAMES - 1) + 1, STEPS)
    jitter = even + np.concatenate([[0], rng.integers(-2, 3, FRAMES - 2), [0]])
    return {
        "times uneven by up to 40 % of the interval": jitter,
        "10 frames never written, times given": np.delete(
            even, np.sort(rng.choice(np.arange(1, 60), 10, replace=False))
        ),
        "intervals that grow threefold": np.round(even[-1] * np.expm1(np.linspace(0, np.log(3), FRAMES)) / 2).astype(
            int
        ),
    }


def records(long: Record) -> dict[str, Record]:
    """Return the record of every case, without noise."""
    even = np.arange(0, long.frames, STEPS)
    plain = long.replace(long.values[even], times=long.times[even])
    found = {name: plain.replace(plain.values, mask=mask) for name, mask in masks().items()}
    return found | {name: long.replace(long.values[kept], times=long.times[kept]) for name, kept in clocks().items()}


def fit(record: Record) -> tuple[float, int]:
    """Return the relative error of the force and the number of centres."""
    u = np.linspace(-1.0, 1.0, 2001)
    true = LAW.effective(EPSILON).force(u)
    result = identify(record, law=2, method="weak")
    return float(np.linalg.norm(result.force(u) - true) / np.linalg.norm(true)), result.diagnostics.rows


def measure(record: Record) -> dict[str, Any]:
    """Return the errors of one case."""
    clean, rows = fit(record)
    errors = [fit(add_noise(record, NOISE, seed=seed))[0] for seed in SEEDS]
    missing = 1.0 - float(np.mean(record.observed()))
    return {"missing": missing, "rows": rows, "clean": clean, "force": float(np.mean(errors)), "worst": max(errors)}


def draw(found: dict[str, Record], rows: list[dict[str, Any]], path: Path) -> None:
    """Draw three of the records, and the errors of all."""
    from doublewell.report.style import new_figure, style

    with style():
        figure = new_figure(9.6, 5.4)
        grid = figure.add_gridspec(2, 3, height_ratios=[1.0, 1.0])
        for k, name in enumerate(SHOWN):
            axis = figure.add_subplot(grid[0, k])
            frame = np.where(found[name].observed()[FRAMES // 2], found[name].slab()[FRAMES // 2], np.nan)
            axis.imshow(frame, cmap="cividis", vmin=-1, vmax=1, origin="lower")
            axis.set(title=name, xticks=[], yticks=[])
            axis.set_facecolor("0.8")
        axis = figure.add_subplot(grid[1, :])
        places = np.arange(len(rows))
        axis.barh(places, [100 * row["force"] for row in rows], color="#3b6ea5", label=f"noise {NOISE}, mean of 5")
        axis.plot([100 * row["clean"] for row in rows], places, "k|", ms=9, label="without noise")
        axis.set_yticks(places, [row["record"] for row in rows])
        axis.invert_yaxis()
        axis.set_xlabel("error of the force (%)")
        axis.legend(frameon=False)
        figure.savefig(path, dpi=110)


def main() -> None:
    """Measure and draw all cases."""
    found, rows = records(movie()), []
    for name, record in found.items():
        rows.append({"record": name} | measure(record))
        print(rows[-1], flush=True)
    document = {"cells": CELLS, "frames": FRAMES, "noise": NOISE, "seeds": list(SEEDS), "rows": rows}
    write_json(RESULTS / "missing.json", document)
    draw(found, rows, target(RESULTS.parents[1] / "docs/figures/missing.png"))


if __name__ == "__main__":
    main()
