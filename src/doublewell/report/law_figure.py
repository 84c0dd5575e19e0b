"""The figure of a law: force, primitive and potential, and the phase values that support them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Quantity
from doublewell.legacy import intervals, percent
from doublewell.report.style import COLOURS, new_figure, style
from doublewell.report.truth import Truth
from doublewell.report.unit_words import after, figure_text, per_area, potential_unit, scale_unit, unit_signs
from doublewell.result import Result

__all__ = ["law_figure"]

_MARKERS = {"maximum": "^", "minimum": "v", "inflection": "D"}
_SQUARE = r"length$^{-2}$"
_LEVEL = 0.95


@dataclass(frozen=True)
class _Panel:
    quantity: Quantity
    title: str
    label: str
    recovered: Callable[[Any], Any]
    truth: Callable[[Any], Any] | None


def law_figure(result: Result, *, truth: Truth | None = None) -> Any:
    """Return the figure of G, H and, with a scale, F over the phase value u, against the truth where it is known.

    Stationary points are marked. A result with error bands has them in the panels and, because they are mostly narrower
    than a line, once more below as the difference to the recovered curve; and it has the weights of the degrees. The
    histogram shows which phase values the record holds; where it holds (nearly) none, also at -u, the panels are grey:
    there the law rests on its form alone.
    """
    panels = _panels(result, truth)
    banded = result.posterior is not None
    averaged = result.posterior is not None and len(result.posterior.path) > 1
    columns = max(len(panels), 3) if averaged else len(panels)
    ratios = [2.9, 1.0, 1.1] if banded else [2.9, 1.0]
    with style():
        figure = new_figure(3.7 * columns + 0.6, 6.6 if banded else 5.2)
        grid = figure.add_gridspec(len(ratios), columns, height_ratios=ratios)
        axes = [figure.add_subplot(grid[0, k]) for k in range(len(panels))]
        for k, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            _draw(axis, panel, result)
            if banded:
                _strip(figure.add_subplot(grid[1, k], sharex=axis), panel, result)
        _histogram(figure.add_subplot(grid[-1, 0], sharex=axes[0]), result)
        if averaged:
            _weights(figure.add_subplot(grid[-1, 1]), result)
        _legend(figure.add_subplot(_corner(grid, len(panels), averaged)), axes[0], result, truth)
    return figure


def _corner(grid: Any, panels: int, averaged: bool) -> Any:
    """Return the free cells: beside the histogram, or the third column where only two are used above."""
    if not averaged:
        return grid[-1, 1:]
    return grid[-1, 2] if panels == 3 else grid[:, 2]


def _panels(result: Result, truth: Truth | None) -> list[_Panel]:
    force = None if truth is None else truth.force.force
    primitive = None if truth is None else truth.force.primitive
    area = per_area(result.settings)
    square = _SQUARE if area is None else figure_text(unit_signs(area))
    panels = [
        _Panel("force", "effective force G", f"G(u)  ({square})", result.force, force),
        _Panel("primitive", "primitive H of the force", f"H(u)  ({square})", result.primitive, primitive),
    ]
    if result.scale is not None:
        kind = r"tension$^2$" if result.scale.tension.normalisation == "E" else "tension / length"
        known = potential_unit(result)
        unit = kind if known is None else figure_text(unit_signs(known))
        potential = None if truth is None else truth.law.primitive
        panels.append(_Panel("potential", "potential F", f"F(u)  ({unit})", result.potential, potential))
    return panels


def _draw(axis: Any, panel: _Panel, result: Result) -> None:
    u = np.linspace(*result.law.phases, 401)
    for low, high in _unvisited(result):
        axis.axvspan(low, high, color=COLOURS["empty"], lw=0, zorder=0)
    axis.axhline(0.0, color="0.6", lw=0.8, zorder=1)
    if panel.truth is not None:
        axis.plot(u, panel.truth(u), color=COLOURS["truth"], lw=5.0, label="truth", solid_capstyle="butt")
    if result.posterior is not None:
        axis.fill_between(u, *_band(result, panel, u), color=COLOURS["band"], lw=0, label="95 % band", zorder=2.5)
    axis.plot(u, panel.recovered(u), color=COLOURS["recovered"], lw=1.8, label="recovered", zorder=3)
    for kind, marker in _MARKERS.items():
        places = np.array([place for place, what in _stationary(result) if what == kind])
        if places.size:
            heights = panel.recovered(places)
            axis.plot(places, heights, marker, color=COLOURS["mark"], ms=6, label=f"{kind} of H", zorder=4)
    axis.set(title=panel.title, xlabel="phase value u", ylabel=panel.label, xlim=_limits(result))
    axis.set_xticks(np.linspace(*result.law.phases, 5))
    axis.margins(y=0.08)


def _band(result: Result, panel: _Panel, u: Array) -> tuple[Array, Array]:
    """Return the band; nothing where the data allow laws without a planar interface."""
    try:
        return result.band(panel.quantity, u, level=_LEVEL)
    except InputError:
        return np.full(u.shape, np.nan), np.full(u.shape, np.nan)


def _strip(axis: Any, panel: _Panel, result: Result) -> None:
    """Draw band and truth minus the recovered curve, in percent of its largest value."""
    u = np.linspace(*result.law.phases, 401)
    middle = panel.recovered(u)
    unit = 100.0 / (float(np.max(np.abs(middle))) or 1.0)
    low, high = _band(result, panel, u)
    axis.fill_between(u, unit * (low - middle), unit * (high - middle), color=COLOURS["band"], lw=0)
    if panel.truth is not None:
        axis.plot(u, unit * (panel.truth(u) - middle), color=COLOURS["truth"], lw=2.0)
    axis.axhline(0.0, color=COLOURS["recovered"], lw=1.2)
    axis.set(xlabel="phase value u", ylabel="difference\n(% of max)")
    axis.locator_params(axis="y", nbins=4)


def _weights(axis: Any, result: Result) -> None:
    """Draw each degree's share of the average."""
    path = [] if result.posterior is None else result.posterior.path
    axis.bar([fit.degree for fit in path], [100 * fit.weight for fit in path], 0.7, color=COLOURS["recovered"])
    axis.set(xlabel="degree of the law in $u^2$", ylabel="weight (%)", ylim=(0, 105))
    axis.set_xticks([fit.degree for fit in path])


def _stationary(result: Result) -> list[tuple[float, str]]:
    """Interior points of the structure, and the pure phases where they are stable."""
    points = [(point.u, str(point.kind)) for point in result.structure.stationary]
    wells = zip(result.law.phases, result.law.well_curvatures, strict=True)
    return points + [(u, "minimum") for u, curvature in wells if curvature > 0.0]


def _limits(result: Result) -> tuple[float, float]:
    low, high = result.law.phases
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _bins(result: Result) -> tuple[Array, Array]:
    shares = np.array(result.diagnostics.survey.histogram)
    return shares, np.linspace(*result.law.phases, shares.size + 1)


def _unvisited(result: Result) -> list[tuple[float, float]]:
    _, edges = _bins(result)
    empty = [not seen for seen in result.diagnostics.survey.visited]
    step = np.diff(np.array([False, *empty, False]).astype(int))  # +1 where a run of empty bins begins
    return list(zip(edges[step == 1].tolist(), edges[step == -1].tolist(), strict=True))


def _histogram(axis: Any, result: Result) -> None:
    shares, edges = _bins(result)
    axis.bar(edges[:-1], 100 * shares, np.diff(edges), align="edge", color=COLOURS["visited"], ec="white", lw=0.4)
    axis.set(xlabel="phase value u", ylabel="values (%)", yscale="log", ylim=(0.05, 120))
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axis.minorticks_off()


def _legend(axis: Any, source: Any, result: Result, truth: Truth | None) -> None:
    """Use the free corner for the legend, headed by the numbers that go with the curves."""
    axis.set_axis_off()
    handles, labels = source.get_legend_handles_labels()
    if _unvisited(result):
        handles.append(_grey())
        labels.append("phase values not seen")
    legend = axis.legend(
        handles,
        labels,
        loc="upper left",
        ncols=2,
        columnspacing=1.0,
        handlelength=1.6,
        frameon=False,
        borderaxespad=0.0,
        alignment="left",
    )
    legend.set_title("\n".join(_numbers(result, truth)), prop={"size": 9.0})


def _grey() -> Any:
    from matplotlib.patches import Patch

    return Patch(color=COLOURS["empty"])


def _numbers(result: Result, truth: Truth | None) -> Iterator[str]:
    """Say what the curves stand for: degree and epsilon, and the errors where the truth is known."""
    if result.scale is not None:
        known = "" if truth is None else f" (truth {truth.epsilon:.4g})"
        yield f"epsilon = {result.scale.epsilon:.5g}{figure_text(after(scale_unit(result)))}{known}"
        if (found := intervals(result, level=_LEVEL).get("epsilon")) is not None:
            yield f"95 % interval {found[0]:.5g} to {found[1]:.5g}"
    else:
        yield "epsilon and F are not determined"
    average = result.posterior is not None and len(result.posterior.path) > 1
    degree = "average over degrees" if average else f"degree {result.degree}"
    yield degree if truth is None else f"{degree}, force error {percent(truth.force_error(result))}"
