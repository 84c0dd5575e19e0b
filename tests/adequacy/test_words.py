"""What the tests say together: correction, verdict and words."""

from __future__ import annotations

import numpy as np

from doublewell.adequacy import ScoreTest
from doublewell.adequacy.check import holm
from doublewell.adequacy.words import left_words, verdict


def quiet(name, p, statistic=0.0, shift=None):
    return ScoreTest(name, statistic, 1, p, p, (0.0,), (1.0,), shift, f"{name} words")


def test_holm_multiplies_by_the_number_of_tests_left():
    adjusted = [t.adjusted for t in holm([quiet("a", 0.01), quiet("b", 0.04), quiet("c", 0.03)])]
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06])


def test_verdict_grows_with_the_evidence_and_keeps_tails_gentle():
    assert verdict([quiet("q", 0.2, shift=0.0)])[0] == "adequate"
    assert verdict([quiet("q", 0.01, 2.6, shift=0.0)])[0] == "look"
    assert verdict([quiet("q", 1e-5, 4.4, shift=0.0)])[0] == "not adequate"
    assert verdict([quiet("tails", 1e-9, 6.1)])[0] == "look"


def test_causes_that_fit_equally_well_are_named_together():
    tests = [quiet("q", 1e-9, 6.0, shift=1.0), quiet("blur", 1e-8, 5.5, shift=1.0), quiet("tilt", 1e-4, 4.0, shift=1.0)]
    words = verdict(tests)[1]
    assert words[0].startswith("q words (6.0 sigma)")
    assert words[1] == "the residual alone can hardly tell this from blur (5.5 sigma): check each"
    assert words[2].startswith("also significant, perhaps from the same cause: tilt (4.0 sigma)")
    clear = verdict([quiet("q", 0.0, 40.0, shift=1.0), quiet("blur", 0.0, 39.0, shift=1.0)])[1]
    assert not any("hardly tell" in line for line in clear)


def test_cells_that_are_not_few_ask_for_a_look_only():
    said, words = verdict([quiet("cells", 1e-9, 6.1)])
    assert said == "look"
    assert "no single bad pixels: the noise differs from place to place" in words[0]
    assert verdict([quiet("cells", 1e-9, 6.1, shift=0.5)])[0] == "not adequate"


def test_what_all_causes_leave_is_said_only_where_it_is_certain():
    assert left_words([quiet("white in t", 0.01), quiet("white in x", 0.5)]) == ()
    (line,) = left_words([quiet("white in t", 1e-5), quiet("white in x", 0.5)])
    assert line.startswith("all named causes together do not explain the residual (white in t words without them)")


def test_named_cause_goes_before_its_traces():
    said, words = verdict(
        [quiet("white in t", 0.0, 200.0), quiet("tails", 0.0, 900.0), quiet("boundary", 0.0, 150.0, shift=2.0)]
    )
    assert said == "not adequate"
    assert words[0].startswith("boundary words (150.0 sigma); fitting it would move the law by 2.0 standard errors")
    assert words[1] == (
        "also significant, perhaps from the same cause: white in t (200.0 sigma), tails (900.0 sigma); "
        "cure the first and check again"
    )
