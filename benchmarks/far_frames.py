"""Frames far apart: `python benchmarks/far_frames.py [--tiny]`: q |G'| dt from 30 to 1000.

A drop with three lobes in each record, made by CNAB2 with steps of q |G'| h = 0.05, read by `identify` with noise 0.03.
`covered` is the fraction of the phase values at which the 95 % band of the force holds the truth. Times are of first
calls, programs not compiled. The figures go to results/far_frames.json.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import print_table, save_results, sized

import doublewell as dw

EPSILON, NOISE, U = 1.5, 0.03, np.linspace(-1.0, 1.0, 401)
CASES = sized(  # q |G'| dt, cells along a side, radius, frames, seed
    [(30.0, 64, 22.0, 5, 11), (100.0, 72, 26.0, 4, 12), (300.0, 96, 36.0, 3, 13), (1000.0, 144, 52.0, 2, 14)],
    tiny=[(40.0, 32, 11.0, 2, 11)],
)


def movie(action: float, cells: int, radius: float, frames: int) -> tuple[dw.Record, Any]:
    """Return a record without noise, and its law."""
    law = dw.named_law("sixth")
    effective = law.effective(EPSILON)
    slope = float(np.max(np.abs(np.gradient(effective.force(U), U))))
    y, x = np.indices((cells, cells)) - 0.5 * cells
    edge = radius * (1.0 + 0.15 * np.cos(3.0 * np.arctan2(y, x)))
    start = np.tanh((edge - np.hypot(x, y)) / (np.sqrt(2.0) * EPSILON))
    options: dict[str, Any] = {"dx": 1.0, "dt": action / slope, "frames": frames, "epsilon": EPSILON}
    return dw.simulate(law, start, **options, substeps=int(action / 0.05), solver="cnab2"), effective


def main() -> None:
    rows = []
    for action, cells, radius, frames, seed in CASES:
        clean, law = movie(action, cells, radius, frames)
        record = dw.add_noise(clean, NOISE, seed=seed)
        began = time.perf_counter()
        result = dw.identify(record)
        spent, fit, truth = time.perf_counter() - began, result.diagnostics.likelihood, law.force(U)
        low, high = result.band("force", U)
        off, size = np.linalg.norm(result.force(U) - truth), np.linalg.norm(truth)
        rows.append({
            "q |G'| dt": action, "record": f"{frames} x {cells} x {cells}", "steps per frame": fit.substeps,
            "fit": fit.status.code.name.lower(), "took, s": round(spent),
            "error of the force, %": round(100 * float(off / size), 1),
            "band, %": round(50 * float(np.linalg.norm(high - low) / size), 1),
            "covered, %": round(100 * float(np.mean((low <= truth) & (truth <= high)))),
            "verdict": str(result.adequacy.verdict),
        })  # fmt: skip
        print_table("Frames far apart", rows)
    save_results("far_frames", rows)


if __name__ == "__main__":
    main()
