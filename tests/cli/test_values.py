import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.cli.options import check_seed, parse_fraction, parse_mesh, parse_numbers
from doublewell.errors import InputError

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.integers(2, 10**6), min_size=1, max_size=3))
def test_meshes_come_back(mesh):
    assert parse_mesh("x".join(map(str, mesh))) == tuple(mesh)
    assert parse_mesh("X".join(map(str, mesh))) == tuple(mesh)


@given(st.lists(FLOATS, min_size=1, max_size=3))
def test_numbers_come_back(numbers):
    expected = numbers[0] if len(numbers) == 1 else tuple(numbers)
    assert parse_numbers(",".join(map(repr, numbers)), "--dx") == expected


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    for parse in (parse_mesh, lambda word: parse_numbers(word, "--dx"), lambda word: parse_fraction(word, "--target")):
        try:
            parse(text)
        except InputError as error:
            assert repr(text) in str(error)  # noqa: PT017


def test_nothing_given():
    assert parse_numbers(None, "--dx") is None


def test_seeds():
    assert [check_seed(seed) for seed in (None, 0, 7)] == [None, 0, 7]
    with pytest.raises(InputError, match="--seed is -1: expected an integer from 0"):
        check_seed(-1)
