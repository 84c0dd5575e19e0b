"""The figure of the residual: where it is too large, when, and what the tests of the model say of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from textwrap import fill
from typing import Any

import numpy as np

from doublewell.adequacy import FALSE_ALARMS, Adequacy, ScoreTest
from doublewell.errors import InputError, option
from doublewell.hints import Array
from doublewell.legacy import first_words
from doublewell.report.style import COLOURS, REST_MAP, new_figure, style
from doublewell.report.unit_words import after, figure_text, length_axis, time_axis
from doublewell.result import Likelihood, Result, Settings

__all__ = ["residual_figure", "sigmas", "thresholds"]

_LEAST = 4.0  # sigma: pure noise stays pale
_FAR = 12.0  # sigma of a frame below which it is only marked
_STRETCH = 4.0  # a longer field is not drawn to scale
_UNIT = "variance of the residual\nabove or below its mean (sigma)"


def residual_figure(result: Result) -> Any:
    """Return the figure of what a trajectory fit leaves: a map, the frames, and the tests of the model.

    The map says, block by block, how far the variance over time is from its mean, in its own standard deviations; of
    three axes it shows the slice with the largest value. Each frame is compared with the noise found; the fit takes a
    part of the noise away, most of it from the first frames. Every test is a bar whose length is the normal deviate of
    its chance; the step beside it is the size from which it counts at 3 % for all tests together, by Holm's correction.
    """
    fit = result.diagnostics.likelihood
    if fit is None:
        raise InputError(f"the weak-form fit has no residual to draw: use {option('method', 'trajectory')}")
    with style():
        figure = new_figure(13.2, 4.4)
        place, frames, tests = figure.subplots(1, 3, width_ratios=[1.15, 1.0, 1.25])
        _map(figure, place, fit.residual_map, result.settings)
        _frames(frames, fit, result.settings)
        _tests(tests, fit.adequacy)
        if fit.adequacy is not None:
            figure.suptitle(fill(first_words(result), 135), fontsize=10.0)
    return figure


def sigmas(tests: Sequence[ScoreTest]) -> Array:
    """Return the size of each finding: the normal deviate of the same two-sided chance."""
    from scipy.special import ndtri

    plain = [abs(test.statistic) if test.degrees == 1 else np.sqrt(max(test.statistic, 0.0)) for test in tests]
    chances = np.array([test.p for test in tests])
    rare = chances < 1e-300  # beyond the numbers: the statistic itself
    return np.where(rare, plain, np.abs(ndtri(0.5 * np.where(rare, 1.0, chances))))


def thresholds(count: int, level: float = FALSE_ALARMS) -> Array:
    """Return the sizes from which tests count by Holm's correction, for the largest finding first."""
    from scipy.special import ndtri

    return np.asarray(-ndtri(0.5 * level / np.arange(count, 0, -1)))


def _map(figure: Any, axis: Any, values: Array, settings: Settings) -> None:
    limit = max(_LEAST, float(np.max(np.abs(values))))
    edges = [
        np.linspace(0, cells, blocks + 1).round() * step
        for cells, blocks, step in zip(settings.shape[1:], values.shape, settings.dx, strict=True)
    ]
    axis.set(xlabel=figure_text(length_axis("x", settings)), title="where: variance over time")
    if values.ndim == 1:
        _line(axis, edges[0], values, limit)
        return
    image = values
    if values.ndim == 3:
        k = int(np.argmax(np.max(np.abs(values), axis=(1, 2))))
        image = values[k]
        height = f"{0.5 * (edges[0][k] + edges[0][k + 1]):.4g}{figure_text(after(settings.length_unit))}"
        axis.set_title(f"where: slice z = {height}, the largest")
    drawn = axis.pcolormesh(edges[-1], edges[-2], image, cmap=REST_MAP, vmin=-limit, vmax=limit, rasterized=True)
    width, height = edges[-1][-1], edges[-2][-1]
    if max(width, height) <= _STRETCH * min(width, height):
        axis.set_aspect("equal")
    axis.set_ylabel(figure_text(length_axis("y", settings)))
    axis.spines[["top", "right"]].set_visible(True)
    axis.locator_params(nbins=4)
    figure.colorbar(drawn, ax=axis, pad=0.02).set_label(_UNIT)


def _line(axis: Any, edges: Array, values: Array, limit: float) -> None:
    axis.stairs(values, edges, color=COLOURS["recovered"], lw=1.4)
    axis.axhline(0.0, color="0.6", lw=0.8)
    axis.set(ylabel=_UNIT, ylim=(-1.05 * limit, 1.05 * limit))


def _frames(axis: Any, fit: Likelihood, settings: Settings) -> None:
    """Draw each frame against the noise found; a frame far below it, mostly the first, is a mark at the lower edge."""
    times: Array = settings.dt * np.arange(fit.residual_frames.size, dtype=np.float64)
    share = np.asarray(fit.residual_frames / fit.noise)
    spread = 1.0 / np.sqrt(2.0 * prod(settings.shape[1:]))
    reach = max(5.0 * spread, 1.2 * float(np.max(np.abs(share[1:] - 1.0))))
    low = 1.0 - min(reach, _FAR * spread)
    seen = np.where(share > low, share, np.nan)
    axis.axhspan(1.0 - 2.0 * spread, 1.0 + 2.0 * spread, color=COLOURS["empty"], lw=0, label="2 sigma of one frame")
    axis.axhline(1.0, color=COLOURS["noise"], ls="--", lw=1.5, label="noise found")
    axis.plot(times, seen, color=COLOURS["recovered"], lw=1.2, marker="o", ms=3, label="residual of a frame")
    _mark_below(axis, times, share, low)
    axis.set(
        xlabel=figure_text(time_axis("time since the first frame", settings)),
        ylabel="standard deviation / noise found",
        title="when: frame by frame",
    )
    axis.set_ylim(low, 1.0 + 1.7 * reach)  # the legend has the top for itself
    axis.locator_params(axis="x", nbins=5)
    axis.legend(frameon=False, loc="upper center", ncols=1)


def _mark_below(axis: Any, times: Array, share: Array, low: float) -> None:
    """Mark the frames below the lower edge; the first is there as a rule, for its own noise is fitted."""
    below = np.flatnonzero(share <= low).tolist()
    if not below:
        return
    words = f"frame 0: {share[0]:.2g} (the start is fitted)" if below == [0] else f"{len(below)} frames far below"
    edge = np.full(len(below), low)
    axis.plot(times[below], edge, "v", color=COLOURS["mark"], ms=7, clip_on=False, label=words)


def _tests(axis: Any, answer: Adequacy | None) -> None:
    """Draw the tests, the largest finding on top."""
    if answer is None:
        axis.set_axis_off()
        axis.text(0.5, 0.5, "the tests of the model\nwere not asked for", ha="center", va="center")
        return
    sizes, steps = sigmas(answer.tests), thresholds(len(answer.tests))
    order = np.argsort(-sizes, kind="stable")
    tests, sizes = [answer.tests[k] for k in order], sizes[order]
    rows, top = np.arange(len(tests)), 1.18 * max(float(np.max(sizes)), float(np.max(steps)))
    axis.barh(
        rows, sizes, 0.7, color=[COLOURS["noise" if test.adjusted < FALSE_ALARMS else "visited"] for test in tests]
    )
    drawn = {"orientation": "horizontal", "baseline": None, "color": COLOURS["mark"], "lw": 1.4}
    axis.stairs(steps, np.arange(len(tests) + 1) - 0.5, **drawn)
    for row, (test, size, step) in enumerate(zip(tests, sizes, steps, strict=True)):
        clear = size > step or step - size > 0.12 * top  # of the step beside it
        words = f"{size:.1f}{' *' if test.adjusted < FALSE_ALARMS else ''}"
        place = (size if clear else step, row)
        axis.annotate(words, place, (4, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_yticks(rows, [test.name for test in tests])
    axis.set_xlabel(f"size (sigma); line and *: {100 * FALSE_ALARMS:g} % for all tests together")
    axis.set_title(f"model: {answer.verdict}")
    axis.set(xlim=(0.0, top), ylim=(len(tests) - 0.5, -0.5))
