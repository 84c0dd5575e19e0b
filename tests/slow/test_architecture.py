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
    assert any(line.startswith("heavy libraries after import") and line.endswith("ok") for line in rows)
