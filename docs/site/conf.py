"""Settings of the site; `make docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from doublewell.version import __version__ as release  # noqa: E402

project, author, version = "doublewell", "the doublewell authors", release
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["site"]
suppress_warnings = ["myst.header"]  # pages may begin with any level of heading

html_theme, html_title, html_baseurl = "furo", f"doublewell {release}", ""
html_show_sphinx = html_copy_source = html_show_sourcelink = html_show_search_summary = False
html_extra_path = [str(ROOT / "build/tutorial/report")]  # the page that the tutorial makes
templates_path: list[str] = []
pygments_style, pygments_dark_style = "default", "github-dark"
highlight_language = "none"  # most plain blocks are formulas and printed text
python_maximum_signature_line_length = 88

myst_heading_anchors = 3
default_role = "code"  # docstrings write names in single quotes of this kind
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_use_type_comments = False
napoleon_google_docstring = napoleon_use_rtype = False

_SPAN = re.compile(r"(`+[^`]*`+)")


def plain(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Keep |x|, * and trailing _ of a docstring as they are: docstrings are plain text with names in backticks."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = _SPAN.split(line)
            lines[k] = "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", text)


def setup(app: Any) -> None:
    """Make docstrings plain before napoleon reads them."""
    app.connect("autodoc-process-docstring", plain, priority=100)
