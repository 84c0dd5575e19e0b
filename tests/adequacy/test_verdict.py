"""What the tests say together: correction, verdict by effect, the first cause and its rivals."""

from __future__ import annotations

import numpy as np
import pytest
from found import model

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.adequacy.statistics import holm, verdict_of

BAND = 0.02


def quiet(name, p, statistic=0.0, effect=0.1, **more):
    shift = None if effect is None else 1.0
    given = {"drop": statistic**2, "effect": effect} | more
    return ScoreTest(name, statistic, 1, p, p, (0.0,), (1.0,), shift, **given)


def answer(*tests):
    return Adequacy(tests, verdict_of(tests, BAND), band=BAND)


def test_holm_multiplies_by_the_number_of_tests_left():
    adjusted = [t.adjusted for t in holm([quiet("a", 0.01), quiet("b", 0.04), quiet("c", 0.03)])]
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06])


@pytest.mark.parametrize(
    ("test", "verdict"),
    [
        (quiet("q", 0.2), "adequate"),
        (quiet("q", 0.01, 2.6), "check"),  # not certain
        (quiet("q", 1e-5, 4.4), "not adequate"),
        (quiet("q", 1e-9, 6.1, effect=0.015), "check"),  # more than 1 %, less than the band
        (quiet("q", 1e-9, 6.1, effect=0.0012), "adequate"),
        (quiet("advection", 1e-9, 6.1, effect=0.0012, deviation=0.02), "check"),
        (quiet("advection", 1e-9, 6.1, effect=0.0012, deviation=0.2), "not adequate"),
        (quiet("unknown", 1e-9, 6.1, effect=None, deviation=0.005), "adequate"),
        (quiet("tails", 1e-9, 6.1, effect=None), "check"),
        (ScoreTest("white in t", 30.0, 1, 1e-99, 1e-99, (0.03,), (0.001,), None), "adequate"),
        (ScoreTest("white in t", 30.0, 1, 1e-99, 1e-99, (0.2,), (0.001,), None), "check"),
        (ScoreTest("white in t", 30.0, 1, 1e-99, 1e-99, (0.6,), (0.001,), None), "not adequate"),
        (ScoreTest("cells", 6.1, 1, 1e-9, 1e-9, (0.1,), (0.01,), None, (), 25, 576), "check"),
        (quiet("cells", 1e-9, 6.1), "not adequate"),
    ],
)
def test_verdict_weighs_what_a_fault_does(test, verdict):
    assert verdict_of([test], BAND) == verdict


def test_a_fault_that_does_not_matter_is_told_and_ok():
    (only,) = model(answer(quiet("q", 1e-9, 6.1, effect=0.0012)))
    assert (only.code, only.severity) == ("q-off", "ok")
    assert "would change the force by 0.12 % (95 % band +-2 %): too little to matter" in only.sentence


def test_causes_that_explain_as_much_are_named_together():
    tests = [quiet("q", 1e-9, 6.1), quiet("blur", 1e-8, 5.7), quiet("tilt", 1e-4, 3.9)]
    first, trace = model(answer(*tests))
    assert (first.code, trace.code) == ("q-off", "also-significant")
    assert first.numbers["sigma"] == tests[0].sigma
    assert "cannot tell this from blur (5.7 sigma)" in first.sentence
    assert "tilt (3.9 sigma)" in trace.sentence
    clear = answer(quiet("q", 0.0, 40.0), quiet("blur", 0.0, 35.0))
    assert clear.rivals == ()


def test_the_smaller_of_two_alternatives_about_as_good_is_first():
    larger = ScoreTest("conserved", 1650.0, 3, 0.0, 0.0, (0.1,) * 3, (0.01,) * 3, 1.0, drop=1650.0, effect=0.1)
    found = answer(larger, quiet("mass", 0.0, 40.0), quiet("offset", 0.0, 39.0))
    assert [test.name for test in found.significant] == ["mass", "offset", "conserved"]
    assert [test.name for test in found.rivals] == ["offset"]  # what contains the first is not another cause


def test_named_cause_goes_before_its_traces():
    found = answer(
        quiet("white in t", 0.0, 200.0, effect=None), quiet("tails", 0.0, 900.0, effect=None),
        ScoreTest("boundary", 150.0, 1, 0.0, 0.0, (0.9,), (0.01,), 2.0, drop=150.0**2, effect=0.3),
    )  # fmt: skip
    assert found.verdict == "not adequate"
    first, others = model(found)
    assert first.code == "boundary-off"
    assert "(150.0 sigma); fitting it would change the force by 30 %" in first.sentence
    assert "white in t (200.0 sigma), tails (900.0 sigma)" in others.sentence
