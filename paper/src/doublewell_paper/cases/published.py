"""The separate 256 x 256 set of the sixth law: three geometries at noise 0.01, five without noise; finer norms."""

from __future__ import annotations

from dataclasses import replace

from doublewell_paper.case import TRAJECTORY, Case, grid
from doublewell_paper.spec import Spec

__all__ = ["CASES", "GEOMETRIES_256"]

GEOMETRIES_256 = ("circle", "nonconvex", "inclusion")
_MORE = ("wobbled", "dumbbell")
_SEED = 24_000
_BASE = Spec("sixth", "", cells=256, phases=20_001)
_WEAK = ("STAC m=2", "smoothed FD4 m=2")


def _noisy(geometries: tuple[str, ...]) -> tuple[Spec, ...]:
    return grid(replace(_BASE, noise=0.01), laws=["sixth"], geometries=geometries, seeds=[_SEED])


CASES = (
    Case("published", "256 x 256, noise 0.01", _noisy(GEOMETRIES_256), (*_WEAK, *TRAJECTORY), tiny_shapes=3),
    Case("published more", "256 x 256, noise 0.01, further geometries", _noisy(_MORE), _WEAK),
    Case(
        "published clean",
        "256 x 256 without noise",
        grid(_BASE, laws=["sixth"], geometries=(*GEOMETRIES_256, *_MORE), seeds=[None]),
        ("STAC m=2", "analytic weak m=2", "direct FD4 m=2"),
        tiny_shapes=3,
    ),
)
