"""Memory: a budget in words or numbers, and sizes in words."""

from __future__ import annotations

import re
from typing import Any

from doublewell.checks import shown
from doublewell.errors import InputError

__all__ = ["DEFAULT", "parse_memory", "shown_bytes"]

DEFAULT = 2 * 10**9  # bytes of one worker
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
