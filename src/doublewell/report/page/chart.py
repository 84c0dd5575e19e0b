"""Chart: scales, axes and marks as SVG, in the colours of the page's style sheet and readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10

import numpy as np

from doublewell.hints import Array
from doublewell.report.page.markup import Html, join, tag

__all__ = ["WIDTH", "Plot", "axes", "band", "bars", "curve", "figure", "marks", "nice_ticks", "rule", "span", "words"]

WIDTH = 380  # units of a figure's width: on a phone about one pixel each, so that texts keep their size
_SHAPES = {"maximum": "▲", "minimum": "▼", "inflection": "◆", "point": "●"}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Plot:
    """A rectangle of a figure (left, top, right, bottom) and the values at its edges."""

    box: tuple[float, float, float, float]
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        """Return where a value lies from left to right."""
        left, _, right, _ = self.box
        return left + (right - left) * (value - self.x[0]) / (self.x[1] - self.x[0])

    def up(self, value: float) -> float:
        """Return where a value lies from top to bottom."""
        _, top, _, bottom = self.box
        return bottom - (bottom - top) * (value - self.y[0]) / (self.y[1] - self.y[0])

    def points(self, x: Array, y: Array) -> str:
        """Return places as SVG writes them, two decimals; values beyond the rectangle lie on its edge."""
        inside = np.clip(y, min(self.y), max(self.y))
        return " ".join(f"{self.across(a):.2f},{self.up(b):.2f}" for a, b in zip(x, inside, strict=True))


def figure(parts: Sequence[Html], *, height: float, text: str, caption: Sequence[str], width: float = WIDTH) -> Html:
    """Return a figure with its alternative text and caption."""
    box = f"0 0 {width:g} {height:g}"
    drawn = tag("svg", *parts, viewBox=box, role="img", aria_label=text, preserveAspectRatio="xMidYMid meet")
    return tag("figure", drawn, tag("figcaption", *caption))


def axes(
    plot: Plot,
    *,
    x: str = "",
    y: str = "",
    xticks: Sequence[float] | None = None,
    yticks: Sequence[float] | None = None,
    few: int = 5,
) -> Html:
    """Draw frame, ticks and names; large and small numbers share a power of ten that stands beside the name."""
    left, top, right, bottom = plot.box
    parts = [tag("rect", x=left, y=top, width=right - left, height=bottom - top, class_="frame")]
    power, along = _power(plot.y), _power(plot.x)
    for value in nice_ticks(*plot.y, few) if yticks is None else yticks:
        at = plot.up(value)
        parts.append(_segment(left - 4, at, left, at, "tick"))
        parts.append(words(left - 6, at + 3.5, _label(value / 10.0**power), "end"))
    for value in nice_ticks(*plot.x, few) if xticks is None else xticks:
        at = plot.across(value)
        parts.append(_segment(at, bottom, at, bottom + 4, "tick"))
        if x:
            parts.append(words(at, bottom + 16, _label(value / 10.0**along), "middle"))
    if x:
        parts.append(words(0.5 * (left + right), bottom + 32, x + _unit(along), "middle", kind="name"))
    if y:
        parts.append(words(left, top - 7, y + _unit(power), "start", kind="name"))
    return join(parts)


def curve(plot: Plot, x: Array, y: Array, kind: str = "line") -> Html:
    """Draw a line; where a value is missing it is broken."""
    seen = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]]).astype(int)))
    pieces = [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return join(tag("polyline", points=plot.points(x[piece], y[piece]), class_=kind) for piece in pieces)


def band(plot: Plot, x: Array, low: Array, high: Array) -> Html:
    """Draw the area between two lines; nothing where they are not known."""
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        return Html()
    around = f"{plot.points(x, low)} {plot.points(x[::-1], high[::-1])}"
    return tag("polygon", points=around, class_="band")


def bars(plot: Plot, edges: Array, heights: Array, kind: str = "bar") -> Html:
    """Draw upright bars between edges, from the lower end of the plot."""
    _, _, _, bottom = plot.box
    shown = []
    for low, high, height in zip(edges[:-1], edges[1:], heights, strict=True):
        left, right, top = plot.across(low), plot.across(high), plot.up(min(max(height, plot.y[0]), plot.y[1]))
        if bottom - top > 0.01:
            shown.append(tag("rect", x=left + 0.5, y=top, width=right - left - 1, height=bottom - top, class_=kind))
    return join(shown)


def span(plot: Plot, low: float, high: float) -> Html:
    """Hatch a range of x with slanted lines, so that it shows without colour."""
    _, top, _, bottom = plot.box
    left, right = plot.across(low), plot.across(high)
    slope = bottom - top
    lines = [tag("rect", x=left, y=top, width=right - left, height=slope, class_="unseen")]
    for start in np.arange(left - slope, right, 9.0):
        a, b = max(start, left), min(start + slope, right)
        if b > a:
            lines.append(_segment(a, bottom - (a - start), b, bottom - (b - start), "hatch"))
    return join(lines)


def rule(plot: Plot, value: float, kind: str = "zero") -> Html:
    """Draw a level line."""
    left, _, right, _ = plot.box
    return _segment(left, plot.up(value), right, plot.up(value), kind)


def marks(plot: Plot, x: Sequence[float], y: Sequence[float], kind: str) -> Html:
    """Draw points by the shape of their kind."""
    return join(
        words(plot.across(a), plot.up(b) + 4, _SHAPES[kind], "middle", kind="mark") for a, b in zip(x, y, strict=True)
    )


def words(x: float, y: float, text: str, anchor: str, *, kind: str = "label") -> Html:
    """Write a text that begins, ends or is centred at a place."""
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def nice_ticks(low: float, high: float, few: int = 5) -> list[float]:
    """Return round values between two ends, as close to `few` of them as round steps allow.

    >>> nice_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not isfinite(high - low) or high <= low:
        return [low]
    unit = 10.0 ** floor(log10((high - low) / few))
    steps = [unit * k for k in (0.5, 1, 2, 5, 10)]
    found = [[k * step for k in np.arange(np.ceil(low / step - 1e-9), high / step + 1e-9)] for step in steps]
    best = min(found, key=lambda ticks: abs(len(ticks) - few))
    return list(dict.fromkeys(float(f"{value:.12g}") + 0.0 for value in best))


def _power(ends: tuple[float, float]) -> int:
    largest = max(abs(end) for end in ends)
    if largest == 0.0 or not isfinite(largest):
        return 0
    size = floor(log10(largest))
    return 0 if -3 < size < 5 else size


def _unit(power: int) -> str:
    return f" / 10{str(power).translate(_RAISED)}" if power else ""


def _label(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)
