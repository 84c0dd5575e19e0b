"""Blosc: a look at the first bytes of a packed chunk, which the library trusts and crashes on."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

__all__ = ["is_blosc", "is_sound"]

_HEADER = struct.Struct("<BBBBIII")  # versions, flags, bytes a number; bytes unpacked, in a block, packed


def is_blosc(array: Any) -> bool:
    """Tell whether the chunks of a zarr array are packed by Blosc and lie in files of their own."""
    return array.shards is None and any("blosc" in type(codec).__name__.lower() for codec in array.compressors)


def is_sound(file: Path) -> bool:
    """Tell whether the header of a packed chunk fits the file."""
    with file.open("rb") as content:
        head = content.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return False
    _, _, _, size, unpacked, block, packed = _HEADER.unpack(head)
    return bool(packed == file.stat().st_size and size > 0 and 0 < block <= max(unpacked, 1))
