"""Viewer: the fields with a slider; without script, and in print, three frames side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from doublewell.hints import Array
from doublewell.report.page.chart import figure
from doublewell.report.page.film import Film
from doublewell.report.page.markup import Html, join, plain, tag
from doublewell.report.page.picture import FIELD, PREFIX, REST, bar_image, encode
from doublewell.report.page.residual_charts import picture_box
from doublewell.report.unit_words import after

__all__ = ["viewer"]


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of field: its frames as images, and what its colours mean."""

    key: str
    name: str
    colours: str
    limit: float
    images: list[str]
    legend: str


def viewer(film: Film) -> Html:
    """Return the fields of a film: observed, and where it can be, predicted and the difference."""
    kinds = _kinds(film)
    notes = [tag("p", note, class_="note") for note in film.notes]
    if film.flat:
        shown = tag("div", *(_panel(film, kind, 0, "") for kind in kinds), class_="grid")
        said = tag("p", "One space axis: each picture is the whole movie, time upwards.", class_="note")
        return join([said, shown, *notes])
    return join([_live(film, kinds), _strip(film, kinds), *notes, _data(film, kinds)])


def _kinds(film: Film) -> list[_Kind]:
    reach = float(np.percentile(np.abs(film.seen), 99.9))
    limit = min(max(1.0, np.ceil(10 * reach) / 10), 2.0)
    named = "dark is the phase −1, light the phase +1"
    kinds = [_Kind("seen", "observed", FIELD, limit, _images(film, film.seen, limit, FIELD), named)]
    if film.told is not None and film.rest is not None:
        far = max(float(np.percentile(np.abs(film.rest), 99.9)), 1e-12)
        kinds.append(_Kind("told", "predicted", FIELD, limit, _images(film, film.told, limit, FIELD), named))
        said = "grey is no difference, light too large, dark too small"
        kinds.append(_Kind("rest", "observed − predicted", REST, far, _images(film, film.rest, far, REST), said))
    return kinds


def _images(film: Film, fields: Array, limit: float, colours: str) -> list[str]:
    return [encode(fields, limit, colours)] if film.flat else [encode(field, limit, colours) for field in fields]


def _panel(film: Film, kind: _Kind, k: int, role: str, when: str = "") -> Html:
    drawn, height = picture_box(
        PREFIX + kind.images[k], film.extent, kind=role, names=film.names, to_scale=not film.flat
    )
    ends = f"{plain(-kind.limit, 2)} to {plain(kind.limit, 2)}"
    text = f"Field {kind.name}{when}; {kind.legend}. The colours run from {ends}."
    return figure([drawn], height=height, text=text, caption=[tag("b", kind.name), when, " ", _bar(kind)])


def _bar(kind: _Kind) -> Html:
    image = tag("img", src=bar_image(kind.colours), alt="", width=80, height=10, class_="bar-image")
    return tag("span", plain(-kind.limit, 2), " ", image, " ", plain(kind.limit, 2), class_="colours")


def _live(film: Film, kinds: list[_Kind]) -> Html:
    last, now = len(film.frames) - 1, len(film.frames) // 2
    slider = tag(
        "input", type="range", id="frame", min=0, max=last, value=now, step=1, aria_label="frame of the movie",
        aria_describedby="when",
    )  # fmt: skip
    play = tag("button", "Play", type="button", id="play")
    when = tag("output", _when(film, now), id="when", for_="frame")
    panels = [_panel(film, kind, now, f"live-{kind.key}") for kind in kinds]
    controls = tag("div", play, slider, when, class_="controls")
    return tag("div", controls, tag("div", *panels, class_="grid"), class_="viewer", id="viewer")


def _strip(film: Film, kinds: list[_Kind]) -> Html:
    """Return the first, middle and last frame of each kind, for print and for browsers without script."""
    same = film.rest is not None and len(film.frames) > 1 and not np.any(film.rest[0])  # a start that was observed
    picks = list(dict.fromkeys((int(same), len(film.frames) // 2, len(film.frames) - 1)))
    panels = [_panel(film, kind, k, "", f", {_when(film, k)}") for k in picks for kind in kinds]
    return tag("div", *panels, class_=f"grid strip of-{len(kinds)}")


def _data(film: Film, kinds: list[_Kind]) -> Html:
    """Return the frames for the script; JSON in which no markup can begin."""
    content = {"when": [_when(film, k) for k in range(len(film.frames))]} | {kind.key: kind.images for kind in kinds}
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json", id="film")


def _when(film: Film, k: int) -> str:
    return f"frame {film.frames[k]}, t = {plain(float(film.times[k]))}{after(film.time_unit)}"
