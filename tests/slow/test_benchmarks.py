"""Every benchmark still runs: each script with --tiny, as a process of its own, leaves the stored results alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"architecture.py": "tests/slow/test_architecture.py", "golden.py": "tests/golden"}
SCRIPTS = [
    path.name
    for path in sorted((ROOT / "benchmarks").glob("*.py"))
    if '__name__ == "__main__"' in path.read_text() and path.name not in ELSEWHERE
]


def kept_files() -> dict[Path, tuple[int, int]]:
    """Return size and time of all that benchmarks write when they run in full."""
    folders = (ROOT / "benchmarks/results", ROOT / "docs")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs_with_tiny(name: str, tmp_path: Path) -> None:
    script, before = ROOT / "benchmarks" / name, kept_files()
    helpers = ("--tiny", "sized(", "words(", "target(", "evidence_files(", "file_of(")
    assert any(helper in script.read_text() for helper in helpers), f"{name} has no --tiny, see benchmarks/common.py"
    done = subprocess.run(
        [sys.executable, str(script), "--tiny"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    assert kept_files() == before
    assert not list(tmp_path.iterdir())
