from __future__ import annotations

import pytest

from doublewell.errors import InputError
from doublewell.units import parse_memory


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("2GB", 2e9),
        ("2 gb", 2e9),
        ("2g", 2e9),
        ("1.5GiB", 1.5 * 2**30),
        ("500MB", 5e8),
        ("512 MiB", 2**29),
        (".5TB", 5e11),
    ],
)
def test_sizes_in_words(given, size) -> None:
    assert parse_memory(given) == size


def test_sizes_in_numbers() -> None:
    assert parse_memory(10**9) == parse_memory(1e9) == parse_memory("1000000000") == 10**9


@pytest.mark.parametrize(
    "given", ["", "GB", "two GB", "-2GB", "2PB", "2 GB more", 0, -1, True, float("nan"), [2], 1e300]
)
def test_what_is_no_size(given) -> None:
    with pytest.raises(
        InputError, match='^memory is .*: expected a size such as "2GB" or "500 MB", or a number of bytes$'
    ):
        parse_memory(given)
