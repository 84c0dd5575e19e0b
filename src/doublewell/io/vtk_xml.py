"""VTK XML: the arrays of a .vti, .vtu or .pvd file, as text, base64 or raw bytes, packed or not.

The XML itself is read by the standard library. No small library reads image data (.vti); the large one, vtk, is some
140 MB.
"""

from __future__ import annotations

import base64
import lzma
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from doublewell.errors import InputError

__all__ = ["TYPES", "VtkDocument", "numbers_of", "read_document"]

TYPES = {
    "Float32": "f4", "Float64": "f8", "Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4",
    "UInt32": "u4", "Int64": "i8", "UInt64": "u8",
}  # fmt: skip
_RAW = re.compile(rb"<AppendedData[^>]*encoding\s*=\s*[\"']raw[\"'][^>]*>\s*_")
_BLOCKS = 2**20  # of one packed array, at most


@dataclass(frozen=True)
class VtkDocument:
    """A parsed file: its elements, the bytes or the base64 text that stand at its end, and its size in bytes."""

    root: Any
    appended: bytes
    raw: bool
    size: int

    @property
    def kind(self) -> str:
        """What the file holds, such as ImageData."""
        return str(self.root.get("type", ""))

    def array(self, element: Any, size: int) -> NDArray[Any]:
        """Read the numbers of a DataArray; anything but `size` of them is refused."""
        dtype = np.dtype(TYPES[element.get("type")]).newbyteorder(self._order)
        if element.get("format") == "ascii":
            numbers = np.array((element.text or "").split()[: size + 1], dtype=dtype)
        else:
            numbers = np.frombuffer(self._bytes(element, size * dtype.itemsize), dtype=dtype)
        if numbers.size != size:
            raise InputError(f"array {element.get('Name')!r} has {numbers.size} numbers: expected {size}")
        return numbers.astype(dtype.newbyteorder("="))

    @property
    def _order(self) -> Literal["<", ">"]:
        return ">" if self.root.get("byte_order") == "BigEndian" else "<"

    def _bytes(self, element: Any, size: int) -> bytes:
        if element.get("format") == "appended":
            data = self.appended[int(element.get("offset")) :]
            return self._unpacked(data, size) if self.raw else self._from_text(data, size)
        return self._from_text((element.text or "").strip().encode("ascii"), size)

    def _header(self) -> np.dtype[Any]:
        return np.dtype(TYPES[self.root.get("header_type", "UInt32")]).newbyteorder(self._order)

    def _unpacked(self, data: bytes, size: int) -> bytes:
        """Return the bytes of an array that begins with its length, or with the lengths of its packed blocks."""
        head = self._header()
        if self.root.get("compressor") is None:
            length = int(np.frombuffer(data, head, 1)[0])
            return data[head.itemsize : head.itemsize + min(length, size + 1)]
        count = min(int(np.frombuffer(data, head, 1)[0]), _BLOCKS)
        lengths = np.frombuffer(data, head, 3 + count)
        return self._inflated(data[lengths.nbytes :], lengths, size)

    def _from_text(self, text: bytes, size: int) -> bytes:
        """The same in base64, where the lengths of packed blocks are a text of their own."""
        head = self._header()
        if self.root.get("compressor") is None:
            start = _decoded(text, head.itemsize)
            length = int(np.frombuffer(start, head, 1)[0])
            return _decoded(text, head.itemsize + min(length, size + 1))[head.itemsize :]
        count = min(int(np.frombuffer(_decoded(text, head.itemsize), head, 1)[0]), _BLOCKS)
        lengths = np.frombuffer(_decoded(text, (3 + count) * head.itemsize), head, 3 + count)
        rest = text[4 * -(-lengths.nbytes // 3) :]
        return self._inflated(_decoded(rest, sum(map(int, lengths[3:]))), lengths, size)

    def _inflated(self, data: bytes, lengths: NDArray[Any], size: int) -> bytes:
        inflate = {"vtkZLibDataCompressor": _zlib, "vtkLZMADataCompressor": _lzma}.get(self.root.get("compressor"))
        if inflate is None:
            raise InputError(
                f"the arrays are packed by {self.root.get('compressor')}: write them again with zlib or plain"
            )
        parts, start, left = [], 0, size
        for length in map(int, lengths[3:]):
            parts.append(inflate(data[start : start + length], left + 1))
            start, left = start + length, left - len(parts[-1])
            if left < 0:
                break
        return b"".join(parts)


def read_document(path: Path) -> VtkDocument:
    """Parse a VTK XML file; raw bytes at its end, which are no XML, are cut off first."""
    content = path.read_bytes()
    found = _RAW.search(content)
    text = content if found is None else content[: found.start()] + b"</VTKFile>"
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(f"{path} defines XML entities, which VTK files never do: save it anew")
    root = ElementTree.fromstring(text)
    if root.tag != "VTKFile":
        raise InputError(f"{path} is XML with the root {root.tag[:40]!r}: expected a VTKFile")
    if found is not None:
        return VtkDocument(root, content[found.end() :], raw=True, size=len(content))
    appended = (root.findtext("AppendedData") or "").strip().removeprefix("_")
    return VtkDocument(root, appended.encode("ascii"), raw=False, size=len(content))


def _decoded(text: bytes, size: int) -> bytes:
    """Decode the first `size` bytes of a base64 text."""
    return base64.b64decode(text[: 4 * -(-size // 3)])[:size]


def _zlib(data: bytes, most: int) -> bytes:
    return zlib.decompressobj().decompress(data, most)


def _lzma(data: bytes, most: int) -> bytes:
    return lzma.LZMADecompressor().decompress(data, most)


def numbers_of(attributes: Mapping[str, str], name: str, count: int) -> list[float]:
    """Return the numbers of an attribute such as Spacing."""
    found = [float(part) for part in attributes[name].split()]
    if len(found) != count or not np.all(np.isfinite(found)):
        raise InputError(f"{name} is {attributes[name][:60]!r}: expected {count} numbers")
    return found
