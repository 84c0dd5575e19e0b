"""Memory: formats that can only be read whole are refused before they fill the machine."""

from __future__ import annotations

import os
from pathlib import Path

from doublewell.errors import InputError

__all__ = ["check_memory"]

_SHARE = 0.8  # of the machine's memory that one array may take


def check_memory(path: Path, size: int, cure: str) -> None:
    """Refuse an array of `size` bytes that is to be read whole on a machine with less memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system that does not say
        return
    if size > _SHARE * memory:
        raise InputError(
            f"{path} can only be read whole, {size / 2**30:.1f} GiB, and the machine has {memory / 2**30:.1f}: {cure}"
        )
