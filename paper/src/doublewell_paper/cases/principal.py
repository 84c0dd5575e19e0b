"""The principal set: four laws, two geometries, ten seeds shared by all, clean and at two noises; and fresh seeds."""

from __future__ import annotations

from dataclasses import replace

from doublewell_paper.case import FIVE_BRANCHES, LAWS, TRAJECTORY, Case, grid
from doublewell_paper.spec import Spec

__all__ = ["CASES", "GEOMETRIES", "SEEDS"]

GEOMETRIES = ("circle", "nonconvex")
SEEDS = range(20_000, 20_010)
FRESH_SEEDS = range(21_000, 21_010)
_BASE = Spec("", "", horizon=(61, 100))
_WEAK = (
    "weak LS m=2",
    "ridge LS m=2",
    "ridge STAC m=2",
    *FIVE_BRANCHES,
    "selected weak LS",
    "selected STAC",
    "analytic weak m=2",
    "analytic weak selected",
    "smoothed FD4 m=2",
)
_AT_HIGH_NOISE = ("unmasked m=2", "Hermite m=2", "unmasked selected", "Hermite selected", "design m=5")


def _noisy(noise: float) -> tuple[Spec, ...]:
    return grid(replace(_BASE, noise=noise), laws=LAWS, geometries=GEOMETRIES, seeds=SEEDS)


CASES = (
    Case(
        "clean", "principal records without noise", grid(_BASE, laws=LAWS, geometries=GEOMETRIES, seeds=[None]), _WEAK
    ),
    Case("principal 0.01", "principal records, noise 0.01", _noisy(0.01), (*_WEAK, *TRAJECTORY)),
    Case("principal 0.03", "principal records, noise 0.03", _noisy(0.03), (*_WEAK, *_AT_HIGH_NOISE, *TRAJECTORY)),
    Case(
        "fresh",
        "the principal records with fresh seeds, noise 0.03",
        grid(replace(_BASE, noise=0.03, horizon=None), laws=LAWS, geometries=GEOMETRIES, seeds=FRESH_SEEDS),
        (*FIVE_BRANCHES, *TRAJECTORY),
    ),
)
