"""The example runs, small, and its errors are what it says of itself."""

import ast
import json
import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/from_py_pde.py"
pytestmark = pytest.mark.skipif(find_spec("pde") is None, reason="py-pde is not installed")


def test_a_movie_of_py_pde_is_identified_and_run_there_again(tmp_path, capsys):
    run = runpy.run_path(str(EXAMPLE))["main"]
    errors = run(["--out", str(tmp_path), "--cells", "48", "--frames", "21", "--epsilon", "0.1"])
    assert errors["trajectory"]["force"] < 0.01
    assert errors["trajectory"]["field"] < 0.004
    assert errors["weak"]["force"] < 0.025  # its supports take half of so short a record
    assert errors["weak"]["field"] < 0.006
    assert json.loads((tmp_path / "errors.json").read_text())["errors"] == errors
    assert capsys.readouterr().out.count("force error") == 2
    assert {"movie.hdf5", "law_weak.py", "law_trajectory.py"} <= {path.name for path in tmp_path.iterdir()}


def test_the_errors_in_its_text_are_those_of_the_file():
    said = re.findall(r"(weak|trajectory): force error ([\d.]+) %, field error in py-pde ([\d.]+) %",
                      ast.get_docstring(ast.parse(EXAMPLE.read_text())))  # fmt: skip
    kept = json.loads((EXAMPLE.parents[1] / "benchmarks/results/from_py_pde.json").read_text())
    assert kept["cells"] >= 128
    assert len(said) == 2
    for method, force, field in said:
        assert float(force) == pytest.approx(100 * kept["errors"][method]["force"], abs=6e-4)
        assert float(field) == pytest.approx(100 * kept["errors"][method]["field"], abs=6e-5)
        assert kept["errors"][method]["force"] < 0.01
