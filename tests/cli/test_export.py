import json

import pytest

from doublewell.errors import shell_words
from doublewell.export import FORMATS, export
from doublewell.io import load_result


@pytest.fixture(scope="module")
def result_file(tmp_path_factory, movie_file):
    from doublewell.cli import main

    path = tmp_path_factory.mktemp("result") / "result.json"
    words = ["identify", str(movie_file), "--method", "weak", "--surface-tension", "0.9877", "--out", str(path)]
    assert main([*words, "--quiet"]) == 0
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_the_text_is_that_of_the_library(run, result_file, tmp_path, name):
    with shell_words():
        text = export(load_result(result_file), name)
    code, out, err = run("export", result_file, name)
    assert (code, err) == (0, "")
    assert out == text.rstrip("\n") + "\n"
    target = tmp_path / "law.txt"
    code, out, _ = run("export", result_file, name, "--out", target)
    assert out == f"{target}: the law of {result_file} for {name}\n"
    assert target.read_text() == text


def test_json_and_quiet(run, run_json, result_file, tmp_path):
    answer = run_json("export", result_file, "json")
    assert (answer["format"], answer["file"]) == ("json", None)
    assert json.loads(answer["text"])["format"] == "doublewell law"
    assert run("export", result_file, "python", "--out", tmp_path / "law.py", "--quiet") == (0, "", "")


def test_wrong_use(refused, result_file, movie_file, tmp_path):
    assert "Choose from" in refused("export", result_file, "comsol")
    assert "does not exist" in refused("export", tmp_path / "none.json", "moose")
    assert "not JSON" in refused("export", movie_file, "moose")
    assert "is a folder" in refused("export", result_file, "moose", "--out", tmp_path)
    assert "does not exist" in refused("export", result_file, "moose", "--out", tmp_path / "no" / "law.i")
