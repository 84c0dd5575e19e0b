"""The figure of a law: force, primitive and potential, and the phase values that support them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.law.family import Array
from doublewell.report.style import COLOURS, new_figure, style
from doublewell.report.truth import Truth
from doublewell.result import Result

__all__ = ["law_figure"]

_SEEN = 1e-3  # the least share of the values in a bin that counts as visited, as in the survey's coverage
_MARKERS = {"maximum": "^", "minimum": "v", "inflection": "D"}
_SQUARE = r"length$^{-2}$"


@dataclass(frozen=True)
class _Panel:
    title: str
    label: str
    recovered: Callable[[Any], Any]
    truth: Callable[[Any], Any] | None


def law_figure(result: Result, *, truth: Truth | None = None) -> Any:
    """Return the figure of G, H and, with a scale, F over the phase value u, against the truth where it is known.

    Stationary points are marked. The histogram under G shows which phase values the record holds; where it holds
    (nearly) none the panels are grey: there the law rests on its symmetry or on its form alone.
    """
    panels = _panels(result, truth)
    with style():
        figure = new_figure(3.7 * len(panels) + 0.6, 5.2)
        grid = figure.add_gridspec(2, len(panels), height_ratios=[2.9, 1.0])
        axes = [figure.add_subplot(grid[0, k]) for k in range(len(panels))]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel, result)
        _histogram(figure.add_subplot(grid[1, 0], sharex=axes[0]), result)
        _legend(figure.add_subplot(grid[1, 1:]), axes[0], result, truth)
    return figure


def _panels(result: Result, truth: Truth | None) -> list[_Panel]:
    force = None if truth is None else truth.force.force
    primitive = None if truth is None else truth.force.primitive
    panels = [
        _Panel("effective force G", f"G(u)  ({_SQUARE})", result.force, force),
        _Panel("primitive H of the force", f"H(u)  ({_SQUARE})", result.primitive, primitive),
    ]
    if result.scale is not None:
        unit = r"tension$^2$" if result.scale.tension.normalisation == "E" else "tension / length"
        potential = None if truth is None else truth.law.primitive
        panels.append(_Panel("potential F", f"F(u)  ({unit})", result.potential, potential))
    return panels


def _draw(axis: Any, panel: _Panel, result: Result) -> None:
    u = np.linspace(-1.0, 1.0, 401)
    for low, high in _unvisited(result):
        axis.axvspan(low, high, color=COLOURS["empty"], lw=0, zorder=0)
    axis.axhline(0.0, color="0.6", lw=0.8, zorder=1)
    if panel.truth is not None:
        axis.plot(u, panel.truth(u), color=COLOURS["truth"], lw=5.0, label="truth", solid_capstyle="butt")
    axis.plot(u, panel.recovered(u), color=COLOURS["recovered"], lw=1.8, label="recovered")
    for kind, marker in _MARKERS.items():
        places = np.array([place for place, what in _stationary(result) if what == kind])
        if places.size:
            heights = panel.recovered(places)
            axis.plot(places, heights, marker, color=COLOURS["mark"], ms=6, label=f"{kind} of H", zorder=4)
    axis.set(title=panel.title, xlabel="phase value u", ylabel=panel.label, xlim=(-1.08, 1.08))
    axis.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    axis.margins(y=0.08)


def _stationary(result: Result) -> list[tuple[float, str]]:
    """Interior points of the structure, and the pure phases where they are stable."""
    points = [(point.u, str(point.kind)) for point in result.structure.stationary]
    wells = [(-1.0, "minimum"), (1.0, "minimum")] if result.law.well_curvature > 0.0 else []
    return points + wells


def _bins(result: Result) -> tuple[Array, Array]:
    shares = np.array(result.diagnostics.survey.histogram)
    return shares, np.linspace(-1.0, 1.0, shares.size + 1)


def _unvisited(result: Result) -> list[tuple[float, float]]:
    shares, edges = _bins(result)
    step = np.diff(np.concatenate(([0], shares < _SEEN, [0])).astype(int))  # +1 where a run of empty bins begins
    return list(zip(edges[step == 1].tolist(), edges[step == -1].tolist(), strict=True))


def _histogram(axis: Any, result: Result) -> None:
    shares, edges = _bins(result)
    axis.bar(edges[:-1], 100 * shares, np.diff(edges), align="edge", color=COLOURS["visited"], ec="white", lw=0.4)
    axis.set(xlabel="phase value u", ylabel="values (%)", yscale="log", ylim=(0.05, 120))
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axis.minorticks_off()
    axis.axhline(100 * _SEEN, color="0.4", lw=0.8, ls=":")


def _legend(axis: Any, source: Any, result: Result, truth: Truth | None) -> None:
    """Use the free corner for the legend, headed by the numbers that go with the curves."""
    axis.set_axis_off()
    handles, labels = source.get_legend_handles_labels()
    if _unvisited(result):
        handles.append(_grey())
        labels.append("phase values not seen")
    legend = axis.legend(handles, labels, loc="upper left", ncols=2, frameon=False, borderaxespad=0.0, alignment="left")
    legend.set_title("\n".join(_numbers(result, truth)), prop={"size": 9.0})


def _grey() -> Any:
    from matplotlib.patches import Patch

    return Patch(color=COLOURS["empty"])


def _numbers(result: Result, truth: Truth | None) -> Iterator[str]:
    """Say what the curves stand for: degree and epsilon, and the errors where the truth is known."""
    if result.scale is not None:
        known = "" if truth is None else f" (truth {truth.epsilon:.4g})"
        yield f"epsilon = {result.scale.epsilon:.4g}{known}"
    else:
        yield "epsilon and F are not determined"
    if truth is not None:
        yield f"degree {result.degree}, force error {100 * truth.force_error(result):.2g} %"
    else:
        yield f"degree {result.degree}"
