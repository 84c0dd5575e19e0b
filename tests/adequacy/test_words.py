"""What the tests say together: correction, verdict and words."""

from __future__ import annotations

import numpy as np

from doublewell.adequacy import ScoreTest
from doublewell.adequacy.check import holm
from doublewell.adequacy.words import verdict


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
