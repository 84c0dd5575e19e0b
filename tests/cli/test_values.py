import pytest
from hypothesis import given
from hypothesis import strategies as st

from doublewell.cli.values import parse_degree, parse_mesh, parse_numbers, parse_ridge, parse_seed, parse_supports
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


@given(st.lists(st.tuples(st.integers(0, 99), FLOATS), min_size=1, max_size=4))
def test_supports_come_back(pairs):
    assert parse_supports(",".join(f"{frames}:{length!r}" for frames, length in pairs)) == pairs


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    for parse in (parse_mesh, parse_supports, parse_ridge, parse_degree, lambda word: parse_numbers(word, "--dx")):
        try:
            parse(text)
        except InputError as error:
            assert repr(text) in str(error)  # noqa: PT017


def test_words_and_nothing():
    assert parse_supports(None) is None
    assert parse_supports("paper") == "paper"
    assert parse_ridge("validated") == "validated"
    assert parse_ridge(None) is None
    assert parse_ridge("0.5") == 0.5
    assert parse_numbers(None, "--dx") is None
    with pytest.raises(InputError, match="--ridge is 'much': expected a number of at least 0, or validated"):
        parse_ridge("much")
    with pytest.raises(InputError, match="--ridge is 'inf'"):
        parse_ridge("inf")


def test_degrees_and_seeds():
    assert [parse_degree(word) for word in (None, "auto", "0", "8")] == [None, "auto", 0, 8]
    for word in ("9", "-1", "2.0", "", "true", "1e0"):
        with pytest.raises(InputError, match="expected auto, or an integer from 0 to 8"):
            parse_degree(word)
    assert [parse_seed(seed) for seed in (None, 0, 7)] == [None, 0, 7]
    with pytest.raises(InputError, match="--seed is -1: expected an integer from 0"):
        parse_seed(-1)
