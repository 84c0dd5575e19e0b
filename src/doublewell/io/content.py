"""Content: what a file is by its first bytes, whatever its name says."""

from __future__ import annotations

from pathlib import Path

from doublewell.errors import InputError
from doublewell.io.format import Format, reading

__all__ = ["check_content", "content_of", "usual_suffix"]

# (content, its first bytes, the usual suffix)
_SIGNATURES = (
    ("zip", b"PK\x03\x04", ".npz"),
    ("zip", b"PK\x05\x06", ".npz"),
    ("npy", b"\x93NUMPY", ".npy"),
    ("HDF5", b"\x89HDF\r\n\x1a\n", ".h5"),
    ("netCDF 3", b"CDF", ".nc"),
    ("TIFF", b"II*\0", ".tif"),
    ("TIFF", b"MM\0*", ".tif"),
    ("TIFF", b"II+\0", ".tif"),
    ("TIFF", b"MM\0+", ".tif"),
    ("MATLAB 5", b"MATLAB 5.0 MAT-file", ".mat"),
    ("HDF5", b"MATLAB 7.3 MAT-file", ".mat"),
    ("XML", b"<VTKFile", ".vti"),
    ("XML", b"<?xml", ".vti"),
    ("PNG", b"\x89PNG", None),
    ("JPEG", b"\xff\xd8\xff", None),
    ("GIF", b"GIF8", None),
    ("AVI", b"RIFF", None),
    ("gzip", b"\x1f\x8b", None),
    ("PDF", b"%PDF", None),
)
_USER_BLOCKS = (512, 1024, 2048)  # an HDF5 file may begin after a block that belongs to others


def content_of(path: Path) -> str | None:
    """Return what the first bytes of a file say that it is, None where they say nothing."""
    with path.open("rb") as file:
        head = file.read(_USER_BLOCKS[-1] + 8)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for content, start, _ in _SIGNATURES:
        if head.startswith(start) or (content == "XML" and text.startswith(start)):
            return content
    hdf5 = any(head[block : block + 8] == b"\x89HDF\r\n\x1a\n" for block in _USER_BLOCKS)
    return "HDF5" if hdf5 else None


def usual_suffix(content: str | None) -> str | None:
    """Return the suffix that files of a content have, None where they are no records."""
    return next((suffix for name, _, suffix in _SIGNATURES if name == content), None)


def check_content(path: Path, form: Format) -> None:
    """Refuse a file whose first bytes are known to be those of another format than its suffix says."""
    with reading(path, "file"):
        content = content_of(path) if path.is_file() else None
    if content is None or not form.contents or content in form.contents:
        return
    suffix = usual_suffix(content)
    cure = f"give it the suffix {suffix}, or save it anew" if suffix else "convert the file"
    raise InputError(f"{path} holds {content} by its first bytes, and is no {form.name}: {cure}")
