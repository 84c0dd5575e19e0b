"""Pictures: the charts of a page, and the frames of a record that it shows with a slider, with what the law predicts.

Every chart has a text for readers who do not see it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from math import ceil, prod
from typing import Any

import numpy as np

from doublewell.adequacy import FALSE_ALARMS
from doublewell.curves import Curve, Curves
from doublewell.errors import InputError
from doublewell.facts import Facts, facts
from doublewell.findings import ModelTest
from doublewell.hints import Array, Progress
from doublewell.record import Record
from doublewell.report import figures
from doublewell.report.figures import axis_name
from doublewell.report.style import Html, inline_svg, join, new_figure, plain, style, tag
from doublewell.result import Result
from doublewell.units import after, raised
from doublewell.validate import Validation, replay, validate

_WIDTH = 5.2  # inches: 374 points, about the pixels of a phone, so that texts keep their size
_FRAMES = 61  # at most: with _SIDE this keeps a page below 7 MB, noise included
_SIDE = 160  # pixels along an axis, at most
_LINES = 400  # frames, and pixels, of a movie with one space axis, which is one picture
_VALUES = 40_000_000  # of a prediction, at most: 320 MB
_STRETCH = 4.0  # a longer field is not drawn to scale
# Both rise in brightness from end to end, so that a grey print still distinguishes the phases
_FIELD, _REST = "cividis", "gray"  # another map, so that a difference is not taken for a field
_PREFIX = "data:image/png;base64,"


# --- charts -----------------------------------------------------------------------------------------------------------


def chart(
    name: str, title: str, text: str, caption: Sequence[str], draw: Callable[[Any], Any], *, height: float = 3.2
) -> Html:
    """Return a figure with its title, its description for screen readers and its caption; `draw` fills it."""
    with style():
        figure = new_figure(_WIDTH, height)
        draw(figure)
        drawn = Html(inline_svg(figure, name, title, text))
    return tag("figure", drawn, tag("figcaption", *caption))


def law_chart(curve: Curve, shown: Curves) -> Html:
    """Draw a curve of the law, with its band once more enlarged below."""
    banded = curve.half_width is not None

    def draw(figure: Any) -> None:
        axes = figure.subplots(2 if banded else 1, 1, squeeze=False, sharex=True, height_ratios=[2.6, 1][: 1 + banded])
        figures.draw_curve(axes[0, 0], curve, shown)
        if banded:
            figures.draw_strip(axes[1, 0], curve, shown)
            axes[0, 0].set_xlabel("")

    known, band = "No band is known.", f"No band: {curve.why}."
    if curve.half_width is not None:
        width = f"at most ±{plain(100.0 * curve.half_width, 2)} % of the largest value"
        known, band = f"The 95 % band is {width}.", f"Shaded: 95 % band, {width}; below it is enlarged."
    u = np.linspace(curve.u[0], curve.u[-1], 9)
    listed = ", ".join(f"{plain(float(curve.evaluate(x)))} at {plain(float(x))}" for x in u)
    text = f"{curve.name} over the phase value u from {plain(u[0])} to {plain(u[-1])}: {listed}. {known}"
    caption = [f"{curve.symbol}(u). Line: recovered. ▲ barrier, ▼ wells. {band}"]
    if shown.unseen:
        caption.append(" Grey: phase values that the movie does not show.")
    return chart(f"curve-{curve.symbol}", curve.name, text, caption, draw, height=4.6 if banded else 3.4)


def coverage_chart(edges: Array, fractions: Array, coverage: float) -> Html:
    """Draw how often each phase value is visited."""
    pairs = zip(edges[::4], edges[4::4], 100.0 * fractions.reshape(-1, 4).sum(axis=1), strict=False)
    listed = ", ".join(f"{plain(a, 2)} to {plain(b, 2)}: {plain(c, 2)} %" for a, b, c in pairs)
    visited = f"{100 * coverage:.0f} % of the range is visited"
    return chart(
        "coverage", "Phase values in the movie", f"Histogram of the phase values in the movie. {listed}. {visited}.",
        [f"Phase values that the movie shows: {visited}. The law is measured there."],
        lambda figure: figures.draw_histogram(figure.subplots(), edges, fractions), height=2.7,
    )  # fmt: skip


def weights_chart(shown: Curves) -> Html:
    """Draw the weight of each degree in the average; nothing where there is only one."""
    if not shown.weights:
        return Html()
    listed = ", ".join(f"degree {degree}: {plain(100 * weight, 2)} %" for degree, weight in shown.weights)
    return chart(
        "weights", "Weights of the degrees", f"Weights of the degrees in the average. {listed}.",
        ["The weight of each degree in the average, from the data."],
        lambda figure: figures.draw_weights(figure.subplots(), shown), height=2.7,
    )  # fmt: skip


def residual_charts(shown: Curves, table: Facts, tests: Sequence[ModelTest]) -> Iterator[Html]:
    """Draw where the residual is too large, the tests of the model, and each frame; nothing without a residual."""
    left, data = shown.residual, table.data
    if left is None:
        return
    place = np.unravel_index(int(np.argmax(np.abs(left.blocks))), left.blocks.shape)
    at = ", ".join(
        f"{axis} = {plain(0.5 * float(edges[k] + edges[k + 1]), 3)}{raised(after(data.length_unit))}"
        for axis, edges, k in zip("zyx"[-left.blocks.ndim :], left.edges, place, strict=True)
    )
    words = f"farthest from the mean by {plain(float(left.blocks[place]), 3)} sigma at {at}"
    yield chart(
        "residual-map", "Variance of the residual over time",
        f"Map of the variance of the residual over time, block by block, {words}.",
        [f"Where: the variance of the residual over time, {words}. Pure noise stays below about 4."],
        lambda figure: figures.draw_map(figure, figure.subplots(), left, data), height=3.9,
    )  # fmt: skip
    if tests:
        listed = ", ".join(f"{test.name} {test.sigma:.1f}" for test in sorted(tests, key=lambda test: -test.sigma))
        yield chart(
            "model-tests", "Tests of the model", f"Tests of the model in sigma: {listed}. Verdict: {table.verdict}.",
            ["Tests for model misspecification. A test counts (*) beyond the line beside it: "
             f"{100 * FALSE_ALARMS:g} % false alarms for all tests together."],
            lambda figure: figures.draw_tests(figure.subplots(), tests, table.verdict), height=3.9,
        )  # fmt: skip
    worst = int(np.argmax(np.abs(left.frames[1:] - 1.0))) + 1
    text = (
        f"Residual of each frame divided by the noise of the fit, {plain(left.noise)}. It should be near 1, within "
        f"{plain(2 * left.spread, 2)}; the frame farthest from 1 is {worst} with {plain(float(left.frames[worst]))}. "
        f"The first frame has {plain(float(left.frames[0]), 3)}."
    )
    yield chart(
        "residual-frames", "Residual of each frame", text,
        ["When: the residual of each frame. Dashed: the noise of the fit. Grey: where a frame should lie."],
        lambda figure: figures.draw_frames(figure.subplots(), left, data), height=3.4,
    )  # fmt: skip


def error_chart(found: Validation, time_unit: str | None) -> Html:
    """Draw the relative error of the predicted field over time, with what noise alone makes."""
    error, floor = 100 * found.error, 100 * np.broadcast_to(found.noise_floor, found.error.shape)
    text = (
        f"Relative error of the predicted field over time: {plain(float(error[-1]), 3)} % at the last frame, "
        f"{plain(float(np.max(error)), 3)} % at most; noise alone makes {plain(float(floor[-1]), 3)} %."
    )
    begun = f"the noisy frame {found.start}" if found.origin == "observed frame" else "the fitted initial field"
    caption = [f"Line: predicted against observed, evolved from {begun}. Dashed: what the noise alone makes."]
    draw = lambda figure: figures.draw_error(figure.subplots(), found, time_unit)  # noqa: E731
    return chart("field-error", "Relative field error", text, caption, draw)


def rms_chart(values: Array, record: Record) -> Html:
    """Draw the root mean square over time of predicted - observed."""
    words = f"{plain(float(np.median(values)), 2)} in the median, {plain(float(np.max(values)), 2)} at most"
    text = f"Root mean square over time of predicted minus observed, {words}."
    note = " Three axes: the middle slice." if values.ndim == 3 else ""
    draw = lambda figure: figures.draw_rms(figure, figure.subplots(), values, record)  # noqa: E731
    caption = [f"Where: predicted − observed over time, {words}.{note}"]
    return chart("field-rms", "Root mean square of the difference", text, caption, draw, height=3.9)


# --- the film ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Film:
    """Fields to look at, [frame, y, x] (one space axis: [t, x]), with their frame numbers and times.

    ``predicted`` is None where nothing could be predicted. ``notes`` tell why, or what was predicted from what, and
    what was left out. ``extent`` and ``names`` are of the axes across and up, ``phases`` those of the
    wells.
    """

    frames: tuple[int, ...]
    times: Array
    observed: Array
    predicted: Array | None
    notes: tuple[str, ...]
    extent: tuple[float, float]
    names: tuple[str, str] = ("x (length)", "y (length)")
    time_unit: str | None = None
    phases: tuple[float, float] = (-1.0, 1.0)

    @property
    def flat(self) -> bool:
        """Whether the whole movie is one picture of position and time."""
        return self.observed.ndim == 2

    def when(self, k: int) -> str:
        """Return the number and the time of a frame."""
        return f"frame {self.frames[k]}, t = {plain(float(self.times[k]))}{raised(after(self.time_unit))}"


def predicted(result: Result, record: Record, *, progress: Progress | None = None) -> Validation | str:
    """Evolve the recovered law from the fitted initial field, or tell why that cannot be done.

    Without that field the first frame serves, noise and all; of a record too large to evolve, the last part.
    """
    if record.boundary in (None, "open"):
        return (
            "the record is a window, and what comes in over its border is not known: the law cannot be evolved alone. "
            "The fit follows the border frame by frame; its residual is shown below"
        )
    table = facts(result)
    if table.problem.view(table.problem.records[0]).imaged:
        return "the picture is not the field itself (optics), so the evolved law is not compared with it"
    pixels = prod(record.mesh)
    if 2 * pixels > _VALUES:
        return f"frames of {pixels} pixels are too large to be evolved for a page: use validate"
    start = max(0, record.frames - max(2, _VALUES // pixels))
    again = start == 0 and table.initial
    try:
        made = (replay if again else partial(validate, start=start))(result, record, progress=progress)
    except InputError as error:
        return f"the law could not be evolved: {error}"
    if np.all(np.isfinite(made.error)):
        return made
    return "the evolution of the law left the range of numbers: this law cannot be evolved from the first frame"


def make_film(
    record: Record, found: Validation | str, *, notes: tuple[str, ...] = (), phases: tuple[float, float] = (-1.0, 1.0),
    most: int = _FRAMES,
) -> Film:  # fmt: skip
    """Read the frames that are shown, one at a time."""
    start = 0 if isinstance(found, str) else found.start
    flat = len(record.mesh) == 1
    most = min(record.frames - start, _LINES if flat else most)
    picks = [int(k) for k in np.unique(np.linspace(start, record.frames - 1, most).round().astype(int))]
    steps = tuple(ceil(n / (_LINES if flat else _SIDE)) for n in record.mesh[-2:])
    predicted = None
    if not isinstance(found, str):
        predicted = np.stack([_thin(found.predicted.slab(k - start, k - start + 1)[0], steps) for k in picks])
    size = (record.extent[0], float(record.times[-1] - record.times[0])) if flat else record.extent[:-3:-1]
    upwards = axis_name("time", record.time_unit, "") if flat else axis_name("y", record.length_unit)
    return Film(
        frames=tuple(picks),
        times=record.times[picks],
        observed=np.stack([_thin(record.slab(k, k + 1)[0], steps) for k in picks]),
        predicted=predicted,
        notes=(*notes, *_notes(record, picks, steps, start)),
        extent=(size[0], size[1]),
        names=(axis_name("x", record.length_unit), upwards),
        time_unit=record.time_unit,
        phases=phases,
    )


def origin(table: Facts, found: Validation | str) -> str:
    """Return what the prediction was evolved from."""
    if isinstance(found, str):
        return f"No prediction: {found}."
    if found.origin == "fitted initial field":
        return (
            "Predicted: the fit itself, the recovered law evolved from the initial field that was fitted with it. What "
            "the difference shows is what the fit leaves; it should look like noise alone, less of it in the first "
            "frame, whose noise is taken up in part."
        )
    why = ""
    if not table.banded:
        why = " The weak-form fit has no initial field."
    elif table.tiled:
        why = " The movie was read in tiles, and each has an initial field of its own."
    elif not table.initial:
        why = " This result holds no fitted initial field: identify again to see the fields of the fit."
    return f"Predicted: the recovered law evolved from the observed frame {found.start}, whose noise it keeps.{why}"


def _thin(field: Array, steps: tuple[int, ...]) -> Array:
    """Take every n-th pixel: a mean would hide the noise. Of three axes the middle slice."""
    flat = field[field.shape[0] // 2] if field.ndim == 3 else field
    return np.asarray(flat[tuple(slice(None, None, step) for step in steps)])


def _notes(record: Record, picks: list[int], steps: tuple[int, ...], start: int) -> Iterator[str]:
    if len(record.mesh) == 3:
        place = f"{record.mesh[0] // 2 * record.dx[0]:.4g}{raised(after(record.length_unit))}"
        yield f"Three space axes: the middle slice is shown, z = {place}."
    if start:
        yield f"The record is large: the law was evolved, and frames are shown, from frame {start} on."
    if len(picks) < record.frames - start:
        yield f"{len(picks)} of {record.frames - start} frames are shown, evenly spread."
    if max(steps) > 1:
        axes = "zyx"[-len(steps) :]
        kept = " and ".join(f"one pixel in {n} along {a}" for n, a in zip(steps, axes, strict=True) if n > 1)
        yield f"Of each frame {kept} is shown; nothing is averaged, so the noise looks as it is."


# --- the viewer -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Kind:
    """One kind of field: its frames as images, and what its colours mean."""

    key: str
    name: str
    colours: str
    ends: tuple[str, str]
    images: list[str]
    legend: str


def viewer(film: Film) -> Html:
    """Return the fields of a film: observed, and where it can be, predicted and the difference."""
    kinds = _kinds(film)
    notes = [tag("p", note, class_="note") for note in film.notes]
    if film.flat:
        shown = tag("div", *(_panel(film, kind, 0, f"flat-{kind.key}") for kind in kinds), class_="grid")
        words = tag("p", "One space axis: each picture is the whole movie, time upwards.", class_="note")
        return join([words, shown, *notes])
    content = {"when": [film.when(k) for k in range(len(film.frames))]} | {kind.key: kind.images for kind in kinds}
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")  # no markup can begin in it
    data = tag("script", Html(text), type="application/json", id="film")
    return join([_live(film, kinds), _strip(film, kinds), *notes, data])


def _kinds(film: Film) -> list[_Kind]:
    (low, high), middle, half = film.phases, 0.5 * sum(film.phases), 0.5 * (film.phases[1] - film.phases[0])
    reach = float(np.percentile(np.abs(film.observed - middle), 99.9)) / half
    size = half * min(max(1.0, np.ceil(10 * reach) / 10), 2.0)
    limits = (middle - size, middle + size)
    named = f"dark is the phase {plain(low)}, light the phase {plain(high)}"
    rows = [("observed", "observed", _FIELD, limits, film.observed, named)]
    if film.predicted is not None:
        rest = film.observed - film.predicted
        far = max(float(np.percentile(np.abs(rest), 99.9)), 1e-12)
        words = "grey is no difference, light too large, dark too small"
        rows.append(("predicted", "predicted", _FIELD, limits, film.predicted, named))
        rows.append(("rest", "observed − predicted", _REST, (-far, far), rest, words))
    kinds = []
    for key, name, colours, (first, last), fields, legend in rows:
        pictures = fields[None] if film.flat else fields
        images = [encode(field, (first, last), colours) for field in pictures]
        kinds.append(_Kind(key, name, colours, (plain(first, 2), plain(last, 2)), images, legend))
    return kinds


def _panel(film: Film, kind: _Kind, k: int, name: str) -> Html:
    """Return an image with its axes; very long fields, and times, are not drawn to scale."""
    across, upwards = film.extent
    ratio = 1.0 if film.flat else min(max(upwards / across, 1.0 / _STRETCH), _STRETCH)
    with style():
        figure = new_figure(4.2, 3.5 * min(ratio, 1.3) + 0.5)
        axis = figure.subplots()
        axis.set(xlim=(0.0, across), ylim=(0.0, upwards), xlabel=film.names[0], ylabel=film.names[1])
        axis.set_box_aspect(ratio)
        axis.spines[["top", "right"]].set_visible(True)
        axis.locator_params(nbins=4)
        text = f"Field {kind.name}; {kind.legend}. The colours run from {' to '.join(kind.ends)}."
        image = (axis, _PREFIX + kind.images[k], f"pixels {name}")
        drawn = Html(inline_svg(figure, name, f"Field {kind.name}", text, image))
    return tag("figure", drawn, _caption(kind))


def stills(film: Film) -> Html:
    """Return the observed frames of a film side by side."""
    (kind,) = _kinds(film)
    if film.flat:
        return _panel(film, kind, 0, "flat-observed")
    panels = [
        tag("figure", tag("img", src=_PREFIX + image, alt="", class_="pixels"), tag("figcaption", film.when(k)))
        for k, image in enumerate(kind.images)
    ]
    return join([tag("div", *panels, class_="strip frames"), _caption(kind)])


def _caption(kind: _Kind, when: str = "") -> Html:
    source = _PREFIX + _png(np.arange(256, dtype=np.uint8)[None], kind.colours)
    bar = tag("img", src=source, alt="", width=80, height=10, class_="bar-image")
    colours = tag("span", kind.ends[0], " ", bar, " ", kind.ends[1], class_="colours")
    return tag("figcaption", tag("b", kind.name), when, " ", colours)


def _live(film: Film, kinds: list[_Kind]) -> Html:
    last, now, name = len(film.frames) - 1, len(film.frames) // 2, "frame of the movie"
    numbers = {"min": 0, "max": last, "value": now, "step": 1}
    slider = tag("input", type="range", id="frame", **numbers, aria_label=name, aria_describedby="when")
    play = tag("button", "Play", type="button", id="play")
    when = tag("output", film.when(now), id="when", for_="frame")
    panels = [_panel(film, kind, now, f"live-{kind.key}") for kind in kinds]
    controls = tag("div", play, slider, when, class_="controls")
    return tag("div", controls, tag("div", *panels, class_="grid"), class_="viewer", id="viewer")


def _strip(film: Film, kinds: list[_Kind]) -> Html:
    """Return the first, middle and last frame of each kind, for print and for browsers without script."""
    same = film.predicted is not None and len(film.frames) > 1 and np.array_equal(film.observed[0], film.predicted[0])
    picks = list(dict.fromkeys((int(same), len(film.frames) // 2, len(film.frames) - 1)))
    panels = []
    for k in picks:
        for kind in kinds:
            text = f"Field {kind.name}, {film.when(k)}; {kind.legend}."
            image = tag("img", src=_PREFIX + kind.images[k], alt=text, class_="pixels")
            panels.append(tag("figure", image, _caption(kind, f", {film.when(k)}")))
    return tag("div", *panels, class_=f"grid strip of-{len(kinds)}")


def encode(field: Array, limits: tuple[float, float], colours: str) -> str:
    """Return a field as a PNG of 256 colours in base64, the first row at the bottom; beyond the limits are the ends."""
    levels = np.clip((field - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)
    return _png(np.round(255.0 * levels).astype(np.uint8)[::-1], colours)


def _png(levels: Any, colours: str) -> str:
    import matplotlib as mpl
    from PIL import Image

    image, stream = Image.fromarray(np.ascontiguousarray(levels)), BytesIO()
    image.putpalette(mpl.colormaps[colours](np.arange(256), bytes=True)[:, :3].tobytes())
    image.save(stream, format="PNG", compress_level=9)
    return b64encode(stream.getvalue()).decode("ascii")
