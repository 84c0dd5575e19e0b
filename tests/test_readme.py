"""The README keeps its word: its Python runs as written, its numbers come from files that a command wrote."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from doublewell.cli import main
from doublewell.law import named_law
from doublewell.simulate import add_noise, initial_field, simulate

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


FILE_BLOCK, ARRAY_BLOCK = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", [FILE_BLOCK, ARRAY_BLOCK])
def test_blocks_are_short(block: str) -> None:
    assert len([line for line in block.splitlines() if line.strip()]) < 10


def test_file_block_runs(tmp_path, monkeypatch, capsys) -> None:
    """A camera of 16 bits; lengths in um, times in s, so that q = 2 um^2/s."""
    tifffile = pytest.importorskip("tifffile")
    start = initial_field("circle", (48, 48), 1 / 48, epsilon=0.05)
    clean = simulate(named_law("sixth"), start, dx=1 / 48, dt=2e-4, frames=15, epsilon=0.05)
    counts = np.round(9000 + 4000 * add_noise(clean, 0.03, seed=5).slab()).astype("u2")
    about = {"axes": "TYX", "unit": "um", "finterval": 2e-4 * 9.6**2 / 2.0}
    tifffile.imwrite(tmp_path / "movie.tif", counts, imagej=True, resolution=(5.0, 5.0), metadata=about)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(FILE_BLOCK, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert "kappa" in out
    assert "type = DerivativeParsedMaterial" in out
    assert (tmp_path / "report.html").stat().st_size > 10_000
    u = np.linspace(-0.9, 0.9, 21)
    true = named_law("sixth").effective(0.05 * 9.6).force(u)
    assert np.linalg.norm(names["result"].force(u) - true) < 0.05 * np.linalg.norm(true)


def test_python_block_runs(tmp_path, monkeypatch, capsys) -> None:
    block = ARRAY_BLOCK
    start = initial_field("circle", (32, 32), 1 / 96, epsilon=0.03)
    clean = simulate(named_law("sixth"), start, dx=1 / 96, dt=5e-5, frames=15, epsilon=0.03)
    np.save(tmp_path / "movie.npy", add_noise(clean, 0.03, seed=5).slab())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    printed = re.search(r"epsilon = ([\d.]+)", capsys.readouterr().out)
    assert printed is not None
    assert float(printed[1]) == pytest.approx(0.03, rel=0.1)  # 32 x 32 pixels with noise, contrast not known
    assert names["low"] < names["F"] < names["high"]
    assert names["F"] == pytest.approx(float(named_law("sixth").primitive(0.3)), rel=0.02)
    assert (tmp_path / "result.json").exists()


def test_shell_block_runs(tmp_path, monkeypatch, capsys) -> None:
    """Every line runs in order on a fresh machine; the movie is made smaller, so that it is fast."""
    (block,) = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    activate, *lines = block.splitlines()
    assert activate == ". .venv/bin/activate"
    assert "VENV := .venv\n" in (ROOT / "Makefile").read_text()
    monkeypatch.chdir(tmp_path)
    for line in lines:
        program, command, *words = shlex.split(line)
        assert program == "doublewell"
        smaller = ["--mesh", "32x32", "--frames", "15", "--epsilon", "0.1", "--dt", "5e-4"]
        assert main([command, *words, *(smaller if command == "simulate" else [])]) == 0
    out = capsys.readouterr().out
    assert "by the trajectory fit" in out
    assert "law of degree 2 by the weak-form fit" in out
    assert (tmp_path / "result.json").exists()
    assert (tmp_path / "figures" / "law.png").exists()


def test_table_is_the_file() -> None:
    rows = json.loads((ROOT / "benchmarks/results/principal.json").read_text())["rows"]
    table = re.findall(r"^\| (\w[\w ]*?) \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$", README, flags=re.MULTILINE)
    assert len(table) == len(rows)
    for (law, force, epsilon), row in zip(table, rows, strict=True):
        assert law.split()[0] == row["law"].split()[0]
        assert float(force) == pytest.approx(row["e_G"], rel=0.005)
        assert float(epsilon) == pytest.approx(row["|e_eps|"], abs=0.006)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+?)\)", text):
        assert "://" in target or ((ROOT / page).parent / target).exists(), target


def test_trajectory_table_is_the_files() -> None:
    pattern = r"^\| (0\.\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \|"
    table = re.findall(pattern, README, flags=re.MULTILINE)
    assert len(table) == 3
    for noise, *numbers in table:
        name = f"trajectory_noise_{noise.replace('.', ''):0<3}.json".replace("0010", "010")
        rows = json.loads((ROOT / "benchmarks/results" / name).read_text())["rows"]
        (row,) = [row for row in rows if row["law"] == "the paper's four"]
        keys = ("records", "e_G", "|e_eps|", "band covers", "epsilon covers")
        factors = (1, 1, 1, 100, 100)
        for number, key, factor in zip(numbers, keys, factors, strict=True):
            assert float(number) == pytest.approx(factor * row[key], rel=0.006), (noise, key)
