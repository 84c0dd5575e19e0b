"""What a run may use: memory as words or numbers, workers, a checkpoint."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

from doublewell.checks import shown, whole
from doublewell.errors import InputError

_TEXT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_memory(memory: Any) -> int:
    """Return a budget in bytes: a number of them, or a text such as "2GB", "500 MB" or "1.5 GiB".

    >>> parse_memory("2GB"), parse_memory("1.5 GiB"), parse_memory(10**9)
    (2000000000, 1610612736, 1000000000)
    """
    size = -1.0
    if isinstance(memory, str) and (found := _TEXT.fullmatch(memory)):
        number, power, binary = found.groups()
        size = float(number) * (1024 if binary else 1000) ** _POWERS[power.lower()]
    elif isinstance(memory, int | float) and not isinstance(memory, bool):
        size = float(memory)
    if not 1.0 <= size < 2**63:
        raise InputError(f'memory is {shown(memory)}: expected a size such as "2GB" or "500 MB", or a number of bytes')
    return int(size)


def shown_bytes(size: float) -> str:
    """Return a size in words.

    >>> shown_bytes(2_140_000_000), shown_bytes(350e6), shown_bytes(900)
    ('2.1 GB', '350 MB', '900 bytes')
    """
    if size < 1e6:
        return f"{size:.0f} bytes"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def check_resources(
    memory: Any, workers: int | None, scheduler: Any, checkpoint: str | PathLike[str] | None
) -> tuple[int | None, int, Path | None]:
    """Return the budget in bytes, None without one, the number of workers and the path of the checkpoint."""
    budget = None if memory is None else parse_memory(memory)
    count = 1 if workers is None else whole(workers, "workers", least=1)
    if scheduler is not None and workers is not None:
        raise InputError("workers and scheduler are both given: a scheduler has its own workers; give one of them")
    if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
        raise InputError(f"checkpoint is {shown(checkpoint)}: expected the name of a file")
    return budget, count, None if checkpoint is None else Path(checkpoint).expanduser()
