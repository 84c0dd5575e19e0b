import json
import shutil

import pytest
from grouping import changed

from doublewell.identify import identify
from doublewell.io import load_result, open_record, save


@pytest.fixture(scope="module")
def answered(tmp_path_factory, movie_file):
    """A folder with a movie and a result that knows it by a relative name."""
    from doublewell.cli import main

    folder = tmp_path_factory.mktemp("answered")
    shutil.copy(movie_file, folder / "movie.npz")
    words = ["identify", folder / "movie.npz", "--method", "weak", "--surface-tension", 0.94, "--q", 1.5, "--quiet"]
    assert main([str(word) for word in (*words, "--out", folder / "result.json")]) == 0
    return folder


def test_the_same_again(answered, run, tmp_path):
    code, out, err = run("repeat", answered / "result.json", "--out", tmp_path / "again.json")
    assert (code, err) == (0, "")
    assert "data: the same (sha256:" in out
    assert "numbers: the same: all " in out
    again = load_result(tmp_path / "again.json")
    assert again.resolved.q == 1.5  # as it was given then, not as the file says


def test_json_and_quiet(answered, run, run_json):
    found = run_json("repeat", answered / "result.json")
    assert found["same"] is True
    assert found["fields"] == found["equal_to_the_last_bit"] > 40
    assert found["differences"] == []
    assert run("repeat", answered / "result.json", "--quiet") == (0, "", "")


def test_other_data(answered, run, refused, tmp_path):
    record = open_record(answered / "movie.npz")
    save(record.replace(record.slab()[:, ::-1] * 1.01), tmp_path / "other.npz")
    said = refused("repeat", answered / "result.json", tmp_path / "other.npz")
    assert "other.npz: these are not the data of the result" in said
    code, out, _ = run("repeat", answered / "result.json", tmp_path / "other.npz", "--any-data", "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["same"], found["data"]) == (False, "other data")
    assert {"field", "before", "after", "size"} == set(found["differences"][0])


def test_a_file_that_moved_is_found_beside_the_result(answered, run, refused, tmp_path):
    shutil.copy(answered / "result.json", tmp_path / "result.json")
    result = load_result(tmp_path / "result.json")
    from dataclasses import replace

    lost = replace(result.problem.records[0].source, path="/nowhere/movie.npz")
    save(changed(result, source=lost), tmp_path / "result.json")
    assert "/nowhere/movie.npz does not exist" in refused("repeat", tmp_path / "result.json")
    shutil.copy(answered / "movie.npz", tmp_path / "movie.npz")
    assert run("repeat", tmp_path / "result.json")[0] == 0
    strange = replace(lost, reading=(("colour", "red"),))
    save(changed(result, source=strange), tmp_path / "result.json")
    assert "was opened with colour, which this version does not know" in refused("repeat", tmp_path / "result.json")


def test_a_result_from_python_names_no_file(noisy, movie_file, run, refused, tmp_path):
    save(identify(noisy, method="weak"), tmp_path / "result.json")
    said = refused("repeat", tmp_path / "result.json")
    assert "does not name the file of its movie: give it, as in doublewell repeat RESULT MOVIE" in said
    assert run("repeat", tmp_path / "result.json", movie_file)[0] == 0


def test_wrong_names(answered, refused, tmp_path):
    assert "does not exist: expected a saved result" in refused("repeat", tmp_path / "absent.json")
    assert "expected the name of a .json file" in refused("repeat", answered / "result.json", "--out", "x.txt")
