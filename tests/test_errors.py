"""Options in messages: in Python's words, or in those of the shell."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

from doublewell.errors import option, shell_words

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
