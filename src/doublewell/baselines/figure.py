"""The figure of a comparison: every force over our band, and the differences to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doublewell.report.style import COLOURS, new_figure, style

if TYPE_CHECKING:
    from doublewell.baselines.comparison import Comparison

_LEVEL = 0.95
_ROOM = 4.0  # of the band's or the median method's largest difference: more is cut off
_LINES = ("#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#8C8C8C")  # Okabe and Ito; grey for yellow
_DASHES = ("-", "--", ":", "-.")  # another one for each, so that curves that lie on each other can be seen


def comparison_figure(comparison: Comparison) -> Any:
    """Return the figure of G by every method over our 95 % band, and of the differences to our G in percent."""
    u = np.linspace(-1.0, 1.0, 401)
    ours = np.asarray(comparison.result.force(u))
    low, high = comparison.result.band("force", u, level=_LEVEL)
    largest = float(np.max(np.abs(ours)))
    unit = 100.0 / largest
    with style():
        figure = new_figure(8.6, 6.4)
        grid = figure.add_gridspec(2, 2, width_ratios=[3.4, 1.0], height_ratios=[1.5, 1.0])
        top, below = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
        top.fill_between(u, low, high, color=COLOURS["band"], lw=0, label="our 95 % band", zorder=2)
        below.fill_between(u, unit * (low - ours), unit * (high - ours), color=COLOURS["band"], lw=0, zorder=2)
        top.plot(u, ours, color=COLOURS["recovered"], lw=2.2, label=comparison.rows[0].fit.name, zorder=5)
        below.axhline(0.0, color=COLOURS["recovered"], lw=1.6, zorder=5)
        gaps = []
        for k, row in enumerate(comparison.rows[1:]):
            line = {"color": _LINES[k % len(_LINES)], "ls": _DASHES[k % len(_DASHES)], "lw": 1.4}
            curve = np.asarray(row.fit.force(u))
            gaps.append(unit * float(np.max(np.abs(curve - ours))))
            top.plot(u, curve, label=f"{row.fit.name}\n{100 * row.distance:.2g} %", zorder=3, **line)
            below.plot(u, unit * (curve - ours), zorder=3, **line)
        top.axhline(0.0, color="0.6", lw=0.8, zorder=1)
        size = 1.6 * largest
        top.set(title="effective force G by every method", ylabel="G(u)", xlim=(-1.05, 1.05), ylim=(-size, size))
        band = unit * float(np.max(high - low))
        room = _ROOM * max([band, float(np.median(gaps)) if gaps else band, 1e-6])  # one far off presses no other flat
        room = min(room, 1.1 * max([*gaps, band]))
        below.set(
            xlabel="phase value u", ylabel="difference to ours\n(% of max)", xlim=(-1.05, 1.05), ylim=(-room, room)
        )
        corner = figure.add_subplot(grid[:, 1])
        corner.set_axis_off()
        corner.legend(*top.get_legend_handles_labels(), loc="upper left", frameon=False, borderaxespad=0.0)
    return figure
