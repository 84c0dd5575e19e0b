"""HDF5 heaps: texts of any length lie in heaps, and the HDF5 library goes round for ever in a damaged one (2.0.0).

A heap begins with GCOL and holds objects, each with its number and its length; number 0 is the free space at the end.
Here the lengths are followed before the library does it.
"""

from __future__ import annotations

import struct
from mmap import ACCESS_READ, mmap
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
    parts = {(0, min(size, _LOOKED_AT)), (max(0, size - _LOOKED_AT), size)}
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        if not all(_are_sound(content, *part) for part in parts):
            raise InputError(f"{path} is damaged or cut short (a heap of texts is broken): copy the file again")


def _are_sound(content: mmap, start: int, stop: int) -> bool:
    place = content.find(_SIGNATURE, start, stop - _OBJECT.size)
    while place >= 0:
        (length,) = struct.unpack_from("<Q", content, place + 8)
        whole = length >= _SMALLEST and place + length <= len(content)  # any other length is no heap, or is found out
        if whole and not _is_sound(content, place + 16, place + length):
            return False
        place = content.find(_SIGNATURE, place + 1, stop - _OBJECT.size)
    return True


def _is_sound(content: mmap, place: int, end: int) -> bool:
    while place + _OBJECT.size <= end:
        number, _, _, length = _OBJECT.unpack_from(content, place)
        step = length if number == 0 else _OBJECT.size + -(-length // _ALIGNED) * _ALIGNED
        if step < _OBJECT.size or place + step > end:
            return False
        place += step
    return True
