"""The site's settings: docstrings become the generator's markup without losing a character."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

CONF = runpy.run_path(str(Path(__file__).parents[2] / "docs/site/conf.py"))


def read(text: str) -> list[str]:
    lines = text.split("\n")
    CONF["plain"](None, "function", "name", None, None, lines)
    return lines


@pytest.mark.parametrize(
    ("line", "markup"),
    [
        ("bound max |F~ - F| by a * b", r"bound max \|F~ - F\| by a \* b"),
        ("the name_ of `a*b`, ``c|d``", r"the name\_ of `a*b`, ``c|d``"),
        ("g_j and C_H stay", "g_j and C_H stay"),
        (">>> 2 * 3 | 1", ">>> 2 * 3 | 1"),
    ],
)
def test_signs_of_the_markup_are_kept_as_text(line, markup):
    assert read(line) == [markup]


def test_parameters_are_a_list_that_text_may_follow():
    found = read("Do it.\n\nParameters\n----------\ndx, dt\n    Steps.\n\nText that\ngoes on.")
    assert found == [
        "Do it.", "", ".. rubric:: Parameters", "", "``dx``, ``dt``", "    Steps.", "", "Text that", "goes on.",
    ]  # fmt: skip


def test_signatures_name_the_alias():
    assert CONF["short"]("app", "what", "(u: TypeAliasForwardRef('Array') | None)", None) == ("(u: Array | None)", None)


def test_the_paper_is_in_the_contents_when_it_is_made(tmp_path, monkeypatch):
    for made in (False, True):
        monkeypatch.setitem(CONF["contents"].__globals__, "ROOT", tmp_path)
        (tmp_path / "docs").mkdir(exist_ok=True)
        if made:
            (tmp_path / "docs/paper.md").touch()
        source = ["theory\npaper\ndesign\n"]
        CONF["contents"](None, "index", source)
        assert ("paper" in source[0]) is made
