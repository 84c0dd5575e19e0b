"""Damage: random changes to the bytes of a file, as a bad disk, a bad cable or an editor makes them."""

from __future__ import annotations

_SCRAPS = [b"9", b"-", b"0" * 9, b'"', b"}", b"[", b"null", b"\x00", b"1e999", b"\xff" * 8, b"\x7f\xff\xff\xff"]


def damaged(raw, rng):
    """Change, cut, repeat or insert a few bytes."""
    raw = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        place, kind = int(rng.integers(len(raw))), rng.integers(8)
        if kind < 3:
            raw[place] = int(rng.integers(256))
        elif kind == 3:
            raw[place] ^= 1 << int(rng.integers(8))
        elif kind == 4:
            del raw[place : place + int(rng.integers(1, 9))]
        elif kind == 5:
            raw[place:place] = rng.choice(_SCRAPS)
        elif kind == 6:
            raw[place : place + 4] = int(rng.integers(2**32)).to_bytes(4, "little")
        else:
            del raw[place : place + int(rng.integers(len(raw)))]
        if not raw:
            return b""
    return bytes(raw)
