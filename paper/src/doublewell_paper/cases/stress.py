"""Six observation conditions at noise 0.03, two laws, ten seeds on the circle.

short: 31 frames. sparse: every second of 61 frames, so that (3, 5) frames last about as long as the paper's (5, 8).
coarse: every second pixel, 48 x 48. correlated: noise through a Gaussian filter of 1.5 cells. Thin and wide
interfaces: epsilon 0.02 and 0.05. Two laws with the paper's reference error 2.7 % are the sixth and the exponential.
"""

from __future__ import annotations

from dataclasses import replace

from doublewell_paper.case import TRAJECTORY, Case, grid
from doublewell_paper.cases.principal import SEEDS
from doublewell_paper.cases.replication import SHORT_SUPPORTS
from doublewell_paper.spec import Spec

__all__ = ["CASES", "CONDITIONS", "STRESS_LAWS"]

STRESS_LAWS = ("sixth", "exponential")
_BASE = Spec("", "", noise=0.03)
_HALVES = replace(_BASE, frames=31, supports=SHORT_SUPPORTS, training=0.5)
CONDITIONS: dict[str, Spec] = {
    "short record": _HALVES,
    "sparse in time": replace(_HALVES, stride=2),
    "48 x 48 grid": replace(_BASE, coarsen=2),
    "spatially correlated noise": replace(_BASE, correlation=1.5),
    "epsilon 0.02": replace(_BASE, epsilon=0.02),
    "epsilon 0.05": replace(_BASE, epsilon=0.05),
}
_METHODS = (
    "weak LS m=2",
    "STAC m=2",
    "weak LS m=5",
    "STAC m=5",
    "selected weak LS",
    "selected STAC",
    *TRAJECTORY,
)


def _case(name: str, base: Spec) -> Case:
    return Case(f"stress {name}", name, grid(base, laws=STRESS_LAWS, geometries=["circle"], seeds=SEEDS), _METHODS)


CASES = tuple(_case(name, base) for name, base in CONDITIONS.items())
