"""Figure: paired changes in mean force error over seed clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.report.style import COLOURS, new_figure, style
from doublewell_paper.figures.kinds import FigureKind
from doublewell_paper.paper_numbers import paper_numbers
from doublewell_paper.results import Results

__all__ = ["KINDS"]

_CASE = "principal 0.03"
_PAIRS = (
    ("positivity added to ridge", "ridge STAC m=5", "ridge LS m=5", "positivity added to ridge, m=5"),
    ("ridge added to positivity", "ridge STAC m=5", "STAC m=5", "ridge added to positivity, m=5"),
    ("ridge STAC m=5\nminus STAC m=2", "ridge STAC m=5", "STAC m=2", "ridge STAC m=5 minus STAC m=2"),
    ("trajectory auto\nminus STAC m=2", "trajectory auto", "STAC m=2", ""),
    ("trajectory auto\nminus ridge STAC m=5", "trajectory auto", "ridge STAC m=5", ""),
)


def draw(results: Results) -> Any:
    """Draw means, clusters and percentile intervals, and the paper's where it has them."""
    paper = paper_numbers()["principal_contrasts_pp"]
    found = [(label, c, paper.get(key)) for label, one, two, key in _PAIRS if (c := results.contrast(_CASE, one, two))]
    with style():
        figure = new_figure(7.4, 1.2 + 0.75 * max(len(found), 1))
        axis = figure.subplots()
        axis.axvline(0.0, color="0.6", lw=0.8)
        for place, (_, c, told) in enumerate(found):
            y = len(found) - 1 - place
            spread = y + 0.16 + 0.08 * (np.arange(len(c.values)) % 3 - 1)
            axis.plot(c.values, spread, ".", color=COLOURS["visited"], ms=6, label="seed clusters")
            axis.plot(c.percentile, [y, y], color=COLOURS["recovered"], lw=2.5, label="95 % percentile interval")
            axis.plot(c.mean, y, "D", color=COLOURS["recovered"], ms=6, label="mean")
            if told is not None:
                axis.plot(told[1:], [y - 0.22] * 2, color=COLOURS["noise"], lw=1.5, label="paper, mean and interval")
                axis.plot(told[0], y - 0.22, "D", color=COLOURS["noise"], ms=4, mfc="white")
        axis.set_yticks(range(len(found)), [label for label, _, _ in reversed(found)])
        axis.set(
            xlabel="change in mean force error (percentage points); negative favours the first",
            ylim=(-0.6, max(len(found), 1) - 0.4),
        )
        handles, labels = axis.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique.keys(), frameon=False, fontsize=8, loc="outside upper center", ncols=4)
    return figure


KINDS = (
    FigureKind("contrasts", (_CASE,), draw, "Paired changes in mean force error at noise 0.03, ours and the paper's."),
)
