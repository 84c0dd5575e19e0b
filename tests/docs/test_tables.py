"""Tables of pages are those of the stored results."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def module(request):
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module(request.param)
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in (request.param, "fluctuating", "moose", "common"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(("module", "page"), [("folder", "folders"), ("install_size", "install")], indirect=["module"])
def test_the_tables_of_folders_and_of_the_install(module, page):
    name = module.__name__
    content = json.loads((BENCHMARKS / f"results/{name}.json").read_text())
    text = (BENCHMARKS.parent / f"docs/{page}.md").read_text()
    assert f"<!-- numbers: benchmarks/results/{name}.json -->\n{module.table(content)}\n" in text


@pytest.mark.parametrize("module", ["fluctuating", "thermal_detection"], indirect=True)
def test_the_tables_of_fluctuating_movies(module):
    name = module.__name__
    rows = json.loads((BENCHMARKS / f"results/{name}.json").read_text())["rows"]
    page = (ROOT / "docs/fluctuating.md").read_text()
    assert f"<!-- numbers: benchmarks/results/{name}.json -->\n{module.table(rows)}\n" in page


@pytest.mark.parametrize("module", ["validation_page"], indirect=True)
def test_the_table_of_all_coverage_studies(module):
    page, table = module.PAGE.read_text(), module.table()
    assert f"<!-- numbers: {module.MARKER} -->\n{table}\n\n" in page
    assert all(88 <= int(covered) <= 100 for covered in re.findall(r"(\d+) \|$", table, flags=re.MULTILINE))


@pytest.mark.parametrize("module", ["public_records"], indirect=True)
def test_the_table_of_public_records(module):
    rows, page = module.kept(), module.PAGE.read_text()
    assert f"<!-- numbers: {module.MARKER} -->\n{module.table(rows)}\n\n" in page
    methods = {(row["record"], row["given"], row["method"]) for row in rows}
    assert {(case.name, case.given, "doublewell") for case in module.CASES} <= methods
    assert all((case.name, case.given, "PySINDy") in methods for case in module.CASES if case.pysindy)
    assert all(case.file in page for case in module.CASES)
    assert module.renewed(page, module.MARKER, "| other |") != page
    assert max(row.get("scheme differs", 0.0) for row in rows) < 1e-11
