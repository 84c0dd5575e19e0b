"""PNG: a folder with one picture per frame, read by Pillow, which Matplotlib brings."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.record.arrays import Values

_SUFFIXES = (".png",)
_GREY = {"L": "u1", "I": "i4", "I;16": "u2", "I;16B": "u2"}
_COLOUR = ("RGB", "RGBA", "LA")
_CHANNELS = ("red", "green", "blue")


def read_png(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (has no metadata)
    """Find the frames of a folder or of a pattern; the first is read, the others when they are sliced.

    `var` chooses a colour of pictures that have several; greys that are stored as colours need none.
    """
    if not (files.is_pattern(path) or path.is_dir()):
        raise InputError(f"{path} holds one picture: expected one for each frame; pass the folder of all pictures")
    paths = files.members(path, _SUFFIXES)
    first, channel = _picture(paths[0], None), None
    if first.ndim == 3:
        channel = files.choose_named(path, "colour", _CHANNELS, var)
        first = first[..., channel]
    else:
        files.refuse_name(path, var)
    values = files.file_frames(paths, partial(_frame, channel), first.shape, first.dtype)
    return StoredField(values, {}, (Axis("t"), Axis("y"), Axis("x")))


def _frame(channel: int | None, path: Path) -> Values:
    values = _picture(path, channel)
    if values.ndim == 3:
        raise InputError(f"{path} is a colour picture, and the first one is grey: expected pictures of one kind")
    return values


def _picture(path: Path, channel: int | None) -> Values:
    """Read a grey picture, or one colour; all of them where none is given and they differ.

    The size is known, and limited, before the picture is unpacked.
    """
    from PIL import Image

    with files.reading(path, "PNG"), warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(path, formats=("PNG",)) as picture:
                mode = picture.mode
                if mode not in (*_GREY, *_COLOUR):
                    raise InputError(f"{path} has colours of a palette, or one bit ({mode}): save it as grey")
                values = np.asarray(picture)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise InputError(f"{path} has more than {Image.MAX_IMAGE_PIXELS} pixels: cut it into parts") from error
    if mode in _GREY:
        return values.astype(_GREY[mode], copy=False)
    colours = values[..., :3] if mode != "LA" else values[..., :1]
    if channel is not None or not np.ptp(colours, axis=-1).any():
        return np.ascontiguousarray(colours[..., (channel or 0) % colours.shape[-1]])
    return colours
