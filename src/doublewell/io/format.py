"""Format: what a file format supplies, and what all formats share: names, choice of the array, words of refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.checks import shown
from doublewell.errors import InputError
from doublewell.record import Record

__all__ = [
    "FIELD",
    "MARKS",
    "METADATA",
    "SEEN",
    "Axis",
    "Format",
    "Found",
    "about",
    "as_path",
    "check_version",
    "choose_array",
    "choose_named",
    "chunk_shape",
    "is_own",
    "metadata_of",
    "reading",
    "slab_frames",
    "stored_dtype",
]

FIELD = "u"
SEEN = "seen"  # the array of what was observed, beside u
MARKS = ("format", "version")
METADATA = (*MARKS, "dx", "dt", "times", "q", "boundary", "length_unit", "time_unit", "mask_array")
_RECORD = "doublewell record"
_VERSION = 1
_SLAB = 32 * 2**20  # bytes held at once while a record is written
_CHUNK = 2 * 2**20  # bytes, at most


@dataclass(frozen=True)
class Axis:
    """What a file says of one axis of its field; "" and None where it says nothing.

    `step` is the mesh spacing or the frame interval, `points` the places or the times, `unit` the name of their unit.
    """

    name: str = ""
    step: float | None = None
    points: NDArray[Any] | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Found:
    """What a file holds: the field, perhaps not yet read, and what it says of it.

    ``values`` has shape and dtype, and gives a block for a slice or a tuple of slices. ``metadata`` are those of the
    wanted metadata that the file has, in the words of Record. ``axes`` are the axes of the values where the file knows
    them; they are put in order and their steps used where the metadata have none. ``chosen`` is the place on axes that
    are left out, such as a channel. ``any_order`` is for formats without a custom for the place of time: the order is
    asked for where the axes do not tell. ``bordered`` is for nodes that lie on both borders of the domain.
    """

    values: Any
    metadata: dict[str, Any]
    axes: tuple[Axis, ...] | None = None
    chosen: dict[int, int] = field(default_factory=dict)
    any_order: bool = False
    bordered: bool = False


@dataclass(frozen=True)
class Format:
    """One way of storing a record; a new format is a new module with one of these, entered in formats.py.

    ``read(path, var, wanted)`` finds the array `var` (None: the only one that can be a movie) and the metadata
    named in `wanted`. ``write(record, path)`` replaces the target at once or not at all; None where a format is only
    read. ``contents`` are the kinds of content (see content.py) that its files can have; none: any. ``series`` is for
    formats with a file a frame, whose path may be a folder or a pattern such as ``run/*.vti``.

    Another package adds a format by an entry point of the group ``doublewell.formats`` that leads to one of these.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, str | None, frozenset[str]], Found]
    write: Callable[[Record, Path], None] | None = None
    contents: tuple[str, ...] = ()
    series: bool = False


def as_path(path: str | PathLike[str]) -> Path:
    """Return a path as a Path, ~ expanded."""
    if not isinstance(path, str | PathLike) or not isinstance(fspath(path), str) or "\0" in fspath(path):
        raise InputError(f"path is {path!r}: expected the name of a file")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"path is {str(path)!r}, and ~ stands for no known folder: write the folder out") from None


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the file in an InputError that does not yet."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises on bad bytes into an InputError that names the file.

    Parsers of damaged files raise nearly anything (struct, zlib, tokenizer, key and memory errors), so all of it is
    caught here, in one place; the cause stays attached.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{path} asks for more memory than there is ({error}): copy the file again if it is damaged, or write the "
            "movie as .zarr, .nc or .npy, which are read in parts"
        ) from error
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:  # what the system says; a library's own has no such text
            raise InputError(f"{path} cannot be read: {error.strerror}; check the name and the rights") from error
        raise InputError(
            f"{path} is damaged or no {kind} ({type(error).__name__}: {error}): copy the file again, or save it anew"
        ) from error


def choose_array(path: Path, shapes: Mapping[str, tuple[int, ...]], var: str | None) -> str:
    """Return the name of the field: `var`, or u, or the only array with 2 to 4 axes."""
    shapes = {name: shape for name, shape in shapes.items() if name not in METADATA or len(shape) > 1}
    if var is not None:
        if var not in shapes:
            raise InputError(f"{path} holds no array {var!r}: found {_list(shapes) or 'none'}; correct var=")
        return var
    fields = {name: shape for name, shape in shapes.items() if 2 <= len(shape) <= 4}
    if FIELD in fields:
        return FIELD
    if not fields:
        raise InputError(
            f"{path} holds no field: expected an array u[t, x], u[t, y, x] or u[t, z, y, x], "
            f"found {_list(shapes) or 'no arrays'}; save the movie with its time axis first"
        )
    if len(fields) > 1:
        raise InputError(
            f"{path} holds several arrays that could be the field, {_list(fields)}: pass var= "
            "(on the command line --var) with one of these names"
        )
    return next(iter(fields))


def choose_named(path: Path, kind: str, names: Sequence[str], var: str | None) -> int:
    """Return the place of `var` among things of one kind that a file names, such as channels; one needs no name."""
    if var is None and len(names) == 1:
        return 0
    if var is None or var not in names:
        wrong = f"several {kind}s" if var is None else f"no {kind} {shown(var)}"
        raise InputError(
            f"{path} holds {wrong}: found {', '.join(names)}; pass var= (on the command line --var) with one of these"
        )
    return list(names).index(var)


def metadata_of(record: Record) -> dict[str, Any]:
    """Return what is written beside the field; q and the boundary are absent when they are not known."""
    found = {
        "format": _RECORD,
        "version": _VERSION,
        "dx": record.dx,
        "times": record.times,
        "q": record.q,
        "boundary": record.boundary,
        "length_unit": record.length_unit,
        "time_unit": record.time_unit,
        "mask_array": None if record.mask is None else SEEN,
    }
    return {name: value for name, value in found.items() if value is not None}


def is_own(metadata: Mapping[str, Any]) -> bool:
    """Tell whether this package wrote a record, in any version."""
    return isinstance(metadata.get("format"), str) and metadata["format"] == _RECORD


def check_version(path: Path, metadata: Mapping[str, Any]) -> None:
    """Refuse a record that a later version of this package wrote; files of others pass."""
    if not is_own(metadata):
        return
    version = metadata.get("version")
    if not isinstance(version, int | float) or version < 1:
        raise InputError(f"{path} is damaged: its format version is {version!r}; copy the file again")
    if version > _VERSION:
        raise InputError(
            f"{path} was written by a newer doublewell (record version {version}, this one reads {_VERSION}): "
            "run pip install --upgrade doublewell"
        )


def stored_dtype(record: Record) -> np.dtype[Any]:
    """Return the type that keeps what slabs give: that of the values, at most 8 bytes, in native order."""
    dtype = np.dtype(record.values.dtype).newbyteorder("=")
    return dtype if dtype.itemsize <= 8 else np.dtype(np.float64)


def slab_frames(record: Record, multiple: int = 1) -> int:
    """Return how many frames to hold at once while writing: about 32 MB, a multiple of the frames in a chunk."""
    frame = 8 * int(np.prod(record.mesh))
    return multiple * max(1, _SLAB // (multiple * frame))


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return chunks of 1 to 2 MB where the record is that large: whole frames, or equal parts of one frame."""
    chunks = list(shape)
    for axis, n in enumerate(shape):
        row = itemsize * int(np.prod(shape[axis + 1 :]))
        parts = -(-n // (_CHUNK // row)) if row <= _CHUNK else n
        chunks[axis] = -(-n // parts)
        if row <= _CHUNK:
            break
    return tuple(chunks)


def _list(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {tuple(shape)}" for name, shape in sorted(shapes.items()))
