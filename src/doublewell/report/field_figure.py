"""The figure of fields: what was seen, what the recovered law predicts, and their difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from doublewell.hints import Array
from doublewell.record import Record
from doublewell.report.style import FIELD_MAP, REST_MAP, new_figure, style
from doublewell.report.unit_words import after, figure_text, length_axis, time_axis
from doublewell.validate import Validation

__all__ = ["fields_figure"]

_LINES = 400  # frames of a space-time image: more than its pixels
_STRETCH = 4.0  # a longer field is not drawn to scale
_SIDE = 2.5  # inches of the longer side of one image


def fields_figure(record: Record, *, validation: Validation | None = None) -> Any:
    """Return the figure of the observed fields, with a validation also of the predicted ones and the difference.

    Two axes: the first, middle and last frame. Three: their middle z slice. One: the whole record as an image of
    position and time. With a validation the frames are three later than its start, where nothing differs yet.
    """
    first = 0 if validation is None else validation.start
    seen = record.clip(first, record.frames)
    told = None if validation is None else validation.predicted
    with style():
        return _space_time(seen, told) if len(record.mesh) == 1 else _frames(seen, told)


def _frames(seen: Record, told: Record | None) -> Any:
    """Draw rows of fields (observed, predicted, difference) and columns of times."""
    picks = _picks(seen.frames, later=told is not None)
    rows = _rows([_slice(seen, k) for k in picks], None if told is None else [_slice(told, k) for k in picks])
    height, width = seen.extent[-2:]
    w, h, aspect = _size(width, height)
    extent = (0.0, width, 0.0, height)
    figure = new_figure(len(picks) * w + 1.6, len(rows) * h + 0.9)
    axes = figure.subplots(len(rows), len(picks), sharex=True, sharey=True, squeeze=False)
    for line, (name, images, map_name, limit) in zip(axes, rows, strict=True):
        for axis, image in zip(line, images, strict=True):
            drawn = axis.imshow(image, cmap=map_name, vmin=-limit, vmax=limit, origin="lower", extent=extent)
            axis.set_aspect(aspect)
            _frame(axis)
        line[0].set_ylabel(figure_text(length_axis("y", seen)))
        _bar(figure, drawn, list(line), name)
    for axis, k in zip(axes[0], picks, strict=True):
        axis.set_title(figure_text(f"t = {seen.times[k]:.4g}{after(seen.time_unit)}"))
    for axis in axes[-1]:
        axis.set_xlabel(figure_text(length_axis("x", seen)))
    if notes := list(_notes(seen, aspect)):
        figure.suptitle("; ".join(notes), fontsize=10)
    return figure


def _picks(frames: int, *, later: bool) -> list[int]:
    """Return the first, middle and last frame, or three frames after the first."""
    chosen = (max(1, frames // 3), max(1, 2 * frames // 3), frames - 1) if later else (0, frames // 2, frames - 1)
    return list(dict.fromkeys(chosen))


def _notes(seen: Record, aspect: str) -> Iterator[str]:
    if len(seen.mesh) == 3:
        yield f"middle slice, z = {(seen.mesh[0] // 2) * seen.dx[0]:.4g}{figure_text(after(seen.length_unit))}"
    if aspect == "auto":
        yield "not drawn to scale"


def _space_time(seen: Record, told: Record | None) -> Any:
    """Draw records of one space axis: position across, time upwards."""
    first = 0 if told is None or seen.frames < 3 else 1  # at the start nothing differs, by construction
    picks = np.unique(np.linspace(first, seen.frames - 1, min(seen.frames, _LINES)).round().astype(int))
    rows = _rows([_lines(seen, picks)], None if told is None else [_lines(told, picks)])
    figure = new_figure(3.4 * len(rows) + 0.8, 3.8)
    axes = figure.subplots(1, len(rows), sharex=True, sharey=True, squeeze=False)[0]
    x = seen.dx[0] * np.arange(seen.mesh[0])
    for axis, (name, (image,), map_name, limit) in zip(axes, rows, strict=True):
        drawn = axis.pcolormesh(
            x, seen.times[picks], image, cmap=map_name, vmin=-limit, vmax=limit, shading="nearest", rasterized=True
        )
        axis.set_xlabel(figure_text(length_axis("x", seen)))
        _frame(axis)
        _bar(figure, drawn, [axis], name)
    axes[0].set_ylabel(figure_text(time_axis("time", seen)))
    return figure


def _rows(seen: list[Array], told: list[Array] | None) -> list[tuple[str, list[Array], str, float]]:
    """Return (name, images, colour map, limit) of each kind of field."""
    rows = [("observed u", seen, FIELD_MAP, 1.0)]
    if told is not None:
        rest = [a - b for a, b in zip(told, seen, strict=True)]
        largest = max(float(np.percentile(np.abs(image[np.isfinite(image)]), 99.9)) for image in rest)
        rows += [("predicted u", told, FIELD_MAP, 1.0), ("predicted\n- observed", rest, REST_MAP, max(largest, 1e-12))]
    return rows


def _slice(record: Record, frame: int) -> Array:
    field: Array = _shown(record, frame)[0]
    middle: Array = field[field.shape[0] // 2] if field.ndim == 3 else field
    return middle


def _lines(record: Record, picks: Array) -> Array:
    return np.concatenate([_shown(record, int(k)) for k in picks])


def _shown(record: Record, frame: int) -> Array:
    """Return one frame with NaN, which is left blank, where a value is missing."""
    slab, seen = record.slab(frame, frame + 1), record.observed(frame, frame + 1)
    return slab if seen.all() else np.where(seen, slab, np.nan)


def _size(width: float, height: float) -> tuple[float, float, str]:
    """Return inches for one image, and its aspect: to scale unless it is very long."""
    if max(width, height) > _STRETCH * min(width, height):
        return (_SIDE, _SIDE / 2, "auto") if width > height else (_SIDE / 2, _SIDE, "auto")
    return _SIDE * min(1.0, width / height), _SIDE * min(1.0, height / width), "equal"


def _frame(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(True)
    axis.locator_params(axis="x", nbins=3)
    axis.locator_params(axis="y", nbins=4)


def _bar(figure: Any, drawn: Any, axes: list[Any], name: str) -> None:
    bar = figure.colorbar(drawn, ax=axes, extend="both", shrink=0.95, pad=0.02)
    bar.set_label(name)
