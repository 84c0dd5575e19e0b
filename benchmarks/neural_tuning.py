"""Variants of the networks' settings on records that are not in the table; what came out is in the peers' docstrings.

Run (JAX takes a GPU where it sees one):
    PYTHONPATH=src python benchmarks/neural_tuning.py --out FOLDER --name NAME --methods SPINN [--limit SECONDS]
The records have other geometries (wobbled, dumbbell) and another measurement seed (24100) than those of neural.py. Each
line is one variant on one record: e_G raw and projected on the positive degree two, means over three initialisations
(the file has each), and the seconds for all three. All variants see the first record before the second comes.
--limit ends the run before a variant that would start later.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from neural import METHODS, Network, errors, made, trained, write

from doublewell.peers.training import Schedule
from doublewell.study.spec import Spec

SEED = 24_100
RECORDS = [("sixth", "wobbled"), ("bernstein3", "dumbbell")]
SPINN = [
    {},
    {"schedule": Schedule(4000, 0.05)},
    {"ahead": 1, "batch": 16},
    {"hidden": (64, 64)},
    {"schedule": Schedule(8000, 0.02)},
    {"ahead": 8},
    {"schedule": Schedule(4000, 0.005)},
    {"resolution": 14.0},
]
PFWNN = [
    {},
    {"schedule": Schedule(5000, 0.05)},
    {"schedule": Schedule(5000, 0.005)},
    {"schedule": Schedule(20000, 0.02)},
    {"hidden": (64, 64)},
    {"hidden": (32, 32, 32)},
    {"span": 4},
    {"radius": 0.2},
]
PINN = [
    {},
    {"physics": 0.001},
    {"physics": 0.1},
    {"waves": 8},
    {"batch": 16384},
    {"schedule": Schedule(15000, 0.003)},
    {"schedule": Schedule(5000, 0.001)},
]
VARIANTS: dict[str, list[dict[str, Any]]] = {"SPINN": SPINN, "PFWNN": PFWNN, "PINN": PINN}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="tuning")
    parser.add_argument("--methods", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--limit", type=float, default=230.0, help="seconds after which no variant is started")
    asked = parser.parse_args()
    ends = time.perf_counter() + asked.limit
    specs = [Spec(law, shape, noise=asked.noise, seed=SEED, cells=asked.cells) for law, shape in RECORDS]
    records = list(made(specs, 2))
    rows: list[dict[str, Any]] = []
    for spec, record in records:
        for peer, change in variants(asked.methods):
            if time.perf_counter() > ends:
                print("the time is over", flush=True)
                return
            print(f"{peer.name} {change}:", end=" ", flush=True)
            row = trained(peer, spec, record, range(3))
            rows.append(summary(row, spec) | {"change": repr(change)})
            write(asked.out / f"{asked.name}.json", rows)


def variants(methods: list[str]) -> Iterator[tuple[Network, dict[str, Any]]]:
    for name in methods:
        for change in VARIANTS[name]:
            yield replace(METHODS[name], **change), change


def summary(row: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """Return a row with the errors of each seed in place of the force."""
    found = [errors(np.array(force), spec) for force in row["force"]]
    kept = {name: value for name, value in row.items() if name not in ("force", "phases")}
    return kept | {"raw": [one[0] for one in found], "projected": [one[1] for one in found]}


if __name__ == "__main__":
    main()
