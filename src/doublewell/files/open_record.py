"""open_record: a file on disk as a Record; what the file does not say is asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from doublewell.errors import InputError
from doublewell.files.format import MARKS, METADATA, Found, as_path, check_version
from doublewell.files.formats import format_to_read
from doublewell.record import Boundary, Record

__all__ = ["open_record"]


def open_record(
    path: str | PathLike[str],
    *,
    var: str | None = None,
    dx: float | Sequence[float] | None = None,
    dt: float | None = None,
    times: ArrayLike | None = None,
    q: float | None = None,
    boundary: Boundary | None = None,
) -> Record:
    """Open a record: .npz (read whole), .npy (mapped), or a zarr folder (read when a slab is asked for).

    The file's own dx, dt or times, q and boundary are used, and an argument takes their place; a zarr store that
    xarray wrote gives dx and times by its coordinates. `var` names the field in a file that holds several arrays; u,
    or the only array with 2 to 4 axes, needs no name. A file that cannot be used raises InputError, at once where its
    metadata are wrong, and when a slab is read where its values are.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/movie.npy", np.zeros((3, 8, 8)))
    ...     open_record(f"{folder}/movie.npy", dx=0.125, dt=0.1)
    Record(3 frames of 8 x 8, dx = 0.125, t = 0 to 0.2, q = unknown, boundary = not declared)
    """
    place = as_path(path)
    known = {"dx": dx, "dt": dt, "times": times, "q": q, "boundary": boundary}
    given = {name: value for name, value in known.items() if value is not None}
    found = format_to_read(place).read(place, var, _wanted(given))
    check_version(place, found.metadata)
    metadata = {name: value for name, value in found.metadata.items() if name not in MARKS} | given
    if "times" in metadata and "dt" not in given:
        metadata.pop("dt", None)  # a file with both: the times say more
    _ask_for_missing(place, metadata)
    return _record(place, found, metadata)


def _wanted(given: dict[str, Any]) -> frozenset[str]:
    """The metadata to look for: what no argument replaces. dt and times replace each other."""
    clock = {"dt", "times"}
    return frozenset(METADATA) - set(given) - (clock if clock & set(given) else set())


def _ask_for_missing(path: Path, metadata: dict[str, Any]) -> None:
    """Ask for all that is missing at once; q and the boundary, which only a fit needs, are named beside it."""
    lacks = []
    if "dx" not in metadata:
        lacks.append("no mesh spacing: pass dx=, one number or one per space axis (on the command line --dx)")
    if not {"dt", "times"} & set(metadata):
        lacks.append("no frame interval: pass dt=, one number, or times=, one per frame (on the command line --dt)")
    if lacks:
        fit = {"q": "q=", "boundary": "boundary= (for error bands)"}
        later = " and ".join(words for name, words in fit.items() if name not in metadata)
        beside = f"; a fit will also ask for {later}" if later else ""
        raise InputError(f"{path} has {'; it has '.join(lacks)}{beside}")


def _record(path: Path, found: Found, metadata: dict[str, Any]) -> Record:
    try:
        return Record(found.values, **metadata)
    except (ValueError, TypeError, OverflowError) as error:  # InputError is a ValueError
        raise InputError(f"{path}: {error}") from error
