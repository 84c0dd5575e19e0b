"""The pages keep their word: their code runs and prints what they show; names, commands and links are right."""

from __future__ import annotations

import doctest
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import doublewell as dw
from doublewell.difference import compare
from doublewell.law import named_law

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOOL = runpy.run_path(str(DOCS / "site/run_page.py"))
run_page, alike, rewritten = TOOL["run_page"], TOOL["alike"], TOOL["rewritten"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of the kernel's client
def test_the_tutorial_runs_and_prints_what_it_shows(tmp_path):
    for library in ("nbclient", "ipykernel", "tifffile", "pint", "pandas"):
        pytest.importorskip(library)
    blocks, notebook = TOOL["run_notebook"](DOCS / "tutorial.ipynb", tmp_path)
    assert len(blocks) == sum(cell.cell_type == "code" or "```sh" in cell.source for cell in notebook.cells)
    for block in blocks:
        assert block.same, f"{block.code}\nprinted\n{block.printed}"
    outputs = [item for cell in notebook.cells for item in cell.get("outputs", [])]
    assert not [item for item in outputs if item.get("name") == "stderr"]
    assert sum('class="doublewell"' in item.get("data", {}).get("text/html", "") for item in outputs) == 2
    assert sum("image/png" in item.get("data", {}) for item in outputs) == 2
    assert (tmp_path / "report/report.html").stat().st_size < 12e6
    result = dw.load_result(tmp_path / "report/result.json")
    u = np.linspace(-1, 1, 201)
    true = named_law("sixth").effective(0.24).force(u)
    assert np.linalg.norm(result.force(u) - true) < 0.02 * np.linalg.norm(true)
    assert compare(result, dw.load_result(tmp_path / "shell/result.json")).largest < 1e-6


def test_a_notebook_that_shows_something_else_is_found(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    made = nbformat.v4
    shown = [made.new_output("stream", text="2.5\n")]
    cells = [made.new_code_cell(code, outputs=shown) for code in ("print(2.5)", "print(3.5)")]
    nbformat.write(made.new_notebook(cells=cells), tmp_path / "page.ipynb")
    blocks, fresh = TOOL["run_notebook"](tmp_path / "page.ipynb", tmp_path)
    assert [block.same for block in blocks] == [True, False]
    assert fresh.cells[1].outputs[0].text == "3.5\n"


PAGES = (
    "anisotropy",
    "conserved",
    "degree",
    "driving",
    "fluctuating",
    "frames",
    "ising",
    "mass_conserving",
    "missing",
    "mobility",
    "noise",
    "noise_bias",
    "notebook",
    "optics",
    "several",
    "simulation_data",
    "unknown_diffusion",
    "windows",
)


@pytest.mark.parametrize("page", [f"{name}.md" for name in PAGES])
def test_a_page_runs_and_prints_what_it_shows(tmp_path, page):
    blocks = list(run_page((DOCS / page).read_text(), tmp_path))
    assert blocks
    for block in blocks:
        assert block.same, f"{block.code}\nprinted\n{block.printed}"


def test_the_page_on_folders_runs(tmp_path):
    text = (DOCS / "folders.md").read_text()
    (settings,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/doublewell.toml").write_text(settings)
    blocks = list(run_page(text, tmp_path))
    assert [block.same for block in blocks] == [True, True], blocks[-1].printed
    page = (tmp_path / "results/index.html").read_text()
    for place in ("T (K) = 300", "T (K) = 310", "T (K) = 320"):
        assert f"<h3>{place}</h3><p>All 2 laws agree within their errors.</p>" in page


@pytest.mark.skipif(find_spec("pint") is None, reason="needs doublewell[units]")
def test_the_page_on_grey_values_runs(tmp_path, capsys):
    names = {}
    (block,) = run_page((DOCS / "intensities.md").read_text(), tmp_path, names)
    assert block.same
    assert {item.name for item in names["record"].grey.found if item.kept} >= {"bad pixels", "uneven light", "fading"}


def test_the_page_on_export_runs(tmp_path):
    start = dw.initial_field("circle", (32, 32), 1 / 32, epsilon=0.1)
    movie = dw.simulate(named_law("sixth"), start, dx=1 / 32, dt=5e-4, frames=21, epsilon=0.1)
    dw.save(dw.identify(movie, method="weak"), tmp_path / "result.json")
    names = {}
    assert len(list(run_page((DOCS / "export.md").read_text(), tmp_path, names))) == 1
    assert "[Materials]" in names["text"]


def test_a_page_that_shows_something_else_is_found(tmp_path):
    text = "```python\nprint('two', 2.5)\n```\n\n```text\ntwo 3.5\n```\n\n```python\nx = 1\n```\n"
    first, second = run_page(text, tmp_path)
    assert not first.same
    assert second.same
    assert rewritten(text, [first, second]) == text.replace("3.5", "2.5")


def test_a_command_that_fails_stops_the_page(tmp_path, capsys):
    with pytest.raises(RuntimeError, match="exit code 2"):
        list(run_page("```sh\ndoublewell inspect nothing.npz\n```\n", tmp_path))
    with pytest.raises(ValueError, match="only commands of doublewell"):
        list(run_page("```sh\nrm movie.npz\n```\n", tmp_path))
    assert "nothing.npz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("p 1.25e-08", "p 1.26e-08", True), ("p 1.25e-08", "p 1.35e-08", False), ("3 steps", "4 steps", False),
        ("chi2 0.1", "chi2 0.2", True), ("chi2 0.1", "chi2 0.5", False), ("one two", "one  two", True),
        ("a 1", "a", False),
    ],
)  # fmt: skip
def test_texts_are_alike_up_to_rounding(one, other, same):
    assert alike(one, other) is same


def test_examples_in_the_tools():
    found = doctest.DocTestParser().get_doctest(alike.__doc__, {"alike": alike}, "alike", None, 0)
    assert doctest.DocTestRunner().run(found).failed == 0


def test_every_public_name_is_in_the_reference():
    said = re.findall(r"^\.\. auto\w+:: doublewell\.(\w+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE)
    assert len(said) == len(set(said))
    assert set(said) == set(dw.__all__)


def test_every_page_is_in_the_contents():
    listed = re.findall(r"^[\w-]+$", (DOCS / "index.md").read_text(), flags=re.MULTILINE)
    pages = {path.stem for path in DOCS.iterdir() if path.suffix in (".md", ".ipynb")} - {"index", "paper"}
    assert pages <= set(listed)


def test_formulas_are_whole_and_of_the_kind_that_github_typesets_too():
    """In a line GitHub takes a backslash before punctuation away; a formula of its own line is a fence named math."""
    fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)
    displayed = 0
    for page in DOCS.glob("*.md"):
        text = page.read_text()
        formulas = [body for kind, body in fence.findall(text) if kind == "math"]
        displayed += len(formulas)
        code = re.compile(r"^ {4}.*$", flags=re.MULTILINE)
        plain = re.sub(r"`[^`]*`", "", code.sub("", fence.sub("", text)))
        inside = re.findall(r"\$([^$]*)\$", plain)
        assert plain.count("$") == 2 * len(inside), page.name
        for formula in inside:
            assert not re.search(r"\\[^a-zA-Z]", formula), (page.name, formula)
            assert "\n" not in formula, (page.name, formula)
            assert formula == formula.strip(), (page.name, formula)
        for formula in (*formulas, *inside):
            assert formula.count("{") == formula.count("}"), (page.name, formula)
            assert formula.count("\\begin") == formula.count("\\end"), (page.name, formula)
    assert displayed > 20


def test_every_command_is_on_the_page_of_the_command_line():
    from doublewell.cli import _app

    commands = {name for name in _app() if not name.startswith("-")}
    said = set(re.findall(r"^\| `(\w+)", (DOCS / "cli.md").read_text(), flags=re.MULTILINE))
    assert said == commands


def test_links_to_headings_lead_to_one():
    for page in DOCS.glob("*.md"):
        for target, place in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", page.read_text()):
            text = (DOCS / target if target else page).read_text()
            headings = {
                re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
                for line in text.splitlines()
                if line.startswith("#")
            }
            assert place in headings, (page.name, target, place)
