from pathlib import Path

import pytest

from doublewell.cli.wording import about, shell_words
from doublewell.errors import InputError


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("pass supports=[(28, 0.06)] or record longer", "pass --supports 28:0.06 or record longer"),
        ("supports=[(5, 0.06), (8, 0.1)]", "--supports 5:0.06,8:0.1"),
        ("compare with constraint='none'", "compare with --constraint none"),
        ("use method='weak', which", "use --method weak, which"),
        ("pass q= to Record", "pass --q to Record"),
        ("name it with var=", "name it with --var"),
        ("such as axes='yxt'", "such as --axes yxt"),
        ("pass levels=(low, high), the", "pass --levels low,high, the"),
        ("in one unit, and length_unit=", "in one unit, and --length-unit"),
        (
            "pass surface_tension= (--surface-tension in the shell)",
            "pass surface_tension= (--surface-tension in the shell)",
        ),
        ("dx = 0.1, dt = 0.2, q = 1", "dx = 0.1, dt = 0.2, q = 1"),
    ],
)
def test_arguments_become_options(said, words):
    assert shell_words(said) == words


def test_the_file_is_named_once():
    with pytest.raises(InputError, match=r"^m\.npz: too short$"), about(Path("m.npz")):
        raise InputError("too short")
    with pytest.raises(InputError, match=r"^m\.npz is empty$"), about(Path("m.npz")):
        raise InputError("m.npz is empty")
