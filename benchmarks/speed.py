"""Speed of the weak reading against the paper's route, as ratios measured in one run on one core.

Run: python benchmarks/speed.py
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import time

import numpy as np
from common import print_table, save_results, synthetic_record
from reference import reference_triangles

from doublewell.evidence import weak_evidence
from doublewell.law import Bernstein

SUPPORTS = [(5, 1 / 16), (8, 1 / 8)]
CASES = [((61, 96, 96), 5, 5.0), ((61, 256, 256), 2, 3.0)]
REPEATS = 5


def measure(shape, degree):
    """Alternate the two routes and take the best time of each; check that they agree."""
    record, family = synthetic_record(shape), Bernstein(degree)
    ours, theirs = [], []
    weak_evidence(record, family, SUPPORTS)  # kernels compiled or loaded before
    for _ in range(REPEATS):
        start = time.perf_counter()
        evidence = weak_evidence(record, family, SUPPORTS)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        reference = reference_triangles(record, family, SUPPORTS)
        theirs.append(time.perf_counter() - start)
    gap = max(
        float(np.abs(block.triangle - triangle).max() / np.abs(triangle).max())
        for block, (triangle, _) in zip(evidence.blocks, reference, strict=True)
    )
    same = [block.rows for block in evidence.blocks] == [rows for _, rows in reference]
    return min(ours), min(theirs), gap, same


def main() -> None:
    table = []
    for shape, degree, asked in CASES:
        ours, theirs, gap, same = measure(shape, degree)
        table.append(
            {
                "record": " x ".join(map(str, shape)),
                "degree": degree,
                "seconds": round(ours, 4),
                "paper's route": round(theirs, 4),
                "ratio": round(theirs / ours, 2),
                "asked": asked,
                "largest difference in R": f"{gap:.1e}",
                "same rows": same,
            }
        )
    print_table("Weak assembly and compaction, both supports, one core", table)
    save_results("speed", table)


if __name__ == "__main__":
    main()
