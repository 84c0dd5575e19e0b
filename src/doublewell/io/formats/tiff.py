"""TIFF: stacks with the metadata of OME or ImageJ, plain stacks, and folders with one image per frame."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values
from doublewell.units import unit_name

_SUFFIXES = (".tif", ".tiff", ".btf", ".tf8")
_COLOURS = {2: "RGB", 5: "CMYK", 6: "YCbCr", 8: "CIELab"}
_PALETTE = 3
_ODD_TAGS = 20
_PAGES = "iq"  # axes of pages without a meaning
_OTHERS = {"r": "position", "m": "mosaic tile"}
_METADATA = re.compile(  # what the library warns of that concerns no image
    r"invalid TiffData index|expected [0-9]+ frames, got|axes do not match|(imagej|fluoview)\w*_metadata> raised"
    r"|read_uic1tag> raised|invalid self\.subfiletype|MMStack file name|ScanImage series raised|STK Datetime"
)


def read_tiff(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (costs nothing)
    """Find the movie of a TIFF stack, or of a folder with one image per frame; only metadata are read.

    `var` chooses a channel, or an image where a file holds several.
    """
    files.library("tifffile", "tiff", "reading TIFF files")
    if files.is_pattern(path) or path.is_dir():  # the first image has the pixel size, none the frame interval
        paths = files.members(path, _SUFFIXES)
        first = _stack(paths[0], var)
        if len(paths) == 1:
            return first
        if int(np.prod(first.values.shape[:-2], dtype=object)) == len(paths):  # that names all others as its planes
            return first
        frame, space = _image(paths[0]), [axis for axis in first.axes or () if axis.name in ("x", "y")]
        return StoredField(files.file_frames(paths, _image, frame.shape, frame.dtype), {}, (Axis("t"), *space))
    stack = _stack(path, var)
    if stack.values.ndim < 3:
        raise InputError(
            f"{path} holds one image of shape {stack.values.shape}: expected a stack of at least 2; pass the folder of "
            "all images"
        )
    return stack


def _image(path: Path) -> Values:
    """Read a file that holds one frame."""
    with files.reading(path, "TIFF"):
        stack = _stack(path, None)
        sizes = {axis.name: n for axis, n in zip(stack.axes or (), stack.values.shape, strict=True)}
        frame = tuple(n for name, n in sizes.items() if name in ("x", "y"))
        if len(frame) != 2 or int(np.prod(stack.values.shape, dtype=object)) != frame[0] * frame[1]:
            raise InputError(
                f"{path} has shape {stack.values.shape}: expected one image, as it is one of several files"
            )
        return np.asarray(stack.values[:]).reshape(frame)


def _stack(path: Path, var: str | None) -> StoredField:
    files.check_file(path, "TIFF")
    with _open_tiff(path) as file:
        about = _description(path, file.ome_metadata) if file.is_ome and file.ome_metadata else None
        if not file.series:
            raise InputError(f"{path} holds no image: copy the file again")
        titles = [str(item.name) for item in file.series]
        names = [title if title and titles.count(title) == 1 else str(k) for k, title in enumerate(titles)]
        number = files.choose_named(path, "image", names, var) if len(names) > 1 else 0
        series = file.series[number].levels[0]
        kind, samples = int(series.keyframe.photometric), series.keyframe.samplesperpixel
        if kind in _COLOURS or samples > 1:
            colour = _COLOURS.get(kind, f"{samples} samples per pixel")
            raise InputError(
                f"{path} holds colour images ({colour}): expected one number per pixel; save the channel that shows "
                "the phase as 8-bit, 16-bit or 32-bit grey"
            )
        if kind == _PALETTE and not file.is_imagej:
            wrong = "holds images with a palette, whose numbers are not intensities"
            raise InputError(f"{path} {wrong}: save them as grey")
        shape, letters = tuple(int(n) for n in series.shape), series.axes.lower()
        for name in "tz":  # a page axis without a meaning is time, a second one z
            unknown = [letter for letter in letters if letter in _PAGES]
            if unknown and name not in letters:
                letters = letters.replace(unknown[0], name, 1)
        ome = None if about is None else _pixels(about, number)
        listed = [] if about is None else _pixels(about, 0).findall("{*}Channel")
        channels = [channel.get("Name") or str(k) for k, channel in enumerate(listed)]
        chosen = _chosen(path, letters, shape, channels, var if len(names) == 1 else None)
        if series.is_multifile:
            for folder in {page.parent.filehandle.dirname for page in series.pages if page is not None}:
                files.inside(path, str(Path(folder).resolve() / path.name))
        if ome is not None:
            axes = _ome_axes(letters, ome)
        elif file.is_imagej and file.imagej_metadata:
            tags = {tag.name: tag.value for tag in series.keyframe.tags}
            axes = _imagej_axes(letters, file.imagej_metadata, tags)
        else:
            axes = tuple(Axis(letter) for letter in letters)
        return StoredField(_values(path, file, number, shape), {}, axes, chosen)


def _chosen(path: Path, letters: str, shape: tuple[int, ...], channels: list[str], var: str | None) -> dict[int, int]:
    """Return the place on axes that are neither time nor space: channels, and positions of the stage or the like."""
    others = [axis for axis, letter in enumerate(letters) if letter not in "tczyx" and shape[axis] > 1]
    axis = letters.index("c") if "c" in letters else -1
    if not others:
        return files.choose_channel(path, axis, shape, channels, var)
    chosen = [*others, *([axis] if axis >= 0 and shape[axis] > 1 else [])]
    kinds = [_OTHERS.get(letters[k], "channel" if k == axis else f"place on axis {letters[k].upper()}") for k in chosen]
    named = channels if axis >= 0 and len(set(channels)) == shape[axis] else None
    places = list(product(*(range(shape[k]) for k in chosen)))
    labels = [
        ":".join(named[i] if named and k == axis else str(i) for k, i in zip(chosen, place, strict=True))
        for place in places
    ]
    return dict(zip(chosen, places[files.choose_named(path, ":".join(kinds), labels, var)], strict=True))


def _values(path: Path, file: Any, number: int, shape: tuple[int, ...]) -> LazyArray:
    """Return the images as one array: mapped where the numbers lie one after the other as they are."""
    series = file.series[number].levels[0]
    plain = series.keyframe.is_memmappable and not series.is_multifile and file.filehandle.is_file
    if plain and series.dataoffset is not None:
        return files.mapped_array(path, int(series.dataoffset), shape, series.dtype.newbyteorder(file.byteorder))
    pages, size = len(series.pages), series.keyframe.size
    if int(np.prod(shape, dtype=object)) != pages * size:
        raise InputError(f"{path} is damaged: {pages} images do not fill shape {shape}; copy the file again")
    tails = (int(np.prod(shape[lead:], dtype=object)) for lead in range(len(shape), -1, -1))
    inside = next((count for count, cells in enumerate(tails) if cells == size), None)  # axes that one page holds
    if inside is None:
        raise InputError(f"{path}: images of {size} pixels do not fill shape {shape}; copy the file again")
    read = partial(_read_pages, path, number, shape, len(shape) - inside)
    return LazyArray(read, shape, np.dtype(series.dtype), files=(path,))


def _read_pages(path: Path, number: int, shape: tuple[int, ...], lead: int, block: Block) -> Values:
    """Decode the pages of a block one by one; the first `lead` axes count pages."""
    with files.reading(path, "TIFF"), _open_tiff(path) as file:
        pages = file.series[number].levels[0].pages
        numbers = np.arange(int(np.prod(shape[:lead]))).reshape(shape[:lead])[block[:lead]]
        parts = []
        for k in numbers.ravel().tolist():
            page = pages[k] if k < len(pages) else None
            if page is None or 0 in page.databytecounts or 0 in page.dataoffsets:
                raise InputError(f"{path} is cut short: image {k} is missing; copy the file again")
            own = page.parent.filehandle
            closed = own.closed  # of another file of the movie
            if closed:
                own.open()
            parts.append(page.asarray(maxworkers=1).reshape(shape[lead:])[block[lead:]])
            if closed:
                own.close()
        return np.stack(parts).reshape(*numbers.shape, *parts[0].shape)


@contextmanager
def _open_tiff(path: Path) -> Iterator[Any]:
    """Open a TIFF file; what the library only logs of a damaged one raises, and a missing codec is named.

    The library continues after such a warning with zeros, with fewer images, or for hours.
    """
    tifffile, logger = files.library("tifffile", "tiff", "reading TIFF files"), logging.getLogger("tifffile")
    odd: list[str] = []
    errors: list[InputError] = []

    def check(record: logging.LogRecord) -> bool:
        """Raise a warning; those of single tags, which are often odd, only when there are many."""
        text = record.getMessage()
        if record.levelno < logging.WARNING or _METADATA.search(text):
            return record.levelno < logging.WARNING
        if "failed to read" in text:
            words = f"{path} names other files of its movie that are missing or damaged ({text}): copy them all"
            errors.append(InputError(words))
            raise errors[-1]
        alone = "TiffTag" in text[:20] and "offset" not in text  # a tag that points past the end is not just odd
        odd.extend([text] * alone)
        if not alone or len(odd) > _ODD_TAGS:
            errors.append(InputError(f"{path} is damaged or cut short ({text}): copy the file again"))
            raise errors[-1]
        return False

    logger.addFilter(check)
    try:
        with tifffile.TiffFile(path) as file:
            yield file
    except ValueError as error:
        if "imagecodecs" in str(error) and not isinstance(error, InputError):
            raise InputError(
                f"{path} is packed ({error}): write it without compression, or run pip install imagecodecs"
            ) from error
        raise
    finally:
        logger.removeFilter(check)
    if errors:  # the library may have caught what was raised
        raise errors[-1]


def _imagej_axes(letters: Sequence[str], about: Mapping[str, Any], tags: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of an ImageJ stack. Resolutions are in pixels per unit; a unit of pixels calibrates nothing."""
    unit, steps = unit_name(about.get("unit")), {"z": _positive(about.get("spacing"))}
    for name in "xy":
        try:
            above, below = tags[f"{name.upper()}Resolution"]  # numerator and denominator
            steps[name] = _positive(below / above)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            steps[name] = None
    if unit == "inch":  # a resolution for printing, 72 dots an inch for example, is no size of a pixel
        unit = None
    axes = {name: _axis(name, step if unit else None, unit) for name, step in steps.items()}
    axes["t"] = _axis("t", _positive(about.get("finterval")), unit_name(about.get("tunit", "sec")))
    return tuple(axes.get(name, Axis(name)) for name in letters)


def _ome_axes(letters: Sequence[str], pixels: Any) -> tuple[Axis, ...]:
    """Return the axes of an OME-TIFF: physical sizes, and the time increment or the times of the planes.

    The units of OME where none is written are micrometre and second.
    """
    axes = []
    for name in letters:
        size = "TimeIncrement" if name == "t" else f"PhysicalSize{name.upper()}"
        unit = unit_name(pixels.get(f"{size}Unit", "s" if name == "t" else "um"))
        axes.append(_axis(name, _positive(pixels.get(size)) if unit else None, unit))
        if name == "t" and axes[-1].step is None:
            planes = [item for item in pixels.findall("{*}Plane") if (item.get("TheC"), item.get("TheZ")) == ("0", "0")]
            rows = {item.get("TheT"): _finite(item.get("DeltaT")) for item in planes}
            times = [rows.get(str(frame)) for frame in range(int(pixels.get("SizeT", "0")) if len(rows) > 1 else 0)]
            if times and None not in times:
                unit = unit_name(planes[0].get("DeltaTUnit", "s"))
                axes[-1] = Axis("t", points=np.array(times, dtype=np.float64), unit=unit)
    return tuple(axes)


def _axis(name: str, step: float | None, unit: str | None) -> Axis:
    return Axis(name, step=step, unit=unit if step else None)


def _description(path: Path, text: str) -> Any:
    """Return the XML of an OME-TIFF, empty where it is damaged; the files that it names must lie beside it."""
    try:
        root = files.parse_xml(path, text.encode("utf-8", "replace"))
    except ElementTree.ParseError:
        return ElementTree.Element("OME")
    for element in root.iter():
        for name in ("FileName", "MetadataFile"):
            if element.get(name) is not None:
                files.inside(path, str(element.get(name)))
    return root


def _pixels(about: Any, image: int) -> Any:
    """Return the description of an image of an OME-TIFF, an empty one where there is none."""
    images = about.findall("{*}Image")
    pixels = images[image].find("{*}Pixels") if image < len(images) else None
    return ElementTree.Element("Pixels") if pixels is None else pixels


def _finite(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def _positive(text: Any) -> float | None:
    number = _finite(text)
    return number if number is not None and number > 0 else None
