"""About: where numbers come from: the commit, the machine and the libraries, without names of hosts or folders."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from doublewell.jax_runtime import device_names
from doublewell.version import __version__

__all__ = ["about"]

_LIBRARIES = ("numpy", "scipy", "numba", "jax")


def about() -> dict[str, str]:
    """Return what goes beside the numbers, each as one line of text."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "doublewell": __version__,
        "commit": commit(Path(__file__).parent),
        "machine": f"{os.cpu_count()} cores of {_processor()}, {platform.system()}",
        "device": device_names()[0],
        "libraries": ", ".join([f"Python {platform.python_version()}", *(f"{n} {version(n)}" for n in _LIBRARIES)]),
    }


def commit(folder: Path) -> str:
    """Return the commit of the sources, and whether they were changed since; or that there is none."""
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not head:
        return "not from a checkout"
    return f"{head}, with changes" if _git(folder, "status", "--porcelain", "--", ".") else head


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
