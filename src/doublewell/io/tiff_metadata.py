"""TIFF metadata: pixel size, frame interval and their units from OME-XML and from ImageJ's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from xml.etree import ElementTree

import numpy as np

from doublewell.io.format import Axis
from doublewell.io.unit_names import unit_name

__all__ = ["imagej_axes", "ome_axes", "ome_channels"]

_MICROMETRE, _SECOND = "um", "s"  # the units of OME where none is written


def imagej_axes(letters: Sequence[str], about: Mapping[str, Any], tags: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of an ImageJ stack. The resolution is in pixels a unit; a unit of pixels is no calibration."""
    unit, clock = unit_name(about.get("unit")), unit_name(about.get("tunit", "sec"))
    sizes = {"x": _inverse(tags.get("XResolution")), "y": _inverse(tags.get("YResolution")), "z": about.get("spacing")}
    steps = {name: _positive(size) if unit else None for name, size in sizes.items()}
    interval = _positive(about.get("finterval"))
    return tuple(
        Axis(name, step=interval, unit=clock if interval else None)
        if name == "t"
        else Axis(name, step=steps.get(name), unit=unit if steps.get(name) else None)
        for name in letters
    )


def ome_axes(letters: Sequence[str], text: str, image: int) -> tuple[Axis, ...]:
    """Return the axes of an OME-TIFF: physical sizes, and the time increment or the times of the planes."""
    pixels = _pixels(text, image)
    if pixels is None:
        return tuple(Axis(name) for name in letters)
    return tuple(_ome_clock(pixels) if name == "t" else _ome_axis(pixels, name) for name in letters)


def ome_channels(text: str, image: int) -> list[str]:
    """Return the names of the channels, their numbers where they have none."""
    pixels = _pixels(text, image)
    channels = [] if pixels is None else pixels.findall("{*}Channel")
    return [channel.get("Name") or str(number) for number, channel in enumerate(channels)]


def _pixels(text: str, image: int) -> Any:
    try:
        images = ElementTree.fromstring(text.encode("utf-8")).findall("{*}Image")
    except (ElementTree.ParseError, ValueError):
        return None
    return images[image].find("{*}Pixels") if image < len(images) else None


def _ome_axis(pixels: Any, name: str) -> Axis:
    step = _positive(pixels.get(f"PhysicalSize{name.upper()}"))
    unit = unit_name(pixels.get(f"PhysicalSize{name.upper()}Unit", _MICROMETRE))
    return Axis(name, step=step if unit else None, unit=unit if step else None)


def _ome_clock(pixels: Any) -> Axis:
    step, unit = _positive(pixels.get("TimeIncrement")), unit_name(pixels.get("TimeIncrementUnit", _SECOND))
    if step is not None and unit is not None:
        return Axis("t", step=step, unit=unit)
    planes = [plane for plane in pixels.findall("{*}Plane") if (plane.get("TheC"), plane.get("TheZ")) == ("0", "0")]
    rows = {plane.get("TheT"): _finite(plane.get("DeltaT")) for plane in planes}
    times = [rows.get(str(frame)) for frame in range(int(pixels.get("SizeT", "0")) if len(rows) > 1 else 0)]
    if not times or any(time is None for time in times):
        return Axis("t")
    return Axis("t", points=np.array(times, dtype=np.float64), unit=unit_name(planes[0].get("DeltaTUnit", _SECOND)))


def _inverse(ratio: Any) -> float | None:
    """Return the pixel size of a resolution, which TIFF has as numerator and denominator."""
    try:
        above, below = ratio
        return below / above if above else None
    except (TypeError, ValueError):
        return None


def _finite(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if isfinite(number) else None


def _positive(text: Any) -> float | None:
    number = _finite(text)
    return number if number is not None and number > 0 else None
