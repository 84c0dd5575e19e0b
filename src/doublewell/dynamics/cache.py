"""Compiled JAX programs kept between processes: the first run on a machine compiles, later ones load."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

__all__ = ["keep_compiled"]

SWITCH = "DOUBLEWELL_CACHE"  # a folder, or "off"
_SOUND = (0, 6, 2)  # of JAX: programs that 0.5.3 and 0.6.0 load from their cache end a loop before its first round


@cache
def keep_compiled() -> None:
    """Give JAX a folder for compiled programs, unless the user chose one, or none; once in a process.

    JAX before 0.6.2 gets none: what it loads on a CPU gives other numbers than what it compiled.
    """
    import jax

    if jax.__version_info__ < _SOUND:
        return
    wanted = os.environ.get(SWITCH, "")
    if wanted.lower() in ("off", "0", "no") or jax.config.jax_compilation_cache_dir is not None:
        return
    place = (Path(wanted).expanduser() if wanted else _user_cache() / "doublewell") / f"jax-{_machine()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written: compile each time, as JAX does by itself
        return
    jax.config.update("jax_compilation_cache_dir", str(place))


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~")).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _machine() -> str:
    """Name the kind of processor: programs compiled for one may not run on another that shares the home folder."""
    text = f"{platform.machine()} {platform.processor()}"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    kinds = sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    return sha256(" ".join([text, *kinds]).encode()).hexdigest()[:12]
