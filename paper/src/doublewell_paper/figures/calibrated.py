"""Figure: calibrated potentials by law, and the signed error of the scale for every estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.calibrate import calibrate
from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.law import named_law
from doublewell.report.style import COLOURS, new_figure, style
from doublewell_paper.case import LAWS
from doublewell_paper.figures.kinds import METHOD_COLOURS, PHASE_TICKS, FigureKind
from doublewell_paper.line import Line
from doublewell_paper.results import Results

__all__ = ["KINDS"]

_CASE = "principal 0.03"
_METHODS = ("STAC m=2", "weak LS m=5", "STAC m=5", "trajectory auto")
_U = np.linspace(-1.0, 1.0, 201)


def draw(results: Results) -> Any:
    """Draw deviations of the potential with their ranges, and below the errors of epsilon."""
    with style():
        figure = new_figure(9.2, 8.4)
        grid = figure.add_gridspec(3, 2, height_ratios=[1, 1, 1.15])
        for k, law in enumerate(LAWS):
            _potential(figure.add_subplot(grid[k // 2, k % 2]), results, law)
        _scales(figure.add_subplot(grid[2, :]), results)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside upper center", ncols=4)
    return figure


def _potential(axis: Any, results: Results, law: str) -> None:
    for method in _METHODS:
        lines = results.of(_CASE, method, lambda line: line.spec.law == law)
        curves = [curve for line in lines if (curve := _deviation(line)) is not None]
        if curves:
            colour = METHOD_COLOURS[method]
            axis.fill_between(_U, np.min(curves, axis=0), np.max(curves, axis=0), color=colour, alpha=0.18, lw=0)
            axis.plot(_U, np.mean(curves, axis=0), color=colour, lw=1.5, label=method)
    axis.axhline(0.0, color="0.7", lw=0.8, zorder=0)
    label = "potential deviation\n(% of max F)"
    axis.set(title=f"{law} law", xlabel="phase value u", ylabel=label, xticks=PHASE_TICKS)


def _deviation(line: Line) -> Array | None:
    """Return F_hat - F in percent of max F; None where calibration fails."""
    found, truth = line.law, named_law(line.spec.law)
    if found is None:
        return None
    try:
        scale = calibrate(found, truth.surface_tension(epsilon=1.0)).epsilon
    except InputError:
        return None
    return np.asarray(100 * (found.potential(_U, epsilon=scale) - truth.primitive(_U)) / truth.barrier)


def _scales(axis: Any, results: Results) -> None:
    """Draw one dot an estimate, a cross where its structure is wrong."""
    rng = np.random.default_rng(0)  # dots side by side, not on top of each other
    for k, law in enumerate(LAWS):
        for j, method in enumerate(_METHODS):
            found = [line for line in results.of(_CASE, method) if line.spec.law == law]
            for wrong, mark, size in ((0.0, ".", 5), (1.0, "x", 7)):
                values = [line.score("e_eps") for line in found if line.score("violation") == wrong]
                places = k + 0.2 * (j - 1.5) + rng.uniform(-0.05, 0.05, len(values))
                axis.plot(places, values, mark, color=METHOD_COLOURS[method], ms=size, alpha=0.8)
    axis.axhline(0.0, color=COLOURS["mark"], lw=0.8, zorder=0)
    axis.set_xticks(range(len(LAWS)), [f"{law} law" for law in LAWS])
    axis.set(ylabel="signed error of epsilon (%)", title="scale error of each estimate (cross: wrong well structure)")


KINDS = (
    FigureKind(
        "calibrated",
        (_CASE,),
        draw,
        "Calibrated outputs at noise 0.03: potential deviations (mean, range) and scale errors.",
    ),
)
