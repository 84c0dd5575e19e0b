"""The table of formats: one row a module. A new format is one import and one name here."""

from __future__ import annotations

from pathlib import Path

from doublewell.errors import InputError
from doublewell.files.format import Format, reading
from doublewell.files.npz import NPY, NPZ
from doublewell.files.zarr_store import ZARR

__all__ = ["FORMATS", "format_to_read", "format_to_write", "suffixes"]

FORMATS: tuple[Format, ...] = (NPZ, NPY, ZARR)
_FOLDER = ZARR  # what a folder of any other name is taken for


def format_to_read(path: Path) -> Format:
    """Return the format of an existing file by its suffix; a folder is a zarr store whatever its name."""
    with reading(path, "file"):
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a file or a zarr folder; check the name and the folder")
        found = _by_suffix(path) or (_FOLDER if path.is_dir() else None)
    if found is None:
        raise InputError(f"{path} has no suffix of a record: expected {suffixes(FORMATS)}{_aside(path)}")
    return found


def format_to_write(path: Path) -> Format | None:
    """Return the format in which a record is written under this name, None when there is none."""
    found = _by_suffix(path)
    return found if found is not None and found.write is not None else None


def suffixes(formats: tuple[Format, ...]) -> str:
    """List the suffixes of formats in words."""
    return ", ".join(suffix for item in formats for suffix in item.suffixes)


def _by_suffix(path: Path) -> Format | None:
    return next((item for item in FORMATS if path.suffix.lower() in item.suffixes), None)


def _aside(path: Path) -> str:
    return "; a saved result is read by load_result" if path.suffix.lower() == ".json" else "; convert the file"
