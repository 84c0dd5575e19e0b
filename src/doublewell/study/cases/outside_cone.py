"""An admissible law outside the positive cone at degrees two and five: clean, and ten seeds at two noises."""

from __future__ import annotations

from dataclasses import replace

from doublewell.study.case import Case, grid
from doublewell.study.cases.principal import GEOMETRIES
from doublewell.study.spec import Spec

__all__ = ["CASES"]

SEEDS = range(23_000, 23_010)
_BASE = Spec("outside_cone", "")
_SPECS = (
    *grid(_BASE, laws=["outside_cone"], geometries=GEOMETRIES, seeds=[None]),
    *grid(replace(_BASE, noise=0.01), laws=["outside_cone"], geometries=GEOMETRIES, seeds=SEEDS),
    *grid(replace(_BASE, noise=0.03), laws=["outside_cone"], geometries=GEOMETRIES, seeds=SEEDS),
)
_METHODS = ("weak LS m=2", "STAC m=2", "weak LS m=5", "STAC m=5", "trajectory auto", "trajectory free")

CASES = (Case("outside cone", "a law outside the positive cone", _SPECS, _METHODS),)
