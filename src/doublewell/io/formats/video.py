"""Video: AVI, MP4 and the like by PyAV (FFmpeg), as grey values. What packs with loss is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.record import LazyArray, Note
from doublewell.record.arrays import Block, Values

_LOSSLESS = ("rawvideo", "ffv1", "huffyuv", "ffvhuff", "png", "utvideo", "magicyuv", "qtrle", "tiff")
_COLOURED = 24  # levels of 255 that red, green and blue of grey may differ by: what packing with loss leaves
# no playlists: FFmpeg knows those by their content, and would open what they name
_ONLY = {"protocol_whitelist": "file", "format_whitelist": "avi,mov,matroska"}
_PIXELS = 2**27  # of a frame, at most


def read_video(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (has no metadata)
    """Count the frames of a video, whose metadata do not tell for sure; they are unpacked when sliced.

    The frames a second are how fast it is shown, and not how it was recorded: the interval is asked for.
    """
    files.refuse_name(path, var)
    with _open(path) as (stream, frames):
        codec, depth = str(stream.codec_context.name), 16 if "16" in str(stream.codec_context.pix_fmt) else 8
        first, count = next(frames, None), 1
        if first is None:
            raise InputError(f"{path} has no frames: copy the file again")
        if not str(first.format.name).startswith("gray"):
            colours = first.to_ndarray(format="rgb24").astype(np.int16)
            if int(np.ptp(colours, axis=-1).max()) > _COLOURED:
                raise InputError(f"{path} is a colour video: expected grey; convert the channel that shows the phase")
        mesh = (int(first.height), int(first.width))
        for frame in frames:
            if (int(frame.height), int(frame.width)) != mesh:
                raise InputError(f"{path} has frames of several sizes: expected one; copy the file again")
            count += 1
    notes: tuple[Note, ...] = ()
    if codec not in _LOSSLESS:
        words = f"the video is packed with loss ({codec}): values near interfaces are changed; record without packing"
        notes = (Note("packed-with-loss", words, matters=True),)
    dtype = np.dtype(f"u{depth // 8}")
    values = LazyArray(partial(_read, path, dtype), (count, *mesh), dtype, files=(path,))
    return StoredField(values, {}, (Axis("t"), Axis("y"), Axis("x")), notes=notes)


@contextmanager
def _open(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open the first video stream of a file, and its frames in order; other files that it names are not opened."""
    av = files.library("av", "video", "reading videos")
    with files.reading(path, "video"):
        try:
            container = av.open(str(path), options=_ONLY, metadata_errors="ignore")
        except av.FFmpegError as error:
            raise InputError(f"{path} is damaged or no video ({error.strerror}): copy the file again") from error
        with container:
            if not container.streams.video:
                raise InputError(f"{path} has no video stream: expected a movie")
            stream = container.streams.video[0]
            if stream.codec_context.width * stream.codec_context.height > _PIXELS:
                raise InputError(f"{path} has frames of more than {_PIXELS} pixels: cut them into parts")
            try:
                yield stream, container.decode(stream)
            except av.FFmpegError as error:
                raise InputError(f"{path} is damaged ({error.strerror}): copy the file again") from error


def _read(path: Path, dtype: np.dtype[Any], block: Block) -> Values:
    """Unpack frames from the first on, for each depends on those before; only those of the block are kept."""
    frames, *cells = block
    form, kept, wanted = (
        "gray" if dtype.itemsize == 1 else "gray16le",
        [],
        range(frames.start, frames.stop, frames.step),
    )
    with _open(path) as (_, decoded):
        for number, frame in enumerate(decoded):
            if number >= frames.stop:
                break
            if number in wanted:
                kept.append(frame.to_ndarray(format=form)[tuple(cells)].astype(dtype))
    if len(kept) != len(wanted):
        raise InputError(f"{path} ends before frame {frames.stop - 1}: copy the file again")
    return np.stack(kept)
