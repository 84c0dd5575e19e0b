"""The line that says why a first fit is silent for long."""

import sys

import pytest

from doublewell.cli.options import _PATIENT, Bar, Output


@pytest.mark.parametrize(
    ("output", "terminal", "said"),
    [
        (Output(), False, f"doublewell: {_PATIENT}\n"),
        (Output(), True, ""),  # a terminal has the bar
        (Output(quiet=True), False, ""),
        (Output(json=True), False, ""),
    ],
)
def test_the_hint_comes_once_with_the_first_report(output, terminal, said, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    bar = Bar(wanted=False)
    show = output.fitting(bar)
    assert capsys.readouterr().err == ""
    show("fitting", 1, 0)
    show("fitting", 2, 0)
    assert capsys.readouterr().err == said
    assert bar._said == ("fitting", 2, 0)


def test_the_trajectory_reading_gives_the_hint_and_the_weak_one_does_not(run, small_file):
    words = ["identify", small_file, "--degree", "2", "--no-check"]
    assert run(*words)[2] == f"doublewell: {_PATIENT}\n"
    assert run(*words, "--method", "weak")[2] == ""
    assert run(*words, "--quiet") == (0, "", "")
