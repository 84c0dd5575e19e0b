"""Page: a result with its record as one HTML file: the law, how sure it is, and what would make it better."""

from doublewell.report.page.page import page_html, write_page

__all__ = ["page_html", "write_page"]
