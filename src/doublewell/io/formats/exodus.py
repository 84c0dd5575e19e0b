"""Exodus: what MOOSE writes, a netCDF file of nodes and nodal variables; read where the nodes are a regular mesh."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.axes import grid_nodes
from doublewell.io.format import Axis, StoredField, choose_named
from doublewell.io.formats.hdf5 import Member
from doublewell.io.formats.netcdf import netcdf_members
from doublewell.record.arrays import lazy


def read_exodus(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (no other metadata)
    """Find a nodal variable of an Exodus file and sort its nodes to a mesh; values are read when sliced."""
    members, _ = netcdf_members(path)
    names = _texts(members.get("name_nod_var"))
    if not names:
        others = ", ".join(_texts(members.get("name_elem_var"))) or "none"
        raise InputError(
            f"{path} has no nodal variables (element variables: {others}): expected the field on the nodes of the mesh"
        )
    number = choose_named(path, "nodal variable", names, "u" if var is None and "u" in names else var)
    grid = grid_nodes(_points(path, members))
    stored = _values(path, members, number)
    field = lazy(stored).map_frames(grid, grid.mesh, stored.dtype)
    clock = Axis("t", points=np.asarray(members["time_whole"].values[:]) if "time_whole" in members else None)
    if field.shape[0] < 2:
        raise InputError(
            f"{path} holds {field.shape[0]} times of {names[number]!r}: expected a movie; let MOOSE write each step"
        )
    return StoredField(field, {"origin": "simulation"}, (clock, *grid.axes), bordered=True)


def _texts(member: Member | None) -> list[str]:
    """Read rows of characters, or texts, as names."""
    rows = np.empty(0) if member is None else np.asarray(member.values[:])
    if rows.dtype.kind not in "SU" or rows.ndim not in (1, 2):
        return []
    texts = [b"".join(np.atleast_1d(row).astype("S").tolist()) for row in rows]
    return [text.split(b"\0")[0].decode("utf-8", "replace").strip() for text in texts]


def _points(path: Path, members: Mapping[str, Member]) -> NDArray[Any]:
    """Return the positions of the nodes, columns x, y, z; older files have them in one array."""
    if "coord" in members:
        return np.asarray(members["coord"].values[:]).T
    columns = [np.asarray(members[name].values[:]) for name in ("coordx", "coordy", "coordz") if name in members]
    if not columns or len({len(column) for column in columns}) != 1:
        raise InputError(f"{path} has no coordinates of nodes (coordx, coordy, coordz): expected an Exodus file")
    return np.stack(columns, axis=1)


def _values(path: Path, members: Mapping[str, Member], number: int) -> Any:
    """Return the values u[t, node] of a variable; older files have all variables in one array."""
    name = f"vals_nod_var{number + 1}"
    if name in members:
        return members[name].values
    if "vals_nod_var" in members and len(members["vals_nod_var"].values.shape) == 3:
        return members["vals_nod_var"].values.transpose((0, 2), {1: number})
    raise InputError(f"{path} is damaged: it has no values {name}; copy the file again")
