"""FigureKind: a figure's name, the cases it needs and how it is drawn; and the colours that several share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from doublewell_paper.results import Results

__all__ = ["METHOD_COLOURS", "PHASE_TICKS", "FigureKind", "placeholder"]

PHASE_TICKS = (-1.0, -0.5, 0.0, 0.5, 1.0)

METHOD_COLOURS = {  # Okabe and Ito, as in the report's style
    "weak LS m=2": "#999999",
    "STAC m=2": "#56B4E9",
    "weak LS m=5": "#D55E00",
    "STAC m=5": "#0072B2",
    "ridge STAC m=5": "#CC79A7",
    "selected weak LS": "#F0E442",
    "selected STAC": "#009E73",
    "trajectory m=5": "#E69F00",
    "trajectory auto": "#000000",
}


@dataclass(frozen=True)
class FigureKind:
    """How one figure is drawn: from the results of the named cases; ``caption`` is its sentence on the page."""

    name: str
    cases: tuple[str, ...]
    draw: Callable[[Results], Any]
    caption: str


def placeholder(axis: Any, text: str) -> None:
    """Say in an empty panel why nothing is drawn."""
    axis.set_axis_off()
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, wrap=True)
