"""Style: colours, fonts and the atomic writing that all figures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from doublewell.atomic import replace_file
from doublewell.errors import InputError

__all__ = ["COLOURS", "ERROR_MAP", "FIELD_MAP", "FORMATS", "REST_MAP", "new_figure", "render", "style", "write_bytes"]

# Okabe and Ito: told apart by readers with any of the common colour deficiencies
COLOURS = {
    "recovered": "#0072B2",
    "truth": "#E69F00",
    "mark": "#000000",
    "noise": "#D55E00",
    "visited": "#56B4E9",
    "empty": "#E4E4E4",
    "band": "#A6CFE6",
}
FIELD_MAP = "RdBu_r"  # the phases -1 and +1 are blue and red, an interface white
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


def render(figure: Any, kind: str) -> bytes:
    """Return a figure as the bytes of a PNG, PDF or SVG file; the same figure gives the same bytes."""
    if kind not in FORMATS:
        raise InputError(f"figure format is {kind!r}: expected one of {', '.join(FORMATS)}")
    dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    stream = BytesIO()
    with style():
        figure.savefig(stream, format=kind, dpi=_DPI, metadata=dated)
        figure.set_layout_engine("none")  # the places are found; a second format takes them over
    return stream.getvalue()


def write_bytes(contents: Sequence[tuple[Path, bytes]]) -> tuple[Path, ...]:
    """Write files so that each is there whole or not at all; folders are made as needed."""
    for path, data in contents:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{path.parent} could not be made: {error.strerror or error}; choose another name"
            ) from error
        with replace_file(path) as temporary:
            temporary.write_bytes(data)
    return tuple(path for path, _ in contents)
