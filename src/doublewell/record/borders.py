"""Borders: values on nodes that lie on both borders of the domain, as a record with its boundary has them."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Any

import numpy as np

from doublewell.errors import InputError, option, shown
from doublewell.hints import Array
from doublewell.record.arrays import Values, check_mask, lazy

_IDENTICAL = 1e-6  # of the range of the values: how far a node may differ from its periodic image


def check_nodes(nodes: Any) -> bool | None:
    """Return whether values lie on nodes at the borders, None where it is not known."""
    if nodes is not None and not isinstance(nodes, bool | np.bool_):
        raise InputError(f"nodes is {shown(nodes)}: expected True (values on the borders), False or None (not known)")
    return None if nodes is None else bool(nodes)


def mask_inside(mask: Any, values: Any, boundary: Any) -> Any:
    """Return the mask of values on nodes as that of a record: the last layers left out of a periodic one."""
    if mask is None or isinstance(mask, str):
        return mask
    if boundary == "neumann":
        raise InputError(
            f"with {option('nodes', True)} and {option('boundary', 'neumann')} all nodes of a frame are used together: "
            "expected no mask; fill what is missing, or leave out the boundary"
        )
    return without_last(check_mask(mask, values), range(values.ndim))[:]


def inside_borders(values: Any, boundary: Any, name: str = "the field") -> Any:
    """Return the field as a record with this boundary has it; `name` is the field in errors.

    Nodes on both borders of a periodic domain are one node stored twice: the last is left out. A record with zero slope
    has its values in the middle of cells, so nodes are brought there. Without a boundary nothing changes.
    """
    mesh = values.shape[1:]
    if boundary == "neumann":
        return lazy(values).map_frames(partial(_middles, name), tuple(n - 1 for n in mesh))
    if boundary != "periodic":
        return values
    frame = np.asarray(values[0:1])[0]
    for axis, letter in enumerate("zyx"[-frame.ndim :]):
        gap = np.max(np.abs(frame.take(0, axis) - frame.take(-1, axis)))
        if not gap <= _IDENTICAL * float(np.ptp(frame)):
            raise InputError(
                f"{name}: boundary is 'periodic', and the first and the last layer of nodes along {letter} are not the "
                f"same: expected border nodes that are one node stored twice; leave out {option('boundary')}"
            )
    return without_last(values, range(len(mesh)))


def without_last(values: Any, axes: Container[int]) -> Any:
    """Leave out the last layer along some space axes (0 is the first of them), except along axes of length 1."""
    frames, *mesh = values.shape
    ends = [(0, n - 1 if k in axes and n > 1 else n) for k, n in enumerate(mesh)]
    return lazy(values).part((0, frames), *ends)


def stored_twice(values: Any) -> list[int]:
    """Return the space axes (0 is the first of them) along which a periodic field repeats its first layer as its last.

    The first, the middle and the last frame are read. A field that is the same in all layers, or a mirror image in the
    middle of cells, repeats nothing.
    """
    frames, *mesh = values.shape
    looks = np.concatenate([np.asarray(values[k : k + 1]) for k in sorted({0, frames // 2, frames - 1})])
    least, twice = _IDENTICAL * float(np.ptp(looks)), []
    for axis in range(len(mesh) if np.isfinite(least) else 0):
        lines = np.moveaxis(looks, axis + 1, 0)
        across, inside = (float(np.max(np.abs(a - b))) for a, b in ((lines[0], lines[-1]), (lines[1], lines[-2])))
        if mesh[axis] > 3 and across <= least < inside:
            twice.append(axis)
    return twice


def _middles(name: str, frames: Values, first: int) -> Array:  # noqa: ARG001 (all frames have one mesh)
    """Return values u[t, (z, y,) x] on nodes as those in the middle of the cells between them.

    The cosine series through the nodes, whose slope is zero on both borders, is evaluated half a step on, where its
    last term is zero: exact for fields that the mesh resolves.
    """
    from scipy.fft import dct

    block = np.asarray(frames, dtype=np.float64)
    if not np.all(np.isfinite(block)):
        raise InputError(
            f"{name} has values on its nodes that are not finite: expected finite phase values, since with "
            f"{option('boundary', 'neumann')} all nodes of a frame are used together; fill them, or leave out "
            f"{option('boundary')}"
        )
    for axis in range(1, block.ndim):
        cells = block.shape[axis] - 1
        series = dct(block, type=1, axis=axis).take(range(cells), axis)
        block = np.asarray(dct(series, type=3, axis=axis) / (2.0 * cells))
    return block
