"""Notebook: results and records as a notebook shows them, of the parts of the page, and single plots of both."""

from __future__ import annotations

from importlib.resources import files
from math import prod
from typing import Any

import numpy as np

from doublewell.curves import curves
from doublewell.errors import InputError, option, shown, whole
from doublewell.facts import facts
from doublewell.findings import findings, model_tests
from doublewell.record import Record
from doublewell.report import figures, pictures
from doublewell.report.page import checks, equations, numbers, pairs, verdict_box
from doublewell.report.style import COLOURS, FIELD_MAP, Html, html_table, join, prose, signs, tag
from doublewell.report.text import inspect_record
from doublewell.result import Result
from doublewell.units import after, raised

_STILLS = 5  # frames of a strip
_SURVEYED = 2**24  # values that are read to show a record: about a second
_CURVES = ("force", "primitive", "potential", "bulk_energy")
_OTHERS = ("values", "degrees", "residual", "frames", "tests")


def result_html(result: Result) -> str:
    """Return a result for a notebook: verdict, law with its bands, the numbers to quote, and all findings."""
    table, drawn, items = facts(result), curves(result), findings(result)
    charts = pairs(pictures.law_chart(curve, drawn) for curve in drawn.quoted)
    return _block(
        tag("p", tag("b", prose(table.headline))), verdict_box(items, len(items)), equations(table), charts,
        tag("details", tag("summary", "numbers"), numbers(table), open=""),
        tag("details", tag("summary", f"all {len(items)} findings"), checks(items)),
    )  # fmt: skip


def record_html(record: Record) -> str:
    """Return a record for a notebook: some frames, and what a survey of its values tells where they are not too many.

    Values that cannot be used, such as NaN without a mask, are reported and not raised.
    """
    lines = [tag("p", repr(record))]
    try:
        film = pictures.make_film(record, "", most=_STILLS)
        lines += [pictures.stills(film), *(tag("p", note, class_="note") for note in film.notes)]
        if prod(record.shape) > _SURVEYED:
            lines.append(tag("p", "The values were not surveyed: print(survey(record)) reads them all.", class_="note"))
            return _block(*lines)
        found = inspect_record(record)
        rows = [(title, join([x for line in text for x in (signs(line), Html("<br>"))][:-1]))
                for title, text in found.sections(printed=False)]  # fmt: skip
        histogram = np.array(found.survey.histogram)
        edges = np.linspace(-1.0, 1.0, histogram.size + 1)
        chart = pictures.coverage_chart(edges, histogram, found.survey.coverage)
        lines += [pairs([html_table(("", ""), rows), chart]), verdict_box(list(found.findings), len(found.findings))]
    except InputError as error:
        lines.append(tag("p", f"These values cannot be used: {error}", class_="box fail"))
    return _block(*lines)


def _block(*parts: str) -> str:
    """Return parts with the style of the page, for this block alone."""
    page, own = (files("doublewell.report").joinpath(name).read_text("utf-8") for name in ("page.css", "notebook.css"))
    nested = page.replace(":root {", "& {").replace("\nbody {", "\n& {")
    return tag("div", tag("style", Html(f".doublewell {{\n{nested}}}\n{own}")), *parts, class_="doublewell")


def plot_result(result: Result, name: str | None, ax: Any) -> Any:
    """Draw a curve of a result, or what its fit leaves, in axes; see `Result.plot`."""
    drawn, table = curves(result), facts(result)
    law = drawn.named
    name = list(law)[-1] if name is None else name
    if name not in (*_CURVES, *_OTHERS):
        raise InputError(f"curve is {shown(name)}: expected one of {', '.join((*_CURVES, *_OTHERS))}")
    if name in _CURVES and name not in law:
        unit = "f has no unit: expected units of length and time with the record, and a surface tension with its own"
        raise InputError(table.no_scale or unit)
    if name in ("residual", "frames", "tests") and drawn.residual is None:
        raise InputError(f"the weak-form fit has no residual to draw: use {option('method', 'trajectory')}")
    if name == "degrees" and not drawn.weights:
        raise InputError(f"the law has one degree, and no weights: expected an average; leave out {option('law')}")
    axis = _axes(ax)
    if name in law:
        figures.draw_curve(axis, law[name], drawn)
        axis.set_title(law[name].name)
        axis.legend(frameon=False)
    elif name == "values":
        figures.draw_histogram(axis, drawn.edges, drawn.fractions)
    elif name == "degrees":
        figures.draw_weights(axis, drawn)
    elif name == "tests":
        figures.draw_tests(axis, model_tests(result), table.verdict)
    elif drawn.residual is not None and name == "frames":
        figures.draw_frames(axis, drawn.residual, table.data)
    elif drawn.residual is not None:
        figures.draw_map(axis.figure, axis, drawn.residual, table.data)
    return axis


def plot_record(record: Record, frame: int, ax: Any) -> Any:
    """Draw a frame of a record in axes; see `Record.plot`."""
    last = record.frames - 1
    frame = whole(frame, "frame", least=-record.frames, most=last, meaning="a frame") % record.frames
    image, axis = figures.middle_slice(record, frame), _axes(ax)
    if image.ndim == 1:
        x = record.dx[0] * np.arange(image.size)
        axis.plot(x, image, color=COLOURS["recovered"])
        axis.set(xlabel=figures.axis_name("x", record.length_unit), ylabel="u")
    else:
        edges = [h * np.arange(n + 1) for h, n in zip(record.dx[-2:], image.shape, strict=True)]
        figures.draw_field(axis.figure, axis, image, edges, record.length_unit, "u", cmap=FIELD_MAP, vmin=-1, vmax=1)
    when = f"frame {frame}, t = {record.times[frame]:.4g}{raised(after(record.time_unit))}"
    axis.set_title(figures.sign_free(when))
    return axis


def _axes(ax: Any) -> Any:
    """Return the given axes, or those of a new figure that a notebook or plt.show() shows."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(layout="constrained")[1]
