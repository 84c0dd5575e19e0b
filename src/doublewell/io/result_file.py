"""Results as JSON: a format name, a version, a checksum, and the fields by name."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from doublewell.atomic import replace_file
from doublewell.errors import InputError
from doublewell.io.codec import codec_of
from doublewell.io.format import as_path, reading
from doublewell.result import Result

__all__ = ["RESULT_SUFFIX", "load_result", "result_body", "result_bytes", "write_result"]

RESULT_SUFFIX = ".json"
_FORMAT = "doublewell result"
_VERSION = 3
_MOST = 2**20  # values of a fitted initial field: 6 MB of text
_AGAIN = "restore the file, or run identify again"


def write_result(result: Result, path: Path) -> None:
    """Write a result to a file."""
    content = result_bytes(result)
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def result_bytes(result: Result) -> bytes:
    """Return the file of a result: strict JSON, floats with all their digits."""
    body = result_body(result)
    content = {"format": _FORMAT, "version": _VERSION, "checksum": _checksum(body), "result": body}
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("utf-8")


def result_body(result: Result) -> Any:
    """Return a result as JSON values; a fitted initial field of more than a million cells is left out."""
    fit = result.diagnostics.likelihood
    if fit is not None and fit.initial is not None and fit.initial.size > _MOST:
        fit = replace(fit, initial=None)
        result = replace(result, diagnostics=replace(result.diagnostics, likelihood=fit))
    return codec_of(Result).encode(result, "result")


def load_result(path: str | PathLike[str]) -> Result:
    """Load a result that `save` wrote, equal to the last bit; anything else raises InputError."""
    place = as_path(path)
    body = _body(place, _parse(place))
    try:
        result: Result = codec_of(Result).decode(body, "result")
    except InputError as error:
        raise InputError(f"{place}: {error}; {_AGAIN}") from error
    _check(place, result)
    return result


def _parse(path: Path) -> Any:
    with reading(path, "JSON file"):
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a saved result; check the name and the folder")
        if path.is_dir():
            raise InputError(f"{path} is a folder: expected a saved result (.json); a record is read by open_record")
        raw = path.read_bytes()
    if not raw.strip():
        raise InputError(f"{path} is empty: expected a saved result; {_AGAIN}")
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no JSON, or cut short ({error}): expected a result written by save; {_AGAIN}"
            " (a record is read by open_record)"
        ) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _body(path: Path, content: Any) -> Any:
    """Return the fields of the result after the checks of what stands around them."""
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"{path} is JSON but no doublewell result: expected a file written by save(result, path)")
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(f"{path} is damaged: its version is {version!r}; {_AGAIN}")
    if version < _VERSION:
        raise InputError(
            f"{path} was written by an older doublewell (result version {version}, this one reads {_VERSION}): run "
            "identify again"
        )
    if version > _VERSION:
        raise InputError(
            f"{path} was written by a newer doublewell (result version {version}, this one reads {_VERSION}): "
            "run pip install --upgrade doublewell"
        )
    body = content.get("result")
    digest = _checksum(body)
    if digest is None or content.get("checksum") != digest:
        raise InputError(f"{path} was changed or damaged after it was saved (its checksum differs): {_AGAIN}")
    return body


def _checksum(body: Any) -> str | None:
    """Return the digest of the content, not of the layout: a file may be indented anew. None for what is no JSON."""
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number beyond the range of floats
        return None
    return "sha256:" + sha256(text.encode("utf-8")).hexdigest()


def _check(path: Path, result: Result) -> None:
    """Refuse a result whose parts do not belong together."""
    size, numbers, asked = result.coefficients.size, result.diagnostics, result.settings
    fit = numbers.likelihood
    alone = [part.coefficients for part in numbers.supports if part.coefficients is not None]
    fits = (
        size > 0
        and numbers.unconstrained.shape == (size,)
        and all(g.shape == (size,) for g in alone)
        and all(0 <= j < size for j in numbers.active)
        and len(asked.shape) == len(asked.dx) + 1 > 1
        and (fit is None or fit.initial is None or fit.initial.shape == asked.shape[1:])
    )
    if not fits:
        raise InputError(f"{path}: the parts of the result do not belong together (sizes differ): {_AGAIN}")
