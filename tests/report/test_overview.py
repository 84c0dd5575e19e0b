"""The overview of many movies: its table for a spreadsheet, its page, and whether laws agree."""

from __future__ import annotations

import csv
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from doublewell.errors import InputError
from doublewell.identify import identify
from doublewell.identify.agreement import compare_laws
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.report.overview import Entry, agreement_groups, csv_text, overview_html, summary_csv, summary_rows
from doublewell.simulate import add_noise, initial_field, simulate

OPTIONS = {"law": 1, "check": False}
HOSTILE = "=cmd|' /C calc'!A0<script>alert(1)</script>.npz"


def movie(law: str, seed: int) -> Record:
    start = initial_field("circle", (32, 32), 1 / 32, epsilon=0.08)
    clean = simulate(named_law(law), start, dx=1 / 32, dt=4e-4, frames=25, epsilon=0.08)
    return add_noise(clean, 0.02, seed=seed)


@pytest.fixture(scope="module")
def results():
    """Two movies of one law, and one of another."""
    return [identify(movie(law, seed), **OPTIONS) for law, seed in (("quartic", 1), ("quartic", 2), ("sixth", 3))]


@pytest.fixture(scope="module")
def entries(results):
    return [Entry.of(f"m{k}.npz", f"m{k}.npz/report.html", each) for k, each in enumerate(results)]


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_separate_laws_agree_where_they_are_one(results) -> None:
    same, other = compare_laws(results[:2], ["a", "b"]), compare_laws(results, ["a", "b", "c"])
    assert [test.agrees for test in same] == [True, True]
    assert [test.agrees for test in other] == [True, True, False]
    assert same[0].degrees == 2
    together = identify([movie("quartic", seed) for seed in (1, 2)], **OPTIONS).agreements
    assert same[0].chi2 == pytest.approx(together[0].chi2, rel=0.1, abs=0.1)  # the same evidence, at its own law


def test_what_cannot_be_compared_is_named(results) -> None:
    first = results[0]
    with pytest.raises(InputError, match="no error bands"):
        compare_laws([first, replace(first, posterior=None)], "ab")
    about = replace(first.problem.records[0], length_unit="um")
    with pytest.raises(InputError, match="unit of length differ"):
        compare_laws([first, replace(first, problem=replace(first.problem, records=(about,)))], "ab")
    with pytest.raises(InputError, match="not of one family"):
        compare_laws([first, identify(movie("quartic", 2), law=2, check=False)], "ab")


def test_movies_are_compared_under_the_same_conditions(entries) -> None:
    hot, cold = {"T": 400}, {"T": 300}
    given = [replace(entry, conditions=each) for entry, each in zip(entries, (cold, cold, hot), strict=True)]
    ((conditions, tests),) = agreement_groups(given)
    assert conditions == cold
    assert [test.record for test in tests] == ["m0.npz", "m1.npz"]
    each = [replace(entry, conditions={"T": k}) for k, entry in enumerate(entries)]
    ((conditions, tests),) = agreement_groups(each)  # no two share theirs: do they matter?
    assert conditions == {}
    assert [test.agrees for test in tests] == [True, True, False]
    page = overview_html(each)
    assert "All conditions together" in page
    assert "1 of 3 laws differ from the others by more than their errors: m2.npz." in page


def test_rows_hold_every_number_with_all_its_digits(entries, results) -> None:
    rows = cells(summary_csv(entries))
    assert [row["movie"] for row in rows] == ["m0.npz", "m1.npz", "m2.npz"]
    for row, result in zip(rows, results, strict=True):
        assert float(row["width"]) == result.law.interface_width()
        assert (float(row["width_low"]), float(row["width_high"])) == result.interval("width")
        assert float(row["coverage"]) == result.diagnostics.survey.coverage
    assert [row["agrees"] for row in rows] == ["True", "True", "False"]
    assert rows[0]["error"] == ""


def test_a_condition_called_like_a_fact_does_not_hide_it(entries) -> None:
    (row,) = summary_rows([replace(entries[0], conditions={"q": 5, "T": 3})])
    assert (row["q"], row["q (condition)"], row["T"]) == (1.0, 5, 3)


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(entries, first) -> None:
    text = f"{first}SUM(A1)"
    given = [replace(entries[0], name=text, conditions={text: text, "T": -3}), Entry(text, error=text)]
    for line in csv.reader(summary_csv(given).splitlines(keepends=True)):
        assert not any(cell.startswith(first) and not is_number(cell) for cell in line)
    assert ",-3," in summary_csv(given)  # a number is one


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Tags(HTMLParser):
    """Collect the elements and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.names.append(tag)
        self.links += [value for key, value in attrs if key in ("href", "src")]


def test_the_page_escapes_what_comes_from_files_and_loads_nothing(entries) -> None:
    plain = [replace(entries[0], conditions={"T": "x"}), Entry("b", error="y")]
    hostile = [replace(entries[0], name=HOSTILE, conditions={HOSTILE: HOSTILE}), Entry(HOSTILE, error=HOSTILE)]
    pages = [Tags(overview_html(each)) for each in (plain, hostile)]
    assert pages[0].names == pages[1].names
    assert pages[1].names.count("script") == 1
    assert all(link.startswith(("#", "data:,", "m0.npz/")) for link in pages[1].links)
    dollars = replace(entries[1], name="$\\frac{$.npz", page="$a b?.npz/report.html", conditions={"$T": 4})
    page = overview_html([replace(entries[0], conditions={"$T": 3}), dollars])
    assert 'href="%24a%20b%3F.npz/report.html"' in page


def test_the_page_shows_laws_numbers_and_what_failed(entries) -> None:
    given = [replace(entry, conditions={"T": 300 + k}) for k, entry in enumerate(entries)]
    page = overview_html([*given, Entry("bad.npz", error="it is damaged")])
    assert "No result: 1 of 4" in page
    assert "it is damaged" in page
    assert page.count("<svg") == 3  # potential, force, and a number over T
    assert 'id="trend-width' in page
    assert overview_html([*given, Entry("bad.npz", error="it is damaged")]) == page
    assert "it is damaged" in overview_html([Entry("bad.npz", error="it is damaged")])


def test_laws_without_bands_or_in_other_units_have_a_page(entries) -> None:
    weak = identify(movie("quartic", 1), method="weak", check=False)
    page = overview_html([Entry.of("weak", "weak/report.html", weak), entries[0]])
    assert "Not tested: some laws have no error bands" in page
    curves = [replace(curve, unit="1/um^2") for curve in entries[1].law]
    other = overview_html([entries[0], replace(entries[1], law=curves)])
    assert "other units" in other
    assert "<svg" not in other


def test_cells_that_begin_a_formula_are_text() -> None:
    found = ["=1+1", "+1", "-1", "@x", "\t=1", "epsilon", -1.5, ""]
    lines = [next(csv.reader([line])) for line in csv_text([{"cell": value} for value in found]).splitlines()[1:]]
    assert lines == [["'=1+1"], ["'+1"], ["'-1"], ["'@x"], ["'\t=1"], ["epsilon"], ["-1.5"], [""]]
