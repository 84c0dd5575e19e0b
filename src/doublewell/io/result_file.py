"""Result files: strict JSON with a format name, a version, a checksum and the fields by name.

`encode` and `decode` turn frozen dataclasses into JSON values and back, led by their type hints, and execute nothing
from a file. A class with new fields needs no new line here; a new kind of field (a set, say) needs one in both.
"""

from __future__ import annotations

import json
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from enum import EnumType
from functools import cache
from hashlib import sha256
from math import isfinite
from os import PathLike
from pathlib import Path
from sys import float_info
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from doublewell.dynamics import DYNAMICS, Dynamics
from doublewell.errors import InputError
from doublewell.io.format import as_path, reading
from doublewell.law import FAMILIES, Family
from doublewell.result import Result

RESULT_SUFFIX = ".json"
_FORMAT = "doublewell result"
_VERSION = 3
_MOST = 2**20  # values of a fitted initial field: 6 MB of text
_AGAIN = "restore the file, or run identify again"
_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}  # strict JSON has none of these
_PLAIN = {str: "a text", bool: "true or false", type(None): "nothing", int: "an integer"}
_BASE64 = "numbers in base 64"


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
    return encode(result, Result, "result")


def load_result(path: str | PathLike[str]) -> Result:
    """Load a result that `save` wrote, equal to the last bit; anything else raises InputError."""
    place = as_path(path)
    body = _body(place)
    try:
        result: Result = decode(body, Result, "result")
    except InputError as error:
        raise InputError(f"{place}: {error}; {_AGAIN}") from error
    size, numbers, record = result.coefficients.size, result.diagnostics, result.problem.records[0]
    initial = None if numbers.likelihood is None else numbers.likelihood.initial
    alone = [part.coefficients for part in numbers.supports if part.coefficients is not None]
    fits = (
        size > 0
        and all(g.shape == (size,) for g in (numbers.unconstrained, *alone))
        and all(0 <= j < size for j in numbers.active)
        and len(record.shape) == len(record.dx) + 1 > 1
        and (initial is None or initial.shape == record.shape[1:])
    )
    if not fits:
        raise InputError(f"{place}: the parts of the result do not belong together (sizes differ): {_AGAIN}")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _body(path: Path) -> Any:
    """Return the fields of the result after the checks of what stands around them."""
    with reading(path, "JSON file"):
        if not path.exists():
            raise InputError(f"{path} does not exist: expected a saved result; check the name and the folder")
        if path.is_dir():
            raise InputError(f"{path} is a folder: expected a saved result (.json); a record is read by open_record")
        raw = path.read_bytes()
    if not raw.strip():
        raise InputError(f"{path} is empty: expected a saved result; {_AGAIN}")
    try:
        content = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON, or is cut short ({error}): expected a result written by save; {_AGAIN}"
            " (a record is read by open_record)"
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise InputError(f"{path} is JSON but no doublewell result: expected a file written by save(result, path)")
    version = content.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(f"{path} is damaged: its version is {version!r}; {_AGAIN}")
    if version != _VERSION:
        older = version < _VERSION
        raise InputError(
            f"{path} was written by a {'older' if older else 'newer'} doublewell (result version {version}, this one "
            f"reads {_VERSION}): run {'identify again' if older else 'pip install --upgrade doublewell'}"
        )
    digest = _checksum(content.get("result"))
    if digest is None or content.get("checksum") != digest:
        raise InputError(f"{path} was changed or damaged after it was saved (its checksum differs): {_AGAIN}")
    return content["result"]


def _checksum(body: Any) -> str | None:
    """Return the digest of the content, not of the layout: a file may be indented again. None for what is not JSON."""
    try:
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number beyond the range of floats
        return None
    return "sha256:" + sha256(text.encode("utf-8")).hexdigest()


def encode(value: Any, hint: Any, where: str) -> Any:
    """Return a value of a type as JSON values; `where` is its position in the file, for the error.

    >>> encode((1.0, float("inf")), tuple[float, ...], "here")
    [1.0, {'float': 'inf'}]
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first_that_takes(encode, value, arguments, where)
    if origin is tuple:
        return [encode(item, kind, at) for item, kind, at in _members(value, tuple, arguments, where)]
    if origin is np.ndarray and _number_type(hint) is np.float32:
        if not isinstance(value, np.ndarray) or value.dtype != np.float32:
            _refuse(where, "an array of float32", value)
        return {"shape": list(value.shape), "float32": b64encode(value.astype("<f4").tobytes()).decode("ascii")}
    if origin is np.ndarray:
        array = np.asarray(value, dtype=np.float64)
        values = [x if isfinite(x) else {"float": str(x)} for x in array.ravel().tolist()]
        return values if array.ndim == 1 else {"shape": list(array.shape), "values": values}
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            _refuse(where, "a number", value)
        return float(value) if isfinite(value) else {"float": str(float(value))}
    return _encode_class(value, hint, where)


def _encode_class(value: Any, hint: Any, where: str) -> Any:
    if classes := _classes(hint):
        name: Any = getattr(value, "name", None)
        if name in classes and DYNAMICS.get(name) != value:
            return {"name": name} | encode(value, classes[name], where)
        if hint is Family:
            _refuse(where, f"one of the families {', '.join(FAMILIES)}", name)
    if names := _names(hint):
        same = [name for name, item in names.items() if item == value]
        return same[0] if same else _refuse(where, " or ".join(names), value)
    if hasattr(hint, "__dataclass_fields__"):
        parts = _parts(hint)
        if type(value) is not hint:
            _refuse(where, f"a {hint.__name__}", value)
        return {name: encode(getattr(value, name), kind, f"{where}.{name}") for name, (kind, _) in parts.items()}
    return _plain(int(value) if isinstance(value, np.integer) else value, hint, where)


def decode(data: Any, hint: Any, where: str) -> Any:
    """Return the value of a type that JSON values stand for; arrays are read-only.

    A field of a class with a default may be absent, so that classes can grow.

    >>> decode([1.0, {'float': 'inf'}], tuple[float, ...], "here")
    (1.0, inf)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _first_that_takes(decode, data, arguments, where)
    if origin is tuple:
        return tuple(decode(item, kind, at) for item, kind, at in _members(data, list, arguments, where))
    if origin is np.ndarray:
        return _array(data, _number_type(hint), where)
    if hint is float:
        if isinstance(data, dict) and list(data) == ["float"] and isinstance(data["float"], str):
            return _SPECIAL[data["float"]] if data["float"] in _SPECIAL else _refuse(where, "nan, inf or -inf", data)
        if type(data) not in (int, float) or abs(data) > float_info.max:
            _refuse(where, "a number", data)
        return float(data)
    return _decode_class(data, hint, where)


def _decode_class(data: Any, hint: Any, where: str) -> Any:
    if classes := _classes(hint):
        name = data.get("name") if isinstance(data, dict) else None
        if isinstance(name, str) and name in classes:
            return decode({key: item for key, item in data.items() if key != "name"}, classes[name], where)
        if hint is Family:
            _refuse(where, f"one of the families {', '.join(FAMILIES)}", name)
    if names := _names(hint):
        return names[data] if isinstance(data, str) and data in names else _refuse(where, " or ".join(names), data)
    if hasattr(hint, "__dataclass_fields__"):
        if not isinstance(data, dict):
            _refuse(where, f"the fields of a {hint.__name__}", data)
        parts = _parts(hint)
        missing = [name for name, (_, needed) in parts.items() if needed and name not in data]
        unknown = [name for name in data if name not in parts]
        if missing or unknown:
            wrong = f"lacks {', '.join(missing)}" if missing else f"has the unknown field {', '.join(unknown)}"
            raise InputError(f"{where} {wrong}: expected the fields of a {hint.__name__} of this version")
        return hint(**{name: decode(item, parts[name][0], f"{where}.{name}") for name, item in data.items()})
    return _plain(data, hint, where)


def _classes(hint: Any) -> Mapping[str, Any]:
    """Return the classes of a type that files hold with their names."""
    return FAMILIES if hint is Family else {name: type(item) for name, item in DYNAMICS.items() if hint is Dynamics}


def _names(hint: Any) -> Mapping[str, Any]:
    """Return the values of a type that files hold by their names."""
    return DYNAMICS if hint is Dynamics else hint.__members__ if isinstance(hint, EnumType) else {}


def _refuse(where: str, expected: str, value: Any) -> NoReturn:
    text = repr(value)
    raise InputError(f"{where} is {text if len(text) < 60 else text[:57] + '...'}: expected {expected}")


def _plain(value: Any, hint: Any, where: str) -> Any:
    """Return what stands in JSON as it is: texts, booleans, integers, None, and the words of a Literal."""
    if get_origin(hint) is Literal:
        words = get_args(hint)
        fits = any(type(word) is type(value) and word == value for word in words)
        expected = " or ".join(map(repr, words))
    elif hint in _PLAIN:
        fits, expected = type(value) is hint, _PLAIN[hint]
    else:
        raise TypeError(f"no code for {hint}: add one to doublewell.io.result_file")
    return value if fits else _refuse(where, expected, value)


def _first_that_takes(call: Callable[..., Any], value: Any, hints: tuple[Any, ...], where: str) -> Any:
    """Return what the first member of a union makes of a value."""
    errors = []
    for hint in hints:
        if get_origin(hint) is Callable:  # no file holds one
            continue
        try:
            return call(value, hint, where)
        except InputError as error:
            errors.append(error)
    raise errors[0]  # the first member is the one that is meant; the others are mostly None


def _members(values: Any, kind: Any, hints: tuple[Any, ...], where: str) -> Iterator[tuple[Any, Any, str]]:
    """Go through a tuple of one type and any length, or of a fixed length: item, type and position."""
    any_length = len(hints) == 2 and hints[1] is Ellipsis
    if type(values) is not kind or not (any_length or len(values) == len(hints)):
        _refuse(where, "a list" if any_length else f"a list of {len(hints)}", values)
    for i, item in enumerate(values):
        yield item, hints[0 if any_length else i], f"{where}[{i}]"


def _number_type(hint: Any) -> Any:
    (kind,) = get_args(get_args(hint)[1])
    if kind not in (np.float32, np.float64):
        raise TypeError(f"no code for {hint}: add one to doublewell.io.result_file")
    return kind


def _array(data: Any, kind: Any, where: str) -> Any:
    """Return an array: a list, or its shape and its values; in single precision its shape and its bytes in base 64."""
    values = "values" if kind is np.float64 else "float32"
    shaped = isinstance(data, dict) and set(data) == {"shape", values}
    if kind is np.float64:
        flat = np.array(decode(data["values"] if shaped else data, tuple[float, ...], where), dtype=np.float64)
    elif not shaped:
        _refuse(where, f"a shape and {_BASE64}", data)
    else:
        try:
            packed = b64decode(data["float32"] if isinstance(data["float32"], str) else "?", validate=True)
            flat = np.frombuffer(packed, dtype="<f4").astype(np.float32)
        except ValueError:  # binascii's error is one
            _refuse(f"{where}.float32", _BASE64, data["float32"])
    shape = decode(data["shape"], tuple[int, ...], f"{where}.shape") if shaped else flat.shape
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) != flat.size:
        _refuse(f"{where}.shape", f"a shape of {flat.size} value{'' if flat.size == 1 else 's'}", shape)
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array


@cache
def _parts(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field of a dataclass, and whether it has to be given."""
    hints = get_type_hints(kind)
    return {
        part.name: (hints[part.name], part.default is MISSING and part.default_factory is MISSING)
        for part in fields(kind)
        if part.init
    }
