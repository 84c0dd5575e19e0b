"""The codec follows type hints, so that a class which grows needs no new line."""

import json
from dataclasses import dataclass, field
from typing import Literal, Optional

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from doublewell.errors import InputError
from doublewell.io.result_file import decode, encode
from doublewell.law import Family


@dataclass(frozen=True)
class Inner:
    word: str
    pair: tuple[int, float]


@dataclass(frozen=True)
class Outer:
    inner: Inner | None
    many: tuple[Inner, ...]
    mixed: float | str | None
    choice: Literal["a", 1]
    yes: bool
    old: Optional[int] = None  # noqa: UP045 (both spellings are hints)
    made: tuple[int, ...] = field(default_factory=tuple)


def through(value, hint):
    text = json.dumps(encode(value, hint, "value"), allow_nan=False)
    return decode(json.loads(text), hint, "value")


inner = st.builds(Inner, st.text(), st.tuples(st.integers(), st.floats(allow_nan=False)))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.builds(
        Outer,
        inner=st.none() | inner,
        many=st.lists(inner, max_size=3).map(tuple),
        mixed=st.none() | st.floats(allow_nan=False) | st.text(),
        choice=st.sampled_from(["a", 1]),
        yes=st.booleans(),
        old=st.none() | st.integers(),
        made=st.lists(st.integers()).map(tuple),
    )
)
def test_any_dataclass_round_trips(value):
    back = through(value, Outer)
    assert back == value
    assert repr(back) == repr(value)  # so that -0.0 and 0.0, 1 and True differ


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 3), (3, 0), (1, 2, 2)])
def test_arrays_keep_shape_and_bits(shape):
    array = np.random.default_rng(0).standard_normal(shape) * 1e-300
    array.flat[:1] = np.nan
    back = through(array, NDArray[np.float64])
    assert (back.shape, back.dtype, back.tobytes()) == (array.shape, array.dtype, array.tobytes())
    assert not back.flags.writeable


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (1, 2, 2)])
def test_fields_in_single_precision_keep_shape_and_bits(shape):
    field = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    back = through(field, NDArray[np.float32])
    assert (back.shape, back.dtype, back.tobytes()) == (field.shape, field.dtype, field.tobytes())
    assert not back.flags.writeable
    with pytest.raises(InputError, match="expected an array of float32"):
        encode(field.astype(float), NDArray[np.float32], "value")


@pytest.mark.parametrize(
    ("data", "hint", "words"),
    [
        (2, Literal["a", 1], "value is 2: expected 'a' or 1"),
        (True, Literal["a", 1], "value is True"),
        (1.0, Literal["a", 1], "value is 1.0"),
        ([1, 2, 3], tuple[int, float], "expected a list of 2"),
        (1, bool, "expected true or false"),
        ("x" * 99, float, r"value is 'x{56}\.\.\.: expected a number"),
        ({"shape": [2, 2], "values": [1.0]}, NDArray[np.float64], r"value.shape is \(2, 2\): expected a shape of 1"),
        ({"shape": [2], "values": [1.0]}, NDArray[np.float64], "expected a shape of 1 value$"),
        ({"shape": [2], "float32": "AACAPw=="}, NDArray[np.float32], r"value.shape is \(2,\): .* a shape of 1 value$"),
        ({"shape": [1], "float32": "AACAPw"}, NDArray[np.float32], "value.float32 is .*: expected numbers in base 64"),
        ({"shape": [1], "float32": "AACA"}, NDArray[np.float32], "value.float32 is .*: expected numbers in base 64"),
        ({"shape": [1], "float32": "<b>="}, NDArray[np.float32], "value.float32 is .*: expected numbers in base 64"),
        ({"shape": [1], "float32": [1.0]}, NDArray[np.float32], "value.float32 is .*: expected numbers in base 64"),
        ([1.0], NDArray[np.float32], "expected a shape and numbers in base 64"),
        ({"shape": [10**30, 10**30], "values": []}, NDArray[np.float64], "expected a shape of 0 values"),
        (float("inf"), float, "value is inf: expected a number"),
    ],
)
def test_what_does_not_fit_is_refused(data, hint, words):
    with pytest.raises(InputError, match=words):
        decode(data, hint, "value")


def test_values_of_another_class_are_not_saved():
    with pytest.raises(InputError, match=r"value is .*: expected a Inner"):
        encode("x", Inner, "value")
    with pytest.raises(InputError, match="value is None: expected one of the families bernstein, chebyshev"):
        encode(3, Family, "value")


@pytest.mark.parametrize("hint", [dict[str, int], set, NDArray[np.int64], complex])
def test_an_unknown_kind_of_field_says_where_to_add_it(hint):
    with pytest.raises(TypeError, match=r"add one to doublewell\.io\.result_file"):
        decode({}, hint, "value")
