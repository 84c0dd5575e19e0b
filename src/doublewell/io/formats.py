"""The table of formats: one row a module, and those that other packages add by entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from doublewell.errors import InputError
from doublewell.io.content import check_content, content_of, usual_suffix
from doublewell.io.exodus import EXODUS
from doublewell.io.format import Format, reading
from doublewell.io.hdf5 import HDF5
from doublewell.io.matlab import MATLAB
from doublewell.io.netcdf import NETCDF
from doublewell.io.npz import NPY, NPZ
from doublewell.io.series import is_pattern
from doublewell.io.tiff import TIFF
from doublewell.io.vtk import VTK
from doublewell.io.zarr_store import ZARR, is_store

__all__ = ["FORMATS", "GROUP", "format_to_read", "format_to_write", "suffixes"]

GROUP = "doublewell.formats"
FORMATS: tuple[Format, ...] = (NPZ, NPY, ZARR, HDF5, NETCDF, MATLAB, TIFF, VTK, EXODUS)
_FOLDER = ZARR  # what a folder without frames is taken for


def format_to_read(path: Path) -> Format:
    """Return the format of an existing file by its suffix, of a folder by what is in it, of a pattern by its end."""
    with reading(path, "file"):
        if is_pattern(path):
            return _of_pattern(path)
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a file or a zarr folder; check the name and the folder")
        found = _of_folder(path) if path.is_dir() else _by_suffix(path)
    if found is None:
        raise InputError(f"{path} has no suffix of a record: expected {suffixes(FORMATS)}{_aside(path)}")
    check_content(path, found)
    return found


def format_to_write(path: Path) -> Format | None:
    """Return the format in which a record is written under this name, None when there is none."""
    found = _by_suffix(path)
    return found if found is not None and found.write is not None else None


def suffixes(formats: tuple[Format, ...]) -> str:
    """List the suffixes of formats in words."""
    return ", ".join(suffix for item in formats for suffix in item.suffixes)


def _by_suffix(path: Path) -> Format | None:
    """Look in the own table first, so that no other package is imported for a known suffix."""
    suffix = path.suffix.lower()
    return next((item for item in FORMATS if suffix in item.suffixes), None) or _added(suffix)


def _of_pattern(path: Path) -> Format:
    found = _by_suffix(path)
    if found is None or not found.series:
        series = suffixes(tuple(item for item in FORMATS if item.series))
        raise InputError(
            f"{path} is a pattern for several files: expected one that ends in {series}, with a file a frame"
        )
    return found


def _of_folder(path: Path) -> Format:
    named = _by_suffix(path)
    if named is not None or is_store(path):
        return named or _FOLDER
    inside = {item.suffix.lower() for item in path.iterdir()}
    return next((item for item in FORMATS if item.series and inside & set(item.suffixes)), _FOLDER)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _added(suffix: str) -> Format | None:
    """Return the format of another package for a suffix; a package that cannot be loaded is named."""
    for point in _entry_points():
        try:
            found = point.load()
        except Exception as error:
            raise InputError(
                f"the format {point.name!r} of another package ({point.value}) cannot be loaded "
                f"({type(error).__name__}: {error}): update that package, or remove it"
            ) from error
        if not isinstance(found, Format):
            raise InputError(
                f"the format {point.name!r} of another package ({point.value}) is a {type(found).__name__}: expected a "
                "doublewell.io.format.Format; update that package, or remove it"
            )
        if suffix in found.suffixes:
            return found
    return None


def _aside(path: Path) -> str:
    if path.suffix.lower() == ".json":
        return "; a saved result is read by load_result"
    with reading(path, "file"):
        content = content_of(path)
    suffix = usual_suffix(content)
    return f"; by its first bytes it is {content}: give it the suffix {suffix}" if suffix else "; convert the file"
