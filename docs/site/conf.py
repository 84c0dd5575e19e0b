"""Settings of the site; `make docs` builds it."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

from doublewell.version import __version__ as release  # noqa: E402

project, author, version = "doublewell", "the doublewell authors", release
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["site"]

html_theme, html_title, html_baseurl = "furo", f"doublewell {release}", ""
html_show_copyright = html_show_sphinx = html_copy_source = html_show_sourcelink = html_show_search_summary = False
html_extra_path = [str(ROOT / "build/tutorial/report")]  # the page that the tutorial makes
_mathjax = find_spec("sphinx-mathjax-offline")  # brings MathJax 3 whole: one file, with no fonts and no other site
_places = (_mathjax.submodule_search_locations or ()) if _mathjax else ()
html_static_path = ["static", *(f"{place}/static/mathjax/tex-svg.js" for place in _places)]
mathjax_path = "tex-svg.js"
pygments_style, pygments_dark_style = "default", "github-dark"
smartquotes = False  # quotes are those of code
highlight_language = "none"  # most plain blocks are formulas and printed text
python_maximum_signature_line_length = 88

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "tasklist"]
myst_fence_as_directive = ["math"]  # as GitHub writes formulas of their own lines
nb_execution_mode = "off"  # run_page.py runs the tutorial and compares
nb_ipywidgets_js: dict[str, Any] = {}  # no widgets, and nothing from outside
default_role = "code"  # docstrings write names in single quotes of this kind
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_use_type_comments = False
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Array", "Report", "Progress")}

_SPAN = re.compile(r"(`+[^`]*`+)")
_ENTRY = re.compile(r"[\w, ]+")


def plain(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Turn a docstring into the generator's markup: plain text, names in backticks, and a list of parameters.

    Characters such as |, * and a trailing _ stay as they are. A parameter is a line with an indented one below it, so
    text may go on after the list.
    """
    found = list(lines)
    lines.clear()
    for k, line in enumerate(found):
        below = found[k + 1] if k + 1 < len(found) else ""
        if below.startswith("-----"):
            lines.append(f".. rubric:: {line}")
        elif line.startswith("-----"):
            lines.append("")
        elif below.startswith("    ") and _ENTRY.fullmatch(line):
            lines.append(", ".join(f"``{name.strip()}``" for name in line.split(",")))
        else:
            lines.append(line if line.lstrip().startswith((">>>", "...")) else _escaped(line))


def _escaped(line: str) -> str:
    parts = _SPAN.split(line)
    return "".join(p if p.startswith("`") else re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", p) for p in parts)


def short(*event: Any) -> tuple[str | None, str | None]:
    """Write the name of a type alias where a signature has the generator's word for it."""
    *_, arguments, returned = event
    first, second = (
        None if text is None else re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)
        for text in (arguments, returned)
    )
    return first, second


def contents(_app: Any, name: str, source: list[str]) -> None:
    """Leave the paper's tables out of the contents until `make paper` has made them."""
    if name == "index" and not (ROOT / "docs/paper.md").exists():
        source[0] = source[0].replace("\npaper\n", "\n")


def setup(app: Any) -> None:
    """Read docstrings as plain text, and give wide screens longer lines."""
    if not _places:
        raise ModuleNotFoundError("sphinx-mathjax-offline: expected the extra docs, which make docs installs")
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", short)
    app.connect("source-read", contents)
    app.add_css_file("wide.css")
