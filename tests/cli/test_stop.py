"""--time-limit and Ctrl-C: an answer in bounded time, and what is left of it."""

import json

import pytest

from doublewell.cli.options import Bar
from doublewell.io import load_result

WORK = ("--degree", "1", "--quiet")


def test_a_limit_is_a_flag_and_repeat_needs_no_clock(run, run_json, small_file, tmp_path):
    path = tmp_path / "result.json"
    code, _, _ = run("identify", small_file, *WORK, "--time-limit", "2 steps", "--out", path)
    assert code == 0
    assert load_result(path).resolved.stopped == 2
    assert run_json("repeat", path)["equal_to_the_last_bit"] > 100
    found = run_json("identify", small_file, "--degree", "1", "--time-limit", "1 step")
    assert found["method"] == "weak"
    assert "time-limit" in [item["code"] for item in found["findings"]]


def test_a_limit_that_is_none(refused, small_file):
    said = refused("identify", small_file, "--time-limit", "soon")
    assert said.startswith("--time-limit is 'soon': expected a time such as '60 s'")


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C when a stage begins."""

    def at(stage):
        def show(bar, name, done, total):
            if name.startswith(stage):
                raise KeyboardInterrupt

        monkeypatch.setattr(Bar, "show", show)

    return at


def test_ctrl_c_leaves_the_best_answer_in_the_file(run, small_file, tmp_path, press):
    path = tmp_path / "result.json"
    press("checking the model")
    code, out, err = run("identify", small_file, *WORK, "--out", path, "--report", tmp_path / "page")
    assert (code, out) == (130, "")
    assert err.startswith("doublewell: interrupted before step ")
    assert err.endswith(f"the best answer so far is in {path}\n")
    assert load_result(path).resolved.stopped is not None
    assert json.loads(path.read_text())
    assert not (tmp_path / "page").exists()


def test_ctrl_c_without_a_file(run, small_file, press):
    press("checking the model")
    code, out, err = run("identify", small_file, *WORK)
    assert (code, out) == (130, "")
    assert err.endswith("give --out to keep the best answer so far\n")
    press("weak")
    assert run("identify", small_file, *WORK)[2] == "doublewell: interrupted; nothing was left half written\n"
