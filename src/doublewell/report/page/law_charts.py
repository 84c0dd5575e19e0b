"""Charts of the law: potential and force with their bands, phase coverage, weights of the degrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.hints import Array
from doublewell.inference import Quantity
from doublewell.report.page.chart import (
    WIDTH,
    Plot,
    axes,
    band,
    bars,
    curve,
    figure,
    marks,
    rule,
    span,
    words,
)
from doublewell.report.page.markup import Html, join, plain
from doublewell.report.unit_words import per_area, potential_unit, unit_signs
from doublewell.result import Result

__all__ = ["band_of", "coverage_chart", "force_chart", "potential_chart", "unseen_ranges", "weights_chart"]

_POINTS = 161
_LEFT, _RIGHT = 50.0, WIDTH - 12.0
_FLOOR = 0.05  # percent: the lower end of the histogram's logarithmic scale


@dataclass(frozen=True)
class _Panel:
    quantity: Quantity
    symbol: str
    name: str
    unit: str
    values: Callable[[Any], Any]


def potential_chart(result: Result) -> Html:
    """Draw F, or without a scale H = F/epsilon^2."""
    if result.scale is None:
        return _law_chart(result, _Panel("primitive", "H", "H = F/ε²", _per_area(result), result.primitive))
    kind = "tension²" if result.scale.tension.normalisation == "E" else "tension/length"
    unit = unit_signs(potential_unit(result) or kind)
    return _law_chart(result, _Panel("potential", "F", "potential F", unit, result.potential))


def force_chart(result: Result) -> Html:
    """Draw the effective force G."""
    return _law_chart(result, _Panel("force", "G", "effective force G", _per_area(result), result.force))


def _per_area(result: Result) -> str:
    """Return the unit of G and H."""
    return unit_signs(per_area(result.settings) or "1/length²")


def band_of(result: Result, quantity: Quantity, u: Array) -> tuple[Array, Array] | str:
    """Return the 95 % band, or why there is none."""
    try:
        return result.band(quantity, u)
    except InputError as error:
        return str(error)


def unseen_ranges(result: Result) -> list[tuple[float, float]]:
    """Return the ranges of u that the movie (nearly) never shows."""
    seen = np.array(result.diagnostics.survey.visited)
    edges = np.linspace(*result.law.phases, seen.size + 1)
    step = np.diff(np.concatenate([[False], ~seen, [False]]).astype(int))
    return list(zip(edges[step == 1].tolist(), edges[step == -1].tolist(), strict=True))


def _law_chart(result: Result, panel: _Panel) -> Html:
    u, ticks = np.linspace(*result.law.phases, _POINTS), _ticks(result)
    found, middle = band_of(result, panel.quantity, u), np.asarray(panel.values(u))
    edges = (middle, middle) if isinstance(found, str) else found
    pad = 0.08 * float(np.ptp(np.concatenate(edges)))
    limits = (float(np.min(edges[0])) - pad, float(np.max(edges[1])) + pad)
    plot = Plot((_LEFT, 24, _RIGHT, 224), _limits(result), limits if pad else (-1.0, 1.0))
    banded = not isinstance(found, str)
    parts = [
        *(span(plot, *ends) for ends in unseen_ranges(result)),
        axes(plot, x="" if banded else "phase value u", y=f"{panel.name}  ({panel.unit})", xticks=ticks),
        rule(plot, 0.0),
        band(plot, u, *edges) if banded else Html(),
        curve(plot, u, middle),
        _stationary(plot, result, panel),
    ]
    if not isinstance(found, str):
        parts.append(_strip(u, middle, found, result))
    height = 372 if banded else 262
    return figure(parts, height=height, text=_law_text(result, panel, found), caption=_caption(result, panel, found))


def _strip(u: Array, middle: Array, found: tuple[Array, Array], result: Result) -> Html:
    """Draw the band once more around the curve as zero, because it is mostly narrower than a line."""
    unit = 100.0 / (float(np.max(np.abs(middle))) or 1.0)
    low, high = (unit * (edge - middle) for edge in found)
    reach = 1.1 * max(float(np.max(np.abs(low))), float(np.max(np.abs(high))), 1e-9)
    plot = Plot((_LEFT, 254, _RIGHT, 334), _limits(result), (-reach, reach))
    name = "95 % band around the curve  (% of the largest value)"
    shaded = [*(span(plot, *ends) for ends in unseen_ranges(result)), band(plot, u, low, high)]
    return join([*shaded, axes(plot, x="phase value u", y=name, xticks=_ticks(result), few=3), rule(plot, 0.0, "line")])


def _stationary(plot: Plot, result: Result, panel: _Panel) -> Html:
    ends = zip(result.law.phases, result.law.well_curvatures, strict=True)
    wells = [(u, "minimum") for u, curvature in ends if curvature > 0.0]
    points = [*((point.u, str(point.kind)) for point in result.structure.stationary), *wells]
    return join(marks(plot, [u], [float(panel.values(u))], kind) for u, kind in points)


def _limits(result: Result) -> tuple[float, float]:
    low, high = result.law.phases
    return low - 0.03 * (high - low), high + 0.03 * (high - low)


def _ticks(result: Result) -> tuple[float, ...]:
    return tuple(float(u) for u in np.linspace(*result.law.phases, 5))


def _law_text(result: Result, panel: _Panel, found: tuple[Array, Array] | str) -> str:
    """Say the curve in numbers, for readers who do not see it."""
    even = result.law.family.even
    at = [(u, float(panel.values(u))) for u in ((0.0, 0.25, 0.5, 0.75, 1.0) if even else _ticks(result))]
    told = ", ".join(f"{plain(value)} at {u:g}" for u, value in at)
    kind = "odd" if panel.quantity == "force" else "even"
    sure = "no band is known" if isinstance(found, str) else "the 95 % band is " + _width(result, panel, found)
    if not even:
        low, high = (plain(u) for u in result.law.phases)
        return f"Curve of the {panel.name} over the phase value u from {low} to {high}: {told}; {sure}."
    return f"Curve of the {panel.name} over the phase value u from −1 to 1. It is {kind} in u: {told}; {sure}."


def _width(result: Result, panel: _Panel, found: tuple[Array, Array]) -> str:
    middle = np.asarray(panel.values(np.linspace(*result.law.phases, _POINTS)))
    share = 50.0 * float(np.max(found[1] - found[0])) / (float(np.max(np.abs(middle))) or 1.0)
    return f"at most ±{plain(share, 2)} % of the largest value"


def _caption(result: Result, panel: _Panel, found: tuple[Array, Array] | str) -> list[str]:
    said = [f"{panel.symbol}(u). Line: recovered. ▲ barrier, ▼ wells."]
    if isinstance(found, str):
        said.append(f" No band: {found}.")
    else:
        said.append(f" Shaded: 95 % band, {_width(result, panel, found)}; the lower part shows it enlarged.")
    if unseen_ranges(result):
        said.append(" Hatched: phase values that the movie does not show.")
    return said


def coverage_chart(result: Result) -> Html:
    """Draw how often each phase value is seen, on a logarithmic scale."""
    shares = 100.0 * np.array(result.diagnostics.survey.histogram)
    edges = np.linspace(*result.law.phases, shares.size + 1)
    plot = Plot((_LEFT, 24, _RIGHT, 194), _limits(result), (float(np.log10(_FLOOR)), 2.0))
    hatched = [span(plot, *ends) for ends in unseen_ranges(result)]
    heights = np.log10(np.maximum(shares, _FLOOR))
    name = "share of all values  (%, logarithmic)"
    frame = [axes(plot, x="phase value u", y=name, xticks=_ticks(result), yticks=())]
    for value in (0.1, 1.0, 10.0, 100.0):
        frame.append(words(_LEFT - 6, plot.up(float(np.log10(value))) + 3.5, f"{value:g}", "end"))
    visited = 100.0 * result.diagnostics.survey.coverage
    pairs = zip(edges[::4], edges[4::4], shares.reshape(-1, 4).sum(axis=1), strict=False)
    listed = ", ".join(f"{plain(a, 2)} to {plain(b, 2)}: {plain(c, 2)} %" for a, b, c in pairs)
    return figure(
        [*hatched, bars(plot, edges, heights), *frame],
        height=234,
        text=f"Histogram of the phase values in the movie. {listed}. {visited:.0f} % of the range is visited.",
        caption=[
            f"Phase values that the movie shows: {visited:.0f} % of the range is visited. The law is measured there."
        ],
    )


def weights_chart(result: Result) -> Html:
    """Draw the share of each degree in the average; nothing where there is only one."""
    path = () if result.posterior is None else result.posterior.path
    if len(path) < 2:
        return Html()
    plot = Plot((_LEFT, 24, _RIGHT, 194), (path[0].degree - 0.5, path[-1].degree + 0.5), (0.0, 105.0))
    shares = [100.0 * fit.weight for fit in path]
    drawn = []
    for fit, share in zip(path, shares, strict=True):
        drawn.append(bars(plot, np.array([fit.degree - 0.4, fit.degree + 0.4]), np.array([share])))
        drawn.append(words(plot.across(fit.degree), plot.up(share) - 4, _share(share), "middle"))
    told = ", ".join(f"degree {fit.degree}: {_share(share)} %" for fit, share in zip(path, shares, strict=True))
    ticks = [float(fit.degree) for fit in path]
    frame = axes(plot, x="degree of the law in u²", y="weight in the average  (%)", xticks=ticks)
    return figure(
        [frame, *drawn],
        height=234,
        text=f"Weights of the degrees. {told}.",
        caption=["What the data make of each degree."],
    )


def _share(value: float) -> str:
    return "0" if value < 0.05 else plain(value, 2)
