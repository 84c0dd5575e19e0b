"""Microscopes' own files (.nd2, .czi, .lif, ...), read by BioIO with the reader of the format."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.io import format as files
from doublewell.io.format import Axis, StoredField
from doublewell.record import LazyArray
from doublewell.record.arrays import Block, Values

_ORDER = "TCZYX"
_READERS = {".nd2": "bioio-nd2", ".czi": "bioio-czi", ".lif": "bioio-lif", ".dv": "bioio-dv", ".r3d": "bioio-dv"}
_ANY = "bioio-bioformats"


def read_microscope(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (costs nothing)
    """Find the movie of a microscope's file; `var` chooses the scene and the channel where there are several."""
    with _image(path) as image:
        scenes = [str(name) for name in image.scenes]
        found = []
        for place, title in enumerate(scenes):
            image.set_scene(place)
            names = [str(name) for name in image.channel_names or []]
            count = int(image.dims.C)
            names = names if len(set(names)) == count else [str(k) for k in range(count)]
            parts = [title] * (len(scenes) > 1)
            found += [(place, k, ":".join([*parts, *[name] * (count > 1)])) for k, name in enumerate(names)]
        labels = [label for *_, label in found]
        labels = labels if len(set(labels)) == len(labels) else [f"{place}:{k}" for place, k, _ in found]
        kind = " and ".join(["scene"] * (len(scenes) > 1) + ["channel"] * (len(found) > len(scenes))) or "image"
        number = files.choose_named(path, kind, labels, var) if len(found) > 1 else 0
        scene, channel, _ = found[number]
        image.set_scene(scene)
        if "S" in str(image.dims.order):
            raise InputError(f"{path} holds colour images: expected one number per pixel; export one channel")
        shape = tuple(int(getattr(image.dims, letter)) for letter in _ORDER)
        if shape[0] < 2:
            raise InputError(f"{path} holds one time of shape {shape}: expected a movie, with two times at least")
        dtype, sizes, interval = np.dtype(image.dtype), image.physical_pixel_sizes, image.time_interval
    steps = {"z": sizes.Z, "y": sizes.Y, "x": sizes.X}
    axes = {name: Axis(name, step=float(step), unit="um") for name, step in steps.items() if step and step > 0.0}
    seconds = interval.total_seconds() if hasattr(interval, "total_seconds") else 0.0
    if seconds > 0.0:
        axes["t"] = Axis("t", step=seconds, unit="s")
    letters = _ORDER.lower()
    values = LazyArray(partial(_read, path, scene), shape, dtype, files=(path,))
    notes = (files.chosen_note(kind, labels[number], labels),) if len(found) > 1 else ()
    chosen = {letters.index("c"): channel}
    return StoredField(values, {}, tuple(axes.get(name, Axis(name)) for name in letters), chosen, notes=notes)


@contextmanager
def _image(path: Path) -> Iterator[Any]:
    """Open a file by BioIO; where its reader is missing, that is named."""
    suffix = path.suffix.lower()
    reader = _READERS.get(suffix, _ANY)
    bioio = files.library("bioio", "microscopes", f"reading {suffix} files")
    with files.reading(path, "microscope"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = bioio.BioImage(path)
        except Exception as error:
            if "UnsupportedFileFormat" not in type(error).__name__:
                raise
            raise InputError(
                f"reading {suffix} files needs the reader {reader}, which is not installed or does not know the file: "
                f"run pip install bioio {reader}, or copy the file again"
            ) from error
        yield image


def _read(path: Path, scene: int, block: Block) -> Values:
    """Read a block of time, channel, z, y, x."""
    with _image(path) as image:
        image.set_scene(scene)
        wanted = {
            letter: list(range(part.start, part.stop, part.step)) for letter, part in zip("TCZ", block, strict=False)
        }
        values = np.asarray(image.get_image_dask_data(_ORDER, **wanted)[(..., *block[3:])])
    if values.shape != tuple(len(range(part.start, part.stop, part.step)) for part in block):
        raise InputError(f"{path} gave a block of shape {values.shape}: copy the file again")
    return values
