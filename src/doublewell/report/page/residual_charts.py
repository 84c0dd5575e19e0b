"""Charts of what the fit leaves: frame by frame, place by place, test by test, and the error of the prediction."""

from __future__ import annotations

from math import prod

import numpy as np

from doublewell.adequacy import FALSE_ALARMS, Adequacy
from doublewell.hints import Array
from doublewell.report.page.chart import WIDTH, Plot, axes, curve, figure, marks, rule, words
from doublewell.report.page.markup import Html, join, plain, tag
from doublewell.report.page.picture import PREFIX, REST, bar_image, encode
from doublewell.report.residual_figure import sigmas, thresholds
from doublewell.report.unit_words import after, length_axis, time_axis
from doublewell.result import Likelihood, Settings
from doublewell.validate import Validation

__all__ = ["error_chart", "frames_chart", "map_chart", "picture_box", "size_chart", "tests_chart"]

_LEFT, _RIGHT = 50.0, WIDTH - 12.0
_LEAST = 4.0  # sigma: pure noise stays grey
_FAR = 12.0  # sigma of a frame below which it is only marked
_STRETCH = 4.0  # a longer field is not drawn to scale


def frames_chart(fit: Likelihood, settings: Settings) -> Html:
    """Draw the residual of each frame against the noise found."""
    times: Array = settings.dt * np.arange(fit.residual_frames.size, dtype=np.float64)
    share = np.asarray(fit.residual_frames / fit.noise)
    spread = 1.0 / np.sqrt(2.0 * prod(settings.shape[1:]))
    reach = max(5.0 * spread, 1.2 * float(np.max(np.abs(share[1:] - 1.0))))
    low = 1.0 - min(reach, _FAR * spread)
    plot = Plot((_LEFT, 24, _RIGHT, 194), (0.0, float(times[-1])), (low, 1.0 + 1.1 * reach))
    top, bottom = plot.up(1.0 + 2.0 * spread), plot.up(1.0 - 2.0 * spread)
    shaded = tag("rect", x=_LEFT, y=top, width=_RIGHT - _LEFT, height=bottom - top, class_="band")
    below = np.flatnonzero(share < low)
    parts = [
        shaded,
        axes(plot, x=time_axis("time since the first frame", settings), y="residual / noise found"),
        rule(plot, 1.0, "dashed"),
        curve(plot, times, np.where(share < low, np.nan, share)),
        marks(plot, times[below].tolist(), [low] * below.size, "minimum"),
    ]
    worst = int(np.argmax(np.abs(share[1:] - 1.0))) + 1
    cut = f" ▼ {_count(below.tolist())} below the scale: the fit takes up the noise of the start." if below.size else ""
    return figure(
        parts,
        height=234,
        text=f"Residual of each frame divided by the noise found, {plain(fit.noise)}. It should be near 1, within "
        f"{plain(2 * spread, 2)}; the frame farthest from 1 is {worst} with {plain(share[worst])}. "
        f"The first frame has {plain(share[0], 3)}.",
        caption=[f"When: the residual of each frame. Dashed: the noise found. Shaded: where a frame should lie.{cut}"],
    )


def _count(places: list[int]) -> str:
    return "the first frame lies" if places == [0] else f"{len(places)} frames lie"


def map_chart(values: Array, settings: Settings) -> Html:
    """Draw where the residual is too large or too small; of three axes the slice with the largest value."""
    limit = max(_LEAST, float(np.max(np.abs(values))))
    place = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    sizes = [n * h for n, h in zip(settings.shape[1:], settings.dx, strict=True)]
    at = ", ".join(
        f"{axis} = {plain((k + 0.5) / n * size, 3)}{after(settings.length_unit)}"
        for axis, k, n, size in zip("zyx"[-values.ndim :], place, values.shape, sizes, strict=True)
    )
    said = f"farthest from the mean by {plain(float(values[place]), 3)} sigma at {at}"
    if values.ndim == 1:
        return _line_map(values, settings, limit, said)
    image = values[place[0]] if values.ndim == 3 else values
    note = " Three axes: the slice with the largest value." if values.ndim == 3 else ""
    names = (length_axis("x", settings), length_axis("y", settings))
    drawn, height = picture_box(PREFIX + encode(image, limit, REST), (sizes[-1], sizes[-2]), names=names)
    scale = _colour_scale(height + 8, limit, "sigma above (light) or below (dark) the mean")
    return figure(
        [drawn, scale],
        height=height + 58,
        text=f"Map of the variance of the residual over time, block by block, {said}. Pure noise stays below about 4.",
        caption=[f"Where: the variance of the residual over time, {said}. Pure noise stays below about 4.{note}"],
    )


def _line_map(values: Array, settings: Settings, limit: float, said: str) -> Html:
    size = settings.shape[1] * settings.dx[0]
    x = (np.arange(values.size) + 0.5) / values.size * size
    plot = Plot((_LEFT, 24, _RIGHT, 194), (0.0, size), (-1.05 * limit, 1.05 * limit))
    name = "variance above or below the mean  (sigma)"
    parts = [axes(plot, x=length_axis("x", settings), y=name), rule(plot, 0.0), curve(plot, x, values)]
    text = f"Variance of the residual over time along x, {said}."
    return figure(parts, height=234, text=text, caption=[f"Where: the variance of the residual over time, {said}."])


def picture_box(
    address: str,
    extent: tuple[float, float],
    *,
    names: tuple[str, str],
    to_scale: bool = True,
    kind: str = "",
) -> tuple[Html, float]:
    """Return an image with its axes, and the height it takes; very long fields, and times, are not drawn to scale."""
    ratio = min(max(extent[1] / extent[0], 1.0 / _STRETCH), _STRETCH) if to_scale else 1.0
    width = (_RIGHT - _LEFT) * min(1.0, 1.1 / ratio)
    plot = Plot((_LEFT, 20, _LEFT + width, 20 + ratio * width), (0.0, extent[0]), (0.0, extent[1]))
    left, top, right, bottom = plot.box
    image = tag(
        "image", href=address, x=left, y=top, width=right - left, height=bottom - top, preserveAspectRatio="none",
        class_=f"pixels {kind}".strip(),
    )  # fmt: skip
    return join([image, axes(plot, x=names[0], y=names[1], few=4)]), bottom + 36


def _colour_scale(top: float, limit: float, name: str) -> Html:
    bar = tag(
        "image", href=bar_image(REST), x=_LEFT, y=top, width=_RIGHT - _LEFT, height=10, preserveAspectRatio="none"
    )
    ends = [
        words(_LEFT, top + 23, plain(-limit, 2), "start"),
        words(_RIGHT, top + 23, plain(limit, 2), "end"),
        words(0.5 * (_LEFT + _RIGHT), top + 23, name, "middle"),
    ]
    return join([bar, *ends])


def size_chart(values: Array, settings: Settings) -> Html:
    """Draw the root mean square over time of observed - predicted, in units of its median."""
    typical = float(np.median(values)) or 1.0
    sizes = [n * h for n, h in zip(settings.shape[1:], settings.dx, strict=True)]
    said = f"{plain(typical, 2)} in the middle, {plain(float(np.max(values)), 2)} at most"
    text = f"Root mean square over time of observed minus predicted, {said}."
    if values.ndim == 1:
        x: Array = settings.dx[0] * np.arange(values.size, dtype=np.float64)
        plot = Plot((_LEFT, 24, _RIGHT, 194), (0.0, sizes[0]), (0.0, 1.1 * float(np.max(values)) or 1.0))
        parts = [axes(plot, x=length_axis("x", settings), y="root mean square over time"), curve(plot, x, values)]
        return figure(parts, height=234, text=text, caption=[f"Where: observed − predicted over time, {said}."])
    image = values[values.shape[0] // 2] if values.ndim == 3 else values
    limit = max(float(np.max(image)) / typical - 1.0, 1.0)
    names = (length_axis("x", settings), length_axis("y", settings))
    drawn, height = picture_box(
        PREFIX + encode(image / typical - 1.0, limit, REST), (sizes[-1], sizes[-2]), names=names
    )
    note = " Three axes: the middle slice." if values.ndim == 3 else ""
    caption = [f"Where: observed − predicted over time, {said}; grey is typical, light larger.{note}"]
    return figure([drawn], height=height, text=text, caption=caption)


def tests_chart(answer: Adequacy) -> Html:
    """Draw the tests of the model, the largest finding on top, each with the size from which it counts."""
    sizes, steps = sigmas(answer.tests), thresholds(len(answer.tests))
    order = np.argsort(-sizes, kind="stable")
    top = 1.25 * max(float(np.max(sizes)), float(np.max(steps)))
    left, row = 82.0, 17.0
    plot = Plot((left, 24, _RIGHT, 24 + row * len(order)), (0.0, top), (0.0, 1.0))
    parts = [axes(plot, x="size (sigma)", few=4, yticks=())]
    for k, place in enumerate(order):
        test, size, at = answer.tests[place], float(sizes[place]), 24 + row * k
        counts = test.adjusted < FALSE_ALARMS
        wide = plot.across(size) - left
        kind = "bar alarm" if counts else "bar"
        edge = plot.across(float(steps[k]))
        parts += [
            tag("rect", x=left, y=at + 3, width=max(wide, 0.1), height=row - 6, class_=kind),
            tag("line", x1=edge, y1=at, x2=edge, y2=at + row, class_="step"),
            words(left - 6, at + row - 5, test.name, "end"),
            words(_beside(left + wide, edge), at + row - 5, f"{size:.1f}{' ✱' if counts else ''}", "start"),
        ]
    told = ", ".join(f"{answer.tests[k].name} {sizes[k]:.1f}" for k in order)
    return figure(
        parts,
        height=24 + row * len(order) + 40,
        text=f"Tests of the model in sigma: {told}. Verdict: {answer.verdict}.",
        caption=[
            "What the model may lack. A test counts (✱) beyond the line beside it: "
            f"{100 * FALSE_ALARMS:g} % false alarms for all tests together."
        ],
    )


def _beside(end: float, edge: float) -> float:
    """Return a place for a number right of a bar that does not fall onto the line."""
    return edge + 4 if edge - 30 < end < edge else end + 4


def error_chart(found: Validation, settings: Settings) -> Html:
    """Draw the relative error of the predicted field over time, with what noise alone makes."""
    first = int(found.origin == "observed frame")  # there nothing differs, by construction
    times, error = found.times[first:], 100 * found.error[first:]
    floor = np.broadcast_to(100 * found.noise_floor, found.error.shape)[first:]
    begun = f"evolved from the noisy frame {found.start}" if first else "evolved from the fitted initial field"
    top = 1.15 * max(float(np.max(error)), float(np.max(floor)), 1e-9)
    wide = (float(found.times[0]), float(times[-1]))
    plot = Plot((_LEFT, 24, _RIGHT, 194), wide, (0.0, top))
    parts = [
        axes(plot, x=time_axis("time", settings), y="relative field error  (%)"),
        curve(plot, times, floor, "dashed"),
        curve(plot, times, error),
        *([] if times.size > 1 else [marks(plot, times.tolist(), error.tolist(), "point")]),
    ]
    return figure(
        parts,
        height=234,
        text=f"Relative error of the predicted field over time: {plain(float(error[-1]), 3)} % at the last frame, "
        f"{plain(float(np.max(error)), 3)} % at most; noise alone makes {plain(float(floor[-1]), 3)} %.",
        caption=[f"Line: predicted against observed, {begun}. Dashed: what the noise alone makes."],
    )
