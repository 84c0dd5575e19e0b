"""The figure of the field error: over time, and where in the picture it sits."""

from __future__ import annotations

from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.record import Record
from doublewell.report.style import COLOURS, ERROR_MAP, new_figure, style
from doublewell.report.unit_words import figure_text, length_axis, time_axis
from doublewell.validate import Validation

__all__ = ["error_figure", "residual_map"]


def error_figure(validation: Validation, *, record: Record | None = None) -> Any:
    """Return the figure of the relative field error over time, with the part that noise alone makes.

    With the observed record also the residual map: the root mean square over time of predicted - observed. The start
    frame is left out of both where the two are equal there by construction.
    """
    with style():
        figure = new_figure(6.0 if record is None else 9.6, 3.7)
        axes = figure.subplots(
            1, 1 if record is None else 2, squeeze=False, width_ratios=[1.5, 1.0][: 1 + bool(record)]
        )
        _curve(axes[0, 0], validation, record)
        if record is not None:
            _map(figure, axes[0, 1], residual_map(validation, record), record)
    return figure


def residual_map(validation: Validation, record: Record) -> Array:
    """Return the root mean square over the frames after the start of predicted - observed, one value a pixel.

    A pixel that was not observed in any of them has the value 0.
    """
    total, count = np.zeros(record.mesh), np.zeros(record.mesh)
    for frame in range(1, validation.predicted.frames):
        place = validation.start + frame
        seen, known = record.slab(place, place + 1)[0], record.observed(place, place + 1)[0]
        total += np.where(known, validation.predicted.slab(frame, frame + 1)[0] - seen, 0.0) ** 2
        count += known
    return np.asarray(np.sqrt(total / np.maximum(count, 1.0)))


def _curve(axis: Any, validation: Validation, measure: Record | None) -> None:
    first = int(validation.origin == "observed frame")
    times, error = validation.times[first:], 100 * validation.error[first:]
    floor = 100 * np.broadcast_to(validation.noise_floor, validation.error.shape)[first:]
    mark = "o" if times.size == 1 else None
    axis.plot(times, error, color=COLOURS["recovered"], lw=1.8, marker=mark, label="predicted - observed")
    axis.plot(times, floor, color=COLOURS["noise"], ls="--", lw=1.5, marker=mark, label="noise alone")
    axis.set(
        xlabel=figure_text("time" if measure is None else time_axis("time", measure)),
        ylabel="relative field error (%)",
        title=f"recovered law evolved from {f'frame {validation.start}' if first else 'the fitted initial field'}",
    )
    axis.locator_params(axis="x", nbins=6)
    finite = np.concatenate([error, floor])
    finite = finite[np.isfinite(finite)]
    axis.set_ylim(0.0, 1.3 * max(float(np.max(finite, initial=0.0)), 1e-12))  # the legend has the top for itself
    axis.legend(frameon=False, loc="upper center", ncols=2)


def _map(figure: Any, axis: Any, values: Array, record: Record) -> None:
    """Draw the residual map: a line for one space axis, the middle z slice for three."""
    axis.set(title="residual map", xlabel=figure_text(length_axis("x", record)))
    if values.ndim == 1:
        axis.plot(record.dx[0] * np.arange(values.size), values, color=COLOURS["recovered"], lw=1.2)
        axis.set_ylabel("predicted - observed\n(root mean square over time)")
        axis.set_ylim(bottom=0.0)
        return
    image = values[values.shape[0] // 2] if values.ndim == 3 else values
    height, width = record.extent[-2:]
    drawn = axis.imshow(image, cmap=ERROR_MAP, origin="lower", extent=(0.0, width, 0.0, height), aspect="auto")
    if max(width, height) <= 4.0 * min(width, height):
        axis.set_aspect("equal")
    name = figure_text(length_axis("y", record))
    axis.set_ylabel(name if values.ndim == 2 else f"{name}, middle slice")
    axis.spines[["top", "right"]].set_visible(True)
    axis.locator_params(nbins=4)
    figure.colorbar(drawn, ax=axis, pad=0.02).set_label("predicted - observed\n(root mean square over time)")
