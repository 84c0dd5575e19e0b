"""Figure: force error under six observation conditions."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.report.style import new_figure, style
from doublewell_paper.cases.stress import CONDITIONS
from doublewell_paper.figures.kinds import METHOD_COLOURS, FigureKind
from doublewell_paper.results import Results, mean
from doublewell_paper.tables.stress import STRESS_CASES, reference

__all__ = ["KINDS"]

_METHODS = ("weak LS m=2", "STAC m=2", "weak LS m=5", "STAC m=5", "selected STAC", "trajectory m=5", "trajectory auto")
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)


def draw(results: Results) -> Any:
    """Draw grouped bars on a logarithmic scale; the reference is the principal set of the same laws."""
    names = ("reference", *CONDITIONS)
    with style():
        figure = new_figure(10.4, 4.2)
        axis = figure.subplots()
        width = 0.8 / len(_METHODS)
        for k, method in enumerate(_METHODS):
            heights = [_height(results, name, method) for name in names]
            if not all(np.isnan(heights)):
                places = np.arange(len(names)) + (k - 0.5 * (len(_METHODS) - 1)) * width
                axis.bar(places, heights, 0.92 * width, color=METHOD_COLOURS[method], label=method)
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.set_yticks([tick for tick in _TICKS if low <= tick <= high], minor=False)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        axis.set_xticks(
            range(len(names)), [name.replace(" noise", "\nnoise").replace(" in ", "\nin ") for name in names]
        )
        axis.set_ylabel("mean force error (%), log scale")
        axis.grid(axis="y", color="0.9", zorder=0)
        axis.set_axisbelow(True)
        figure.legend(
            *axis.get_legend_handles_labels(),
            frameon=False,
            loc="outside upper center",
            ncols=len(_METHODS),
            fontsize=8,
        )
    return figure


def _height(results: Results, name: str, method: str) -> float:
    lines = reference(results, method) if name == "reference" else results.of(f"stress {name}", method)
    value = mean(lines, "e_G")
    return float("nan") if value is None else value


KINDS = (
    FigureKind(
        "stress",
        ("principal 0.03", *STRESS_CASES),
        draw,
        "Mean force error under six observation conditions, noise 0.03.",
    ),
)
