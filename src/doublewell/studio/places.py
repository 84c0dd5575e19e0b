"""Places: names that the browser sends, as paths below the folder that the studio was started in, and nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from doublewell.errors import InputError, shown

OWN = "doublewell-studio"  # folder of uploads and runs, below the start folder
UPLOADS, RUNS = f"{OWN}/files", f"{OWN}/runs"
_DEPTH, _MOST = 4, 1000  # levels of folders, and files, that are listed
_LONGEST = 120  # characters of an uploaded name


def inside(root: Path, name: Any) -> Path:
    """Return the file of a name below the root; what leads out, also by a link at any place, is refused."""
    if not isinstance(name, str) or "\0" in name or "\\" in name or not name:
        raise InputError(f"file is {shown(name)}: expected the name of a file in {root}")
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        raise InputError(f"file is {shown(name)}: expected a name below {root}, without ..")
    base, path = Path(os.path.realpath(root)), root / parts
    for place in [path, *(path.rglob("*") if path.is_dir() else ())]:
        if not Path(os.path.realpath(place)).is_relative_to(base):
            raise InputError(f"{shown(name)} leads out of {root} by a link: copy the file there")
    if not path.exists() or PurePosixPath(name).is_relative_to(RUNS):
        raise InputError(f"{shown(name)} is not there: expected a file in {root}")
    return Path(os.path.realpath(path))


def upload_name(name: str) -> str:
    """Return a harmless name for an uploaded file.

    >>> upload_name("../../<b>my film</b>.ome.tif")
    'b_my_film__b_.ome.tif'
    """
    clean = re.sub(r"[^A-Za-z0-9.+-]", "_", name).lstrip("._-")[-_LONGEST:]
    if not clean:
        raise InputError(f"{shown(name)} has no letters: expected a name such as movie.tif")
    return clean


def movies(root: Path) -> list[dict[str, Any]]:
    """Return the movies below the root by name and size, and folders with one file per frame or of zarr."""
    from doublewell.io.formats import FORMATS

    suffixes = {suffix for item in FORMATS for suffix in item.suffixes}
    series = {suffix for item in FORMATS if item.series for suffix in item.suffixes}
    found: list[dict[str, Any]] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        stores = [name for name in folders if Path(name).suffix.lower() in suffixes]
        frames = sum(Path(name).suffix.lower() in series for name in names)
        folders[:] = sorted(set(folders) - set(stores)) if len(here.parts) < _DEPTH else []
        folders[:] = [name for name in folders if name[0] != "." and (here / name).as_posix() != RUNS]
        found += [{"name": (here / name).as_posix(), "size": None} for name in sorted(stores)]
        found += [{"name": here.as_posix(), "size": None}] if frames > 1 and here.parts else []
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix.lower() in suffixes and name[0] != "." and path.is_file() and not path.is_symlink():
                found.append({"name": (here / name).as_posix(), "size": path.stat().st_size})
        if len(found) >= _MOST:
            break
    return found[:_MOST]
