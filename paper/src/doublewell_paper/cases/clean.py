"""Clean circular tests: degrees zero to five of the exponential law, and spatial refinement of the sixth."""

from __future__ import annotations

from doublewell_paper.case import Case
from doublewell_paper.methods.normal import DEGREES
from doublewell_paper.spec import Spec

__all__ = ["CASES", "MESHES", "SUBSTEPS"]

MESHES = (128, 192, 256, 384, 512)
SUBSTEPS = (24, 48)
_REFINED = tuple(Spec("sixth", "circle", cells=cells, substeps=steps) for cells in MESHES for steps in SUBSTEPS)

CASES = (
    Case(
        "degrees",
        "clean record of the exponential law",
        (Spec("exponential", "circle"),),
        (*(f"normal m={m}" for m in DEGREES), "STAC m=2", "STAC m=5"),
    ),
    Case("refinement", "clean records of the sixth law on finer meshes", _REFINED, ("STAC m=2",), tiny_cells=64),
)
