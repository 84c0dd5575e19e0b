"""Sections of a page: the parts below the summary, each a heading with its content."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from doublewell.legacy import held, law_class, percent, test_words
from doublewell.record import Record
from doublewell.report.error_figure import residual_map
from doublewell.report.page.advice import advice, plan_command
from doublewell.report.page.film import Film
from doublewell.report.page.law_charts import coverage_chart, force_chart, potential_chart, weights_chart
from doublewell.report.page.markup import Html, join, list_of, number, plain, prose, table, tag, tens
from doublewell.report.page.residual_charts import error_chart, frames_chart, map_chart, size_chart, tests_chart
from doublewell.report.page.summary import badge, equation_block, wells_table
from doublewell.report.page.verdicts import Finding
from doublewell.report.page.viewer import viewer
from doublewell.report.unit_words import after, q_unit
from doublewell.result import Result
from doublewell.validate import Validation

__all__ = ["Section", "sections"]

_LIBRARIES = ("numpy", "scipy", "jax", "jaxlib", "numba")
Section = tuple[str, str, Html]  # anchor, heading, content


def sections(
    result: Result, record: Record, film: Film, found: Validation | str, judged: Sequence[Finding], checksum: str
) -> list[Section]:
    """Return the sections in the order of reading; those without content are left out."""
    made = [
        ("law", "The law", join([equation_block(result), _grid(potential_chart(result), force_chart(result))])),
        ("wells", "Wells, barrier and scale", wells_table(result)),
        ("checks", "Can it be trusted?", _checks(judged)),
        ("better", "What would make it better", _better(result)),
        ("fields", "Fields: observed, predicted, difference", viewer(film)),
        ("residual", "What the fit leaves", _residual(result, record, found)),
        ("phases", "Phases seen, and degrees", _phases(result)),
        ("settings", "Settings, versions, checksum", _settings(result, checksum)),
        ("text", "The printed report", tag("details", tag("summary", "the report as text"), tag("pre", str(result)))),
    ]  # fmt: skip
    return [section for section in made if section[2]]


def _grid(*figures: Html) -> Html:
    return tag("div", *(item for item in figures if item), class_="grid pairs")


def _phases(result: Result) -> Html:
    return join([_grid(coverage_chart(result), weights_chart(result)), _degrees(result)])


def _checks(judged: Sequence[Finding]) -> Html:
    rows = [(item.question, badge(item.verdict), prose(item.words)) for item in judged]
    return table(("question", "verdict", "what was found"), rows, kind="checks")


def _better(result: Result) -> Html:
    said = list_of(advice(result), ordered=True)
    command = plan_command(result)
    if command is None:
        return said
    ask = "What a change of the movie would bring can be asked before it is made, here for a round drop:"
    return join([said, tag("p", ask), tag("pre", command, class_="command")])


def _residual(result: Result, record: Record, found: Validation | str) -> Html:
    fit, charts = result.diagnostics.likelihood, []
    if fit is not None:
        charts.append(map_chart(fit.residual_map, result.settings))
        if fit.adequacy is not None:
            charts.append(tests_chart(fit.adequacy))
        charts.append(frames_chart(fit, result.settings))
    elif not isinstance(found, str):
        charts.append(size_chart(residual_map(found, record), result.settings))
    if not isinstance(found, str):
        charts.append(error_chart(found, result.settings))
    why = Html()
    if fit is None:
        said = "The weak reading leaves no residual of its own"
        why = tag(
            "p",
            said
            + (f", and there is no prediction: {found}." if isinstance(found, str) else ": this is the prediction's."),
        )
    return join([why, _grid(*charts), _tests(result)])


def _tests(result: Result) -> Html:
    answer = result.adequacy
    if answer is None:
        return Html()
    rows = [
        (
            test.name,
            f"{'z' if test.degrees == 1 else 'χ²'} = {plain(test.statistic, 3)}",
            _chance(test.adjusted),
            prose(test_words(result)[test.name]),
        )
        for test in answer.tests
    ]
    head = ("test", "size", "chance, all tests counted", "in words")
    return tag("details", tag("summary", f"the {len(rows)} tests of the model in numbers"), table(head, rows))


def _chance(p: float) -> str:
    return "< 10⁻⁹⁹" if p < 1e-99 else plain(p, 2)


def _degrees(result: Result) -> Html:
    path = () if result.posterior is None else result.posterior.path
    if not path:
        alone = [(_coefficients((j,)), number(g, 5)) for j, g in enumerate(result.coefficients)]
        said = f"The weak reading has one degree, here {result.degree}; it does not choose it."
        return join([tag("p", said), table(("coefficient", "value"), alone)])
    rows = [
        (
            str(fit.degree),
            f"{fit.chi2:.1f}" if fit.chi2 < 1e6 else number(fit.chi2),
            percent(fit.weight) if fit.weight >= 5e-4 else "0",
            Html(held((), fit.contacts)) if fit.contacts else _coefficients(fit.active),
        )
        for fit in path
    ]
    head = (
        "degree",
        "χ² above the best",
        "weight",
        "touches zero at |u|" if result.settings.constraint == "admissible" else "at the bound",
    )
    return table(head, rows)


def _coefficients(which: tuple[int, ...]) -> Html:
    return join([item for j in which for item in (", ", "g", tag("sub", str(j)))][1:]) or Html("none")


def _settings(result: Result, checksum: str) -> Html:
    asked = result.settings
    rows: list[tuple[str, str]] = [
        ("file", "not from a file" if asked.source is None else asked.source.path),
        ("reading", asked.method),
        ("degree", str(asked.degree)),
        ("constraint", law_class(result)),
        ("ridge", "none" if asked.ridge is None else str(asked.ridge)),
        ("frames and pixels", " × ".join(str(n) for n in asked.shape)),
        ("pixel size dx", ", ".join(f"{h:.6g}" for h in dict.fromkeys(asked.dx)) + after(asked.length_unit)),
        ("frame interval dt", f"{asked.dt:.6g}{after(asked.time_unit)}"),
        ("diffusion coefficient q", tens(f"{asked.q:.6g}") + after(q_unit(asked)) + ", estimated" * asked.q_estimated),
        ("boundary", asked.boundary or "not declared"),
        ("weak test functions", _supports(result)),
        ("surface tension", "none" if asked.tension is None else _tension(result)),
        ("checksum of the values", checksum),
        ("made with", f"doublewell {asked.version}"),
        ("page made with", ", ".join([f"Python {platform.python_version()}", *_versions()])),
    ]  # fmt: skip
    if asked.source is not None and asked.source.reading:
        rows.insert(1, ("opened with", ", ".join(f"{name} = {value}" for name, value in asked.source.reading)))
    again = tag("p", "To do it again and compare every number: ", tag("code", "doublewell repeat result.json"))
    return join([table(("", ""), rows, kind="settings"), again])


def _supports(result: Result) -> str:
    length = after(result.settings.length_unit)
    listed = "; ".join(f"{n} frames, {x:.4g}{length}" for n, x in result.settings.supports)
    return f"half-widths {listed} ({result.settings.supports_rule})"


def _tension(result: Result) -> str:
    given = result.settings.tension
    assert given is not None
    error = "" if given.sd is None else f" ± {given.sd:.3g}"
    return f"{given.value:.6g}{error}{after(given.unit)}, of {given.normalisation}"


def _versions() -> list[str]:
    found = []
    for name in ("doublewell", *_LIBRARIES):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found
