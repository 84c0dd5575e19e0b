"""From the form to the question: one table, the flags of the command; Python and command ask the same."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from cyclopts import CycloptsError

import doublewell as dw
from doublewell.cli import parse
from doublewell.cli.identify import asked
from doublewell.cli.options import Given, Movie
from doublewell.errors import InputError
from doublewell.studio.form import form_fields, read, source

FILE = Path("/data/it's a movie; rm -rf $(x).npz")
WORDS = {  # a word for every field that is not its default
    "var": "u", "axes": "yxt", "dx": "0.1,0.2", "dt": "0.5", "q": "2", "boundary": "open", "levels": "-1,1",
    "length_unit": "um", "time_unit": "s", "mask": "finite", "flatten": "none", "bleaching": "false",
    "drift": "-0.1,0.2", "dark": "7", "frames": "2:", "window": "10:50,:", "leave_out": "1:2,3:4;5:6,7:8",
    "nodes": "true",
    "times": "0,1,3", "dynamics": "cahn-hilliard", "surface_tension": "0.3 J/m^2", "tension_sd": "0.01",
    "normalisation": "eE", "temperature": "300 K", "check": "false", "degree": "2", "constraint": "none",
    "wells": "equal", "ridge": "0.5", "memory": "3GB", "phases": "0,1", "contrast": "exact", "noise": "white",
    "blur": "0.25", "pixel": "true", "response": "0.5", "exposure": "0.125", "refine": "3", "missing": "mask",
    "workers": "2", "device": "cpu", "time_limit": "5 min", "method": "weak", "supports": "5:0.06,8:0.12",
    "derivative": "analytic", "corrected": "true", "precision": "single",
}  # fmt: skip
WEAK = ("supports", "derivative", "corrected", "precision", "method")
NEEDS = {"tension_sd": ("surface_tension",), "normalisation": ("surface_tension",), **dict.fromkeys(WEAK, ("method",))}


USUAL = {"law": dw.DoubleWell(), "method": dw.Trajectory(), "observation": dw.Observation(), "compute": dw.Compute()}
WRONG = [
    {"out": "x"}, {"checkpoint": "x"}, {"json": "true"}, {"degree": 2}, {"var": "a\0"}, {"dt": "fast"},
    {"method": "best"}, {"window": "all"},
]  # fmt: skip


class Reader:
    """Stands in for doublewell where a script runs, and keeps what is called."""

    def __init__(self):
        self.called = {}

    def __getattr__(self, name):
        def keep(*given, **named):
            self.called[name] = (given, named)

        return keep if name in ("open_record", "identify", "save", "write_page") else getattr(dw, name)


def run(script):
    reader = Reader()
    exec(
        script.replace("import doublewell as dw\n", ""),
        {"dw": reader, "__name__": "__main__", "print": lambda *_: None},
    )
    return reader.called


def same(one, two):
    assert type(one) is type(two)
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, item.name), getattr(two, item.name)) for item in fields(one))
    return one == two


def test_every_flag_of_the_command_has_a_field_but_files_that_are_written():
    names = {item.name for item in form_fields()}
    assert {item.name for item in fields(Movie)} <= names
    assert {item.name for item in fields(Given)} - names == {"checkpoint", "scheduler"}
    assert names == set(WORDS)
    assert all(item.help and item.label for item in form_fields())


@pytest.mark.parametrize("name", sorted(WORDS))
def test_command_and_script_ask_what_the_form_asks(name):
    words = {key: WORDS[key] for key in (name, *NEEDS.get(name, ()))}
    question = read(FILE, words)
    command, *flags = shlex.split(question.command())
    assert command == "doublewell"
    _, bound = parse(flags)
    assert bound.args[0] == FILE
    assert bound.arguments.get("movie", Movie()) == question.movie
    given = {key: bound.arguments.get(key) for key in ("surface_tension", "tension_sd", "normalisation", "temperature")}
    rest = {"dynamics": bound.arguments.get("dynamics", "allen-cahn"), "check": bound.arguments.get("check", True)}
    of_command = asked(**given, **rest, movie=question.movie, given=bound.arguments.get("given", Given()))
    called = run(question.python())
    assert called["open_record"] == ((str(FILE),), question.opening)
    from doublewell.identify import identify

    defaults = identify.__kwdefaults__ | {"surface_tension": None}
    for key, value in question.asking.items():
        assert same(of_command[key], value)
        of_script = called["identify"][1].get(key, defaults[key])
        of_script = USUAL.get(key) if of_script is None else of_script  # left out, because it is the default
        assert same(of_script, value)


def test_no_field_is_in_a_command_that_was_left_as_it_is():
    question = read(FILE, {})
    assert question.flags == ()
    assert question.python().count("\n") == 7
    assert (question.opening, question.movie) == ({}, Movie())


@pytest.mark.parametrize(
    "word", ["--out=/elsewhere/x", "-x", "'; import os; os.remove('x')#", "$(reboot)", "`x`", "a\nb", "\\", '"']
)
def test_a_value_stays_a_value(word):
    for name in ("var", "length_unit", "surface_tension", "dynamics"):
        try:
            question = read(FILE, {name: word})
        except (InputError, CycloptsError):
            continue
        assert shlex.split(question.command())[2] == str(FILE)
        _, bound = parse(shlex.split(question.command())[1:])
        assert "out" in bound.arguments
        assert str(bound.arguments["out"]) == "result.json"
        called = run(question.python())
        assert set(called) == {"open_record", "identify", "save", "write_page"}
        if name == "var":
            assert called["open_record"][1] == {"var": word}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_no_word_of_the_form_is_refused(words):
    with pytest.raises((InputError, CycloptsError)):
        read(FILE, words)


def test_a_script_with_workers_can_be_imported_by_them():
    assert 'if __name__ == "__main__":\n    record' in read(FILE, {"workers": "2"}).python()


def test_options_are_written_without_their_defaults():
    assert source(dw.DoubleWell()) == "dw.DoubleWell()"
    assert source(replace(dw.Weak(), supports="paper")) == "dw.Weak(supports='paper')"
    assert source(np.float64(0.1).item()) == "0.1"
