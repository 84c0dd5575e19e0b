"""HDF5 heaps: texts of any length lie in heaps, and the HDF5 library goes round for ever in a damaged one (2.0.0).

A heap begins with GCOL and holds objects, each with its number and its length; number 0 is the free space at the end.
Here the lengths are followed before the library does it.
"""

from __future__ import annotations

import struct
from pathlib import Path

from doublewell.errors import InputError

__all__ = ["check_heaps"]

_SIGNATURE, _OBJECT = b"GCOL\1\0\0\0", struct.Struct("<HHIQ")
_ALIGNED, _SMALLEST = 8, 4096
_LOOKED_AT = (
    64 * 2**20
)  # bytes at the start and at the end: heaps lie beside the metadata, not in the middle of a movie


def check_heaps(path: Path) -> None:
    """Refuse an HDF5 file with a heap whose objects do not follow each other."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for start in sorted({0, max(0, size - _LOOKED_AT)}):
            file.seek(start)
            if not _are_sound(file.read(_LOOKED_AT)):
                raise InputError(f"{path} is damaged or cut short (a heap of texts is broken): copy the file again")


def _are_sound(block: bytes) -> bool:
    place = block.find(_SIGNATURE)
    while place >= 0:
        (length,) = struct.unpack_from("<Q", block.ljust(place + 16, b"\0"), place + 8)
        if length >= _SMALLEST and place + length <= len(block) and not _is_sound(block, place + 16, place + length):
            return False
        place = block.find(_SIGNATURE, place + 1)
    return True


def _is_sound(block: bytes, place: int, end: int) -> bool:
    while place + _OBJECT.size <= end:
        number, _, _, length = _OBJECT.unpack_from(block, place)
        step = length if number == 0 else _OBJECT.size + -(-length // _ALIGNED) * _ALIGNED
        if step < _OBJECT.size or place + step > end:
            return False
        place += step
    return True
