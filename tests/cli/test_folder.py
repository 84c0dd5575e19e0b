"""Whole folders: what doublewell.toml may hold, a run in processes, what is done again, and what a failure leaves."""

import csv
import json

import pytest

from doublewell.cli import folder as cli_folder
from doublewell.cli import main
from doublewell.cli.folder import _arguments, _settings, _stored
from doublewell.io import load_result, open_record, save

WEAK = ["--method", "weak", "--no-check"]


@pytest.fixture
def data(tmp_path, movie_file):
    """A folder of two movies."""
    folder = tmp_path / "data"
    folder.mkdir()
    record = open_record(movie_file)
    for name in ("a.npz", "b.npz"):
        save(record, folder / name)
    return folder


@pytest.fixture
def here(monkeypatch):
    """Run movies of a folder in this process."""

    def in_turn(task, items, workers):
        assert workers >= 1
        for number, each in enumerate(items):
            try:
                answer = task(*each)
            except Exception as error:
                answer = error
            yield number, answer

    monkeypatch.setattr("doublewell.compute.run.each_alone", in_turn)


def settings(data, text):
    (data / "doublewell.toml").write_text(text, encoding="utf-8")
    return _settings(data, sorted(data.glob("*.npz")))


def rows_of(folder):
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- doublewell.toml --------------------------------------------------------------------------------------------------


def test_options_come_from_flags_then_the_movie_then_the_folder(data):
    table, _ = settings(
        data, 'dt = 2.0\nlevels = [10, 200]\ndegree = 3\ncheck = false\nsurface-tension = "0.5 +- 1 %"\nq = 4\n'
        '[files."b.npz"]\nq = "3"\n',
    )  # fmt: skip
    words = ["identify", str(data / "a.npz"), "--out", "x", "--dt", "5", "--workers", "3"]
    first, second = (_arguments(data / name, words, table) for name in ("a.npz", "b.npz"))
    assert (first["movie"].dt, first["movie"].levels, first["movie"].q) == (5.0, "10,200", "4")
    assert second["movie"].q == "3"
    assert (first["given"].degree, first["check"], first["surface_tension"]) == ("3", False, "0.5 +- 1 %")
    assert "out" not in first


def test_conditions_are_lists_in_order_or_tables_by_name(data):
    _, conditions = settings(data, '[conditions]\n"T (K)" = [300, 310.5]\nrun = {"b.npz" = "second"}\n')
    assert conditions == {"a.npz": {"T (K)": 300}, "b.npz": {"T (K)": 310.5, "run": "second"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dx = ", "doublewell.toml is not TOML"),
        ("degre = 2", "unknown option 'degre': expected one of axes, bleaching, blur,"),
        ('[files."a.npz"]\nnose = 1', "files, a.npz: unknown option 'nose'"),
        ('[files."c.npz"]\ndt = 1', "files: no movie 'c.npz' in"),
        ('[files."../a.npz"]\ndt = 1', "files: no movie '../a.npz' in"),
        ("files = 3", "expected files as tables"),
        ('[files]\n"a.npz" = 3', "expected files as tables"),
        ('scheduler = "tcp://evil:8786"', "scheduler belongs on the command line"),
        ('checkpoint = "/etc/x"', "checkpoint belongs on the command line"),
        ('out = "/etc"', "out belongs on the command line"),
        ('figures = "/etc"', "figures belongs on the command line"),
        ("workers = 2", "workers belongs on the command line"),
        ("dx = {a = 1}", "dx is {'a': 1}: expected a text, a number"),
        ("conditions = 3", "conditions is 3: expected a table"),
        ("[conditions]\nT = [1, 2, 3]", "conditions, T: a list of 3 for 2 movies: expected one for each"),
        ("[conditions]\nT = 5", "conditions, T is 5: expected a list or a table"),
        ("[conditions]\nT = [true, false]", "T, a.npz is True: expected a number or a text"),
        ('[conditions]\nT = {"z.npz" = 1}', "conditions, T: no movie 'z.npz' in"),
        ('method = "guess"', "doublewell.toml: Invalid value"),
        ('noise = "loud"', "noise"),
        ('supports = "paper"', "a.npz: --supports belongs to --method weak"),
        ("degree = [2]\nconstraint = 3", "doublewell.toml: Invalid value"),
    ],
)  # fmt: skip
def test_what_no_settings_may_hold_is_refused_before_any_movie(data, tmp_path, refused, text, message):
    (data / "doublewell.toml").write_text(text, encoding="utf-8")
    assert message in refused("identify", data / "a.npz", data / "b.npz", "--out", tmp_path / "results")
    assert not (tmp_path / "results").exists()


# --- refusals of the command ------------------------------------------------------------------------------------------


def test_wrong_folder_runs_are_refused(data, tmp_path, refused):
    both, out = (data / "a.npz", data / "b.npz"), tmp_path / "results"
    assert "several movies and no --out" in refused("identify", *both)
    assert "several are called a.npz" in refused("identify", both[0], both[0], "--out", out)
    assert "--figures is for one movie" in refused("identify", *both, "--out", out, "--figures", tmp_path)
    assert "--checkpoint is for one movie" in refused("identify", *both, "--out", out, "--checkpoint", tmp_path / "x")
    assert "--validate-from is for one movie" in refused("identify", *both, "--out", out, "--validate-from=2")
    (tmp_path / "taken").write_text("kept")
    assert "which is a file" in refused("identify", *both, "--out", tmp_path / "taken")
    assert "a movie is called 'index.html'" in refused("identify", data / "index.html", "--out", out)
    assert "expected the name of a .json file" in refused("identify", both[0], "--out", tmp_path / "r.txt")


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_in_processes_leaves_a_result_a_page_and_what_compares_them(data, tmp_path, run):
    out = tmp_path / "results"
    (data / "bad.npz").write_bytes(b"junk")
    (data / "doublewell.toml").write_text('[conditions]\nT = {"a.npz" = 300, "b.npz" = 310}\n')
    words = ("identify", data / "a.npz", data / "bad.npz", data / "b.npz", *WEAK, "--out", out, "--workers", 2)
    code, said, errors = run(*words, "--quiet")
    assert (code, said, errors) == (1, "", "")  # one of them failed
    assert sorted(path.name for path in out.iterdir()) == ["a.npz", "b.npz", "index.html", "summary.csv"]
    for name in ("a.npz", "b.npz"):
        assert sorted(path.name for path in (out / name).iterdir()) == ["report.html", "result.json"]
    rows = rows_of(out)
    assert [(row["movie"], row["T"], row["verdict"]) for row in rows] == [
        ("a.npz", "300", "check"), ("bad.npz", "", "failed"), ("b.npz", "310", "check"),
    ]  # fmt: skip
    assert "damaged or not in the npz format" in rows[1]["error"]
    result = load_result(out / "a.npz" / "result.json")
    assert float(rows[0]["width"]) == result.law.interface_width()
    page = (out / "index.html").read_text(encoding="utf-8")
    assert 'href="a.npz/report.html"' in page
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.*") if path.parent != out}
    summary = (out / "summary.csv").read_bytes()
    (data / "bad.npz").unlink()
    save(open_record(data / "a.npz"), data / "bad.npz")
    code, said, _ = run(*words, "--json")
    document = json.loads(said)
    assert (code, [row["verdict"] for row in document["movies"]]) == (0, ["check"] * 3)
    assert {path: path.stat().st_mtime_ns for path in before} == before  # only the one that had failed was done
    assert (out / "summary.csv").read_bytes() != summary


def test_a_run_of_one_movie_in_a_folder_is_one_too(data, tmp_path, run, here):
    (tmp_path / "r.v2").mkdir()
    assert run("identify", data / "a.npz", *WEAK, "--out", tmp_path / "r.v2")[0] == 0
    assert [row["movie"] for row in rows_of(tmp_path / "r.v2")] == ["a.npz"]


def test_what_is_done_is_known_by_values_problem_and_version(data, tmp_path, monkeypatch, here):
    file, out = data / "a.npz", tmp_path / "out"

    def stored(*words):
        every = ["identify", str(file), "--out", str(out), *WEAK, *words]
        return _stored(file, out / file.name, _arguments(file, every, {})) is not None

    assert not stored()
    assert main(["identify", str(file), "--out", str(out), *WEAK, "--quiet"]) == 0
    assert stored()
    for words in (["--degree", "3"], ["--surface-tension", "0.9"], ["--q", "2.0"], ["--dynamics", "mass-conserving"],
                  ["--phases", "-1,0.99"], ["--boundary", "neumann"]):  # fmt: skip
        assert not stored(*words), words
    monkeypatch.setattr(cli_folder, "__version__", "0.0")
    assert not stored()
    monkeypatch.undo()
    (out / "a.npz" / "report.html").rename(tmp_path / "page")
    assert not stored()
    (tmp_path / "page").rename(out / "a.npz" / "report.html")
    assert stored()
    record = open_record(file)
    save(record.replace(record.slab() + 1e-9), file)
    assert not stored()


def test_a_process_that_dies_is_one_failed_movie(data, tmp_path, run, monkeypatch):
    from concurrent.futures import BrokenExecutor

    one = cli_folder._one

    def answers(task, items, workers):
        yield 1, one(*items[1])
        yield 0, BrokenExecutor("died")

    monkeypatch.setattr("doublewell.compute.run.each_alone", answers)
    code, out, _ = run("identify", data / "a.npz", data / "b.npz", *WEAK, "--out", tmp_path / "out")
    assert code == 1
    assert out.startswith("2 movies: 1 check, 1 failed\n  a.npz: its process ended before it was done")
