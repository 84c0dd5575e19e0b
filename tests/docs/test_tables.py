"""Tables of pages are those of the stored results."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(request):
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module(request.param)
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in (request.param, "fluctuating", "common"):
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
    page = (BENCHMARKS.parent / "docs/fluctuating.md").read_text()
    assert f"<!-- numbers: benchmarks/results/{name}.json -->\n{module.table(rows)}\n" in page
