"""Figures: all of a result, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from doublewell.record import Record
from doublewell.report.error_figure import error_figure
from doublewell.report.field_figure import fields_figure
from doublewell.report.law_figure import law_figure
from doublewell.report.residual_figure import residual_figure
from doublewell.report.style import FORMATS, render, write_bytes
from doublewell.report.truth import Truth
from doublewell.result import Result
from doublewell.validate import Validation

__all__ = ["draw_figures", "write_figures"]


def draw_figures(
    result: Result,
    *,
    truth: Truth | None = None,
    record: Record | None = None,
    validation: Validation | None = None,
    formats: Sequence[str] = FORMATS,
) -> dict[str, bytes]:
    """Return the figures as file contents by name.

    law; of the trajectory reading also residual; with a record fields; with a validation error.
    """
    figures = {"law": law_figure(result, truth=truth)}
    if result.diagnostics.likelihood is not None:
        figures["residual"] = residual_figure(result)
    if record is not None:
        figures["fields"] = fields_figure(record, validation=validation)
    if validation is not None:
        figures["error"] = error_figure(validation, record=record)
    return {f"{name}.{kind}": render(figure, kind) for name, figure in figures.items() for kind in formats}


def write_figures(
    result: Result,
    folder: str | PathLike[str],
    *,
    truth: Truth | None = None,
    record: Record | None = None,
    validation: Validation | None = None,
    formats: Sequence[str] = FORMATS,
) -> tuple[Path, ...]:
    """Write the figures of a result to a folder and return the paths.

    Nothing is written before all figures are drawn, and each file is there whole or not at all.
    """
    drawn = draw_figures(result, truth=truth, record=record, validation=validation, formats=formats)
    return write_bytes([(Path(folder) / name, data) for name, data in drawn.items()])
