"""How well a plan predicts: predicted errors against those of stored evidence of simulated records.

Run: python benchmarks/plan.py [evidence.npz ...]
The evidence in results/evidence was read on a GPU by trajectory_records.py, 10 to 74 records for each law, geometry and
noise. A plan knows the law, the geometry and the noise, and none of the records. Ratios are predicted over realised
root mean squares; their standard errors come from the scatter of the records.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import SMALL, evidence_files, print_table, save_results, sized, stored_evidence
from study_laws import study_law
from trajectory_figures import FOUR, NODES, PHASES, TOP, WEIGHTS

from doublewell.inference import average_degrees
from doublewell.evidence import Block, Evidence, Key
from doublewell.law import Bernstein, Law
from doublewell.plan import Analysis, Experiment, experiment_information, predict
from doublewell.simulate import initial_field

CELLS, FRAMES, EPSILON, DT = sized((96, 61, 0.03, 5e-5), tiny=SMALL)
KINDS = ("G", "F", "epsilon", "G, m = 5")


def experiment_of(name: str, geometry: str, noise: float) -> Experiment:
    start = initial_field(geometry, (CELLS, CELLS), 1 / CELLS, epsilon=EPSILON)
    return Experiment(study_law(name), start, dx=1 / CELLS, dt=DT, frames=FRAMES, noise=noise, epsilon=EPSILON)


def predicted(planned: Experiment, information) -> np.ndarray:
    """Errors in percent, in the order of KINDS."""
    auto = predict(planned, information, Analysis(constraint="none"))
    fixed = predict(planned, information, Analysis(degree=5, constraint="none"))
    return 100 * np.array([auto.force, auto.potential, auto.epsilon, fixed.force])


def realised(law: Law, triangle: np.ndarray, rows: int) -> np.ndarray:
    """Errors in percent of one record, in the order of KINDS."""
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), triangle, rows),), whitened=True)
    average = average_degrees(evidence, 1.0, constraint="none")
    force, primitive = law.force(PHASES), law.primitive(PHASES)
    ratio = law.tension_integral / (np.sqrt(2 * np.maximum(average.free @ TOP.primitives(NODES), 0)) @ WEIGHTS)
    five = Bernstein(5).elevation(TOP) @ average.path[5].free
    return 100 * np.array(
        [
            np.linalg.norm(average.free @ TOP.features(PHASES) - force) / np.linalg.norm(force),
            np.linalg.norm(ratio**2 * (average.free @ TOP.primitives(PHASES)) - primitive) / np.linalg.norm(primitive),
            ratio - 1,
            np.linalg.norm(five @ TOP.features(PHASES) - force) / np.linalg.norm(force),
        ]
    )


def ratio_of(cells: list[tuple[np.ndarray, np.ndarray]], kind: int) -> str:
    """Predicted over realised root mean square over all records of some cells, with its standard error.

    A cell is the predicted errors and the realised ones, a row a record.
    """
    wanted = sum(len(found) * expected[kind] ** 2 for expected, found in cells)
    squares = [found[:, kind] ** 2 for _, found in cells]
    total = sum(np.sum(part) for part in squares)
    error = 0.5 * np.sqrt(sum(part.size * np.var(part, ddof=1) for part in squares)) / total
    ratio = np.sqrt(wanted / total)
    return f"{ratio:.3f} +- {ratio * error:.3f}"


def main() -> None:
    known: dict = {}
    table, cells = [], {}
    for path in [Path(name) for name in sys.argv[1:]] or evidence_files():
        content = stored_evidence(path)
        names, geometries = content["law"].astype(str), content["geometry"].astype(str)
        for name, geometry in dict.fromkeys(zip(names.tolist(), geometries.tolist(), strict=True)):
            chosen = (names == name) & (geometries == geometry)
            noise = float(content["noise"][chosen][0])
            planned = experiment_of(name, geometry, noise)
            if (name, geometry) not in known:
                known[name, geometry] = experiment_information(planned)
            expected = predicted(planned, known[name, geometry])
            found = np.stack([realised(planned.force, t, int(content["rows"])) for t in content["triangles"][chosen]])
            cells[noise, name, geometry] = (expected, found)
            row = {"noise": noise, "law": name, "geometry": geometry, "records": len(found)}
            for k, kind in enumerate(KINDS):
                row |= {kind: round(float(expected[k]), 4), f"{kind}: ratio": ratio_of([(expected, found)], k)}
            table.append(row)
            print(row, flush=True)
    totals = []
    for noise in [*dict.fromkeys(key[0] for key in cells), "all"]:
        kept = {key: cell for key, cell in cells.items() if noise in (key[0], "all")}
        totals.append(_total(noise, "the paper's four", [cell for key, cell in kept.items() if key[1] in FOUR]))
        totals.append(_total(noise, "all", list(kept.values())))
    print_table("predicted errors in percent, and predicted / realised", table)
    print_table("predicted / realised root mean square over all records of a noise level", totals)
    save_results("plan", [*table, *totals])


def _total(noise, who: str, cells: list) -> dict:
    row = {"noise": noise, "law": who, "records": sum(len(found) for _, found in cells)}
    return row | {f"{kind}: ratio": ratio_of(cells, k) for k, kind in enumerate(KINDS)}


if __name__ == "__main__":
    main()
