"""The command inspect."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from doublewell.cli.output import Output
from doublewell.cli.reading import Reading
from doublewell.cli.wording import about

__all__ = ["inspect"]


def inspect(
    file: Path,
    /,
    *,
    reading: Reading = Reading(),  # noqa: B008  frozen
    output: Output = Output(),  # noqa: B008  frozen
) -> None:
    """Say in words what a movie offers: noise, phases seen, interface width, and what to watch.

    Parameters
    ----------
    file
        The movie: NumPy, zarr, HDF5, netCDF, MATLAB, TIFF, VTK or Exodus; a folder or a pattern for a file a frame.
    """
    from doublewell.cli.documents import inspection_document
    from doublewell.report import inspect_record

    with output.bar() as bar, about(file):
        record, grey = reading.open_grey(file)
        found = inspect_record(record, progress=bar.stage("looking"))
    levels = "" if grey is None else "\n\nGrey levels\n" + indent(str(grey), "  ")
    output.answer(f"{file}: {found}{levels}", {"file": str(file), **inspection_document(found, grey)})
