"""save: a record or a result to disk, at once or not at all."""

from __future__ import annotations

from os import PathLike

from doublewell.errors import InputError
from doublewell.io.format import as_path
from doublewell.io.formats import FORMATS, format_to_write, suffixes
from doublewell.io.result_file import RESULT_SUFFIX, write_result
from doublewell.record import Record
from doublewell.result import Result


def save(value: Record | Result, path: str | PathLike[str]) -> None:
    """Save a record as .npz, .zarr or .nc, or a result as .json; what was there before is replaced.

    Loading gives the same values to the last bit (of a trajectory result on more than a million cells all but the
    fitted initial field, which only a page needs). The new file is written beside the old one and takes its place when
    it is complete, so that an interruption leaves the old file. Records are written slab by slab.

    >>> import tempfile, numpy as np
    >>> from doublewell.io import open_record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Record(np.zeros((3, 8, 8)), dx=0.125, dt=0.1, q=1.0), f"{folder}/movie.npz")
    ...     open_record(f"{folder}/movie.npz").q
    1.0
    """
    place = as_path(path)
    if isinstance(value, Record):
        form = format_to_write(place)
        if form is None or form.write is None:
            written = suffixes(tuple(item for item in FORMATS if item.write is not None))
            raise InputError(f"{place}: expected a name that ends in {written} for a Record (a Result goes to .json)")
        form.write(value, place)
    elif isinstance(value, Result):
        if place.suffix.lower() != RESULT_SUFFIX:
            raise InputError(f"{place}: expected a name that ends in {RESULT_SUFFIX} for a Result")
        write_result(value, place)
    else:
        raise InputError(f"a {type(value).__name__} cannot be saved: expected a Record or a Result")
