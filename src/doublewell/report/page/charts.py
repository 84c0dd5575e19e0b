"""Charts: the figures of a result one by one, inlined in a page, with texts for readers who do not see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from doublewell.adequacy import FALSE_ALARMS
from doublewell.curves import Curve, Curves
from doublewell.facts import Facts
from doublewell.findings import ModelTest
from doublewell.hints import Array
from doublewell.record import Record
from doublewell.report.figures import (
    draw_curve,
    draw_error,
    draw_frames,
    draw_histogram,
    draw_map,
    draw_rms,
    draw_strip,
    draw_tests,
    draw_weights,
)
from doublewell.report.page.markup import Html, plain, tag
from doublewell.report.style import inline_svg, new_figure, style
from doublewell.validate import Validation
from doublewell.wording import after, raised

_WIDTH = 5.2  # inches: 374 points, about the pixels of a phone, so that texts keep their size


def chart(
    name: str, title: str, text: str, caption: Sequence[str], draw: Callable[[Any], Any], *, height: float = 3.2
) -> Html:
    """Return a figure with its title, its description for screen readers and its caption; `draw` fills it."""
    with style():
        figure = new_figure(_WIDTH, height)
        draw(figure)
        drawn = Html(inline_svg(figure, name, title, text))
    return tag("figure", drawn, tag("figcaption", *caption))


def law_chart(curve: Curve, shown: Curves) -> Html:
    """Draw a curve of the law, with its band once more enlarged below."""
    banded = curve.half_width is not None

    def draw(figure: Any) -> None:
        axes = figure.subplots(2 if banded else 1, 1, squeeze=False, sharex=True, height_ratios=[2.6, 1][: 1 + banded])
        draw_curve(axes[0, 0], curve, shown)
        if banded:
            draw_strip(axes[1, 0], curve, shown)
            axes[0, 0].set_xlabel("")

    width = "" if curve.half_width is None else f"at most ±{plain(100.0 * curve.half_width, 2)} % of the largest value"
    listed = ", ".join(
        f"{plain(float(curve.evaluate(u)))} at {plain(float(u))}" for u in np.linspace(curve.u[0], curve.u[-1], 9)
    )
    low, high = plain(float(curve.u[0])), plain(float(curve.u[-1]))
    known = f"The 95 % band is {width}." if banded else "No band is known."
    text = f"{curve.name} over the phase value u from {low} to {high}: {listed}. {known}"
    caption = [f"{curve.symbol}(u). Line: recovered. ▲ barrier, ▼ wells."]
    caption.append(f" Shaded: 95 % band, {width}; below it is enlarged." if banded else f" No band: {curve.why}.")
    if shown.unseen:
        caption.append(" Grey: phase values that the movie does not show.")
    return chart(f"curve-{curve.symbol}", curve.name, text, caption, draw, height=4.6 if banded else 3.4)


def coverage_chart(shown: Curves) -> Html:
    """Draw how often each phase value is visited."""
    edges, shares = shown.edges, 100.0 * shown.shares
    pairs = zip(edges[::4], edges[4::4], shares.reshape(-1, 4).sum(axis=1), strict=False)
    listed = ", ".join(f"{plain(a, 2)} to {plain(b, 2)}: {plain(c, 2)} %" for a, b, c in pairs)
    visited = f"{100 * shown.coverage:.0f} % of the range is visited"
    return chart(
        "coverage", "Phase values in the movie", f"Histogram of the phase values in the movie. {listed}. {visited}.",
        [f"Phase values that the movie shows: {visited}. The law is measured there."],
        lambda figure: draw_histogram(figure.subplots(), shown), height=2.7,
    )  # fmt: skip


def weights_chart(shown: Curves) -> Html:
    """Draw the weight of each degree in the average; nothing where there is only one."""
    if not shown.weights:
        return Html()
    listed = ", ".join(f"degree {degree}: {plain(100 * weight, 2)} %" for degree, weight in shown.weights)
    return chart(
        "weights", "Weights of the degrees", f"Weights of the degrees in the average. {listed}.",
        ["The weight of each degree in the average, from the data."],
        lambda figure: draw_weights(figure.subplots(), shown), height=2.7,
    )  # fmt: skip


def residual_charts(shown: Curves, table: Facts, tests: Sequence[ModelTest]) -> list[Html]:
    """Draw where the residual is too large, the tests of the model, and each frame; nothing without a residual."""
    left, data = shown.residual, table.data
    if left is None:
        return []
    place = np.unravel_index(int(np.argmax(np.abs(left.blocks))), left.blocks.shape)
    at = ", ".join(
        f"{axis} = {plain(0.5 * float(edges[k] + edges[k + 1]), 3)}{raised(after(data.length_unit))}"
        for axis, edges, k in zip("zyx"[-left.blocks.ndim :], left.edges, place, strict=True)
    )
    words = f"farthest from the mean by {plain(float(left.blocks[place]), 3)} sigma at {at}"
    where = f"the variance of the residual over time, {words}. Pure noise stays below about 4."
    made = [
        chart(
            "residual-map", "Variance of the residual over time",
            f"Map of the variance of the residual over time, block by block, {words}.", [f"Where: {where}"],
            lambda figure: draw_map(figure, figure.subplots(), left, data), height=3.9,
        )
    ]  # fmt: skip
    if tests:
        listed = ", ".join(f"{test.name} {test.sigma:.1f}" for test in sorted(tests, key=lambda test: -test.sigma))
        made.append(
            chart(
                "model-tests", "Tests of the model",
                f"Tests of the model in sigma: {listed}. Verdict: {table.verdict}.",
                ["Tests for model misspecification. A test counts (*) beyond the line beside it: "
                 f"{100 * FALSE_ALARMS:g} % false alarms for all tests together."],
                lambda figure: draw_tests(figure.subplots(), tests, table.verdict), height=3.9,
            )
        )  # fmt: skip
    worst = int(np.argmax(np.abs(left.frames[1:] - 1.0))) + 1
    text = (
        f"Residual of each frame divided by the noise of the fit, {plain(left.noise)}. It should be near 1, within "
        f"{plain(2 * left.spread, 2)}; the frame farthest from 1 is {worst} with {plain(float(left.frames[worst]))}. "
        f"The first frame has {plain(float(left.frames[0]), 3)}."
    )
    caption = ["When: the residual of each frame. Dashed: the noise of the fit. Grey: where a frame should lie."]
    draw = lambda figure: draw_frames(figure.subplots(), left, data)  # noqa: E731
    made.append(chart("residual-frames", "Residual of each frame", text, caption, draw, height=3.4))
    return made


def error_chart(found: Validation, time_unit: str | None) -> Html:
    """Draw the relative error of the predicted field over time, with what noise alone makes."""
    error, floor = 100 * found.error, 100 * np.broadcast_to(found.noise_floor, found.error.shape)
    text = (
        f"Relative error of the predicted field over time: {plain(float(error[-1]), 3)} % at the last frame, "
        f"{plain(float(np.max(error)), 3)} % at most; noise alone makes {plain(float(floor[-1]), 3)} %."
    )
    begun = f"the noisy frame {found.start}" if found.origin == "observed frame" else "the fitted initial field"
    caption = [f"Line: predicted against observed, evolved from {begun}. Dashed: what the noise alone makes."]
    draw = lambda figure: draw_error(figure.subplots(), found, time_unit)  # noqa: E731
    return chart("field-error", "Relative field error", text, caption, draw)


def rms_chart(values: Array, record: Record) -> Html:
    """Draw the root mean square over time of predicted - observed."""
    words = f"{plain(float(np.median(values)), 2)} in the median, {plain(float(np.max(values)), 2)} at most"
    text = f"Root mean square over time of predicted minus observed, {words}."
    note = " Three axes: the middle slice." if values.ndim == 3 else ""
    draw = lambda figure: draw_rms(figure, figure.subplots(), values, record)  # noqa: E731
    caption = [f"Where: predicted − observed over time, {words}.{note}"]
    return chart("field-rms", "Root mean square of the difference", text, caption, draw, height=3.9)
