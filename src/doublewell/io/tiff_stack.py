"""TIFF stack: the images of a file as one array that is read when sliced, and damage that raises."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import reading
from doublewell.io.missing import library
from doublewell.io.view import Index, ranges

__all__ = ["TiffStack", "open_tiff"]

_KIND = "TIFF file"
_ODD_TAGS = 20


class TiffStack:
    """The pages of a TIFF file as one array, decoded one by one when sliced; the file is open only meanwhile."""

    def __init__(self, path: Path, series: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.series = path, series
        self.shape, self.dtype, self.ndim = tuple(shape), np.dtype(dtype), len(shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        parts = ranges(index, self.shape)
        with reading(self.path, _KIND), open_tiff(self.path) as file:
            return self._decoded(file.series[self.series].levels[0], parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)

    def _decoded(self, series: Any, parts: tuple[slice, ...]) -> NDArray[Any]:
        page_axes = _page_axes(self.shape, series.keyframe.size)
        lead = self.shape[: self.ndim - page_axes]
        numbers = np.arange(int(np.prod(lead))).reshape(lead)[parts[: len(lead)]]
        inside = parts[len(lead) :]
        pages = [self._page(series, int(number))[inside] for number in numbers.ravel()]
        return np.stack(pages).reshape(*numbers.shape, *pages[0].shape)

    def _page(self, series: Any, number: int) -> NDArray[Any]:
        page = series.pages[number] if number < len(series.pages) else None
        if page is None or 0 in page.databytecounts or 0 in page.dataoffsets:
            raise InputError(f"{self.path} is cut short: image {number} is missing; copy the file again")
        values: NDArray[Any] = page.asarray(maxworkers=1)
        return values.reshape(self.shape[self.ndim - _page_axes(self.shape, series.keyframe.size) :])


@contextmanager
def open_tiff(path: Path) -> Iterator[Any]:
    """Open a TIFF file; what the library only logs of missing images raises, and a missing codec is named."""
    tifffile = library("tifffile", "tiff", "reading TIFF files")
    try:
        with _heeding(path), tifffile.TiffFile(path) as file:
            yield file
    except ValueError as error:
        if "imagecodecs" in str(error) and not isinstance(error, InputError):
            raise InputError(
                f"{path} is packed ({error}): write it without compression, or run pip install imagecodecs"
            ) from error
        raise


@contextmanager
def _heeding(path: Path) -> Iterator[None]:
    """Raise what tifffile logs of a damaged file; it goes on with zeros, with fewer images, or for hours.

    What it says of single tags is left: these are often odd, and what they would have said is asked for.
    """
    logger, heard = logging.getLogger("tifffile"), _Raising(path)
    logger.addHandler(heard)
    before, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(heard)
        logger.propagate = before
    if heard.said is not None:  # where the library has caught what was raised
        raise heard.said


class _Raising(logging.Handler):
    """Raise the warnings of a library, those of single tags when there are many."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.WARNING)
        self.path, self.tags = path, 0
        self.said: InputError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        odd = "TiffTag" in text[:20] and "offset" not in text  # a tag that points past the end is no odd one
        self.tags += odd
        if not odd or self.tags > _ODD_TAGS:
            self.said = InputError(f"{self.path} is damaged or cut short ({text}): copy the file again")
            raise self.said


def _page_axes(shape: tuple[int, ...], size: int) -> int:
    """How many of the last axes one page holds."""
    for count in range(len(shape) + 1):
        if int(np.prod(shape[len(shape) - count :], dtype=object)) == size:
            return count
    raise InputError(f"its images have {size} pixels, which do not fill shape {shape}: copy the file again")
