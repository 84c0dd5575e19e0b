"""This version beside an older one, in turn: `python benchmarks/versions.py --old SRC [--repeats 3] [--tiny]`.

SRC is the folder src of a checkout of the other version (0.1: `git worktree add ../v01 49be2f4`); its dependencies are
those of this environment. Every measurement is a process of its own, and the versions take turns, so that a busy
machine slows both. Each case is called twice, and the second call is timed. `ratio` is this version's best time over
the older one's, `memory` the same of the largest resident set. The figures go to results/versions.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CASES = {  # frames, cells, noise
    "weak": (61, 256, 0.01),
    "stream": (301, 512, 0.01),
    "trajectory": (61, 96, 0.03),
    "trajectory without the check": (61, 96, 0.03),
}
TINY = {"weak": (21, 48, 0.01), "stream": (41, 48, 0.01), "trajectory without the check": (15, 24, 0.03)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--child", nargs=3, metavar=("CASE", "FILE", "EPSILON"))
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.child[0], Path(given.child[1]), float(given.child[2]))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case, (frames, cells, noise) in (TINY if given.tiny else CASES).items():
            file, epsilon = Path(folder) / "movie.npy", 0.03 * 96 / min(cells, 96)
            np.save(file, movie(frames, cells, noise, epsilon))
            rows.append({"case": case, "frames": frames, "cells": cells} | compare(given, case, file, epsilon))
            print(json.dumps(rows[-1]))
    if not given.tiny:
        from common import machine, write_json

        stored = Path(__file__).parent / "results" / "versions.json"
        write_json(stored, {"machine": machine(), "repeats": given.repeats, "rows": rows})
        print(f"wrote {stored}")


def movie(frames: int, cells: int, noise: float, epsilon: float) -> np.ndarray:
    """Return a star-shaped grain that shrinks, by the other solver than the estimator's."""
    from doublewell.law import named_law
    from doublewell.simulate import add_noise, initial_field, simulate

    start = initial_field("nonconvex", (cells, cells), 1 / cells, epsilon=epsilon)
    dt = 5e-5 * (epsilon / 0.03) ** 2
    clean = simulate(named_law("sixth"), start, dx=1 / cells, dt=dt, frames=frames, epsilon=epsilon, solver="cnab2")
    return np.asarray(add_noise(clean, noise, seed=1).slab())


def compare(given: argparse.Namespace, case: str, file: Path, epsilon: float) -> dict[str, Any]:
    versions = {"new": Path(__file__).parents[1] / "src", "old": given.old}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in versions}
    for _ in range(1 if given.tiny else given.repeats):
        for name, source in versions.items():
            env = os.environ | {"PYTHONPATH": str(source.resolve())}
            command = [sys.executable, __file__, "--child", case, str(file), str(epsilon)]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    best = {name: min(run["seconds"] for run in each) for name, each in runs.items()}
    size = {name: min(run["megabytes"] for run in each) for name, each in runs.items()}
    gap = abs(runs["new"][0]["middle"] / runs["old"][0]["middle"] - 1.0)
    return {
        "seconds": best["new"], "seconds of the old": best["old"], "ratio": best["new"] / best["old"],
        "megabytes": size["new"], "megabytes of the old": size["old"], "memory": size["new"] / size["old"],
        "difference of the forces": gap, "gigabytes per second": file.stat().st_size / best["new"] / 1e9,
    }  # fmt: skip


def measure(case: str, file: Path, epsilon: float) -> dict[str, float]:
    """Call a case twice with the version that is on the path; return the seconds of the second call."""
    import doublewell as dw

    now = hasattr(dw, "Weak")  # options are values since 0.2
    cells = np.load(file, mmap_mode="r").shape[-1]
    about: dict[str, Any] = {"dx": 1 / cells, "dt": 5e-5 * (epsilon / 0.03) ** 2, "q": 1.0, "boundary": "periodic"}
    options: dict[str, Any] = {"method": "weak"}
    if case == "stream":
        options = {"method": dw.Weak(memory="2GB")} if now else {"method": "weak", "memory": "2GB"}
        record = dw.open_record(file, **about)
    else:
        record = dw.Record(np.load(file), **about)
    if case.startswith("trajectory"):
        options = {"check": case == "trajectory"}
    for _ in range(2):
        began = time.perf_counter()
        result = dw.identify(record, **options)
        seconds = time.perf_counter() - began
    status = Path("/proc/self/status").read_text()  # getrusage would count the process that started this one
    largest = int(status.split("VmHWM:")[1].split()[0]) / 1e3
    return {"seconds": seconds, "megabytes": largest, "middle": float(result.force(np.array(0.5)))}


if __name__ == "__main__":
    main()
