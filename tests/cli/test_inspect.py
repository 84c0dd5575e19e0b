import re

import numpy as np
import pytest

from doublewell.io import open_record
from doublewell.law import named_law
from doublewell.report import inspect_record
from doublewell.simulate import add_noise, initial_field, simulate


def test_words_are_those_of_the_library(run, movie_file):
    code, out, err = run("inspect", movie_file)
    assert (code, err) == (0, "")
    assert out == f"{movie_file}: {inspect_record(open_record(movie_file))}\n"


def test_json_holds_the_numbers_of_the_survey(run_json, movie_file):
    found, other = run_json("inspect", movie_file), inspect_record(open_record(movie_file))
    assert found["file"] == str(movie_file)
    assert found["record"]["shape"] == [31, 64, 64]
    assert found["record"]["times"] == other.record.times.tolist()
    assert found["survey"]["noise"] == other.survey.noise
    assert found["survey"]["cells"] == other.survey.cells
    assert found["survey"]["histogram"] == list(other.survey.histogram)
    assert found["coverage"] == other.survey.coverage
    assert found["supports"] == [[support.frames, support.length] for support in other.supports]
    assert found["supports_refused"] is None
    assert [item["code"] for item in found["findings"]] == [item.code for item in other.findings]


def test_a_record_without_q_is_described(run, run_json, tmp_path, noisy):
    np.savez(tmp_path / "plain.npz", u=noisy.slab())
    _, out, _ = run("inspect", tmp_path / "plain.npz", "--dx", "0.1", "--dt", "1")
    assert "diffusion coefficient q: not given, a fit estimates it" in out
    assert run_json("inspect", tmp_path / "plain.npz", "--dx", "0.1", "--dt", "1", "--q", "2")["record"]["q"] == 2.0


def test_quiet_says_nothing(run, movie_file):
    assert run("inspect", movie_file, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.npz"], "no.npz does not exist"),
        ([], "FILE"),
        (["no.npz", "--degree", "2"], "--degree"),
    ],
)
def test_wrong_use_is_one_line(refused, words, message):
    assert message in refused("inspect", *words)


def test_a_value_that_is_not_finite_is_found_in_any_frame(refused, tmp_path, noisy):
    for frame in range(0, noisy.frames, 3):
        values = noisy.slab().copy()
        values[frame, 1, 2] = np.nan
        np.savez(tmp_path / "nan.npz", u=values, dx=0.1, dt=1.0)
        assert "nan.npz: " in (said := refused("inspect", tmp_path / "nan.npz"))
        assert f"not finite, the first in frame {frame} at cell (1, 2)" in said


def test_a_constant_field_is_refused(refused, tmp_path):
    np.savez(tmp_path / "flat.npz", u=np.ones((9, 20, 20)))
    assert "flat.npz: the field is constant" in refused("inspect", tmp_path / "flat.npz", "--dx", 1, "--dt", 1)


def test_options_that_open_a_file(run_json, refused, tmp_path, noisy):
    counts = np.moveaxis(np.rint(100 + 80 * noisy.slab()), 0, -1).astype("uint8")
    np.save(tmp_path / "movie.npy", counts)
    words = refused("inspect", tmp_path / "movie.npy")
    assert "no order of its axes and no mesh spacing and no frame interval" in words
    assert "pass --axes, one letter per axis, such as --axes yxt; --dx," in words
    said = ("--axes", "yxt", "--levels", "20,180", "--dx", "0.015625", "--dt", "1e-4", "--length-unit", "um")
    found = run_json("inspect", tmp_path / "movie.npy", *said, "--time-unit", "s")
    assert found["record"]["shape"] == [31, 64, 64]
    assert "two numbers such as 12,240" in refused("inspect", tmp_path / "movie.npy", "--levels", "3")
    assert "axes is 'yx': expected one letter" in refused("inspect", tmp_path / "movie.npy", "--axes", "yx")


def test_a_pattern_of_files(run_json, refused, tmp_path, noisy):
    import tifffile

    for number, frame in enumerate(noisy.slab(0, 12)):
        tifffile.imwrite(tmp_path / f"f{number}.tif", frame, photometric="minisblack")
    found = run_json("inspect", tmp_path / "f*.tif", "--dx", "0.015625", "--dt", "1e-4")
    assert found["record"]["shape"] == [12, 64, 64]
    assert "holds no files" in refused("inspect", tmp_path / "g*.tif")


def test_a_mask_by_name(run, refused, run_json, tmp_path, noisy):
    u, mask = noisy.slab().copy(), np.ones(noisy.mesh, bool)
    mask[:8] = False
    u[:, ~mask] = np.nan
    np.savez(tmp_path / "holes.npz", u=u, good=mask)
    words = ("inspect", tmp_path / "holes.npz", "--dx", "0.015625", "--dt", "1e-4", "--q", "1", "--var", "u")
    assert "pass --mask finite where values are missing" in refused(*words)
    np.save(tmp_path / "good.npy", mask)
    for name in ("good", "finite", tmp_path / "good.npy"):
        assert run_json(*words, "--mask", name)["survey"]["missing"] == pytest.approx(0.125)
    assert "12.5 % of the values are missing; the numbers below are of the others" in run(*words, "--mask", "good")[1]


def test_an_open_boundary_is_said(run, movie_file):
    assert "boundary: open" in run("inspect", movie_file, "--boundary", "open")[1]


@pytest.fixture(scope="module")
def grey_file(tmp_path_factory):
    """A camera's movie as integers: one drop, wide plateaus."""
    start = initial_field("circle", (64, 64), 1 / 64, epsilon=0.03)
    clean = simulate(named_law("sixth"), start, dx=1 / 64, dt=1e-4, frames=21, epsilon=0.03)
    path = tmp_path_factory.mktemp("grey") / "grey.npy"
    np.save(path, np.round(20000 + 10000 * add_noise(clean, 0.01, seed=2).slab()).astype(np.uint16))
    return path


def test_found_grey_levels_are_shown(run, run_json, grey_file):
    code, out, _ = run("inspect", grey_file, "--dx", 1 / 64, "--dt", 1e-4, "--q", 1, "--levels", "auto")
    assert code == 0
    assert re.search(r"Grey values\n  levels \S+ \+- \S+ \(u = -1\) and \S+ \+- \S+ \(u = \+1\)", out)
    found = run_json("inspect", grey_file, "--dx", 1 / 64, "--dt", 1e-4, "--q", 1)["grey_values"]
    assert found["levels"] == pytest.approx([10000, 30000], rel=0.01)
    assert len(found["sd"]) == 2
    assert found["found"][0]["name"] == "bad pixels"
    given = run_json("inspect", grey_file, "--dx", 1 / 64, "--dt", 1e-4, "--levels", "10000,30000")
    assert given["grey_values"] is None


def test_a_prepared_movie_is_stored_with_its_mask_and_fitted_again(run, run_json, refused, grey_file, tmp_path):
    """What prepare writes gives the answer of the file itself; options of the camera reach the conversion."""
    grey = np.load(grey_file)
    grey[:, 20, 30] = 0
    np.save(tmp_path / "movie.npy", grey)
    mesh = ("--dx", 1 / 64, "--dt", 1e-4, "--q", 1)
    dark = ("--dark", tmp_path / "dark.npy", "--no-bleaching", "--drift", "none", "--flatten", "none")
    np.save(tmp_path / "dark.npy", np.full((3, 64, 64), 50))
    code, out, _ = run("prepare", tmp_path / "movie.npy", *mesh, "--out", tmp_path / "u.npz", "--figures", tmp_path)
    assert code == 0
    assert "bad pixels:    1 of 4096 dead, hot or flickering; masked" in out
    assert (tmp_path / "prepared.png").exists()
    fit = ("--method", "weak", "--degree", 1)
    first = run_json("identify", tmp_path / "movie.npy", *mesh, *fit, "--out", tmp_path / "r.json")
    again = run_json("identify", tmp_path / "u.npz", *fit)
    assert again["result"]["law"] == first["result"]["law"]
    assert run("repeat", tmp_path / "r.json")[0] == 0
    found = run_json("prepare", tmp_path / "movie.npy", *mesh, *dark)["grey_values"]["found"]
    assert [item["name"] for item in found] == ["bad pixels", "shot noise"]
    assert "holds phase values, not grey values" in refused("prepare", tmp_path / "u.npz")


def test_phases_of_the_file(run, run_json, tmp_path, noisy):
    u = 0.5 * (noisy.slab() + 1)
    np.savez(tmp_path / "zero_one.npz", u=u, dx=noisy.dx, dt=noisy.dt, q=1.0)
    codes = {item["code"] for item in run_json("inspect", tmp_path / "zero_one.npz")["findings"]}
    assert "phase-not-reached" in codes
    for phases in ("0,1", "estimated"):
        found = run_json("inspect", tmp_path / "zero_one.npz", "--phases", phases)
        assert "phase-not-reached" not in {item["code"] for item in found["findings"]}
        assert found["phases"] == pytest.approx([0, 1], abs=0.05)
    _, out, _ = run("inspect", tmp_path / "zero_one.npz", "--phases", "0,1")
    assert "the pure phases should lie at 0 and 1" in out
    assert "wide from u = 0.05 to 0.95" in out


def test_what_reading_did_is_shown(run, run_json, tmp_path, noisy):
    u = np.pad(noisy.slab(), ((0, 0), (0, 1), (0, 1)), mode="wrap")
    np.savez(tmp_path / "twice.npz", u=u, dx=noisy.dx, dt=noisy.dt, q=1.0, boundary="periodic")
    assert [note["code"] for note in run_json("inspect", tmp_path / "twice.npz")["notes"]] == ["period-stored-twice"]
    assert "the last is left out" in run("inspect", tmp_path / "twice.npz")[1]
    assert run_json("inspect", tmp_path / "twice.npz", "--no-nodes")["notes"] == []
