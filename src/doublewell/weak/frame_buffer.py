"""Frames of a stored record on their way to the kernel: the latest of them held, each read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from doublewell.hints import Array, Bools
from doublewell.record import Cells, Record

READ_BYTES = 4 * 2**20  # a stored record is read in parts of about this size

Part = tuple[int, Array, Bools | None]  # first frame, frames, which values were observed (None: all)


class FrameBuffer(Protocol):
    """Frames of a part of a record."""

    def read(self, first: int, last: int) -> tuple[Array, Bools | None]:
        """Return frames first..last-1 and which values were observed, None for all; asked for in rising order."""


class Rolling:
    """The latest frames of a stored record, in single precision where it is stored so.

    `length` is the most that is asked for at once. With `until`, frames up to that one are read ahead by a thread while
    the caller is busy, as many as the last step took. `read_part` reads frames of the record in place of its `slab`.
    """

    def __init__(
        self, record: Record, length: int, cells: Cells, *, first: int = 0, until: int | None = None,
        read_part: Callable[[int, int], Part] | None = None,
    ) -> None:  # fmt: skip
        kind = np.float32 if np.dtype(record.values.dtype).itemsize <= 4 else np.float64
        mesh = tuple(high - low for low, high in cells)
        self.record, self.cells, self.first, self.last = record, cells, first, first
        self.buffer = np.empty((min(record.frames, length), *mesh), kind)
        self.observed = None if record.mask is None else np.empty(self.buffer.shape, bool)
        self._read_part = self._slab if read_part is None else read_part
        self._parts = read_parts(record, cells, first, record.frames if until is None else until)
        self._rest: Part | None = None
        self._waiting: deque[Future[Part]] = deque()
        self._ahead = None if until is None else ThreadPoolExecutor(1, "reading ahead")
        self._asked = first  # past the last frame that is read, being read or waiting to be

    def read(self, first: int, last: int) -> tuple[Array, Bools | None]:
        """Return frames first..last-1; frames that were held stay, the others come in."""
        step = last - self.last
        for held in (self.buffer, *(() if self.observed is None else (self.observed,))):
            for k in range(first, self.last):  # one by one: NumPy would copy the whole overlap first
                held[k - first] = held[k - self.first]
        self.first = first
        while self.last < last:
            self._take(last)
        self._look_ahead(last + step)
        window = self.buffer[: last - first].view()
        window.flags.writeable = False
        return window, None if self.observed is None else self.observed[: last - first]

    def close(self) -> None:
        """End the thread that reads ahead."""
        if self._ahead is not None:
            self._ahead.shutdown(cancel_futures=True)

    def _take(self, last: int) -> None:
        """Take in frames of the next part, up to `last`, and keep the rest of it."""
        start, frames, observed = self._next() if self._rest is None else self._rest
        count = min(last - start, len(frames))
        to = slice(start - self.first, start - self.first + count)
        self.buffer[to] = frames[:count]
        if self.observed is not None and observed is not None:
            self.observed[to] = observed[:count]
        left = None if observed is None else observed[count:]
        self._rest = (start + count, frames[count:], left) if count < len(frames) else None
        self.last = start + count

    def _next(self) -> Part:
        if self._waiting:
            return self._waiting.popleft().result()
        part = next(self._parts)
        self._asked = part[1]
        return self._fetch(*part)

    def _look_ahead(self, until: int) -> None:
        while self._ahead is not None and self._asked < until:
            part = next(self._parts, None)
            if part is None:
                return
            self._asked = part[1]
            self._waiting.append(self._ahead.submit(self._fetch, *part))

    def _fetch(self, start: int, stop: int) -> Part:
        first, frames, observed = self._read_part(start, stop)
        return first, frames.astype(self.buffer.dtype, copy=False), observed

    def _slab(self, start: int, stop: int) -> Part:
        observed = None if self.record.mask is None else self.record.observed(start, stop, self.cells)
        return start, self.record.slab(start, stop, self.cells), observed


def read_parts(record: Record, cells: Cells, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut frames first..last-1 into parts of about READ_BYTES whose edges are those of stored chunks."""
    frame = 8 * int(np.prod([high - low for low, high in cells]))
    chunk = chunk_frames(record.values)
    size = max(1, READ_BYTES // (frame * chunk)) * chunk
    start = first
    while start < last:
        stop = min((start // chunk + size // chunk) * chunk, last) if chunk > 1 else min(start + size, last)
        yield start, stop
        start = stop


def chunk_frames(values: Any) -> int:
    """Return how many frames are stored together, 1 where that is not known."""
    chunks = getattr(values, "chunks", None)
    first = chunks[0] if isinstance(chunks, tuple) and chunks else 1
    return first if isinstance(first, int) and first > 0 else 1  # dask has tuples here
