import pytest

from doublewell.io import load_result

WEAK = ["--method", "weak"]


def test_report_writes_one_page_and_the_result(run, movie_file, tmp_path):
    folder = tmp_path / "new" / "out"
    code, out, err = run("identify", movie_file, *WEAK, "--boundary", "neumann", "--report", folder)
    assert (code, err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "result.json"]
    assert f"  {folder / 'report.html'}\n" in out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert 'Free energy from <span class="file">movie.npz</span>' in page
    assert "boundary = neumann" in page  # what the file was opened with
    source = load_result(folder / "result.json").problem.records[0].source
    assert (source.path, source.reading) == (str(movie_file), (("boundary", "neumann"),))


def test_the_page_uses_the_validation_that_was_asked_for(run_json, movie_file, tmp_path):
    found = run_json(
        "identify", movie_file, *WEAK, "--validate-from", 20, "--report", tmp_path, "--out", tmp_path / "r.json"
    )
    assert found["files"] == [str(tmp_path / name) for name in ("r.json", "result.json", "report.html")]
    assert "from the observed frame 20" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_report_cannot_replace_a_file(refused, movie_file, tmp_path):
    (tmp_path / "taken").write_text("kept")
    said = refused("identify", movie_file, "--report", tmp_path / "taken")
    assert said == f"--report is {tmp_path / 'taken'}, which is a file: expected a folder; choose another name"
    assert (tmp_path / "taken").read_text() == "kept"


def test_nothing_is_written_when_the_page_fails(movie_file, tmp_path, monkeypatch, run):
    def fail(*_, **__):
        raise ZeroDivisionError("bug")

    monkeypatch.setattr("doublewell.report.page_html", fail)
    with pytest.raises(ZeroDivisionError):
        run("identify", movie_file, *WEAK, "--report", tmp_path / "out", "--out", tmp_path / "r.json")
    assert not list(tmp_path.iterdir())


def test_completion_is_offered_and_installed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "--install-completion" in run("--help")[1]
    code, out, err = run("--install-completion", "--shell", "bash")
    assert (code, err) == (0, "")
    script = tmp_path / ".local/share/bash-completion/completions/doublewell"
    assert str(script) in out
    assert "identify" in script.read_text()
