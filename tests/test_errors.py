"""Options in messages, in the words of Python or the shell; checks return plain numbers or name what is wrong."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from doublewell.errors import InputError, not_negative, numbers, option, positive, real, seed, shell_words, shown, whole

CASES = [
    (("levels",), "levels=", "--levels"),
    (("length_unit",), "length_unit=", "--length-unit"),
    (("boundary", "neumann"), "boundary='neumann'", "--boundary neumann"),
    (("levels", (10, 200)), "levels=(10, 200)", "--levels 10,200"),
    (("levels", ("low", "high")), "levels=(low, high)", "--levels low,high"),
    (("supports", [(28, 0.06), (14, 0.03)]), "supports=[(28, 0.06), (14, 0.03)]", "--supports 28:0.06,14:0.03"),
    (("drift", True), "drift=True", "--drift"),
    (("drift", False), "drift=False", "--no-drift"),
    (("degree", 3), "degree=3", "--degree 3"),
]


@pytest.mark.parametrize(("given", "python", "shell"), CASES)
def test_an_option_is_written_as_the_caller_writes_it(given, python, shell):
    assert option(*given) == python
    with shell_words():
        assert option(*given) == shell
        with shell_words():
            assert option(*given) == shell
        assert option(*given) == shell
    assert option(*given) == python


def test_workers_use_the_words_of_the_shell():
    pools = (ThreadPoolExecutor(1), ProcessPoolExecutor(1, mp_context=get_context("spawn")))
    with shell_words():
        for pool in pools:
            with pool:
                assert pool.submit(option, "mask").result() == "--mask"


def test_words_return_after_an_error():
    with pytest.raises(ValueError, match="^--q$"), shell_words():
        raise ValueError(option("q"))
    assert option("q") == "q="


NO_NUMBERS = ["1", "a", b"1", None, True, np.True_, [1.0], np.ones(1), np.ones(2), 1j, np.complex128(1), 10**400, float]


@pytest.mark.parametrize("check", [positive, not_negative, lambda value, name: real(value, name, "a change")])
@pytest.mark.parametrize("value", [*NO_NUMBERS, float("nan"), float("inf")])
def test_what_is_no_finite_number(check, value) -> None:
    with pytest.raises(InputError, match=r"^size is .*: expected .*number"):
        check(value, "size")


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0)])
def test_numbers_of_every_kind_become_floats(value) -> None:
    for check in (positive, not_negative, lambda value, name: real(value, name, "a change")):
        found = check(value, "size")
        assert type(found) is float
        assert found == 2.0


def test_zero_and_below() -> None:
    assert not_negative(0, "size") == 0.0
    assert real(-1, "size", "a change") == -1.0
    with pytest.raises(InputError, match="^size is 0: expected the width, a positive number$"):
        positive(0.0, "size", "the width")
    with pytest.raises(InputError, match="^size is -1: expected a number of at least 0$"):
        not_negative(-1, "size")


def test_whole_numbers() -> None:
    assert type(whole(np.int16(3), "count", least=0)) is int
    with pytest.raises(InputError, match="^count is 2: expected an integer from 3$"):
        whole(2, "count", least=3)
    with pytest.raises(InputError, match="^count is 9: expected the steps, an integer from 0 to 8$"):
        whole(9, "count", least=0, most=8, meaning="the steps")
    for bad in (True, 2.0, "2", None, [2]):
        with pytest.raises(InputError, match="^count is .*: expected an integer from 0$"):
            whole(bad, "count", least=0)


def test_seeds() -> None:
    rng = np.random.default_rng(1)
    assert seed(rng, "the noise") is rng
    assert seed(np.int64(1), "the noise").random() == np.random.default_rng(1).random()
    for bad in (None, -1, 1.5, "a", True):
        with pytest.raises(InputError, match="^seed is .*or a numpy Generator, to make the noise repeatable$"):
            seed(bad, "the noise")


def test_arrays_of_numbers() -> None:
    assert numbers([1, 2], "dx").dtype == np.float64
    for bad in (["a"], ["1"], [1j], [[1.0], [1.0, 2.0]], [10**400]):
        with pytest.raises(InputError, match="^dx is .*: expected numbers$"):
            numbers(bad, "dx")


def test_a_wrong_value_is_shown_in_one_short_line() -> None:
    assert shown("a") == "'a'"
    assert shown(np.arange(100.0)).endswith("...")
    assert "\n" not in shown(np.arange(100.0))
    assert len(shown("a" * 1000)) == 60
    assert shown(10**5000) == "a very large int"
