"""The networks on the records of the table: force values of every initialisation, to be scored later on any machine.

Run (JAX takes a GPU where it sees one; src has to be on the path where doublewell is not installed):
    PYTHONPATH=src python benchmarks/neural.py --out FOLDER --name NAME [--methods SPINN PFWNN PINN] [--laws sixth ...]
        [--noise 0.01 ...] [--geometries circle nonconvex inclusion] [--seeds 3] [--budget SECONDS] [--public AC.mat]
    python benchmarks/neural.py --score FILE... [--into benchmarks/results/baselines.json]
The records are those of the case "published" (256 x 256, 61 frames, CNAB2, measurement seed 24000). With --budget every
method trains for that many seconds on each record, all initialisations together, compilation included; without it, for
its own number of steps. FOLDER/NAME.json is rewritten after each record: device, date, seconds, settings, and the
force at 2001 phase values for each seed. Tuning: neural_tuning.py.
With --public the record is AC.mat, with the noise and seed of public_records.py; --noise 0 is the clean one.
--score puts lines of such files into the table of baselines.py: means over the initialisations.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, TINY, print_table, sized, target, words
from scipy.interpolate import CubicSpline
from scipy.optimize import nnls

from doublewell.atomic import replace_file
from doublewell.io import open_record
from doublewell.law import Bernstein, named_law
from doublewell_paper.networks.pfwnn import Pfwnn
from doublewell_paper.networks.pinn import Pinn
from doublewell.baselines import BaselineFit
from doublewell_paper.networks.spinn import Spinn
from doublewell.record import Record
from doublewell.simulate import add_noise
from doublewell_paper.records import Sample, Spec, tiny

LAWS = ["sixth", "bernstein3", "exponential", "rational"]
GEOMETRIES = ["circle", "nonconvex", "inclusion"]
MEASUREMENT = 24_000
METHODS = {"SPINN": Spinn(), "PFWNN": Pfwnn(), "PINN": sized(Pinn(), tiny=Pinn(field=(8, 8), batch=64))}
# The public record starts far from rest: its last interfaces are six times narrower than the survey's median width.
PUBLIC = {
    "SPINN": Spinn(resolution=None, ahead=24, batch=8),
    "PFWNN": Pfwnn(resolution=None),
    "PINN": Pinn(resolution=None, waves=16),
}
PUBLIC_Q = 1e-4
PUBLIC_AMPLITUDE = 5.0 / PUBLIC_Q  # of the force: -amplitude u (1 - u^2)
PUBLIC_SEED = 2001
PHASES = np.linspace(-1.0, 1.0, 2001)
Network = Spinn | Pfwnn | Pinn


def main() -> None:
    asked = arguments()
    if asked.score:
        score(asked.score, asked.into)
        return
    seed = asked.measurement or (MEASUREMENT if asked.public is None else PUBLIC_SEED)
    cases = table(asked, seed) if asked.public is None else public(asked.public, asked.noise, seed)
    methods = METHODS if asked.public is None else PUBLIC
    rows: list[dict[str, Any]] = []
    for spec, record in cases:
        for name in asked.methods:
            network = scheduled(methods[name], asked.budget, asked.steps)
            rows.append(trained(network, spec, record, range(asked.seeds)))
            write(asked.out / f"{asked.name}.json", rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("neural"))
    parser.add_argument("--name", default="neural")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--laws", nargs="+", default=LAWS)
    parser.add_argument("--noise", nargs="+", type=float, default=[0.01, 0.03])
    parser.add_argument("--geometries", nargs="+", default=GEOMETRIES)
    parser.add_argument("--seeds", type=int, default=3, help="initialisations, 0 to one less than this")
    parser.add_argument("--budget", type=float, help="seconds of training for each method and record")
    parser.add_argument("--steps", type=int, help="in place of each method's own number")
    parser.add_argument("--measurement", type=int, help=f"seed of the noise: {MEASUREMENT}, public {PUBLIC_SEED}")
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--frames", type=int, default=61)
    parser.add_argument("--workers", type=int, default=4, help="processes that make the movies")
    parser.add_argument("--public", type=Path, help="the public record, AC.mat, in place of the table's")
    parser.add_argument("--score", nargs="+", type=Path, help="files of earlier runs: score them, train nothing")
    parser.add_argument("--into", type=Path, default=RESULTS / "baselines.json")
    small = "--laws sixth --noise 0.01 --geometries circle --seeds 1 --steps 5 --workers 1"
    return parser.parse_args(words(f"{small} --out {target(Path('neural'))}"))


def table(asked: argparse.Namespace, seed: int) -> Iterator[tuple[Spec, Record]]:
    return made(
        [
            Spec(law, geometry, noise=noise, seed=seed, cells=asked.cells, frames=asked.frames)
            for law in asked.laws
            for noise in asked.noise
            for geometry in asked.geometries
        ],
        asked.workers,
    )


def public(path: Path, noises: Sequence[float], seed: int) -> Iterator[tuple[Spec, Record]]:
    """Yield the public record with each noise, under the name of its file; its law is the quartic."""
    clean = open_record(path, q=PUBLIC_Q, boundary="periodic")
    for noise in noises:
        spec = Spec(
            "quartic", path.name, noise=noise, seed=seed, cells=clean.mesh[0], frames=clean.frames,
            epsilon=PUBLIC_AMPLITUDE**-0.5, dt=clean.dt,
        )  # fmt: skip
        yield spec, add_noise(clean, noise, seed=seed) if noise else clean


def scheduled(network: Network, seconds: float | None, steps: int | None) -> Network:
    schedule = replace(network.schedule, seconds=seconds, steps=steps or network.schedule.steps)
    return replace(network, schedule=schedule)


def made(specs: Sequence[Spec], workers: int) -> Iterator[tuple[Spec, Record]]:
    """Yield the records in order, simulated ahead in other processes that never touch the GPU."""
    specs = [tiny(spec, 32) for spec in specs] if TINY else specs
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: list[tuple[Spec, Future[np.ndarray]]] = [(spec, pool.submit(observed, spec)) for spec in specs]
        for spec, future in waiting:
            yield spec, Record(future.result(), dx=1 / spec.cells, dt=spec.dt, q=1.0, boundary="periodic")


def observed(spec: Spec) -> np.ndarray:
    return np.asarray(Sample(spec).record.slab())


def trained(network: Network, spec: Spec, record: Record, seeds: Sequence[int]) -> dict[str, Any]:
    """Return everything about one method on one record; print its errors."""
    began = time.perf_counter()
    fits = network.fit_many(record, seeds=seeds)
    forces = [fit.force(PHASES) for fit in fits]
    row = {
        "method": network.name, "law": spec.law, "geometry": spec.geometry, "noise": spec.noise,
        "measurement": spec.seed, "cells": spec.cells, "frames": spec.frames, "epsilon": spec.epsilon,
        "seeds": list(seeds), "device": fits[0].device,
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds_all_seeds": round(time.perf_counter() - began, 2),
        "settings": asdict(network), "notes": [fit.notes for fit in fits],
        "phases": [-1.0, 1.0, PHASES.size], "force": [[float(f"{g:.7g}") for g in force] for force in forces],
    }  # fmt: skip
    raw, near = (np.mean(each) for each in zip(*(errors(force, spec) for force in forces), strict=True))
    print(
        f"{spec.record}: {network.name} raw {raw:.3g} %, degree two {near:.3g} %, {row['seconds_all_seeds']} s",
        flush=True,
    )
    return row


def errors(force: np.ndarray, spec: Spec) -> tuple[float, float]:
    """Return e_G in percent as produced, and after projection onto the positive family of degree two."""
    truth = named_law(spec.law).effective(spec.epsilon).force(PHASES)
    features = np.stack([Bernstein(2).force(one, PHASES) for one in np.eye(3)], axis=1)
    near = features @ nnls(features, force)[0]
    return tuple(100 * float(np.linalg.norm(each - truth) / np.linalg.norm(truth)) for each in (force, near))


def write(path: Path, rows: list[dict[str, Any]], indent: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps({"rows": rows}, indent=indent) + "\n")


def score(files: Sequence[Path], into: Path) -> None:
    """Put the lines of files into the table of all baselines, in the place of older ones of the same record."""
    import baselines

    rows = scored([row for path in files for row in json.loads(path.read_text())["rows"]])
    baselines.write(into, rows)
    print_table("Networks, means over the initialisations", [{k: row[k] for k in baselines.COLUMNS} for row in rows])


def scored(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line of baselines.py for each row: means over the initialisations, admissible where all are.

    The seconds are those of all initialisations together. What each gave is in the fields that end with _each.
    """
    from baselines import scores

    lines = []
    for row in rows:
        sample = Sample(spec_of_row(row))
        each = [scores(sample, stored(row, force)) for force in row["force"]]
        line = {name: row[name] for name in ("method", "law", "geometry", "noise", "cells")}
        if (seconds := row["settings"]["schedule"]["seconds"]) is not None:
            line["method"] += f", {seconds:g} s"  # a line of its own beside the method with its own steps
        line |= {"record_seed": row["measurement"], "seed": ",".join(map(str, row["seeds"]))}
        line |= {name: mean([one[name] for one in each]) for name in ("e_G", "e_G_positive", "e_G_exact", "e_F")}
        line |= {f"{name}_each": [one[name] for one in each] for name in ("e_G", "e_G_positive")}
        line |= {"admissible": all(one["admissible"] for one in each), "coverage": None}
        line |= {"seconds": row["seconds_all_seeds"], "device": row["device"], "memory_mb": None, "date": row["date"]}
        line |= {"notes": [notes[0] for notes in row["notes"]], "settings": row["settings"], "status": "fitted"}
        lines.append(line)
    return lines


def spec_of_row(row: dict[str, Any]) -> Spec:
    seen = {name: row[name] for name in ("noise", "cells", "frames", "epsilon") if name in row}
    return Spec(row["law"], row["geometry"], seed=row["measurement"], phases=20_001, **seen)


def stored(row: dict[str, Any], force: Sequence[float]) -> BaselineFit:
    """Return the force of a file as a callable, by a cubic spline through its values."""
    spline = CubicSpline(np.linspace(*row["phases"]), force)
    return BaselineFit(row["method"], spline, row["seconds_all_seeds"], None, row["device"])


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None where one has no value."""
    return None if None in values else float(np.mean(values))


if __name__ == "__main__":
    main()
