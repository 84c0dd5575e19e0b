"""Room for compiled programs: Linux gives a process a limited number of pieces of memory, and JAX needs many."""

from __future__ import annotations

from pathlib import Path

__all__ = ["leave_room"]

_LIMIT, _USED = Path("/proc/sys/vm/max_map_count"), Path("/proc/self/maps")
_SHARE = 0.6  # of the pieces that may be in use before old programs are dropped


def leave_room() -> bool:
    """Drop all compiled programs where so many are held that more of them could crash the process; say so.

    A program is some dozens of pieces. After some hundred records of different shapes the limit, 65530 as a rule, is
    reached, and JAX then dies on the next one. Programs that are needed again are loaded from the cache on disk.
    """
    try:
        limit = int(_LIMIT.read_text())
        with _USED.open("rb") as lines:
            used = sum(1 for _ in lines)
    except (OSError, ValueError):  # not Linux
        return False
    if used < _SHARE * limit:
        return False
    import jax

    jax.clear_caches()
    return True
