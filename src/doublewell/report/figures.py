"""Figures: the law, what the fit leaves, the fields and their error; drawn once, for files and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from doublewell.adequacy import FALSE_ALARMS
from doublewell.curves import Curve, Curves, Residual, Truth, curves, thresholds
from doublewell.errors import InputError, option
from doublewell.facts import Facts, facts
from doublewell.findings import ModelTest, findings, model_tests
from doublewell.hints import Array
from doublewell.problem import RecordInfo
from doublewell.record import Record
from doublewell.report.style import COLOURS, ERROR_MAP, FIELD_MAP, FORMATS, REST_MAP, new_figure, render, style
from doublewell.result import Result
from doublewell.units import after, percent, raised
from doublewell.validate import Validation

_MARKERS = {"maximum": "^", "minimum": "v", "inflection": "D"}
_LEAST = 4.0  # sigma: pure noise stays pale
_FAR = 12.0  # sigma of a frame below which it is only marked
_STRETCH = 4.0  # a longer field is not drawn to scale
_SIDE = 2.5  # inches of the longer side of one image
_LINES = 400  # frames of a space-time image: more than its pixels
_VARIANCE = "variance of the residual\nabove or below its mean (sigma)"
_RMS = "predicted - observed\n(root mean square over time)"


def draw_figures(
    result: Result, *, truth: Truth | None = None, record: Record | None = None, validation: Validation | None = None,
    formats: Sequence[str] = FORMATS,
) -> dict[str, bytes]:  # fmt: skip
    """Return the figures as file contents by name.

    law; of a trajectory fit also residual; with a record fields; with a validation error.
    """
    figures = {"law": law_figure(result, truth=truth)}
    if curves(result).residual is not None:
        figures["residual"] = residual_figure(result)
    if record is not None:
        figures["fields"] = fields_figure(record, validation=validation, phases=result.law.phases)
    if validation is not None:
        figures["error"] = error_figure(validation, record=record)
    return {f"{name}.{kind}": render(figure, kind) for name, figure in figures.items() for kind in formats}


# --- the law ----------------------------------------------------------------------------------------------------------


def law_figure(result: Result, *, truth: Truth | None = None) -> Any:
    """Return the figure of G, H and, with a scale, F over the phase value u, against the truth where it is known.

    Where physical units are known, and no truth is given, f is the first panel, and F the last.
    Stationary points are marked. A result with error bands has them in the panels and, because they are mostly narrower
    than a line, once more below as the difference to the recovered curve; and it has the weights of the degrees. The
    histogram shows which phase values the record holds; where it holds (nearly) none, also at -u, the panels are grey:
    there the law rests on its form alone.
    """
    table, shown = facts(result), curves(result)
    panels, averaged = shown.panels if truth is None else shown.law, bool(shown.weights)
    columns = max(len(panels), 3) if averaged else len(panels)
    ratios = [2.9, 1.0, 1.1] if table.banded else [2.9, 1.0]
    with style():
        figure = new_figure(3.7 * columns + 0.6, 6.6 if table.banded else 5.2)
        grid = figure.add_gridspec(len(ratios), columns, height_ratios=ratios)
        axes = [figure.add_subplot(grid[0, k]) for k in range(len(panels))]
        for k, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            draw_curve(axis, panel, shown, truth)
            axis.set_title(panel.name)
            if table.banded:
                draw_strip(figure.add_subplot(grid[1, k], sharex=axis), panel, shown, truth)
        draw_histogram(figure.add_subplot(grid[-1, 0], sharex=axes[0]), shown.edges, shown.fractions)
        if averaged:
            draw_weights(figure.add_subplot(grid[-1, 1]), shown)
        corner = grid[-1, 1:] if not averaged else grid[-1, 2] if len(panels) == 3 else grid[:, 2]
        _legend(figure.add_subplot(corner), axes[0], shown, list(_numbers(result, table, truth)))
    return figure


def draw_curve(axis: Any, curve: Curve, shown: Curves, truth: Truth | None = None) -> None:
    """Draw a curve of the law with its band and its stationary points."""
    for low, high in shown.unseen:
        axis.axvspan(low, high, color=COLOURS["empty"], lw=0, zorder=0)
    axis.axhline(0.0, color=COLOURS["rule"], lw=0.8, zorder=1)
    u = curve.u
    if truth is not None:
        axis.plot(u, truth.curve(curve.symbol)(u), color=COLOURS["truth"], lw=5.0, label="truth", solid_capstyle="butt")
    if curve.low is not None and curve.high is not None:
        axis.fill_between(u, curve.low, curve.high, color=COLOURS["band"], lw=0, label="95 % band", zorder=2.5)
    axis.plot(u, curve.values, color=COLOURS["recovered"], lw=1.8, label="recovered", zorder=3)
    for kind, marker in _MARKERS.items():
        places = np.array([place for place, what in shown.points if what == kind])
        if places.size:
            heights = curve.evaluate(places)
            axis.plot(places, heights, marker, color=COLOURS["mark"], ms=6, label=f"{kind} of H", zorder=4)
    axis.set(xlabel="phase value u", ylabel=sign_free(f"{curve.symbol}(u)  ({raised(curve.unit)})"), xlim=_limits(u))
    axis.set_xticks(np.linspace(u[0], u[-1], 5))
    axis.margins(y=0.08)


def draw_strip(axis: Any, curve: Curve, shown: Curves, truth: Truth | None = None) -> None:
    """Draw band and truth minus the recovered curve, in percent of its largest value."""
    for low, high in shown.unseen:
        axis.axvspan(low, high, color=COLOURS["empty"], lw=0, zorder=0)
    unit = 100.0 / curve.largest
    if curve.low is not None and curve.high is not None:
        edges = unit * (curve.low - curve.values), unit * (curve.high - curve.values)
        axis.fill_between(curve.u, *edges, color=COLOURS["band"], lw=0)
    if truth is not None:
        axis.plot(curve.u, unit * (truth.curve(curve.symbol)(curve.u) - curve.values), color=COLOURS["truth"], lw=2.0)
    axis.axhline(0.0, color=COLOURS["recovered"], lw=1.2)
    axis.set(xlabel="phase value u", ylabel="difference\n(% of max)", xlim=_limits(curve.u))
    axis.locator_params(axis="y", nbins=4)


def draw_histogram(axis: Any, edges: Array, fractions: Array) -> None:
    """Draw how often each phase value occurs, on a logarithmic scale."""
    axis.bar(edges[:-1], 100 * fractions, np.diff(edges), align="edge", color=COLOURS["visited"], ec="white", lw=0.4)
    axis.set(xlabel="phase value u", ylabel="values (%)", yscale="log", ylim=(0.05, 120), xlim=_limits(edges))
    axis.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axis.set_xticks(np.linspace(edges[0], edges[-1], 5))
    axis.minorticks_off()


def draw_weights(axis: Any, shown: Curves) -> None:
    """Draw the weight of each degree in the average."""
    degrees = [degree for degree, _ in shown.weights]
    axis.bar(degrees, [100 * weight for _, weight in shown.weights], 0.7, color=COLOURS["recovered"])
    axis.set(xlabel="degree of the law", ylabel="weight (%)", ylim=(0, 105))
    axis.set_xticks(degrees)


def _limits(u: Array) -> tuple[float, float]:
    reach = 0.04 * (u[-1] - u[0])
    return float(u[0] - reach), float(u[-1] + reach)


def _legend(axis: Any, source: Any, shown: Curves, numbers: list[str]) -> None:
    """Use the free corner for the legend, headed by the numbers that go with the curves."""
    from matplotlib.patches import Patch

    axis.set_axis_off()
    handles, labels = source.get_legend_handles_labels()
    if shown.unseen:
        handles.append(Patch(color=COLOURS["empty"]))
        labels.append("phase values not visited")
    legend = axis.legend(
        handles, labels, loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.6, frameon=False,
        borderaxespad=0.0, alignment="left",
    )  # fmt: skip
    legend.set_title("\n".join(numbers), prop={"size": 9.0})


def _numbers(result: Result, table: Facts, truth: Truth | None) -> Iterator[str]:
    """Yield what the curves stand for: degree and epsilon, and the errors where the truth is known."""
    epsilon = table.get("epsilon")
    for key in ("physical_kappa", "physical_barrier"):
        if (fact := table.get(key)) is not None:
            yield f"{fact.symbol} = {fact.value:.5g}{sign_free(raised(after(fact.unit)))}"
    if epsilon is None:
        yield "epsilon and F are not determined"
    else:
        known = "" if truth is None else f" (truth {truth.epsilon:.4g})"
        yield f"epsilon = {epsilon.value:.5g}{sign_free(raised(after(epsilon.unit)))}{known}"
        if epsilon.interval is not None:
            yield f"95 % interval {epsilon.interval[0]:.5g} to {epsilon.interval[1]:.5g}"
    degree = f"degree {table.law.family.degree}" if table.heaviest is None else "average over degrees"
    yield degree if truth is None else f"{degree}, force error {percent(truth.force_error(result))}"


# --- what the fit leaves ----------------------------------------------------------------------------------------------


def residual_figure(result: Result) -> Any:
    """Return the figure of what a trajectory fit leaves: a map, the frames, and the tests of the model.

    The map tells, block by block, how far the variance over time is from its mean, in its own standard deviations; of
    three axes it shows the slice with the largest value. Each frame is compared with the noise of the fit; the fit
    takes a part of the noise away, most of it from the first frames. Every test is a bar whose length is the normal
    deviate of its probability; the step beside it is the size from which it counts at 3 % for all tests together, by
    Holm's correction.
    """
    left, data = curves(result).residual, facts(result).data
    if left is None:
        raise InputError(f"the weak-form fit has no residual to draw: use {option('method', 'trajectory')}")
    with style():
        figure = new_figure(13.2, 4.4)
        place, frames, tests = figure.subplots(1, 3, width_ratios=[1.15, 1.0, 1.25])
        draw_map(figure, place, left, data)
        draw_frames(frames, left, data)
        draw_tests(tests, model_tests(result), facts(result).verdict)
        reported = [item for item in findings(result) if item.topic == "model" and not item.where]
        if model_tests(result):
            figure.suptitle(fill(str(reported[0]), 135), fontsize=10.0)
    return figure


def draw_map(figure: Any, axis: Any, left: Residual, data: RecordInfo) -> None:
    """Draw where the residual's variance is too large or too small; of three axes the slice with the largest value."""
    values, edges, title = left.blocks, left.edges, "where: variance over time"
    limit = max(_LEAST, float(np.max(np.abs(values))))
    if values.ndim == 3:
        k = int(np.argmax(np.max(np.abs(values), axis=(1, 2))))
        values = values[k]
        height = f"{0.5 * (edges[0][k] + edges[0][k + 1]):.4g}{sign_free(raised(after(data.length_unit)))}"
        title = f"where: slice z = {height}, the largest"
    axis.set_title(title)
    if values.ndim == 1:
        axis.stairs(values, edges[0], color=COLOURS["recovered"], lw=1.4)
        axis.axhline(0.0, color=COLOURS["rule"], lw=0.8)
        axis.set(xlabel=axis_name("x", data.length_unit), ylabel=_VARIANCE, ylim=(-1.05 * limit, 1.05 * limit))
        return
    draw_field(figure, axis, values, edges[-2:], data.length_unit, _VARIANCE, cmap=REST_MAP, vmin=-limit, vmax=limit)


def draw_field(
    figure: Any, axis: Any, values: Array, edges: Sequence[Array], unit: str | None, label: str, **colours: Any
) -> None:
    """Draw a field [y, x] with its colours beside it, to scale unless it is very long."""
    drawn = axis.pcolormesh(edges[1], edges[0], values, rasterized=True, **colours)
    axis.set(xlabel=axis_name("x", unit), ylabel=axis_name("y", unit))
    axis.spines[["top", "right"]].set_visible(True)
    height, width = (edge[-1] for edge in edges)
    if max(width, height) <= _STRETCH * min(width, height):
        axis.set_aspect("equal")
    axis.locator_params(nbins=4)
    figure.colorbar(drawn, ax=axis, pad=0.02).set_label(label)


def draw_frames(axis: Any, left: Residual, data: RecordInfo) -> None:
    """Draw each frame against the noise of the fit; one far below it, mostly the first, is a mark at the lower edge."""
    fraction, spread = left.frames, left.spread
    reach = max(5.0 * spread, 1.2 * float(np.max(np.abs(fraction[1:] - 1.0))))
    low = 1.0 - min(reach, _FAR * spread)
    axis.axhspan(1.0 - 2.0 * spread, 1.0 + 2.0 * spread, color=COLOURS["empty"], lw=0, label="2 sigma of one frame")
    axis.axhline(1.0, color=COLOURS["noise"], ls="--", lw=1.5, label="noise of the fit")
    kept = np.where(fraction > low, fraction, np.nan)
    axis.plot(left.times, kept, color=COLOURS["recovered"], lw=1.2, marker="o", ms=3, label="residual of a frame")
    below = np.flatnonzero(fraction <= low).tolist()
    if below:
        first = f"frame 0: {fraction[0]:.2g} (the start is fitted)"
        words = first if below == [0] else f"{len(below)} frames far below"
        edge = np.full(len(below), low)
        axis.plot(left.times[below], edge, "v", color=COLOURS["mark"], ms=7, clip_on=False, label=words)
    axis.set(
        xlabel=axis_name("time since the first frame", data.time_unit, ""),
        ylabel="standard deviation / noise",
        title="when: frame by frame",
    )
    axis.set_ylim(low, 1.0 + 1.7 * reach)  # the legend has the top for itself
    axis.locator_params(axis="x", nbins=5)
    axis.legend(frameon=False, loc="upper center", ncols=1)


def draw_tests(axis: Any, tests: Sequence[ModelTest], verdict: str) -> None:
    """Draw the tests of the model, the largest on top, each with the size from which it counts."""
    if not tests:
        axis.set_axis_off()
        axis.text(0.5, 0.5, "the model\nwas not tested", ha="center", va="center")
        return
    tests, steps = sorted(tests, key=lambda test: -test.sigma), thresholds(len(tests))
    sizes = np.array([test.sigma for test in tests])
    rows, top = np.arange(len(tests)), 1.18 * max(float(np.max(sizes)), float(np.max(steps)))
    axis.barh(rows, sizes, 0.7, color=[COLOURS["noise" if test.significant else "visited"] for test in tests])
    drawn = {"orientation": "horizontal", "baseline": None, "color": COLOURS["mark"], "lw": 1.4}
    axis.stairs(steps, np.arange(len(tests) + 1) - 0.5, **drawn)
    for row, (test, size, step) in enumerate(zip(tests, sizes, steps, strict=True)):
        clear = size > step or step - size > 0.12 * top  # of the step beside it
        words = f"{size:.1f}{' *' if test.significant else ''}"
        place = (size if clear else step, row)
        axis.annotate(words, place, (4, 0), textcoords="offset points", va="center", fontsize=9)
    axis.set_yticks(rows, [test.name for test in tests])
    axis.set_xlabel(f"size (sigma); line and *: {100 * FALSE_ALARMS:g} % for all tests together")
    axis.set_title(f"model: {verdict}")
    axis.set(xlim=(0.0, top), ylim=(len(tests) - 0.5, -0.5))


# --- fields and their error -------------------------------------------------------------------------------------------


def error_figure(validation: Validation, *, record: Record | None = None) -> Any:
    """Return the figure of the relative field error over time, with the part that noise alone makes.

    With the observed record also the map of the root mean square over time of predicted - observed. The start frame is
    left out of both where the two are equal there by construction.
    """
    with style():
        figure = new_figure(6.0 if record is None else 9.6, 3.7)
        ratios = [1.5] if record is None else [1.5, 1.0]
        axes = figure.subplots(1, len(ratios), squeeze=False, width_ratios=ratios)
        draw_error(axes[0, 0], validation, None if record is None else record.time_unit)
        if record is not None:
            draw_rms(figure, axes[0, 1], rms_map(validation, record), record)
    return figure


def rms_map(validation: Validation, record: Record) -> Array:
    """Return the root mean square over the frames after the start of predicted - observed, one value per pixel.

    A pixel that was not observed in any of them has the value 0.
    """
    total, number = np.zeros(record.mesh), np.zeros(record.mesh)
    for frame in range(1, validation.predicted.frames):
        place = validation.start + frame
        observed, known = record.slab(place, place + 1)[0], record.observed(place, place + 1)[0]
        total += np.where(known, validation.predicted.slab(frame, frame + 1)[0] - observed, 0.0) ** 2
        number += known
    return np.asarray(np.sqrt(total / np.maximum(number, 1.0)))


def draw_error(axis: Any, validation: Validation, time_unit: str | None) -> None:
    """Draw the relative error of the predicted field over time, and what noise alone makes."""
    first = int(validation.origin == "observed frame")
    times, error = validation.times[first:], 100 * validation.error[first:]
    floor = 100 * np.broadcast_to(validation.noise_floor, validation.error.shape)[first:]
    mark = "o" if times.size == 1 else None
    axis.plot(times, error, color=COLOURS["recovered"], lw=1.8, marker=mark, label="predicted - observed")
    axis.plot(times, floor, color=COLOURS["noise"], ls="--", lw=1.5, marker=mark, label="noise alone")
    axis.set(
        xlabel=axis_name("time", time_unit, ""),
        ylabel="relative field error (%)",
        title=f"law evolved from {f'frame {validation.start}' if first else 'the fitted initial field'}",
    )
    axis.locator_params(axis="x", nbins=6)
    finite = np.concatenate([error, floor])
    finite = finite[np.isfinite(finite)]
    axis.set_ylim(0.0, 1.3 * max(float(np.max(finite, initial=0.0)), 1e-12))  # the legend has the top for itself
    axis.legend(frameon=False, loc="upper center", ncols=2)


def draw_rms(figure: Any, axis: Any, values: Array, record: Record) -> None:
    """Draw where the prediction is off: a line for one space axis, the middle z slice for three."""
    axis.set_title("where, middle slice" if values.ndim == 3 else "where")
    if values.ndim == 1:
        axis.plot(record.dx[0] * np.arange(values.size), values, color=COLOURS["recovered"], lw=1.2)
        axis.set(xlabel=axis_name("x", record.length_unit), ylabel=_RMS)
        axis.set_ylim(bottom=0.0)
        return
    image = values[values.shape[0] // 2] if values.ndim == 3 else values
    edges = [h * np.arange(n + 1) for h, n in zip(record.dx[-2:], image.shape, strict=True)]
    draw_field(figure, axis, image, edges, record.length_unit, _RMS, cmap=ERROR_MAP)


def fields_figure(
    record: Record, *, validation: Validation | None = None, phases: tuple[float, float] = (-1.0, 1.0)
) -> Any:
    """Return the figure of the observed fields, with a validation also of the predicted ones and the difference.

    Two axes: the first, middle and last frame. Three: their middle z slice. One: the whole record as an image of
    position and time. With a validation the frames are three later than its start, where nothing differs yet. The
    colours run from the low to the high phase.
    """
    first = 0 if validation is None else validation.start
    observed = record.clip(first, record.frames)
    predicted = None if validation is None else validation.predicted
    draw = _space_time if len(record.mesh) == 1 else _frames
    with style():
        return draw(observed, predicted, phases)


Row = tuple[str, list[Array], str, tuple[float, float]]


def _frames(observed: Record, predicted: Record | None, phases: tuple[float, float]) -> Any:
    """Draw rows of fields (observed, predicted, difference) and columns of times."""
    last = observed.frames - 1
    chosen = (0, observed.frames // 2, last)
    if predicted is not None:
        chosen = (max(1, observed.frames // 3), max(1, 2 * observed.frames // 3), last)
    picks = list(dict.fromkeys(chosen))
    rows = _rows(
        *([middle_slice(one, k) for k in picks] for one in (observed, predicted) if one is not None), phases=phases
    )
    height, width = observed.extent[-2:]
    stretched = max(width, height) > _STRETCH * min(width, height)
    w, h = _SIDE * min(1.0, width / height), _SIDE * min(1.0, height / width)
    if stretched:
        w, h = (_SIDE, _SIDE / 2) if width > height else (_SIDE / 2, _SIDE)
    extent = (0.0, width, 0.0, height)
    figure = new_figure(len(picks) * w + 1.6, len(rows) * h + 0.9)
    axes = figure.subplots(len(rows), len(picks), sharex=True, sharey=True, squeeze=False)
    for line, (name, images, map_name, (low, high)) in zip(axes, rows, strict=True):
        for axis, image in zip(line, images, strict=True):
            drawn = axis.imshow(image, cmap=map_name, vmin=low, vmax=high, origin="lower", extent=extent)
            axis.set_aspect("auto" if stretched else "equal")
            _box(axis)
        line[0].set_ylabel(axis_name("y", observed.length_unit))
        figure.colorbar(drawn, ax=list(line), extend="both", shrink=0.95, pad=0.02).set_label(name)
    for axis, k in zip(axes[0], picks, strict=True):
        axis.set_title(sign_free(f"t = {observed.times[k]:.4g}{raised(after(observed.time_unit))}"))
    for axis in axes[-1]:
        axis.set_xlabel(axis_name("x", observed.length_unit))
    notes = ["not drawn to scale"] if stretched else []
    if len(observed.mesh) == 3:
        place = f"z = {(observed.mesh[0] // 2) * observed.dx[0]:.4g}{sign_free(raised(after(observed.length_unit)))}"
        notes.insert(0, f"middle slice, {place}")
    if notes:
        figure.suptitle("; ".join(notes), fontsize=10)
    return figure


def _space_time(observed: Record, predicted: Record | None, phases: tuple[float, float]) -> Any:
    """Draw records of one space axis: position across, time upwards."""
    first = 0 if predicted is None or observed.frames < 3 else 1  # at the start nothing differs, by construction
    picks = np.unique(np.linspace(first, observed.frames - 1, min(observed.frames, _LINES)).round().astype(int))
    whole = [np.concatenate([_values(one, int(k)) for k in picks]) for one in (observed, predicted) if one is not None]
    rows = _rows(*([image] for image in whole), phases=phases)
    figure = new_figure(3.4 * len(rows) + 0.8, 3.8)
    axes = figure.subplots(1, len(rows), sharex=True, sharey=True, squeeze=False)[0]
    x = observed.dx[0] * np.arange(observed.mesh[0])
    for axis, (name, (image,), map_name, (low, high)) in zip(axes, rows, strict=True):
        drawn = axis.pcolormesh(
            x, observed.times[picks], image, cmap=map_name, vmin=low, vmax=high, shading="nearest", rasterized=True
        )
        axis.set_xlabel(axis_name("x", observed.length_unit))
        _box(axis)
        figure.colorbar(drawn, ax=[axis], extend="both", shrink=0.95, pad=0.02).set_label(name)
    axes[0].set_ylabel(axis_name("time", observed.time_unit, ""))
    return figure


def _rows(observed: list[Array], *predictions: list[Array], phases: tuple[float, float]) -> list[Row]:
    """Return (name, images, colour map, limits) of each kind of field."""
    rows: list[Row] = [("observed u", observed, FIELD_MAP, phases)]
    for predicted in predictions:  # one, or none
        rest = [a - b for a, b in zip(predicted, observed, strict=True)]
        top = max(1e-12, *(float(np.percentile(np.abs(image[np.isfinite(image)]), 99.9)) for image in rest))
        rows += [("predicted u", predicted, FIELD_MAP, phases), ("predicted\n- observed", rest, REST_MAP, (-top, top))]
    return rows


def middle_slice(record: Record, frame: int) -> Array:
    """Return a frame, of a volume its middle z; NaN where a value is missing."""
    field: Array = _values(record, frame)[0]
    return np.asarray(field[field.shape[0] // 2] if field.ndim == 3 else field)


def _values(record: Record, frame: int) -> Array:
    """Return one frame with NaN, which is left blank, where a value is missing."""
    slab, known = record.slab(frame, frame + 1), record.observed(frame, frame + 1)
    return slab if known.all() else np.where(known, slab, np.nan)


def _box(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(True)
    axis.locator_params(axis="x", nbins=3)
    axis.locator_params(axis="y", nbins=4)


def axis_name(name: str, unit: str | None, otherwise: str = "length") -> str:
    """Return the name of an axis with its unit, such as x (um); with a kind, or alone, where none is known."""
    known = raised(unit) if unit else otherwise
    return sign_free(f"{name} ({known})") if known else name


def sign_free(text: str) -> str:
    """Return a text from a file for matplotlib, which would read formulas between dollar signs."""
    return text.replace("$", r"\$")
