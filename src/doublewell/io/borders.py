"""Borders: fields on the nodes of a mesh, where the first and the last node of an axis lie on the borders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.view import Index, View, ranges

__all__ = ["Middles", "inside_borders"]

_ALIKE = 1e-6  # of the range of the values: how far a node may differ from its periodic image


def inside_borders(path: Path, values: Any, boundary: Any) -> Any:
    """Return the field as a record with this boundary has it.

    Nodes on both borders of a periodic domain are one node seen twice: the last is left out. A record with zero slope
    has its values in the middle of cells, so nodes are brought there. Without a boundary nothing changes.
    """
    if boundary == "neumann":
        return Middles(path, values)
    if boundary != "periodic":
        return values
    _check_images(path, np.asarray(values[0:1])[0])
    return View(values, range(values.ndim), {}, (values.shape[0], *(n - 1 for n in values.shape[1:])))


class Middles:
    """Values u[t, (z, y,) x] on nodes as those in the middle of the cells between them, computed when sliced.

    The cosine series through the nodes, whose slope is zero on both borders, is evaluated half a step on: exact for
    fields that the mesh resolves.
    """

    def __init__(self, path: Path, values: Any) -> None:
        self.path, self.values = path, values
        self.shape = (int(values.shape[0]), *(int(n) - 1 for n in values.shape[1:]))
        self.dtype, self.ndim = np.dtype(np.float64), len(self.shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        frames, *cells = ranges(index, self.shape)
        block = np.asarray(self.values[frames], dtype=np.float64)
        if not np.all(np.isfinite(block)):
            raise InputError(
                f"{self.path} has values on its nodes that are not finite: expected finite phase values, since "
                "with boundary='neumann' all nodes of a frame are used together; fill them, or leave boundary out"
            )
        for axis in range(1, self.ndim):
            block = _to_middles(block, axis)
        return block[(slice(None), *cells)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self[:], dtype=dtype, copy=copy)


def _to_middles(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Evaluate the cosine series through nodes at the middles between them; its last term is zero there."""
    from scipy.fft import dct

    cells = values.shape[axis] - 1
    series = dct(values, type=1, axis=axis).take(range(cells), axis)
    return np.asarray(dct(series, type=3, axis=axis) / (2.0 * cells))


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
