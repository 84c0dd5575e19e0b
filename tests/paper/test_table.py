import pytest

from doublewell_paper.table import Entry, Row, Table, latex, markdown, number

TABLE = Table(
    "errors",
    "Errors of 50 % & more",
    ("e_G", "count", "interval"),
    (
        Row("STAC m=2", (Entry(5.5, 5.0, 1.25), Entry(text="0/80", paper=0.0), Entry(text="-1, +1"))),
        Row("LS_5", (Entry(20.0, 5.0, 2.0, why="we know why."), Entry(), Entry(1.0, 0.0, limit=0.5)), "the row's own."),
        Row("other", (Entry(20.0, 5.0, 2.0, why="we know why."), Entry(3.0), Entry(-0.4, 0.0, limit=0.5))),
        Row("unknown", (Entry(1.0, 5.0, 2.0), Entry(), Entry())),
    ),
    ("a remark.",),
)


@pytest.mark.parametrize(
    ("entry", "marked"),
    [
        (Entry(5.0, 4.0, 1.25), False),
        (Entry(5.01, 4.0, 1.25), True),
        (Entry(3.2, 4.0, 1.25), False),
        (Entry(3.19, 4.0, 1.25), True),
        (Entry(-4.0, 4.0, 1.25), True),
        (Entry(5.0, 4.0), False),
        (Entry(None, 4.0, 1.25), False),
        (Entry(4.0, None, 1.25), False),
        (Entry(0.4, 0.0, limit=0.5), False),
        (Entry(0.6, 0.0, limit=0.5), True),
        (Entry(0.6, 0.0, 1.25), False),
    ],
)
def test_a_number_outside_its_range_is_marked(entry, marked):
    assert entry.marked is marked
    assert ("(!)" in entry.words()) is marked


def test_words_hold_ours_the_papers_and_the_ratio():
    assert Entry(5.5, 5.0, 1.25).words() == "5.5 [5; 1.10]"
    assert Entry(5.5).words() == "5.5"
    assert Entry(None, 5.0).words() == "- [5]"
    assert Entry(text="0/80", paper=0.0).words() == "0/80 [0]"
    assert Entry(float("nan")).words() == "-"


def test_markdown_is_a_table_with_notes():
    lines = markdown(TABLE).splitlines()
    assert lines[0] == "### Errors of 50 % & more"
    assert lines[2] == "|  | e_G | count | interval |"
    assert lines[4] == "| STAC m=2 | 5.5 [5; 1.10] | 0/80 [0] | -1, +1 |"
    assert {line.count("|") for line in lines if line.startswith("|")} == {5}
    assert "a remark." in lines
    assert "(!) LS_5, e_G; other, e_G: we know why." in lines
    assert "(!) LS_5, interval: the row's own." in lines
    assert "(!) unknown, e_G: outside the expected range, and we do not know why." in lines


def test_latex_has_the_same_cells_escaped():
    text = latex(TABLE)
    assert r"\caption{Errors of 50 \% \& more.}\label{tab:errors}" in text
    assert r"LS\_5 & 20 [5; 4.00] (!) & - & 1 [0] (!)\\" in text
    assert text.count("\\\\") == 1 + len(TABLE.rows)
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.545, "-0.545"), (12.34, "12.3"), (999.6, "1000"), (1e5, "100000"), (5.3e-5, "5.30e-05")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
