"""The replication: four laws on the circle, fresh seeds, full and short records.

A short record has half the intervals, 31 frames. Its supports are the longest pair near the paper's ratio 5 : 8 that
leaves a centre frame in each half, (3, 5) intervals; choices are fitted on one half and judged on the other.
"""

from __future__ import annotations

from dataclasses import replace

from doublewell_paper.case import FIVE_BRANCHES, LAWS, TRAJECTORY, Case, grid
from doublewell_paper.spec import Spec

__all__ = ["CASES", "SHORT_SUPPORTS"]

SEEDS = range(22_000, 22_010)
SHORT_SUPPORTS = ((3, 1 / 16), (5, 1 / 8))
_FULL = Spec("", "")
_SHORT = replace(_FULL, frames=31, supports=SHORT_SUPPORTS, training=0.5)
_METHODS = (*FIVE_BRANCHES, "selected weak LS", "selected STAC", *TRAJECTORY)


def _case(name: str, base: Spec, noise: float) -> Case:
    specs = grid(replace(base, noise=noise), laws=LAWS, geometries=["circle"], seeds=SEEDS)
    return Case(f"replication {name} {noise:g}", f"{name} records, noise {noise:g}", specs, _METHODS)


CASES = tuple(_case(name, base, noise) for name, base in (("full", _FULL), ("short", _SHORT)) for noise in (0.01, 0.03))
