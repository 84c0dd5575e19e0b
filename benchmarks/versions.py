"""This version beside an older one, in turn: `python benchmarks/versions.py --old FOLDER [--repeats 3] [--cases A B]`.

FOLDER is a checkout of the other version; its own environment (.venv) runs it where there is one, else this one:

    git worktree add ../v01 49be2f4 && cd ../v01 && python -m venv .venv
    .venv/bin/pip install -c constraints.txt -e .

Every measurement is a process of its own, and the versions take turns, so that a busy machine slows both. Caches of
compiled programs are empty for the first process of each version. Each case is called twice in a process: `first` is
the first call of the first process, and the best second call is timed. `ratio` is the older version's time over this
one's, `first ratio` the same of first calls; `memory` is the largest resident set over the older one's. `apart` is how
far the forces lie from each other in standard errors of the older one, root mean square over the phases: both average
over degrees, and the phases are declared exact. The figures go to results/versions.json.
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
    "trajectory, 61 frames of 256": (61, 256, 0.03),
    "trajectory, 101 frames of 256": (101, 256, 0.03),
}
TINY = {"weak": (21, 48, 0.01), "stream": (41, 48, 0.01), "trajectory without the check": (15, 24, 0.03)}
PHASES = np.linspace(-1.0, 1.0, 201)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--child", nargs=3, metavar=("CASE", "FILE", "EPSILON"))
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.child[0], Path(given.child[1]), float(given.child[2]))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case, (frames, cells, noise) in (TINY if given.tiny else CASES).items():
            if given.cases and case not in given.cases:
                continue
            file, epsilon = Path(folder) / "movie.npy", 0.03 * 96 / min(cells, 96)
            np.save(file, movie(frames, cells, noise, epsilon))
            rows.append({"case": case, "frames": frames, "cells": cells} | compare(given, case, file, epsilon))
            print(json.dumps(rows[-1]))
    if not given.tiny:
        from common import machine, write_json

        stored = Path(__file__).parent / "results" / "versions.json"
        if given.cases and stored.exists():  # the others stay
            names = {row["case"] for row in rows}
            rows = [row for row in json.loads(stored.read_text())["rows"] if row["case"] not in names] + rows
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
    versions = {"new": Path(__file__).parents[1], "old": given.old}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in versions}
    for _ in range(1 if given.tiny else given.repeats):
        for name, folder in versions.items():
            own = folder.resolve() / ".venv" / "bin" / "python"
            python = own if own.exists() and name == "old" else Path(sys.executable)
            caches = {key: str(file.parent / f"{key}_{name}") for key in ("DOUBLEWELL_CACHE", "NUMBA_CACHE_DIR")}
            env = os.environ | {"PYTHONPATH": str(folder.resolve() / "src")} | caches
            command = [str(python), __file__, "--child", case, str(file), str(epsilon)]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
            runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    best = {name: min(run["seconds"] for run in each) for name, each in runs.items()}
    size = {name: min(run["megabytes"] for run in each) for name, each in runs.items()}
    new, old = runs["new"][0], runs["old"][0]
    row = {"seconds": best["new"], "seconds of the old": best["old"], "ratio": best["old"] / best["new"]}
    row |= {"first": new["first"], "first of the old": old["first"], "first ratio": old["first"] / new["first"]}
    row |= {"megabytes": size["new"], "megabytes of the old": size["old"], "memory": size["new"] / size["old"]}
    change = np.subtract(new["force"], old["force"])
    row["relative difference"] = float(np.linalg.norm(change) / np.linalg.norm(old["force"]))
    if "error" in old:
        free = np.array(old["error"]) > 0.0  # of symmetric wells G(0) = 0
        row["apart"] = float(np.sqrt(np.mean(np.square(change[free] / np.array(old["error"])[free]))))
    return row


def measure(case: str, file: Path, epsilon: float) -> dict[str, Any]:
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
    if now:
        options["check"] = False  # the older weak form tests nothing
    if case.startswith("trajectory"):
        options = {"check": case != "trajectory without the check"}
        if now:
            options["observation"] = dw.Observation(contrast="exact")
    times = []
    for _ in range(2):
        began = time.perf_counter()
        result = dw.identify(record, **options)
        times.append(time.perf_counter() - began)
    status = Path("/proc/self/status").read_text()  # getrusage would count the process that started this one
    largest = int(status.split("VmHWM:")[1].split()[0]) / 1e3
    answer = {"first": times[0], "seconds": times[1], "megabytes": largest, "force": result.force(PHASES).tolist()}
    if case.startswith("trajectory"):
        low, high = result.band("force", PHASES)
        answer["error"] = ((high - low) / (2 * 1.96)).tolist()
    return answer


if __name__ == "__main__":
    main()
