"""Figures: each file holds one; a new one is a file with KINDS and one line here."""

from doublewell_paper.figures import calibrated, clean, contrasts, floor, geometries, stress, structure
from doublewell_paper.figures.kinds import FigureKind

__all__ = ["FIGURES"]

_ROOMS = (floor, geometries, contrasts, structure, clean, stress, calibrated)
FIGURES: dict[str, FigureKind] = {kind.name: kind for room in _ROOMS for kind in room.KINDS}
