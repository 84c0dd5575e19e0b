"""What holding a law in a class costs: the average over degrees and 4000 draws of it, from stored evidence.

Run: python benchmarks/constraint_cost.py
One record a law and noise level of results/evidence; then a law far outside every class, whose bracket is the negative
of the one found. Times are seconds of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import time

import numpy as np
from common import evidence_files, print_table, save_results, stored_evidence

from doublewell.inference import Posterior, average_degrees, fit_degree
from doublewell.evidence import Block, Evidence, Key
from doublewell.law import CONSTRAINTS, Bernstein

TOP = Bernstein(8)


def seconds(triangle: np.ndarray, rows: int, constraint: str, summary) -> tuple[float, float]:
    """Return the seconds of the estimate and of its draws."""
    evidence = Evidence(TOP, (Block(Key("r", "trajectory", "all"), triangle, rows),), whitened=True)
    began = time.process_time()
    average = summary(evidence, 1.0, constraint=constraint)
    middle = time.process_time()
    _ = Posterior(TOP, average.path, average.components, np.zeros((0, TOP.size)), constraint).draws
    return middle - began, time.process_time() - middle


def row(name: str, triangles: list[np.ndarray], rows: int, summary) -> dict:
    out: dict = {"evidence": name, "records": len(triangles)}
    for constraint in CONSTRAINTS:
        times = np.array([seconds(triangle, rows, constraint, summary) for triangle in triangles])
        for what, values in zip(("estimate", "draws"), times.T, strict=True):
            out[f"{constraint}, {what}"] = f"{np.mean(values):.3f} (most {np.max(values):.3f})"
    return out


def turned(triangle: np.ndarray) -> np.ndarray:
    return triangle * np.where(np.arange(triangle.shape[1]) == triangle.shape[1] - 1, -1.0, 1.0)


def main() -> None:
    files, table = evidence_files(), []
    seconds(stored_evidence(files[-1])["triangles"][0], 1, "bernstein", average_degrees)  # imports
    for path in files:
        content = stored_evidence(path)
        names, rows = content["law"].astype(str), int(content["rows"])
        first = [content["triangles"][names == name][0] for name in dict.fromkeys(names)]
        table.append(row(path.stem, first, rows, average_degrees))
        table.append(row(f"{path.stem}, degree 8", first, rows, fit_degree))
        table.append(row(f"{path.stem}, the opposite", [turned(one) for one in first], rows, average_degrees))
    print_table("Seconds of one core, mean over the laws", table)
    save_results("constraint_cost", table)


if __name__ == "__main__":
    main()
