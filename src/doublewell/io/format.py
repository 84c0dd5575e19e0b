"""Format: what a file format supplies, and what all formats share: choice of files and arrays, reading, writing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, cast
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError, option, shown
from doublewell.errors import library as library  # noqa: PLC0414  of the formats
from doublewell.record import LazyArray, Note, Record
from doublewell.record.arrays import Block, Values, lazy
from doublewell.record.record import KNOWN

FIELD = "u"
SEEN = "seen"  # the array of what was observed, beside u
MARKS = ("format", "version")
METADATA = (*MARKS, "dx", "dt", "times", "q", "boundary", "length_unit", "time_unit", "origin", "mask_array")
_RECORD = "doublewell record"
_VERSION = 1
_SLAB = 32 * 2**20  # bytes held at once while a record is written
_CHUNK = 2 * 2**20  # bytes, at most
_HDF5 = b"\x89HDF\r\n\x1a\n"
LFS = "a Git LFS pointer"
_SIGNATURES = (  # content, the usual suffix (None: not a record), first bytes
    ("zip", ".npz", (b"PK\x03\x04", b"PK\x05\x06")),
    ("npy", ".npy", (b"\x93NUMPY",)),
    ("HDF5", ".h5", (_HDF5,)),
    ("netCDF 3", ".nc", (b"CDF",)),
    ("TIFF", ".tif", (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    ("MATLAB 5", ".mat", (b"MATLAB 5.0 MAT-file",)),
    ("HDF5", ".mat", (b"MATLAB 7.3 MAT-file",)),
    ("XML", ".vti", (b"<VTKFile", b"<?xml", b"<Xdmf")),
    ("VTK", ".vtk", (b"# vtk DataFile",)),
    ("PNG", ".png", (b"\x89PNG",)),
    ("JPEG", None, (b"\xff\xd8\xff",)),
    ("GIF", None, (b"GIF8",)),
    ("AVI", ".avi", (b"RIFF",)),
    ("gzip", None, (b"\x1f\x8b",)),
    ("PDF", None, (b"%PDF",)),
    (LFS, None, (b"version https://git-lfs",)),
)
USUAL_SUFFIX: dict[str | None, str | None] = {content: suffix for content, suffix, _ in _SIGNATURES[::-1]}
_XDMF = re.compile(rb"<!DOCTYPE\s+Xdmf\s+SYSTEM\s+[\"']Xdmf\.dtd[\"']\s*(\[\s*\])?\s*>")
_USER_BLOCKS = (512, 1024, 2048)  # an HDF5 file may begin after a block that belongs to others
_WHOLE = 0.8  # fraction of the machine's memory that an array may take that can only be read whole


@dataclass(frozen=True)
class Axis:
    """What a file states of one axis of its field; "" and None where it states nothing.

    `step` is the mesh spacing or the frame interval, `points` the positions or the times, `unit` their unit.
    """

    name: str = ""
    step: float | None = None
    points: NDArray[Any] | None = None
    unit: str | None = None


@dataclass(frozen=True)
class StoredField:
    """What a file holds: the field, perhaps not yet read, and what it states of it.

    ``values`` has shape and dtype, and gives a block for a slice or a tuple of slices. ``metadata`` are those of the
    wanted metadata that the file has, in the words of Record. ``axes`` are the axes of the values where the file knows
    them; they are put in order and their steps used where the metadata have none. ``chosen`` is the position on axes
    that are left out, such as a channel. ``any_order`` is for formats without a convention for the time axis: the
    order is asked for where the axes do not tell. ``bordered`` is for nodes that lie on both borders of the domain.
    ``notes`` state what was chosen, and what was done to the values.
    """

    values: Any
    metadata: dict[str, Any]
    axes: tuple[Axis, ...] | None = None
    chosen: dict[int, int] = field(default_factory=dict)
    any_order: bool = False
    bordered: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Format:
    """One way of storing a record; a new format is a new module and one of these, a row of formats/__init__.py.

    ``read(path, var, wanted)`` finds the array `var` (None: the only one that can be a movie) and the metadata
    named in `wanted`. ``write(record, path)`` replaces the target at once or not at all; None where a format is only
    read. ``contents`` are the kinds of content (see `content_of`) that its files can have; none: any. ``series`` is for
    formats with one file per frame, whose path may be a folder or a pattern such as ``run/*.vti``.

    Another package adds a format by an entry point of the group ``doublewell.formats`` that leads to one of these.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, str | None, frozenset[str]], StoredField] | str
    write: Callable[[Record, Path], None] | str | None = None
    contents: tuple[str, ...] = ()
    series: bool = False

    def open(self, path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:
        """Read what a file states; whatever its bytes raise becomes an InputError that names it."""
        with reading(path, self.name):
            if path.is_file() or (self.contents and not self.series):
                check_file(path, self.name)
            field: StoredField = _loaded(self.read)(path, var, wanted)
            return field

    def save(self, record: Record, path: Path) -> None:
        """Write a record."""
        _loaded(self.write)(record, path)


def _loaded(function: Any) -> Callable[..., Any]:
    """Return a function, or the one that a text such as "tiff.read_tiff" names in a module of formats/."""
    if isinstance(function, str):
        module, name = function.split(".")
        function = getattr(import_module(f"doublewell.io.formats.{module}"), name)
    return cast("Callable[..., Any]", function)


def as_path(path: str | PathLike[str]) -> Path:
    """Return a path as a Path, ~ expanded."""
    if not isinstance(path, str | PathLike) or not isinstance(fspath(path), str) or "\0" in fspath(path):
        raise InputError(f"path is {path!r}: expected the name of a file")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"path is {str(path)!r}, and ~ stands for no known folder: write the folder out") from None


@contextmanager
def reading(path: Path, kind: str = "") -> Iterator[None]:
    """Name the file in every InputError; of a `kind` of file turn whatever a parser raises on bad bytes into one.

    Parsers of damaged files raise nearly anything (struct, zlib, tokenizer, key and memory errors), so all of it is
    caught here; the cause stays attached.
    """
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        if not kind:
            raise
        wrong = f"is damaged or not in the {kind} format ({type(error).__name__}: {error})"
        advice = ": copy the file again, or save it again"
        if isinstance(error, MemoryError):
            wrong = f"asks for more memory than there is ({error}): copy the file again if it is damaged"
            advice = ", or write the movie as .zarr, .nc or .npy, which are read in parts"
        elif isinstance(error, OSError) and error.strerror:  # what the system reports; a library's own has no such text
            wrong, advice = f"cannot be read: {error.strerror}", "; check the name and the rights"
        raise InputError(f"{path} {wrong}{advice}") from error


def content_of(path: Path) -> str | None:
    """Return what a file is by its first bytes, None where they are unknown."""
    with path.open("rb") as file:
        head = file.read(_USER_BLOCKS[-1] + 8)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for content, _, starts in _SIGNATURES:
        if head.startswith(starts) or (content == "XML" and text.startswith(starts)):
            return content
    return "HDF5" if any(head[block : block + 8] == _HDF5 for block in _USER_BLOCKS) else None


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
    parts = {item: re.split(r"([0-9]+)", item.name) for item in frames}
    return sorted(frames, key=lambda item: [int(part) if i % 2 else part for i, part in enumerate(parts[item])])


def file_frames(
    paths: Sequence[Path], read: Callable[[Path], Values], mesh: tuple[int, ...], dtype: np.dtype[Any]
) -> LazyArray:
    """Return frames of one mesh, each in a file of its own, that ``read(file)`` returns when they are sliced."""
    block = partial(_read_frames, tuple(paths), read, mesh, np.dtype(dtype))
    return LazyArray(block, (len(paths), *mesh), np.dtype(dtype), files=tuple(paths))


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


def inside(path: Path, name: str) -> Path:
    """Return a file that another file names; one outside the folder of that file is refused, behind a link too."""
    place = path.parent / name
    if not name or "\0" in name or not place.resolve().is_relative_to(path.parent.resolve()):
        raise InputError(
            f"{path} names the file {shown(name)}, which lies outside its folder: expected files beside it; copy them "
            "there, and name them without a folder"
        )
    return place


def parse_xml(path: Path, text: bytes) -> Any:
    """Return the root element of XML; entities, which could grow without end or name other files, are refused.

    The empty document type that XDMF files begin with is left out.
    """
    text = _XDMF.sub(b"", text, count=1)
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text or b"\0" in text[:200]:  # the last is UTF-16, where both look else
        raise InputError(f"{path} defines XML entities, or is no plain XML: save it again as plain UTF-8")
    return ElementTree.fromstring(text)


def chosen_note(kind: str, name: str, names: Iterable[str]) -> Note:
    """Return the note which of the things of a kind in a file is the field."""
    others = [other for other in names if other != name]
    rest = f", and not {', '.join(map(repr, others[:8]))}{', ...' * (len(others) > 8)}" if others else ""
    return Note("field-chosen", f"the field is the {kind} {name!r}{rest}")


def check_file(path: Path, kind: str) -> None:
    """Refuse a folder and an empty file."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: expected a file in the {kind} format")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes): expected a file in the {kind} format; copy the file again")


def check_memory(path: Path, size: int, advice: str) -> None:
    """Refuse an array of `size` bytes that can only be read whole on a machine with less memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # a system that does not report it
        return
    if size > _WHOLE * memory:
        raise InputError(
            f"{path} can only be read whole, {size / 2**30:.1f} GiB, and the machine has {memory / 2**30:.1f}: {advice}"
        )


def choose_array(path: Path, shapes: Mapping[str, tuple[int, ...]], var: str | None) -> str:
    """Return the name of the field: `var`, or u, or the only array with 2 to 4 axes."""

    def listed(names: Mapping[str, tuple[int, ...]]) -> str:
        return ", ".join(f"{name} {tuple(shape)}" for name, shape in sorted(names.items())) or "no arrays"

    shapes = {name: shape for name, shape in shapes.items() if name not in METADATA or len(shape) > 1}
    fields = {name: shape for name, shape in shapes.items() if 2 <= len(shape) <= 4 and 0 not in shape}
    if var is not None:
        if var not in shapes:
            raise InputError(f"{path} has no array {var!r}: expected one of its arrays, {listed(shapes)}")
        return var
    if not fields:
        raise InputError(
            f"{path} holds no field: expected an array u[t, x], u[t, y, x] or u[t, z, y, x], found {listed(shapes)}; "
            "save the movie with its time axis first"
        )
    if FIELD not in fields and len(fields) > 1:
        raise InputError(
            f"{path} holds several arrays that could be the field, {listed(fields)}: pass {option('var')} with one of "
            "these names"
        )
    return FIELD if FIELD in fields else next(iter(fields))


def choose_named(path: Path, kind: str, names: Sequence[str], var: str | None) -> int:
    """Return the position of `var` among things of one kind that a file names, such as channels; one needs no name."""
    if var is None and len(names) == 1:
        return 0
    if var is None or var not in names:
        wrong = f"holds several {kind}s" if var is None else f"has no {kind} {shown(var)}"
        raise InputError(f"{path} {wrong}: pass {option('var')} with one of {', '.join(names)}")
    return list(names).index(var)


def choose_channel(
    path: Path, axis: int, shape: Sequence[int], names: Sequence[str], var: str | None
) -> dict[int, int]:
    """Return the position of the channel `var` on its axis (-1: there is none), where there are several."""
    if axis < 0 or shape[axis] == 1:
        refuse_name(path, var)
        return {}
    known = names if len(set(names)) == shape[axis] else [str(channel) for channel in range(shape[axis])]
    return {axis: choose_named(path, "channel", known, var)}


def refuse_name(path: Path, var: str | None) -> None:
    """Refuse a name for the only array of a file."""
    if var is not None:
        raise InputError(f"{path} holds one array without a name: leave out {option('var', var)}")


def pickled(path: Path, name: str) -> InputError:
    """Return the refusal of an array of objects."""
    return InputError(
        f"{path}: {name} holds pickled Python objects, which can run any code and are never loaded: expected plain "
        "numbers; save it again as numpy.asarray(values, dtype=float), leave it out, or name another one with "
        f"{option('var')}"
    )


def mapped_array(
    path: Path, offset: int, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C"
) -> LazyArray:
    """Return numbers that lie in a file as they are, from byte `offset` on; the file is open only while it is read."""
    dtype = np.dtype(dtype)
    end, size = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize, path.stat().st_size
    if end > size:
        raise InputError(f"{path} is cut short: its field ends at byte {end}, the file at {size}; copy the file again")
    return LazyArray(partial(_read_mapped, path, offset, shape, dtype, order), shape, dtype, files=(path,))


def _read_mapped(
    path: Path, offset: int, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"], block: Block
) -> Values:
    with reading(path, "expected"):
        return np.array(np.memmap(path, dtype, "r", offset, shape, order)[block])


def touched_chunks(block: Sequence[slice], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Go through the grid positions of the chunks of a block; itertools.product would hold the rows of huge shapes."""
    if not sizes:
        yield ()
        return
    for i in range(block[0].start // sizes[0], -(-block[0].stop // sizes[0])):
        for rest in touched_chunks(block[1:], sizes[1:]):
            yield (i, *rest)


def unpacked(values: Any, attributes: Mapping[str, Any]) -> Any:
    """Return the array as its attributes (netCDF's and xarray's) mean it, the array itself where they state nothing.

    A fill value alone does not make integers into others: they are still intensities.
    """

    def number(name: str) -> float | None:
        try:
            value = np.asarray(attributes.get(name))
            return float(value.item()) if value.dtype.kind in "iuf" else None
        except (TypeError, ValueError, OverflowError):
            return None

    scale, offset = number("scale_factor"), number("add_offset")
    known = (number("_FillValue"), number("missing_value"))
    fills, kind = [fill for fill in known if fill is not None and np.isfinite(fill)], np.dtype(values.dtype).kind
    if kind not in "iuf" or (scale is None and offset is None and (kind != "f" or not fills)):
        return values
    return lazy(values).map(partial(_unpack, 1.0 if scale is None else scale, offset or 0.0, fills))


def _unpack(scale: float, offset: float, fills: list[float], stored: Values) -> Values:
    """Convert numbers stored as value = scale * number + offset; fill values become NaN, which a slab refuses."""
    block = stored.astype(np.float64)
    if (scale, offset) != (1.0, 0.0):
        block = block * scale + offset
    if fills:
        block[np.isin(stored, np.array(fills).astype(stored.dtype))] = np.nan
    return block


def is_own(metadata: Mapping[str, Any]) -> bool:
    """Tell whether this package wrote a record, in any version."""
    return isinstance(metadata.get("format"), str) and metadata["format"] == _RECORD


def check_version(path: Path, metadata: Mapping[str, Any]) -> None:
    """Refuse a record that a later version of this package wrote; files of others pass."""
    version = metadata.get("version") if is_own(metadata) else _VERSION
    if not isinstance(version, int | float) or version < 1:
        raise InputError(f"{path} is damaged: its format version is {version!r}; copy the file again")
    if version > _VERSION:
        raise InputError(
            f"{path} was written by a newer doublewell (record version {version}, this one reads {_VERSION}): "
            "run pip install --upgrade doublewell"
        )


class Outgoing:
    """A record as it is written: metadata, number type, chunks, and slabs of about 32 MB that end where chunks do.

    Chunks have 1 to 2 MB where the record is that large: whole frames, or equal parts of one frame. The type is that of
    the values, at most 8 bytes and not narrower than `narrowest`, in native order.
    """

    def __init__(self, record: Record, narrowest: str = "f2") -> None:
        self.record, dtype = record, np.dtype(record.values.dtype).newbyteorder("=")
        self.dtype = max(dtype if dtype.itemsize <= 8 else np.dtype(np.float64), np.dtype(narrowest))
        self.chunks = chunk_shape(record.shape, self.dtype.itemsize)
        part = 8 * self.chunks[0] * int(np.prod(record.mesh))
        self.frames = self.chunks[0] * max(1, _SLAB // part)
        known = {"format": _RECORD, "version": _VERSION} | {name: getattr(record, name) for name in KNOWN}
        known["mask_array"] = None if record.mask is None else SEEN
        self.metadata = {name: value for name, value in known.items() if value is not None}

    def slabs(self) -> Iterator[tuple[int, Values]]:
        """Read the values: NaN where one is missing, so that no other program takes it for one."""
        for start, slab in self.record.slabs(self.frames):
            observed = self.record.observed(start, start + len(slab))
            filled = slab if self.record.mask is None else np.where(observed, slab, np.nan)
            yield start, np.ascontiguousarray(filled, dtype=self.dtype)

    def mask_blocks(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Read the mask: parts of some frames, or one where it is fixed in time."""
        mask = self.record.mask
        for start in range(0, mask.shape[0], self.frames):
            yield start, np.ascontiguousarray(mask[start : start + self.frames], dtype=bool)


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return chunks of 1 to 2 MB, or the whole array where it is smaller."""
    chunks = list(shape)
    for axis, n in enumerate(shape):
        row = itemsize * int(np.prod(shape[axis + 1 :]))
        parts = -(-n // (_CHUNK // row)) if row <= _CHUNK else n
        chunks[axis] = -(-n // parts)
        if row <= _CHUNK:
            break
    return tuple(chunks)
