"""Figure: one structural violation, its force and primitive, and an enlargement near the origin."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.law import Law, even_family, named_law
from doublewell.report.style import COLOURS, new_figure, style
from doublewell_paper.figures.kinds import PHASE_TICKS, FigureKind, placeholder
from doublewell_paper.line import Line
from doublewell_paper.results import Results

__all__ = ["KINDS", "example"]

_CASE = "principal 0.03"


def example(results: Results) -> Line | None:
    """Return the record shown: the first violation of the exponential law on the circle, else the nearest to one.

    Nearest means the smallest bracket p relative to its mean. The choice looks at structure alone, not at errors.
    """
    lines = results.of(_CASE, "weak LS m=5")
    wanted = [x for x in lines if (x.spec.law, x.spec.geometry) == ("exponential", "circle")] or lines
    for group in (wanted, lines):
        broken = [line for line in group if line.score("violation") == 1.0]
        if broken:
            return broken[0]
    return min(wanted, key=_least_bracket, default=None)


def _least_bracket(line: Line) -> float:
    law = line.law
    if law is None:
        return float("inf")
    bracket = even_family(law.family, "the figure").bracket(law.coefficients, np.linspace(0.0, 1.0, 201))
    return float(np.min(bracket) / np.mean(bracket))


def draw(results: Results) -> Any:
    """Draw reference, unconstrained and constrained estimates of one record."""
    line = example(results)
    with style():
        figure = new_figure(8.6, 6.0)
        axes = figure.subplots(2, 2)
        if line is None or line.law is None:
            for axis in axes.flat:
                placeholder(axis, "no record")
            return figure
        curves = _curves(results, line, line.law)
        reach = _reach(line.law)
        for column, (low, high, zoomed) in enumerate(((-1.0, 1.0, False), (-reach, reach, True))):
            u = np.linspace(low, high, 401)
            for label, law, colour, dash in curves:
                axes[0, column].plot(u, law.force(u), dash, color=colour, lw=1.6, label=label)
                base = law.primitive(0.0) if zoomed else 0.0
                axes[1, column].plot(u, law.primitive(u) - base, dash, color=colour, lw=1.6)
            for axis in axes[:, column]:
                axis.axhline(0.0, color="0.7", lw=0.8, zorder=0)
                axis.set_xlabel("phase value u")
        for axis in axes[:, 0]:
            axis.set_xticks(PHASE_TICKS)
        titles = ("(a) force", "(b) force near the origin", "(c) primitive", "(d) change of the primitive from u = 0")
        labels = (r"G (length$^{-2}$)", r"G (length$^{-2}$)", r"H (length$^{-2}$)", r"H(u) - H(0) (length$^{-2}$)")
        for axis, title, label in zip(axes.flat, titles, labels, strict=True):
            axis.set(title=title, ylabel=label)
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, title=line.record, frameon=False, loc="outside upper center", ncols=4)
    return figure


def _curves(results: Results, line: Line, free: Law) -> list[tuple[str, Law, str, str]]:
    truth = named_law(line.spec.law).effective(line.spec.epsilon)
    curves = [("reference", truth, COLOURS["mark"], "-"), ("weak LS, m = 5", free, COLOURS["noise"], "--")]
    for method, label, colour in (("STAC m=5", "STAC, m = 5", "#0072B2"), ("trajectory auto", "trajectory", "#009E73")):
        same = [
            x.law for x in results.of(_CASE, method, lambda other: other.record == line.record) if x.law is not None
        ]
        curves += [(label, law, colour, ":" if method.startswith("t") else "-") for law in same]
    return curves


def _reach(law: Law) -> float:
    """Return how far the enlargement goes: twice the innermost extra zero, at most 0.3."""
    zeros = [abs(point.u) for point in law.structure.stationary if point.u]
    return min(0.3, 2.0 * min(zeros)) if zeros else 0.2


KINDS = (
    FigureKind("structure", (_CASE,), draw, "A structural violation of unconstrained least squares at degree five."),
)
