"""What the tests say together: correction, verdict, rivals and traces."""

from __future__ import annotations

import numpy as np
from found import model

from doublewell.adequacy import Adequacy, ScoreTest
from doublewell.adequacy.statistics import holm, verdict_of


def quiet(name, p, statistic=0.0, shift=None):
    return ScoreTest(name, statistic, 1, p, p, (0.0,), (1.0,), shift)


def answer(*tests, leftover=()):
    return Adequacy(tests, verdict_of(tests), leftover=leftover)


def test_holm_multiplies_by_the_number_of_tests_left():
    adjusted = [t.adjusted for t in holm([quiet("a", 0.01), quiet("b", 0.04), quiet("c", 0.03)])]
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06])


def test_verdict_grows_with_the_evidence_and_keeps_tails_gentle():
    assert verdict_of([quiet("q", 0.2, shift=0.0)]) == "adequate"
    assert verdict_of([quiet("q", 0.01, 2.6, shift=0.0)]) == "check"
    assert verdict_of([quiet("q", 1e-5, 4.4, shift=0.0)]) == "not adequate"
    assert verdict_of([quiet("tails", 1e-9, 6.1)]) == "check"


def test_causes_that_fit_equally_well_are_named_together():
    tests = [quiet("q", 1e-9, 6.1, shift=1.0), quiet("blur", 1e-8, 5.7, shift=1.0), quiet("tilt", 1e-4, 3.9, shift=1.0)]
    first, rival, trace = model(answer(*tests))
    assert (first.code, rival.code, trace.code) == ("q-off", "cause-ambiguous", "also-significant")
    assert first.numbers["sigma"] == tests[0].sigma
    assert "blur (5.7 sigma)" in rival.sentence
    assert "tilt (3.9 sigma)" in trace.sentence
    clear = model(answer(quiet("q", 0.0, 40.0, shift=1.0), quiet("blur", 0.0, 39.0, shift=1.0)))
    assert "cause-ambiguous" not in [item.code for item in clear]


def test_cells_that_are_not_few_ask_for_a_check_only():
    uneven = ScoreTest("cells", 6.1, 1, 1e-9, 1e-9, (0.1,), (0.01,), None, (), 25, 576)
    assert verdict_of([uneven]) == "check"
    assert verdict_of([quiet("cells", 1e-9, 6.1, shift=0.5)]) == "not adequate"


def test_what_all_causes_leave_is_said_only_where_it_is_certain():
    cause = quiet("q", 1e-9, 6.0, shift=1.0)
    left = (quiet("white in t", 0.01), quiet("white in x", 0.5))
    assert answer(cause, leftover=left).unexplained is None
    sure = answer(cause, leftover=(quiet("white in t", 1e-5), quiet("white in x", 0.5)))
    assert sure.unexplained.name == "white in t"
    assert model(sure)[-1].code == "residual-unexplained"


def test_named_cause_goes_before_its_traces():
    found = answer(
        quiet("white in t", 0.0, 200.0), quiet("tails", 0.0, 900.0),
        ScoreTest("boundary", 150.0, 1, 0.0, 0.0, (0.9,), (0.01,), 2.0),
    )  # fmt: skip
    assert found.verdict == "not adequate"
    first, others = model(found)
    assert first.code == "boundary-off"
    assert first.sentence.endswith("(150.0 sigma); fitting it would move the law by 2.0 standard errors")
    assert "white in t (200.0 sigma), tails (900.0 sigma)" in others.sentence
