"""Figure: the best nonnegative approximation of the law outside the cone. No data are involved."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.inference import approximation_floor
from doublewell.law import Bernstein, Law, named_law
from doublewell.report.style import COLOURS, new_figure, style
from doublewell_paper.figures.kinds import PHASE_TICKS, FigureKind
from doublewell_paper.results import Results

__all__ = ["KINDS"]


def draw(_results: Results) -> Any:
    """Draw the force of the law and its best approximation at degrees two and five."""
    law = named_law("outside_cone")
    unit = float(np.max(np.abs(law.force(np.linspace(-1.0, 1.0, 2001)))))
    u = np.linspace(-1.0, 1.0, 401)
    with style():
        figure = new_figure(8.4, 3.5)
        for axis, degree in zip(figure.subplots(1, 2, sharey=True), (2, 5), strict=True):
            floor = approximation_floor(law, degree, constraint="bernstein")
            best = Law(Bernstein(degree), floor.coefficients)
            axis.axhline(0.0, color="0.7", lw=0.8)
            axis.plot(u, law.force(u) / unit, color=COLOURS["mark"], lw=1.8, label="law outside the cone")
            axis.plot(u, best.force(u) / unit, "--", color=COLOURS["recovered"], lw=1.8, label="best nonnegative fit")
            axis.set(
                title=f"degree {degree}: floor {100 * floor.error:.2f} %", xlabel="phase value u", xticks=PHASE_TICKS
            )
        figure.axes[0].set_ylabel("force, in units of its maximum")
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, frameon=False, loc="outside upper center", ncols=2)
    return figure


KINDS = (
    FigureKind(
        "floor",
        (),
        draw,
        "Approximation floor: an admissible law and its best approximation with nonnegative coefficients.",
    ),
)
