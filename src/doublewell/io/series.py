"""Series: a movie with one file a frame, named by a folder or by a pattern such as run/frame*.vti."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.view import Index, ranges

__all__ = ["FileFrames", "is_pattern", "members", "natural"]

_WILD = set("*?[")


class FileFrames:
    """Frames of one shape, each in a file of its own, read when sliced: ``read(file)`` returns the frame."""

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[Path], NDArray[Any]],
        frame: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.paths, self.read = tuple(paths), read
        self.shape = (len(self.paths), *frame)
        self.dtype, self.ndim = np.dtype(dtype), len(frame) + 1

    def __getitem__(self, index: Index) -> NDArray[Any]:
        frames, *cells = ranges(index, self.shape)
        chosen = self.paths[frames]
        block = np.empty((len(chosen), *(len(range(n)[part]) for n, part in zip(self.shape[1:], cells, strict=True))),
                         dtype=self.dtype)  # fmt: skip
        for place, path in enumerate(chosen):
            block[place] = self._frame(path)[tuple(cells)]
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def _frame(self, path: Path) -> NDArray[Any]:
        frame = self.read(path)
        if frame.shape != self.shape[1:] or frame.dtype != self.dtype:
            raise InputError(
                f"{path} holds a frame of shape {frame.shape} and type {frame.dtype}, and {self.paths[0].name} one of "
                f"{self.shape[1:]} and {self.dtype}: expected the same mesh in every frame; leave out the other files"
            )
        return frame


def is_pattern(path: Path) -> bool:
    """Tell whether a name is a pattern for several files and not a file itself."""
    return bool(_WILD & set(path.name)) and not path.exists()


def members(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder or of a pattern that have one of the suffixes, frame 9 before frame 10.

    Files of several suffixes, or of several beginnings such as a_1.vti and b_1.vti, are no one series.
    """
    inside = path.parent.glob(path.name) if is_pattern(path) else path.iterdir()
    found = sorted((item for item in inside if _is_frame(item, suffixes)), key=natural)
    if not found:
        raise InputError(f"{path} holds no files {', '.join(suffixes)}: check the folder or the pattern")
    stems = sorted({_stem(item) for item in found})
    if len(stems) > 1:
        raise InputError(
            f"{path} holds files of several series, {', '.join(stems[:6])}: pass a pattern for one of them, such as "
            f"{path.parent if is_pattern(path) else path}/{stems[0]}"
        )
    return found


def natural(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that counts the numbers in a name.

    >>> sorted([Path("f10.vti"), Path("f9.vti")], key=natural)[0].name
    'f9.vti'
    """
    parts = re.split(r"([0-9]+)", path.name)
    return tuple((1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts))


def _is_frame(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.suffix.lower() in suffixes and path.is_file() and not path.name.startswith(".")


def _stem(path: Path) -> str:
    """The name with its numbers as stars."""
    return re.sub(r"[0-9]+", "*", path.name)
