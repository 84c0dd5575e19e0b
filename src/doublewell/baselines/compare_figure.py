"""The figure of a comparison: every force over our band, and the same as differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.baselines.compare import Comparison
from doublewell.hints import Array
from doublewell.report.style import COLOURS, new_figure, style

__all__ = ["comparison_figure"]

_LEVEL = 0.95
_ROOM = 4.0  # of the band's or the median method's largest difference: more is cut off, and the legend says by whom
_LINES = ("#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#8C8C8C")  # Okabe and Ito; grey for yellow
_DASHES = ("-", "--", ":", "-.")  # another one for each, so that curves that lie on each other can be seen


def comparison_figure(found: Comparison) -> Any:
    """Return the figure of G by every method over our 95 % band, and of the differences to our G in percent."""
    u = np.linspace(-1.0, 1.0, 401)
    ours = np.asarray(found.result.force(u))
    low, high = found.result.band("force", u, level=_LEVEL)
    unit = 100.0 / float(np.max(np.abs(ours)))
    with style():
        figure = new_figure(8.6, 6.4)
        grid = figure.add_gridspec(2, 2, width_ratios=[3.4, 1.0], height_ratios=[1.5, 1.0])
        top, below = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        top.fill_between(u, low, high, color=COLOURS["band"], lw=0, label="our 95 % band", zorder=2)
        below.fill_between(u, unit * (low - ours), unit * (high - ours), color=COLOURS["band"], lw=0, zorder=2)
        top.plot(u, ours, color=COLOURS["recovered"], lw=2.2, label=found.rows[0].fit.name, zorder=5)
        below.axhline(0.0, color=COLOURS["recovered"], lw=1.6, zorder=5)
        gaps = _others(top, below, found, u, ours, unit)
        top.axhline(0.0, color="0.6", lw=0.8, zorder=1)
        top.set(title="effective force G by every method", ylabel="G(u)", xlim=(-1.05, 1.05))
        _set_room(top, below, ours, gaps, unit * float(np.max(high - low)))
        below.set(xlabel="phase value u", ylabel="difference to ours\n(% of max)", xlim=(-1.05, 1.05))
        corner = figure.add_subplot(grid[:, 1])
        corner.set_axis_off()
        corner.legend(*top.get_legend_handles_labels(), loc="upper left", frameon=False, borderaxespad=0.0)
    return figure


def _others(top: Any, below: Any, found: Comparison, u: Array, ours: Array, unit: float) -> list[float]:
    """Draw the other methods; return the largest difference of each, in percent."""
    gaps = []
    for k, row in enumerate(found.rows[1:]):
        look = {"color": _LINES[k % len(_LINES)], "ls": _DASHES[k % len(_DASHES)], "lw": 1.4}
        curve = np.asarray(row.fit.force(u))
        gaps.append(unit * float(np.max(np.abs(curve - ours))))
        top.plot(u, curve, label=f"{row.fit.name}\n{100 * row.distance:.2g} %", zorder=3, **look)
        below.plot(u, unit * (curve - ours), zorder=3, **look)
    return gaps


def _set_room(top: Any, below: Any, ours: Array, gaps: list[float], band: float) -> None:
    """Keep one method that is far off from pressing all others into a line."""
    room = _ROOM * max([band, float(np.median(gaps)) if gaps else band, 1e-6])
    below.set_ylim(-min(room, 1.1 * max([*gaps, band])), min(room, 1.1 * max([*gaps, band])))
    size = 1.6 * float(np.max(np.abs(ours)))
    top.set_ylim(-size, size)
