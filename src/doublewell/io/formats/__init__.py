"""The table of formats: one row per module, and those that other packages add by entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from doublewell.errors import InputError
from doublewell.io.format import Format, reading
from doublewell.io.formats.exodus import EXODUS
from doublewell.io.formats.hdf5 import HDF5
from doublewell.io.formats.matlab import MATLAB
from doublewell.io.formats.netcdf import NETCDF
from doublewell.io.formats.npz import NPY, NPZ
from doublewell.io.formats.tiff import TIFF
from doublewell.io.formats.vtk import VTK
from doublewell.io.formats.zarr import ZARR, is_store
from doublewell.io.sniff import check_content, content_of, is_pattern, usual_suffix

GROUP = "doublewell.formats"
FORMATS: tuple[Format, ...] = (NPZ, NPY, ZARR, HDF5, NETCDF, MATLAB, TIFF, VTK, EXODUS)


def format_to_read(path: Path) -> Format:
    """Return the format of an existing file by its suffix, of a folder by what is in it, of a pattern by its end."""
    with reading(path, "expected"):
        known = _by_suffix(path)
        if is_pattern(path):
            if known is None or not known.series:
                series = suffixes(tuple(item for item in FORMATS if item.series))
                raise InputError(
                    f"{path} is a pattern for several files: expected one that ends in {series}, with one file per "
                    "frame"
                )
            return known
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a file or a zarr folder; check the name and the folder")
        if known is None and path.is_dir():
            inside = set() if is_store(path) else {item.suffix.lower() for item in path.iterdir()}
            known = next((item for item in FORMATS if item.series and inside & set(item.suffixes)), ZARR)
    if known is None:
        raise InputError(f"{path} has no suffix of a record: expected {suffixes(FORMATS)}{_hint(path)}")
    check_content(path, known)
    return known


def format_to_write(path: Path) -> Format | None:
    """Return the format in which a record is written under this name, None when there is none."""
    known = _by_suffix(path)
    return known if known is not None and known.write is not None else None


def suffixes(formats: tuple[Format, ...]) -> str:
    """List the suffixes of formats in words."""
    return ", ".join(suffix for item in formats for suffix in item.suffixes)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _by_suffix(path: Path) -> Format | None:
    """Return the format of a suffix; those of other packages are imported only for a suffix that is not our own."""
    suffix = path.suffix.lower()
    for known in FORMATS:
        if suffix in known.suffixes:
            return known
    for point in _entry_points():
        origin = f"the format {point.name!r} of another package ({point.value})"
        cure = "update that package, or remove it"
        try:
            added = point.load()
        except Exception as error:
            raise InputError(f"{origin} cannot be loaded ({type(error).__name__}: {error}): {cure}") from error
        if not isinstance(added, Format):
            raise InputError(
                f"{origin} is a {type(added).__name__}: expected a doublewell.io.format.Format; {cure}"
            )  # fmt: skip
        if suffix in added.suffixes:
            return added
    return None


def _hint(path: Path) -> str:
    if path.suffix.lower() == ".json":
        return "; a .json file is a saved result, not a movie"
    with reading(path, "expected"):
        content = content_of(path)
    suffix = usual_suffix(content)
    return f"; by its first bytes it is {content}: give it the suffix {suffix}" if suffix else "; convert the file"
