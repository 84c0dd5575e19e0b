"""Every kind of result with every renderer: all quote the same barrier, epsilon, wells and equation."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from doublewell.calibrate import SurfaceTension, Temperature
from doublewell.cli.identify import _text, result_document
from doublewell.curves import curves
from doublewell.errors import shell_words
from doublewell.export import export
from doublewell.facts import facts
from doublewell.findings import findings
from doublewell.law import Law
from doublewell.report import draw_figures, law_figure, page_html
from doublewell.report.style import signs
from doublewell.result import Rival

KINDS = (
    "symmetric", "units", "no tension", "exact tension", "equal", "unequal", "other phases", "equal, other phases",
    "window", "unknown q", "several movies", "tiles", "untested", "not adequate", "weak", "failed calibration",
    "stopped", "stopped before a fit",
    "thermal noise", "thermal noise and tension", "thermal noise without temperature",
)  # fmt: skip
GOLDEN = Path(__file__).parent / "golden"
NUMBER = r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
each_kind = pytest.mark.parametrize("name", KINDS)


@pytest.fixture
def kind(kinds, name):
    return kinds[name]


@pytest.fixture(scope="module")
def page_of(kinds):
    """Return the page of a kind, made once."""

    @cache
    def make(name):
        return page_html(kinds[name].result, kinds[name].record)

    return make


def first(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, pattern
    return float(found[1])


def close(value: float, expected: float, digits: int = 4) -> bool:
    return value == pytest.approx(expected, rel=10.0 ** (1 - digits), abs=1e-12)


def plain_words(html: str) -> str:
    """The text of a page as a reader sees it, with the signs of a keyboard."""
    body = re.sub(r"<(script|style|head|title|desc)\b.*?</\1>", " ", html, flags=re.DOTALL)
    body = re.sub(r"<sup>(.*?)</sup>", r"^\1", body)
    words = unescape(re.sub(r"<[^>]*>", " ", body)).replace("−", "-").replace("\xa0", " ")
    words = re.sub(r" × 10(\S+)", lambda x: "e" + x[1].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")), words)
    return " ".join(words.split())


def truth(result) -> dict[str, float]:
    """The numbers from the law itself, on a fine mesh: the barrier over the higher of the two phases."""
    low, high = result.law.phases
    u = np.linspace(low, high, 200_001)
    heights = result.primitive(u)
    top = int(np.argmax(heights))
    found = {"low": low, "high": high, "maximum": u[top], "height": heights[top] - max(heights[0], heights[-1])}
    if result.scale is not None:
        found |= {"epsilon": result.epsilon, "barrier": result.epsilon**2 * found["height"]}
    return found


@each_kind
def test_facts_are_those_of_the_law(kind):
    table, expected = facts(kind.result), truth(kind.result)
    for key, value in expected.items():
        if kind.result.structure.ok or key not in ("maximum", "height"):
            assert table[key].value == pytest.approx(value, rel=1e-6, abs=1e-5), key
    assert ("barrier" in table.numbers) is (kind.result.scale is not None)
    for fact in table.numbers.values():
        if fact.interval is not None:
            assert fact.interval[0] <= fact.value <= fact.interval[1], fact.key


@each_kind
def test_every_renderer_quotes_the_same_numbers(kind, name, page_of):
    """Text, command line, page, JSON of the command line, JSON and LaTeX of export, and every program."""
    result, table = kind.result, facts(kind.result)
    at, scaled = re.escape(f"{table['maximum'].value:.4g}"), "barrier" in table.numbers
    text = str(result)
    shell = _text(result, None, ())
    page, cell = plain_words(page_of(name)), plain_words(result._repr_html_())
    document = result_document(result, None)
    law = json.loads(export(result, "json"))
    latex = re.sub(r"\\times 10\^\{(-?\d+)\}", r"e\1", export(result, "latex"))
    flat = " ".join(text.split())
    for words in (flat, " ".join(shell.split())):
        assert table.equation in words
        assert f"the wells lie at u = {table['low'].value:g} and u = {table['high'].value:g}" in words
    for words in (page, cell):
        assert table.equation.replace(" ", "") in re.sub(r" \^", "^", words).replace(" ", "")
    assert f"the wells lie at u = {table['low'].value:g} and u = {table['high'].value:g}" in page
    for found in (document, law):
        assert found["equation"] == table.equation
        assert found["phases"] == [table["low"].value, table["high"].value]
        assert found["facts"]["height"]["value"] == table["height"].value
    assert rf"\int_{{{table['low'].value:g}}}^{{u}}G" in latex
    if not scaled:
        assert document["barrier"] is document["epsilon"] is None
        assert "barrier" not in law["facts"]
        assert "epsilon = " not in repr(result)
        return
    barrier, epsilon = table["barrier"].value, table["epsilon"].value
    for words in (flat, " ".join(shell.split())):
        assert close(first(rf"barrier F\({at}\) = {NUMBER}", words), barrier, 6)
        assert close(first(rf"epsilon = {NUMBER}", words), epsilon, 6)
    assert close(first(rf"F\({at}\) = {NUMBER}", page), barrier)
    assert close(first(rf"ε = {NUMBER}", page), epsilon)
    assert close(first(rf"barrier F\({at}\) {NUMBER}", cell), barrier)
    assert close(first(rf"ε = {NUMBER}", cell), epsilon)
    assert result.to_dict().items() <= document.items()
    assert (document["barrier"], document["epsilon"]) == (barrier, epsilon)
    assert (law["facts"]["barrier"]["value"], law["facts"]["epsilon"]["value"]) == (barrier, epsilon)
    assert close(first(rf"F\({at}\)\$ = \$?{NUMBER}", latex), barrier, 3)
    assert close(first(rf"\\varepsilon\$ = \$?{NUMBER}", latex), epsilon, 3)
    assert close(first(rf"epsilon = {NUMBER}", repr(result)), epsilon, 6)
    assert any(f"epsilon = {epsilon:.5g}" in item.get_text() for item in law_figure(result).findobj(match=is_text))


@pytest.mark.parametrize("name", [kind for kind in KINDS if kind.startswith("thermal")])
def test_every_renderer_quotes_the_tensions_of_a_movie_with_thermal_noise(kind, name, page_of):
    """Text, page, JSON and LaTeX: theta, both tensions, and the pixel size that the law belongs to."""
    result, table = kind.result, facts(kind.result)
    sigma = table.get("thermal_tension") or table["tension"]
    warm = result.problem.temperature or Temperature(1.0)
    kt, unit = warm.energy(2, table.data.length_unit)
    assert table["theta"].value == result.theta
    assert sigma.value == pytest.approx(kt * result.law.tension_integral / result.theta, rel=1e-9)
    assert table["capillary"].value == pytest.approx(kt * result.diagnostics.capillary[0], rel=1e-9)
    assert table["capillary"].unit == sigma.unit == (unit if result.problem.temperature else "kT/um")
    assert table["pixel"].value == pytest.approx(table.data.dx[0])
    text, page, latex = " ".join(str(result).split()), plain_words(page_of(name)), export(result, "latex")
    document, law = result_document(result, None), json.loads(export(result, "json"))
    for fact in (sigma, table["theta"], table["capillary"], table["pixel"]):
        assert close(first(rf"{re.escape(fact.name)}: {NUMBER}", text), fact.value, 6), fact.key
        assert document["facts"][fact.key]["value"] == law["facts"][fact.key]["value"] == fact.value
        assert signs(fact.name).replace("C_H", "C H") in page, fact.key
    assert all(words in latex for words in (r"\theta = kT/\kappa", "of the pixel scale", "capillary waves"))
    assert not re.search(r"(?<!\\)kappa C_H|C_H / theta", latex)
    assert "take the surface tension as exact" not in text


@pytest.mark.parametrize(("value", "code"), [(980.0, "agree"), (820.0, "disagree")])
def test_a_tension_that_was_given_is_compared_with_that_of_thermal_noise(make, value, code):
    """987.7 kT with an interval of 4 %."""
    law, warm = Law.bernstein([75.0, 150.0]), Temperature(1.0)
    result = make(law, tension=SurfaceTension(value, 10.0), theta=0.01, temperature=warm).result
    (item,) = [item for item in findings(result) if item.code.startswith("tensions-")]
    low, high = facts(result)["thermal_tension"].interval
    z = (facts(result)["thermal_tension"].value - value) / np.hypot(10.0, (high - low) / 3.92)
    assert item.code == f"tensions-{code}"
    assert item.severity == ("ok" if code == "agree" else "check")
    assert item.numbers["z"] == pytest.approx(z)
    assert item.numbers["p"] == pytest.approx(2.0 * norm.sf(abs(z)))
    assert f"{value:g} +- 10" in item.sentence


def test_tensions_are_compared_in_one_unit(make):
    film = {"theta": 0.01, "temperature": Temperature.of("300 K, 50 nm"), "units": ("um", "s")}
    law = Law.bernstein([75.0, 150.0])
    result = make(law, tension=SurfaceTension.of("0.0818 mN/m +- 2 %"), **film).result
    assert "tensions-agree" in [item.code for item in findings(result)]
    assert facts(result)["thermal_tension"].unit == "J/m^2"


def test_a_tension_is_not_compared_with_noise_that_is_not_thermal(make, kinds):
    law, warm, bad = Law.bernstein([75.0, 150.0]), Temperature(1.0), kinds["not adequate"].result.adequacy
    result = make(law, tension=SurfaceTension(820.0), theta=0.01, temperature=warm, adequacy=bad).result
    assert "tensions-not-compared" in [item.code for item in findings(result)]
    assert "thermal_tension" not in facts(result).numbers
    assert "capillary" in facts(result).numbers


def test_an_equation_that_noise_may_have_chosen_is_not_stated_clearly(make, kinds):
    rivals = (Rival("allen-cahn", 0.0, ""), Rival("cahn-hilliard", 1e4, "", 5.0))
    plain = replace(kinds["not adequate"].result, rivals=rivals)
    assert "equation-chosen" in [item.code for item in findings(plain)]
    first, *rest = plain.adequacy.tests
    tests = replace(plain.adequacy, tests=(replace(first, name="thermal", effect=None), *rest))
    noisy = replace(make(plain.law, adequacy=tests).result, rivals=rivals)
    items = {item.code: item for item in findings(noisy)}
    assert items["equation-undecided"].severity == "check"
    assert "temperature=" in items["equation-undecided"].advice
    assert "temperature=" in items["thermal-noise"].advice
    assert "equation-chosen" not in items


def is_text(artist):
    return hasattr(artist, "get_text")


@each_kind
def test_every_program_computes_the_law(kind):
    result, table = kind.result, facts(kind.result)
    low, high = result.law.phases
    u = np.linspace(low - 0.2, high + 0.2, 61)
    size = np.max(np.abs(result.force(u)))
    for format in ("python", "py-pde", "fipy", "moose", "sympy"):
        words = " ".join(export(result, format).replace("#", " ").split())
        assert table.equation in words, format
        if "barrier" in table.numbers:
            at = re.escape(f"{table['maximum'].value:.4g}")
            assert close(first(rf"barrier F\({at}\) = {NUMBER}", words), table["barrier"].value, 6), format
            assert close(first(rf"epsilon of the paper is {NUMBER}", words), table["epsilon"].value, 6), format
    module = run(export(result, "python"))
    assert np.allclose(module["force"](u), result.force(u), rtol=0, atol=1e-10 * size)
    if "barrier" in table.numbers:
        assert module["potential"](table["maximum"].value) == pytest.approx(table["barrier"].value, rel=1e-9)
        assert module["EPSILON"] == table["epsilon"].value


def run(text):
    names = {"__name__": "law"}
    exec(compile(text, "law.py", "exec"), names)
    return names


@each_kind
def test_findings_are_the_same_everywhere(kind, name, page_of):
    result = kind.result
    codes = [item.code for item in findings(result)]
    document = result_document(result, None)
    assert [item["code"] for item in document["findings"]] == codes
    assert [item["code"] for item in json.loads(export(result, "json"))["findings"]] == codes
    page, text = plain_words(page_of(name)), " ".join(str(result).split())
    for item in findings(result):
        if item.severity == "ok":
            continue
        start = " ".join(re.split(r"[\d=^'{]", item.sentence)[0].split()).replace("epsilon", "ε")
        assert start[1:] in page, item.code
        assert start.replace("ε", "epsilon")[1:] in text, item.code


@each_kind
def test_the_wording_of_the_report(kind, name):
    """One golden report for each kind, version, numbers and line ends aside; DOUBLEWELL_GOLDEN=1 writes them again."""
    report = re.sub(r"^doublewell \S+:", "doublewell #:", str(kind.result))
    text = "\n".join(
        " ".join(re.sub(r"(?<![\w.])[-+]?\d[\d.]*(?:e[-+]?\d+)?", "#", part).split()) for part in report.split("\n\n")
    )
    path = GOLDEN / f"{name.replace(', ', ' ').replace(' ', '-')}.txt"
    if os.environ.get("DOUBLEWELL_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


@each_kind
def test_figures_are_drawn(kind):
    drawn = draw_figures(kind.result, record=kind.record, formats=("png",))
    assert set(drawn) >= {"law.png", "fields.png"}
    assert ("residual.png" in drawn) is (curves(kind.result).residual is not None)


@pytest.mark.parametrize(("wells", "phases"), [("equal", (-1.0, 1.0)), ("unequal", (-1.0, 1.0)), ("equal", (0.0, 1.0))])
def test_the_heaviest_degree_has_an_equation_of_its_own(kinds, make, wells, phases):
    """The page printed the coefficients of asymmetric wells as those of symmetric ones, and raised at degree 4 or 5."""
    law = kinds["unequal" if wells == "unequal" else "equal"].result.law
    result = make(Law(law.family.at(1), law.projected(law.family.at(1))), wells=wells, phases=phases).result
    degree, weight, equation = facts(result).heaviest
    assert (degree, weight) == (4, 0.65)
    best = next(fit for fit in result.posterior.path if fit.degree == 4)
    assert equation == Law(result.posterior.family.at(4), best.coefficients).equation()
    assert equation.startswith("G(u) = -(1 - u^2) [" if phases == (-1.0, 1.0) else "G(u) = -0.5 (1 - s^2) [")


def test_the_page_names_the_phases_of_the_movie(page_of):
    """Colours, integrals and levels were those of the phases -1 and +1 for every movie."""
    html = page_of("other phases")
    page = plain_words(html)
    assert "dark is the phase 0, light the phase 1" in html
    assert "F(u) = ε² ∫ 0 ^u G(v) dv" in page
    assert "planar interface from u = 0.05 to 0.95" in page
    assert "the phase −1" not in html


def test_nothing_asks_for_a_boundary_or_for_q(kinds, page_of):
    for name in ("window", "unknown q", "weak"):
        result = kinds[name].result
        for words in (str(result), page_of(name), export(result, "latex")):
            assert not re.search(r"declare (?:a|the) boundary|pass q=|needs? q\b", words)


def test_advice_is_in_the_words_of_the_caller(kinds, page_of):
    result = kinds["weak"].result
    assert "use method='trajectory'" in " ".join(str(result).split())
    with shell_words():
        assert "use --method trajectory" in " ".join(str(result).split())
    assert "--method trajectory" in page_of("weak")


def test_what_is_assumed_is_not_among_what_was_found(kinds, page_of):
    assert "\nAssumed\n" in str(kinds["symmetric"].result)
    page = plain_words(page_of("symmetric"))
    assumed, found = page.split("Found:")[:2]
    assert "the wells are symmetric" in assumed
    assert "wells are symmetric" not in found.split("The printed report")[0]
