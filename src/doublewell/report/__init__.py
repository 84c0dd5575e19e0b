"""Report: a result as text, as figures and as a page, and a record in words."""

from doublewell.curves import Truth as Truth
from doublewell.report.figures import draw_figures as draw_figures
from doublewell.report.figures import error_figure as error_figure
from doublewell.report.figures import fields_figure as fields_figure
from doublewell.report.figures import law_figure as law_figure
from doublewell.report.figures import residual_figure as residual_figure
from doublewell.report.page import page_html as page_html
from doublewell.report.page import write_page as write_page
from doublewell.report.text import Inspection as Inspection
from doublewell.report.text import inspect_record as inspect_record
