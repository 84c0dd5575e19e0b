"""Report: a result as figures and as a page, and a record in words."""

from doublewell.report.error_figure import error_figure
from doublewell.report.field_figure import fields_figure
from doublewell.report.figures import draw_figures, write_figures
from doublewell.report.inspection import Inspection, inspect_record
from doublewell.report.law_figure import law_figure
from doublewell.report.page import page_html, write_page
from doublewell.report.residual_figure import residual_figure
from doublewell.report.truth import Truth

__all__ = [
    "Inspection",
    "Truth",
    "draw_figures",
    "error_figure",
    "fields_figure",
    "inspect_record",
    "law_figure",
    "page_html",
    "residual_figure",
    "write_figures",
    "write_page",
]
