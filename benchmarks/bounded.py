"""An answer in bounded time: `python benchmarks/bounded.py [limits|zoo|layout] [--tiny]`; without a name all three.

limits: how long a fit of 61 x 96 x 96 values takes that is given some seconds, and what it ends in; programs compiled
and held (second call). zoo: the CPU time of the zoo's wrong models over the median of three adequate records, second
calls; backward Euler, whose interface is thin and whose frames take ten steps, over an adequate record like it.
layout: refusals of good records (six geometries, two laws, two boundaries, Cahn-Hilliard, fixed means, fronts;
noise 0 to 0.14), of swapped axes and of windows that are declared periodic. The figures go to results/bounded.json.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import zoo
from common import RESULTS, print_table, sized, target, words, write_json

from doublewell.errors import InputError
from doublewell.findings import findings
from doublewell.identify import identify
from doublewell.law import named_law
from doublewell.options import Compute
from doublewell.record import Record
from doublewell.record_findings import layout_findings
from doublewell.simulate import add_noise, initial_field, simulate

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 1e-4), tiny=(32, 25, 0.08, 4e-4))
LIMITS = sized((0.5, 1, 2, 4, 6, 8, 10, 15, 20), tiny=(0.1, 60))
NOISES = sized((0.0, 0.01, 0.03, 0.07, 0.14), tiny=(0.0, 0.03))
SHAPES = sized(("circle", "nonconvex", "inclusion", "wobbled", "dumbbell", "spinodal"), tiny=("nonconvex",))
MESHES = sized(((64, 0.05, 1e-4), (32, 0.08, 4e-4), (48, 0.03, 2e-4)), tiny=((32, 0.08, 4e-4),))


def limits() -> list[dict[str, Any]]:
    """Fit one record with less and less time."""
    start = initial_field("nonconvex", (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    clean = simulate(named_law("sixth"), start, dx=1 / CELLS, dt=DT, frames=FRAMES, epsilon=EPSILON)
    record, rows = add_noise(clean, 0.03, seed=1), []
    for limit in (None, None, *LIMITS):  # the first call compiles
        began = time.perf_counter()
        result = identify(record, compute=Compute(time_limit=limit))
        spent, fit = time.perf_counter() - began, result.diagnostics.likelihood
        stated = [str(item) for item in findings(result) if item.code == "time-limit"]
        rows.append({
            "limit (s)": limit or ("none, compiling" if not rows else "none"), "took (s)": round(spent, 2),
            "stopped before step": result.resolved.stopped or "",
            "fit": "weak form" if fit is None else fit.status.code.name.lower(),
            "error of the force (%)": round(100 * off(result), 2), "stated": "".join(stated),
        })  # fmt: skip
    return rows


def off(result: Any) -> float:
    u = np.linspace(-1.0, 1.0, 201)
    truth = named_law("sixth").effective(EPSILON).force(u)
    return float(np.linalg.norm(result.force(u) - truth) / np.linalg.norm(truth))


# --- wrong models -----------------------------------------------------------------------------------------------------


def timed(record: Record) -> tuple[float, str]:
    """Return the CPU time of a second fit, and its verdict."""
    spent, verdict = 0.0, ""
    for _ in range(2):
        began = time.process_time()
        try:
            verdict = str(identify(record, observation=zoo.OBSERVED).adequacy.verdict)
        except InputError:
            verdict = "refused"
        spent = time.process_time() - began
    return spent, verdict


def thin(noise: float) -> Record:
    """Return an adequate record with the interface and the frame interval of the case of backward Euler."""
    start = initial_field("nonconvex", (zoo.CELLS, zoo.CELLS), zoo.DX, epsilon=zoo.THIN)
    options: dict[str, Any] = {"dx": zoo.DX, "dt": 2.0 * zoo.THIN**2, "frames": zoo.FRAMES, "epsilon": zoo.THIN}
    clean = simulate(named_law("sixth"), start, solver="etdrk4", substeps=40, **options)
    return add_noise(clean, noise, seed=1).replace(origin=None)


def zoo_times() -> list[dict[str, Any]]:
    """Time every wrong model."""
    rows = []
    for noise in sized((0.01,), tiny=(0.01,)):
        usual = float(np.median([timed(zoo.record_of(zoo.CASES[0], noise, seed)[0])[0] for seed in (1, 2, 3)]))
        slow = timed(thin(noise))[0]
        for case in sized(zoo.CASES[1:], tiny=zoo.CASES[1:2]):
            spent, verdict = timed(zoo.record_of(case, noise, 70_001)[0])
            base = slow if case.name == "backward Euler" else usual
            numbers = {"CPU (s)": round(spent, 2), "adequate one (s)": round(base, 2), "ratio": round(spent / base, 2)}
            rows.append({"case": case.name, "noise": noise, "verdict": verdict, **numbers})
            print(rows[-1], flush=True)
    return rows


# --- axes and borders -------------------------------------------------------------------------------------------------


def good() -> Iterator[Record]:
    """Yield records without a fault: whole domains, and fronts that move up to two pixels per frame."""
    for shape in SHAPES:
        seed = {"seed": 1} if shape == "spinodal" else {}
        for boundary in ("periodic", "neumann"):
            for cells, epsilon, dt in MESHES:
                start = initial_field(shape, (cells, cells), 1 / cells, epsilon=epsilon, **seed)
                for law in ("quartic", "sixth"):
                    numbers: dict[str, Any] = {"dx": 1 / cells, "dt": dt, "frames": 25, "epsilon": epsilon}
                    yield simulate(named_law(law), start, boundary=boundary, **numbers)
            start = initial_field(shape, (32, 32), 1 / 32, epsilon=0.08, **seed)
            for dynamics, dt in (("cahn-hilliard", 2e-6), ("mass-conserving", 4e-4)):
                numbers = {"dx": 1 / 32, "dt": dt, "frames": 25, "epsilon": 0.08, "solver": "etdrk4"}
                yield simulate(named_law("quartic"), start, boundary=boundary, dynamics=dynamics, **numbers)
    x = (np.arange(48) + 0.5) / 48
    for width in (0.03, 0.06, 0.1):
        for pace in (0.0, 0.3, 1.0, 2.0):
            for bend in (0.0, 0.1):
                centre = 0.4 - bend * np.cos(2 * np.pi * x)[:, None] + pace * np.arange(15)[:, None, None] / 48
                u = np.tanh((x - centre) / width)
                yield Record(u, dx=1 / 48, dt=1e-4, q=1.0, boundary="neumann")


def wrong(record: Record) -> Iterator[tuple[str, Record]]:
    """Yield what is to be refused: axes in another order, and windows that are declared periodic."""
    u, n = record.slab(), record.mesh[0]
    plain: dict[str, Any] = {"dx": record.dx[0], "dt": record.dt, "q": 1.0}
    for axis in (1, 2):
        yield f"time on axis {axis}", Record(np.ascontiguousarray(np.swapaxes(u, 0, axis)), **plain)
    for part in ((slice(0, n // 2),) * 2, (slice(n // 4, 3 * n // 4), slice(0, n // 2)), (slice(n // 3, None),) * 2):
        yield "window declared periodic", Record(u[(slice(None), *part)], boundary="periodic", **plain)


def refused(record: Record) -> bool:
    return any(item.severity == "fail" for item in layout_findings(record))


def layout() -> list[dict[str, Any]]:
    """Count refusals."""
    counts, totals = Counter[tuple[str, float]](), Counter[tuple[str, float]]()
    for number, clean in enumerate(good()):
        for noise in NOISES:
            record = add_noise(clean, noise, seed=number + 1) if noise else clean
            kinds = [("good", record), *(wrong(record) if clean.origin == "simulation" else ())]
            for name, each in kinds:
                totals[name, noise] += 1
                counts[name, noise] += refused(each)
    return [
        {"records": name, "noise": noise, "number": total, "refused": counts[name, noise]}
        for (name, noise), total in sorted(totals.items())
    ]


def main() -> None:
    path = RESULTS / "bounded.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    for name in words() or ["limits", "zoo", "layout"]:
        stored[name] = {"limits": limits, "zoo": zoo_times, "layout": layout}[name]()
        print_table(name, stored[name])
    write_json(target(path), stored)


if __name__ == "__main__":
    main()
