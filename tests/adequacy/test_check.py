"""Adequacy: calibrated under the model, and each fault is seen and named."""

from __future__ import annotations

import re

import numpy as np
import pytest
from found import model, sentence
from scipy.ndimage import gaussian_filter
from scipy.stats import binom, chi2, norm

from doublewell.adequacy import Adequacy, check_adequacies
from doublewell.adequacy.check import _ALWAYS
from doublewell.dynamics import Cnab2, Grid
from doublewell.io.result_file import decode, encode
from doublewell.law import named_law
from doublewell.record import Record
from doublewell.simulate import add_noise, initial_field, rollout, simulate

EPSILON, NOISE, DT = 0.1, 0.03, 5e-4
SEEDS = 16
RARE = 1e-4  # false-alarm rate of a statistical test


def named(answer):
    return {test.name: test for test in answer.tests}


@pytest.fixture(scope="module")
def ask(fit_of):
    return lambda record: check_adequacies([fit_of(record)])[0]


@pytest.fixture(scope="module")
def records(clean):
    return [add_noise(clean, NOISE, seed=100 + seed) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def answers(records, ask):
    return [ask(record) for record in records]


# ---- under the model


def test_small_tails_do_not_count(answers):
    """An excess kurtosis below 0.05 gives 0, what exceeds it less than a normal deviate."""
    z = np.array([named(answer)["tails"].statistic for answer in answers])
    excess = np.array([named(answer)["tails"].estimate[0] for answer in answers])
    assert np.all(z[np.abs(excess) <= 0.05] == 0.0)
    assert np.sum(z**2) < chi2.isf(RARE, SEEDS)


def test_statistics_are_standard_normal_under_the_model(answers):
    """Directions that were solved for; the others are by probes, and one of what is left is on the safe side."""
    rest = ("tails", "outliers", "cells", "thermal", "unknown")
    names = [name for name in named(answers[0]) if name not in rest]
    rare = RARE / (2 * len(names))
    for name in names:
        tests = [named(answer)[name] for answer in answers]
        if name in _ALWAYS or name.startswith("white in"):
            degrees = SEEDS * tests[0].degrees
            total = sum(t.statistic**2 if t.degrees == 1 else t.statistic for t in tests)
            assert chi2.ppf(rare / 2, degrees) < total < chi2.isf(rare / 2, degrees), name
        if tests[0].degrees == 1 and name in _ALWAYS:
            assert abs(np.mean([t.statistic for t in tests])) * np.sqrt(SEEDS) < norm.isf(rare / 2), name
        assert binom.sf(sum(t.p < 0.1 for t in tests) - 1, SEEDS, 0.1) > rare, name


def test_false_alarms_are_rare(answers):
    alarms = sum(answer.verdict != "adequate" for answer in answers)
    assert alarms <= 5  # 5 of 16 at a rate of 5 % has the chance 1e-3, of 6 1e-4
    good = next(answer for answer in answers if answer.verdict == "adequate")
    assert [item.code for item in model(good)] == ["no-test-significant"]
    assert str(good).startswith("model: adequate\n  test ")


# ---- faults


def test_q_off_by_5_percent_is_seen_and_named(noisy, ask):
    wrong = Record(noisy.slab(), dx=noisy.dx, dt=DT, q=1 / 1.05, boundary="periodic")
    answer = ask(wrong)
    test = named(answer)["q"]
    assert abs(test.estimate[0] - 0.05) < 4 * test.error[0]
    assert test.statistic > 10
    assert answer.verdict == "not adequate"
    first = model(answer)[0]
    assert (first.code, first.severity) == ("q-off", "fail")
    assert first.sentence.startswith("q is 5 +- 0.3 % larger than declared (1")


def test_shift_predicts_what_the_right_q_would_change(noisy, fit_of):
    wrong = Record(noisy.slab(), dx=noisy.dx, dt=DT, q=1 / 1.05, boundary="periodic")
    found, right = (fit_of(record) for record in (wrong, noisy))
    test = named(check_adequacies([found])[0])["q"]
    moved = found.evidence.blocks[0].triangle[:3, :3] @ (right.coefficients - found.coefficients)
    assert test.shift == pytest.approx(np.linalg.norm(moved), rel=0.3)


def test_advection_is_seen_and_named(clean, ask, shift):
    answer = ask(add_noise(clean.replace(shift(clean.slab(), 0.5)), NOISE, seed=5))
    test = named(answer)["advection"]
    assert abs(test.estimate[1] - 0.5) < 4 * test.error[1]
    assert abs(test.estimate[0]) < 4 * test.error[0]
    assert test.degrees == 2
    assert answer.verdict == "check"  # it hardly moves the law
    assert model(answer)[0].code == "pattern-drifts"
    assert "along y, " in model(answer)[0].sentence


def test_wrong_boundary_is_seen_and_named(ask, drop):
    movie = add_noise(drop(boundary="neumann", moved=True), NOISE, seed=6)
    answer = ask(Record(movie.slab(), dx=movie.dx, dt=DT, q=1.0, boundary="periodic"))
    assert named(answer)["boundary"].estimate[0] > 0.5
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "boundary-off"
    assert "from the periodic border (0) to the neumann one (1)" in model(answer)[0].sentence


def test_tilt_is_seen_and_named(clean, ask):
    """A tilted law from the odd one: G + b is simulated by CNAB2 as a family with a constant."""
    tilt = 1.0
    answer = ask(add_noise(tilted_movie(clean, tilt), NOISE, seed=7))
    test = named(answer)["tilt"]
    assert abs(test.estimate[0] - tilt) < 4 * test.error[0] + 0.1
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "force-tilted"
    assert "wells='unequal'" in model(answer)[0].advice


def tilted_movie(clean, tilt):
    law = named_law("sixth").effective(EPSILON)

    class Tilted:
        def force(self, u):
            return law.force(u) + tilt

    stepper = Cnab2(Grid((32, 32), 1 / 32, "periodic"), DT, 1.0, 24)
    return clean.replace(rollout(stepper, Tilted(), clean.slab()[0], frames=21))


@pytest.mark.parametrize(("drift", "word"), [(0.03, "grows"), (-0.03, "falls")])
def test_gain_drift_is_seen_and_named(noisy, drift, word, ask):
    gain = 1.0 + drift * np.linspace(0.0, 1.0, 21)
    answer = ask(noisy.replace(noisy.slab() * gain[:, None, None]))
    test = named(answer)["gain drift"]
    assert test.statistic * np.sign(drift) > 10
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "contrast-drifts"
    assert model(answer)[0].sentence.startswith(f"the contrast {word} by ")


@pytest.mark.parametrize(("offset", "word"), [(0.01, "large"), (-0.01, "small")])
def test_offset_is_seen_and_named(noisy, ask, offset, word):
    answer = ask(noisy.replace(noisy.slab() + offset))
    test = named(answer)["offset"]
    assert abs(test.estimate[0] - offset) < 4 * test.error[0]
    assert test.statistic * np.sign(offset) > 5
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "offset"
    assert model(answer)[0].sentence.startswith(f"the values are too {word} by 0.0")
    assert "contrast='estimated'" in model(answer)[0].advice


@pytest.mark.parametrize(("factor", "word"), [(0.98, "small"), (1.02, "large")])
def test_a_wrong_contrast_is_seen_and_named(noisy, ask, factor, word):
    answer = ask(noisy.replace(factor * noisy.slab()))
    test = named(answer)["gain"]
    assert abs(test.estimate[0] - (factor - 1.0)) < 4 * test.error[0] + 0.3 * abs(factor - 1.0)  # to first order
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "contrast-off"
    assert f"% too {word}" in model(answer)[0].sentence


def test_correlated_noise_is_named_before_the_scores_it_raises(clean, ask):
    answer = ask(add_noise(clean, NOISE, seed=8, correlation=0.5))
    assert answer.verdict == "check"
    assert model(answer)[0].code == "noise-correlated-in-space"
    assert "the intervals are too narrow" in model(answer)[0].advice


def test_outliers_ask_for_a_check_only(noisy, ask):
    values = noisy.slab().copy()
    values[10, [3, 9, 20], [4, 25, 30]] += 0.3
    answer = ask(noisy.replace(values))
    assert answer.verdict == "check"
    test = named(answer)["outliers"]
    assert test.estimate == (3.0,)
    assert sentence(test) == "3 values beyond 5 standard deviations, 0.012 expected, all in frame 10"
    assert {item.severity for item in model(answer)} == {"check"}
    values[14, 9, 25] -= 0.6
    test = named(ask(noisy.replace(values)))["outliers"]
    assert (test.count, test.common, test.spots[0].index) == (4, "", (14, 9, 25))
    assert sentence(test).endswith("the largest in frame 14 at cell (9, 25)")


def test_two_outliers_that_the_law_does_not_feel_are_only_mentioned(noisy, ask):
    values = noisy.slab().copy()
    values[[10, 14], [3, 20], [4, 30]] += 0.21
    answer = ask(noisy.replace(values))
    assert named(answer)["outliers"].significant
    assert answer.verdict == "adequate", answer.significant
    assert {(item.code, str(item.severity)) for item in model(answer)} == {("outliers", "ok")}


def test_a_dead_pixel_is_found_and_the_others_are_asked_without_it(noisy, ask):
    values = noisy.slab().copy()
    values[:, 8, 9] = 0.0
    answer = ask(noisy.replace(values))
    test = named(answer)["cells"]
    assert answer.verdict == "check"
    (only,) = model(answer)
    assert only.code == "bad-pixels"
    assert only.sentence.startswith("1 cell stands out, a bad pixel: (8, 9) is off by +0.39")
    assert "; leaving them out would change the force by " in only.sentence
    assert all(t.adjusted > 0.03 for t in answer.tests if t is not test)
    assert test.shift > 1.0
    cured = values.copy()
    cured[:, 8, 9] = (values[:, 7, 9] + values[:, 9, 9] + values[:, 8, 8] + values[:, 8, 10]) / 4
    assert ask(noisy.replace(cured)).verdict == "adequate"


def test_a_bad_pixel_does_not_hide_another_fault(noisy, ask):
    values = noisy.slab().copy()
    values[:, [8, 20], [9, 3]] = 1.5
    answer = ask(Record(values, dx=noisy.dx, dt=DT, q=1 / 1.05, boundary="periodic"))
    found = named(answer)
    assert sentence(found["cells"]).startswith("2 cells stand out, bad pixels: (20, 3) is off by +2")
    assert abs(found["q"].estimate[0] - 0.05) < 4 * found["q"].error[0]
    assert found["q"].adjusted < 1e-6
    assert answer.verdict != "adequate"


def blurred(clean, cells):
    """Blur each frame by a Gaussian of this many cells."""
    return clean.replace(np.stack([gaussian_filter(frame, cells, mode="wrap") for frame in clean.slab()]))


def test_blur_is_seen_and_named(clean, ask):
    answer = ask(add_noise(blurred(clean, 1.5), NOISE, seed=9))
    test = named(answer)["blur"]
    variance = 2 * 32**2 * test.estimate[0]
    assert 1.2 < variance < 2.6  # 2.25, to first order
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "blurred"
    assert "cells (" in model(answer)[0].sentence


def test_a_blur_that_a_law_imitates_is_said_to_be_unseen(answers):
    words = sentence(named(answers[0])["blur"])
    assert re.fullmatch(
        r"a blur of the variance -?[\d.]+ \+- [\d.]+ cells\^2; one of less than [\d.]+ cells .*law", words
    )


def test_a_fault_without_a_name_is_said_to_have_none(clean, ask):
    """Frames that tremble sideways are none of the tested causes, and the names that they raise are no cause."""
    rng = np.random.default_rng(4)
    moved = np.stack([np.roll(frame, int(rng.integers(-1, 2)), axis=1) for frame in clean.slab()])
    answer = ask(add_noise(clean.replace(moved), NOISE, seed=10))
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "pattern-drifts"
    assert "residual-unexplained" in [item.code for item in model(answer)]


# ---- movies without noise


def test_a_movie_without_noise_is_adequate_and_says_why(clean, ask):
    answer = ask(clean)
    assert answer.verdict == "adequate"
    assert [item.code for item in model(answer)] == ["residual-numerical"]
    assert answer.relative_noise == pytest.approx(2e-5, rel=0.3)


def test_a_wrong_model_without_noise_is_not_adequate(clean, ask):
    answer = ask(Record(clean.slab(), dx=clean.dx, dt=DT, q=1 / 1.05, boundary="periodic"))
    assert answer.verdict == "not adequate"
    assert model(answer)[-1].code == "residual-not-noise"
    assert answer.steadiness < 0.1


def line(*, boundary, moved):
    start = initial_field("circle", (64,), 1 / 64, epsilon=EPSILON)
    movie = simulate(
        named_law("quartic"), np.roll(start, moved), dx=1 / 64, dt=DT, frames=21, epsilon=EPSILON, boundary=boundary
    )  # fmt: skip
    noisy = add_noise(movie, 0.01, seed=2)
    return Record(noisy.slab(), dx=1 / 64, dt=DT, q=1.0, boundary="neumann")


def test_one_axis_with_walls(ask):
    record = line(boundary="neumann", moved=0)
    answer = ask(record)
    assert answer.verdict == "adequate"
    assert [t.name for t in answer.tests if t.name.startswith("white")] == ["white in t", "white in x"]
    assert named(answer)["advection"].degrees == 1


def test_walls_declared_where_there_are_none(ask):
    record = line(boundary="periodic", moved=20)
    answer = ask(record)
    assert answer.verdict == "not adequate"
    assert model(answer)[0].code == "boundary-off"


# ---- batches and values


def test_a_batch_says_what_each_record_alone_says(records, answers, fit_of):
    """Two records, one of them raised, so that a mix-up would show."""
    pair = [records[0], records[1].replace(records[1].slab() + 0.02)]
    together = check_adequacies([fit_of(record) for record in pair])
    (alone,) = check_adequacies([fit_of(pair[1])])
    for one, other in zip(together, (answers[0], alone), strict=True):
        assert (one.verdict, list(map(str, model(one)))) == (other.verdict, list(map(str, model(other))))
        for a, b in zip(one.tests, other.tests, strict=True):
            assert (a.name, a.degrees, a.count) == (b.name, b.degrees, b.count)
            np.testing.assert_allclose(
                (a.statistic, *a.estimate, *a.error), (b.statistic, *b.estimate, *b.error), rtol=1e-6
            )
    assert [one.verdict for one in together] == ["adequate", "not adequate"]


def test_adequacy_survives_the_codec(answers):
    assert decode(encode(answers[0], Adequacy, "adequacy"), Adequacy, "adequacy") == answers[0]
