"""Borders: fields on the nodes of a mesh, where the first and the last node of an axis lie on the borders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from doublewell.errors import InputError
from doublewell.files.view import View

__all__ = ["inside_borders"]

_ALIKE = 1e-6  # of the range of the values: how far a node may differ from its periodic image


def inside_borders(path: Path, values: Any, boundary: Any) -> Any:
    """Return the field as a record with this boundary has it.

    Nodes on both borders of a periodic domain are one node seen twice: the last is left out. A record with zero slope
    has its values in the middle of cells, which such nodes are not, so that boundary is refused. Without a boundary
    nothing changes.
    """
    if boundary == "neumann":
        raise InputError(
            f"{path} holds values on nodes that lie on the border, and boundary='neumann' means values in the middle "
            "of cells: leave the boundary out, which the weak reading does not need, or write the field as cell values"
        )
    if boundary != "periodic":
        return values
    _check_images(path, np.asarray(values[0:1])[0])
    return View(values, range(values.ndim), {}, (values.shape[0], *(n - 1 for n in values.shape[1:])))


def _check_images(path: Path, frame: Any) -> None:
    reach = _ALIKE * float(np.ptp(frame))
    for axis in range(frame.ndim):
        first, last = frame.take(0, axis), frame.take(-1, axis)
        if not np.max(np.abs(first - last)) <= reach:
            raise InputError(
                f"{path}: boundary is 'periodic', and the first and the last layer of nodes along "
                f"{'zyx'[-frame.ndim :][axis]} are not the same: expected border nodes that are one node seen twice; "
                "leave out boundary="
            )
