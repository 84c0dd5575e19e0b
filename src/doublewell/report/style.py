"""Style: colours, fonts, figures as files, and figures as markup of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from doublewell.errors import InputError

# Okabe and Ito: distinguished by readers with any of the common colour deficiencies
COLOURS = {
    "recovered": "#0072B2",
    "truth": "#E69F00",
    "mark": "#000000",
    "noise": "#D55E00",
    "visited": "#56B4E9",
    "empty": "#E4E4E4",
    "band": "#A6CFE6",
    "rule": "#999999",
}
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
_VARIABLES = {  # of the page's style sheet, which knows a light and a dark scheme
    "recovered": "--line",
    "truth": "--truth",
    "mark": "--ink",
    "noise": "--alarm",
    "visited": "--bar",
    "empty": "--shade",
    "band": "--band",
    "rule": "--edge",
}
_NAMED = {COLOURS[name].lower(): f"var({variable})" for name, variable in _VARIABLES.items()}
_FONT = re.compile(r"(?:[a-z]+ )*([\d.]+)px.*")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


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
    places = {
        "x": box.x0 * width,
        "y": (1.0 - box.y1) * height,
        "width": box.width * width,
        "height": box.height * height,
    }
    written = {key: f"{value:.2f}" for key, value in places.items()}
    return ElementTree.Element("image", {"href": address, "preserveAspectRatio": "none", "class": kind} | written)
