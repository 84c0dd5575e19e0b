"""Exodus: what MOOSE writes, a netCDF file of nodes, elements and variables on them, brought to a regular mesh."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.format import Axis, StoredField, choose_named, chosen_note
from doublewell.io.formats.hdf5 import Member
from doublewell.io.formats.netcdf import netcdf_members
from doublewell.io.mesh import mesh_of
from doublewell.record import LazyArray, Note
from doublewell.record.arrays import Block, Values, lazy

_PART = re.compile(r"-s([0-9]+)$")
_BLOCK = re.compile(r"connect[0-9]+")


def read_exodus(path: Path, var: str | None, wanted: frozenset[str]) -> StoredField:  # noqa: ARG001 (no other metadata)
    """Find a variable of an Exodus file, on nodes or in elements, on a regular mesh; values are read when sliced."""
    members, _ = netcdf_members(path)
    nodal, within = (_texts(members.get(f"name_{kind}_var")) for kind in ("nod", "elem"))
    if not nodal and not within:
        raise InputError(f"{path} has no nodal and no element variables: expected the field; let MOOSE write it")
    kind, names = ("nodal variable", nodal) if nodal and (var is None or var in nodal) else ("element variable", within)
    if var is not None and var not in names:
        kind, names = ("variable", [*nodal, *within])
    number = choose_named(path, kind, names, "u" if var is None and "u" in names else var)
    points = _points(path, members)
    if kind == "nodal variable":
        mesh, stored = mesh_of(points), _nodal(path, members, number)
    else:
        blocks = [members[name].values for name in _blocks(members)]
        mesh = mesh_of(np.concatenate([_centres(path, points, corners) for corners in blocks]), centres=True)
        stored = _elemental(path, members, number, [int(corners.shape[0]) for corners in blocks])
    if stored.shape[0] < 2:
        raise InputError(
            f"{path} holds {stored.shape[0]} times of {names[number]!r}: expected a movie; let MOOSE write each step"
        )
    field = lazy(stored).map_frames(mesh, mesh.mesh, stored.dtype)
    clock = Axis("t", points=np.asarray(members["time_whole"].values[:]) if "time_whole" in members else None)
    notes = [chosen_note(kind, names[number], [*nodal, *within]), *mesh.notes(_ends(stored))]
    if part := _PART.search(path.name):
        words = f"part {int(part[1])} of a run whose mesh changes: only the times with the mesh of this part are read"
        notes.append(Note("part-of-run", words))
    return StoredField(
        field, {"origin": "simulation"}, (clock, *mesh.axes), bordered=bool(nodal) and kind == "nodal variable",
        notes=tuple(notes),
    )  # fmt: skip


def _ends(stored: Any) -> Values:
    """Return the first and the last frame."""
    return np.concatenate([np.asarray(stored[0:1]), np.asarray(stored[stored.shape[0] - 1 : stored.shape[0]])])


def _blocks(members: Mapping[str, Member]) -> list[str]:
    """Return the names of the blocks of elements, in their order."""
    names = [name for name in members if _BLOCK.fullmatch(name)]
    return sorted(names, key=lambda name: int(name.removeprefix("connect")))


def _centres(path: Path, points: NDArray[Any], stored: Any) -> NDArray[Any]:
    """Return the middles of elements, as the means of their corners; nodes are counted from 1."""
    corners = np.asarray(stored[:]).astype(np.int64) - 1
    if corners.ndim != 2 or not corners.size or corners.min() < 0 or corners.max() >= len(points):
        raise InputError(f"{path} is damaged: its elements name nodes that it does not have; copy the file again")
    centres: NDArray[Any] = points[corners].mean(axis=1)
    return centres


def _elemental(path: Path, members: Mapping[str, Member], number: int, sizes: Sequence[int]) -> LazyArray:
    """Return the values u[t, element] of an element variable, which lie in an array for each block."""
    parts = [members.get(f"vals_elem_var{number + 1}eb{block + 1}") for block in range(len(sizes))]
    stored = [part.values for part in parts if part is not None]
    if not stored or [part.shape[-1] for part in stored] != list(sizes):
        raise InputError(
            f"{path} has no values of this element variable in some block of its mesh: expected it in all of them"
        )
    frames = min(part.shape[0] for part in stored)
    return LazyArray(
        partial(_joined, tuple(stored)), (frames, sum(sizes)), np.result_type(*(part.dtype for part in stored)),
        files=(path,),
    )  # fmt: skip


def _joined(parts: tuple[Any, ...], block: Block) -> Values:
    return np.concatenate([np.asarray(part[block[0]]) for part in parts], axis=1)[:, block[1]]


def _texts(member: Member | None) -> list[str]:
    """Read rows of characters, or texts, as names."""
    rows = np.empty(0) if member is None else np.asarray(member.values[:])
    if rows.dtype.kind not in "SU" or rows.ndim not in (1, 2):
        return []
    # NumPy takes a NUL for the end of each character, so that what lies behind the first one looks like more text
    texts = [row.tobytes() if row.dtype.kind == "S" else "".join(row).encode() for row in map(np.atleast_1d, rows)]
    return [text.split(b"\0")[0].decode("utf-8", "replace").strip() for text in texts]


def _points(path: Path, members: Mapping[str, Member]) -> NDArray[Any]:
    """Return the positions of the nodes, columns x, y, z; older files have them in one array."""
    if "coord" in members:
        return np.asarray(members["coord"].values[:]).T
    columns = [np.asarray(members[name].values[:]) for name in ("coordx", "coordy", "coordz") if name in members]
    if not columns or len({len(column) for column in columns}) != 1:
        raise InputError(f"{path} has no coordinates of nodes (coordx, coordy, coordz): expected an Exodus file")
    return np.stack(columns, axis=1)


def _nodal(path: Path, members: Mapping[str, Member], number: int) -> Any:
    """Return the values u[t, node] of a variable; older files have all variables in one array."""
    name = f"vals_nod_var{number + 1}"
    if name in members:
        return members[name].values
    if "vals_nod_var" in members and len(members["vals_nod_var"].values.shape) == 3:
        return members["vals_nod_var"].values.transpose((0, 2), {1: number})
    raise InputError(f"{path} is damaged: it has no values {name}; copy the file again")
