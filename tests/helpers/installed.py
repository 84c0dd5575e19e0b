"""The package as it is shipped: source and wheel are built, and the wheel is installed into an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What a shell outside the repository does not have: our sources, our flags; compiled programs are kept as in all tests.
OURS = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONWARNINGS")


class Installed:
    """An environment that holds the wheel with its extras and nothing else, in a folder outside the repository."""

    def __init__(self, folder: Path, extra: str = "") -> None:
        self.folder, self.dist = folder, folder / "dist"
        self._call(sys.executable, "-m", "build", "--outdir", str(self.dist), str(ROOT))  # the wheel from the source
        (self.wheel,), (self.source,) = self.dist.glob("*.whl"), self.dist.glob("*.tar.gz")
        self._call(sys.executable, "-m", "venv", str(folder / "venv"))
        self.bin = folder / "venv/bin"
        wanted = f"{self.wheel}[{extra}]" if extra else str(self.wheel)
        self.run("python", "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), wanted)

    def run(self, program: str, *words: str) -> str:
        """Run a program of the environment and return what it prints."""
        return self._call(str(self.bin / program), *words)

    @staticmethod
    def environment() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if name not in OURS}

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout
