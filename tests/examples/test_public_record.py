"""The example on the public record: where it is, the errors are small; where it is not, it says so."""

import json
import os
import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/public_record.py"
run = runpy.run_path(str(EXAMPLE))["main"]


def test_without_the_file_it_says_why_it_skips(tmp_path, capsys):
    assert run([str(tmp_path / "AC.mat"), "--out", str(tmp_path / "out")]) is None
    assert "skipped:" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_the_force_of_the_public_record(tmp_path, capsys):
    place = os.environ.get("DOUBLEWELL_PUBLIC_RECORD")
    if not place:
        pytest.skip("set DOUBLEWELL_PUBLIC_RECORD to the path of AC.mat (PINNs repository) to run this")
    errors = run([place, "--out", str(tmp_path), "--every", "5"])
    assert errors["clean"] < 1e-3
    assert errors["weak"] < 0.03
    assert errors["trajectory"] < 0.004
    assert json.loads((tmp_path / "errors.json").read_text())["errors"] == errors
    assert (tmp_path / "force.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("force error") == 3


def test_the_kept_errors_are_small_and_of_the_whole_record():
    kept = json.loads((EXAMPLE.parents[1] / "benchmarks/results/public_record_example.json").read_text())
    assert kept["every"] == 1
    assert kept["errors"]["trajectory"] < 0.002
