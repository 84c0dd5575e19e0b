"""The check of the built site finds what is wrong with it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

faults = runpy.run_path(str(Path(__file__).parents[2] / "docs/site/check_site.py"))["faults"]

GOOD = """<html><head><link rel="stylesheet" href="style.css?v=1"><script src="run.js"></script></head>
<body><h1 id="top">A</h1><a href="other.html#there">x</a><a href="#top">y</a><a href="https://example.org/a">out</a>
<a href="mailto:a@b.c">m</a><img src="data:image/png;base64,AA"></body></html>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "other.html").write_text('<p id="there">B <a href="index.html">back</a></p>')
    (tmp_path / "style.css").write_text("body { background: url(data:image/png;base64,AA) }")
    (tmp_path / "run.js").write_text("fetch('here.json') // see https://example.org")
    return tmp_path


def test_a_good_site_has_no_faults(site):
    assert list(faults(site)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("other.html#there", "gone.html", "links to gone.html, which is not there"),
        ("other.html#there", "other.html#gone", "has no such place"),
        ("#top", "#bottom", "has no such place"),
        ("run.js", "gone.js", "loads gone.js, which is not there"),
        ("run.js", "https://example.org/run.js", "from outside"),
        ("style.css?v=1", "//example.org/style.css", "from outside"),
        ("data:image/png;base64,AA", "http://example.org/x.png", "from outside"),
    ],
)
def test_a_fault_of_a_page_is_found(site, old, new, said):
    page = site / "index.html"
    page.write_text(page.read_text().replace(f'"{old}"', f'"{new}"'))
    (fault,) = faults(site)
    assert fault.startswith("index.html: ")
    assert said in fault


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("style.css", "@import url('https://example.org/font.css');"),
        ("style.css", "a { background: url(//example.org/x.png) }"),
        ("run.js", 'fetch("https://example.org/data.json")'),
    ],
)
def test_styles_and_scripts_load_nothing_from_outside(site, name, text):
    (site / name).write_text(text)
    (fault,) = faults(site)
    assert fault.startswith(f"{name}: loads ")


def test_an_empty_site_is_a_fault(tmp_path):
    assert list(faults(tmp_path)) == [f"{tmp_path} holds no page"]
