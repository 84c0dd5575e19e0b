"""NGFF: the axes, scales and units that OME-Zarr 0.4 and 0.5 write beside the arrays of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from doublewell.errors import InputError
from doublewell.io.format import Axis, choose_named
from doublewell.io.unit_names import unit_name

__all__ = ["NgffImage", "ngff_image"]


@dataclass(frozen=True)
class NgffImage:
    """The finest array of an image, its axes, and the names of its channels."""

    array: str
    axes: tuple[Axis, ...]
    channels: tuple[str, ...]

    def chosen(self, path: Path, shape: Sequence[int], var: str | None) -> dict[int, int]:
        """Return the place of the channel `var`, where there are several."""
        names = [axis.name for axis in self.axes]
        axis = names.index("c") if "c" in names else -1
        if axis < 0 or shape[axis] == 1:
            if var is not None:
                raise InputError(f"{path} holds one image of one channel: leave out var={var!r}")
            return {}
        known = self.channels if len(set(self.channels)) == shape[axis] else tuple(map(str, range(shape[axis])))
        return {axis: choose_named(path, "channel", known, var)}


def ngff_image(path: Path, attributes: Mapping[str, Any]) -> NgffImage | None:
    """Return what the attributes of a group say of an image, None where it is none.

    Version 0.5 has them below "ome". An axis without a unit and with scale 1 is taken as not calibrated.
    """
    about = attributes.get("ome", attributes)
    if not isinstance(about, dict) or not isinstance(about.get("multiscales"), list):
        return None
    if not about["multiscales"]:
        raise InputError(f"{path} is damaged: its list of images (multiscales) is empty; copy the store again")
    image = about["multiscales"][0]
    finest = image["datasets"][0]
    array = str(finest["path"])
    if not array or not set(array.split("/")).isdisjoint({"", ".", ".."}) or "\0" in array:
        raise InputError(f"{path} is damaged: its image lies at {array[:40]!r}; copy the store again")
    axes = image["axes"]
    scale = _scale(len(axes), finest, image)
    return NgffImage(array, tuple(_axis(item, step) for item, step in zip(axes, scale, strict=True)), _channels(about))


def _scale(count: int, *levels: Mapping[str, Any]) -> list[float]:
    """Multiply the scales of the array and of the image."""
    scale = [1.0] * count
    for level in levels:
        for step in level.get("coordinateTransformations", []):
            if step.get("type") == "scale" and "scale" in step:
                scale = [a * float(b) for a, b in zip(scale, step["scale"], strict=True)]
    return scale


def _axis(item: Any, step: float) -> Axis:
    about = item if isinstance(item, dict) else {"name": item}  # version 0.3 has names alone
    name, unit = str(about["name"]), unit_name(about.get("unit"))
    kind = {"time": "t", "channel": "c"}.get(str(about.get("type")), name)
    known = isfinite(step) and step > 0 and (unit is not None or step != 1.0)
    return Axis(kind, step=step if known and kind != "c" else None, unit=unit if known else None)


def _channels(about: Mapping[str, Any]) -> tuple[str, ...]:
    shown = about.get("omero", {})
    channels = shown.get("channels", []) if isinstance(shown, dict) else []
    return tuple(str(item.get("label", number)) for number, item in enumerate(channels) if isinstance(item, dict))
