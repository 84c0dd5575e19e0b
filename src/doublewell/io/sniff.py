"""Sniff: what a file is by its first bytes, and which files one name means (a folder or a pattern of frames)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io.format import Format, reading
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values

_HDF5 = b"\x89HDF\r\n\x1a\n"
_SIGNATURES = (  # content, the usual suffix (None: not a record), first bytes
    ("zip", ".npz", (b"PK\x03\x04", b"PK\x05\x06")),
    ("npy", ".npy", (b"\x93NUMPY",)),
    ("HDF5", ".h5", (_HDF5,)),
    ("netCDF 3", ".nc", (b"CDF",)),
    ("TIFF", ".tif", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    ("MATLAB 5", ".mat", (b"MATLAB 5.0 MAT-file",)),
    ("HDF5", ".mat", (b"MATLAB 7.3 MAT-file",)),
    ("XML", ".vti", (b"<VTKFile", b"<?xml")),
    ("PNG", None, (b"\x89PNG",)),
    ("JPEG", None, (b"\xff\xd8\xff",)),
    ("GIF", None, (b"GIF8",)),
    ("AVI", None, (b"RIFF",)),
    ("gzip", None, (b"\x1f\x8b",)),
    ("PDF", None, (b"%PDF",)),
)
_USER_BLOCKS = (512, 1024, 2048)  # an HDF5 file may begin after a block that belongs to others


def content_of(path: Path) -> str | None:
    """Return what a file is by its first bytes, None where they are unknown."""
    with path.open("rb") as file:
        head = file.read(_USER_BLOCKS[-1] + 8)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for content, _, starts in _SIGNATURES:
        if head.startswith(starts) or (content == "XML" and text.startswith(starts)):
            return content
    return "HDF5" if any(head[block : block + 8] == _HDF5 for block in _USER_BLOCKS) else None


def usual_suffix(content: str | None) -> str | None:
    """Return the suffix that files of a content have, None where they are not records."""
    return next((suffix for name, suffix, _ in _SIGNATURES if name == content), None)


def check_content(path: Path, form: Format) -> None:
    """Refuse a file whose first bytes are known to be those of another format than that of its suffix."""
    with reading(path, form.name):
        content = content_of(path) if path.is_file() else None
    if content is not None and form.contents and content not in form.contents:
        suffix = usual_suffix(content)
        cure = f"give it the suffix {suffix}, or save it again" if suffix else "convert the file"
        raise InputError(f"{path} holds {content} by its first bytes, not {form.name}: {cure}")


def is_pattern(path: Path) -> bool:
    """Tell whether a name is a pattern for several files and not a file itself."""
    return bool(set("*?[") & set(path.name)) and not path.exists()


def members(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder or of a pattern that have one of the suffixes, frame 9 before frame 10.

    Files of several suffixes, or of several beginnings such as a_1.vti and b_1.vti, are not one series.
    """
    inside = path.parent.glob(path.name) if is_pattern(path) else path.iterdir()
    frames = [item for item in inside if item.suffix.lower() in suffixes and item.is_file() and item.name[0] != "."]
    if not frames:
        raise InputError(f"{path} holds no files {', '.join(suffixes)}: check the folder or the pattern")
    stems = sorted({re.sub(r"[0-9]+", "*", item.name) for item in frames})
    if len(stems) > 1:
        raise InputError(
            f"{path} holds files of several series, {', '.join(stems[:6])}: pass a pattern for one of them, such as "
            f"{path.parent if is_pattern(path) else path}/{stems[0]}"
        )
    return sorted(frames, key=natural)


def natural(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that counts the numbers in a name.

    >>> sorted([Path("f10.vti"), Path("f9.vti")], key=natural)[0].name
    'f9.vti'
    """
    parts = re.split(r"([0-9]+)", path.name)
    return tuple((1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts))


def file_frames(
    paths: Sequence[Path], read: Callable[[Path], Values], mesh: tuple[int, ...], dtype: np.dtype[Any]
) -> LazyArray:
    """Return frames of one mesh, each in a file of its own, that ``read(file)`` returns when they are sliced."""
    files, dtype = tuple(paths), np.dtype(dtype)
    return LazyArray(partial(_read_frames, files, read, mesh, dtype), (len(files), *mesh), dtype, files=files)


def _read_frames(
    paths: tuple[Path, ...], read: Callable[[Path], Values], mesh: tuple[int, ...], dtype: np.dtype[Any], block: Block
) -> Values:
    frames, *cells = block
    parts = []
    for path in paths[frames]:
        frame = read(path)
        if frame.shape != mesh or frame.dtype != dtype:
            raise InputError(
                f"{path} holds a frame of shape {frame.shape} and type {frame.dtype}, and {paths[0].name} one of "
                f"{mesh} and {dtype}: expected the same mesh in every frame; leave out the other files"
            )
        parts.append(np.array(frame[tuple(cells)]))
    return np.stack(parts)
