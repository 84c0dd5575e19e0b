"""Checkpoint: the pieces that are there, in a file that is whole at every moment; only of one question to one record.

The file is an .npz of plain arrays. What cannot be an array is one JSON text in it. Triangles are kept to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.evidence import Block, Evidence, Key
from doublewell.hints import Array
from doublewell.law import LinearFamily
from doublewell.stream.reduce import Partial
from doublewell.stream.tasks import Piece

__all__ = ["load_partial", "save_partial"]

_FORMAT = "doublewell partial evidence"
_VERSION = 1
_WORDS = {"record": "the record", "options": "the options of the reading", "plan": "the memory or the plan of slabs"}


def save_partial(path: Path, partial: Partial, fingerprint: Mapping[str, str]) -> None:
    """Write the pieces; the file on the disk is the one before or this one, never a part of it."""
    pieces = {} if partial.merged is None else {"merged": partial.merged}
    pieces |= {str(place): piece for place, piece in sorted(partial.waiting.items())}
    about = {
        "format": _FORMAT,
        "version": _VERSION,
        "fingerprint": dict(fingerprint),
        "done": partial.done,
        "pieces": {name: _about(piece) for name, piece in pieces.items()},
    }
    arrays: dict[str, Any] = {f"triangles {name}": _triangles(piece) for name, piece in pieces.items()}
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)


def load_partial(path: Path, fingerprint: Mapping[str, str], family: LinearFamily) -> Partial:
    """Read the pieces of the same question to the same record; none where there is no file yet."""
    if not path.exists():
        return Partial()
    about, arrays = _read(path)
    _check(path, about, fingerprint)
    pieces = dict(_pieces(about["pieces"], arrays, family))
    merged = pieces.pop("merged", None)
    return Partial(int(about["done"]), merged, {int(place): piece for place, piece in pieces.items()})


def _triangles(piece: Piece) -> Array:
    return np.stack([block.triangle for block in piece.evidence.blocks])


def _about(piece: Piece) -> dict[str, Any]:
    blocks = piece.evidence.blocks
    return {
        "keys": [list(block.key) for block in blocks],
        "rows": [int(block.rows) for block in blocks],
        "lines": f"{piece.lines:x}",
        "observed": piece.observed,
    }


def _pieces(found: Mapping[str, Any], arrays: Mapping[str, Array], family: LinearFamily) -> Iterator[tuple[str, Piece]]:
    for name, about in found.items():
        parts = zip(about["keys"], arrays[f"triangles {name}"], about["rows"], strict=True)
        blocks = tuple(Block(Key(*key), triangle, rows) for key, triangle, rows in parts)
        yield name, Piece(Evidence(family, blocks), int(about["lines"], 16), about["observed"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != _FORMAT or about["version"] != _VERSION:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError, BadZipFile, EOFError) as error:
        raise InputError(
            f"{path} is no checkpoint of this version ({type(error).__name__}: {error}): expected a file that an "
            "earlier run of the same command wrote; give another name, or delete the file to begin anew"
        ) from error
    return about, arrays


def _check(path: Path, about: Mapping[str, Any], fingerprint: Mapping[str, str]) -> None:
    other = [_WORDS[name] for name, value in fingerprint.items() if about["fingerprint"].get(name) != value]
    if other:
        raise InputError(
            f"{path} is the checkpoint of another run: {' and '.join(other)} changed; expected the same command on the "
            "same data; give another name, or delete the file to begin anew"
        )
