"""The command compare: its table, its files, its words where something is wrong."""

import json

import pytest

from doublewell.cli import main


@pytest.fixture(scope="module")
def done(small_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    tokens = ["compare", str(small_file), "--methods", "stac,direct-fd4", "--out", str(folder / "c.json")]
    return folder, main([*tokens, "--figures", str(folder / "figures"), "--quiet"])


def test_numbers_and_figures_are_written(done):
    folder, code = done
    assert code == 0
    numbers = json.loads((folder / "c.json").read_text())
    assert [row["method"] for row in numbers["methods"]] == ["trajectory", "STAC", "direct FD4"]
    assert {path.name for path in (folder / "figures").iterdir()} == {"compare.png", "compare.pdf", "compare.svg"}


def test_the_answer_is_one_table_or_one_object(done, small_file, capsys):
    assert main(["compare", str(small_file), "--methods", "stac"]) == 0
    said = capsys.readouterr().out
    assert "Methods on the same record" in said
    assert "STAC" in said
    assert main(["compare", str(small_file), "--methods", "stac", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["file"] == str(small_file)
    assert answer["files"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--methods", "nothing"], "method is 'nothing': expected one of trajectory, stac"),
        (["--methods", ","], "--methods is ',': expected names with commas between"),
        (["--out", "c.txt"], "expected the name of a .json file"),
        (["--seed", "-1"], "expected an integer from 0"),
        (
            ["--dynamics", "cahn"],
            "dynamics is 'cahn': expected one of 'allen-cahn', 'cahn-hilliard', 'mass-conserving'",
        ),
    ],
)
def test_wrong_use_is_one_line(small_file, capsys, options, words):
    assert main(["compare", str(small_file), *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_movie_without_q_is_named(tmp_path, capsys):
    import numpy as np

    from doublewell.io import save
    from doublewell.record import Record

    save(Record(np.zeros((15, 24, 24)), dx=0.1, dt=0.1), tmp_path / "movie.npz")
    assert main(["compare", str(tmp_path / "movie.npz")]) == 2
    said = capsys.readouterr().err
    assert "movie.npz" in said
    assert "needs the diffusion coefficient" in said
