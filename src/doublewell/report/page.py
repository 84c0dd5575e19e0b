"""Page: a result with its record as one HTML file that needs nothing else."""

from __future__ import annotations

import platform
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from os import PathLike
from pathlib import Path

import numpy as np

from doublewell.atomic import write_files
from doublewell.curves import Curves, curves
from doublewell.errors import InputError, shell_words
from doublewell.facts import METHODS, THERMAL, Fact, Facts, facts
from doublewell.findings import ModelTest, findings, model_tests, worst
from doublewell.hints import Report
from doublewell.observation import FEW_CELLS
from doublewell.progress import reporting
from doublewell.record import Record, check_record, checksum
from doublewell.record_findings import Finding, Severity
from doublewell.report import pictures
from doublewell.report.figures import rms_map
from doublewell.report.style import Html, html_table, join, math, measured, plain, prose, signs, tag
from doublewell.report.text import NOTHING, report_text, tilt_sentence
from doublewell.result import Result
from doublewell.units import after, percent, raised
from doublewell.validate import Validation
from doublewell.version import __version__

_SYMBOLS = {Severity.OK: "✔", Severity.CHECK: "◆", Severity.FAIL: "✖"}  # distinguished without colour
_VERDICTS = {
    Severity.OK: NOTHING,
    Severity.CHECK: "Usable, but first read what is marked “check”.",
    Severity.FAIL: "Unreliable: something is wrong that changes the numbers.",
}
_QUESTIONS = {
    "data": "Is this the movie of the result?",
    "equation": "Which equation does the movie follow?",
    "convergence": "Did the fit converge?",
    "model": "Does the movie follow this model?",
    "precision": "How precise is the law?",
    "resolution": "Are steps and pixels fine enough?",
    "constraint": "Does the constraint fit the data?",
    "moments": "Do the weak moments agree with the law?",
    "diffusion": "Is q determined?",
    "structure": "Is it a double well?",
    "movie": "Is the movie good enough?",
    "determination": "Is the law determined everywhere?",
    "contrast": "Is the contrast known?",
    "grey levels": "Are the grey values good enough?",
    "scale": "Are ε and F fixed?",
    "agreement": "Do all parts agree?",
}
_LISTED = 4  # findings in the box at the top
_REACH = 1.96  # standard deviations of a 95 % band
_MOST = 0.5  # fraction of the variance of epsilon from which the tension is what to improve first
Section = tuple[str, str, Html]  # anchor, heading, content


def write_page(
    result: Result, record: Record, path: str | PathLike[str], *, validation: Validation | None = None,
    progress: Report | bool | None = None,
) -> Path:  # fmt: skip
    """Write a result with its record as one HTML page that opens offline, and return its path.

    The page holds its style, script and pictures, and makes no request. Where the boundary is declared the law is
    evolved to show a prediction, from the initial field of the fit where the result holds it, and else from the first
    frame; `validation` is used instead where it is given. Large records are thinned, and the page tells so. The file is
    there whole or not at all. `progress` is True, which shows a bar, or called with (what is done, steps done, steps).
    """
    place = Path(path).expanduser()
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{place}: expected a name that ends in .html for a page")
    text = page_html(result, record, validation=validation, progress=progress)
    return write_files([(place, text.encode("utf-8"))])[0]


def page_html(
    result: Result, record: Record, *, validation: Validation | None = None, progress: Report | bool | None = None
) -> str:
    """Return the page as text; the same result and record give the same text. Options are those of the shell."""
    if not isinstance(result, Result):
        raise InputError(
            f"expected a Result, got {type(result).__name__}: call write_page(identify(record), record, path)"
        )
    check_record(record)
    with reporting(progress) as report, shell_words():  # a page is read by people who may never see the call
        table, shown = facts(result), curves(result)
        if record.shape != table.data.shape:
            raise InputError(
                f"the record is of shape {record.shape} and the result of {table.data.shape}: expected the record that "
                "the result came from"
            )
        say = report or (lambda *_: None)
        say("checking the data", 0, 0)
        digest = checksum(record, like=table.data.checksum)
        found = validation or pictures.predicted(result, record, progress=partial(say, "evolving"))
        say("drawing", 0, 0)
        items, tests = findings(result, checksum=digest, table=table), model_tests(result)
        film = pictures.make_film(record, found, notes=(pictures.origin(table, found),), phases=table.law.phases)
        charts = pairs(pictures.law_chart(curve, shown) for curve in shown.quoted)
        printed = tag("details", tag("summary", "the report as text"), tag("pre", report_text(result)))
        parts: list[Section] = [
            ("law", "The law", join([equations(table), charts])),
            ("wells", "Wells, barrier and scale", numbers(table)),
            ("checks", "Can it be trusted?", checks(items)),
            ("better", "What would improve it", _better(table, shown, items)),
            ("fields", "Fields: observed, predicted, difference", pictures.viewer(film)),
            ("residual", "What the fit leaves", _residual(table, shown, tests, record, found)),
            ("phases", "Phases visited, and degrees", _phases(table, shown)),
            ("settings", "Settings, versions, checksum", _settings(table, digest)),
            ("text", "The printed report", printed),
        ]
    top = [
        tag("h1", "Free energy from ", tag("span", table.title, class_="file")),
        verdict_box(items),
        _lead(table, items),
    ]
    return document(table.title, top, [part for part in parts if part[2]])


def document(title: str, top: list[Html], parts: list[Section]) -> str:
    """Return a whole page with its style and script, and a policy that allows nothing else."""
    style, script = (
        files("doublewell.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title}: free energy"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
    )
    links = tag("nav", *(tag("a", heading, href=f"#{anchor}") for anchor, heading, _ in parts), aria_label="contents")
    body = [tag("section", tag("h2", heading), content, id=anchor) for anchor, heading, content in parts]
    main = tag("main", tag("header", *top, links), *body)
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", main, tag("script", Html(script))), lang="en") + "\n"


def _hash(text: str) -> str:
    """Return what the policy calls a text, so that nothing else is run or applied, whatever a file name holds."""
    return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


# --- the head ---------------------------------------------------------------------------------------------------------


def badge(severity: Severity) -> Html:
    """Return a severity as a sign and a word."""
    sign = tag("span", _SYMBOLS[severity], aria_hidden="true")
    return tag("span", sign, f" {severity}", class_=f"badge {severity}")


def verdict_box(items: list[Finding], most: int = _LISTED) -> Html:
    """Return the worst severity with what it rests on, `most` findings at most."""
    severity = worst(items)
    why = [item for item in items if item.severity == severity != Severity.OK]
    reported = [tag("li", tag("b", _QUESTIONS[item.topic]), " ", prose(str(item))) for item in why[:most]]
    more = tag("p", tag("a", f"and {len(why) - most} more", href="#checks")) if len(why) > most else Html()
    listed = tag("ul", *reported) if reported else Html()
    return tag("div", tag("p", badge(severity), " ", _VERDICTS[severity]), listed, more, class_=f"box {severity}")


def checks(items: list[Finding]) -> Html:
    """Return all findings as answers to the questions that they belong to."""
    answers = [(_QUESTIONS[item.topic], badge(item.severity), prose(str(item))) for item in items]
    return html_table(("question", "verdict", "finding"), answers, kind="checks")


def _lead(table: Facts, items: list[Finding]) -> Html:
    """Return what was asked, what is assumed, what was found and how precise it is."""
    mesh, tension, also = " × ".join(str(n) for n in table.data.shape[1:]), table.tension, ""
    if tension is not None:
        also = f", and with the surface tension {plain(tension.value)}{raised(after(tension.unit))} its scale ε"
        also = f", and with {source} its scale ε" if (source := table.problem.scale_from) else also
    question = f"Which free energy drives this movie of {table.data.shape[0]} frames of {mesh} pixels{also}?"
    reported = (
        ("Question:", question),
        ("Assumed:", prose("; ".join(table.assumptions)) + "."),
        ("Found:", _found(table, items)),
        ("Precision:", _precision(table, items)),
    )
    return tag("div", *(tag("p", tag("b", head), " ", body) for head, body in reported), class_="sentences")


def _found(table: Facts, items: list[Finding]) -> str:
    kind = "The energy is a double well" + (", as assumed" if table.problem.law.constraint != "none" else "")
    if table.law.coexists:
        pair = (f"u = {_value(table[key], _holds(items))}" for key in ("low", "high"))
        kind = f"Two phases coexist, {' and '.join(pair)}"
    if not table.structure.ok:
        kind = f"The energy is not a double well with a single barrier: {table.structure}"
        kind = "The movie shows one phase" if table.law.one_phase else kind
    tilt, barrier, epsilon = table.get("tilt"), table.get("barrier"), table.get("epsilon")
    if tilt is not None and tilt.value != 0.0:
        kind = f"{kind}; {signs(tilt_sentence(table, tilt))}"
    holds = _holds(items)
    place = "" if table.law.family.symmetric else f" at u = {_value(table['maximum'], holds)}"
    top = barrier or table["height"]
    found = f"{kind}; its barrier{place} is "
    if (energy := table.get("physical_barrier")) is not None:
        kappa = _value(table["physical_kappa"], holds)
        found += f"{signs(energy.symbol)} = {_value(energy, holds)}, and κ = {kappa}. In the paper's pair it is "
    found += f"{top.symbol} = {_value(top, holds)}, and "
    return f"{found}F and ε are not determined." if epsilon is None else f"{found}ε = {_value(epsilon, holds)}."


def _value(fact: Fact, holds: bool, digits: int = 4) -> str:
    """Return a number with its unit, and with its interval where the bands hold."""
    text = f"{measured(fact.value, digits)}{raised(after(fact.unit))}"
    if fact.interval is None or not holds:
        return text
    return f"{text} (95 %: {measured(fact.interval[0], digits)} to {measured(fact.interval[1], digits)})"


def _holds(items: list[Finding]) -> bool:
    """Whether the tests did not refuse the model, so that its bands may be quoted."""
    return not any(item.code == "bands-invalid" for item in items)


def _precision(table: Facts, items: list[Finding]) -> str:
    if not table.banded:
        return "No error bands are known: the weak-form fit has no noise model. The numbers have no stated error."
    first = next(prose(str(item)) for item in items if item.topic == "model" and not item.where)
    if not _holds(items):
        return f"Unreliable: the 95 % bands do not hold. {first}."
    curve, over = ("q G'", "values") if table.law.one_phase else ("The force", "phases")
    size = percent(table["force_band"].value)
    return f"{curve} is known to ±{size} (95 % band, on average over the {over}). {first}."


# --- sections ---------------------------------------------------------------------------------------------------------


def equations(table: Facts) -> Html:
    """Return the equation of motion and the law, and the heaviest degree alone where degrees are averaged."""
    ends = tag("sub", plain(table["low"].value)), tag("sup", "u")
    lines = [tag("p", math(table.motion), class_="equation"), tag("p", math(table.equation), class_="equation")]
    for key, head, symbol in (("physical_kappa", "f(u) = κ ∫", "κ"), ("epsilon", "F(u) = ε² ∫", "ε")):
        if (scale := table.get(key)) is not None:
            value = f"{measured(scale.value, 5)}{raised(after(scale.unit))}"
            lines.append(tag("p", head, *ends, f" G(v) dv,  {symbol} = {value}", class_="equation"))
    if table.heaviest is not None:
        degree, weight, equation = table.heaviest
        words = (
            f"This is the average over degrees. Degree {degree} has the largest weight ({percent(weight)}); alone it"
        )
        lines += [tag("p", f"{words} reads"), tag("p", math(equation), class_="equation")]
    return join(lines)


def numbers(table: Facts) -> Html:
    """Return the numbers to quote, with their intervals."""
    keys = ["barrier", "epsilon", "kappa", "tension", "height", "curvature_low", "curvature_high", "curvature_barrier"]
    if not table.law.family.symmetric:
        keys = ["maximum", *keys[:4], "height_low", "height_high", "tilt", *keys[5:]]
    if table.law.family.found:
        keys = ["diffusion", "low", "high", "spinodal_low", "spinodal_high", "chi", *keys]
    listed = [table[key] for key in [*keys, "width", "tension_integral", *THERMAL] if key in table.numbers]
    notes = [prose(table.no_scale)] if table.no_scale else []
    if table.verdict == "not adequate":
        notes.append("The intervals do not hold: the movie is not this model plus noise.")
    if not table.banded:
        notes.append("No intervals: the weak-form fit has no noise model.")
    law = [_fact_table(table, listed), *(tag("p", note, class_="note") for note in notes)]
    if not table.units:
        return join(law)
    units = [tag("h3", "In physical units"), *(tag("p", signs(line)) for line in table.units)]
    if known := [fact for key, fact in table.numbers.items() if key.startswith("physical_")]:
        return join([*units, _fact_table(table, known), tag("h3", "In the units of the movie"), *law])
    return join([*law, *units])


def _fact_table(table: Facts, listed: Sequence[Fact]) -> Html:
    rows = []
    for fact in listed:
        if np.isfinite(fact.value):
            name = Html(join([signs(fact.name)]).replace("C_H", "C<sub>H</sub>"))
            rows.append((name, plain(fact.value, 5) + raised(after(fact.unit)), _error(table, fact)))
    return html_table(("", "value", "95 % interval"), rows)


def _error(table: Facts, fact: Fact) -> str:
    """Return the interval of a number, or where it comes from."""
    if fact.key == "tension" and not table.problem.scale_from:
        return "taken as exact" if fact.sd is None else f"± {plain(fact.sd, 2)}, as given"
    if fact.interval is not None:
        shared = table.get("tension_fraction") if fact.key == "epsilon" else None
        fraction = 0.0 if shared is None else shared.value
        part = f"; {percent(fraction)} of the variance from the surface tension" if fraction else ""
        return f"{measured(fact.interval[0], 5)} to {measured(fact.interval[1], 5)}{part}"
    return f"± {plain(fact.sd, 2)} from the surface tension alone" if fact.sd is not None else ""


def _residual(table: Facts, shown: Curves, tests: Sequence[ModelTest], record: Record, found: Validation | str) -> Html:
    charts, why = [*pictures.residual_charts(shown, table, tests)], Html()
    if not isinstance(found, str):
        charts += [] if charts else [pictures.rms_chart(rms_map(found, record), record)]
        charts.append(pictures.error_chart(found, record.time_unit))
    if shown.residual is None:
        end = f", and there is no prediction: {found}." if isinstance(found, str) else ": this is the prediction's."
        why = tag("p", f"The weak-form fit has no residual of its own{end}")
    rows = [
        (test.name, f"{'z' if test.symbol == 'z' else 'χ²'} = {plain(test.statistic, 3)}",
         "< 10⁻⁹⁹" if test.adjusted < 1e-99 else plain(test.adjusted, 2), prose(test.sentence))
        for test in tests
    ]  # fmt: skip
    head = ("test", "size", "probability, adjusted", "in words")
    listed = tag("details", tag("summary", f"the {len(rows)} tests of the model in numbers"), html_table(head, rows))
    return join([why, pairs(charts), listed if rows else Html()])


def pairs(charts: Iterable[Html]) -> Html:
    """Return charts side by side, below each other where there is no room."""
    return tag("div", *charts, class_="grid pairs")


def _phases(table: Facts, shown: Curves) -> Html:
    visited = pictures.coverage_chart(shown.edges, shown.fractions, shown.coverage)
    charts = pairs(filter(None, (visited, pictures.weights_chart(shown))))
    if not table.degrees:
        rows = [(_subscript(g.symbol), plain(g.value, 5)) for g in table.coefficients]
        words = f"The weak-form fit has one degree, here {table.law.family.degree}; it does not choose it."
        return join([charts, tag("p", words), html_table(("coefficient", "value"), rows)])
    listed = [
        (str(fit.degree), f"{fit.chi2:.1f}" if fit.chi2 < 1e6 else plain(fit.chi2),
         percent(fit.weight) if fit.weight >= 5e-4 else "0", _subscript(fit.held) if fit.held else "none")
        for fit in table.degrees
    ]  # fmt: skip
    return join([charts, html_table(("degree", "χ² above the best", "weight", table.held_heading), listed)])


def _subscript(names: str) -> Html:
    parts = [name.partition("_") for name in names.split(", ")]
    return join([x for name, _, k in parts for x in (", ", name, tag("sub", k) if k else "")][1:])


def _settings(table: Facts, digest: str) -> Html:
    data, source, tension = table.data, table.data.source, table.tension
    length, time = raised(after(data.length_unit)), raised(after(data.time_unit))
    given = "none"
    if tension is not None:
        error = "" if tension.sd is None else f" ± {tension.sd:.3g}"
        given = f"{tension.value:.6g}{error}{raised(after(tension.unit))}, of {tension.normalisation}"
        given += f", by {table.problem.scale_from}" if table.problem.scale_from else ""
    opened = [] if source is None else [f"{name} = {value}" for name, value in source.reading]
    q = table["q"]
    diffusion = signs(f"{q.value:.6g}") + raised(after(q.unit)) + (f", {q.note}" if q.note else "")
    versions = [f"Python {platform.python_version()}", f"doublewell {__version__}"]
    versions += [f"{name} {version(name)}" for name in ("numpy", "scipy", "jax", "jaxlib", "numba")]
    rows: list[tuple[str, str]] = [
        ("file", "not from a file" if source is None else source.path),
        *([("opened with", ", ".join(opened))] if opened else []),
        ("method", METHODS[table.method]),
        ("degree", str(table.problem.degree)),
        ("class of laws", table.law_class),
        ("frames and pixels", " × ".join(str(n) for n in data.shape)),
        ("pixel size dx", ", ".join(f"{h:.6g}" for h in dict.fromkeys(data.dx)) + length),
        ("frame interval dt", f"{data.dt:.6g}{time}"),
        ("diffusion coefficient q", diffusion),
        ("boundary", data.boundary or "not declared"),
        ("weak test functions", table.supports),
        ("surface tension", given),
        ("checksum of the values", digest),
        ("made with", f"doublewell {table.version}"),
        ("page made with", ", ".join(versions)),
    ]
    again = tag("p", "To do it again and compare every number: ", tag("code", "doublewell repeat result.json"))
    return join([html_table(("", ""), rows, kind="settings"), again])


# --- what would improve a result --------------------------------------------------------------------------------------


def _better(table: Facts, shown: Curves, items: Sequence[Finding]) -> Html:
    reported = tag("ol", *(tag("li", item) for item in advice(table, shown, items)))
    data, noise = table.data, table["noise"].value
    if not table.banded or len(data.shape) != 3 or data.boundary not in ("periodic", "neumann"):
        return reported
    mesh = "x".join(str(n) for n in data.shape[1:])
    step = ",".join(f"{h:.6g}" for h in dict.fromkeys(data.dx))
    command = (
        f"doublewell plan --law result.json --mesh {mesh} --dx {step} --dt {data.dt:.6g} --frames {data.shape[0]} "
        f"--noise {noise:.2g} --q {table['q'].value:.6g} --boundary {data.boundary}"
    )
    ask = "What a change of the movie would bring can be computed before it is made, here for a round drop:"
    return join([reported, tag("p", ask), tag("pre", command, class_="command")])


def advice(table: Facts, shown: Curves, items: Sequence[Finding]) -> Iterator[str]:
    """Yield what to do to improve a result, what matters most first."""
    codes = {item.code: item for item in items}
    model = [item for item in items if item.topic == "model" and not item.where and item.severity != Severity.OK]
    if model and model[0].code != "model-untested":
        yield f"First fix what the tests found, and fit again. {prose(str(model[0]))}."
    if not table.banded:
        yield "Use the trajectory fit (leave out --method weak): it gives error bands and tests the model."
    yield from _scale_advice(table)
    ranges = [f"{plain(low, 2)} to {plain(high, 2)}" for low, high in shown.unseen]
    if ranges:
        yield (
            f"A movie that shows the phase values {' and '.join(ranges)} too: there the law rests on its form alone. "
            "Moving interfaces show all of them."
        )
    cells = table.get("cells")
    if cells is not None and cells.value < FEW_CELLS:
        finer = plain(max(table.data.dx) * cells.value / FEW_CELLS, 2)
        yield (
            f"Finer pixels: an interface spans {cells.value:.1f} of them, and {FEW_CELLS:g} or more are better "
            f"(dx at most {finer}{raised(after(table.data.length_unit))})."
        )
    reported = ("interface-few-cells", "phase-range-not-covered")
    for item in items:
        if item.topic == "movie" and item.severity != Severity.OK and item.code not in reported:
            yield f"{prose(str(item))}."
    if table.banded and "bands-invalid" not in codes:
        yield from _band_advice(table, shown)


def _scale_advice(table: Facts) -> Iterator[str]:
    epsilon, fraction, movie = table.get("epsilon"), table.get("tension_fraction"), table.get("epsilon_sd_movie")
    if epsilon is None:
        if table.tension is None:
            yield "Measure a surface tension by other means and pass it: it fixes ε and the potential F."
    elif fraction is None or movie is None:
        return
    elif table["tension"].sd is None:
        yield "Pass the standard deviation of the surface tension, so that the interval of ε includes it too."
    elif fraction.value > _MOST:
        now = _REACH * movie.value / epsilon.value / np.sqrt(1.0 - fraction.value)
        exact = percent(_REACH * movie.value / epsilon.value)
        yield (
            f"A better surface tension: {percent(fraction.value)} of the variance of ε comes from it. With an exact "
            f"one ε would be known to ±{exact} instead of ±{percent(now)} (95 %)."
        )


def _band_advice(table: Facts, shown: Curves) -> Iterator[str]:
    """Yield how the bands shrink: their width is proportional to the noise, and to one over the root of the frames."""
    size = table["force_band"].value
    half, twice = 0.5 * size, float(np.sqrt(0.5)) * size
    yield (
        f"Less noise: it is {table['noise'].value:.2g} per pixel, and half of it would narrow the band of G from "
        f"±{percent(size)} to about ±{percent(half)}. Twice the frames in the same time give about ±{percent(twice)}."
    )
    force = shown.law[0]
    if force.low is not None and force.high is not None:
        place = float(force.u[int(np.argmax(force.high - force.low))])
        sign = "±" if table.law.family.even else ""
        yield (
            f"The force is least certain near u = {sign}{abs(place) if sign else place:.2f}: frames with more values "
            "there (more interface, or one that moves more) help most."
        )
