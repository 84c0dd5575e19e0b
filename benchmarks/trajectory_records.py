"""Evidence of many simulated records by the batched trajectory reader; the analysis is in trajectory_figures.py.

Run (a GPU is used when JAX sees one):
    python benchmarks/trajectory_records.py --out evidence.npz --noise 0.03 --seeds 10 [--laws sixth rational ...]
Data come from CNAB2; every record has a noise seed of its own. The file holds, for each record, the law, geometry,
noise, seed, the R factor of the evidence at degree 8, the noise found, the steps taken, and the seconds per record.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from common import target, words
from study_laws import study_law

from doublewell.identify.parts import Records, begin
from doublewell.inference.joint import Plan, fit_parts, run_loops
from doublewell.atomic import replace_file
from doublewell.problem import ask
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, simulate

EPSILON = 0.03
PRINCIPAL = ["sixth", "bernstein3", "exponential", "rational"]


def clean_movie(name: str, geometry: str, cells: int, frames: int) -> Record:
    epsilon = EPSILON * 96 / cells if cells < 96 else EPSILON
    start = initial_field(geometry, (cells, cells), 1 / cells, epsilon=epsilon)
    return simulate(
        study_law(name), start, dx=1 / cells, dt=5e-5 * (epsilon / EPSILON) ** 2, frames=frames, epsilon=epsilon
    )


def read_all(records: list[Record]) -> tuple[list, list[int]]:
    """Fit a batch, and linearise again where the average over degrees lies more than one standard error away."""
    problem = ask(records, check=False)
    parts = [begin(record, problem, None) for record in records]
    reader = Records(problem, parts)
    plans = [Plan(((k,),), True, (k,), check=False) for k in range(len(parts))]
    joints = run_loops([fit_parts(plan) for plan in plans], reader)
    return [joint.fits[k].fields for k, joint in enumerate(joints)], [joint.rounds for joint in joints]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laws", nargs="+", default=PRINCIPAL)
    parser.add_argument("--geometries", nargs="+", default=["circle", "nonconvex"])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.03])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--cells", type=int, default=96)
    parser.add_argument("--frames", type=int, default=61)
    small = "--laws sixth --geometries circle --seeds 1 --batch 1 --cells 32 --frames 25"
    asked = parser.parse_args(words(f"{small} --out {target(Path('evidence.npz'))}"))
    rows, triangles = [], []
    seed = asked.first_seed
    for noise in asked.noise:
        for name in asked.laws:
            cases, seed = scenes(asked, name, seed)
            for k in range(0, len(cases), asked.batch):
                part = cases[k : k + asked.batch]
                padded = part + part[:1] * (asked.batch - len(part))  # one shape, one compilation
                records = [add_noise(clean, noise, seed=s) for _, clean, s in padded]
                began = time.perf_counter()
                found, rounds = read_all(records)
                each = (time.perf_counter() - began) / len(part)
                for (geometry, _, s), f, r in zip(part, found, rounds, strict=False):
                    rows.append((name, geometry, noise, s, f.noise, len(f.steps), r, f.status.converged, each))
                    triangles.append(f.evidence.blocks[0].triangle)
                print(f"{name} noise {noise}: {each:.3f} s a record", flush=True)
                write(asked, rows, triangles)


def scenes(asked: argparse.Namespace, name: str, seed: int) -> tuple[list, int]:
    """The geometries and noise seeds of one law, no seed used twice; and the next seed."""
    cases = []
    for geometry in asked.geometries:
        clean = clean_movie(name, geometry, asked.cells, asked.frames)
        cases += [(geometry, clean, seed + k) for k in range(asked.seeds)]
        seed += asked.seeds
    return cases, seed


def write(asked: argparse.Namespace, rows: list, triangles: list) -> None:
    """Write all that is there so far; the next batch replaces it."""
    import jax

    names = ["law", "geometry", "noise", "seed", "found", "steps", "rounds", "converged", "seconds"]
    columns = {key: np.array(column) for key, column in zip(names, zip(*rows, strict=True), strict=True)}
    freedom = (asked.frames - 1) * asked.cells**2
    device = str(jax.devices()[0].device_kind)
    with replace_file(asked.out) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(
            stream, triangles=np.array(triangles), rows=freedom, device=device, batch=asked.batch, **columns
        )


if __name__ == "__main__":
    main()
