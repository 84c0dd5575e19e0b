"""py-pde: the layout of its FileStorage in an HDF5 file, arrays data and times and the grid as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from doublewell.errors import InputError
from doublewell.io.format import Axis, Found, choose_named

__all__ = ["found_in", "is_storage"]

_ATTRIBUTES = "field_attributes"
_AXES = "xyz"


def is_storage(file: Any) -> bool:
    """Tell whether an open HDF5 file was written by py-pde's FileStorage."""
    return _ATTRIBUTES in file.attrs and "data" in file and "times" in file


def found_in(path: Path, file: Any, var: str | None, wanted: frozenset[str], stored: Callable[..., Any]) -> Found:
    """Find a scalar field of a storage: cells in the order x, y, z of its grid, times, and whether it is periodic."""
    about, data = _decoded(file.attrs[_ATTRIBUTES]), file["data"]
    fields = [_decoded(item) for item in _decoded(about["fields"])] if "fields" in about else [about]
    grid = _grid(path, _decoded(fields[0]["grid"]))
    chosen = _choose(path, fields, len(grid["shape"]), var)
    length = min(int(_decoded(file.attrs.get("data_length", data.shape[0]))), *data.shape[:1], *file["times"].shape)
    component = [] if len(fields) == 1 and "fields" not in about else [Axis("c")]
    if data.shape[1 + len(component) :] != tuple(grid["shape"]):
        raise InputError(
            f"{path} is damaged: its data have shape {data.shape}, its grid {grid['shape']}; copy it again"
        )
    axes = (_clock(file, length), *component, *(Axis(_AXES[i], step=h) for i, h in enumerate(grid["spacing"])))
    periodic = "boundary" in wanted and all(grid["periodic"])
    return Found(
        stored(path, "data", (length, *data.shape[1:]), data.dtype),
        {"boundary": "periodic"} if periodic else {},
        axes,
        {1: chosen} if component else {},
    )


def _decoded(value: Any) -> Any:
    """Decode JSON text; py-pde writes texts of texts."""
    return json.loads(value) if isinstance(value, str | bytes) else value


def _clock(file: Any, length: int) -> Axis:
    return Axis("t", points=file["times"][:length])


def _grid(path: Path, grid: dict[str, Any]) -> dict[str, Any]:
    kind, shape = grid.get("class"), [int(n) for n in grid.get("shape", [])]
    if kind not in ("CartesianGrid", "UnitGrid") or not 1 <= len(shape) <= 3 or min(shape) < 1:
        raise InputError(f"{path} has a {kind} of py-pde: expected a CartesianGrid or a UnitGrid of one to three axes")
    bounds = grid["bounds"] if kind == "CartesianGrid" else [[0, n] for n in shape]
    spacing = [(float(high) - float(low)) / n for (low, high), n in zip(bounds, shape, strict=True)]
    periodic = grid.get("periodic", False)
    return {"shape": shape, "spacing": spacing, "periodic": periodic if isinstance(periodic, list) else [periodic]}


def _choose(path: Path, fields: list[dict[str, Any]], dim: int, var: str | None) -> int:
    """Return the place of a scalar field among the components of a collection."""
    place, scalars = 0, {}
    for number, item in enumerate(fields):
        rank = {"ScalarField": 0, "VectorField": 1, "Tensor2Field": 2}[_decoded(item["class"])]
        if rank == 0:
            scalars[str(_decoded(item.get("label", "null")) or number)] = place
        place += dim**rank
    if not scalars:
        raise InputError(f"{path} holds vectors or tensors only: expected a scalar field of py-pde")
    return list(scalars.values())[choose_named(path, "scalar field", list(scalars), var)]
