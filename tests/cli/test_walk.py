"""Every field of every option value appears in the help, survives save and load, and reaches repeat."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module

import pytest

from doublewell.cli.options import Given, options_of
from doublewell.errors import InputError, as_word
from doublewell.identify import identify
from doublewell.io import load_result, save
from doublewell.options import METHODS, Compute, DoubleWell, Observation, worded

OTHER = {  # a value that is not the default, by name; a field that is added needs one
    "degree": 3, "constraint": "none", "wells": "equal", "ridge": 0.5, "memory": "3GB", "supports": ((4, 0.1),),
    "derivative": "analytic", "corrected": True, "precision": "single", "phases": (0.0, 1.0), "noise": "shot",
    "blur": 0.25,
    "contrast": "drifting", "drift": "estimated",
    "pixel": True, "response": 0.5, "exposure": 0.125, "refine": 3, "missing": "mask", "workers": 2,
    "scheduler": "tcp://a:1", "checkpoint": "kept.npz", "device": "cpu",
    "time_limit": "5 min",
}  # fmt: skip
STORED = [("law", DoubleWell), *(("method", kind) for kind in METHODS.values()), ("observation", Observation)]
FIELDS = [(part, kind, item.name) for part, kind in STORED for item in fields(kind)]
ALL = [*FIELDS, *(("compute", Compute, item.name) for item in worded(Compute))]


def names(case):
    return f"{case[1].__name__}.{case[2]}"


@pytest.fixture(scope="module")
def text():
    from contextlib import redirect_stdout
    from io import StringIO

    from doublewell.cli import main

    with redirect_stdout(StringIO()) as out:
        main(["identify", "--help"])
    return out.getvalue()


@pytest.fixture(scope="module")
def result(noisy):
    return identify(noisy, method="weak")


@pytest.mark.parametrize("case", ALL, ids=names)
def test_it_appears_in_the_help(case, text):
    assert f"--{case[2].replace('_', '-')} " in text


@pytest.mark.parametrize("case", ALL, ids=names)
def test_its_flag_reaches_the_value(case):
    part, kind, name = case
    word = OTHER[name]
    flag = word if isinstance(word, bool) else as_word(list(word) if name == "supports" else word)
    method = {"method": next(key for key, value in METHODS.items() if value is kind)} if part == "method" else {}
    drift = {"drift": flag} if name == "drift" else {}  # a flag of the movie, which knows more words
    value = options_of(Given(**({} if drift else {name: flag}), **method), **drift)[part]
    assert type(value) is kind
    assert getattr(value, name) == word


def test_a_drift_is_a_velocity_or_a_word():
    assert options_of(Given(), "-0.5,0.25")["observation"].drift == (-0.5, 0.25)
    assert options_of(Given(), "remove")["observation"].drift == "auto"
    with pytest.raises(InputError, match=r"--drift: .* expected auto, remove, none, estimated, or a velocity"):
        options_of(Given(), "sideways")


@pytest.mark.parametrize("case", FIELDS, ids=names)
def test_it_survives_save_and_load_and_reaches_repeat(case, result, noisy, tmp_path, monkeypatch):
    part, kind, name = case
    value = kind(**{name: OTHER[name]})
    assert value != kind()
    save(replace(result, problem=replace(result.problem, **{part: value})), tmp_path / "r.json")
    loaded = load_result(tmp_path / "r.json")
    assert getattr(loaded.problem, part) == value
    module, given = import_module("doublewell.identify.again"), {}
    monkeypatch.setattr(module, "identify", lambda *_, **options: given.update(options) or result)
    module.repeat(loaded, noisy)
    assert given[part] == value
