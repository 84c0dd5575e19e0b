"""The networks on the records of the table: force values of every initialisation, to be scored later on any machine.

Run (JAX takes a GPU where it sees one; src has to be on the path where doublewell is not installed):
    PYTHONPATH=src python benchmarks/neural.py --out FOLDER --name NAME [--methods SPINN PFWNN PINN] [--laws sixth ...]
        [--noise 0.01 ...] [--geometries circle nonconvex inclusion] [--seeds 3] [--budget SECONDS]
The records are those of the case "published" (256 x 256, 61 frames, CNAB2, measurement seed 24000). With --budget every
method trains for that many seconds on each record, all initialisations together, compilation included; without it, for
its own number of steps. FOLDER/NAME.json is rewritten after each record: device, date, seconds, settings, and the
force at 2001 phase values for each seed. Tuning: neural_tuning.py.
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
from scipy.optimize import nnls

from doublewell.atomic import replace_file
from doublewell.law import Bernstein, named_law
from doublewell.peers.pfwnn import Pfwnn
from doublewell.peers.pinn import Pinn
from doublewell.peers.spinn import Spinn
from doublewell.record import Record
from doublewell.study.sample import Sample
from doublewell.study.spec import Spec

LAWS = ["sixth", "bernstein3", "exponential", "rational"]
GEOMETRIES = ["circle", "nonconvex", "inclusion"]
MEASUREMENT = 24_000
METHODS = {"SPINN": Spinn(), "PFWNN": Pfwnn(), "PINN": Pinn()}
PHASES = np.linspace(-1.0, 1.0, 2001)
Network = Spinn | Pfwnn | Pinn


def main() -> None:
    asked = arguments()
    specs = [
        Spec(law, geometry, noise=noise, seed=asked.measurement, cells=asked.cells, frames=asked.frames)
        for law in asked.laws
        for noise in asked.noise
        for geometry in asked.geometries
    ]
    rows: list[dict[str, Any]] = []
    for spec, record in made(specs, asked.workers):
        for name in asked.methods:
            peer = budgeted(METHODS[name], asked.budget)
            rows.append(trained(peer, spec, record, range(asked.seeds)))
            write(asked.out / f"{asked.name}.json", rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="neural")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--laws", nargs="+", default=LAWS)
    parser.add_argument("--noise", nargs="+", type=float, default=[0.01, 0.03])
    parser.add_argument("--geometries", nargs="+", default=GEOMETRIES)
    parser.add_argument("--seeds", type=int, default=3, help="initialisations, 0 to one less than this")
    parser.add_argument("--budget", type=float, help="seconds of training for each method and record")
    parser.add_argument("--measurement", type=int, default=MEASUREMENT, help="seed of the noise")
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--frames", type=int, default=61)
    parser.add_argument("--workers", type=int, default=4, help="processes that make the movies")
    return parser.parse_args()


def budgeted(peer: Network, seconds: float | None) -> Network:
    return peer if seconds is None else replace(peer, schedule=replace(peer.schedule, seconds=seconds))


def made(specs: Sequence[Spec], workers: int) -> Iterator[tuple[Spec, Record]]:
    """Yield the records in order, simulated ahead in other processes that never touch the GPU."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: list[tuple[Spec, Future[np.ndarray]]] = [(spec, pool.submit(observed, spec)) for spec in specs]
        for spec, future in waiting:
            yield spec, Record(future.result(), dx=1 / spec.cells, dt=spec.dt, q=1.0, boundary="periodic")


def observed(spec: Spec) -> np.ndarray:
    return np.asarray(Sample(spec).record.slab())


def trained(peer: Network, spec: Spec, record: Record, seeds: Sequence[int]) -> dict[str, Any]:
    """Return everything about one method on one record; print its errors."""
    began = time.perf_counter()
    fits = peer.fit_many(record, seeds=seeds)
    forces = [fit.force(PHASES) for fit in fits]
    row = {
        "method": peer.name, "law": spec.law, "geometry": spec.geometry, "noise": spec.noise, "measurement": spec.seed,
        "cells": spec.cells, "frames": spec.frames, "seeds": list(seeds), "device": fits[0].device,
        "date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds_all_seeds": round(time.perf_counter() - began, 2),
        "settings": asdict(peer), "notes": [fit.notes for fit in fits],
        "phases": [-1.0, 1.0, PHASES.size], "force": [[float(f"{g:.7g}") for g in force] for force in forces],
    }  # fmt: skip
    raw, near = (np.mean(each) for each in zip(*(errors(force, spec) for force in forces), strict=True))
    print(
        f"{spec.record}: {peer.name} raw {raw:.3g} %, degree two {near:.3g} %, {row['seconds_all_seeds']} s", flush=True
    )
    return row


def errors(force: np.ndarray, spec: Spec) -> tuple[float, float]:
    """Return e_G in percent as produced, and after projection onto the positive family of degree two."""
    truth = named_law(spec.law).effective(spec.epsilon).force(PHASES)
    features = np.stack([Bernstein(2).force(one, PHASES) for one in np.eye(3)], axis=1)
    near = features @ nnls(features, force)[0]
    return tuple(100 * float(np.linalg.norm(each - truth) / np.linalg.norm(truth)) for each in (force, near))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as temporary:
        temporary.write_text(json.dumps({"rows": rows}) + "\n")


if __name__ == "__main__":
    main()
