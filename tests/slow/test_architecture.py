"""The script that measures the package runs and prints every figure beside its target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "architecture.py"


def test_every_figure_is_printed():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)
    rows = [line for line in done.stdout.splitlines() if line.endswith(("ok", "miss"))]
    assert len(rows) >= 10
    shape = ("files over", "fit: most times", "tests of", "heavy libraries")  # the others may grow with what is added
    assert [line for line in rows if line.startswith(shape) and line.endswith("miss")] == []
