"""Report: a result as text, as figures and as a page, and a record in words."""

from doublewell.curves import Truth
from doublewell.report.figures import (
    draw_figures,
    error_figure,
    fields_figure,
    law_figure,
    residual_figure,
    write_figures,
)
from doublewell.report.page import page_html, write_page
from doublewell.report.text import Inspection, inspect_record

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
