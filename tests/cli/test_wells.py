"""Wells and phases on the command line."""

from __future__ import annotations

import json

import pytest

from doublewell.io import load_result


def test_wells_and_phases_reach_the_library(run, movie_file, tmp_path):
    place = tmp_path / "result.json"
    words = ("--method", "weak", "--degree", "1", "--wells", "unequal", "--phases", "-1.0,1.0", "--out", place)
    code, out, err = run("identify", movie_file, *words)
    assert (code, err) == (0, "")
    assert "maximum at u = " in out
    result = load_result(place)
    assert (result.problem.law.wells, result.resolved.phases) == ("unequal", (-1.0, 1.0))
    assert json.loads(place.read_text())["result"]["law"]["family"] == {
        "name": "wells", "degree": 1, "phases": [-1.0, 1.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [("1", "--phases is (1.0,)"), ("0,1,2", "--phases is (0.0, 1.0, 2.0)"), ("a", "--phases: 'a' is not")],
)
def test_phases_are_two_numbers(run, movie_file, text, said):
    code, _, err = run("identify", movie_file, "--method", "weak", "--phases", text)
    assert code != 0
    assert said in err


def test_phases_may_be_estimated(run, movie_file):
    code, out, _ = run("identify", movie_file, "--method", "weak", "--degree", "1", "--phases", "estimated")
    assert code == 0
    assert "s = (u - " in out
