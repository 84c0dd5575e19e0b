"""A folder of movies is killed three times and ends with the same files as an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from doublewell.io import save
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

MOVIES, PATIENCE = 6, 300.0


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    start = initial_field("nonconvex", (24, 24), 1 / 24, epsilon=0.1)
    clean = simulate(named_law("sixth"), start, dx=1 / 24, dt=5e-4, frames=15, epsilon=0.1)
    for k in range(MOVIES):
        save(add_noise(clean, 0.02, seed=k), folder / f"movie{k}.npz")
    (folder / "doublewell.toml").write_text(
        "surface_tension = 0.9877\ndegree = 1\n[conditions]\nT = [300, 300, 310, 310, 320, 320]\n"
    )
    return folder


def command(data: Path, out: Path) -> list[str]:
    files = [str(path) for path in sorted(data.glob("*.npz"))]
    return [sys.executable, "-m", "doublewell", "identify", *files, "--out", str(out), "--workers", "2", "--quiet"]


def done(out: Path) -> int:
    return len(list(out.glob("*/result.json")))


def test_a_folder_that_is_killed_three_times_ends_in_the_same_summary(data, tmp_path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(data, whole), check=True, timeout=PATIENCE)
    kept: dict[Path, int] = {}
    for kill in range(3):
        before, until = done(killed), monotonic() + PATIENCE
        with subprocess.Popen(command(data, killed), start_new_session=True) as process:
            while done(killed) <= before and monotonic() < until and process.poll() is None:
                sleep(0.02)
            assert process.poll() is None, "the run ended before it could be killed"
            os.killpg(process.pid, signal.SIGKILL) if kill == 1 else process.kill()  # with its workers, or alone
        sleep(1.0)  # workers that were left alone end
        assert before < done(killed) < MOVIES
        assert not (killed / "summary.csv").exists()
        assert all(path.stat().st_mtime_ns == time for path, time in kept.items())  # what was done is not done again
        kept = {path: path.stat().st_mtime_ns for path in killed.glob("*/result.json")}
    subprocess.run(command(data, killed), check=True, timeout=PATIENCE)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    for name in ("summary.csv", "index.html"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    results = sorted(path.relative_to(whole) for path in whole.glob("*/*.*"))
    assert all((killed / name).read_bytes() == (whole / name).read_bytes() for name in results)
    assert len(results) == 2 * MOVIES
