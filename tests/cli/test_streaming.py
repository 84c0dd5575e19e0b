"""The shell's way to a movie that is read part by part."""

from __future__ import annotations

import pytest

from doublewell.io import save

WEAK = ("--method", "weak", "--degree", "2")


@pytest.fixture(scope="module")
def stored(tmp_path_factory, noisy):
    path = tmp_path_factory.mktemp("stored") / "movie.zarr"
    save(noisy, path)
    return path


@pytest.fixture
def plain(run_json, stored):
    return run_json("identify", stored, *WEAK)


def test_memory_and_checkpoint_give_the_answer_of_the_plain_command(run_json, stored, plain, tmp_path):
    kept = tmp_path / "part.npz"
    words = ("identify", stored, *WEAK, "--memory", "1GB", "--checkpoint", kept)
    found, again = run_json(*words), run_json(*words)
    assert kept.exists()
    assert found["coefficients"] == pytest.approx(plain["coefficients"], rel=1e-10)
    assert again["coefficients"] == found["coefficients"]


def test_workers_are_processes(run_json, stored, plain):
    found = run_json("identify", stored, *WEAK, "--workers", "2")
    assert found["coefficients"] == pytest.approx(plain["coefficients"], rel=1e-10)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "much"), "memory is 'much': expected a size such as"),
        (("--memory", "2MB"), "memory is 2 MB: expected at least"),
        (("--workers", "0"), "--workers is 0: expected"),
        (("--workers", "2", "--scheduler", "tcp://a:1"), "workers and scheduler are both given"),
    ],
)
def test_wrong_resources_are_named(refused, stored, words, said):
    assert said in refused("identify", stored, *WEAK, *words)


def test_a_checkpoint_of_another_reading_is_refused(run, refused, stored, tmp_path):
    kept = tmp_path / "part.npz"
    assert run("identify", stored, *WEAK, "--checkpoint", kept)[0] == 0
    assert "part.npz" in refused("identify", stored, "--method", "weak", "--degree", "3", "--checkpoint", kept)
