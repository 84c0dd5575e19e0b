"""Fingerprint: which question was asked of which record, in a few digests; values are not read for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.observation import Survey
from doublewell.record import Record
from doublewell.version import __version__
from doublewell.weak import Region

__all__ = ["fingerprint"]

_FILES = 100_000  # of a store whose size and time of change are looked at; a larger one is sampled


def fingerprint(record: Record, seen: Survey, options: Sequence[object], regions: Sequence[Region]) -> dict[str, str]:
    """Return digests of the record, of the options that its evidence depends on, and of the plan.

    The record's holds its shape, mesh and times, the histogram of values that the survey made, and name, size and time
    of change of its files. So a file that was written anew is another record.
    """
    return {
        "record": _digest(_record(record), seen.histogram, *_stamps(record.values), *_stamps(record.mask)),
        "options": _digest(__version__, *options),
        "plan": _digest(*regions),
    }


def _record(record: Record) -> tuple[Any, ...]:
    scale = getattr(record.values, "low", None), getattr(record.values, "high", None)
    mask = None if record.mask is None else (record.mask.shape, _content(record.mask))
    return record.shape, str(record.values.dtype), record.dx, _content(record.times), scale, mask


def _content(values: Any) -> str:
    return sha256(np.ascontiguousarray(values).data).hexdigest() if isinstance(values, np.ndarray) else ""


def _digest(*values: object) -> str:
    return sha256("\n".join(repr(value) for value in values).encode()).hexdigest()


def _stamps(values: Any) -> Iterator[tuple[str, int, int]]:
    """Go through the files behind an array: name, size and time of change."""
    path = _path(values)
    if path is None:
        return
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names) or [path]
    yield str(path.absolute()), len(files), 0
    for file in files[:: -(-len(files) // _FILES)]:
        status = file.stat()
        yield str(file.relative_to(path)), status.st_size, status.st_mtime_ns


def _path(values: Any) -> Path | None:
    """Return where the values of a record are stored, through what lies between; None where that is not known."""
    for _ in range(8):
        path = getattr(values, "path", None)
        if isinstance(path, Path):
            return path
        values = getattr(values, "values", None) if hasattr(values, "values") else getattr(values, "source", None)
    return None
