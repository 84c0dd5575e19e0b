"""Larger noise, 0.05 and 0.10, on the principal laws and geometries with five of the seeds."""

from __future__ import annotations

from dataclasses import replace

from doublewell_paper.case import LAWS, TRAJECTORY, Case, grid
from doublewell_paper.cases.principal import GEOMETRIES, SEEDS
from doublewell_paper.spec import Spec

__all__ = ["CASES"]

_METHODS = ("STAC m=2", "STAC m=5", *TRAJECTORY)


def _case(noise: float) -> Case:
    base = replace(Spec("", ""), noise=noise)
    specs = grid(base, laws=LAWS, geometries=GEOMETRIES, seeds=SEEDS[:5])
    return Case(f"noise {noise:.2f}", f"noise {noise:.2f}", specs, _METHODS)


CASES = tuple(_case(noise) for noise in (0.05, 0.10))
