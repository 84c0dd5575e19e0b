"""Codec: frozen dataclasses to strict JSON and back, led by their type hints. Nothing from a file is executed.

A codec is a pair of functions that undo each other. A class with new fields needs no new line here; a new kind of
field (a set, say) needs one new codec in `codec_of`. `where` is the place in the file, for the error.
"""

from __future__ import annotations

import types
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from sys import float_info
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from doublewell.dynamics import DYNAMICS, Dynamics
from doublewell.errors import InputError
from doublewell.law import FAMILIES, Family

__all__ = ["Codec", "codec_of"]

_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


@dataclass(frozen=True)
class Codec:
    """How values of one type become JSON and come back."""

    encode: Callable[[Any, str], Any]
    decode: Callable[[Any, str], Any]


def codec_of(hint: Any) -> Codec:
    """Return the codec of a type hint.

    >>> codec_of(tuple[float, ...]).encode((1.0, float("inf")), "here")
    [1.0, {'float': 'inf'}]
    >>> codec_of(tuple[float, ...]).decode([1.0, {'float': 'inf'}], "here")
    (1.0, inf)
    """
    origin = get_origin(hint)
    if hint in _KNOWN:
        return _KNOWN[hint]
    if origin in _BUILT:
        return _BUILT[origin](get_args(hint))
    if is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(hint)
    raise TypeError(f"no codec for {hint}: add one to doublewell.io.codec")


def _refuse(where: str, expected: str, value: Any) -> NoReturn:
    text = repr(value)
    raise InputError(f"{where} is {text if len(text) < 60 else text[:57] + '...'}: expected {expected}")


def _exactly(kind: type, expected: str) -> Codec:
    def check(value: Any, where: str) -> Any:
        return value if type(value) is kind else _refuse(where, expected, value)

    return Codec(check, check)


def _encode_int(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        _refuse(where, "a whole number", value)
    return int(value)


def _encode_float(value: Any, where: str) -> float | dict[str, str]:
    """Strict JSON has no infinity and no NaN: they become {"float": name}."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        _refuse(where, "a number", value)
    number = float(value)
    return number if isfinite(number) else {"float": str(number)}


def _decode_float(data: Any, where: str) -> float:
    if isinstance(data, dict) and list(data) == ["float"] and isinstance(data["float"], str):
        return _SPECIAL[data["float"]] if data["float"] in _SPECIAL else _refuse(where, "nan, inf or -inf", data)
    if type(data) not in (int, float) or abs(data) > float_info.max:
        _refuse(where, "a number", data)
    return float(data)


def _union(hints: tuple[Any, ...]) -> Codec:
    """Take the first member that accepts the value."""
    codecs = [codec_of(hint) for hint in hints]

    def first(calls: list[Callable[[Any, str], Any]], value: Any, where: str) -> Any:
        said = []
        for call in calls:
            try:
                return call(value, where)
            except InputError as error:
                said.append(error)
        raise said[0]  # the first member is the one that is meant; the others are mostly None

    return Codec(
        lambda value, where: first([codec.encode for codec in codecs], value, where),
        lambda data, where: first([codec.decode for codec in codecs], data, where),
    )


def _literal(options: tuple[Any, ...]) -> Codec:
    def check(value: Any, where: str) -> Any:
        same = [option for option in options if type(option) is type(value) and option == value]
        return same[0] if same else _refuse(where, " or ".join(map(repr, options)), value)

    return Codec(check, check)


def _enum(kind: type[Enum]) -> Codec:
    """A member of an enum is its name."""

    def decode(data: Any, where: str) -> Any:
        names = [member.name for member in kind]
        return kind[data] if isinstance(data, str) and data in names else _refuse(where, " or ".join(names), data)

    return Codec(
        lambda value, where: value.name if isinstance(value, kind) else _refuse(where, kind.__name__, value), decode
    )


def _tuple(hints: tuple[Any, ...]) -> Codec:
    """A tuple of one type and any length, or of a fixed length, is a list."""
    any_length = len(hints) == 2 and hints[1] is Ellipsis
    codecs = [codec_of(hint) for hint in hints if hint is not Ellipsis]

    def members(values: Any, kind: type[Any], where: str) -> list[tuple[Codec, Any, str]]:
        if type(values) is not kind or not (any_length or len(values) == len(codecs)):
            _refuse(where, "a list" if any_length else f"a list of {len(codecs)}", values)
        each = codecs * len(values) if any_length else codecs
        return [(codec, value, f"{where}[{i}]") for i, (codec, value) in enumerate(zip(each, values, strict=True))]

    return Codec(
        lambda values, where: [codec.encode(value, at) for codec, value, at in members(values, tuple, where)],
        lambda data, where: tuple(codec.decode(value, at) for codec, value, at in members(data, list, where)),
    )


def _array(hints: tuple[Any, ...]) -> Codec:
    """A one-dimensional array is a list; any other has its shape beside its values. Read-only when loaded."""
    if get_args(hints[1]) == (np.float32,):
        return _field()
    if get_args(hints[1]) != (np.float64,):
        raise TypeError(f"no codec for arrays of {hints[1]}: add one to doublewell.io.codec")
    floats, whole = _tuple((float, ...)), _tuple((int, ...))

    def encode(value: Any, where: str) -> Any:
        array = np.asarray(value, dtype=np.float64)
        values = floats.encode(tuple(array.ravel().tolist()), where)
        return values if array.ndim == 1 else {"shape": list(array.shape), "values": values}

    def decode(data: Any, where: str) -> Any:
        shaped = isinstance(data, dict) and set(data) == {"shape", "values"}
        flat = np.array(floats.decode(data["values"] if shaped else data, where), dtype=np.float64)
        shape = whole.decode(data["shape"], f"{where}.shape") if shaped else flat.shape
        return _shaped(flat, shape, where)

    return Codec(encode, decode)


def _field() -> Codec:
    """A field in single precision is its shape and its bytes in base 64, a third of the size of digits."""
    whole, text = _tuple((int, ...)), _exactly(str, "numbers in base 64")

    def encode(value: Any, where: str) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype != np.float32:
            _refuse(where, "an array of float32", value)
        return {"shape": list(value.shape), "float32": b64encode(value.astype("<f4").tobytes()).decode("ascii")}

    def decode(data: Any, where: str) -> Any:
        if not isinstance(data, dict) or set(data) != {"shape", "float32"}:
            _refuse(where, "a shape and numbers in base 64", data)
        packed = text.decode(data["float32"], f"{where}.float32")
        try:
            flat = np.frombuffer(b64decode(packed, validate=True), dtype="<f4").astype(np.float32)
        except ValueError:  # binascii's error is one
            _refuse(f"{where}.float32", "numbers in base 64", packed)
        return _shaped(flat, whole.decode(data["shape"], f"{where}.shape"), where)

    return Codec(encode, decode)


def _shaped(flat: Any, shape: tuple[int, ...], where: str) -> Any:
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) != flat.size:
        _refuse(f"{where}.shape", f"a shape of {flat.size} value{'' if flat.size == 1 else 's'}", shape)
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array


def _dataclass(kind: type[Any], extra: frozenset[str] = frozenset()) -> Codec:
    """An object with the fields by name. A field with a default may be absent, so that classes can grow."""
    hints = get_type_hints(kind)
    parts = {field.name: field for field in fields(kind) if field.init}

    def encode(value: Any, where: str) -> dict[str, Any]:
        if type(value) is not kind:
            _refuse(where, f"a {kind.__name__}", value)
        return {name: codec_of(hints[name]).encode(getattr(value, name), f"{where}.{name}") for name in parts}

    def decode(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            _refuse(where, f"the fields of a {kind.__name__}", data)
        needed = {n for n, part in parts.items() if part.default is MISSING and part.default_factory is MISSING}
        missing, unknown = sorted(needed - set(data)), sorted(set(data) - set(parts) - extra)
        if missing or unknown:
            said = f"lacks {', '.join(missing)}" if missing else f"has the unknown field {', '.join(unknown)}"
            raise InputError(f"{where} {said}: expected the fields of a {kind.__name__} of this version")
        found = {name: data[name] for name in parts if name in data}
        return kind(**{name: codec_of(hints[name]).decode(item, f"{where}.{name}") for name, item in found.items()})

    return Codec(encode, decode)


def _encode_family(value: Any, where: str) -> dict[str, Any]:
    """A family is its name and its own fields."""
    name = getattr(value, "name", None)
    if name not in FAMILIES:
        _refuse(where, f"one of the families {', '.join(FAMILIES)}", name)
    own: dict[str, Any] = _dataclass(FAMILIES[name]).encode(value, where)
    return {"name": name} | own


def _decode_family(data: Any, where: str) -> Any:
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or name not in FAMILIES:
        _refuse(where, f"one of the families {', '.join(FAMILIES)}", name)
    return _dataclass(FAMILIES[name], frozenset({"name"})).decode(data, where)


def _encode_dynamics(value: Any, where: str) -> str:
    """A dynamics is its name."""
    name: str = value.name
    return name if DYNAMICS.get(name) == value else _refuse(where, f"one of {', '.join(DYNAMICS)}", name)


def _decode_dynamics(data: Any, where: str) -> Any:
    return DYNAMICS[data] if isinstance(data, str) and data in DYNAMICS else _refuse(where, "a dynamics", data)


_KNOWN: dict[Any, Codec] = {
    str: _exactly(str, "a text"),
    bool: _exactly(bool, "true or false"),
    type(None): _exactly(type(None), "nothing"),
    int: Codec(_encode_int, _exactly(int, "a whole number").decode),
    float: Codec(_encode_float, _decode_float),
    Family: Codec(_encode_family, _decode_family),
    Dynamics: Codec(_encode_dynamics, _decode_dynamics),
}
_BUILT: dict[Any, Callable[[tuple[Any, ...]], Codec]] = {
    Union: _union,
    types.UnionType: _union,
    Literal: _literal,
    tuple: _tuple,
    np.ndarray: _array,
}
