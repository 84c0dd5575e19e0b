"""TIFF: stacks with the metadata of OME or ImageJ, plain stacks, and folders with an image a frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import Axis, Format, Found, choose_named, reading
from doublewell.io.mapped import MappedArray
from doublewell.io.missing import library
from doublewell.io.series import FileFrames, is_pattern, members
from doublewell.io.tiff_metadata import imagej_axes, ome_axes, ome_channels
from doublewell.io.tiff_stack import TiffStack, open_tiff

__all__ = ["TIFF", "read_tiff"]

_KIND = "TIFF file"
_SUFFIXES = (".tif", ".tiff", ".btf", ".tf8")
_COLOURS = {2: "RGB", 5: "CMYK", 6: "YCbCr", 8: "CIELab"}
_PALETTE = 3


def read_tiff(path: Path, var: str | None, wanted: frozenset[str]) -> Found:  # noqa: ARG001 (costs nothing to look)
    """Find the movie of a TIFF stack, or of a folder with an image a frame; only metadata are read.

    `var` chooses a channel, or an image where a file holds several.
    """
    library("tifffile", "tiff", "reading TIFF files")
    with reading(path, _KIND):
        if is_pattern(path) or path.is_dir():
            return _folder(path, var)
        found = _stack(path, var)
        if found.values.ndim < 3:
            raise InputError(
                f"{path} holds one image of shape {found.values.shape}: expected a stack of at least 2; pass the "
                "folder of all images"
            )
        return found


def _stack(path: Path, var: str | None) -> Found:
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes): expected a {_KIND}; copy the file again")
    with open_tiff(path) as file:
        number = _choose_series(path, file.series, var)
        series = file.series[number].levels[0]
        _check_gray(path, file, series.keyframe)
        shape, letters = tuple(int(n) for n in series.shape), _letters(series.axes)
        chosen = _choose_channel(path, file, shape, letters, var if len(file.series) == 1 else None)
        return Found(_values(path, file, number), {}, _axes(file, series, letters, number), chosen)


def _folder(path: Path, var: str | None) -> Found:
    """A folder, or a pattern, with an image a frame; the first says the pixel size, none the frame interval."""
    paths = members(path, _SUFFIXES)
    first = _stack(paths[0], var)
    if len(paths) == 1:
        return first
    frame = _image(paths[0])
    frames = FileFrames(paths, _image, frame.shape, frame.dtype)
    space = tuple(axis for axis in first.axes or () if axis.name in ("x", "y"))
    return Found(frames, {}, (Axis("t"), *space))


def _image(path: Path) -> NDArray[Any]:
    """Read a file that holds one frame."""
    with reading(path, _KIND):
        found = _stack(path, None)
        sizes = {axis.name: n for axis, n in zip(found.axes or (), found.values.shape, strict=True)}
        frame = tuple(n for name, n in sizes.items() if name in ("x", "y"))
        if len(frame) != 2 or int(np.prod(found.values.shape, dtype=object)) != frame[0] * frame[1]:
            raise InputError(
                f"{path} has shape {found.values.shape}: expected one image, as it is one of several files"
            )
        return np.asarray(found.values[:]).reshape(frame)


def _choose_series(path: Path, series: Sequence[Any], var: str | None) -> int:
    if not series:
        raise InputError(f"{path} holds no image: copy the file again")
    if len(series) == 1:
        return 0
    titles = [str(item.name) for item in series]
    names = [title if title and titles.count(title) == 1 else str(place) for place, title in enumerate(titles)]
    return choose_named(path, "image", names, var)


def _check_gray(path: Path, file: Any, page: Any) -> None:
    colour = _COLOURS.get(int(page.photometric))
    if colour is None and page.samplesperpixel > 1:
        colour = f"{page.samplesperpixel} samples a pixel"
    if colour is not None:
        raise InputError(
            f"{path} holds colour images ({colour}): expected one number a pixel; save the channel that shows the "
            "phase as 8-bit, 16-bit or 32-bit gray"
        )
    if int(page.photometric) == _PALETTE and not file.is_imagej:
        raise InputError(f"{path} holds images with a palette, whose numbers are no intensities: save them as gray")


def _letters(axes: str) -> list[str]:
    """Return the letters of the axes; a page axis without a meaning is time, a second one z."""
    letters = axes.lower()
    for name in "tz":
        unknown = [letter for letter in letters if letter not in "tczyx"]
        if unknown and name not in letters:
            letters = letters.replace(unknown[0], name, 1)
    return list(letters)


def _axes(file: Any, series: Any, letters: list[str], number: int) -> tuple[Axis, ...]:
    if file.is_ome and file.ome_metadata:
        return ome_axes(letters, file.ome_metadata, number)
    if file.is_imagej and file.imagej_metadata:
        tags = {tag.name: tag.value for tag in series.keyframe.tags}
        return imagej_axes(letters, file.imagej_metadata, tags)
    return tuple(Axis(letter) for letter in letters)


def _choose_channel(
    path: Path, file: Any, shape: tuple[int, ...], letters: list[str], var: str | None
) -> dict[int, int]:
    """Return the place of one channel, where there are several."""
    axis = letters.index("c") if "c" in letters else -1
    if axis < 0 or shape[axis] == 1:
        if var is not None:
            raise InputError(f"{path} holds one stack of one channel: leave out var={var!r}")
        return {}
    found = ome_channels(file.ome_metadata, 0) if file.is_ome and file.ome_metadata else []
    names = found if len(set(found)) == shape[axis] else [str(channel) for channel in range(shape[axis])]
    return {axis: choose_named(path, "channel", names, var)}


def _values(path: Path, file: Any, number: int) -> Any:
    """Return the images as one array: mapped where the numbers lie one after the other as they are."""
    series = file.series[number].levels[0]
    shape, pages = tuple(int(n) for n in series.shape), len(series.pages)
    plain = series.keyframe.is_memmappable and not series.is_multifile and file.filehandle.is_file
    offset = series.dataoffset if plain else None
    if offset is not None:
        return MappedArray(path, int(offset), shape, series.dtype.newbyteorder(file.byteorder))
    if int(np.prod(shape, dtype=object)) != pages * series.keyframe.size:
        raise InputError(f"{path} is damaged: {pages} images do not fill shape {shape}; copy the file again")
    return TiffStack(path, number, shape, series.dtype)


TIFF = Format("TIFF file", _SUFFIXES, read_tiff, contents=("TIFF",), series=True)
