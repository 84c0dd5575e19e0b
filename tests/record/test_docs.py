"""The page keeps its word: its numbers are those of the file."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_table_is_the_file():
    page = (ROOT / "docs/intensities.md").read_text()
    kept = json.loads((ROOT / "benchmarks/results/camera.json").read_text())
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert [row[0] for row in rows] == [row["camera"] for row in kept["rows"]]
    for (_, *said), row in zip(rows, kept["rows"], strict=True):
        for number, key in zip(said, ("force", "worst", "uncorrected"), strict=True):
            assert float(number) == pytest.approx(100 * row[key], abs=0.006)
    (direct,) = re.findall(r"same noise the error is ([\d.]+) %", page)
    assert float(direct) == pytest.approx(100 * kept["phase values directly"], abs=0.006)
    assert max(row["worst"] for row in kept["rows"]) < 0.02


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    """Numbers of the text are those of the run to two digits: another machine rounds otherwise."""
    pytest.importorskip("tifffile")
    page = (ROOT / "docs/intensities.md").read_text()
    code, said = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "intensities.md", "exec"), {})
    found = capsys.readouterr().out
    number = r"-?\d+\.?\d*"
    assert re.sub(number, "#", found) == re.sub(number, "#", said)
    for mine, theirs in zip(re.findall(number, found), re.findall(number, said), strict=True):
        assert float(mine) == pytest.approx(float(theirs), rel=0.05)
