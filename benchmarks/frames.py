"""How few frames: 2, 3, 5 and 9 frames at separations from one frame interval to many relaxation times.

    python benchmarks/frames.py [--seeds N] [--first SEED] [--noises SD ...] [--workers N] [--limit TIME] [--out FILE]
    python benchmarks/frames.py --spinn N [--out FILE]        the network on N of the same pairs (JAX, best on a GPU)
    python benchmarks/frames.py --merge FILE ...              join such files into results/frames.json, print the table
    python benchmarks/frames.py --figure                      docs/figures/frames.png from results/frames.json

Movies: CNAB2, 96 x 96, epsilon = 0.03, the paper's four laws in turn, frames 5e-5 apart (a relaxation time
1 / (q G'(1)) is 3 to 15 of them), circle and nonconvex; every record has a noise seed of its own. Fits are the user's:
identify with its defaults. For each setting: the force error (root mean square over records), of the average over
degrees and of the one degree that has the law; the Cramer-Rao bound of that degree, from the likelihood linearised at
the truth, and the root mean square of error over bound; how much of the force its 95 % band covers; verdicts. Noise 0:
the error alone, because the residual is then the difference of two solvers. With --limit no further seed is begun after
so many seconds, and what is there is written.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from common import RESULTS, SMALL, TINY, machine, print_table, sized, target, words, write_json

from doublewell.identify import identify
from doublewell.law import Bernstein, named_law
from doublewell.likelihood import Batch
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

LAWS = {"sixth": 2, "bernstein3": 3, "exponential": 3, "rational": 3}  # degree of the bound: the law is in it to 0.1 %
LAWS = sized(LAWS, tiny={"sixth": 2})
CELLS, _, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
GEOMETRIES = sized(("circle", "nonconvex"), tiny=("circle",))
NOISES = sized((0.0, 0.01, 0.03), tiny=(0.03,))
APART = {  # frames: intervals between one and the next
    2: (1, 5, 20, 60, 120), 3: (1, 5, 20, 60), 5: (1, 5, 20), 9: (1, 5, 20),
} if not TINY else {2: (5,)}  # fmt: skip
FIRST = 181_000  # seeds of the report; 180_000 and on were for development
PHASES = np.linspace(-1.0, 1.0, 2001)
SHOWN = slice(1, -1, 20)  # phase values at which the band is asked


@lru_cache(maxsize=8)
def movie(law: str, geometry: str) -> np.ndarray:
    last = max((frames - 1) * apart for frames, all_apart in APART.items() for apart in all_apart)
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    clean = simulate(named_law(law), start, dx=1 / CELLS, dt=DT, frames=last + 1, epsilon=EPSILON)
    return clean.slab()


def few(law: str, geometry: str, frames: int, apart: int, noise: float, seed: int) -> Record:
    values = movie(law, geometry)[: (frames - 1) * apart + 1 : apart]
    clean = Record(values, dx=1 / CELLS, dt=apart * DT, q=1.0, boundary="periodic", origin="simulation")
    return add_noise(clean, noise, seed=seed) if noise else clean


def truth(law: str) -> np.ndarray:
    return named_law(law).effective(EPSILON).force(PHASES)


def relative(law: str, change: np.ndarray) -> float:
    """Return the size of a change of the force, in percent of the force."""
    return 100.0 * float(np.linalg.norm(change) / np.linalg.norm(truth(law)))


@lru_cache
def bound_of(law: str, geometry: str, frames: int, apart: int) -> float:
    """Return the Cramer-Rao bound of the force error at noise 1, in percent: it is linear in the noise."""
    record, family = few(law, geometry, frames, apart, 0.0, 0), Bernstein(LAWS[law])
    theta = np.linalg.lstsq(family.features(PHASES).T, truth(law), rcond=None)[0]
    steps = max(2, int(np.ceil(4.0 * DT * apart / EPSILON**2)))
    (fit,) = Batch([record]).follow(theta, family=family, substeps=steps)
    root = fit.evidence.blocks[0].triangle[:-1, :-1] * fit.noise
    spread = np.linalg.solve(root.T, family.features(PHASES))
    return relative(law, np.linalg.norm(spread, axis=0))


def read(record: Record, law: str, check: bool) -> dict:
    """Return what a fit of a record says."""
    began, exact = time.perf_counter(), truth(law)
    result = identify(record, check=check)
    path, quality = result.posterior.path[LAWS[law]], result.diagnostics.likelihood
    low, high = result.band("force", PHASES[SHOWN])
    features = Bernstein(LAWS[law]).features(PHASES)
    tests = {}
    if quality.adequacy is not None:
        flagged = [test.name for test in quality.adequacy.significant]
        tests = {"verdict": str(quality.adequacy.verdict), "flagged": flagged}
    return tests | {
        "error": relative(law, result.law.force(PHASES) - exact),
        "degree_error": relative(law, path.free @ features - exact),
        "covered": float(np.mean((low <= exact[SHOWN]) & (exact[SHOWN] <= high))),
        "width": relative(law, (high - low) / 3.92 * np.sqrt(PHASES.size / low.size)),
        "noise": float(quality.noise),
        "converged": bool(quality.status.converged),
        "steps": len(quality.steps),
        "substeps": int(quality.substeps),
        "survey_noise": float(result.diagnostics.survey.noise),
        "seconds": time.perf_counter() - began,
    }


def setting(geometry: str, frames: int, apart: int, noises: list[float], seeds: range, limit: float) -> list[dict]:
    """Fit one choice of frames at all noises: one shape, one compilation."""
    began = time.perf_counter()
    where = {"geometry": geometry, "frames": frames, "apart": apart}
    rows: list[dict] = []
    for seed in seeds:
        law = list(LAWS)[seed % len(LAWS)]
        for noise in noises:
            if time.perf_counter() - began > limit or (noise == 0.0 and seed - seeds[0] >= len(LAWS)):
                continue
            bound = bound_of(law, geometry, frames, apart)
            own = seed + 1000 * (100 * frames + apart) + 100 * round(100 * noise) + 50 * GEOMETRIES.index(geometry)
            head = {"law": law, **where, "noise_sd": noise, "seed": own, "bound": noise * bound}
            try:
                check = seed // len(LAWS) % 2 == 0  # of every second record the residual is tested too
                rows.append(head | read(few(law, geometry, frames, apart, noise, own), law, check))
            except Exception as error:  # a fit that fails is a row of the table
                rows.append(head | {"failed": f"{type(error).__name__}: {error}"})
    return rows


def spinn(count: int, out: Path) -> None:
    """Train the network on the first `count` pairs of each separation at noise 0.03 (two initialisations each)."""
    from doublewell_paper.networks.network import Schedule
    from doublewell_paper.networks.spinn import Spinn

    rows: list[dict] = []
    for k in range(count):
        for apart in APART[2]:
            for geometry in GEOMETRIES:
                law = list(LAWS)[(FIRST + k) % len(LAWS)]
                seed = FIRST + k + 1000 * (200 + apart) + 300 + 50 * GEOMETRIES.index(geometry)
                record = few(law, geometry, 2, apart, 0.03, seed)
                steps = max(1, int(np.ceil(2.0 * DT * apart / EPSILON**2)))
                network = Spinn(batch=1, substeps=steps, schedule=Schedule(sized(4000, tiny=5), 0.02))
                began = time.perf_counter()
                fits = network.fit_many(record, seeds=range(2))
                row = {
                    "method": "SPINN",
                    "law": law,
                    "geometry": geometry,
                    "frames": 2,
                    "apart": apart,
                    "noise_sd": 0.03,
                }
                row |= {"seed": seed, "seconds": time.perf_counter() - began}
                row["error"] = float(np.mean([relative(law, fit.force(PHASES) - truth(law)) for fit in fits]))
                rows.append(row)
                print(row, flush=True)
                write_json(out, {"machine": machine(), "rows": rows})


def alone() -> None:
    """Keep a worker on one core."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[os.getpid() % len(os.sched_getaffinity(0))]})


def rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def table(rows: list[dict]) -> list[dict]:
    """Return one line for each setting."""
    lines = []
    for key in sorted({(r["geometry"], r["frames"], r["apart"], r["noise_sd"]) for r in rows}):
        own = [r for r in rows if (r["geometry"], r["frames"], r["apart"], r["noise_sd"]) == key]
        fits = [r for r in own if "method" not in r and "failed" not in r]
        nets = [r["error"] for r in own if r.get("method") == "SPINN"]
        if not fits:
            continue
        line = dict(zip(("geometry", "frames", "apart", "noise"), key, strict=True))
        line |= {"records": len(fits), "failed": sum("failed" in r for r in own)}
        line |= {"converged": sum(r["converged"] for r in fits), "error %": round(rms(r["error"] for r in fits), 4)}
        if key[3]:
            verdicts = [r["verdict"] for r in fits if "verdict" in r]
            line |= {
                "bound %": round(rms(r["bound"] for r in fits), 3),
                "ratio": round(rms(r["error"] / r["bound"] for r in fits), 3),
                "one degree ratio": round(rms(r["degree_error"] / r["bound"] for r in fits), 3),
                "covered %": round(100.0 * float(np.mean([r["covered"] for r in fits])), 1),
                "tested": len(verdicts), "flagged": sum(words != "adequate" for words in verdicts),
            }  # fmt: skip
        if nets:
            line |= {"SPINN %": round(rms(nets), 2), "SPINN pairs": len(nets)}
        lines.append(line)
    names = dict.fromkeys(name for line in lines for name in line)
    return [{name: line.get(name, "") for name in names} for line in lines]


def by_law(rows: list[dict]) -> list[dict]:
    """Return one line for each law and noise, over all choices of frames."""
    lines = []
    for law, noise in sorted({(r["law"], r["noise_sd"]) for r in rows if r["noise_sd"]}):
        own = [r for r in rows if (r["law"], r["noise_sd"]) == (law, noise) and "covered" in r]
        line = {"law": law, "noise": noise, "records": len(own)}
        line["ratio"] = round(rms(r["error"] / r["bound"] for r in own), 3)
        line["one degree ratio"] = round(rms(r["degree_error"] / r["bound"] for r in own), 3)
        line["covered %"] = round(100.0 * float(np.mean([r["covered"] for r in own])), 1)
        lines.append(line)
    return lines


KEPT = (
    "method", "law", "geometry", "frames", "apart", "noise_sd", "seed", "bound", "error", "degree_error", "covered",
    "converged", "substeps", "verdict", "flagged", "failed", "seconds",
)  # fmt: skip


def joined(files: list[Path]) -> tuple[str, list[dict]]:
    """Return the machine and the rows of several runs, no record twice, with what the report needs."""
    contents, rows = [json.loads(path.read_text()) for path in files], {}
    for row in [row for content in contents for row in content["rows"]]:
        short = {name: row[name] for name in KEPT if name in row}
        short = {name: float(f"{x:.5g}") if isinstance(x, float) else x for name, x in short.items()}
        rows.setdefault(tuple(short.get(name) for name in KEPT[:7]), short)
    return contents[0]["machine"], list(rows.values())


def figure() -> None:
    """Draw error and bound against the time between frames, in the relaxation times of the sixth law."""
    from doublewell.report.style import COLOURS, new_figure, render, style

    rows = json.loads((RESULTS / "frames.json").read_text())["rows"]
    relaxation = EPSILON**2 / (3.0 * DT)  # intervals
    with style():
        canvas = new_figure(7.0, 3.2)
        for k, geometry in enumerate(GEOMETRIES):
            axis = canvas.add_subplot(1, 2, k + 1)
            for frames, marker in zip(APART, "os^d", strict=False):
                own = [r for r in rows if (r["geometry"], r["frames"], r["noise_sd"]) == (geometry, frames, 0.03)]
                own = [r for r in own if r["law"] == "sixth"]
                fits = [(a, [r for r in own if r["apart"] == a and "covered" in r]) for a in APART[frames]]
                x = [a / relaxation for a, group in fits if group]
                shade = COLOURS["recovered"] if frames == 2 else str(0.75 - 0.075 * frames)
                axis.loglog(x, [rms(r["error"] for r in g) for _, g in fits if g], marker, color=shade, ms=4,
                            label=f"{frames} frames")  # fmt: skip
                axis.loglog(x, [g[0]["bound"] for _, g in fits if g], "-", color=shade, lw=0.8)
                nets = [(r["apart"] / relaxation, r["error"]) for r in own if r.get("method") == "SPINN"]
                if nets:
                    axis.loglog(*zip(*nets, strict=True), "x", color=COLOURS["noise"], ms=5, label="SPINN, 2 frames")
            axis.set_title(geometry)
            axis.set_xlabel("time between frames / relaxation time")
            axis.set_ylim(0.2, 100.0)
        canvas.axes[0].set_ylabel("force error in %")
        canvas.axes[0].legend(fontsize=7)
        folder = RESULTS.parents[1] / "docs/figures"
        target(folder / "frames.png").write_bytes(render(canvas, "png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--noises", type=float, nargs="+", default=list(NOISES))
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--spinn", type=int)
    parser.add_argument("--merge", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=target(RESULTS / "frames.json"))
    parser.add_argument("--figure", action="store_true")
    asked = parser.parse_args(words("--seeds 1 --workers 1"))
    if asked.figure:
        figure()
        return
    if asked.spinn:
        spinn(asked.spinn, asked.out)
        return
    rows: list[dict] = []
    if asked.merge:
        where, rows = joined(asked.merge)
    else:
        began, where = time.perf_counter(), machine()
        seeds = range(asked.first, asked.first + asked.seeds)
        cases = [(g, n, apart) for n, all_apart in APART.items() for apart in all_apart for g in GEOMETRIES]
        cases.sort(key=lambda case: -case[1] * case[2])  # the longest first
        if asked.workers == 1:
            rows = [row for case in cases for row in setting(*case, asked.noises, seeds, asked.limit)]
        else:
            with ProcessPoolExecutor(asked.workers, get_context("spawn"), initializer=alone) as pool:
                share = asked.limit * asked.workers / len(cases)
                for done in as_completed([pool.submit(setting, *case, asked.noises, seeds, share) for case in cases]):
                    rows += done.result()
                    write_json(asked.out, {"machine": where, "rows": rows})
                    print(f"{len(rows)} fits in {time.perf_counter() - began:.0f} s", flush=True)
    lines, laws = table(rows), by_law(rows)
    write_json(asked.out, {"machine": where, "table": lines, "laws": laws, "rows": rows})
    if not TINY:  # a record, a line
        head = json.dumps({"machine": where, "table": lines, "laws": laws}, indent=1)[:-2]
        asked.out.write_text(head + ',\n "rows": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]}\n")
    print_table("few frames", lines)
    if laws:
        print_table("by law", laws)


if __name__ == "__main__":
    main()
