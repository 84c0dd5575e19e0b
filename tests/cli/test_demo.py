import json

import pytest

from doublewell.files import load_result
from doublewell.law import named_law
from doublewell.report import Truth


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The demo as a newcomer runs it, once; its answer as JSON."""
    from contextlib import redirect_stdout
    from io import StringIO

    from doublewell.cli import main

    folder = tmp_path_factory.mktemp("full") / "demo"
    with redirect_stdout(StringIO()) as out:
        assert main(["demo", "--out", str(folder), "--json"]) == 0
    return folder, json.loads(out.getvalue())


def test_the_demo_recovers_its_law(full):
    _, found = full
    assert found["force_error"] < 0.03
    assert abs(found["epsilon_error"]) < 0.02
    assert found["epsilon"] == pytest.approx(0.03, rel=0.02)
    assert found["warnings"] == []
    assert "the force of the sixth law was recovered to" in found["summary"]


def test_the_numbers_are_those_of_the_saved_result(full):
    folder, found = full
    saved, truth = load_result(folder / "result.json"), Truth(named_law("sixth"), 0.03)
    assert found["coefficients"] == saved.coefficients.tolist()
    assert found["force_error"] == truth.force_error(saved)
    assert found["epsilon_error"] == truth.epsilon_error(saved)
    assert found["result"] == json.loads((folder / "result.json").read_text())["result"]
    assert sorted(found["files"]) == sorted(str(path) for path in folder.iterdir())
    assert saved.settings.shape == (61, 96, 96)


def test_the_demo_prints_its_report(run, tmp_path, monkeypatch):
    import doublewell.demo as room

    seen = {}

    def tiny(folder, **options):
        seen.update(options, folder=folder)
        return run_demo(folder, cells=48, frames=25, **options)

    run_demo = room.run_demo
    monkeypatch.setattr(room, "run_demo", tiny)
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--seed", 3, "--law", "quartic", "--noise", 0.02)
    assert (code, err) == (0, "")
    assert out.startswith("doublewell ")
    assert "From 25 frames with noise 0.02, the force of the quartic law was recovered to" in out
    assert "  demo/fields.png\n" in out
    assert (seen["seed"], seen["law"], seen["noise"]) == (3, "quartic", 0.02)
    assert {path.name for path in tmp_path.iterdir()} == {"demo"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--law", "cubic"], "no law is named 'cubic'"),
        (["--seed", "x"], "--seed: 'x' is not a whole number"),
        (["--noise", "-1"], "sd is -1.0"),
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
