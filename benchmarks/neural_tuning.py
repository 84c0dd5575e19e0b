"""Variants of the networks' settings on records that are not in the table; what came out is in their docstrings.

Run (JAX takes a GPU where it sees one):
    PYTHONPATH=src python benchmarks/neural_tuning.py train --out FOLDER --name NAME --methods SPINN [--limit SECONDS]
        [--noise 0.01] [--public AC.mat]
    PYTHONPATH=src python benchmarks/neural_tuning.py join FILE... [--sharing 3]
    PYTHONPATH=src python benchmarks/neural_tuning.py radii
The records have other geometries (wobbled, dumbbell) and another measurement seed (24100) than those of neural.py.
train: each line is one variant on one record: e_G raw and projected on the positive degree two, means over three
initialisations (the file has each), and the seconds for all three. All variants see the first record before the second
comes. --limit ends the run before a variant that would start later.
join: the files of several runs become results/neural_tuning.json; --sharing says how many ran at once on one device.
radii: the radius of PFWNN's test functions with polynomials in place of the network, on the CPU in a minute or two;
results/pfwnn_radii.json.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, print_table, save_results, sized, words
from neural import PHASES, PUBLIC, Network, errors, made, public, trained, write

from doublewell_paper.networks.network import Movie, Schedule, movie_of
from doublewell_paper.networks.pfwnn import Pfwnn
from doublewell_paper.networks.pinn import Pinn
from doublewell_paper.networks.spinn import Spinn
from doublewell.record import Record
from doublewell_paper.records import Spec

SEED = 24_100
# Where the search began: changes are to these, so that a file can be read after the defaults have moved.
STARTS: dict[str, Network] = {
    "SPINN": Spinn(ahead=4, batch=8, schedule=Schedule(4000, 0.02)),
    "PFWNN": Pfwnn(hidden=(32, 32), span=8, radius=0.25, schedule=Schedule(5000, 0.02)),
    "PINN": Pinn(waves=4, batch=4096, physics=0.01, schedule=Schedule(5000, 0.003)),
}
RADII = (0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)
POWERS = 11  # degree of the polynomials that stand for the network
RECORDS = sized([("sixth", "wobbled"), ("bernstein3", "dumbbell")], tiny=[("sixth", "wobbled")])
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
    {"waves": 8, "physics": 0.003, "schedule": Schedule(8000, 0.003)},
    {"waves": 16, "physics": 0.003, "schedule": Schedule(8000, 0.003)},
    {"schedule": Schedule(15000, 0.003)},
    {"schedule": Schedule(5000, 0.001)},
]
VARIANTS: dict[str, list[dict[str, Any]]] = {"SPINN": SPINN, "PFWNN": PFWNN, "PINN": PINN}
# On the public record, with a seed of the noise that is not its own: changes to what neural.py takes there.
PUBLIC_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "SPINN": [{}, {"ahead": 1, "batch": 16}, {"ahead": 8}, {"ahead": 48}],
    "PFWNN": [{}, {"span": 2}],
    "PINN": [{}, {"waves": 8}, {"waves": 32}, {"physics": 0.03}, {"schedule": Schedule(8000, 0.001)}],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("train")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--name", default="tuning")
    one.add_argument("--methods", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    one.add_argument("--public", type=Path, help="the public record, AC.mat, in place of the two")
    one.add_argument("--limit", type=float, default=230.0, help="seconds after which no variant is started")
    one = kinds.add_parser("join")
    one.add_argument("files", nargs="+", type=Path)
    one.add_argument("--sharing", type=int, default=1, help="runs that shared the device, which the seconds feel")
    one = kinds.add_parser("radii")
    for each in (kinds.choices["train"], one):
        each.add_argument("--noise", type=float, default=0.01)
        each.add_argument("--cells", type=int, default=256)
    asked = parser.parse_args(words("radii"))
    {"train": search, "join": join, "radii": radii}[asked.kind](asked)


def records(asked: argparse.Namespace) -> list[tuple[Spec, Record]]:
    specs = [Spec(law, shape, noise=asked.noise, seed=SEED, cells=asked.cells) for law, shape in RECORDS]
    return list(made(specs, 2))


def search(asked: argparse.Namespace) -> None:
    """Train every variant on every record until the time is over."""
    ends = time.perf_counter() + asked.limit
    rows: list[dict[str, Any]] = []
    known = asked.public is not None
    cases = public(asked.public, [asked.noise], SEED) if known else records(asked)
    starts, changes = (PUBLIC, PUBLIC_VARIANTS) if known else (STARTS, VARIANTS)
    for spec, record in cases:
        for network, change in [(starts[one], change) for one in asked.methods for change in changes[one]]:
            if time.perf_counter() > ends:
                print("the time is over", flush=True)
                return
            print(f"{network.name} {change}:", end=" ", flush=True)
            row = trained(replace(network, **change), spec, record, range(3))
            rows.append(summary(row, spec) | {"change": repr(change)})
            write(asked.out / f"{asked.name}.json", rows)


def summary(row: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """Return a row with the errors of each seed in place of the force."""
    found = [errors(np.array(force), spec) for force in row["force"]]
    kept = {name: value for name, value in row.items() if name not in ("force", "phases")}
    return kept | {"raw": [one[0] for one in found], "projected": [one[1] for one in found]}


def join(asked: argparse.Namespace) -> None:
    """Write the lines of several files as one, with what is asked of them and no more."""
    rows = [joined(row, asked.sharing) for path in asked.files for row in json.loads(path.read_text())["rows"]]
    write(RESULTS / "neural_tuning.json", rows, indent=1)
    print_table(
        "Tuning", [{name: row[name] for name in ("method", "change", "raw", "projected", "seconds")} for row in rows]
    )


def joined(row: dict[str, Any], sharing: int) -> dict[str, Any]:
    kept = {name: row[name] for name in ("method", "change", "law", "geometry", "noise", "measurement", "seeds")}
    kept |= {name: round(float(np.mean(row[name])), 3) for name in ("raw", "projected")}
    kept |= {f"{name}_each": [round(value, 3) for value in row[name]] for name in ("raw", "projected")}
    kept |= {"seconds": row["seconds_all_seeds"], "device": row["device"], "sharing": sharing, "date": row["date"]}
    return kept | {"settings": {k: v for k, v in row["settings"].items() if k not in ("name", "needs")}}


def radii(asked: argparse.Namespace) -> None:
    """Fit PFWNN's rows by least squares with polynomials, for test functions of several radii."""
    rows = []
    for spec, record in records(asked):
        movie = movie_of(record, resolution=Pfwnn().resolution, method="PFWNN")
        for radius in RADII:
            raw, near = errors(polynomial(replace(Pfwnn(), radius=radius), movie), spec)
            rows.append({"law": spec.law, "geometry": spec.geometry, "noise": spec.noise, "measurement": spec.seed,
                         "radius": radius, "raw": round(raw, 3), "projected": round(near, 3)})  # fmt: skip
    save_results("pfwnn_radii", rows)
    print_table("Radii", rows)


def polynomial(network: Pfwnn, movie: Movie) -> np.ndarray:
    """Return the force at PHASES of the polynomial that minimises PFWNN's loss."""
    values, test, means, targets, shares, _ = network.data(movie)
    root, columns = np.sqrt(shares).ravel(), []
    for power in np.eye(POWERS + 1):
        fields = np.polynomial.legendre.legval(values.astype(float), power)
        modes = np.fft.rfftn(np.tensordot(means, fields, 1), axes=range(1, fields.ndim)) * test
        columns.append(root * np.fft.irfftn(modes, s=movie.grid.cells, axes=range(1, fields.ndim)).ravel())
    found = np.linalg.lstsq(np.stack(columns, 1), root * targets.ravel(), rcond=None)[0]
    return np.polynomial.legendre.legval(PHASES, found)


if __name__ == "__main__":
    main()
