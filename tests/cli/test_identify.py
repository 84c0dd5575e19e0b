import json
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from doublewell.calibrate import SurfaceTension
from doublewell.cli import main
from doublewell.errors import InputError, shell_words
from doublewell.findings import findings
from doublewell.identify import identify as identify_any
from doublewell.io import load_result, open_record, save
from doublewell.law import named_law
from doublewell.options import DoubleWell, Trajectory, Weak
from doublewell.record import Record
from doublewell.validate import validate

identify = partial(identify_any, method="weak")
WEAK = ["--method", "weak"]
TENSION = named_law("sixth").surface_tension(epsilon=1.0)


def test_the_report_is_the_printed_result(run, movie_file):
    code, out, err = run("identify", movie_file, "--method", "weak", "--surface-tension", TENSION)
    assert (code, err) == (0, "")
    with shell_words():
        assert out == f"{identify(open_record(movie_file), TENSION)}\n"


def test_json_holds_the_numbers_of_the_library(run_json, movie_file):
    found = run_json("identify", movie_file, *WEAK, "--surface-tension", repr(TENSION), "--tension-sd", 0.01)
    result = identify(open_record(movie_file), SurfaceTension(TENSION, 0.01))
    assert found["coefficients"] == result.coefficients.tolist()
    assert found["epsilon"] == result.epsilon
    assert found["facts"]["epsilon"]["sd"] == result.scale.epsilon_sd
    assert found["barrier"] == result.potential(0.0)
    assert [item["code"] for item in found["findings"]] == [item.code for item in findings(result)]
    assert found["double_well"] is True
    assert found["result"]["diagnostics"]["rows"] == result.diagnostics.rows
    assert found["validation"] is None
    assert found["files"] == []


def test_options_reach_the_library(run_json, movie_file):
    found = run_json(
        "identify", movie_file, *WEAK, "--degree", 3, "--constraint", "none", "--ridge", "1e-3",
        "--supports", "4:0.1,6:0.2", "--surface-tension", 0.04, "--normalisation", "eE", "--derivative", "analytic",
    )  # fmt: skip
    result = identify(
        open_record(movie_file),
        SurfaceTension(0.04, normalisation="eE"),
        law=DoubleWell(degree=3, constraint="none"),
        method=Weak(supports=[(4, 0.1), (6, 0.2)], derivative="analytic", ridge=1e-3),
    )
    assert found["coefficients"] == result.coefficients.tolist()
    assert found["facts"]["epsilon"]["value"] == result.epsilon
    assert found["result"]["problem"]["method"]["supports"] == [[4, 0.1], [6, 0.2]]


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (["--supports", "paper"], Weak(supports="paper")),
        (["--ridge", "validated", "--supports", "3:0.1"], Weak(ridge="validated", supports=[(3, 0.1)])),
    ],
)
def test_words_for_ridge_and_supports(run_json, movie_file, words, method):
    found = run_json("identify", movie_file, *WEAK, *words)
    assert found["coefficients"] == identify(open_record(movie_file), method=method).coefficients.tolist()
    assert not {"epsilon", "barrier"} & set(found["facts"])


def test_metadata_of_the_command_line_goes_before_the_file(run_json, tmp_path, noisy):
    np.savez(tmp_path / "plain.npz", film=noisy.slab(), other=noisy.slab())
    found = run_json(
        "identify", tmp_path / "plain.npz", "--var", "film", "--dx", "0.1,0.1", "--dt", 0.5, "--q", 0.01,
        "--boundary", "neumann", *WEAK,
    )  # fmt: skip
    settings = found["result"]["problem"]["records"][0]
    assert (settings["dx"], settings["dt"], settings["q"]) == ([0.1, 0.1], 0.5, 0.01)
    assert settings["boundary"] == "neumann"
    other = identify(Record(noisy.slab(), dx=0.1, dt=0.5, q=0.01))
    assert found["coefficients"] == other.coefficients.tolist()


def test_files_are_written_and_listed(run, run_json, movie_file, tmp_path):
    words = ["identify", movie_file, *WEAK, "--surface-tension", TENSION, "--validate-from", 3]
    words += ["--out", tmp_path / "r.json", "--figures", tmp_path / "figures"]
    code, out, _ = run(*words)
    assert code == 0
    written = [tmp_path / "r.json"]
    written += [tmp_path / "figures" / f"{n}.{k}" for n in ("law", "fields", "error") for k in ("png", "pdf", "svg")]
    assert out.endswith("\n".join(["Written", *(f"  {path}" for path in written)]) + "\n")
    assert all(path.stat().st_size > 1000 for path in written)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "figures", tmp_path / "r.json"]
    record = open_record(movie_file)
    result = load_result(tmp_path / "r.json")
    np.testing.assert_array_equal(result.coefficients, identify(record, TENSION).coefficients)
    assert str(validate(result, record, start=3)) in " ".join(out.split())


def test_validation_in_json(run_json, movie_file):
    found = run_json("identify", movie_file, *WEAK, "--validate-from", 20)["validation"]
    record = open_record(movie_file)
    other = validate(identify(record), record, start=20)
    assert found["start"] == 20
    assert found["times"] == record.times[20:].tolist()
    np.testing.assert_allclose(found["error"], other.error, rtol=1e-12)
    np.testing.assert_array_equal(found["noise_floor"], other.noise_floor)


def test_quiet_says_nothing_but_writes(run, movie_file, tmp_path):
    assert run("identify", movie_file, *WEAK, "--quiet", "--out", tmp_path / "r.json") == (0, "", "")
    assert load_result(tmp_path / "r.json").scale is None


def test_quiet_json_is_still_json(run, movie_file):
    _, out, _ = run("identify", movie_file, *WEAK, "--quiet", "--json")
    assert json.loads(out)["degree"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--degree", "two"], "--degree: 'two' is not an integer"),
        (["--degree", "2.5"], "--degree: '2.5' is not an integer"),
        (["--degree", "9"], "--degree is 9: expected "),
        (["--method", "strong"], "--method"),
        (["--method", "weak", "--degree", "auto"], "--degree auto needs the trajectory fit"),
        (["--ridge", "validated"], "--ridge validated belongs to the weak-form fit"),
        (["--ridge", "1"], "a ridge is a choice for one degree: give --degree a number"),
        (["--derivative", "left"], "--derivative"),
        (["--supports", "paper"], "--supports belongs to --method weak: leave it out, or choose that"),
        (["--corrected"], "--corrected belongs to --method weak"),
        (["--degree"], "--degree"),
        (["--surface-tension", "-1"], "surface tension is -1"),
        (["--surface-tension", "nan"], "surface tension is 'nan'"),
        (["--surface-tension", "much"], "--surface-tension"),
        (["--surface-tension", "1", "--tension-sd", "-1"], "sd"),
        (["--tension-sd", "1"], "--tension-sd has no meaning without a surface tension: pass --surface-tension too"),
        (["--normalisation", "E"], "--normalisation has no meaning without a surface tension"),
        (["--normalisation", "ee", "--surface-tension", "1"], "--normalisation"),
        (["--constraint", "maybe"], "--constraint"),
        (["--ridge", "some"], "--ridge: 'some' is not a number"),
        (["--ridge", "-1"], "--ridge is -1: expected"),
        (["--supports", "5", *WEAK], "--supports: '5': expected frames:length pairs"),
        (["--supports", "5:x", *WEAK], "--supports: '5:x'"),
        (["--supports", "50:0.1", *WEAK], "movie.npz: record is too short for a temporal half-width of 50 intervals"),
        (["--dx", "wide"], "--dx is 'wide': expected a number, or one per axis"),
        (["--dx", "1,2,3"], "dx has 3 entries: expected 1, or 2"),
        (["--dt", "-1"], "dt is -1"),
        (["--q", "0"], "q is 0"),
        (["--boundary", "closed"], "--boundary"),
        (["--blur", "wide"], "--blur: 'wide' is not a number"),
        (["--var", "w"], "has no array 'w'"),
        (["--out", "result.txt"], "--out is result.txt: expected the name of a .json file"),
        (["--out", "nowhere/r.json"], "the folder nowhere does not exist"),
        (["--validate-from", "99"], "--validate-from is 99: expected a frame from 0 to 29"),
        (["--unknown"], "unknown option --unknown; see doublewell identify --help"),
        (["more", "words"], "unexpected words: more words; see doublewell --help"),
    ],
)
def test_wrong_use_is_one_line(refused, movie_file, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("identify", movie_file, *words)
    assert message in refused("identify", movie_file, *words, "--json")
    assert list(tmp_path.iterdir()) == []


def test_bad_files_are_one_line(refused, tmp_path, movie_file):
    assert "does not exist" in refused("identify", tmp_path / "no.npz")
    (tmp_path / "broken.npz").write_bytes(movie_file.read_bytes()[:500])
    assert "broken.npz" in refused("identify", tmp_path / "broken.npz")
    (tmp_path / "picture.gif").write_bytes(b"GIF89a")
    assert "picture.gif has no suffix of a record" in refused("identify", tmp_path / "picture.gif")
    assert "FILE" in refused("identify")


def test_missing_metadata_is_asked_for_by_option(refused, tmp_path, noisy):
    np.savez(tmp_path / "plain.npz", u=noisy.slab())
    words = ["identify", tmp_path / "plain.npz"]
    assert all(option in refused(*words) for option in ("--dx", "--dt"))
    assert "--dt" in refused(*words, "--dx", 0.1)
    words += ["--dx", 0.1, "--dt", 0.1]
    assert "--validate-from needs: pass --boundary" in refused(*words, "--q", 1, "--validate-from", 0)


def test_bad_fields_are_one_line(refused, tmp_path, noisy):
    values = noisy.slab().copy()
    values[3, 4, 5] = np.nan
    save_raw(tmp_path / "nan.npz", values)
    said = refused("identify", tmp_path / "nan.npz")
    assert "not finite, the first in frame 3 at cell (4, 5)" in said
    assert said.startswith(str(tmp_path / "nan.npz"))
    save_raw(tmp_path / "flat.npz", np.ones_like(values))
    assert "flat.npz: the field is constant" in refused("identify", tmp_path / "flat.npz")
    save_raw(tmp_path / "large.npz", 100 * noisy.slab())
    assert "expected the pure phases at -1 and +1" in refused("identify", tmp_path / "large.npz")


def save_raw(path, values):
    np.savez(path, u=values, dx=1 / 64, dt=1e-4, q=1.0)


def test_figures_cannot_replace_a_file(refused, movie_file, tmp_path):
    (tmp_path / "taken").write_text("kept")
    words = ["--figures", tmp_path / "taken", "--out", tmp_path / "r.json"]
    assert "which is a file: expected a folder" in refused("identify", movie_file, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_nothing_is_written_when_a_figure_fails(refused, movie_file, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise InputError("no figure")

    monkeypatch.setattr("doublewell.report.draw_figures", fail)
    words = [*WEAK, "--figures", tmp_path / "f", "--out", tmp_path / "r.json"]
    assert refused("identify", movie_file, *words) == "no figure"
    assert list(tmp_path.iterdir()) == []


def test_zarr_is_read_too(run_json, noisy, tmp_path):
    save(noisy, tmp_path / "movie.zarr")
    found = run_json("identify", tmp_path / "movie.zarr", *WEAK)
    assert found["coefficients"] == identify(noisy).coefficients.tolist()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which nobody can write")
def test_a_folder_that_cannot_be_made_leaves_no_result(refused, movie_file, tmp_path, monkeypatch):
    monkeypatch.setattr("doublewell.report.draw_figures", lambda *_, **__: {"law.png": b"x"})
    words = [*WEAK, "--figures", "/proc/nothing/here", "--out", tmp_path / "r.json"]
    said = refused("identify", movie_file, *words)
    assert "/proc/nothing/here/law.png could not be written: " in said
    assert "; nothing was written: " in said
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(refused, movie_file, tmp_path, monkeypatch):
    from doublewell import atomic

    flushed = []

    def full(path):
        flushed.append(path)
        if len(flushed) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("doublewell.report.draw_figures", lambda *_, **__: {"law.png": b"x", "law.pdf": b"y"})
    monkeypatch.setattr(atomic, "_flush", full)
    (tmp_path / "kept").mkdir()
    (tmp_path / "r.json").write_text("the result of before")
    words = [*WEAK, "--figures", tmp_path / "kept" / "a" / "b", "--out", tmp_path / "r.json"]
    said = refused("identify", movie_file, *words)
    assert "law.png could not be written: No space left on device; nothing was written: check the name, the" in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "r.json"]
    assert (tmp_path / "r.json").read_text() == "the result of before"


def test_no_boundary_means_a_window(run_json, tmp_path, noisy):
    np.savez(tmp_path / "plain.npz", u=noisy.slab()[:13, 8:56:2, 8:56:2])
    words = ["--dx", 1 / 32, "--dt", 1e-4, "--q", 1, "--degree", 1, "--no-check"]
    found = run_json("identify", tmp_path / "plain.npz", *words)
    assert (found["method"], found["result"]["resolved"]["boundary"]) == ("trajectory", "open")
    found = run_json("identify", tmp_path / "plain.npz", "--dx", 1 / 32, "--dt", 1e-4, "--q", 1, "--method", "weak")
    assert (found["method"], found["degree"], found["degrees"]) == ("weak", 2, [])


def test_times_may_be_given(run_json, tmp_path, noisy):
    np.savez(tmp_path / "plain.npz", u=noisy.slab()[:20])
    words = ["--method", "weak", "--dx", 1 / 64, "--q", 1, "--times", ",".join(str(0.5 * k) for k in range(20))]
    assert run_json("identify", tmp_path / "plain.npz", *words)["result"]["problem"]["records"][0]["dt"] == 0.5


@pytest.fixture(scope="module")
def trajectory(small_file, tmp_path_factory):
    """The default reading of a record with a boundary, with everything written: its answer as JSON, and the folder."""
    folder = tmp_path_factory.mktemp("trajectory")
    words = ["identify", str(small_file), "--surface-tension", repr(TENSION), "--validate-from", "0"]
    words += ["--out", str(folder / "r.json"), "--figures", str(folder / "figures")]
    with redirect_stdout(StringIO()) as out:
        assert main([*words, "--json"]) == 0
    return json.loads(out.getvalue()), folder


def test_a_boundary_means_the_trajectory_reading_with_intervals(trajectory):
    found, folder = trajectory
    result = load_result(folder / "r.json")
    assert (found["method"], result.problem.degree) == ("trajectory", "auto")
    assert found["coefficients"] == result.coefficients.tolist()
    for name in ("epsilon", "barrier", "width", "tension_integral", "kappa"):
        assert tuple(found["facts"][name]["interval"]) == result.interval(name)
    low, high = found["facts"]["epsilon"]["interval"]
    assert low < found["epsilon"] < high
    assert [fit["degree"] for fit in found["degrees"]] == list(range(9))
    assert sum(fit["weight"] for fit in found["degrees"]) == pytest.approx(1.0)
    assert len(list((folder / "figures").iterdir())) == 12


def test_json_holds_the_verdict_and_the_tests(trajectory):
    found, folder = trajectory
    answer = load_result(folder / "r.json").adequacy
    assert found["verdict"] == answer.verdict == "adequate"
    assert [test["name"] for test in found["tests"]] == [test.name for test in answer.tests]
    assert [test["adjusted"] for test in found["tests"]] == [test.adjusted for test in answer.tests]


def test_the_check_can_be_left_out(run_json, run, small_file):
    found = run_json("identify", small_file, "--no-check")
    assert (found["verdict"], found["tests"]) == ("not tested", [])
    assert found["facts"]["width"]["interval"] is not None
    assert "not tested: the tests were switched off" in run("identify", small_file, "--no-check")[1]


def test_the_weak_reading_has_a_verdict_of_its_moments(run_json, movie_file):
    assert run_json("identify", movie_file, *WEAK)["verdict"] == "adequate"


def test_degree_and_method_reach_the_library(run, movie_file, monkeypatch):
    asked = {}

    def stop(_record, surface_tension, **options):
        asked.update(options)
        raise InputError("enough")

    monkeypatch.setattr(import_module("doublewell.identify"), "identify", stop)
    assert run("identify", movie_file)[0] == 2
    assert (asked["method"], asked["law"], asked["check"]) == (Trajectory(), DoubleWell(), True)
    assert run("identify", movie_file, "--degree", "3", "--ridge", "0.1")[0] == 2
    assert (asked["method"], asked["law"]) == (Trajectory(ridge=0.1), DoubleWell(degree=3))


def test_the_report_says_options_and_not_arguments(run, movie_file, monkeypatch):
    result = identify(open_record(movie_file))
    monkeypatch.setattr(import_module("doublewell.identify"), "identify", lambda *_, **__: result)
    assert "use --method trajectory\n" in " ".join(run("identify", movie_file)[1].split()) + "\n"


def test_numbers_that_are_not_finite_are_still_json(trajectory, small_file):
    from doublewell.cli.identify import result_document

    record, result = open_record(small_file), load_result(trajectory[1] / "r.json")
    validation = validate(result, record)
    broken = replace(validation, error=np.array([0.0, np.inf, np.nan]))
    document = result_document(result, broken)
    assert json.loads(json.dumps(document, allow_nan=False))["validation"]["error"][1:] == [
        {"float": "inf"},
        {"float": "nan"},
    ]


def test_a_temperature_is_not_given_with_the_error_of_a_tension(run, movie_file):
    code, _, err = run("identify", movie_file, *WEAK, "--surface-tension", "300 K, 0.02 nm^3", "--tension-sd", 0.1)
    assert code != 0
    assert "with a temperature leave them out" in err
    code, _, err = run("identify", movie_file, *WEAK, "--surface-tension", "300 K, 0.02 nm^3")
    assert code != 0
    assert "the law has none" in err
