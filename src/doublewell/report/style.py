"""Style: how figures and pages look: colours and fonts, figures as files and as SVG of a page, HTML, numbers, signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from html import escape
from io import BytesIO
from math import floor, isfinite, log10
from typing import Any
from xml.etree import ElementTree

from doublewell.errors import InputError
from doublewell.units import raised

# Okabe and Ito: distinguished by readers with any of the common colour deficiencies
_PALETTE = {  # with the variables of the page's style sheet, which knows a light and a dark scheme
    "recovered": ("#0072B2", "--line"),
    "truth": ("#E69F00", "--truth"),
    "mark": ("#000000", "--ink"),
    "noise": ("#D55E00", "--alarm"),
    "visited": ("#56B4E9", "--bar"),
    "empty": ("#E4E4E4", "--shade"),
    "band": ("#A6CFE6", "--band"),
    "rule": ("#999999", "--edge"),
}
COLOURS = {name: colour for name, (colour, _) in _PALETTE.items()}
FIELD_MAP = "RdBu_r"  # the low and the high phase are blue and red, an interface white
REST_MAP = "PuOr_r"  # other colours for a difference, so that it is not taken for a field
ERROR_MAP = "viridis"  # a size without sign
FORMATS = ("png", "pdf", "svg")
_DPI = 160
_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
    "pdf.fonttype": 42,  # fonts that an editor can still change
    "svg.hashsalt": "doublewell",  # names inside the file are the same each time
    "savefig.facecolor": "white",
    "figure.facecolor": "white",
    "text.usetex": False,
}
_NAMED = {colour.lower(): f"var({variable})" for colour, variable in _PALETTE.values()}
_FONT = re.compile(r"(?:[a-z]+ )*([\d.]+)px.*")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_VOID = {"br", "img", "input", "link", "meta"}
_POWER = re.compile(r"\^(\d+)")
_EXPONENT = re.compile(r"(?<=\d)e([-+]\d+)")
_LAPLACIAN = re.compile(r"Laplacian (?=[u(])")
_MEAN = "mean G(u)"
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_TOGETHER = re.compile(r"(?<=\d) %| × (?=10)")  # where no line ends
_GREEK = {"epsilon": "ε", "kappa": "κ", "sigma": "σ", "theta": "θ"}
_LETTERS = re.compile(rf"\b({'|'.join(_GREEK)})\b(?! of| at)")  # a sigma of a test is a unit


@contextmanager
def style() -> Iterator[None]:
    """Set fonts and lines while a figure is made, whatever the reader's own settings are; they come back after."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches, on an Agg canvas: no display and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def render(figure: Any, kind: str, **options: Any) -> bytes:
    """Return a figure as the bytes of a PNG, PDF or SVG file; the same figure gives the same bytes."""
    if kind not in FORMATS:
        raise InputError(f"figure format is {kind!r}: expected one of {', '.join(FORMATS)}")
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    stream = BytesIO()
    with style():
        import matplotlib as mpl

        mpl.rcParams.update(options)
        figure.savefig(stream, format=kind, dpi=_DPI, metadata=dated)
        figure.set_layout_engine("none")  # the places are known; a second format takes them over
    return stream.getvalue()


def inline_svg(figure: Any, name: str, title: str, text: str, image: tuple[Any, str, str] | None = None) -> str:
    """Return a figure as an SVG element of a page: texts stay texts, colours are variables of its style sheet.

    Screen readers read `title` and `text`. No style attribute is left, because the page's policy forbids them. `image`
    (axis, address, class) is laid under an axis.
    """
    for axis in figure.axes:
        axis.set_facecolor("none")
    data = render(figure, "svg", **{"svg.fonttype": "none", "savefig.facecolor": "none"})
    name = f"{name}-{sha256(data).hexdigest()[:8]}"  # a notebook shows several results
    root = ElementTree.fromstring(data)  # written by matplotlib, a line above
    for parent in root.iter():
        for child in [item for item in parent if item.tag.endswith(("}metadata", "}style"))]:
            parent.remove(child)
    for item in root.iter():
        item.tag = item.tag.rpartition("}")[2]
        item.attrib = dict(_attributes(item.attrib, name))
    heads = [ElementTree.Element(kind, id=f"{name}-{kind}") for kind in ("title", "desc")]
    heads[0].text, heads[1].text = title, text
    if image is not None:
        heads.append(_image(figure, *image))
    for k, item in enumerate(heads):
        root.insert(k, item)
    root.attrib = {
        "viewBox": root.attrib["viewBox"], "role": "img", "aria-labelledby": f"{name}-title {name}-desc",
        "stroke-linejoin": "round", "stroke-linecap": "butt", "fill": "var(--ink)",
    }  # fmt: skip
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(given: dict[str, str], name: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an element without its style, with the names of one figure among several."""
    for key, value in given.items():
        plain = key.rpartition("}")[2]
        if plain == "style":
            for part in filter(None, (item.strip() for item in value.split(";"))):
                what, _, how = (word.strip() for word in part.partition(":"))
                font = _FONT.fullmatch(how) if what == "font" else None
                if font is not None:
                    yield "font-size", font[1]
                else:
                    yield what, _NAMED.get(how, _REFERENCE.sub(rf"url(#{name}-\1)", how))
        elif plain == "id":
            yield plain, f"{name}-{value}"
        elif plain == "href" and value.startswith("#"):
            yield plain, f"#{name}-{value[1:]}"
        else:
            yield plain, _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _image(figure: Any, axis: Any, address: str, kind: str) -> Any:
    """Return an image that fills an axis, in the points of the drawing."""
    box, (width, height) = axis.get_position(), 72.0 * figure.get_size_inches()
    places = (box.x0 * width, (1.0 - box.y1) * height, box.width * width, box.height * height)
    written = {key: f"{value:.2f}" for key, value in zip(("x", "y", "width", "height"), places, strict=True)}
    return ElementTree.Element("image", {"href": address, "preserveAspectRatio": "none", "class": kind} | written)


# --- HTML, numbers and signs ------------------------------------------------------------------------------------------


class Html(str):
    """Text that is markup already and is written as it is."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float) -> Html:
    """Return an element; a final underscore of an attribute's name is dropped, the others become hyphens.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = ""
    for key, value in attributes.items():
        text = value if isinstance(value, str) else f"{value:.6g}"
        given += f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"'
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Html:
    """Return parts one after the other, plain text escaped."""
    unbroken = partial(_TOGETHER.sub, lambda part: part[0].replace(" ", "\N{NO-BREAK SPACE}"))
    return Html("".join(part if isinstance(part, Html) else escape(unbroken(part)) for part in parts))


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "") -> Html:
    """Return a table whose first column names the rows; it scrolls by itself where it is too wide."""
    top = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))) if any(head) else Html()
    body = [tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)) for first, *rest in rows]
    return tag("div", tag("table", top, tag("tbody", *body), class_=kind), class_="scroll")


def math(text: str) -> Html:
    """Return a formula that is written in plain characters with its powers raised and proper minus signs.

    >>> math("G(u) = -u (1 - u^2) [3e-05]")
    'G(u) = −u (1 − u<sup>2</sup>) [3&nbsp;×&nbsp;10<sup>−5</sup>]'
    """
    safe = _LAPLACIAN.sub("∇<sup>2</sup>", escape(text).replace("u_t", "u<sub>t</sub>").replace(_MEAN, "⟨G(u)⟩"))
    safe = _EXPONENT.sub(lambda found: f"&nbsp;×&nbsp;10<sup>{int(found[1])}</sup>", safe)
    return Html(_POWER.sub(r"<sup>\1</sup>", safe).replace("-", "−"))


def measured(value: float, digits: int = 4) -> str:
    """Return a number that was measured: all digits are written, also zeros.

    >>> measured(0.03), measured(0.26001), measured(1234.5)
    ('0.03000', '0.2600', '1234')
    """
    return plain(value, digits, "#")


def plain(value: float, digits: int = 4, zeros: str = "") -> str:
    """Return a number as people write it; more digits than asked for are better than an exponent.

    >>> plain(-1.25e-7), plain(12), plain(99.99, 2)
    ('−1.25 × 10⁻⁷', '12', '100')
    """
    if not isfinite(value):
        return str(value)
    text = f"{value:{zeros}.{digits}g}"
    if value and not -4 <= floor(log10(abs(value))) < 6:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = raised(f"{float(mantissa):g} × 10^{int(exponent)}")
    elif "e" in text:
        text = f"{value:.0f}"
    return text.rstrip(".").replace("-", "−")


def prose(text: str) -> str:
    """Return a message of the library as a page writes it: first letter large, proper signs.

    >>> prose("the pure phases lie at -1 and +1: epsilon^2 is 4 +- 0.1 um^2")
    'The pure phases lie at −1 and +1: ε² is 4 ± 0.1 um²'
    """
    text = signs(text)
    return text[:1].upper() + text[1:] if text[:1].isascii() else text  # a Greek letter is a symbol


def signs(text: str) -> str:
    """Return a text with Greek letters, raised powers and proper signs.

    >>> signs("kappa = 3.7e-08 J/m (95 %: 3.1e-08 to 4e+05)")
    'κ = 3.7 × 10⁻⁸ J/m (95 %: 3.1 × 10⁻⁸ to 4 × 10⁵)'
    """
    text = _LETTERS.sub(lambda name: _GREEK[name[1]], text).replace("+-", "±").replace("sqrt(", "√(")
    text = raised(_EXPONENT.sub(lambda power: f" × 10^{int(power[1])}", text))
    text = text.replace("''", "″").replace("u_t", "uₜ").replace(_MEAN, "⟨G(u)⟩")
    return _MINUS.sub("−", _LAPLACIAN.sub("∇²", text))
