"""Picture: fields as small PNG images of 256 colours, written as data addresses."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.hints import Array

__all__ = ["FIELD", "PREFIX", "REST", "bar_image", "encode", "palette"]

# Both rise in brightness from end to end, so that a grey print still tells the phases apart
FIELD = "cividis"
REST = "gray"  # another map, so that a difference is not taken for a field
PREFIX = "data:image/png;base64,"


def encode(field: Array, limit: float, colours: str) -> str:
    """Return a field as a PNG in base64: -limit to limit over the colours, the first row at the bottom.

    Values beyond the limits have the colours of the ends.
    """
    share = np.clip((field / limit + 1.0) / 2.0, 0.0, 1.0)
    return b64encode(_png(np.round(255.0 * share).astype(np.uint8)[::-1], palette(colours))).decode("ascii")


def bar_image(colours: str) -> str:
    """Return the colours from the lowest to the highest as the address of an image of one row."""
    return PREFIX + b64encode(_png(np.arange(256, dtype=np.uint8)[None], palette(colours))).decode("ascii")


@cache
def palette(name: str) -> bytes:
    """Return the 256 colours of a matplotlib map as bytes."""
    import matplotlib as mpl

    colours: Any = mpl.colormaps[name](np.arange(256))
    return bytes(np.round(255.0 * colours[:, :3]).astype(np.uint8).tobytes())


def _png(levels: NDArray[np.uint8], colours: bytes) -> bytes:
    """Return an indexed image; rows are not filtered, which is best for noise."""
    height, width = levels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), levels], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
