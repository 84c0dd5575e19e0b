import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from doublewell.io import load_result
from doublewell.law import named_law
from doublewell.report import Truth


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The demo on a small record, once: the folder, its answer as JSON, and the options that reached the library."""
    import doublewell.demo as room
    from doublewell.cli import main

    run_demo, seen = room.run_demo, {}

    def tiny(folder, **options):
        seen.update(options, folder=folder)
        return run_demo(folder, cells=32, frames=15, **options)

    folder = tmp_path_factory.mktemp("small") / "demo"
    words = ["demo", "--out", str(folder), "--seed", "3", "--law", "quartic", "--noise", "0.02", "--json"]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out:
        patch.setattr(room, "run_demo", tiny)
        assert main(words) == 0
    return folder, json.loads(out.getvalue()), seen


def test_options_reach_the_demo(small):
    folder, _, seen = small
    assert (seen["folder"], seen["seed"], seen["law"], seen["noise"]) == (folder, 3, "quartic", 0.02)


def test_the_demo_is_that_of_the_paper(monkeypatch):
    from inspect import signature

    from doublewell.demo import run_demo

    defaults = {name: item.default for name, item in signature(run_demo).parameters.items()}
    assert (defaults["cells"], defaults["frames"], defaults["law"], defaults["noise"]) == (96, 61, "sixth", 0.03)


def test_the_numbers_are_those_of_the_saved_result(small):
    folder, found, _ = small
    saved, truth = load_result(folder / "result.json"), Truth(named_law("quartic"), 0.03)
    assert found["method"] == "trajectory"
    assert found["coefficients"] == saved.coefficients.tolist()
    assert found["force_error"] == truth.force_error(saved)
    assert found["epsilon_error"] == truth.epsilon_error(saved)
    assert found["force_error"] < found["weak_force_error"]
    assert tuple(found["facts"]["epsilon"]["interval"]) == saved.interval("epsilon")
    assert found["result"] == json.loads((folder / "result.json").read_text())["result"]
    assert sorted(found["files"]) == sorted(str(path) for path in folder.iterdir())
    assert "From 15 frames with noise 0.02, the force of the quartic law was recovered to" in found["summary"]


def test_the_demo_can_be_repeated(small, run):
    code, out, err = run("repeat", small[0] / "result.json")
    assert (code, err) == (0, "")
    assert "numbers: the same" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--law", "cubic"], "no law is named 'cubic'"),
        (["--seed", "x"], "--seed: 'x' is not an integer"),
        (["--noise", "-1"], "--noise is -1"),
        (["--seed", "-1"], "--seed is -1: expected an integer from 0"),
        (["--noise", "loud"], "--noise"),
        (["--no-json"], "--no-json"),
        (["here"], "here"),
    ],
)
def test_wrong_use_is_one_line(refused, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("demo", *words)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_refused(refused, tmp_path):
    (tmp_path / "taken").write_text("kept")
    assert "is a file: expected a folder" in refused("demo", "--out", tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "kept"
